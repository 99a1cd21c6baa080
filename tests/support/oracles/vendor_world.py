"""All vendors behind one real socket: each request is judged, then answered as planned."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import anyio
import anyio.lowlevel

import weft
from tests.support.cloud_servers import ConverseWire
from tests.support.loopback_server import LoopbackConnection, ReceivedRequest, serving
from tests.support.oracles.sdk_types import load_types, verdict
from tests.support.pdf_samples import pdf
from tests.support.vendor_servers import KEY, VENDOR_WIRES, GeminiWire, VendorWire, send_plan
from weft.app import App
from weft.providers.script import SayText, ScriptedAnswer, Step, Think

PATIENCE = 120.0
"""Seconds for one turn: each of its requests is judged as a whole, also on a busy machine."""
ORACLE_MODELS: dict[str, tuple[str, ...]] = {
    "anthropic": ("claude-sonnet-5-5", "claude-sonnet-4-5", "claude-opus-5-5", "claude-opus-4-8"),
    "openai": ("gpt-5", "gpt-6.1-sol", "gpt-5.4", "gpt-5.1"),
    "openai-chat": ("gpt-4.1", "gpt-5.1", "gpt-5"),
    "google": ("gemini-3.8-flash", "gemini-2.5-flash", "gemini-3-pro-preview"),
    "ollama": ("qwen3:8b", "gpt-oss:20b", "mistral-small3.2:24b"),
    "bedrock": (
        "amazon.nova-pro-v1:0",
        "openai.gpt-oss-120b-1:0",
        "meta.llama4-scout-17b-instruct-v1:0",
    ),
    "azure": ("gpt-5", "gpt-6.1-sol", "gpt-5.1"),
    "vertex": ("gemini-3.8-flash", "claude-sonnet-5-5", "gemini-2.5-flash", "claude-opus-4-8"),
}
"""Models of each provider that differ in how they are told to think.  Each of the first six has a
protocol of its own; the clouds behind them speak those of others, at addresses of their own.
"""


class SignedGeminiWire(GeminiWire):
    """Gemini 3: the first call of an answer, and its text, carry a thought signature."""

    def __init__(self, proof: str) -> None:
        self._proof = proof

    def text(self, step: SayText) -> Iterator[bytes]:
        yield from super().text(step)
        yield self._chunk({"text": "", "thoughtSignature": self._proof})

    def call(self, name: str, args: str, chunk: int) -> Iterator[bytes]:
        called: dict[str, Any] = {"functionCall": {"name": name, "args": json.loads(args)}}
        if self._proof:
            called["thoughtSignature"], self._proof = self._proof, ""
        yield self._chunk(called)


class OracleWorld:
    """What the vendors were sent, what was wrong with it, and what they answer."""

    by_types = True
    """Requests are judged by the vendors' own types, which have to be installed."""

    def __init__(self) -> None:
        self.script: list[tuple[Step, ...]] = []
        self.wrong: list[str] = []
        self.requests = 0
        self._next = anyio.Event()
        """Set with the next request."""
        self.gate: anyio.Event | None = None
        """While there is one, answers wait for it."""
        self._proofs: dict[str, set[str]] = {}

    def receive(self, asked: ReceivedRequest) -> None:
        """A request has come, as it is."""

    def judge(self, provider: str, protocol: str, model: str, body: dict[str, Any]) -> None:
        """Keep what is wrong with a request."""
        self.requests += 1
        arrived, self._next = self._next, anyio.Event()
        arrived.set()
        signed = {"", "rs_1", *self._proofs.get(f"{provider}:{model}", ())}
        found = verdict(protocol, body, model=model, signed=signed)
        self.wrong += [f"{provider}:{model}: {wrong}" for wrong in found]

    async def asked(self, count: int) -> None:
        """Wait until so many requests have come."""
        with anyio.fail_after(PATIENCE):
            while self.requests < count:
                await self._next.wait()

    def answer(
        self, provider: str, protocol: str, model: str, body: dict[str, Any]
    ) -> tuple[VendorWire, Any]:
        """How the vendor speaks, and what it says; requests without tools get a few words."""
        proof = base64.b64encode(f"{provider}/{model}/{self.requests}".encode()).decode()
        self._proofs.setdefault(f"{provider}:{model}", set()).add(proof)
        steps: tuple[Step, ...] = (SayText(text=f"ok {self.requests}"),)
        if self.script and (body.get("tools") or body.get("toolConfig")):
            steps = self.script.pop(0)
        signed = tuple(
            Think(text=step.text, signature=proof) if isinstance(step, Think) else step
            for step in steps
        )
        if protocol == "bedrock":
            return ConverseWire(self.requests), ScriptedAnswer(steps=signed)
        is_signed = protocol == "google" and not model.startswith("gemini-2")
        voice = SignedGeminiWire(proof) if is_signed else VENDOR_WIRES[protocol]()
        return voice, ScriptedAnswer(steps=signed)


