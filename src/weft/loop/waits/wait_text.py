"""How a wait ended, in words for the model."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from weft.events import TurnWaiting, WaitSubject
from weft.ids import SessionId
from weft.state import SessionState


def outcome_text(state: SessionState, wait: TurnWaiting, by: str, now: float) -> str:
    """How a wait ended that was ended by this."""
    passed = shown_seconds(now - wait.at)
    match by:
        case "message":
            # Not that it follows: it may be taken back before the model is asked.
            return f"The wait ended early, after {passed}: a message came."
        case "cancelled":
            return f"The wait ended early, after {passed}: it was cancelled."
        case "time" | "":
            return _expired(wait.on, passed, now)
        case _:
            return end_text(state, wait.on)


def _expired(on: WaitSubject, passed: str, now: float) -> str:
    match on.kind:
        case "command":
            return f"{on.name} still runs after {passed}."
        case "agent":
            return f"The agent {on.name} is still at work after {passed}."
        case "file":
            return f"{on.place} has not changed within {passed}."
        case "port":
            return f"Nothing listens on port {on.place} after {passed}."
        case "ci":
            return f"The {on.text} has not ended within {passed}."
        case _:
            has = "has" if passed.startswith(("1 ", "less ")) else "have"
            return f"{passed[0].upper()}{passed[1:]} {has} passed; it is {shown_time(now)}."


def end_text(state: SessionState, on: WaitSubject) -> str:
    """That what was waited for has come."""
    match on.kind:
        case "agent":
            return _agent_end(state, on.name)
        case "file":
            return f"{on.place} has changed."
        case "port":
            return f"Something listens on port {on.place}."
        case "ci":
            return f"The {on.text} has ended."
        case _:
            return _command_end(state, on.name)


def _agent_end(state: SessionState, name: str) -> str:
    child = state.children.known.get(SessionId(name))
    reason = child.reason if child is not None else None
    how = "" if reason in (None, "stop") else f" ({reason})"
    return f"The agent {name} has ended{how}; its report comes as a message."


def _command_end(state: SessionState, name: str) -> str:
    known = state.background.known.get(name)
    end = known.end if known is not None else None
    if end is None:
        return f"{name} is over."
    match end.why:
        case "lost":
            return f"{name} is over: the program that ran it was interrupted."
        case "stopped":
            return f"{name} is over: it was stopped."
        case _:
            code = "" if end.exit_code is None else f": it ended with exit code {end.exit_code}"
            return f"{name} is over{code}."


def shown_seconds(seconds: float) -> str:
    """A length of time, in words."""
    # Rounded down: a wait of two seconds ends a little after them, and was not three.
    whole = math.floor(seconds)
    if whole < 1:
        return "less than a second"
    if whole < 120:
        return f"{whole} second{'' if whole == 1 else 's'}"
    minutes = whole // 60
    return f"{minutes} minutes" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def shown_time(now: float) -> str:
    """A time, in words."""
    return f"{datetime.fromtimestamp(now, UTC):%Y-%m-%d %H:%M:%S} UTC"
