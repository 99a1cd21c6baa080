"""The vendors' adapters over real sockets: what they send, and what they make of every fault."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import msgspec
import pytest

from tests.support.legality import (
    validate_anthropic,
    validate_gemini,
    validate_openai_chat,
    validate_openai_responses,
)
from tests.support.loopback_server import (
    Handler,
    LoopbackConnection,
    LoopbackServer,
    ReceivedRequest,
    serving,
)
from tests.support.vendor_servers import KEY, MODELS, VENDOR_WIRES, send_plan, sse
from weft.clock import ManualClock
from weft.errors import AuthFailed, ProviderError, ProviderUnavailable, RequestRefused
from weft.messages import Text, Usage
from weft.providers.base import (
    ChatMessage,
    Model,
    ModelRequest,
    StreamEvent,
    StreamFinished,
    TextPiece,
    ToolSpec,
)
from weft.providers.catalogue import shipped
from weft.providers.credentials import ProviderAccess, as_json, joined
from weft.providers.ollama.stream import address
from weft.providers.script import CallTool, SayText, ScriptedAnswer
from weft.providers.vendors import access_from, make_provider
from weft.transport import HttpClient, HttpTimeouts

pytestmark = pytest.mark.anyio
VENDORS = sorted(VENDOR_WIRES)
READ = ToolSpec(
    name="fs.read",
    description="Reads.",
    schema={"type": "object", "properties": {"path": {"type": "string"}}},
)


def asking(vendor: str, **more: object) -> ModelRequest:
    request = ModelRequest(
        model=MODELS[vendor], messages=(ChatMessage(role="user", parts=(Text(text="hello"),)),)
    )
    return msgspec.structs.replace(request, **more)


@asynccontextmanager
async def talking(
    vendor: str, handler: Handler, *, clock: ManualClock | None = None, idle: float = 10.0
) -> AsyncGenerator[tuple[Model, LoopbackServer]]:
    async with serving(handler) as server:
        client = HttpClient()
        access = ProviderAccess(
            key=KEY, base_url=server.url, timeouts=HttpTimeouts(first_byte=idle, idle=idle)
        )
        provider = make_provider(vendor, access, client, shipped(), clock=clock)
        yield provider.model(MODELS[vendor]), server
        await provider.aclose()
        await client.aclose()


async def play(model: Model, request: ModelRequest) -> list[StreamEvent]:
    with anyio.fail_after(10):
        async with model.stream(request) as events:
            return [event async for event in events]


def plays(vendor: str, *steps: SayText | CallTool) -> Handler:
    async def handler(line: LoopbackConnection) -> None:
        while await line.request():
            await send_plan(line, VENDOR_WIRES[vendor](), ScriptedAnswer(steps=steps))

    return handler


# --- what is sent ----------------------------------------------------------------------

SENT = {
    "anthropic": ("/v1/messages", "x-api-key", KEY),
    "openai": ("/responses", "authorization", f"Bearer {KEY}"),
    "openai-chat": ("/chat/completions", "authorization", f"Bearer {KEY}"),
    "google": (
        "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
        "x-goog-api-key",
        KEY,
    ),
    "ollama": ("/api/chat", "authorization", f"Bearer {KEY}"),
    "acme": ("/chat/completions", "authorization", f"Bearer {KEY}"),
}


def judged(vendor: str, asked: ReceivedRequest) -> list[str]:
    body = json.loads(asked.body)
    match vendor:
        case "anthropic":
            return validate_anthropic(body)
        case "openai":
            return validate_openai_responses(body)
        case "google":
            return validate_gemini(body)
        case "ollama":
            return []
        case _:
            return validate_openai_chat(body)


@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_request_goes_to_the_right_place_with_the_key_and_is_legal(vendor: str) -> None:
    async with talking(vendor, plays(vendor, SayText(text="hi"))) as (model, server):
        await play(model, asking(vendor, tools=(READ,), system="Be brief."))
    path, header, value = SENT[vendor]
    asked = server.asked[0]
    assert (asked.method, asked.path) == ("POST", path)
    assert asked.headers[header] == value
    assert KEY not in asked.path
    assert judged(vendor, asked) == []


@pytest.mark.parametrize("vendor", VENDORS)
async def test_ten_answers_come_over_one_connection(vendor: str) -> None:
    async with talking(vendor, plays(vendor, SayText(text="hi"))) as (model, server):
        for _ in range(10):
            events = await play(model, asking(vendor))
            assert isinstance(events[-1], StreamFinished)
    assert server.connections == 1


@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_tool_with_an_odd_name_is_called_by_its_own(vendor: str) -> None:
    wired = "fs_read_"

    async def handler(line: LoopbackConnection) -> None:
        asked = await line.request()
        assert asked is not None
        names = [word for word in asked.body.decode().split('"') if word.startswith(wired)]
        await send_plan(
            line, VENDOR_WIRES[vendor](), ScriptedAnswer(steps=(CallTool(name=names[0]),))
        )

    async with talking(vendor, handler) as (model, _):
        events = await play(model, asking(vendor, tools=(READ,)))
    assert "fs.read" in [getattr(event, "name", "") for event in events]


async def test_the_context_size_is_told_to_ollama() -> None:
    async with talking("ollama", plays("ollama", SayText(text="hi"))) as (model, server):
        await play(model, asking("ollama"))
    body = json.loads(server.asked[0].body)
    assert body["options"]["num_ctx"] == model.info.context_window


@pytest.mark.parametrize("vendor", ["anthropic", "openai", "openai-chat", "google"])
async def test_without_a_key_nothing_is_sent_and_the_way_to_one_is_named(vendor: str) -> None:
    provider = make_provider(vendor, ProviderAccess(), HttpClient(), shipped())
    with pytest.raises(AuthFailed, match="weft auth login"):
        await play(provider.model(""), asking(vendor))


# --- faults ----------------------------------------------------------------------------


@pytest.mark.parametrize("vendor", VENDORS)
async def test_the_key_is_in_no_error(vendor: str) -> None:
    async def handler(line: LoopbackConnection) -> None:
        await line.request()
        await line.reply(b'{"error":{"message":"bad key %b"}}' % KEY.encode(), status=401)

    async with talking(vendor, handler) as (model, _):
        with pytest.raises(AuthFailed) as caught:
            await play(model, asking(vendor))
    shown: BaseException | None = caught.value
    while shown is not None:
        assert KEY not in str(shown)
        shown = shown.__cause__ or shown.__context__


async def stalls_after_the_head(line: LoopbackConnection) -> None:
    await line.start_events()
    await line.until_gone()


async def stalls_before_the_head(line: LoopbackConnection) -> None:
    await line.until_gone()


async def hangs_up(line: LoopbackConnection) -> None:
    await line.close()


async def answers_html(line: LoopbackConnection) -> None:
    await line.reply(b"<html><title>Sign in</title></html>", headers="content-type: text/html\r\n")


async def answers_plain_json(line: LoopbackConnection) -> None:
    await line.reply(b'{"hello": 1}', headers="content-type: application/json\r\n")


async def answers_words(line: LoopbackConnection) -> None:
    await line.reply(b"Welcome to the router.\n", headers="content-type: text/plain\r\n")


async def answers_nothing(line: LoopbackConnection) -> None:
    await line.reply(b"")


async def answers_error_with_200(line: LoopbackConnection) -> None:
    await line.reply(
        b'{"error": {"message": "no", "code": 503}}', headers="content-type: application/json\r\n"
    )


async def sends_junk(line: LoopbackConnection) -> None:
    await line.start_events()
    await line.chunk(b"data: {not json\n\n{neither\n")
    await line.until_gone()


async def sends_nothing_at_all(line: LoopbackConnection) -> None:
    await line.start_events()
    await line.end_chunks()


async def redirects(line: LoopbackConnection) -> None:
    await line.reply(b"", status=302, headers="location: https://evil.test/\r\n")


async def refuses_and_breaks_off(line: LoopbackConnection) -> None:
    await line.send(b'HTTP/1.1 500 X\r\ncontent-length: 9999\r\n\r\n{"error": {"mess')
    await line.close()


FAULTS = [
    (stalls_after_the_head, ProviderUnavailable, "sent nothing"),
    (stalls_before_the_head, ProviderUnavailable, "sent nothing"),
    (hangs_up, ProviderUnavailable, "without an answer"),
    (answers_html, RequestRefused, "Sign in"),
    (answers_plain_json, RequestRefused, "application/json"),
    (answers_words, RequestRefused, "did not answer with a stream of events; is the base URL"),
    (answers_nothing, RequestRefused, "did not answer with a stream of events; is the base URL"),
    (answers_error_with_200, ProviderUnavailable, "no"),
    (sends_junk, ProviderUnavailable, "cannot be understood"),
    (sends_nothing_at_all, ProviderUnavailable, "ended before"),
    (redirects, RequestRefused, "redirects to"),
    (refuses_and_breaks_off, ProviderUnavailable, "is not available"),
]


@pytest.mark.parametrize(("fault", "error", "message"), FAULTS)
@pytest.mark.parametrize("vendor", VENDORS)
async def test_every_fault_is_one_clear_provider_error(
    vendor: str, fault: Handler, error: type[ProviderError], message: str
) -> None:
    async def handler(line: LoopbackConnection) -> None:
        if await line.request():
            await fault(line)

    async with talking(vendor, handler, idle=0.1) as (model, _):
        with pytest.raises(ProviderError, match=message) as caught:
            await play(model, asking(vendor))
    assert type(caught.value) is error


async def test_signs_of_life_alone_are_not_progress_for_ever() -> None:
    clock = ManualClock()
    pings = 0

    async def handler(line: LoopbackConnection) -> None:
        nonlocal pings
        await line.request()
        await line.start_events()
        for _ in range(100):
            await line.chunk(sse({"type": "ping"}, "ping"))
            pings += 1
            clock.advance(61)
            await anyio.lowlevel.checkpoint()
            await anyio.wait_all_tasks_blocked()

    async with talking("anthropic", handler, clock=clock) as (model, _):
        with pytest.raises(ProviderUnavailable, match="only keep-alives"):
            await play(model, asking("anthropic"))
    assert 10 <= pings < 30


async def test_text_before_a_late_error_is_heard_once() -> None:
    async def handler(line: LoopbackConnection) -> None:
        await line.request()
        await line.start_events()
        for event in VENDOR_WIRES["anthropic"]().text(SayText(text="half")):
            await line.chunk(event)
        error = {"type": "overloaded_error", "message": "Overloaded"}
        await line.chunk(sse({"type": "error", "error": error}, "error"))
        await line.end_chunks()

    async with (
        talking("anthropic", handler) as (model, _),
        model.stream(asking("anthropic")) as events,
    ):
        assert await anext(events) == TextPiece("half")
        with pytest.raises(ProviderUnavailable, match="Overloaded") as caught:
            await anext(events)
    assert caught.value.status == 529


async def test_a_server_that_does_not_end_after_its_last_word_is_left() -> None:
    async def handler(line: LoopbackConnection) -> None:
        await line.request()
        await line.start_events()
        for event in VENDOR_WIRES["anthropic"]().end("stop", Usage()):
            await line.chunk(event)
        await line.until_gone()

    async with talking("anthropic", handler) as (model, server):
        events = await play(model, asking("anthropic"))
        assert events[-1] == StreamFinished(reason="stop")
        with anyio.fail_after(5):
            await server.gone.wait()


# --- reaching --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "path", "expected"),
    [
        ("https://a.test", "/v1/messages", "https://a.test/v1/messages"),
        ("https://a.test/v1/", "/v1/messages", "https://a.test/v1/messages"),
        ("https://a.test/x/v1", "/chat/completions", "https://a.test/x/v1/chat/completions"),
        ("https://a.test/s/1", "/v1beta/models/m:x", "https://a.test/s/1/v1beta/models/m:x"),
    ],
)
def test_base_and_path_join_without_a_double(base: str, path: str, expected: str) -> None:
    assert joined(base, path) == expected


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("box:9999", "http://box:9999"),
        ("[::1]", "http://[::1]:11434"),
        ("[::]:8080", "http://[::1]:8080"),
        (":8080", "http://127.0.0.1:8080"),
        ("http://box", "http://box:11434"),
        ("https://ollama.test/x/", "https://ollama.test/x"),
    ],
)
def test_ollamas_host_is_understood_in_its_short_forms(host: str, expected: str) -> None:
    assert address(host) == expected


def test_keys_and_addresses_come_from_config_before_the_environment() -> None:
    environment = {"GOOGLE_API_KEY": "g", "OPENAI_BASE_URL": "http://e/v1", "OPENAI_API_KEY": " o "}
    catalogue = shipped()
    assert access_from("google", environment, catalogue).key == "g"
    assert access_from("openai", environment, catalogue) == ProviderAccess(
        key="o",
        key_source="OPENAI_API_KEY",
        base_url="http://e/v1",
        url_source="OPENAI_BASE_URL",
    )
    own = access_from("openai", environment, catalogue, ProviderAccess(key="mine"))
    assert own.key == "mine"
    assert access_from("groq", {"GROQ_API_KEY": "q"}, catalogue).key == "q"
    assert "mine" not in repr(own)


def test_a_body_with_broken_characters_can_be_sent() -> None:
    sent = json.loads(as_json({"a": ["x\ud800y"], "b": {"\udfff": 1}}))
    assert sent["a"][0].startswith("x�")
    assert sent["a"][0].endswith("y")


async def test_ollama_lists_what_it_has_and_nothing_when_it_is_away() -> None:
    async def handler(line: LoopbackConnection) -> None:
        await line.request()
        await line.reply(b'{"models":[{"name":"qwen3:8b"},{"name":"x:1b"}]}')

    async with serving(handler) as server:
        client = HttpClient()
        provider = make_provider("ollama", ProviderAccess(base_url=server.url), client, shipped())
        assert [info.name for info in await provider.models()] == ["qwen3:8b", "x:1b"]
        await client.aclose()
    assert await provider.models() == []
