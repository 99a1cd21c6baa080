"""Names that lead elsewhere a moment later (DNS rebinding): no connection into a private network
that the user did not choose."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.support.loopback_server import LoopbackConnection, serving
from weft.errors import ProviderUnavailable
from weft.jsonrpc import PeerClosed
from weft.mcp.http_exchange import HttpEndpoint
from weft.mcp.issuer_address import AddressGuard, address_problem
from weft.transport import HttpClient, HttpRequest

pytestmark = pytest.mark.anyio

SERVER = "https://server.example/mcp"
OUTSIDE, OTHER, INSIDE = "93.184.216.34", "93.184.216.35", "10.0.0.1"


class Names:
    """A server of names that says something else with each question."""

    def __init__(self, **answers: Sequence[Sequence[str]]) -> None:
        self._answers = {name: list(each) for name, each in answers.items()}

    async def __call__(self, host: str) -> Sequence[str]:
        answers = self._answers[host.partition(".")[0]]
        return answers.pop(0) if len(answers) > 1 else answers[0]


async def test_a_server_that_was_outside_is_not_inside_later() -> None:
    guard = AddressGuard(SERVER, Names(server=[[OUTSIDE], [INSIDE], [OTHER]]))
    assert await guard.resolve("server.example", 443) == [OUTSIDE]
    with pytest.raises(ProviderUnavailable, match=r"server\.example leads into a private network"):
        await guard.resolve("server.example", 443)
    assert await guard.resolve("server.example", 443) == [OTHER]


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.0.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0"),
        *("::1", "fe80::1%eth0", "fd00::1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::"),
    ],
)
async def test_no_other_name_leads_inside(address: str) -> None:
    names = Names(server=[[OUTSIDE]], login=[[address]], both=[[OUTSIDE, address]])
    guard = AddressGuard(SERVER, names)
    for host in ("login.example", "both.example"):
        with pytest.raises(ProviderUnavailable, match="private network"):
            await guard.resolve(host, 443)
        assert "private" in await address_problem(f"https://{host}/", SERVER, guard)


async def test_a_server_that_claims_to_be_inside_as_well_is_outside() -> None:
    """Else it could name any address of the user's network for a login."""
    names = Names(server=[[OUTSIDE, INSIDE]], login=[[INSIDE]])
    guard = AddressGuard(SERVER, names)
    assert await guard.resolve("server.example", 443) == [OUTSIDE]
    with pytest.raises(ProviderUnavailable, match="private network"):
        await guard.resolve("login.example", 443)


async def test_what_the_user_chose_inside_may_name_what_is_inside() -> None:
    guard = AddressGuard(SERVER, Names(server=[[INSIDE]], login=[["10.0.0.2"]]))
    assert await guard.resolve("login.example", 443) == ["10.0.0.2"]
    assert await guard.resolve("server.example", 443) == [INSIDE]


async def test_the_answer_of_a_name_is_what_is_connected_to() -> None:
    """Between the look at an address and the connection nothing is looked up again."""
    reached = 0

    async def inside(line: LoopbackConnection) -> None:
        nonlocal reached
        reached += 1
        await line.request()
        await line.reply(b"{}")

    async with serving(inside) as listening:
        port = int(listening.url.rpartition(":")[2])
        guard = AddressGuard(
            f"http://server.example:{port}/mcp", Names(server=[[OUTSIDE], ["127.0.0.1"]])
        )
        await guard.resolve("server.example", port)
        endpoint = HttpEndpoint(
            f"http://server.example:{port}/mcp", HttpClient(resolve=guard.resolve)
        )
        with pytest.raises(PeerClosed, match="leads into a private network"):
            async with endpoint.asked("POST", (), b"{}"):
                pass
        await endpoint.aclose()
    assert reached == 0


async def test_the_next_address_is_tried_where_one_does_not_answer() -> None:
    async def here(line: LoopbackConnection) -> None:
        await line.request()
        await line.reply(b"here")

    async with serving(here) as listening:
        port = int(listening.url.rpartition(":")[2])
        # Nothing listens at the first, and the second is no address of this machine.
        names = Names(server=[["127.0.0.9", "::1", "127.0.0.1"]])
        guard = AddressGuard(f"http://server.example:{port}/", names)
        client = HttpClient(resolve=guard.resolve)
        request = HttpRequest(url=f"http://server.example:{port}/", method="GET")
        async with client.send(request) as reply:
            assert await reply.read() == b"here"
        await client.aclose()
