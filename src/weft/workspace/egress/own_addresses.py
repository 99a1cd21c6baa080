"""Addresses of this machine itself: a public one leads to what listens here, past every firewall
that keeps the rest of the world from it."""

from __future__ import annotations

import socket
from typing import Final

_NOBODYS: Final = {socket.AF_INET: "198.51.100.1", socket.AF_INET6: "2001:db8::1"}
"""Kept for documents."""


def is_own_address(number: str) -> bool:
    """Whether an address, as text, is one of this machine."""
    family = socket.AF_INET6 if ":" in number else socket.AF_INET
    # Where machines stand in for each other, the kernel lets any address be taken.
    return _can_be_taken(family, number) and not _can_be_taken(family, _NOBODYS[family])


def _can_be_taken(family: socket.AddressFamily, number: str) -> bool:
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as asked:
            asked.bind((number, 0))
    except OSError:
        return False
    return True
