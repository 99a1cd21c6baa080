"""Sessions of codex ("rollouts"): one line of items, from which a rollback takes the last turns."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from weft.export.agents.foreign_tree import (
    DraftNode,
    ForeignReader,
    number,
    one_line,
    rows,
    table,
    text_of,
    time_of,
)
from weft.messages import Usage

_NOT_SAID: Final = re.compile(
    r"\s*(<(environment_context|user_instructions|permissions|skills?_instructions|skill|"
    r"turn_aborted|INSTRUCTIONS|user_shell_command|subagent_notification)\b|"
    r"# AGENTS\.md instructions)"
)
"""Begins what the program said in the user's name."""
_PICTURE: Final = re.compile(r"data:(image/[a-z]+);base64,(.*)", re.DOTALL)


class CodexReader(ForeignReader):
    """Reads one file of `~/.codex/sessions`."""

    agent = "codex"

    def __init__(self, now: float) -> None:
        super().__init__(now)
        self._model = ""
        self._provider = "openai"
        self._answer: DraftNode | None = None
        """The answer that still grows."""
        self._prompts: list[DraftNode] = []
        self._last: DraftNode | None = None
        self._total: Any = None

    def take(self, record: Mapping[str, Any]) -> None:
        kind, payload = record.get("type"), record.get("payload")
        at = time_of(record.get("timestamp"))
        if not isinstance(payload, dict):
            # Before it wrapped its items, they stood in the lines themselves.
            self._begin(record) if "id" in record and kind is None else self._item(record, at)
        elif kind == "session_meta":
            self._begin(payload)
        elif kind == "turn_context":
            self._model = one_line(payload.get("model"), 80) or self._model
        elif kind == "response_item":
            self._item(payload, at)
        elif kind == "compacted":
            self.summarize(self.tip, payload.get("message"), at)
        elif kind == "event_msg":
            self._event(payload)

    def _begin(self, about: Mapping[str, Any]) -> None:
        # A fork has the head of the session that it came from behind its own.
        if not self.foreign_id:
            self.foreign_id = str(about.get("id", ""))
            self.version = str(about.get("cli_version", ""))
            self.folder = str(about.get("cwd", ""))
            self._provider = one_line(about.get("model_provider"), 40) or "openai"

    def _event(self, event: Mapping[str, Any]) -> None:
        kind = event.get("type")
        if kind == "token_count":
            self._count(table(event.get("info")))
        elif kind == "thread_rolled_back":
            self._roll_back(number(event.get("num_turns")))
        elif kind == "thread_name_updated":
            self.title = one_line(event.get("thread_name"), 80) or self.title

    def _count(self, info: Mapping[str, Any]) -> None:
        total, last = info.get("total_token_usage"), table(info.get("last_token_usage"))
        if total == self._total:  # said again with other news
            return
        self._total = total
        cached = number(last.get("cached_input_tokens"))
        read = number(last.get("input_tokens"))
        usage = Usage(
            input_tokens=max(0, read - cached),
            cache_read_tokens=cached,
            output_tokens=number(last.get("output_tokens")),
            reasoning_tokens=number(last.get("reasoning_output_tokens")),
        )
        self.count(self._last, usage)

    def _roll_back(self, turns: int) -> None:
        for _ in range(min(turns, len(self._prompts))):
            self.tip = self._prompts.pop().parent
        self._answer = None

    # -- items

    def _item(self, item: Mapping[str, Any], at: float) -> None:
        kind = item.get("type")
        if kind == "message":
            self._message(item, at)
        elif kind == "function_call":
            name, given = item.get("name"), item.get("arguments")
            self.call(self._growing(at), item.get("call_id"), name, _decoded(given))
        elif kind == "custom_tool_call":
            given = {"input": item.get("input")}
            self.call(self._growing(at), item.get("call_id"), item.get("name"), given)
        elif kind == "local_shell_call":
            key, action = item.get("call_id") or item.get("id"), table(item.get("action"))
            self.call(self._growing(at), key, "local_shell", {"command": action.get("command")})
        elif kind in ("function_call_output", "custom_tool_call_output", "local_shell_call_output"):
            text, is_error = _output(item.get("output"))
            self.answer(item.get("call_id"), text, is_error=is_error, at=at)
            self._answer = None

    def _message(self, item: Mapping[str, Any], at: float) -> None:
        text = text_of(item.get("content"))
        if item.get("role") == "assistant":
            if self._answer is not None and any(self._answer.results):
                self._answer = None
            self.say(self._growing(at), text)
            return
        if item.get("role") != "user" or _NOT_SAID.match(text) or _is_context(item):
            return
        node = self.add("user", self.tip, at)
        self.say(node, text)
        for part in rows(item.get("content")):
            picture = part.get("image_url")
            found = _PICTURE.fullmatch(picture) if isinstance(picture, str) else None
            if found:
                self.show(node, found[1], found[2])
        if node.parts:
            self.tip = node
            self._answer = None
            self._prompts.append(node)

    def _growing(self, at: float) -> DraftNode:
        """The answer that an item belongs to."""
        if self._answer is None:
            self._answer = self._last = self.tip = self.add("assistant", self.tip, at)
            self._answer.model = f"{self._provider}:{self._model}" if self._model else ""
        return self._answer


def _is_context(item: Mapping[str, Any]) -> bool:
    """What a newer one marks as not written by the user."""
    kinds = table(item.get("internal_chat_message_metadata_passthrough")).get("content_item_kinds")
    if not isinstance(kinds, list) or not kinds:
        return False
    return not any(str(kind).startswith("user.") for kind in kinds)


def _decoded(given: Any) -> Any:
    """Arguments, which are written as JSON in a text."""
    if not isinstance(given, str):
        return given
    try:
        return json.loads(given)
    except (ValueError, RecursionError):
        return given


def _output(given: Any) -> tuple[str, bool]:
    """The text of an output, and whether it says that the call failed."""
    found = _decoded(given) if isinstance(given, str) and given[:1] == "{" else given
    if isinstance(found, dict) and ("output" in found or "content" in found):
        inner = found.get("output", found.get("content"))
        text = inner if isinstance(inner, str) else text_of(inner)
        failed = table(found.get("metadata")).get("exit_code") not in (None, 0)
        return text, failed or found.get("success") is False
    # What a program printed may be JSON, too.
    return given if isinstance(given, str) else text_of(given), False
