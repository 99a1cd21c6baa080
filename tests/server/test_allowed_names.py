"""By which names a server may be asked for: its own port, or that of a load balancer before it."""

from __future__ import annotations

import pytest

from weft.server.gate import allowed_origins


@pytest.mark.parametrize(
    ("name", "host"),
    [
        ("agents.example.org", "agents.example.org:7717"),
        ("agents.example.org:443", "agents.example.org"),
        ("agents.example.org:8443", "agents.example.org:8443"),
        ("[::1]", "[::1]:7717"),
        ("[::1]:443", "[::1]"),
        ("::1", "::1:7717"),
    ],
)
def test_a_name_with_a_port_is_that_of_a_load_balancer(name: str, host: str) -> None:
    allowed = allowed_origins([name], 7717, "https")
    assert allowed.hosts == {host}
    assert allowed.origins == {f"https://{host}"}
