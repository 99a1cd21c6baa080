"""What the user of a session that servers of one database host has granted it.

The next server of them goes on with it.  Without such a server nothing is kept here: grants count
in the process that was asked, and nowhere else.
"""

from __future__ import annotations

import msgspec

from weft.events import (
    AnyFact,
    PermissionResolved,
    SessionHosted,
    SettingChanged,
    TurnFinished,
)
from weft.permissions import PermissionGrant, PermissionRule


class HostedGrants(msgspec.Struct, kw_only=True):
    """What counts at the server that has the session, as far as the log tells."""

    fence: int = 0
    """Of the server that wrote it; 0 where none did."""
    trusted_mode: bool = False
    asks: bool = True
    grants: tuple[PermissionGrant, ...] = ()
    rules: tuple[PermissionRule, ...] = ()

    def counts_for(self, fence: int) -> bool:
        """Whether the process with this fence is the next one after that server: one in between
        may have written what its own user granted it.
        """
        return bool(self.fence) and self.fence == fence - 1

    def apply(self, fact: AnyFact) -> None:
        """Take one more fact in."""
        match fact:
            case SessionHosted():
                self.fence, self.trusted_mode, self.asks = fact.fence, fact.trusted_mode, fact.asks
                self.grants, self.rules = fact.grants, fact.rules
            case SettingChanged(name="permission_mode"):
                self.trusted_mode = bool(self.fence)
            case PermissionResolved() if self.fence:
                self._take_answer(fact)
            case TurnFinished():
                self.grants = tuple(each for each in self.grants if each.scope == "session")
            case _:
                pass

    def _take_answer(self, fact: PermissionResolved) -> None:
        self.rules = (*self.rules, *fact.rules)
        if fact.pattern and fact.action == "allow_turn":
            self.grants = (*self.grants, PermissionGrant(pattern=fact.pattern, scope="turn"))
        if fact.pattern and fact.action == "allow_always":
            self.grants = (*self.grants, PermissionGrant(pattern=fact.pattern, scope="session"))
