"""Reasoning in `<think>` tags: servers without a field for it send it as the beginning of the text.

Only an answer that begins with the tag is split: further in, it is something that the model writes
about.  A tag may come in pieces, so what may still become one is held back.
"""

from __future__ import annotations

from typing import Literal

_OPEN = "<think>"
_CLOSE = "</think>"


class ThinkTags:
    """Splits one answer's text."""

    def __init__(self) -> None:
        self._place: Literal["start", "thought", "after", "text"] = "start"
        self._held = ""

    def feed(self, text: str) -> list[tuple[str, str]]:
        """Pieces of reasoning and text, in their order."""
        if self._place == "text":
            return [("", text)]
        text, self._held = self._held + text, ""
        found: list[tuple[str, str]] = []
        if self._place == "start":
            text = self._started(text)
        if self._place == "thought":
            thought, text = self._thought(text)
            found.append((thought, ""))
        if self._place == "after":
            # The template puts line ends between the tag and the answer.
            text = text.lstrip()
            self._place = "text" if text else "after"
        return [*found, ("", text)]

    def end(self) -> list[tuple[str, str]]:
        """What was held back; the stream, or the text, is over."""
        held, self._held = self._held, ""
        return [(held, "") if self._place == "thought" else ("", held)]

    def _started(self, text: str) -> str:
        begins = text.lstrip()
        if begins.startswith(_OPEN):
            self._place = "thought"
            return begins.removeprefix(_OPEN).lstrip("\n")
        if _OPEN.startswith(begins):
            self._held = text
            return ""
        self._place = "text"
        return text

    def _thought(self, text: str) -> tuple[str, str]:
        thought, tag, rest = text.partition(_CLOSE)
        if tag:
            self._place = "after"
            return thought.rstrip("\n"), rest
        size = next((n for n in range(len(_CLOSE) - 1, 0, -1) if text.endswith(_CLOSE[:n])), 0)
        cut = len(text) - size
        self._held = text[cut:]
        return text[:cut], ""
