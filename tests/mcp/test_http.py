"""Servers that are reached by an address: every era, streams that break, sessions that end."""

from __future__ import annotations

import anyio
import pytest

from tests.support.loopback_server import LoopbackConnection, serving
from tests.support.mcp_http_server import (
    MODERN,
    ScriptedHttpServer,
    http_client,
    http_served,
    old_kind,
    tool,
)
from tests.support.mcp_servers import PATIENCE, called, terms
from weft.errors import FinalToolError
from weft.mcp.http_exchange import ServerAuthorization
from weft.tools import UserQuestion
from weft.transport import ProxySettings

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("traps", [(), ("events",), ("no_session",), ("plain_errors",), ("batch",)])
@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-11-25", MODERN])
async def test_a_server_of_every_era_lists_its_tools_and_answers(
    version: str, traps: tuple[str, ...]
) -> None:
    scripted = ScriptedHttpServer(*traps, version=version)
    async with http_served(scripted) as (server, _):
        outcome = await called(server, text="hello")
        assert outcome.text.endswith("\necho: hello")
        assert (server.state, server.record.era) == ("ready", version)
    asked = scripted.calls[0].headers
    assert asked["mcp-protocol-version"] == version
    assert asked["accept"] == "application/json, text/event-stream"
    if version == MODERN:
        assert (asked["mcp-method"], asked["mcp-name"]) == ("tools/call", "echo")
        assert "mcp-session-id" not in asked
    else:
        has_session = "no_session" not in traps
        assert asked.get("mcp-session-id") == ("session-1" if has_session else None)
        assert scripted.told[0] == "notifications/initialized"


async def test_a_session_is_ended_when_the_server_is_not_needed_any_more() -> None:
    scripted = ScriptedHttpServer()
    async with http_served(scripted) as (server, _):
        await called(server)
        assert scripted.sessions == {"session-1"}
        await server.stop("")
        assert scripted.sessions == set()


async def test_a_session_that_the_server_forgot_is_made_anew_and_the_call_is_made() -> None:
    scripted = ScriptedHttpServer("forgets")
    async with http_served(scripted) as (server, _):
        outcome = await called(server, text="again")
        assert outcome.text.endswith("echo: again")
        assert scripted.made == 2
        assert scripted.calls[1].headers["mcp-session-id"] == "session-2"


async def test_progress_and_the_answer_come_in_one_stream() -> None:
    said: list[str] = []
    async with http_served(ScriptedHttpServer("events")) as (server, _):
        await server.call("echo", {}, terms(said=said), start_seconds=PATIENCE)
    assert said == ["1/2"]


async def test_an_answer_that_broke_off_is_taken_up_where_it_was() -> None:
    async with http_served(ScriptedHttpServer("resumes")) as (server, listening):
        outcome = await called(server)
        assert outcome.text.endswith("resumed")
        resumed = [each for each in listening.asked if "last-event-id" in each.headers]
        assert [each.method for each in resumed] == ["GET"]
        assert resumed[0].headers["mcp-session-id"] == "session-1"


async def test_a_server_that_is_gone_when_its_answer_is_taken_up_fails_the_call() -> None:
    scripted = ScriptedHttpServer("resumes", "resets_resume")
    async with http_served(scripted) as (server, _):
        with pytest.raises(FinalToolError, match="whether the call took effect is not known"):
            await called(server)
        scripted.traps.clear()
        assert (await called(server, text="b")).text.endswith("echo: b")


async def test_an_answer_that_comes_by_the_servers_own_stream_is_taken() -> None:
    # Its own stream is there before the first call: what it asks during the call may come by it.
    async with http_served(ScriptedHttpServer("by_own_stream")) as (server, _):
        assert (await called(server, text="b")).text.endswith("echo: b")


