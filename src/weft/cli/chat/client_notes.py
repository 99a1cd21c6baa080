"""What other clients of the session did, as lines of the chat: who answered, who drives."""

from __future__ import annotations

from weft.events import DriverChanged, Event, PermissionResolved, PlanDecided, QuestionAnswered
from weft.ids import client_name
from weft.view import NoteBlock

_DONE = {
    "allow_once": "allowed",
    "allow_turn": "allowed for this turn",
    "allow_always": "allowed for this session",
    "deny": "denied",
}


def client_note(event: Event, own: str) -> NoteBlock | None:
    """What to say of an event; `own` is the id of the client that this chat is, or empty."""
    match event:
        case PermissionResolved(action=action, by=by) if by != own and client_name(by):
            return NoteBlock(text=f"{_DONE[action]} by {client_name(by)}", level="quiet")
        case QuestionAnswered(by=by) if by != own and client_name(by):
            return NoteBlock(text=f"answered by {client_name(by)}", level="quiet")
        case PlanDecided(by=by, approved=approved) if by != own and client_name(by):
            verb = "approved" if approved else "rejected"
            return NoteBlock(text=f"the plan was {verb} by {client_name(by)}", level="quiet")
        case DriverChanged(client=client) if own and client == own:
            return NoteBlock(text="you drive this session now", level="quiet")
        case DriverChanged(client=client) if own and client:
            name = client_name(client) or "another client"
            return NoteBlock(text=f"{name} drives this session now; /drive takes over")
        case DriverChanged() if own:
            return NoteBlock(text="no client drives this session now; /drive does", level="quiet")
        case _:
            return None
