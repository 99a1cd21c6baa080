"""Hooks in a turn: when the user's own programs are asked, and what their rulings may change.

An implementation of `TurnHooks` runs them, bounds them and decides what a failing one means; here
their rulings are only taken.  A turn without hooks has none of this (`hooks` is None in its
environments) and pays nothing for it.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from weft.events import Fact
from weft.messages import ToolCall, ToolResult
from weft.permissions import Verdict

Trigger: TypeAlias = Literal["manual", "auto"]


class HookRuling(msgspec.Struct, frozen=True, kw_only=True):
    """What hooks say at one moment; nothing at all by default."""

    verdict: Verdict | None = None
    """`deny` also stands for "not now", where no permission is asked for: do not stop, do not
    compact.
    """
    reason: str = ""
    args: dict[str, Any] | None = None
    """Other arguments for the call."""
    context: str = ""
    """For the model."""
    halts: bool = False
    """The turn is to end here; `reason` says why."""
    facts: tuple[Fact, ...] = ()
    """What is to be on record: hooks that failed, notes for the user."""


class TurnHooks(Protocol):
    """The hooks of a session, as a turn meets them.

    A cancel ends a hook that runs, with all it started.
    """

    async def before_tool(self, call: ToolCall) -> HookRuling:
        """A call is prepared and not denied.

        It may be denied, asked about, let through, or given other arguments.
        """
        ...

    async def before_asking(self, call: ToolCall, reason: str) -> HookRuling:
        """The user is about to be asked; `reason` is why."""
        ...

    def wants_result(self, call: ToolCall) -> bool:
        """True when `after_tool` has something to do for this call."""
        ...

    async def after_tool(self, call: ToolCall, result: ToolResult) -> HookRuling:
        """A call has run."""
        ...

    @property
    def wants_stop(self) -> bool:
        """True when `before_stop` has something to do."""
        ...

    async def before_stop(self, text: str, *, held_back: int) -> HookRuling:
        """The model has given its last answer.

        `held_back` says how often a hook did not let this turn end.
        """
        ...

    async def before_compaction(self, trigger: Trigger, focus: str) -> HookRuling:
        """The older part of the line is about to be summarised."""
        ...

    async def after_compaction(self, trigger: Trigger, summary: str) -> HookRuling:
        """It was summarised."""
        ...
