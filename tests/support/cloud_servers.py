"""Clouds on loopback: Bedrock's event frames, and Google's tokens."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator
from typing import Any

from tests.support.loopback_server import LoopbackConnection
from tests.support.vendor_servers import AnthropicWire, VendorWire, pieces
from weft.messages import Usage
from weft.providers.script import SayText, Think


def frame(headers: dict[str, str], payload: bytes) -> bytes:
    """One frame of an AWS event stream, written from its specification."""
    packed = b"".join(
        bytes([len(name)])
        + name.encode()
        + b"\x07"
        + len(value).to_bytes(2, "big")
        + value.encode()
        for name, value in headers.items()
    )
    total = 12 + len(packed) + len(payload) + 4
    prelude = total.to_bytes(4, "big") + len(packed).to_bytes(4, "big")
    head = prelude + zlib.crc32(prelude).to_bytes(4, "big")
    message = head + packed + payload
    return message + zlib.crc32(message).to_bytes(4, "big")


def chunk_frame(event: dict[str, object]) -> bytes:
    """An event of the Messages API as Bedrock sends it."""
    inner = base64.b64encode(json.dumps(event).encode()).decode()
    headers = {
        ":event-type": "chunk",
        ":content-type": "application/json",
        ":message-type": "event",
    }
    return frame(headers, json.dumps({"bytes": inner, "p": "abc"}).encode())


def exception_frame(kind: str, message: str) -> bytes:
    headers = {
        ":exception-type": kind,
        ":content-type": "application/json",
        ":message-type": "exception",
    }
    return frame(headers, json.dumps({"message": message}).encode())


def answer_frames(text: str) -> list[bytes]:
    """A whole answer."""
    voice = AnthropicWire()
    usage = Usage(input_tokens=11, output_tokens=7, cache_read_tokens=5)
    events = [*voice.start(), *voice.text(SayText(text=text)), *voice.end("stop", usage)]
    data = (event.decode().partition("data: ")[2].strip() for event in events)
    return [chunk_frame(json.loads(each)) for each in data]


async def send_frames(line: LoopbackConnection, frames: list[bytes]) -> None:
    """The frames as one stream, cut where no frame ends."""
    kind = "content-type: application/vnd.amazon.eventstream\r\ntransfer-encoding: chunked\r\n"
    await line.send(f"HTTP/1.1 200 OK\r\n{kind}\r\n".encode())
    data = b"".join(frames)
    for at in range(0, len(data), 100):
        await line.chunk(data[at : at + 100])
    await line.end_chunks()


def converse_frame(kind: str, payload: dict[str, object]) -> bytes:
    """An event of Converse."""
    headers = {
        ":event-type": kind,
        ":content-type": "application/json",
        ":message-type": "event",
    }
    return frame(headers, json.dumps({**payload, "p": "abcd"}).encode())


class ConverseWire(VendorWire):
    """Bedrock's Converse; `number` tells the ids of one answer's calls from those of others."""

    content_type = "application/vnd.amazon.eventstream"

    def __init__(self, number: int = 1) -> None:
        self._number = number
        self._blocks = 0

    def start(self) -> Iterator[bytes]:
        yield converse_frame("messageStart", {"role": "assistant"})

    def _block(
        self, deltas: list[dict[str, object]], start: dict[str, object] | None = None
    ) -> Iterator[bytes]:
        at: dict[str, object] = {"contentBlockIndex": self._blocks}
        self._blocks += 1
        if start is not None:
            yield converse_frame("contentBlockStart", {**at, "start": start})
        for delta in deltas:
            yield converse_frame("contentBlockDelta", {**at, "delta": delta})
        yield converse_frame("contentBlockStop", at)

    def text(self, step: SayText) -> Iterator[bytes]:
        return self._block([{"text": piece} for piece in pieces(step.text, step.chunk)])

    def think(self, step: Think) -> Iterator[bytes]:
        said: list[dict[str, object]] = [{"text": each} for each in pieces(step.text, step.chunk)]
        said.append({"signature": step.signature})
        return self._block([{"reasoningContent": each} for each in said])

    def call(self, name: str, args: str, chunk: int) -> Iterator[bytes]:
        used = {"toolUseId": f"tooluse_{self._number}_{self._blocks}", "name": name}
        deltas: list[dict[str, object]] = [
            {"toolUse": {"input": piece}} for piece in pieces(args, chunk)
        ]
        return self._block(deltas, {"toolUse": used})

    def end(self, reason: str, usage: Usage) -> Iterator[bytes]:
        said = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}[reason]
        yield converse_frame("messageStop", {"stopReason": said})
        counts = {
            "inputTokens": usage.input_tokens,
            "outputTokens": usage.output_tokens,
            "totalTokens": usage.input_tokens + usage.output_tokens + usage.cache_read_tokens,
            "cacheReadInputTokens": usage.cache_read_tokens,
        }
        yield converse_frame("metadata", {"usage": counts, "metrics": {"latencyMs": 9}})

    def error(self, status: int, message: str) -> dict[str, Any]:
        return {"message": message}


def converse_answer(*deltas: dict[str, object], reason: str = "end_turn") -> list[bytes]:
    """A whole answer of Converse: each delta is a block of its own; a call is `{"call": (id, name),
    "toolUse": …}`.
    """
    frames = [converse_frame("messageStart", {"role": "assistant"})]
    for index, given in enumerate(deltas):
        at: dict[str, object] = {"contentBlockIndex": index}
        called = given.get("call")
        if isinstance(called, tuple):
            start = {"toolUse": {"toolUseId": called[0], "name": called[1]}}
            frames.append(converse_frame("contentBlockStart", {**at, "start": start}))
        delta = {name: value for name, value in given.items() if name != "call"}
        if delta:
            frames.append(converse_frame("contentBlockDelta", {**at, "delta": delta}))
        frames.append(converse_frame("contentBlockStop", at))
    frames.append(converse_frame("messageStop", {"stopReason": reason}))
    usage = {"inputTokens": 11, "outputTokens": 7, "totalTokens": 23, "cacheReadInputTokens": 5}
    frames.append(converse_frame("metadata", {"usage": usage, "metrics": {"latencyMs": 9}}))
    return frames