def protocol_of(asked: ReceivedRequest) -> str:
    """Whose protocol a request speaks, by its path."""
    ends = {
        "/v1/messages": "anthropic",
        "/responses": "openai",
        "/chat/completions": "openai-chat",
        "/api/chat": "ollama",
        "/converse-stream": "bedrock",
        ":streamRawPredict": "anthropic",
    }
    path = asked.path.partition("?")[0]
    return next((name for end, name in ends.items() if path.endswith(end)), "google")


def provider_of(asked: ReceivedRequest) -> str:
    """Who was asked: the owner of the protocol, or a cloud."""
    begins = {"/openai/": "azure", "/v1/projects/": "vertex"}
    clouds = (name for begin, name in begins.items() if asked.path.startswith(begin))
    return next(clouds, protocol_of(asked))


def of_vertex(body: dict[str, Any], model: str) -> dict[str, Any]:
    """A request for Claude as Anthropic itself would get it."""
    assert body.pop("anthropic_version") == "vertex-2023-10-16"
    return {"model": model, **body}


def model_in(path: str) -> str:
    """The model that the path of a request names."""
    if path.endswith("/converse-stream"):
        return unquote(path.split("/")[-2])
    return path.rpartition("/")[2].partition(":")[0]


async def _no_wait(seconds: float) -> None:
    await anyio.lowlevel.checkpoint()


@asynccontextmanager
async def oracle_world(
    folder: Path, world: OracleWorld | None = None
) -> AsyncGenerator[tuple[App, OracleWorld]]:
    """An application whose every vendor is on loopback, with a project of a few files."""
    world = world or OracleWorld()
    async with vendor_server(folder, world) as opened, opened("memory") as app:
        yield app, world


@asynccontextmanager
async def vendor_server(
    folder: Path, world: OracleWorld
) -> AsyncGenerator[Callable[[str | Path], App]]:
    """The vendors on loopback, and what opens an application on a store whose vendors they are."""
    if world.by_types:
        load_types()

    async def handler(line: LoopbackConnection) -> None:
        while asked := await line.request():
            world.receive(asked)
            protocol, body = protocol_of(asked), json.loads(asked.body)
            provider = provider_of(asked)
            model = body.get("model") or model_in(asked.path)
            if provider == "vertex" and protocol == "anthropic":
                body = of_vertex(body, model)
            world.judge(provider, protocol, model, body)
            voice, plan = world.answer(provider, protocol, model, body)
            if world.gate is not None:
                await world.gate.wait()
            await send_plan(line, voice, plan)

    project = folder / "project"
    project.mkdir()
    (project / "a.txt").write_text("first line\nsecond line\n")
    (project / "AGENTS.md").write_text("Be brief.\n")
    (project / "picture.png").write_bytes(png())
    (project / "paper.pdf").write_bytes(pdf("Hello there", "The end"))
    async with serving(handler) as server:
        environ = {
            "HOME": str(folder),
            "WEFT_HOME": str(folder / "home"),
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": server.url,
            "OPENAI_API_KEY": KEY,
            "OPENAI_BASE_URL": f"{server.url}/v1",
            "GEMINI_API_KEY": KEY,
            "GOOGLE_GEMINI_BASE_URL": server.url,
            "OLLAMA_HOST": server.url,
            "AWS_BEARER_TOKEN_BEDROCK": KEY,
        }
        chosen = {
            "model.default": "anthropic:claude-sonnet-5-5",
            "providers": {
                "bedrock": {"base_url": server.url},
                "azure": {"base_url": server.url, "key": KEY},
                "vertex": {"base_url": server.url, "key": KEY, "project": "p"},
            },
        }

        def opened(store: str | Path) -> App:
            return weft.open(project, store, chosen, environ=environ, sleep=_no_wait)

        yield opened


def png() -> bytes:
    """A picture of four pixels, whole enough for any reader."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    head = struct.pack(">IIBBBBB", 2, 2, 8, 2, 0, 0, 0)
    rows = zlib.compress(b"\0" + bytes(6) + b"\0" + bytes(6))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        [chunk(b"IHDR", head), chunk(b"IDAT", rows), chunk(b"IEND", b"")]
    )
