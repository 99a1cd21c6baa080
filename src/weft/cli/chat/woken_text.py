"""What the chat says of a session that goes on because its wait is over."""

from __future__ import annotations

from typing import Protocol

from weft.cli.sanitize import clean_line
from weft.ids import SessionId
from weft.permissions import Mode
from weft.state import SessionState


class WokenSession(Protocol):
    """A session of this process, as far as a sentence tells of it."""

    @property
    def session_id(self) -> SessionId: ...

    @property
    def state(self) -> SessionState: ...

    @property
    def permission_mode(self) -> Mode: ...

    @property
    def is_open(self) -> bool:
        """False once it has stopped."""
        ...


def _title_of(port: WokenSession) -> str:
    """How a session is called in a sentence."""
    title = clean_line(port.state.settings.title)[:60].strip()
    return f"“{title}”" if title else str(port.session_id)


def woken_text(port: WokenSession) -> str:
    """One line: which session goes on here, and why."""
    wait, asleep = port.state.turn.wait, port.state.turn.asleep
    name = clean_line(wait.on.name if wait is not None else "")
    why = f"{name} is over" if name else "the time that it waited for has come"
    if wait is None and port.state.goal.is_open:
        why = "no process works for its goal"
    if asleep is not None and asleep.on.kind not in ("time", "command"):
        # It needs a process that looks, and the one that did is gone.
        why = f"it still waits for {name or clean_line(asleep.on.text)}"
    mode = port.permission_mode
    return f"{_title_of(port)} goes on in this chat: {why} (mode {mode}; /resume {port.session_id})"


def left_text(port: WokenSession) -> str:
    """One line: which session is left with its turn open."""
    return f"{_title_of(port)} is interrupted with this chat; weft -r {port.session_id} goes on"
