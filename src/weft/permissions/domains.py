"""Domains in rules about addresses: `fetch(domain:example.org)`, `fetch(domain:localhost:8080)`.

Labels are compared, never beginnings or ends of text.  A rule that allows covers an address only if
it is written in the one plain way that nobody reads differently; a rule that restricts covers its
subdomains too, and every address in which the name stands anywhere when it is written otherwise.
`*.example.org` means the subdomains of `example.org`, at any depth, and not `example.org` itself.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_LABEL: Final = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_NAME: Final = rf"{_LABEL}(?:\.{_LABEL})*"
_PORT: Final = r"[1-9][0-9]{0,4}"
_DOMAIN: Final = re.compile(
    rf"(?:((?:\*\.)?{_NAME})\.?|(\[[0-9a-f:.]+\]))(?::({_PORT}))?", re.ASCII | re.IGNORECASE
)
_ADDRESS: Final = re.compile(
    rf"(https?)://({_NAME})\.?(?::([0-9]{{1,5}}))?(?:[/?#][\x21-\x5b\x5d-\x7e]*)?",
    re.IGNORECASE,
)
_NUMBER: Final = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)", re.IGNORECASE)
"""A host whose last label is a number: every program takes it for an address of IPv4."""
_LONGEST_NAME: Final = 253
_MOST_PORTS: Final = 65_535
_WEB_PORTS: Final = {"http": 80, "https": 443}
KEY: Final = "domain:"


class DomainPattern(NamedTuple):
    """What a rule about domains names."""

    host: str
    """A host as `plain_host` writes it; without the star."""
    is_below: bool
    """Its subdomains are meant (`*.`), and not itself."""
    port: int | None
    """None where no port is named."""

    def covers(self, host: str, *, restricts: bool) -> bool:
        """Whether a host, as `plain_host` writes it, is meant."""
        if self.is_below:
            return host.endswith(f".{self.host}")
        return host == self.host or (restricts and host.endswith(f".{self.host}"))


def plain_host(text: str) -> str:
    """A host in the one way that it is compared: small letters, no dot at its end, an address of
    IPv6 in brackets; empty for what is none, or an address of IPv4 in another spelling than
    `127.0.0.1`.
    """
    if not text.isascii():
        return ""  # some letters have a small one that is plain
    lower = text.lower()
    if lower.startswith("["):
        return _plain_number(lower[1:-1]) if lower.endswith("]") and ":" in lower else ""
    name = lower.removesuffix(".")
    if _NUMBER.fullmatch(name):
        return _plain_number(name)
    is_name = len(name) <= _LONGEST_NAME and re.fullmatch(_NAME, name)
    return name if is_name else ""


def _plain_number(text: str) -> str:
    import ipaddress  # few rules name a number, and it costs start-up time

    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return ""
    if isinstance(found, ipaddress.IPv6Address):
        if found.scope_id is not None:
            return ""
        return str(found.ipv4_mapped) if found.ipv4_mapped else f"[{found.compressed}]"
    return str(found)


def read_domain(pattern: str) -> DomainPattern | None:
    """The host and port of a pattern `domain:…`; None where it names none."""
    bare = pattern.strip()
    found = _DOMAIN.fullmatch(bare[len(KEY) :]) if bare.startswith(KEY) else None
    if found is None:
        return None
    name = (found[1] or found[2]).lower()
    host, port = plain_host(name.removeprefix("*.")), int(found[3]) if found[3] else None
    is_below = name.startswith("*.")
    if not host or (port or 0) > _MOST_PORTS or (is_below and _NUMBER.fullmatch(host)):
        return None
    return DomainPattern(host, is_below, port)


def domain_problem(pattern: str) -> str:
    """Why a pattern for addresses covers nothing; empty when it is fine."""
    if read_domain(pattern) is not None:
        return ""
    return f"write the domain of the address: fetch({KEY}{_meant(pattern)})"


def _meant(pattern: str) -> str:
    """The nearest right spelling of a domain."""
    bare = pattern.strip().removeprefix(KEY)
    if not bare.isascii():
        named = re.search(r"(?:\*\.)?[\w-]+(?:\.[\w-]+)+", bare)
        try:
            return named[0].encode("idna").decode() if named else "example.org"
        except UnicodeError:
            return "example.org"
    host = re.search(r"(?:\*\.)?[\w-]+(?:\.[\w-]+)+", bare)
    if host and read_domain(f"{KEY}{host[0]}") is not None:
        return host[0]
    return "127.0.0.1" if host and _NUMBER.fullmatch(host[0]) else "example.org"


def domain_fits(address: str, pattern: str, *, restricts: bool) -> bool:
    """Whether a pattern `domain:…` covers an address."""
    wanted = read_domain(pattern)
    if wanted is None:
        return False
    plain = _ADDRESS.fullmatch(address)
    host = plain_host(plain[2]) if plain else ""
    if plain is None or not host:
        import unicodedata  # only for odd addresses: it costs start-up time

        folded = unicodedata.normalize("NFKC", address).casefold()
        return restricts and wanted.host in folded
    port = int(plain[3] or _WEB_PORTS[plain[1].lower()])
    # Without a port, all are restricted and those of the web allowed.
    is_any = restricts or port in _WEB_PORTS.values()
    if not is_any if wanted.port is None else port != wanted.port:
        return False
    return wanted.covers(host, restricts=restricts)
