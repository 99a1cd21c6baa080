"""Facts of a turn that waits: for a time, for the end of a background command or agent, or until a
file changes or a port is served.

A wait is a state of the log, so that it survives its process and costs nothing meanwhile: the turn
stays open, no model is asked, and the call that waits is answered when the wait is over.
"""

from __future__ import annotations

import msgspec

from weft.events.base import FactBase
from weft.events.facts.schedules import UnattendedPermission
from weft.events.facts.turn import CallPermission
from weft.ids import CallUid, NodeId, TurnId, WaitId


class WaitSubject(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a turn waits for."""

    # An open word: an older program shows a later one as it is.
    kind: str
    """`time`, `command`, `agent`, `file`, `port`, or `ci`."""
    name: str = ""
    """The background command, the session of the agent, or the program that asks the forge."""
    text: str = ""
    """What it is, for display: the command line, the task."""
    place: str = ""
    """What is looked at: a path or a pattern of paths, the number of a port or of a CI run."""
    seen: str = ""
    """What it looked like when the wait began, as a digest; empty where there was nothing."""


class TurnWaiting(FactBase, frozen=True, tag="turn_waiting"):
    """The turn waits, and no model is asked before it is woken."""

    wait_id: WaitId
    turn_id: TurnId
    on: WaitSubject
    until: float | None = None
    """Wall-clock seconds at which it is woken at the latest; None: only by what it waits for, or by
    the user."""
    node: NodeId | None = None
    call_uid: CallUid | None = None
    """The call that is answered when the wait is over."""
    permission: CallPermission | None = None
    """What allowed the looks, where they need it; it holds for this wait alone."""
    unattended: UnattendedPermission | None = None
    """The seal on that: the looks go on in other processes, and a log may come from elsewhere."""


# At most one for each wait: it is decided by the session's one writer, from a state in which the
# wait is open. What wakes it (a message, the end of a command) stands in the same append.
class TurnWoken(FactBase, frozen=True, tag="turn_woken"):
    """The wait is over, and the turn goes on."""

    wait_id: WaitId
    turn_id: TurnId
    # An open word, as above.
    by: str
    """What ended the wait: `time`, `message` (one that was sent meanwhile), or the kind of what it
    was for."""
