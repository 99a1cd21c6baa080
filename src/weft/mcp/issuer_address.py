"""Addresses that a server or an issuer names for a login: which of them may be asked.

A stranger names them, so they are no way into the user's own network, and nothing that is secret
goes over a connection that others can read.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias
from urllib.parse import urlsplit

import anyio.to_thread

from weft.errors import ProviderUnavailable
from weft.mcp.http_exchange import origin

LookUp: TypeAlias = Callable[[str], Awaitable[Sequence[str]]]
_TRANSLATED: Final = ipaddress.IPv6Network("64:ff9b::/96")
_LOCAL_NAMES: Final = ("localhost", "localhost.localdomain", "ip6-localhost")


def scheme_problem(url: str) -> str:
    """Why nothing secret may be sent to an address; empty when it may."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return "is no address"
    if any(ord(letter) <= 32 or ord(letter) == 127 for letter in url):
        return "holds characters that no address has"
    if parts.scheme == "https" and host:
        return ""
    if parts.scheme == "http" and _is_loopback(host):
        return ""
    return "is not encrypted (https)" if parts.scheme == "http" else "is no address of the web"


class AddressGuard:
    """Looks names up for connections, so that none leads into a private network that the user did
    not choose.

    Where the server is, is the user's own choice: it may be inside, and then name others that are.
    But a name that has led outside is not believed when it leads inside a moment later.
    """

    def __init__(self, server: str, look_up: LookUp | None = None) -> None:
        self._own = _host(server)
        self._look_up = look_up or _looked_up
        self._is_own_inside: bool | None = None

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """The addresses to connect to.

        Raises:
            ProviderUnavailable: there are none that may be asked.
            OSError: the name is not known.
        """
        found = await self._numbers(host)
        outside = [each for each in found if not _is_private(each)]
        if host == self._own:
            if self._is_own_inside is None:
                # One that is outside as well is outside: what it claims beside that is no choice.
                self._is_own_inside = not outside
            allowed = found if self._is_own_inside else outside
        else:
            is_known = len(outside) == len(found) or await self._chose_inside()
            allowed = found if is_known else []
        if not allowed:
            raise ProviderUnavailable(f"{host} leads into a private network")
        return allowed

    async def _chose_inside(self) -> bool:
        """Whether the server itself is inside."""
        if self._is_own_inside is None:
            try:
                await self.resolve(self._own, 0)
            except OSError:
                return False
        return bool(self._is_own_inside)

    async def _numbers(self, host: str) -> Sequence[str]:
        return [host] if _number(host) is not None else await self._look_up(host)


async def address_problem(url: str, server: str, guard: AddressGuard | None = None) -> str:
    """Why an address that was named for a login to `server` may not be asked; empty when it may.

    Where the server is, is the user's own choice: its address may always be asked.  What names
    lead to is looked at again by the connection (`AddressGuard`).
    """
    if origin(url) == origin(server) and origin(url)[0] in ("http", "https"):
        return ""
    if problem := scheme_problem(url):
        return problem
    try:
        await (guard or AddressGuard(server)).resolve(_host(url), 0)
    except ProviderUnavailable:
        return "is inside a private network"
    except OSError:
        pass  # then nothing is reached either
    return ""


def _host(url: str) -> str:
    return urlsplit(url).hostname or ""


def _is_loopback(host: str) -> bool:
    if host in _LOCAL_NAMES:
        return True
    address = _number(host)
    return address is not None and address.is_loopback


def _number(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return None
    # `::ffff:10.0.0.1` is the address behind it.
    return getattr(found, "ipv4_mapped", None) or found


def _is_private(address: str) -> bool:
    """Whether an address is none that is reached from everywhere."""
    found = _number(address.partition("%")[0])
    if found is None or not found.is_global:
        return True
    # Addresses that a machine on the way makes one of IPv4 of, which is what counts.
    inner = getattr(found, "sixtofour", None)
    if inner is None and found in _TRANSLATED:
        inner = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
    return inner is not None and not inner.is_global


async def _looked_up(host: str) -> Sequence[str]:
    found = await anyio.to_thread.run_sync(
        lambda: socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    )
    return list(dict.fromkeys(str(each[4][0]) for each in found))
