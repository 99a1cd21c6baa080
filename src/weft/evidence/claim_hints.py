"""A first look at an answer, which costs nothing: whether it may claim that a check was run."""

from __future__ import annotations

from typing import Final

LONGEST_ANSWER: Final = 40_000
"""Characters of an answer that are looked at, the last ones."""
_HINTS: Final = (
    *("pass", "green", "succe", "clean", "build", "built", "compil", "no other", "nothing else"),
    *("no remaining", "only", "anywhere", "nowhere", "no caller", "no usage", "no reference"),
    *("error", "fail", "verified", "works", "confirmed", "regression", "warning", "elsewhere"),
    *("no more", "no further", "no leftover", "body else", "one else", "no mention"),
    *("no call site", "no occurrence", "tests ok", "types ok", "checked", "validated", "tested"),
    *("resolved", "is gone", "is fixed", "no issues", "no problems", "no complaints", "happy"),
)


def may_claim(text: str) -> bool:
    """False where an answer claims nothing: one of a few words stands in every claim."""
    low = text[-LONGEST_ANSWER:].lower()
    return any(hint in low for hint in _HINTS)
