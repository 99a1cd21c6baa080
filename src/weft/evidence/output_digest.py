"""A digest of what a command printed, the same for two runs that say the same."""

from __future__ import annotations

import re
from typing import Final

from weft.sha256 import sha256

_COLOURS: Final = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
_TIMES: Final = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"
    r"|\b\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?\b"
)
_DURATIONS: Final = re.compile(
    r"\b\d+(?:[.,]\d+)?\s?(?:ns|µs|us|ms|s|sec|secs|seconds?|min|mins|minutes?|hours?|h|m)\b"
)
_ADDRESSES: Final = re.compile(r"\b0x[0-9a-fA-F]+\b")
_TEMPORARY: Final = re.compile(r"(?:/var)?/tmp/[^\s'\":)]+")
_PIDS: Final = re.compile(r"\b(pid|PID|process)[ =:]+\d+")


def plain_output(text: str) -> str:
    """What was printed, without colours, times, durations, addresses and temporary paths."""
    text = _COLOURS.sub("", text)
    for shape, word in (
        (_TEMPORARY, "<path>"),
        (_ADDRESSES, "<address>"),
        (_TIMES, "<time>"),
        (_DURATIONS, "<duration>"),
        (_PIDS, r"\1 <number>"),
    ):
        text = shape.sub(word, text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def verdict_digest(exit_code: int, text: str) -> str:
    """The digest of a run by its exit code and what it printed."""
    return sha256(f"{exit_code}\n{plain_output(text)}".encode()).hexdigest()[:32]
