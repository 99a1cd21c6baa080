"""Sessions of Claude Code: lines that name the line before them, so that a file is a tree.

One answer is written as several lines with the same message id, and results as messages of the
user.  What its agents did stands on side chains, in the same file or in files of their own.
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
    rows,
    table,
    text_of,
    time_of,
)
from weft.messages import Usage

_COMMAND: Final = re.compile(r"<command-name>\s*(/?[^<]{1,80})</command-name>")
_ARGUMENTS: Final = re.compile(r"<command-args>([^<]{0,2000})</command-args>")
_NOT_SAID: Final = ("<local-command-", "<bash-stdout>", "Caveat: The messages below were generated")
_BEGINS, _ENDS = "<system-reminder>", "</system-reminder>"
_WARM_UP: Final = "Warmup"
_AGENT_TOOLS: Final = frozenset({"Task", "Agent"})


class ClaudeReader(ForeignReader):
    """Reads one file of `~/.claude/projects`, and the files of its agents behind it."""

    agent = "claude"

    def __init__(self, now: float) -> None:
        super().__init__(now)
        self._answers: dict[str, DraftNode] = {}
        self._prompts: dict[str, DraftNode] = {}
        """What an agent was asked → the message that asked."""
        self._callers: dict[str, DraftNode] = {}
        """Agent → the message that called it."""
        self._sides: set[DraftNode] = set()
        self._idle: set[str] = set()
        self._is_titled = False

    def take(self, record: Mapping[str, Any]) -> None:
        kind = record.get("type")
        if kind in ("summary", "custom-title", "ai-title"):
            self._entitle(record)
            return
        if "uuid" not in record:
            return
        self.foreign_id = self.foreign_id or str(record.get("sessionId", ""))
        self.version = str(record.get("version") or self.version)
        self.folder = self.folder or str(record.get("cwd") or "")
        if self._is_warm_up(record):
            return
        parent = self._parent(record)
        node = None
        if kind == "user":
            node = self._user(record, parent)
        elif kind == "assistant" and not record.get("isApiErrorMessage"):
            node = self._assistant(record, parent)
        # One that says nothing of its own hands on what stands before it.
        node = node or parent
        self.stand_for(record["uuid"], node)
        if node is not None and not self._is_aside(record):
            self.tip = node

    def _entitle(self, record: Mapping[str, Any]) -> None:
        given = record.get("customTitle") or record.get("aiTitle") or record.get("summary")
        is_own = record.get("type") == "custom-title"
        if given and (is_own or not self._is_titled):
            self.title, self._is_titled = one_line(given, 80), is_own

    def _is_warm_up(self, record: Mapping[str, Any]) -> bool:
        """An agent that nobody asked for: the program started it to be faster later."""
        agent = str(record.get("agentId", ""))
        if agent and text_of(table(record.get("message")).get("content")) == _WARM_UP:
            self._idle.add(agent)
        return agent in self._idle

    def _is_aside(self, record: Mapping[str, Any]) -> bool:
        return bool(record.get("isSidechain"))

    def _parent(self, record: Mapping[str, Any]) -> DraftNode | None:
        given = record.get("parentUuid") or record.get("logicalParentUuid")
        if given is not None:
            found = self.key_of(given)
            # What it names is gone: the line goes on where it was.
            return found if found is not None or self._is_aside(record) else self.tip
        return self._caller(record) if self._is_aside(record) else None

    def _caller(self, record: Mapping[str, Any]) -> DraftNode | None:
        """The message whose call a side chain begins with."""
        if found := self._callers.get(str(record.get("agentId", ""))):
            return found
        asked = text_of(table(record.get("message")).get("content")).strip()
        return self._prompts.get(asked, self.tip)

    # -- messages

    def _user(self, record: Mapping[str, Any], parent: DraftNode | None) -> DraftNode | None:
        at, content = time_of(record.get("timestamp")), table(record.get("message")).get("content")
        if record.get("isCompactSummary"):
            self.summarize(parent, text_of(content), at)
            return None
        answered = self._results(record, content, at)
        if answered is not None or record.get("isMeta"):
            return answered
        text = text_of(content, lambda part: part.get("type") == "text")
        if text.startswith(_NOT_SAID):
            return None
        node = self.add("user", parent, at)
        self.say(node, text, typed=_typed(text))
        for part in rows(content):
            if part.get("type") == "image":
                source = table(part.get("source"))
                self.show(node, source.get("media_type"), source.get("data"))
        if not node.parts:
            return None
        if self._is_aside(record) and parent not in self._sides:
            self.name(f"agent: {text}", node)
        if self._is_aside(record):
            self._sides.add(node)
        return node

    def _results(self, record: Mapping[str, Any], content: Any, at: float) -> DraftNode | None:
        """Put the results of a message to their calls; the message that they answer."""
        answered = None
        for part in rows(content):
            if part.get("type") != "tool_result":
                continue
            given = part.get("content")
            pictures = [table(each.get("source")) for each in rows(given)]
            node = self.answer(
                part.get("tool_use_id"),
                _without_reminder(text_of(given)),
                images=[
                    self.picture(each.get("media_type"), each.get("data")) for each in pictures
                ],
                is_error=part.get("is_error") is True,
                at=at,
            )
            answered = node or answered
        if answered is not None and (agent := table(record.get("toolUseResult")).get("agentId")):
            self._callers[str(agent)] = answered
        return answered

    def _assistant(self, record: Mapping[str, Any], parent: DraftNode | None) -> DraftNode | None:
        message = table(record.get("message"))
        if message.get("model") == "<synthetic>":
            return None
        key = str(message.get("id") or record["uuid"])
        node = self._answers.get(key)
        # The same message goes on; after a rewind another one may have its id.
        if node is None or parent is not node:
            node = self.add("assistant", parent, time_of(record.get("timestamp")))
            self._answers[key] = node
            if parent in self._sides:
                self._sides.add(node)
        node.model = f"anthropic:{one_line(message.get('model'), 80)}"
        for part in rows(message.get("content")):
            if part.get("type") == "text":
                self.say(node, part.get("text"))
            elif part.get("type") == "tool_use":
                self.call(node, part.get("id"), part.get("name"), part.get("input"))
                self._note_prompt(part, node)
        self.count(node, _usage(table(message.get("usage"))))
        return node

    def _note_prompt(self, part: Mapping[str, Any], node: DraftNode) -> None:
        asked = table(part.get("input")).get("prompt")
        if isinstance(asked, str) and str(part.get("name")) in _AGENT_TOOLS:
            self._prompts[asked.strip()] = node


def _without_reminder(text: str) -> str:
    """A result without what the program told the model behind it."""
    end = text.rstrip()
    return text[: end.rindex(_BEGINS)].rstrip() if end.endswith(_ENDS) and _BEGINS in end else text


def _typed(text: str) -> str:
    """What the user typed for a command."""
    found = _COMMAND.search(text[:4000])
    if found is None:
        return ""
    words = _ARGUMENTS.search(text[:4000])
    return f"/{found[1].strip().lstrip('/')} {words[1] if words else ''}".rstrip()


def _usage(given: Mapping[str, Any]) -> Usage:
    return Usage(
        input_tokens=number(given.get("input_tokens")),
        output_tokens=number(given.get("output_tokens")),
        cache_read_tokens=number(given.get("cache_read_input_tokens")),
        cache_write_tokens=number(given.get("cache_creation_input_tokens")),
    )
