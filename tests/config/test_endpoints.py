"""Configured providers over real sockets: the protocol they speak, what goes with each request, and
the models that their servers list.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from tests.support.loopback_server import Handler, LoopbackConnection, LoopbackServer, serving
from tests.support.vendor_servers import VENDOR_WIRES, send_plan
from weft.config.models import ModelRegistry
from weft.config.paths import places
from weft.config.providers import default_providers
from weft.errors import AuthFailed
from weft.messages import Text
from weft.providers import ChatMessage, Model, ModelRequest, TextPiece
from weft.providers.script import SayText, ScriptedAnswer

pytestmark = pytest.mark.anyio
PATHS = {
    "anthropic": "/v1/messages",
    "responses": "/responses",
    "chat": "/chat/completions",
    "google": "/v1beta/models/m-1:streamGenerateContent?alt=sse",
    "ollama": "/api/chat",
}
VOICES = {"responses": "openai", "chat": "openai-chat"}


@asynccontextmanager
async def configured(
    home: Path, handler: Handler, settings: str = "", **environ: str
) -> AsyncGenerator[tuple[ModelRegistry, LoopbackServer]]:
    async with serving(handler) as server:
        where = places({"HOME": str(home)})
        where.config.mkdir(parents=True, exist_ok=True)
        (where.config / "config.toml").write_text(settings.replace("URL", server.url))
        variables = {name: value.replace("URL", server.url) for name, value in environ.items()}
        models = ModelRegistry(default_providers({"HOME": str(home), **variables}))
        yield models, server
        await models.aclose()


def speaking(vendor: str) -> Handler:
    async def handler(line: LoopbackConnection) -> None:
        while await line.request():
            plan = ScriptedAnswer(steps=(SayText(text="hello"),))
            await send_plan(line, VENDOR_WIRES[vendor](), plan)

    return handler


async def said(model: Model) -> str:
    user = ChatMessage(role="user", parts=(Text(text="hi"),))
    request = ModelRequest(model=model.info.name, messages=(user,))
    with anyio.fail_after(10):
        async with model.stream(request) as events:
            return "".join([e.text async for e in events if isinstance(e, TextPiece)])


@pytest.mark.parametrize("protocol", sorted(PATHS))
async def test_a_configured_provider_speaks_the_protocol_that_it_names(
    tmp_path: Path, protocol: str
) -> None:
    settings = f"""
        [providers.work]
        protocol = "{protocol}"
        base_url = "URL"
        headers = {{x-team = "blue"}}
        query = {{tenant = "a b"}}
        """
    handler = speaking(VOICES.get(protocol, protocol))
    async with configured(tmp_path, handler, settings) as (models, server):
        assert await said(models.resolve("work:m-1")) == "hello"
    (asked,) = server.asked
    joint = "&" if "?" in PATHS[protocol] else "?"
    assert asked.path == f"{PATHS[protocol]}{joint}tenant=a+b"
    assert asked.headers["x-team"] == "blue"
    # There is no key, and the server is not the vendor's: it may want none.
    assert not {"authorization", "x-api-key", "x-goog-api-key"} & asked.headers.keys()


async def test_an_auth_token_goes_as_a_bearer_and_comes_before_a_key(tmp_path: Path) -> None:
    async with configured(
        tmp_path,
        speaking("anthropic"),
        ANTHROPIC_BASE_URL="URL",
        ANTHROPIC_AUTH_TOKEN="token-1",
        ANTHROPIC_API_KEY="key-1",
    ) as (models, server):
        await said(models.resolve("sonnet"))
    assert server.asked[0].headers["authorization"] == "Bearer token-1"
    assert "x-api-key" not in server.asked[0].headers


async def test_a_key_of_a_vendor_goes_where_the_protocol_has_it(tmp_path: Path) -> None:
    settings = '[providers.work]\nprotocol = "anthropic"\nbase_url = "URL"\nkey_env = "WORK"\n'
    handler = speaking("anthropic")
    async with configured(tmp_path, handler, settings, WORK="key-2") as (models, server):
        await said(models.resolve("work:m"))
    assert server.asked[0].headers["x-api-key"] == "key-2"


async def test_without_its_key_a_vendor_is_not_even_asked(tmp_path: Path) -> None:
    async with configured(tmp_path, speaking("openai-chat")) as (models, _):
        with pytest.raises(AuthFailed, match=r"set MOONSHOT_API_KEY, or run `weft auth login moon"):
            await said(models.resolve("moonshot:kimi-k3"))


# --- models that a server lists --------------------------------------------------------

LISTED = {
    "object": "list",
    "data": [
        {"id": "plain"},
        {
            "id": "rich",
            "context_length": 50_000,
            "pricing": {"prompt": "0.000001", "completion": "0.000002"},
            "top_provider": {"max_completion_tokens": 9_000},
        },
        {"id": "vllm", "max_model_len": 20_000},
        {"no": "id"},
    ],
}


def listing(body: bytes, status: int = 200) -> Handler:
    async def handler(line: LoopbackConnection) -> None:
        while await line.request():
            await line.reply(body, status=status)

    return handler


async def test_models_of_a_compatible_server_are_listed_from_it(tmp_path: Path) -> None:
    settings = '[providers.mine]\nbase_url = "URL/v1"\nkey = "k"\n'
    handler = listing(json.dumps(LISTED).encode())
    async with configured(tmp_path, handler, settings) as (models, server):
        with anyio.fail_after(10):
            found = {each.name: each for each in await models.available(["mine"])}
    assert list(found) == ["plain", "rich", "vllm"]
    assert (server.asked[0].method, server.asked[0].path) == ("GET", "/v1/models")
    assert server.asked[0].headers["authorization"] == "Bearer k"
    rich = found["rich"]
    assert (rich.context_window, rich.max_output_tokens) == (50_000, 9_000)
    assert (rich.price_input, rich.price_output) == (1.0, 2.0)
    assert found["vllm"].context_window == 20_000
    assert found["plain"].price_input is None


@pytest.mark.parametrize("body", [b"[]", b"{}", b"<html>", b'{"data": 5}', b'{"data": [1, null]}'])
async def test_a_list_that_is_none_lists_nothing(tmp_path: Path, body: bytes) -> None:
    settings = '[providers.mine]\nbase_url = "URL/v1"\n'
    async with configured(tmp_path, listing(body), settings) as (models, _):
        assert await models.available(["mine"]) == []


async def test_a_provider_that_refuses_to_list_is_listed_as_the_catalogue_has_it(
    tmp_path: Path,
) -> None:
    settings = '[providers.zai]\nbase_url = "URL/v1"\nkey = "k"\n'
    async with configured(tmp_path, listing(b"{}", 401), settings) as (models, _):
        names = [each.name for each in await models.available(["zai"])]
    assert "glm-5.3" in names


async def test_a_vendor_without_a_key_is_not_asked_for_its_models(tmp_path: Path) -> None:
    async with configured(tmp_path, listing(b"{}")) as (models, server):
        names = [each.name for each in await models.available(["moonshot", "zai"])]
    assert {"kimi-k3", "glm-5.3"} <= set(names)
    assert server.asked == []
