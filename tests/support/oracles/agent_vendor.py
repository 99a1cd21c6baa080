"""A model's server for the programs of other agents: it has a file read, or a helper asked, and
says that it is done; by three vendors' protocols, and without any memory."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

READ: Final = "Read the file notes.txt."
DELEGATE: Final = "Have a helper look."
LOOK: Final = "Look at the notes."
DONE: Final = "It is done."
SEEN: Final = "I see notes."
_NUMBERS: Final = itertools.count(1)
_READERS: Final = ("Read", "read", "exec_command", "shell", "shell_command")
_HELPERS: Final = ("Task", "Agent")

Json = dict[str, Any]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._reply(b'{"data": [], "models": []}', "application/json")

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        path = self.path.partition("?")[0]
        if path.endswith("/messages"):
            events = _anthropic(asked)
        elif path.endswith("/responses"):
            events = _responses(asked)
        elif path.endswith("/chat/completions"):
            events = _chat(asked)
        else:
            self._reply(b'{"input_tokens": 10}', "application/json")
            return
        text = "".join(
            f"{f'event: {name}' + chr(10) if name else ''}data: {json.dumps(data)}\n\n"
            for name, data in events
        )
        self._reply((text + "data: [DONE]\n\n").encode(), "text/event-stream")

    def _reply(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _step(said: str, has_result: bool, tools: dict[str, Json]) -> str | tuple[str, Json]:
    """What comes next: a text, or a tool with its arguments."""
    if has_result or not tools:
        return DONE
    if LOOK in said:
        return SEEN
    if DELEGATE in said and (helper := next((each for each in _HELPERS if each in tools), "")):
        kind = {"subagent_type": "general-purpose"}
        return helper, {"description": "look", "prompt": LOOK, **kind}
    reader = next((each for each in _READERS if each in tools), "")
    if READ not in said or not reader:
        return DONE
    fields = tools[reader].get("properties", {})
    if "cmd" in fields:
        return reader, {"cmd": "cat notes.txt"}
    if "command" in fields:
        is_list = fields["command"].get("type") == "array"
        line: Any = ["bash", "-lc", "cat notes.txt"] if is_list else "cat notes.txt"
        return reader, {"command": line}
    key = next(each for each in ("file_path", "filePath", "path") if each in fields)
    return reader, {key: "notes.txt"}


def _anthropic(asked: Json) -> Iterator[tuple[str, Json]]:
    messages = asked["messages"]
    has_result = "tool_result" in json.dumps(messages[-1])
    tools = {each["name"]: each.get("input_schema", {}) for each in asked.get("tools") or ()}
    step = _step(json.dumps(messages[0]), has_result, tools)
    number = next(_NUMBERS)
    usage = {"input_tokens": 100, "output_tokens": 1}
    message: Json = {"id": f"msg_{number}", "type": "message", "role": "assistant", "content": []}
    message |= {"model": asked["model"], "stop_reason": None, "usage": usage}
    block: Json = {"type": "text", "text": ""}
    delta: Json = {"type": "text_delta", "text": step}
    if not isinstance(step, str):
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": step[0], "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(step[1])}
    reason = "end_turn" if isinstance(step, str) else "tool_use"
    for event in (
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage},
        {"type": "message_stop"},
    ):
        yield str(event["type"]), event


def _responses(asked: Json) -> Iterator[tuple[str, Json]]:
    given = asked["input"] if isinstance(asked["input"], list) else []
    has_result = any(str(each.get("type", "")).endswith("_output") for each in given)
    tools = {
        each["name"]: each.get("parameters") or {}
        for each in asked.get("tools") or ()
        if each.get("type") == "function"
    }
    step = _step(json.dumps(given), has_result, tools)
    number = next(_NUMBERS)
    item: Json = {"type": "message", "role": "assistant", "id": f"msg_{number}"}
    item["content"] = [{"type": "output_text", "text": step, "annotations": []}]
    if not isinstance(step, str):
        item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}"}
        item |= {"name": step[0], "arguments": json.dumps(step[1])}
    usage: Json = {"input_tokens": 100, "output_tokens": 1, "total_tokens": 101}
    usage |= {"input_tokens_details": {"cached_tokens": 0}}
    response = {"id": f"resp_{number}", "output": [item], "usage": usage}
    for event in (
        {"type": "response.created", "response": {"id": f"resp_{number}"}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": response},
    ):
        yield str(event["type"]), event


def _chat(asked: Json) -> Iterator[tuple[str, Json]]:
    messages = asked["messages"]
    has_result = messages[-1]["role"] == "tool"
    tools = {
        each["function"]["name"]: each["function"].get("parameters") or {}
        for each in asked.get("tools") or ()
    }
    step = _step(json.dumps(messages), has_result, tools)
    number = next(_NUMBERS)
    delta: Json = {"role": "assistant", "content": step}
    if not isinstance(step, str):
        function = {"name": step[0], "arguments": json.dumps(step[1])}
        call = {"index": 0, "id": f"call_{number}", "type": "function", "function": function}
        delta = {"role": "assistant", "tool_calls": [call]}
    head = {"id": f"chat_{number}", "object": "chat.completion.chunk", "model": asked["model"]}
    reason = "stop" if isinstance(step, str) else "tool_calls"
    yield "", {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield "", {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}
    usage = {"prompt_tokens": 100, "completion_tokens": 1, "total_tokens": 101}
    yield "", {**head, "choices": [], "usage": usage}


@contextmanager
def agent_vendor() -> Iterator[str]:
    """The server on loopback; its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    serving = threading.Thread(target=server.serve_forever, daemon=True)
    serving.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        serving.join()
