"""The gate: every operation of the table refuses what it must, before anything else happens."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Mapping

import anyio
import pytest
from websockets.exceptions import InvalidStatus

from tests.support.example_count import cases
from tests.support.page_socket import page_socket
from tests.support.served_world import HttpAnswer, ServedWorld, parsed, serving
from tests.support.world import World
from weft.clock import ManualClock
from weft.providers.scripted import ScriptedModel
from weft.server import OPERATIONS
from weft.server.gate import SAFE_HEADERS
from weft.server.operation import ApiOperation

pytestmark = pytest.mark.anyio

CLOSED = [each for each in OPERATIONS if not each.is_open]
CHANGING = [each for each in OPERATIONS if each.changes]


class PacedServer:
    """A server whose limits forget between two calls."""

    def __init__(self, served: ServedWorld, clock: ManualClock) -> None:
        self.served = served
        self._clock = clock

    async def ask(
        self,
        operation: ApiOperation,
        headers: Mapping[str, str | None] | None = None,
        *,
        body: bytes = b"{}",
        method: str = "",
        target: Callable[[str], str] = str,
    ) -> HttpAnswer:
        """Call an operation, with something wrong."""
        self._clock.advance(60)
        path = re.sub(r"\{\w+(:path)?\}", "x1", f"/api{operation.path}")
        given = {"Connection": "close", **(headers or {})}
        raw = body if (method or operation.method) != "GET" else b""
        return await self.served.exchange(
            self.served.head(method or operation.method, target(path), given, raw)
        )

    async def statuses(
        self,
        operations: list[ApiOperation],
        headers: Mapping[str, str | None] | None = None,
        *,
        body: bytes = b"{}",
        target: Callable[[str], str] = str,
    ) -> dict[int, list[str]]:
        """The operations by the status that each answered with."""
        found: dict[int, list[str]] = {}
        for operation in cases(operations):
            answer = await self.ask(operation, headers, body=body, target=target)
            found.setdefault(answer.status, []).append(operation.name)
        return found


@pytest.fixture
async def paced(plain_world: World) -> AsyncIterator[PacedServer]:
    clock = ManualClock()
    async with serving(plain_world, ScriptedModel([]), clock=clock) as served:
        yield PacedServer(served, clock)


@pytest.mark.parametrize(
    "authorization",
    [None, "", "Bearer", "Bearer wrong", "Basic eDp5", "bearer\twrong"],
    ids=["none", "empty", "no word", "wrong", "basic", "tab"],
)
async def test_no_operation_answers_without_a_token(
    paced: PacedServer, authorization: str | None
) -> None:
    found = await paced.statuses(CLOSED, {"Authorization": authorization})
    assert list(found) == [401], found


async def test_a_viewers_token_reads_everything_and_changes_nothing(paced: PacedServer) -> None:
    tokens = paced.served.server.tokens
    token = tokens.pair(tokens.new_code("viewer"))
    changing = [each for each in CHANGING if not each.is_open]
    found = await paced.statuses(changing, {"Authorization": f"Bearer {token}"})
    assert list(found) == [403], found
    reading = [each for each in CLOSED if not each.changes and not each.streams]
    found = await paced.statuses(reading, {"Authorization": f"Bearer {token}"})
    assert not {401, 403} & set(found), found


@pytest.mark.parametrize(
    "origin", ["http://evil.test", "null", "http://127.0.0.1", "http://127.0.0.1:1", ""]
)
async def test_no_operation_answers_a_page_of_another_origin(
    paced: PacedServer, origin: str
) -> None:
    found = await paced.statuses(list(OPERATIONS), {"Origin": origin})
    assert list(found) == [403], found


@pytest.mark.parametrize("host", ["evil.test", "127.0.0.1", "", None, "127.0.0.1:evil.test"])
async def test_no_operation_answers_under_another_name(
    paced: PacedServer, host: str | None
) -> None:
    found = await paced.statuses(list(OPERATIONS), {"Host": host})
    # HTTP/1.1 without a Host is no request at all for some parsers.
    assert set(found) <= {421, 400}, found
    assert host is None or list(found) == [421]


async def test_no_operation_takes_an_absolute_target(paced: PacedServer) -> None:
    for before in ("http://evil.test", "https://127.0.0.1:1", "/"):
        found = await paced.statuses(list(OPERATIONS), target=before.__add__)
        assert list(found) == [400], (before, found)


async def test_no_operation_takes_a_body_that_is_too_large(paced: PacedServer) -> None:
    for operation in cases(CHANGING):
        said = {"Content-Length": str(operation.most_bytes + 1)}
        answer = await paced.ask(operation, said, body=b"")
        assert answer.status == 413, (operation.name, answer)


async def test_a_body_that_does_not_say_how_large_it_is_is_counted(paced: PacedServer) -> None:
    operation = next(each for each in CHANGING if each.name == "new_code")
    served = paced.served
    head = served.head(
        "POST",
        f"/api{operation.path}",
        {"Content-Length": None, "Transfer-Encoding": "chunked", "Connection": "close"},
        b"",
    )
    block = b"%x\r\n%b\r\n" % (64 * 1024, b" " * 64 * 1024)
    received = b""
    async with await served.connect() as stream:
        await stream.send(head)
        try:
            for _ in range(operation.most_bytes // (64 * 1024) + 2):
                await stream.send(block)
            while True:
                received += await stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            pass
    assert not received or parsed(received).status == 413


@pytest.mark.parametrize(
    "body",
    [b"{", b"[]", b"null", b'"x"', b'{"no such field": 1}', b"\xff{}", b"[" * 5000],
    ids=["cut", "list", "null", "text", "field", "bytes", "deep"],
)
async def test_every_operation_refuses_a_body_that_does_not_fit(
    paced: PacedServer, body: bytes
) -> None:
    found = await paced.statuses(CHANGING, body=body)
    assert list(found) == [400], found


@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded"])
async def test_every_change_is_sent_as_json(paced: PacedServer, kind: str | None) -> None:
    found = await paced.statuses(CHANGING, {"Content-Type": kind})
    assert list(found) == [415], found


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_no_change_comes_from_a_page_of_another_site(paced: PacedServer, site: str) -> None:
    found = await paced.statuses(CHANGING, {"Sec-Fetch-Site": site})
    assert list(found) == [403], found


async def test_a_method_that_a_path_does_not_take_is_refused_by_name(paced: PacedServer) -> None:
    by_path: dict[str, set[str]] = {}
    for operation in OPERATIONS:
        by_path.setdefault(operation.path, set()).add(operation.method)
    for operation in cases(OPERATIONS):
        for method in {"POST", "PUT", "PATCH", "DELETE"} - by_path[operation.path]:
            answer = await paced.ask(operation, method=method)
            # `/decisions/{decision}` stands behind `/decisions/pulse`.
            assert answer.status == 405, (method, operation.path, answer)
            assert set(answer.headers["allow"].split(", ")) <= {"GET", *by_path[operation.path]}


async def test_every_answer_tells_the_browser_to_be_careful(paced: PacedServer) -> None:
    wanted = {name.decode(): value.decode() for name, value in SAFE_HEADERS}
    for operation in cases(OPERATIONS):
        answer = await paced.ask(operation, {"Authorization": None})
        assert wanted.items() <= answer.headers.items()
        assert "access-control-allow-origin" not in answer.headers
        assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("name", ["Host", "Origin", "Authorization", "Content-Type"])
async def test_a_header_that_decides_comes_once(paced: PacedServer, name: str) -> None:
    served = paced.served
    value = {
        "Host": f"127.0.0.1:{served.port}",
        "Origin": served.origin,
        "Authorization": f"Bearer {served.token}",
        "Content-Type": "application/json",
    }[name]
    head = served.head("POST", "/api/pair/codes", {"Connection": "close", name: value}, b"{}")
    twice = head.replace(b"\r\n", f"\r\n{name}: {value}\r\n".encode(), 1)
    assert (await served.exchange(head)).status == 200
    assert (await served.exchange(twice)).status == 400


async def test_a_head_that_is_too_large_is_refused(paced: PacedServer) -> None:
    answer = await paced.served.call("GET", "/health", headers={"X-Much": "x" * 70_000})
    assert answer.status == 400
    answer = await paced.served.call("GET", "/health?" + "x" * 70_000)
    assert answer.status == 400


async def test_codes_and_wrong_tokens_are_limited_and_a_good_token_is_not_shut_out(
    plain_world: World,
) -> None:
    clock = ManualClock()
    async with serving(plain_world, ScriptedModel([]), clock=clock) as served:
        tries = [await served.call("POST", "/pair", {"code": "x"}) for _ in range(12)]
        assert [answer.status for answer in tries] == [401] * 10 + [429] * 2
        assert int(tries[-1].headers["retry-after"]) > 0
        wrong = {"Authorization": "Bearer wrong"}
        seen = {(await served.call("GET", "/sessions", headers=wrong)).status for _ in range(130)}
        assert seen == {401, 429}
        assert (await served.call("GET", "/sessions")).status == 200
        clock.advance(60)
        assert (await served.call("POST", "/pair", {"code": "x"})).status == 401


@pytest.mark.parametrize(
    ("case", "status"),
    [
        ({"origin": None}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://127.0.0.1:1"}, 403),
        ({"token": "wrong"}, 403),
        ({"token": ""}, 403),
        ({"protocols": ["weft.v1"]}, 403),
        ({"protocols": ["bearer.x"]}, 403),
        ({"additional_headers": {"Host": "evil.test"}}, 403),
    ],
    ids=str,
)
async def test_no_socket_is_opened_for_another_page(
    paced: PacedServer, case: dict[str, object], status: int
) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with page_socket(paced.served, **case):  # type: ignore[arg-type]  # cases as data
            pass
    assert refused.value.response.status_code in (status, 400)


async def test_a_socket_is_answered_with_its_protocol_and_never_with_the_token(
    paced: PacedServer,
) -> None:
    async with page_socket(paced.served) as page:
        assert page.socket.subprotocol == "weft.v1"
        answer = page.socket.response
        assert answer is not None
        assert paced.served.token not in str(list(answer.headers.raw_items()))
