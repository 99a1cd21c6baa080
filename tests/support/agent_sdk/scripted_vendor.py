"""A server that answers as Anthropic's does, with answers that a test gives: for the CLI that the
Agent SDK brings."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

Step: TypeAlias = str | tuple[str, dict[str, Any]]
"""A text, or the name of a tool and its input."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    answers: list[Sequence[Step]]
    seen: list[dict[str, Any]]


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._reply(b"{}", "application/json")

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if "/messages" not in self.path or "count_tokens" in self.path:
            self._reply(b'{"input_tokens": 100}', "application/json")
            return
        asked = json.loads(body)
        self.server.seen.append(asked)
        # Titles and the like are asked for without tools.
        has_turn = bool(asked.get("tools")) and bool(self.server.answers)
        steps = self.server.answers.pop(0) if has_turn else ["ok"]
        if asked.get("stream"):
            self._reply(_events(steps, asked["model"]), "text/event-stream")
        else:
            self._reply(json.dumps(_message(asked["model"])).encode(), "application/json")

    def _reply(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _message(model: str) -> dict[str, Any]:
    content = [{"type": "text", "text": "ok"}]
    usage = {"input_tokens": 10, "output_tokens": 1}
    plain = {"id": "msg_1", "type": "message", "role": "assistant", "model": model}
    return {**plain, "content": content, "stop_reason": "end_turn", "usage": usage}


def _events(steps: Sequence[Step], model: str) -> bytes:
    lines: list[str] = []

    def event(kind: str, **fields: Any) -> None:
        lines.append(f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n")

    event("message_start", message={**_message(model), "content": [], "stop_reason": None})
    for index, step in enumerate(steps):
        if isinstance(step, str):
            block: dict[str, Any] = {"type": "text", "text": ""}
            delta = {"type": "text_delta", "text": step}
        else:
            block = {"type": "tool_use", "id": f"toolu_{index}_{id(step)}", "name": step[0]}
            block["input"] = {}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(step[1])}
        event("content_block_start", index=index, content_block=block)
        event("content_block_delta", index=index, delta=delta)
        event("content_block_stop", index=index)
    calls = any(not isinstance(step, str) for step in steps)
    event(
        "message_delta",
        delta={"stop_reason": "tool_use" if calls else "end_turn"},
        usage={"output_tokens": 5},
    )
    event("message_stop")
    return "".join(lines).encode()


@contextmanager
def scripted_vendor(answers: Sequence[Sequence[Step]]) -> Iterator[tuple[str, list[Any]]]:
    """A server on loopback; its address, and the requests that it got."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.answers, server.seen = list(answers), []
    serving = threading.Thread(target=server.serve_forever, daemon=True)
    serving.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", server.seen
    finally:
        server.shutdown()
        server.server_close()
        serving.join()
