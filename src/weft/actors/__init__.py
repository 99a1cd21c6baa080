"""Mailboxes, hubs and supervision: how tasks live together.  No domain in here."""

from weft.actors.hub import Hub, Inbox
from weft.actors.mailbox import Envelope, Mailbox
from weft.actors.supervisor import (
    ForeignCancellation,
    RestartBudget,
    Supervisor,
    without_foreign_cancel,
)

__all__ = [
    "Envelope",
    "ForeignCancellation",
    "Hub",
    "Inbox",
    "Mailbox",
    "RestartBudget",
    "Supervisor",
    "without_foreign_cancel",
]