@pytest.mark.parametrize("version", ["2025-11-25", MODERN])
async def test_an_answer_that_broke_off_for_good_is_told_and_hurts_no_other(version: str) -> None:
    scripted = ScriptedHttpServer("cuts", version=version)
    async with http_served(scripted) as (server, _):
        with pytest.raises(FinalToolError, match="whether the call took effect is not known"):
            await called(server)
        scripted.traps.clear()
        assert (await called(server, text="b")).text.endswith("echo: b")
        assert scripted.made <= 1


async def test_a_server_that_is_gone_fails_and_comes_back_with_the_next_call() -> None:
    scripted = ScriptedHttpServer("resets")
    async with http_served(scripted) as (server, _):
        with pytest.raises(FinalToolError, match="closed the connection without an answer"):
            await called(server)
        scripted.traps.clear()
        assert (await called(server, text="b")).text.endswith("echo: b")


async def test_where_nothing_listens_the_address_is_named() -> None:
    async with http_client("http://127.0.0.1:9/mcp") as server:
        with pytest.raises(FinalToolError, match=r"could not reach 127\.0\.0\.1:9: nothing"):
            await called(server)
        assert server.state == "failed"


@pytest.mark.parametrize("trap", ["huge", "huge_event"])
async def test_an_answer_that_is_too_long_is_refused_while_it_comes(trap: str) -> None:
    scripted = ScriptedHttpServer(trap)
    async with http_served(scripted) as (server, _):
        with pytest.raises(FinalToolError, match=r"more than 8 MB, which is the limit"):
            await called(server)
        scripted.traps.clear()
        assert (await called(server, text="b")).text.endswith("echo: b")


async def test_what_is_no_answer_is_told() -> None:
    async with http_served(ScriptedHttpServer("junk")) as (server, _):
        with pytest.raises(FinalToolError, match="its reply holds no answer"):
            await called(server)


@pytest.mark.parametrize("version", ["2025-11-25", MODERN])
async def test_a_call_that_is_given_up_ends_at_the_server_too(version: str) -> None:
    scripted = ScriptedHttpServer("hangs", version=version)
    async with http_served(scripted) as (server, listening):
        await server.must_be_ready(PATIENCE)
        with pytest.raises(FinalToolError, match=r"it said nothing for 0\.05 seconds"):
            await server.call("echo", {}, terms(idle=0.05), start_seconds=PATIENCE)
        await listening.gone.wait()
        if version != MODERN:
            await scripted.cancelled.wait()
        assert ("notifications/cancelled" in scripted.told) == (version != MODERN)


async def test_a_question_of_the_server_reaches_the_user_and_the_answer_the_server() -> None:
    async def ask(question: UserQuestion) -> str | None:
        assert "scripted" in question.text
        return "blue"

    async with http_served(ScriptedHttpServer()) as (server, _):
        raw = await server.call("ask", {}, terms(ask=ask), start_seconds=PATIENCE)
    assert b"blue" in bytes(raw)


async def test_a_question_that_the_server_takes_back_is_not_answered() -> None:
    async def ask(question: UserQuestion) -> str | None:
        return "blue"

    scripted = ScriptedHttpServer("takes_back")
    async with http_served(scripted) as (server, _):
        await server.call("ask", {}, terms(ask=ask), start_seconds=PATIENCE)
    assert [each["id"] for each in scripted.answers] == [78]


async def test_where_no_one_can_be_asked_the_question_is_declined() -> None:
    async with http_served(ScriptedHttpServer()) as (server, _):
        raw = await server.call("ask", {}, terms(), start_seconds=PATIENCE)
    assert b"decline" in bytes(raw)


@pytest.mark.parametrize("version", ["2025-11-25", MODERN])
async def test_a_list_that_changes_is_asked_for_again(version: str) -> None:
    scripted = ScriptedHttpServer("listens", version=version)
    async with http_served(scripted) as (server, _):
        await server.must_be_ready(PATIENCE)
        await scripted.is_listened.wait()
        scripted.tools.append(tool("surprise"))
        scripted.release.set()
        while "surprise" not in server.record.tools():
            await anyio.wait_all_tasks_blocked()


