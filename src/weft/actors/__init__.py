"""Mailboxes, hubs and supervision: how tasks live together.  No domain in here."""

from weft.actors.hub import Hub, Inbox
from weft.actors.mailbox import Envelope, Mailbox
from weft.actors.supervisor import RestartBudget, StrayCancellation, Supervisor, no_strays

__all__ = [
    "Envelope",
    "Hub",
    "Inbox",
    "Mailbox",
    "RestartBudget",
    "StrayCancellation",
    "Supervisor",
    "no_strays",
]
