"""A project whose model is a vendor on loopback that gives fixed replies, over real sockets."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import anyio.lowlevel

import weft
from tests.support.loopback_server import LoopbackConnection, LoopbackServer, serving
from tests.support.vendor_servers import KEY
from weft.app import App


class VendorReply(NamedTuple):
    """One HTTP reply as a vendor sends it."""

    body: bytes
    status: int = 200
    headers: str = "content-type: text/event-stream\r\n"


PLACES: dict[str, tuple[str, str]] = {
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
    "openai": ("OPENAI_API_KEY", "OPENAI_BASE_URL"),
    "openai-chat": ("OPENAI_API_KEY", "OPENAI_BASE_URL"),
    "google": ("GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL"),
    "ollama": ("OLLAMA_API_KEY", "OLLAMA_HOST"),
}
"""Where each provider's key and address are looked for."""
VENDOR_MODELS = {
    "anthropic": "anthropic:claude-sonnet-5-5",
    "openai": "openai:gpt-5",
    "openai-chat": "openai-chat:gpt-4.1",
    "google": "google:gemini-3.8-flash",
    "ollama": "ollama:qwen3:8b",
}


def stream(*events: Any) -> VendorReply:
    """A stream of server-sent events; Anthropic's and OpenAI's carry their type in the value."""
    lines = [f"data: {json.dumps(event)}\n\n" for event in events]
    return VendorReply("".join(lines).encode())


def lines(*values: Any) -> VendorReply:
    """A stream of lines, as Ollama sends it."""
    body = "".join(f"{json.dumps(value)}\n" for value in values).encode()
    return VendorReply(body, headers="content-type: application/x-ndjson\r\n")


def refused(status: int, value: Any, headers: str = "") -> VendorReply:
    """A reply that is no answer."""
    kind = "content-type: application/json\r\n"
    return VendorReply(json.dumps(value).encode(), status, f"{kind}{headers}")


@asynccontextmanager
async def replying(replies: Sequence[VendorReply]) -> AsyncGenerator[LoopbackServer]:
    """A vendor that gives these replies in order, and the last one again and again."""
    left = list(replies)

    async def handler(line: LoopbackConnection) -> None:
        while await line.request():
            reply = left.pop(0) if len(left) > 1 else left[0]
            await line.reply(reply.body, status=reply.status, headers=reply.headers)

    async with serving(handler) as server:
        yield server


def environment(provider: str, url: str, home: Path) -> dict[str, str]:
    """What a user has set who works with this vendor."""
    key, address = PLACES[provider]
    return {"HOME": str(home), "WEFT_HOME": str(home), key: KEY, address: url}


async def _no_wait(seconds: float) -> None:
    await anyio.lowlevel.checkpoint()


@asynccontextmanager
async def vendor_app(
    provider: str, replies: Sequence[VendorReply], folder: Path, model: str = ""
) -> AsyncGenerator[tuple[App, LoopbackServer]]:
    """The application, with a model of that provider behind a real socket."""
    async with replying(replies) as server:
        chosen = {"model.default": model or VENDOR_MODELS[provider]}
        environ = environment(provider, server.url, folder)
        async with weft.open(folder, "memory", chosen, environ=environ, sleep=_no_wait) as app:
            yield app, server
