"""View blocks: the finished things that a screen shows, one struct for each kind.

A block holds foreign words as they came.  The screen makes them fit for where they go: a terminal
removes escape sequences, a page builds elements and never markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from weft.events import FinishReason, Todo
from weft.messages import PDF_TYPE, File, Image, Part, ToolResult, typed_text

_PICTURE_LABEL = re.compile(r"\[(?:Image|PDF) [^\]\n]+\]")
"""What stands in a message for a picture that was pasted or dropped."""

NoteLevel: TypeAlias = Literal["quiet", "info", "warning", "error", "stopped"]


class ViewBlock(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="block", tag=True, omit_defaults=True
):
    """Something to show.  Once it is handed out it never changes, so a screen may print it."""


class UserBlock(ViewBlock, frozen=True, tag="user"):
    """The user's message, with the names of what was attached."""

    text: str
    attached: tuple[str, ...] = ()
    node_id: str = ""
    """The message in the tree; empty for an answer to a question, and for a typed command."""
    pasted: tuple[tuple[int, int], ...] = ()
    """Where in the text a paste begins and ends, in order; empty where that is not known."""


class AnswerBlock(ViewBlock, frozen=True, tag="answer"):
    """A piece of the model's answer: whole Markdown blocks."""

    text: str
    node_id: str = ""


class ThinkingBlock(ViewBlock, frozen=True, tag="thinking"):
    """The model's reasoning, folded to one line until it is opened."""

    text: str
    node_id: str = ""
    seconds: float = 0.0
    """For how long it thought; 0 where that is not known."""


class ToolCard(ViewBlock, frozen=True, tag="tool"):
    """A tool call and its result."""

    name: str
    args: dict[str, Any]
    result: ToolResult
    duration_ms: int = 0
    was_shown: bool = False
    """The user has just seen what it would do, in the request that asked for approval."""
    allowed_for: Literal["", "turn", "session"] = ""
    """For how long the user allowed it, where that reaches beyond this call."""
    output: str = ""
    """The end of what it had printed when it was stopped."""
    allowed_by: str = ""
    """The rule that allowed it without a question; only with the first call that it allows."""


class LookupCard(ViewBlock, frozen=True, tag="lookups"):
    """Reads and searches in a row, as one card."""

    cards: tuple[ToolCard, ...]


class AgentEnd(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How one agent ended."""

    name: str
    """The kind of agent."""
    title: str = ""
    """Its task, in one line."""
    reason: FinishReason = "stop"
    calls: int = 0
    text: str = ""
    """What it reported."""
    cost_usd: float | None = 0.0
    duration_ms: int = 0


class AgentsCard(ViewBlock, frozen=True, tag="agents"):
    """Agents that worked at the same time, and what came of it."""

    agents: tuple[AgentEnd, ...]


class TodoBlock(ViewBlock, frozen=True, tag="todos"):
    """The to-do list, when it is complete or a turn has changed it."""

    items: tuple[Todo, ...]


class TurnEndBlock(ViewBlock, frozen=True, tag="turn_end"):
    """What a turn took: shown for one that was long or used tools."""

    seconds: float
    ended_at: float
    """Wall-clock seconds."""
    calls: int = 0
    input_tokens: int = 0
    """Tokens sent that no cache held."""
    output_tokens: int = 0
    cost_usd: float | None = 0.0


class PermissionBlock(ViewBlock, frozen=True, tag="permission"):
    """What a call is about to do, for the user who has to approve it: shown whole."""

    tool: str
    target: str
    preview: str
    reason: str = ""


class QuestionBlock(ViewBlock, frozen=True, tag="question"):
    """A question of the model, with the user's answer once it is there."""

    text: str
    answer: str = ""


class PlanBlock(ViewBlock, frozen=True, tag="plan"):
    """A plan of architect mode, for the user who has to approve it: shown whole."""

    plan: dict[str, Any]


class NoteBlock(ViewBlock, frozen=True, tag="note"):
    """A sentence about what happened."""

    text: str
    level: NoteLevel = "info"
    advice: str = ""
    """What to do about it."""


class TableBlock(ViewBlock, frozen=True, tag="table"):
    """Rows of two or more columns."""

    title: str
    rows: tuple[tuple[str, ...], ...]


AnyBlock: TypeAlias = (
    UserBlock
    | AnswerBlock
    | ThinkingBlock
    | ToolCard
    | LookupCard
    | AgentsCard
    | TodoBlock
    | TurnEndBlock
    | PermissionBlock
    | QuestionBlock
    | PlanBlock
    | NoteBlock
    | TableBlock
)


def user_block(parts: Iterable[Part], node_id: str = "") -> UserBlock:
    """The user's message, with the names of what was attached."""
    given = tuple(parts)
    return UserBlock(text=typed_text(given), attached=tuple(attached_names(given)), node_id=node_id)


def attached_names(parts: Sequence[Part]) -> list[str]:
    """The names of what was attached to a message, and is not shown in its text."""
    pictures = [part for part in parts if isinstance(part, Image)]
    # A picture that was pasted has a label in the text; its path says nothing.
    are_shown = 0 < len(pictures) <= len(_PICTURE_LABEL.findall(typed_text(parts)))
    return [
        part.name
        for part in parts
        if isinstance(part, File | Image)
        and not (are_shown and (isinstance(part, Image) or part.media_type == PDF_TYPE))
    ]
