"""Addresses that pages are fetched from: public ones, and those that a rule of the user names."""

from __future__ import annotations

from collections.abc import Sequence

from weft.errors import FinalToolError
from weft.permissions.domains import plain_host
from weft.permissions.network_rules import THIS_MACHINE, NetworkRules, rule_for
from weft.workspace.egress.host_lookup import HostLookup
from weft.workspace.egress.own_addresses import is_own_address


class PageAddressGuard:
    """Looks names up for connections, and judges every address: what is connected to is what was
    judged."""

    def __init__(self, rules: NetworkRules, lookup: HostLookup) -> None:
        self._rules = rules
        self._lookup = lookup

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """The addresses of a host.

        Raises:
            FinalToolError: one of them may not be reached.
            OSError: the name is not known.
        """
        return await self.judged(host, port, is_known=True)

    async def judged(self, host: str, port: int, *, is_known: bool) -> Sequence[str]:
        plain = plain_host(f"[{host}]" if ":" in host else host)
        if not plain:
            raise FinalToolError(f"{host!r} is no host that can be reached")
        try:
            numbers = await self._lookup.numbers(plain)
        except OSError:
            if is_known:
                raise
            return ()
        # All of them: a name that leads inside as well is not to be trusted.
        for number in numbers:
            self._refuse_inside(plain, number, port)
        return numbers

    def _refuse_inside(self, host: str, number: str, port: int) -> None:
        named = plain_host(f"[{number}]" if ":" in number else number)
        is_own = is_own_address(number)
        found = self._rules.decide_address(host, number, port, is_own=is_own)
        if named == host or host == THIS_MACHINE:
            # The address itself, which is public or named by a rule.
            other = self._rules.decide_address("", number, port, is_own=is_own)
            is_named = self._rules.decide(host, port).verdict == "allow"
            found = found if is_named else other
        if found.verdict != "allow":
            why = found.reason or "it is not a public address"
            # The loopback has one name that a rule for it may use.
            rule = rule_for(host, port) if host == THIS_MACHINE and found.rule else found.rule
            by_rule = f"; the rule {rule} would allow it" if rule else ""
            raise FinalToolError(f"{host} is not fetched: {why}{by_rule}")