async def test_a_stream_of_changes_that_was_cut_is_asked_for_again() -> None:
    scripted = ScriptedHttpServer("cuts_listening", version=MODERN)
    async with http_served(scripted) as (server, listening):
        await server.must_be_ready(PATIENCE)
        scripted.release.set()
        while sum(b"subscriptions/listen" in each.body for each in listening.asked) < 2:
            await anyio.wait_all_tasks_blocked()


# --- logins and headers ----------------------------------------------------------------------


class Renewable(ServerAuthorization):
    """A login that is renewed by the first refusal."""

    def __init__(self, *values: str) -> None:
        self.values = list(values)

    async def header(self) -> str:
        return self.values[0]

    async def renewed(self, refused: str) -> bool:
        if len(self.values) == 1:
            return False
        assert self.values.pop(0) == refused
        return True

    async def challenged(self, status: int, challenge: str) -> None:
        self.challenge = (status, challenge)


async def test_a_server_that_wants_a_login_says_how_and_is_asked_again_after_it() -> None:
    scripted = ScriptedHttpServer("login")
    login = Renewable("")
    async with http_served(scripted, authorization=login) as (server, _):
        for _ in range(8):  # more often than it may crash
            with pytest.raises(
                FinalToolError, match="wants a login: `weft mcp login scripted` logs in"
            ):
                await called(server)
            assert server.state == "needs_login"
        login.values = ["Bearer good"]
        assert (await called(server, text="b")).text.endswith("echo: b")


async def test_a_login_that_is_over_is_renewed_in_the_middle_of_everything() -> None:
    scripted = ScriptedHttpServer("login")
    async with http_served(scripted, authorization=Renewable("Bearer old", "Bearer good")) as (
        server,
        _,
    ):
        assert (await called(server, text="b")).text.endswith("echo: b")


async def test_a_login_that_allows_too_little_is_a_login_that_is_needed() -> None:
    scripted = ScriptedHttpServer("scope")
    login = Renewable("Bearer good")
    async with http_served(scripted, authorization=login) as (server, _):
        with pytest.raises(FinalToolError, match="`weft mcp login scripted` logs in"):
            await called(server)
        assert server.state == "needs_login"
        assert login.challenge == (403, 'Bearer error="insufficient_scope"')


async def test_headers_of_the_entry_go_with_every_request() -> None:
    headers = (("Authorization", "Bearer good"), ("X-Team", "a"))
    scripted = ScriptedHttpServer("login")
    async with http_served(scripted, headers=headers) as (server, listening):
        await called(server)
        assert {each.headers.get("x-team") for each in listening.asked} == {"a"}


async def test_a_header_that_holds_another_is_refused_with_a_sentence() -> None:
    headers = (("X-Key", "a\r\nX-Evil: b"),)
    async with http_served(ScriptedHttpServer(), headers=headers) as (server, listening):
        with pytest.raises(FinalToolError, match="a header holds a line break"):
            await called(server)
        assert listening.asked == []


async def test_a_server_that_has_moved_is_followed_on_the_same_machine_alone() -> None:
    async with http_served(ScriptedHttpServer("moved")) as (server, _):
        assert (await called(server, text="b")).text.endswith("echo: b")
    headers = (("Authorization", "Bearer good"),)
    async with http_served(ScriptedHttpServer("moved_away"), headers=headers) as (server, _):
        with pytest.raises(
            FinalToolError, match=r"moved to http://evil\.example/, which is another"
        ):
            await called(server)


async def test_a_server_that_has_moved_to_what_is_no_address_says_so() -> None:
    async with http_served(ScriptedHttpServer("moved_nowhere")) as (server, _):
        with pytest.raises(FinalToolError, match=r"moved to http://\[, which is another"):
            await called(server)


