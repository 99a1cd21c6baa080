"""Proxy settings: which proxy a request goes through, if any.

Pure: the environment's values are handed in.
"""

from __future__ import annotations

import base64
import ipaddress
import re
import socket
from urllib.parse import unquote, urlsplit

import msgspec

from weft.errors import UsageError


class UrlTarget(msgspec.Struct, frozen=True):
    """Where a URL points."""

    scheme: str
    host: str
    port: int
    path: str
    """With the query."""

    @property
    def authority(self) -> str:
        """Host and port as they stand in a request; the port only where it is not the usual one."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = self.port == (443 if self.scheme == "https" else 80)
        return host if usual else f"{host}:{self.port}"


def target(url: str, source: str = "") -> UrlTarget:
    """Take a URL apart; `source` is the variable or setting that names it.

    Raises:
        UsageError: it is not an http or https URL.
    """
    try:
        # `urlsplit` raises for a bracket that is not closed, `port` for a number out of range.
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        named = f"{source} is not right: " if source else ""
        # Without a name and a password that it may hold.
        shown = re.sub("//[^/]*@", "//…@", url)
        raise UsageError(
            f"{named}{shown!r} is not a valid address; it should look like https://host/path"
        )
    path = parts.path or "/"
    if parts.query:
        path = f"{path}?{parts.query}"
    return UrlTarget(
        parts.scheme, parts.hostname, port or (443 if parts.scheme == "https" else 80), path
    )


class ProxyServer(msgspec.Struct, frozen=True):
    """A proxy to go through."""

    host: str
    port: int
    scheme: str = "http"
    """`http`, `https` (TLS to the proxy itself), `socks5` or `socks5h` (it looks names up)."""
    username: str = ""
    password: str = ""
    variable: str = "HTTPS_PROXY"
    """What names it."""

    def __repr__(self) -> str:
        """Without the password: values end up in logs."""
        return f"ProxyServer({self.scheme}://{self.shown})"

    @property
    def shown(self) -> str:
        """The proxy as sentences name it."""
        return f"{self.host}:{self.port}"

    @property
    def is_socks(self) -> bool:
        return self.scheme.startswith("socks")

    @property
    def user_and_password(self) -> tuple[str, str]:
        return self.username, self.password

    @property
    def authorization(self) -> str:
        """The value of `proxy-authorization`, where the proxy's URL names a user."""
        if not self.username:
            return ""
        return "Basic " + base64.b64encode(f"{self.username}:{self.password}".encode()).decode()


class ProxySettings(msgspec.Struct, frozen=True, kw_only=True):
    """The proxies in force, as the variables `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`
    give them.
    """

    https: str = ""
    http: str = ""
    no_proxy: str = ""
    https_variable: str = "HTTPS_PROXY"
    http_variable: str = "HTTP_PROXY"
    """The variables that give them, for sentences about a wrong one."""

    def for_target(self, where: UrlTarget) -> ProxyServer | None:
        """The proxy for a target; None goes straight.  This machine itself is never reached through
        one.

        Raises:
            UsageError: the proxy's address is not one that we can use.
        """
        address, variable = self.https, self.https_variable
        if where.scheme != "https":
            address, variable = self.http, self.http_variable
        if not address or is_loopback(where.host) or self._is_excepted(where):
            return None
        return _proxy(address, variable)

    def _is_excepted(self, where: UrlTarget) -> bool:
        # NO_PROXY has no standard. As in curl and Go: commas or spaces, names that cover their
        # subdomains, networks, ports, and `*` for everything.
        for entry in self.no_proxy.replace(" ", ",").split(","):
            name, port = _name_and_port(entry.strip().lower())
            if not name or (port and int(port) != where.port):
                continue
            if name == "*" or _matches(where.host.lower(), name):
                return True
        return False


def _name_and_port(entry: str) -> tuple[str, str]:
    """`host:port`, `[fd00::1]:port` or either alone; a bare IPv6 address has colons of its own."""
    if entry.startswith("["):
        name, _, port = entry[1:].partition("]")
        return name, port.removeprefix(":") if port[1:].isdigit() else ""
    name, _, port = entry.rpartition(":")
    if port.isdigit() and name and ":" not in name:
        return name, port
    return entry, ""


def _matches(host: str, name: str) -> bool:
    if "/" in name:
        try:
            return ipaddress.ip_address(host) in ipaddress.ip_network(name, strict=False)
        except ValueError:
            return False
    if is_literal(host) and is_literal(name):
        return ipaddress.ip_address(host) == ipaddress.ip_address(name)
    bare = name.removeprefix("*").removeprefix(".")
    return host == bare or host.endswith(f".{bare}")


def is_literal(host: str) -> bool:
    """Is it an address already, not a name?"""
    return bool(_packed(host))


def is_loopback(host: str) -> bool:
    """Is it this machine itself?"""
    # RFC 6761: every name below localhost is this machine, too.
    if host == "localhost" or host.endswith(".localhost"):
        return True
    packed = _packed(host)
    return packed == _LOOPBACK_6 or (len(packed) == 4 and packed[0] == 127)


def _packed(host: str) -> bytes:
    """The bytes of an address, which may name a zone (`fe80::1%eth0`); none for a name."""
    # Not by `ipaddress`: this is asked of each request, and it is a large module.
    address, _, _ = host.partition("%") if ":" in host else (host, "", "")
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            return socket.inet_pton(family, address)
        except (OSError, ValueError):
            continue
    return b""


_LOOPBACK_6 = socket.inet_pton(socket.AF_INET6, "::1")


PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}
"""The kinds of proxies that can be used, and the port of each where none is named."""


def _proxy(address: str, variable: str) -> ProxyServer:
    try:
        parts = urlsplit(address if "://" in address else f"http://{address}")
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    # As curl does: `socks` alone is the newest version.
    scheme = "socks5" if parts.scheme == "socks" else parts.scheme
    if scheme not in PORTS or not parts.hostname:
        # Without the address itself: it may hold a password.
        why = "" if scheme in PORTS or not scheme else f"the scheme {scheme!r} is not supported; "
        raise UsageError(
            f"{variable} is not right: {why}the address of a proxy looks like http://host:port "
            f"(also with {', '.join(tuple(PORTS)[1:])})"
        )
    return ProxyServer(
        parts.hostname,
        port or PORTS[scheme],
        scheme,
        unquote(parts.username or ""),
        unquote(parts.password or ""),
        variable,
    )
