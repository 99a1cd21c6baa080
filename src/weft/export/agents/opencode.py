"""Sessions of opencode: messages and their parts; what its agents did are sessions of their own.

A record here is `{"session": …}`, `{"message": …}` or `{"part": …}` as its database, its older
folder of files and its exports have them; a session of an agent comes behind the one that called.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from weft.export.agents.foreign_tree import (
    DraftNode,
    ForeignReader,
    number,
    one_line,
    table,
    time_of,
)
from weft.messages import Usage

_DATA: Final = re.compile(r"data:([a-z/+.-]+);base64,(.*)", re.DOTALL)


class OpencodeReader(ForeignReader):
    """Reads the messages of one session in their order, each with its parts behind it."""

    agent = "opencode"

    def __init__(self, now: float) -> None:
        super().__init__(now)
        self._callers: dict[str, DraftNode] = {}
        """Session of an agent → the message that called it."""
        self._node: DraftNode | None = None
        self._line: DraftNode | None = None
        self._is_aside = False
        self._is_summary = False
        self._name = ""
        self._reverted = ""

    def take(self, record: Mapping[str, Any]) -> None:
        if isinstance(about := record.get("session"), dict):
            self._begin(about)
        elif isinstance(message := record.get("message"), dict):
            self._message(message)
        elif isinstance(part := record.get("part"), dict) and self._node is not None:
            self._part(part, self._node)

    def _begin(self, about: Mapping[str, Any]) -> None:
        title = one_line(about.get("title"), 80)
        self._node = None
        self._is_aside = bool(self.foreign_id)
        if self._is_aside:
            self._line = self._callers.get(str(about.get("id")), self.tip)
            self._name = title or "agent"
            return
        self.foreign_id = str(about.get("id", ""))
        self.version = str(about.get("version", ""))
        self.folder = str(about.get("directory", ""))
        self.title = title
        revert = about.get("revert")
        self._reverted = str(table(revert).get("messageID", ""))

    def _message(self, message: Mapping[str, Any]) -> None:
        at = time_of(table(message.get("time")).get("created"))
        is_answer = message.get("role") == "assistant"
        self._is_summary = is_answer and bool(message.get("summary"))
        if message.get("id") == self._reverted and self._reverted:
            # What it took back is kept as a branch, and the line ends before it.
            self.tip, self._is_aside = self._line, True
            self._name = "taken back"
        node = self.add("assistant" if is_answer else "user", self._line, at)
        self._node = node
        if is_answer:
            model = message.get("modelID") or table(message.get("model")).get("modelID")
            node.model = one_line(f"{message.get('providerID')}:{model}", 120)
            self.count(node, _usage(message))
        if not self._is_summary:
            self._line = node
        if not self._is_aside:
            self.tip = self._line
        elif self._name:
            self.name(self._name, node)
            self._name = ""

    def _part(self, part: Mapping[str, Any], node: DraftNode) -> None:
        kind = part.get("type")
        if kind == "text" and self._is_summary:
            self.summarize(self._line, part.get("text"), node.at)
        elif kind == "text" and not part.get("ignored"):
            self.say(node, part.get("text"))
        elif kind == "file" and isinstance(url := part.get("url"), str):
            if found := _DATA.fullmatch(url):
                self.show(node, found[1], found[2])
        elif kind == "tool" and node.role == "assistant":
            self._call(part, node)

    def _call(self, part: Mapping[str, Any], node: DraftNode) -> None:
        state = table(part.get("state"))
        key = f"{node.id}:{part.get('callID')}:{len(node.parts)}"
        self.call(node, key, part.get("tool"), table(state.get("input")))
        child = table(state.get("metadata")).get("sessionId")
        if isinstance(child, str):
            self._callers[child] = node
        at = time_of(table(state.get("time")).get("end"))
        if state.get("status") == "completed":
            self.answer(key, _text(state.get("output")), at=at)
        elif state.get("status") == "error":
            self.answer(key, _text(state.get("error")), is_error=True, at=at)


def _text(given: Any) -> str:
    return given if isinstance(given, str) else ""


def _usage(message: Mapping[str, Any]) -> Usage:
    tokens, cost = table(message.get("tokens")), message.get("cost")
    cache = table(tokens.get("cache"))
    is_price = isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost < 1e6
    return Usage(
        input_tokens=number(tokens.get("input")),
        output_tokens=number(tokens.get("output")),
        reasoning_tokens=number(tokens.get("reasoning")),
        cache_read_tokens=number(cache.get("read")),
        cache_write_tokens=number(cache.get("write")),
        cost_usd=float(cost) if is_price else None,  # type: ignore[arg-type]
    )
