"""Addresses that a server or an issuer names for a login: which of them may be asked.

A stranger names them, so they are no way into the user's own network, and nothing that is secret
goes over a connection that others can read.
"""

from __future__ import annotations

import ipaddress
import socket
from typing import Final
from urllib.parse import urlsplit

import anyio.to_thread

from weft.mcp.http_exchange import origin

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


async def address_problem(url: str, server: str) -> str:
    """Why an address that was named for a login to `server` may not be asked; empty when it may.

    Where the server is, is the user's own choice: its address may always be asked.  Names are
    looked up, and may lead elsewhere a moment later.
    """
    if origin(url) == origin(server) and origin(url)[0] in ("http", "https"):
        return ""
    if problem := scheme_problem(url):
        return problem
    host, own = urlsplit(url).hostname or "", urlsplit(server).hostname or ""
    if await _is_inside(host) and not await _is_inside(own):
        return "is inside a private network"
    return ""


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


async def _is_inside(host: str) -> bool:
    """Whether any of a host's addresses is one that is not reached from everywhere."""
    if _is_loopback(host):
        return True
    address = _number(host)
    if address is not None:
        return not address.is_global
    try:
        found = await anyio.to_thread.run_sync(_looked_up, host)
    except OSError:
        return False  # then nothing is reached either
    return any((number := _number(each)) is not None and not number.is_global for each in found)


def _looked_up(host: str) -> list[str]:
    return [str(each[4][0]).partition("%")[0] for each in socket.getaddrinfo(host, None)]