async def test_a_proxy_carries_what_is_asked() -> None:
    scripted = ScriptedHttpServer()
    async with serving(scripted.handle) as listening:
        proxies = ProxySettings(http=listening.url)
        async with http_client("http://mcp.example/mcp", proxies=proxies) as server:
            assert (await called(server, text="b")).text.endswith("echo: b")
    assert scripted.calls[0].path == "http://mcp.example/mcp"


# --- arguments as headers --------------------------------------------------------------------


async def test_arguments_that_a_schema_names_are_repeated_as_headers() -> None:
    region = {"type": "string", "x-mcp-header": "Region"}
    inner = {"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "N"}}}
    odd = {"type": "string", "x-mcp-header": "Odd"}
    unset = {"type": "boolean", "x-mcp-header": "Unset"}
    tools = [tool("echo", region=region, inner=inner, odd=odd, unset=unset)]
    scripted = ScriptedHttpServer(version=MODERN, tools=tools)
    async with http_served(scripted) as (server, _):
        await called(server, region="eu", inner={"n": 7}, odd="zwölf\n")
    found = scripted.calls[0].headers
    assert found["mcp-param-region"] == "eu"
    assert found["mcp-param-n"] == "7"
    assert found["mcp-param-odd"] == "=?base64?enfDtmxmCg==?="
    assert "mcp-param-unset" not in found


@pytest.mark.parametrize(
    "wrong",
    [
        {"a": {"type": "string", "x-mcp-header": "two words"}},
        {"a": {"type": "string", "x-mcp-header": ""}},
        {"a": {"type": "string", "x-mcp-header": "x\r\nevil: 1"}},
        {"a": {"type": "object", "x-mcp-header": "A"}},
        {"a": {"type": "number", "x-mcp-header": "A"}},
        {"a": {"type": "string", "x-mcp-header": 7}},
        {
            "a": {"type": "string", "x-mcp-header": "Same"},
            "b": {"type": "string", "x-mcp-header": "same"},
        },
        {"a": {"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}},
        {"a": {"anyOf": [{"type": "string", "x-mcp-header": "A"}]}},
    ],
)
async def test_a_tool_that_asks_for_impossible_headers_is_left_out_alone(wrong: object) -> None:
    assert isinstance(wrong, dict)
    tools = [tool("echo"), tool("bad", **wrong)]
    async with http_served(ScriptedHttpServer(version=MODERN, tools=tools)) as (server, _):
        await called(server)
        assert list(server.record.tools()) == ["echo"]
        assert server.left_out[0].startswith("bad: ")


# --- the old kind ----------------------------------------------------------------------------


async def test_a_server_of_the_old_kind_is_spoken_to() -> None:
    streams: list[LoopbackConnection] = []
    async with (
        serving(lambda line: old_kind(line, streams)) as listening,
        http_client(f"{listening.url}/sse", transport="sse") as server,
    ):
        assert (await called(server, text="b")).text.endswith("old: b")
        assert server.record.era == "2024-11-05"


async def test_the_hint_at_the_old_kind() -> None:
    async with http_served(ScriptedHttpServer("old_kind")) as (server, _):
        with pytest.raises(FinalToolError, match='needs `"type": "sse"`'):
            await called(server)


async def test_an_old_server_cannot_send_us_to_another() -> None:
    async def evil(line: LoopbackConnection) -> None:
        await line.request()
        await line.start_events()
        address = "http://evil.example/\x1b[2J\u202e\x9b"
        await line.chunk(f"event: endpoint\ndata: {address}\n\n".encode())
        await line.until_gone()

    async with (
        serving(evil) as listening,
        http_client(f"{listening.url}/sse", transport="sse") as server,
    ):
        with pytest.raises(FinalToolError, match="another server") as caught:
            await called(server)
        for shown in (str(caught.value), server.why):
            assert not {"\x1b", "\u202e", "\x9b"} & set(shown)
