"""A port of loopback that stays free between two servers."""

from __future__ import annotations

import random
import socket

_FIRST, _LAST = 20_000, 32_000
"""Below those that the kernel gives to connections: one of them could get the port of a server that
was stopped, before it is started again.
"""


def free_port() -> int:
    """A port that no one listens on, and that no connection gets."""
    for port in random.SystemRandom().sample(range(_FIRST, _LAST), 100):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("100 ports in use")
