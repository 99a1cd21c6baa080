"""Vendors on loopback: servers that stream a plan in each vendor's own protocol.

Written from the vendors' documentation of their streams, so that the decoders are tested against
something that was not derived from them.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol, TypeAlias

import anyio

from tests.support.loopback_server import LoopbackConnection, serving
from weft.messages import Usage
from weft.providers.base import Model
from weft.providers.catalogue import shipped
from weft.providers.credentials import ProviderAccess
from weft.providers.script import (
    Break,
    CallRaw,
    CallTogether,
    CallTool,
    EndEarly,
    Fail,
    Finish,
    SayText,
    ScriptedAnswer,
    Spend,
    Stall,
    Step,
    Think,
)
from weft.providers.vendors import make_provider
from weft.transport import HttpClient

Json: TypeAlias = dict[str, Any]
KEY = "sk-test-0123456789abcdef"


def sse(value: object, name: str = "") -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(value)}\n\n".encode()


def pieces(text: str, chunk: int) -> Iterator[str]:
    size = chunk or len(text) or 1
    for at in range(0, len(text), size):
        yield text[at : at + size]


class VendorWire(Protocol):
    """How one vendor says things; each method gives whole events."""

    content_type: str

    def start(self) -> Iterator[bytes]: ...
    def text(self, step: SayText) -> Iterator[bytes]: ...
    def think(self, step: Think) -> Iterator[bytes]: ...
    def call(self, name: str, args: str, chunk: int) -> Iterator[bytes]: ...
    def end(self, reason: str, usage: Usage) -> Iterator[bytes]: ...
    def error(self, status: int, message: str) -> Json: ...


class AnthropicWire(VendorWire):
    content_type = "text/event-stream"

    def __init__(self) -> None:
        self._blocks = 0

    def start(self) -> Iterator[bytes]:
        message = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
        usage = {"input_tokens": 11, "output_tokens": 1, "cache_read_input_tokens": 5}
        yield sse(
            {"type": "message_start", "message": {**message, "usage": usage}}, "message_start"
        )
        yield sse({"type": "ping"}, "ping")

    def _block(self, block: Json, deltas: list[Json]) -> Iterator[bytes]:
        index = self._blocks
        self._blocks += 1
        start = {"type": "content_block_start", "index": index, "content_block": block}
        yield sse(start, "content_block_start")
        for delta in deltas:
            event = {"type": "content_block_delta", "index": index, "delta": delta}
            yield sse(event, "content_block_delta")
        yield sse({"type": "content_block_stop", "index": index}, "content_block_stop")

    def text(self, step: SayText) -> Iterator[bytes]:
        deltas = [{"type": "text_delta", "text": t} for t in pieces(step.text, step.chunk)]
        return self._block({"type": "text", "text": ""}, deltas)

    def think(self, step: Think) -> Iterator[bytes]:
        deltas = [{"type": "thinking_delta", "thinking": t} for t in pieces(step.text, step.chunk)]
        deltas.append({"type": "signature_delta", "signature": step.signature})
        return self._block({"type": "thinking", "thinking": "", "signature": ""}, deltas)

    def call(self, name: str, args: str, chunk: int) -> Iterator[bytes]:
        block = {"type": "tool_use", "id": f"toolu_{self._blocks}", "name": name, "input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": t} for t in pieces(args, chunk)]
        return self._block(block, deltas)

    def end(self, reason: str, usage: Usage) -> Iterator[bytes]:
        said = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}[reason]
        delta = {"stop_reason": said, "stop_sequence": None}
        counts = {"output_tokens": usage.output_tokens}
        yield sse({"type": "message_delta", "delta": delta, "usage": counts}, "message_delta")
        yield sse({"type": "message_stop"}, "message_stop")

    def error(self, status: int, message: str) -> Json:
        return {"type": "error", "error": {"type": "some_error", "message": message}}


class ResponsesWire(VendorWire):
    content_type = "text/event-stream; charset=utf-8"

    def __init__(self) -> None:
        self._items = 0

    def start(self) -> Iterator[bytes]:
        yield sse({"type": "response.created", "response": {"id": "resp_1"}}, "response.created")

    def _event(self, kind: str, **more: Any) -> bytes:
        return sse({"type": kind, "sequence_number": 1, **more}, kind)

    def text(self, step: SayText) -> Iterator[bytes]:
        place = self._items
        self._items += 1
        item = {"type": "message", "id": "msg_1", "role": "assistant", "content": []}
        yield self._event("response.output_item.added", output_index=place, item=item)
        for text in pieces(step.text, step.chunk):
            yield self._event("response.output_text.delta", output_index=place, delta=text)
        yield self._event("response.output_text.done", output_index=place, text=step.text)
        yield self._event("response.output_item.done", output_index=place, item=item)

    def think(self, step: Think) -> Iterator[bytes]:
        place = self._items
        self._items += 1
        item = {"type": "reasoning", "id": "rs_1", "summary": []}
        yield self._event("response.output_item.added", output_index=place, item=item)
        at = {"output_index": place, "summary_index": 0}
        yield self._event("response.reasoning_summary_part.added", **at)
        for text in pieces(step.text, step.chunk):
            yield self._event("response.reasoning_summary_text.delta", delta=text, **at)
        done = {**item, "encrypted_content": step.signature}
        yield self._event("response.output_item.done", output_index=place, item=done)

    def call(self, name: str, args: str, chunk: int) -> Iterator[bytes]:
        place = self._items
        self._items += 1
        item = {"type": "function_call", "id": f"fc_{place}", "call_id": f"call_{place}"}
        begun = {**item, "name": name, "arguments": ""}
        yield self._event("response.output_item.added", output_index=place, item=begun)
        kind = "response.function_call_arguments"
        for text in pieces(args, chunk):
            yield self._event(f"{kind}.delta", output_index=place, delta=text)
        yield self._event(f"{kind}.done", output_index=place, arguments=args)
        done = {**item, "name": name, "arguments": args}
        yield self._event("response.output_item.done", output_index=place, item=done)

    def end(self, reason: str, usage: Usage) -> Iterator[bytes]:
        counts = {
            "input_tokens": usage.input_tokens + usage.cache_read_tokens,
            "input_tokens_details": {"cached_tokens": usage.cache_read_tokens},
            "output_tokens": usage.output_tokens,
            "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        }
        kind = "response.incomplete" if reason == "length" else "response.completed"
        cut = {"reason": "max_output_tokens"} if reason == "length" else None
        response = {"id": "resp_1", "usage": counts, "incomplete_details": cut, "error": None}
        yield self._event(kind, response=response)

    def error(self, status: int, message: str) -> Json:
        return {"error": {"message": message, "type": "some_error", "param": None, "code": None}}


class ChatWire(VendorWire):
    content_type = "text/event-stream"

    def __init__(self) -> None:
        self._calls = 0

    def _chunk(self, delta: Json, reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return sse({"id": "c1", "object": "chat.completion.chunk", "choices": [choice]})

    def start(self) -> Iterator[bytes]:
        yield b": OPENROUTER PROCESSING\n\n"
        yield self._chunk({"role": "assistant", "content": ""})

    def text(self, step: SayText) -> Iterator[bytes]:
        for text in pieces(step.text, step.chunk):
            yield self._chunk({"content": text})

    def think(self, step: Think) -> Iterator[bytes]:
        for text in pieces(step.text, step.chunk):
            yield self._chunk({"reasoning_content": text, "content": None})

    def call(self, name: str, args: str, chunk: int) -> Iterator[bytes]:
        place = self._calls
        self._calls += 1
        begun = {"name": name, "arguments": ""}
        head = {"index": place, "id": f"call_{place}", "type": "function", "function": begun}
        yield self._chunk({"tool_calls": [head]})
        for text in pieces(args, chunk):
            yield self._chunk({"tool_calls": [{"index": place, "function": {"arguments": text}}]})

    def end(self, reason: str, usage: Usage) -> Iterator[bytes]:
        yield self._chunk({}, reason)
        counts = {
            "prompt_tokens": usage.input_tokens + usage.cache_read_tokens,
            "completion_tokens": usage.output_tokens,
            "prompt_tokens_details": {"cached_tokens": usage.cache_read_tokens},
        }
        yield sse({"id": "c1", "choices": [], "usage": counts})
        yield b"data: [DONE]\n\n"

    def error(self, status: int, message: str) -> Json:
        return {"error": {"message": message, "type": "some_error", "param": None, "code": None}}


class GeminiWire(VendorWire):
    content_type = "text/event-stream"

    def _chunk(self, part: Json, **more: Any) -> bytes:
        content = {"role": "model", "parts": [part]}
        return sse({"candidates": [{"content": content, "index": 0, **more}]})

    def start(self) -> Iterator[bytes]:
        return iter(())

    def text(self, step: SayText) -> Iterator[bytes]:
        for text in pieces(step.text, step.chunk):
            yield self._chunk({"text": text})

    def think(self, step: Think) -> Iterator[bytes]:
        for text in pieces(step.text, step.chunk):
            yield self._chunk({"text": text, "thought": True})

    def call(self, name: str, args: str, chunk: int) -> Iterator[bytes]:
        yield self._chunk({"functionCall": {"name": name, "args": json.loads(args)}})

    def end(self, reason: str, usage: Usage) -> Iterator[bytes]:
        counts = {
            "promptTokenCount": usage.input_tokens + usage.cache_read_tokens,
            "cachedContentTokenCount": usage.cache_read_tokens,
            "candidatesTokenCount": usage.output_tokens,
        }
        why = "MAX_TOKENS" if reason == "length" else "STOP"
        candidate = {"content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": why}
        yield sse({"candidates": [candidate], "usageMetadata": counts})

    def error(self, status: int, message: str) -> Json:
        return {"error": {"code": status, "message": message, "status": "SOME"}}


class OllamaWire(VendorWire):
    content_type = "application/x-ndjson"

    def _line(self, **more: Any) -> bytes:
        return json.dumps({"model": "m", "done": False, **more}).encode() + b"\n"

    def start(self) -> Iterator[bytes]:
        return iter(())

    def text(self, step: SayText) -> Iterator[bytes]:
        for text in pieces(step.text, step.chunk):
            yield self._line(message={"role": "assistant", "content": text})

    def think(self, step: Think) -> Iterator[bytes]:
        for text in pieces(step.text, step.chunk):
            yield self._line(message={"role": "assistant", "content": "", "thinking": text})

    def call(self, name: str, args: str, chunk: int) -> Iterator[bytes]:
        function = {"name": name, "arguments": json.loads(args)}
        message = {"role": "assistant", "content": "", "tool_calls": [{"function": function}]}
        yield self._line(message=message)

    def end(self, reason: str, usage: Usage) -> Iterator[bytes]:
        why = "length" if reason == "length" else "stop"
        read = usage.input_tokens + usage.cache_read_tokens
        counts = {"prompt_eval_count": read, "eval_count": usage.output_tokens}
        message = {"role": "assistant", "content": ""}
        yield self._line(message=message, done=True, done_reason=why, **counts)

    def error(self, status: int, message: str) -> Json:
        return {"error": message}


VENDOR_WIRES: dict[str, Callable[[], VendorWire]] = {
    "anthropic": AnthropicWire,
    "openai": ResponsesWire,
    "openai-chat": ChatWire,
    "google": GeminiWire,
    "ollama": OllamaWire,
    "acme": ChatWire,
}
"""`acme` is a compatible server under a name of its own."""
MODELS = {
    "anthropic": "claude-sonnet-4-6",
    "openai": "gpt-5",
    "openai-chat": "gpt-4.1",
    "google": "gemini-2.5-flash",
    "ollama": "qwen3:8b",
    "acme": "acme-1",
}


async def send_plan(line: LoopbackConnection, voice: VendorWire, plan: ScriptedAnswer) -> None:
    """Answer one request as planned."""
    first = plan.steps[0] if plan.steps else None
    if isinstance(first, Fail):
        after = first.retry_after_seconds
        headers = "content-type: application/json\r\n"
        headers += f"retry-after: {after:g}\r\n" if after is not None else ""
        body = json.dumps(voice.error(first.status or 500, first.message)).encode()
        await line.reply(body, status=first.status or 500, headers=headers)
        return
    kind = f"content-type: {voice.content_type}\r\ntransfer-encoding: chunked\r\n"
    await line.send(f"HTTP/1.1 200 OK\r\n{kind}\r\n".encode())
    for event in voice.start():
        await line.chunk(event)
    if await _steps(line, voice, plan.steps):
        await line.end_chunks()


async def _steps(line: LoopbackConnection, voice: VendorWire, steps: tuple[Step, ...]) -> bool:
    """Say the steps; false when the stream was left without its proper end."""
    usage, reason, called = (
        Usage(input_tokens=11, output_tokens=7, cache_read_tokens=5),
        "stop",
        False,
    )
    for step in steps:
        events: Iterator[bytes] = iter(())
        match step:
            case SayText():
                events = voice.text(step)
            case Think():
                events = voice.think(step)
            case CallTool() | CallRaw():
                called = True
                events = _call(voice, step)
            case CallTogether():
                called = True
                events = (event for each in step.calls for event in _call(voice, each))
            case Spend():
                usage = step.usage
            case Finish():
                reason = step.reason
            case Break():
                await line.reset()
                return False
            case EndEarly():
                return True
            case Stall():
                await line.until_gone()
                return False
            case _:
                raise NotImplementedError(step)
        for event in events:
            await line.chunk(event)
    for event in voice.end("tool_calls" if called and reason == "stop" else reason, usage):
        await line.chunk(event)
    return True


def _call(voice: VendorWire, step: CallTool | CallRaw) -> Iterator[bytes]:
    args = step.args_text if isinstance(step, CallRaw) else json.dumps(step.args)
    return voice.call(step.name, args, step.chunk)


class VendorServed:
    """A vendor's model that will stream the plan.

    `left` is set when the server notices that we are gone.
    """

    def __init__(self, model: Model, left: anyio.Event, usage: Usage) -> None:
        self.model = model
        self.left = left
        self.usage = usage


def vendor_server(
    name: str,
) -> Callable[[ScriptedAnswer], AbstractAsyncContextManager[VendorServed]]:
    """The world of one vendor."""

    @asynccontextmanager
    async def world(plan: ScriptedAnswer) -> AsyncGenerator[VendorServed]:
        async def handler(line: LoopbackConnection) -> None:
            while await line.request():
                await send_plan(line, VENDOR_WIRES[name](), plan)

        async with serving(handler) as server:
            client = HttpClient()
            access = ProviderAccess(key=KEY, base_url=server.url)
            model = make_provider(name, access, client, shipped()).model(MODELS[name])
            usage = Usage(input_tokens=11, output_tokens=7, cache_read_tokens=5)
            if name == "ollama":  # it does not tell what came from its cache
                usage = Usage(input_tokens=16, output_tokens=7)
            yield VendorServed(model, server.gone, usage)
            await client.aclose()

    return world
