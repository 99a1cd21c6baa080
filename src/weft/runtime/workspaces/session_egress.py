"""Which hosts the commands of a session may reach from the sandbox, by its rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from weft.permissions import PermissionRule
from weft.permissions.domains import plain_host
from weft.permissions.network_rules import NetworkDecision, NetworkRules, read_host
from weft.workspace.egress.judge import EgressJudge, RefusedHost
from weft.workspace.egress.own_addresses import is_own_address


class SessionEgress(EgressJudge):
    """Judges the hosts of one command."""

    def __init__(self, rules: NetworkRules) -> None:
        self._rules = rules

    def plain_host(self, text: str) -> str:
        return plain_host(text)

    def refused(self, host: str, port: int) -> RefusedHost | None:
        return _refused(host, port, self._rules.decide(host, port))

    def refused_address(self, host: str, number: str, port: int) -> RefusedHost | None:
        is_own = is_own_address(number)
        return _refused(host, port, self._rules.decide_address(host, number, port, is_own=is_own))

    def names_port(self, host: str, port: int) -> bool:
        return self._rules.names_port(host, port)

    @property
    def local_names(self) -> frozenset[str]:
        return self._rules.local_names


def session_egress(
    rules: Iterable[PermissionRule], hosts: Sequence[str] = ()
) -> SessionEgress | None:
    """What judges the hosts of a command; `hosts` are those that the user allowed it.  None where
    it may reach none."""
    given = [named for text in hosts if (named := read_host(text)) is not None]
    network = NetworkRules(rules, given)
    return SessionEgress(network) if network.allow_any else None


def _refused(host: str, port: int, decision: NetworkDecision) -> RefusedHost | None:
    if decision.verdict == "allow":
        return None
    return RefusedHost(host, port, decision.reason, decision.rule)
