"""A server on loopback that plays a vendor's model for other agents: it asks for one shell command,
and says "Done." to everything after it.

It speaks the three protocols that agents use: Anthropic's Messages, and OpenAI's Chat Completions
and Responses, each as a stream of events.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

SHELLS: Final = ("bash", "shell", "exec_command", "shell_command", "run_shell_command", "terminal")
WORDS: Final = ("command", "cmd", "script")
DONE: Final = "Done."


def shell_call(tools: list[dict[str, Any]], command: str) -> tuple[str, dict[str, Any]] | None:
    """The name of a shell among an agent's tools, and its arguments for a command."""
    for tool in tools:
        named = tool.get("function") or tool
        name = str(named.get("name", ""))
        schema = named.get("input_schema") or named.get("parameters") or {}
        known = schema.get("properties") or {}
        word = next((each for each in WORDS if each in known), "")
        if name.lower() in SHELLS and word:
            is_list = known[word].get("type") == "array"
            given: dict[str, Any] = {word: ["bash", "-c", command] if is_list else command}
            for needed in schema.get("required", ()):
                given.setdefault(needed, "run it" if known[needed].get("type") == "string" else 60)
            return name, given
    return None


def messages_events(call: tuple[str, dict[str, Any]] | None) -> Iterator[dict[str, Any]]:
    """Anthropic's Messages."""
    usage = {"input_tokens": 10, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted"}
    yield {"type": "message_start", "message": {**message, "content": [], "usage": usage}}
    if call is None:
        block: dict[str, Any] = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": DONE}
    else:
        block = {"type": "tool_use", "id": "toolu_1", "name": call[0], "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(call[1])}
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    why = "end_turn" if call is None else "tool_use"
    stop = {"stop_reason": why, "stop_sequence": None}
    yield {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 9}}
    yield {"type": "message_stop"}


def chat_events(call: tuple[str, dict[str, Any]] | None) -> Iterator[dict[str, Any]]:
    """OpenAI's Chat Completions."""
    if call is None:
        delta: dict[str, Any] = {"role": "assistant", "content": DONE}
    else:
        named = {"name": call[0], "arguments": json.dumps(call[1])}
        one = {"index": 0, "id": "call_1", "type": "function", "function": named}
        delta = {"role": "assistant", "content": None, "tool_calls": [one]}
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "scripted"}
    yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    why = "stop" if call is None else "tool_calls"
    usage = {"prompt_tokens": 10, "completion_tokens": 9, "total_tokens": 19}
    yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": why}], "usage": usage}


def responses_events(call: tuple[str, dict[str, Any]] | None) -> Iterator[dict[str, Any]]:
    """OpenAI's Responses."""
    if call is None:
        part = {"type": "output_text", "text": DONE, "annotations": []}
        item: dict[str, Any] = {"type": "message", "id": "m1", "role": "assistant"}
        item |= {"status": "completed", "content": [part]}
    else:
        item = {"type": "function_call", "id": "f1", "call_id": "call_1", "name": call[0]}
        item |= {"arguments": json.dumps(call[1]), "status": "completed"}
    about: dict[str, Any] = {"id": "r1", "object": "response", "model": "scripted", "output": []}
    yield {"type": "response.created", "response": {**about, "status": "in_progress"}}
    yield {"type": "response.output_item.added", "output_index": 0, "item": item}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    usage = {"input_tokens": 10, "output_tokens": 9, "total_tokens": 19}
    ended = {**about, "status": "completed", "output": [item], "usage": usage}
    yield {"type": "response.completed", "response": ended}


ENDS: Final = {
    "/messages": messages_events,
    "/chat/completions": chat_events,
    "/responses": responses_events,
}


class ScriptedVendor(ThreadingHTTPServer):
    """The server; it asks for `command` once in each conversation."""

    daemon_threads = True

    def __init__(self, command: str) -> None:
        super().__init__(("127.0.0.1", 0), VendorHandler)
        self.command = command

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_port}"


class VendorHandler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer a model call; anything else of the vendor's is empty."""
        asked = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        path = self.path.partition("?")[0]
        events = next((ENDS[end] for end in ENDS if path.endswith(end)), None)
        if events is None:
            self._send(b"{}", "application/json")
            return
        assert isinstance(self.server, ScriptedVendor)
        was_asked = "tool_result" in str(asked) or "call_1" in str(asked)
        call = None if was_asked else shell_call(asked.get("tools") or [], self.server.command)
        lines: list[str] = []
        for each in events(call):
            named = f"event: {each['type']}\n" if "type" in each else ""
            lines.append(f"{named}data: {json.dumps(each)}\n\n")
        if path.endswith("/chat/completions"):
            lines.append("data: [DONE]\n\n")
        self._send("".join(lines).encode(), "text/event-stream")

    def do_GET(self) -> None:
        """The list of models, and whatever else is asked for."""
        self._send(b'{"data": [{"id": "scripted"}], "models": []}', "application/json")

    def _send(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def scripted_vendor(command: str) -> Iterator[ScriptedVendor]:
    """A running server."""
    server = ScriptedVendor(command)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
