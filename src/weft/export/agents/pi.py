"""Sessions of pi: entries that name the one before them, so that a file is a tree; those of its
first version are a line.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
from weft.messages import Role, Usage


class PiReader(ForeignReader):
    """Reads one file of `~/.pi/agent/sessions`."""

    agent = "pi"

    def take(self, record: Mapping[str, Any]) -> None:
        kind, key = record.get("type"), record.get("id")
        if kind == "session":
            self.foreign_id = str(key or "")
            self.folder = str(record.get("cwd") or "")
            self.version = f"format {number(record.get('version')) or 1}"
            return
        if kind == "session_info":
            self.title = one_line(record.get("name"), 80) or self.title
        if kind == "label" and (named := self.key_of(record.get("targetId"))) is not None:
            label = record.get("label")
            if label:
                self.name(one_line(label, 60), named)
        node = self._entry(record, self._parent(record))
        self.stand_for(key, node)
        self.tip = node

    def _parent(self, record: Mapping[str, Any]) -> DraftNode | None:
        if "id" not in record:  # its first version
            return self.tip
        given = record.get("parentId")
        if given is None:
            return None
        return self.key_of(given) if isinstance(given, str) and given in self._keys else self.tip

    def _entry(self, record: Mapping[str, Any], parent: DraftNode | None) -> DraftNode | None:
        at = time_of(record.get("timestamp"))
        if record.get("type") == "compaction":
            first = self.key_of(record.get("firstKeptEntryId"))
            upto = first.parent if first is not None else parent
            self.summarize(upto, record.get("summary"), at)
        elif record.get("type") == "branch_summary":
            node = self.add("user", parent, at)
            self.say(node, f"What was done on another branch:\n\n{record.get('summary')}")
            return node if node.parts else parent
        elif record.get("type") in ("message", "custom_message"):
            return self._message(record, parent, at)
        return parent

    def _message(
        self, record: Mapping[str, Any], parent: DraftNode | None, at: float
    ) -> DraftNode | None:
        message = table(record.get("message")) or record
        role, content = message.get("role", "custom"), message.get("content")
        if role == "toolResult":
            images = [
                self.picture(each.get("mimeType"), each.get("data")) for each in rows(content)
            ]
            failed = message.get("isError") is True
            key = message.get("toolCallId")
            return (
                self.answer(key, text_of(content), images=images, is_error=failed, at=at) or parent
            )
        ours: Role = "assistant" if role == "assistant" else "user"
        node = self.add(ours, parent, at)
        if role == "bashExecution":
            self.say(node, f"$ {message.get('command')}\n{message.get('output')}")
        elif isinstance(content, str):
            self.say(node, content)
        for part in rows(content):
            self._part(node, part)
        if role == "assistant":
            self._about(node, message)
        return node if node.parts else parent

    def _part(self, node: DraftNode, part: Mapping[str, Any]) -> None:
        match part.get("type"):
            case "text":
                self.say(node, part.get("text"))
            case "image":
                self.show(node, part.get("mimeType"), part.get("data"))
            case "toolCall" if node.role == "assistant":
                self.call(node, part.get("id"), part.get("name"), part.get("arguments"))

    def _about(self, node: DraftNode, message: Mapping[str, Any]) -> None:
        given = table(message.get("usage"))
        cost = table(given.get("cost")).get("total")
        is_price = isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost < 1e6
        node.model = one_line(f"{message.get('provider')}:{message.get('model')}", 120)
        usage = Usage(
            input_tokens=number(given.get("input")),
            output_tokens=number(given.get("output")),
            cache_read_tokens=number(given.get("cacheRead")),
            cache_write_tokens=number(given.get("cacheWrite")),
            cost_usd=float(cost) if is_price else None,  # type: ignore[arg-type]
        )
        self.count(node, usage)
