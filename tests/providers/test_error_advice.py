"""Errors say what to do: each vendor's refusals, over real sockets, and the sentence that comes of
them.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import weft
from tests.support.loopback_server import LoopbackConnection, serving
from tests.support.vendor_ends import GOOD_ENDS
from tests.support.vendor_replies import (
    VENDOR_MODELS,
    VendorReply,
    environment,
    refused,
    vendor_app,
)
from weft.app import App
from weft.events import FinishReason
from weft.view import finish_sentence

pytestmark = pytest.mark.anyio


class Refusal(NamedTuple):
    """A refusal, the reason that the turn ends with, and what the sentence has to say."""

    provider: str
    reply: VendorReply
    reason: FinishReason
    says: tuple[str, ...]
    asked: int = 1
    model: str = ""


def openai(status: int, message: str, code: str | None = None, headers: str = "") -> VendorReply:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return refused(status, {"error": error}, headers)


def anthropic(status: int, kind: str, message: str) -> VendorReply:
    return refused(status, {"type": "error", "error": {"type": kind, "message": message}})


def google(status: int, word: str, message: str, *details: Any) -> VendorReply:
    error = {"code": status, "message": message, "status": word, "details": list(details)}
    return refused(status, {"error": error})


BAD_GOOGLE_KEY = {
    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
    "reason": "API_KEY_INVALID",
    "domain": "googleapis.com",
}
REFUSALS: dict[str, Refusal] = {
    "a bad key of Anthropic": Refusal(
        "anthropic",
        anthropic(401, "authentication_error", "invalid x-api-key"),
        "auth_error",
        (
            "Anthropic refused the key",
            "ANTHROPIC_API_KEY; set another there, or unset it and save one with "
            "`weft auth login anthropic`",
            "https://",
        ),
    ),
    "a bad key of OpenAI": Refusal(
        "openai",
        openai(401, "Incorrect API key provided: sk-te***cdef.", "invalid_api_key"),
        "auth_error",
        (
            "OpenAI refused the key",
            "OPENAI_API_KEY",
            "login openai",
            "platform.openai.com/api-keys",
        ),
    ),
    "a bad key over Chat Completions": Refusal(
        "openai-chat",
        openai(401, "Incorrect API key provided", "invalid_api_key"),
        "auth_error",
        ("OpenAI refused the key", "OPENAI_API_KEY"),
    ),
    "a bad key of Google, which is a 400": Refusal(
        "google",
        google(
            400,
            "INVALID_ARGUMENT",
            "API key not valid. Please pass a valid API key.",
            BAD_GOOGLE_KEY,
        ),
        "auth_error",
        ("GEMINI_API_KEY", "weft auth login google", "aistudio.google.com"),
    ),
    "a key that may not": Refusal(
        "anthropic",
        anthropic(403, "permission_error", "Your API key does not have permission"),
        "auth_error",
        ("does not allow this", "ANTHROPIC_API_KEY; use a key, or a model, that is allowed to|"),
    ),
    "an unknown model of OpenAI": Refusal(
        "openai",
        openai(
            404,
            "The model `gpt-5.44` does not exist or you do not have access to it.",
            "model_not_found",
        ),
        "provider_error",
        ("does not have this model", "did you mean 'gpt-5.4'?", "weft models list openai"),
        model="openai:gpt-5.44",
    ),
    "an unknown model of Anthropic": Refusal(
        "anthropic",
        anthropic(404, "not_found_error", "model: claude-sonet-5-5"),
        "provider_error",
        ("did you mean 'claude-sonnet-5-5'?", "weft models list anthropic"),
        model="anthropic:claude-sonet-5-5",
    ),
    "a listed model that a key does not have": Refusal(
        "anthropic",
        anthropic(404, "not_found_error", "model: claude-opus-5"),
        "provider_error",
        ("does not have this model", "weft models list anthropic"),
        model="anthropic:claude-opus-5",
    ),
    "an unknown model of Google": Refusal(
        "google",
        google(404, "NOT_FOUND", "models/gemini-3.9-flash is not found for API version v1beta"),
        "provider_error",
        ("did you mean 'gemini-3.", "weft models list google"),
        model="google:gemini-3.9-flash",
    ),
    "a model that is not pulled": Refusal(
        "ollama",
        refused(404, {"error": 'model "qwen9" not found, try pulling it first'}),
        "provider_error",
        ("`ollama pull qwen9`",),
        model="ollama:qwen9",
    ),
    "no quota at OpenAI": Refusal(
        "openai",
        openai(
            429,
            "You exceeded your current quota, please check your plan and billing.",
            "insufficient_quota",
        ),
        "provider_error",
        ("no budget left", "OPENAI_API_KEY", "add credit"),
    ),
    "no credit at Anthropic, which is a 400": Refusal(
        "anthropic",
        anthropic(400, "invalid_request_error", "Your credit balance is too low to access the API"),
        "provider_error",
        ("no budget left", "ANTHROPIC_API_KEY", "add credit"),
    ),
    "no quota at Google": Refusal(
        "google",
        google(
            429,
            "RESOURCE_EXHAUSTED",
            "You exceeded your current quota",
            {"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]},
        ),
        "provider_error",
        ("no budget left", "GEMINI_API_KEY"),
    ),
    "a region that OpenAI does not serve": Refusal(
        "openai",
        openai(
            403,
            "Country, region, or territory not supported",
            "unsupported_country_region_territory",
        ),
        "provider_error",
        ("does not serve this region", "use another provider"),
    ),
    "a region that Google does not serve": Refusal(
        "google",
        google(400, "FAILED_PRECONDITION", "User location is not supported for the API use."),
        "provider_error",
        ("does not serve this region", "use another provider"),
    ),
    "an organization that is not verified": Refusal(
        "openai",
        openai(
            404,
            "Your organization must be verified to use the model `gpt-5`. Please go to: "
            "https://platform.openai.com/settings/organization/general",
            "model_not_found",
        ),
        "provider_error",
        ("wants the organization to be verified", "use another model"),
    ),
    "a conversation that is too long": Refusal(
        "anthropic",
        anthropic(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000"),
        "context_overflow",
        ("too long", "/compact", "larger window"),
    ),
    "too many requests, with a header": Refusal(
        "anthropic",
        refused(
            429,
            {"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}},
            "retry-after: 7200\r\n",
        ),
        "provider_error",
        ("slow down", "it asks to wait 2 h 0 min, until"),
    ),
    "too many requests, in words": Refusal(
        "openai",
        openai(
            429, "Rate limit reached for gpt-5. Please try again in 20m0s.", "rate_limit_exceeded"
        ),
        "provider_error",
        ("try again in 20m0s; it asks to wait 20 min, until",),
    ),
    "too many requests, without a time": Refusal(
        "openai-chat",
        openai(429, "Too many requests"),
        "provider_error",
        ("asks to slow down", "use another model"),
        asked=7,
    ),
    "an address that is not the API's": Refusal(
        "openai",
        refused(404, {"detail": "Not Found"}),
        "provider_error",
        ("is OPENAI_BASE_URL right?",),
    ),
    "a tool call that the server could not read": Refusal(
        "openai-chat",
        openai(400, "Failed to call a function. Please adjust your prompt.", "tool_use_failed"),
        "provider_error",
        ("could not read the model's tool call",),
        asked=7,
    ),
}


async def said_hi(app: App) -> weft.Reply:
    session = await app.sessions.start_session(tools=[])
    return await session.send_message("hi")


@asynccontextmanager
async def without_a_key(tmp_path: Path) -> AsyncIterator[dict[str, str]]:
    """The environment of an OpenAI that refuses every key, and for which there is none."""
    wrong = openai(401, "Incorrect API key provided", "invalid_api_key")
    async with vendor_app("openai", [wrong], tmp_path) as (_, server):
        given = environment("openai", server.url, tmp_path)
        del given["OPENAI_API_KEY"]
        yield given


@pytest.mark.parametrize("name", REFUSALS)
async def test_a_refusal_says_what_to_do(name: str, tmp_path: Path) -> None:
    refusal = REFUSALS[name]
    async with vendor_app(refusal.provider, [refusal.reply], tmp_path, refusal.model) as (
        app,
        server,
    ):
        result = await said_hi(app)
    assert result.finish_reason == refusal.reason
    sentence = finish_sentence(result.finish_reason, result.detail)
    assert [words for words in refusal.says if words not in f"{sentence}|"] == []
    assert len(server.asked) == refusal.asked
    asked_for = refusal.model.partition(":")[2]
    assert not asked_for or f"did you mean '{asked_for}'" not in sentence
    # One sentence, and the advice about keys in it once.
    assert "\n" not in sentence
    assert sentence.count("weft auth") <= 1


NO_STREAMS: dict[str, VendorReply] = {
    "words": VendorReply(b"It works!\n", headers="content-type: text/plain\r\n"),
    "a page": VendorReply(b"<title>Sign in</title>", headers="content-type: text/html\r\n"),
    "json": VendorReply(b'{"status": "ok"}', headers="content-type: application/json\r\n"),
    "nothing": VendorReply(b"", headers=""),
}


@pytest.mark.parametrize("provider", VENDOR_MODELS)
@pytest.mark.parametrize("name", NO_STREAMS)
async def test_a_200_without_an_event_stream_is_one_sentence_after_one_try(
    name: str, provider: str, tmp_path: Path
) -> None:
    async with vendor_app(provider, [NO_STREAMS[name]], tmp_path) as (app, server):
        result = await said_hi(app)
    assert result.finish_reason == "provider_error"
    sentence = finish_sentence(result.finish_reason, result.detail)
    assert "is the base URL right?" in sentence
    assert "\n" not in sentence
    assert len(server.asked) == 1


@pytest.mark.parametrize("provider", VENDOR_MODELS)
@pytest.mark.parametrize(
    "greeting",
    [b"SSH-2.0-OpenSSH_9.2p1\r\n", b"220 mail.example.com ESMTP\r\n", b"\x15\x03\x01\0\2"],
)
async def test_a_server_that_speaks_no_http_is_one_sentence_after_one_try(
    greeting: bytes, provider: str, tmp_path: Path
) -> None:
    tries = 0

    async def handler(line: LoopbackConnection) -> None:
        nonlocal tries
        tries += 1
        await line.request()
        await line.send(greeting)
        await line.until_gone()

    async with serving(handler) as server:
        chosen = {"model.default": VENDOR_MODELS[provider]}
        environ = environment(provider, server.url, tmp_path)
        async with weft.open(tmp_path, "memory", chosen, environ=environ) as app:
            result = await said_hi(app)
    assert result.finish_reason == "provider_error"
    sentence = finish_sentence(result.finish_reason, result.detail)
    assert "does not speak HTTP; is the base URL right?" in sentence
    assert "\n" not in sentence
    assert tries == 1


async def test_an_organization_that_is_not_verified_goes_on_without_summaries(
    tmp_path: Path,
) -> None:
    unverified = openai(
        400,
        "Your organization must be verified to generate reasoning summaries. Please go to: "
        "https://platform.openai.com/settings/organization/general and click on Verify.",
        "unsupported_value",
    )
    replies = [unverified, GOOD_ENDS["openai"]]
    async with vendor_app("openai", replies, tmp_path) as (app, server):
        session = await app.sessions.start_session(tools=[])
        said = [(await session.send_message(text)).finish_reason for text in ("a", "b")]
    assert said == ["stop", "stop"]
    bodies = [json.loads(request.body) for request in server.asked]
    # Refused once; later requests do not ask for them any more.
    assert ["summary" in body.get("reasoning", {}) for body in bodies] == [True, False, False]


@pytest.mark.parametrize(
    ("settings", "environ", "says"),
    [
        ({"key": "sk-wrong"}, {}, "providers.openai.key"),
        ({"key_env": "MY_KEY"}, {"MY_KEY": "sk-wrong"}, "MY_KEY"),
    ],
)
async def test_the_sentence_names_where_the_key_came_from(
    settings: dict[str, str], environ: dict[str, str], says: str, tmp_path: Path
) -> None:
    chosen: dict[str, Any] = {"model.default": "openai:gpt-5", "providers": {"openai": settings}}
    async with (
        without_a_key(tmp_path) as given,
        weft.open(tmp_path, "memory", chosen, environ={**given, **environ}) as app,
    ):
        result = await said_hi(app)
    assert result.finish_reason == "auth_error"
    assert f"the key came from {says}" in result.detail


async def test_a_saved_key_that_is_refused_is_named_as_such(tmp_path: Path) -> None:
    from weft.config.api_keys import KeyFile
    from weft.config.paths import places

    chosen = {"model.default": "openai:gpt-5"}
    async with without_a_key(tmp_path) as given:
        KeyFile(places(given).config).keep("openai", "sk-saved-long-ago")
        async with weft.open(tmp_path, "memory", chosen, environ=given) as app:
            result = await said_hi(app)
    assert "the key came from the saved keys" in result.detail
    assert "; `weft auth login openai` saves another" in result.detail


async def test_a_server_of_ollama_that_does_not_run_says_how_to_start_it(tmp_path: Path) -> None:
    environ = environment("ollama", "http://127.0.0.1:9", tmp_path)
    chosen: dict[str, Any] = {"model.default": "ollama:qwen3:8b"}

    async def no_wait(seconds: float) -> None:
        return

    async with weft.open(tmp_path, "memory", chosen, environ=environ, sleep=no_wait) as app:
        result = await said_hi(app)
    assert "`ollama serve` starts it" in result.detail


@pytest.mark.parametrize(
    ("settings", "variables", "named"),
    [
        ({}, {"OPENAI_BASE_URL": "http://127.0.0.1:9"}, "OPENAI_BASE_URL"),
        ({"base_url": "http://127.0.0.1:9"}, {}, "base_url of [providers.openai]"),
    ],
)
async def test_where_nothing_listens_the_setting_with_the_address_is_named(
    settings: dict[str, str], variables: dict[str, str], named: str, tmp_path: Path
) -> None:
    chosen = {"model.default": "openai:gpt-5", "providers": {"openai": settings}}
    environ = {"HOME": str(tmp_path), "WEFT_HOME": str(tmp_path), "OPENAI_API_KEY": "k"}

    async def no_wait(seconds: float) -> None:
        return

    async with weft.open(
        tmp_path, "memory", chosen, environ={**environ, **variables}, sleep=no_wait
    ) as app:
        result = await said_hi(app)
    assert f"nothing listens there; is it running, and is {named} right?" in result.detail


async def test_an_address_that_is_none_is_named_with_its_variable_and_without_a_password(
    tmp_path: Path,
) -> None:
    """As in the chat, which begins without looking at it."""
    environ = environment("openai", "htps://me:secret@host/v1", tmp_path)
    chosen = {"model.default": "openai:gpt-5"}
    async with weft.open(tmp_path, "memory", chosen, environ=environ) as app:
        result = await said_hi(app)
    assert result.detail.startswith("OPENAI_BASE_URL is not right: 'htps://…@host/v1/responses' is")
    assert "secret" not in result.detail
