"""Prompt caching over a long session: nearly all of each request is what the one before began with.

Vendors cache by the beginning of a request: tools and system prompt, then the conversation.  What
is measured is the share of its bytes, in the order in which each vendor reads them, that the
request before had at the same place.  Marks for the cache are left out: they tell where to cache,
and are no part of what is cached.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

import weft
from tests.support.cloud_servers import converse_answer, send_frames
from tests.support.loopback_server import LoopbackConnection, serving
from tests.support.vendor_servers import KEY, VENDOR_WIRES, send_plan
from weft.app import App
from weft.clock import ManualClock
from weft.providers.script import CallTool, SayText, ScriptedAnswer, Step

pytestmark = [pytest.mark.anyio, pytest.mark.process]
Json = dict[str, Any]
LEAST_SHARE = 0.97
TURNS = 20
DAY = 24 * 3600.0
MODELS = {
    "anthropic": "claude-sonnet-5-5",
    "openai": "gpt-6.1-sol",
    "openai-chat": "gpt-5",
    "google": "gemini-3.8-flash",
    "ollama": "qwen3:8b",
    "bedrock": "amazon.nova-pro-v1:0",
}
ORDER = {
    "anthropic": ("tools", "system", "messages"),
    "openai": ("tools", "instructions", "input"),
    "openai-chat": ("tools", "messages"),
    "google": ("tools", "systemInstruction", "contents"),
    "ollama": ("tools", "messages"),
    "bedrock": ("toolConfig", "system", "messages"),
}
"""The fields of a request in the order in which they are cached."""
ANSWER = "I have looked at it, and this is what it does: it counts. " * 6


class Vendor:
    """Answers each turn with two rounds of calls and a text; keeps what it was sent."""

    def __init__(self, protocol: str) -> None:
        self.protocol = protocol
        self.bodies: list[Json] = []

    def steps(self) -> tuple[Step, ...]:
        turn, part = divmod(len(self.bodies) - 1, 3)
        match part:
            case 0:
                call = CallTool(name="read", args={"path": f"module_{turn}.py"})
            case 1:
                call = CallTool(name="grep", args={"pattern": f"def step_{turn}_"})
            case _:
                return (SayText(text=ANSWER),)
        return (SayText(text="I look."), call)

    async def handle(self, line: LoopbackConnection) -> None:
        while asked := await line.request():
            self.bodies.append(json.loads(asked.body))
            steps = self.steps()
            if self.protocol == "bedrock":
                await send_frames(line, converse_frames(steps, len(self.bodies)))
            else:
                wire = VENDOR_WIRES[self.protocol]()
                await send_plan(line, wire, ScriptedAnswer(steps=steps))


def converse_frames(steps: tuple[Step, ...], number: int) -> list[bytes]:
    deltas: list[dict[str, object]] = []
    for step in steps:
        if isinstance(step, SayText):
            deltas.append({"text": step.text})
        elif isinstance(step, CallTool):
            args = json.dumps(step.args)
            deltas.append({"call": (f"t-{number}", step.name), "toolUse": {"input": args}})
    return converse_answer(*deltas, reason="tool_use" if len(deltas) > 1 else "end_turn")


async def no_wait(seconds: float) -> None:
    await anyio.lowlevel.checkpoint()


@asynccontextmanager
async def talking(folder: Path, vendor: Vendor, clock: ManualClock) -> AsyncGenerator[App]:
    async with serving(vendor.handle) as server:
        environ = {
            "HOME": str(folder),
            "WEFT_HOME": str(folder / "home"),
            "PATH": os.environ["PATH"],
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": server.url,
            "OPENAI_API_KEY": KEY,
            "OPENAI_BASE_URL": f"{server.url}/v1",
            "GEMINI_API_KEY": KEY,
            "GOOGLE_GEMINI_BASE_URL": server.url,
            "OLLAMA_HOST": server.url,
            "AWS_BEARER_TOKEN_BEDROCK": KEY,
        }
        config: Json = {
            "model.default": f"{vendor.protocol}:{MODELS[vendor.protocol]}",
            "providers": {"bedrock": {"base_url": server.url}},
        }
        project = folder / "project"
        async with weft.open(
            project, "memory", config, environ=environ, sleep=no_wait, clock=clock
        ) as app:
            yield app


def make_project(project: Path) -> None:
    project.mkdir()
    (project / "AGENTS.md").write_text("Be brief.\n")
    for turn in range(TURNS):
        lines = [f"def step_{turn}_{line}(): return {line}\n" for line in range(12)]
        (project / f"module_{turn}.py").write_text("".join(lines))
    who = ("-c", "user.name=A", "-c", "user.email=a@b")
    for args in (("init", "-q", "-b", "main"), ("add", "-A"), (*who, "commit", "-qm", "x")):
        subprocess.run(["git", *args], cwd=project, check=True)


def without_marks(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without_marks(v) for k, v in value.items() if k != "cache_control"}
    return [without_marks(each) for each in value] if isinstance(value, list) else value


def pieces(protocol: str, body: Json) -> Iterator[Any]:
    """The parts of a request in the order in which they are cached, each message by its blocks."""
    for field in ORDER[protocol]:
        value = without_marks(body.get(field))
        for item in value if isinstance(value, list) else [value]:
            blocks = item.get("content", item.get("parts")) if isinstance(item, dict) else None
            if not isinstance(blocks, list):
                yield item
                continue
            yield item.get("role")
            yield from blocks


def cached_bytes(protocol: str, body: Json) -> bytes:
    return b"".join(json.dumps(each).encode() for each in pieces(protocol, body))


def common(one: bytes, other: bytes) -> int:
    """How many bytes both begin with."""
    if other.startswith(one):
        return len(one)
    return next(at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)


@pytest.mark.parametrize("protocol", MODELS)
async def test_97_percent_of_a_long_session_is_read_from_the_cache(
    protocol: str, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    make_project(project)
    vendor = Vendor(protocol)
    clock = ManualClock()
    async with talking(tmp_path, vendor, clock) as app:
        session = await app.sessions.start_session()
        for turn in range(TURNS):
            match turn:
                case 4:
                    await session.set_permission_mode("accept_edits")
                case 7:
                    (project / "AGENTS.md").write_text("Be brief, and kind.\n")
                case 10:
                    clock.advance(DAY)
                case 13:
                    (project / "module_0.py").write_text("# changed\n")
                case 16:
                    (project / ".git" / "HEAD").write_text("ref: refs/heads/other\n")
                case 18:
                    await session.set_permission_mode("default")
                case _:
                    pass
            with anyio.fail_after(120):
                reply = await session.send_message(f"Look at step {turn}.")
            assert reply.finish_reason == "stop"
    sent = [cached_bytes(protocol, body) for body in vendor.bodies]
    assert len(sent) == 3 * TURNS
    again = sum(common(*pair) for pair in pairwise(sent))
    share = again / sum(map(len, sent[1:]))
    print(f"{protocol}: {share:.2%} of {sum(map(len, sent)):,} bytes")
    # Every request goes on where the one before ended: nothing that was sent is sent otherwise.
    broken = [at for at, (one, other) in enumerate(pairwise(sent), 1) if not other.startswith(one)]
    assert broken == []
    assert share >= LEAST_SHARE, f"{share:.4f}"
    told = json.dumps(vendor.bodies[-1])
    for news in ("accept_edits", "and kind", "2 files (AGENTS.md, module_0.py)", "on branch other"):
        assert news in told
