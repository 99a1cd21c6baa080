"""Background commands: which were started, and how they ended.

The result of the call that starts one names it in its data, `{"background": {"id", "command"}}`; a
system note tells its end.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from weft.events import AnyFact, CommandEnd, SystemNote, ToolComplete
from weft.ids import CallUid

REMEMBERED: Final = 16
"""How many that have ended are remembered; the one that was started first goes first."""


class BackgroundCommand(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A command that runs in the background."""

    call_uid: CallUid
    """The call that started it; its changes are known under that name."""
    command: str = ""
    """The command line, for display."""
    end: CommandEnd | None = None
    """None while it runs, as far as the log can tell."""


class BackgroundCommandLog(msgspec.Struct):
    """All background commands by name, the one started first is first."""

    known: dict[str, BackgroundCommand] = {}
    started: int = 0
    """How many were ever started."""

    def apply(self, fact: AnyFact) -> None:
        """Take one more fact in."""
        match fact:
            case ToolComplete(result=result) if "background" in result.data:
                self._start(result.call_uid, result.data["background"])
            case SystemNote(background=CommandEnd() as end):
                if (known := self.known.get(end.id)) is not None:
                    known.end = end
                    self._forget_old()
            case _:
                pass

    @property
    def running(self) -> dict[str, BackgroundCommand]:
        """Those without an end on record."""
        return {name: each for name, each in self.known.items() if each.end is None}

    def _start(self, call_uid: CallUid, started: Any) -> None:
        # A tool of the program's own may call something else by that name.
        if isinstance(started, dict) and isinstance(name := started.get("id"), str):
            command = str(started.get("command", ""))
            self.known[name] = BackgroundCommand(call_uid=call_uid, command=command)
            self.started += 1

    def _forget_old(self) -> None:
        # Only ended ones are dropped: a command that runs must be found however many there were.
        ended = [name for name, each in self.known.items() if each.end is not None]
        for name in ended[:-REMEMBERED]:
            del self.known[name]
