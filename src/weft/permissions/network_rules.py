"""Rules about the network of sandboxed commands: which host may be reached at which port.

A command in the sandbox reaches what a rule `allow fetch(domain:…)` names, or what the user allowed
for this very command, and nothing that a rule denies or asks about.  Without a port a domain means
those of the web; any other has to be named.  An address that is not public (this machine, the
network that it is in) is reached only where it is named itself: a name that leads there is not
enough, for the name's owner says where it leads.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from weft.permissions.domains import KEY, DomainPattern, plain_host, read_domain
from weft.permissions.policy import SEVERITY, PermissionRule, Verdict, names_tool, rule_text

WEB_PORTS: Final = (443, 80)
THIS_MACHINE: Final = "localhost"
"""The one name that means the loopback by itself, and is never looked up."""

_TRANSLATED: Final = tuple(map(ipaddress.IPv6Network, ("64:ff9b::/96", "::/96")))
"""Addresses of IPv6 that end with one of IPv4, which is what is reached."""
_NOT_PUBLIC: Final = tuple(
    map(
        ipaddress.ip_network,
        (
            # Besides what `is_global` knows: the shared space of providers, whose clouds keep their
            # metadata there; protocol assignments; benchmarks; local translation; tunnels, which
            # hold an address that is not looked at.
            *("100.64.0.0/10", "192.0.0.0/24", "198.18.0.0/15", "192.88.99.0/24"),
            *("64:ff9b:1::/48", "2001::/32", "2002::/16", "fec0::/10", "5f00::/16"),
        ),
    )
)


class NamedHost(NamedTuple):
    """A host, and the port where one is named."""

    host: str
    """As `plain_host` writes it."""
    port: int | None = None

    def __str__(self) -> str:
        return self.host if self.port is None else f"{self.host}:{self.port}"


class NetworkDecision(NamedTuple):
    """What the rules say of a host."""

    verdict: Verdict
    reason: str = ""
    rule: str = ""
    """The rule that would allow it; empty where none could."""


class NetworkRules:
    """What commands of a session may reach."""

    def __init__(self, rules: Iterable[PermissionRule], given: Sequence[NamedHost] = ()) -> None:
        """`given` is what a command has named: the user allowed what `decide_named` asks about."""
        own = [rule for rule in rules if names_tool(rule.tool, "fetch")]
        self._stops = [rule for rule in own if rule.verdict != "allow"]
        named = (read_domain(rule.pattern) for rule in own if rule.verdict == "allow")
        # A rule for the tool alone is about what the model looks up, not about what programs send.
        self._allowed = [pattern for pattern in named if pattern is not None]
        self._given: list[DomainPattern] = []
        # What needed no question gives nothing: a port by its number may speak any language.
        asked = [each for each in given if self.decide_named(each).verdict == "ask"]
        self._given += [DomainPattern(each.host, False, each.port) for each in asked]

    @property
    def allow_any(self) -> bool:
        """Whether there is anything that may be reached."""
        return bool(self._allowed or self._given)

    def decide(self, host: str, port: int) -> NetworkDecision:
        """Judge a host, as `plain_host` writes it."""
        stops = [rule for rule in self._stops if _restricts(rule, host, port)]
        if denies := next((rule for rule in stops if rule.verdict == "deny"), None):
            return NetworkDecision("deny", f"the rule `{rule_text(denies)}` says so")
        if any(_allows(pattern, host, port) for pattern in self._given):
            return NetworkDecision("allow")
        if stops:
            return NetworkDecision("ask", f"the rule `{rule_text(stops[0])}` says so")
        if any(_allows(pattern, host, port) for pattern in self._allowed):
            return NetworkDecision("allow")
        return NetworkDecision("ask", "no rule allows it", rule_for(host, port))

    def lets_reach(self, pattern: DomainPattern) -> bool:
        """Whether what a rule allows is allowed by all of them."""
        host = f"any.{pattern.host}" if pattern.is_below else pattern.host
        ports = WEB_PORTS if pattern.port is None else (pattern.port,)
        return any(self.decide(host, port).verdict == "allow" for port in ports)

    def decide_named(self, named: NamedHost) -> NetworkDecision:
        """Judge a host that a command names, at every port that is meant."""
        ports = WEB_PORTS if named.port is None else (named.port,)
        found = [self.decide(named.host, port) for port in ports]
        # One that is denied stays so, and says nothing of the other.
        left = [each for each in found if each.verdict != "deny"]
        return max(left, key=lambda each: SEVERITY[each.verdict], default=found[0])

    def decide_address(
        self, host: str, number: str, port: int, *, is_own: bool = False
    ) -> NetworkDecision:
        """Judge an address that a host, which is allowed, leads to; `is_own` is one of this
        machine, which servers inside may listen at whatever keeps others out."""
        plain = plain_host(f"[{number}]" if ":" in number else number)
        if plain == host:
            return NetworkDecision("allow")
        if not plain:
            return NetworkDecision("deny", f"it leads to {number}, which is not a public address")
        found = self.decide(plain, port)
        if stop := self._stop_beyond(host, plain, port):
            why = f"it leads to {number}: the rule `{rule_text(stop)}` says so"
            return NetworkDecision(stop.verdict, why)
        is_local = host == THIS_MACHINE and ipaddress.ip_address(number).is_loopback
        is_outside = is_public(number) and not is_own
        if is_local or is_outside or found.verdict == "allow":
            return NetworkDecision("allow")
        what = "an address of this machine" if is_own else "not a public address"
        why = f"it leads to {number}, which is {what}"
        return NetworkDecision("ask", why, found.rule)

    def _stop_beyond(self, host: str, plain: str, port: int) -> PermissionRule | None:
        """A rule about an address that does not speak of the host, which has been judged."""
        found = [
            rule
            for number in (plain, _translated(plain))
            for rule in self._stops
            if _restricts(rule, number, port) and not _restricts(rule, host, port)
        ]
        denies = [rule for rule in found if rule.verdict == "deny"]
        is_given = any(_allows(pattern, plain, port) for pattern in self._given)
        return next(iter(denies or ([] if is_given else found)), None)

    def names_port(self, host: str, port: int) -> bool:
        """Whether exactly this port is allowed by its number: then it need not speak the web's
        languages."""
        patterns = (*self._allowed, *self._given)
        return any(each.port == port and each.covers(host, restricts=False) for each in patterns)

    @property
    def local_names(self) -> frozenset[str]:
        """Names of the loopback that are allowed, and so mean this machine and not the sandbox."""
        patterns = (*self._allowed, *self._given)
        return frozenset(each.host for each in patterns if not each.is_below)


def _allows(pattern: DomainPattern, host: str, port: int) -> bool:
    is_meant = port in WEB_PORTS if pattern.port is None else port == pattern.port
    return is_meant and pattern.covers(host, restricts=False)


def _restricts(rule: PermissionRule, host: str, port: int) -> bool:
    if not rule.pattern:
        return True
    pattern = read_domain(rule.pattern)
    # What cannot be read as a domain, written by a program, keeps everything back.
    if pattern is None:
        return True
    return pattern.port in (None, port) and pattern.covers(host, restricts=True)


def _translated(plain: str) -> str:
    """The address of IPv4 that one of IPv6 leads to; any other as it is."""
    if not plain.startswith("["):
        return plain
    return str(_reached(ipaddress.IPv6Address(plain[1:-1])))


def _reached(
    found: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    if isinstance(found, ipaddress.IPv4Address):
        return found
    if found.ipv4_mapped is not None:
        return found.ipv4_mapped
    if any(found in each for each in _TRANSLATED):
        return ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
    return found


def reachable_domains(rules: Iterable[PermissionRule]) -> tuple[str, ...]:
    """The domains that rules let commands reach, for people and models to read."""
    network = tuple(rules)
    named = {
        rule.pattern.strip()[len(KEY) :]: pattern
        for rule in network
        if rule.verdict == "allow" and names_tool(rule.tool, "fetch")
        if (pattern := read_domain(rule.pattern)) is not None
    }
    decides = NetworkRules(network)
    return tuple(text for text, each in named.items() if decides.lets_reach(each))


def rule_for(host: str, port: int | None) -> str:
    """The narrowest rule that allows a host."""
    shown = host if port in (None, *WEB_PORTS) else f"{host}:{port}"
    return f"fetch({KEY}{shown})"


def read_host(text: str) -> NamedHost | None:
    """A host as a model names it, `pypi.org` or `localhost:8080`; None for what is none."""
    found = read_domain(f"{KEY}{text.strip()}")
    if found is None or found.is_below:
        return None
    return NamedHost(found.host, found.port)


def is_public(number: str) -> bool:
    """Whether an address is reached from everywhere, and so none of a private network."""
    try:
        found = _reached(ipaddress.ip_address(number))
    except ValueError:
        return False
    kept = any(found.version == each.version and found in each for each in _NOT_PUBLIC)
    return found.is_global and not found.is_multicast and not kept
