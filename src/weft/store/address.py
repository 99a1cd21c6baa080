"""Addresses of owners: `unix:PATH` on this machine, `https://HOST…` over a network, and
`http://127.0.0.1:PORT` for several servers of one machine.

Stores on disk keep an address in the place where a bare socket path was kept before addresses had
a scheme.  A path there stands for `unix:`, in rows of older programs and in ours: an older program
that runs beside this one dials it as ever.
"""

from __future__ import annotations

import msgspec

from weft.errors import UsageError
from weft.store.base import Owner

UNIX = "unix:"
HTTPS = "https://"
LOOPBACK = ("http://127.0.0.1:", "http://localhost:", "http://[::1]:")
"""Without TLS on this machine alone."""


def unix_address(path: str) -> str:
    """The address of a unix socket; empty for no path."""
    return f"{UNIX}{path}" if path else ""


def unix_path(address: str) -> str:
    """The path of a unix socket; empty for addresses of another kind."""
    return address.removeprefix(UNIX) if address.startswith(UNIX) else ""


def is_over_network(address: str) -> bool:
    """Whether an owner takes commands over HTTP."""
    return address.startswith((HTTPS, *LOOPBACK))


def check_address(address: str) -> None:
    """Refuse what no other process could dial.

    Raises:
        UsageError: it has no scheme that we know, or no absolute path, or cannot be stored.
    """
    from weft.store.text import check_text  # few processes can be dialled: start-up time

    check_text(address)
    if address and not address.startswith((f"{UNIX}/", HTTPS, *LOOPBACK)):
        raise UsageError(
            f"{address!r} is no address of a process; give unix:/PATH or https://HOST, or nothing"
        )


def stored_address(owner: Owner) -> str:
    """What a row of a process keeps of its address."""
    path = unix_path(owner.address)
    if owner.accepting and (path or not owner.address):
        return path
    kept = {"address": owner.address, "accepting": owner.accepting}
    return msgspec.json.encode(kept).decode()


def with_stored_address(owner: Owner, stored: str) -> Owner:
    """The owner with the address that its row keeps."""
    if not stored.startswith("{"):
        return msgspec.structs.replace(owner, address=unix_address(stored))
    kept = msgspec.json.decode(stored)
    return msgspec.structs.replace(owner, address=kept["address"], accepting=kept["accepting"])
