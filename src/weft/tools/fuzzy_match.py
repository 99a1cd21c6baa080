"""Fuzzy matching: the text that the model probably meant, when what it quoted is not there.

Pure and bounded: on a large file the search gives up exactness before it gives up speed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_MAX_LINES = 20_000
_MAX_CANDIDATES = 24
_SHOWN_LINES = 12
_SHOWN_CHARACTERS = 160
_ENOUGH = 0.5
_WORD = re.compile(r"\w+")


def nearest(text: str, wanted: str) -> str:
    """Sentences that show the nearest text with its line numbers and what differs.

    Empty when nothing comes near.
    """
    lines = text.split("\n")[:_MAX_LINES]
    block = wanted.strip("\n").split("\n")
    if not "".join(block).strip():
        return ""
    start = _but_for_spaces(lines, block)
    if start is not None:
        return (
            "It is there but for white space (tabs, spaces, blank ends).  "
            + _shown(lines, start, len(block))
            + _difference(lines, start, block)
        )
    start = _most_alike(lines, block)
    if start is None:
        return ""
    return (
        "The nearest text is this.  "
        + _shown(lines, start, len(block))
        + _difference(lines, start, block)
    )


def _but_for_spaces(lines: Sequence[str], block: Sequence[str]) -> int | None:
    bare = ["".join(line.split()) for line in lines]
    sought = ["".join(line.split()) for line in block]
    for start in range(len(bare) - len(sought) + 1):
        if bare[start] == sought[0] and bare[start : start + len(sought)] == sought:
            return start
    return None


def _most_alike(lines: Sequence[str], block: Sequence[str]) -> int | None:
    """Where a block most like the wanted one starts.

    The line of the block that says most is looked up among the lines of the text by the words they
    share; the best few are then compared letter by letter, with the lines around them.
    """
    import difflib  # only for misses

    # The longest line is the least likely to occur by chance; `}` or `return` would anchor
    # anywhere.
    anchor = max(range(len(block)), key=lambda index: len(block[index].strip()))
    words = set(_WORD.findall(block[anchor])) or {block[anchor].strip()}
    scored = sorted(
        ((_shared(words, line), -index) for index, line in enumerate(lines)), reverse=True
    )
    best, best_start = 0.0, None
    sought = "\n".join(block)[:2000]
    for score, negative in scored[:_MAX_CANDIDATES]:
        if not score:
            break
        start = max(0, -negative - anchor)
        found = "\n".join(lines[start : start + len(block)])[:2000]
        # An upper bound that counts letters and ignores their order: linear, where `ratio` is
        # quadratic, and good enough to choose what to show.
        ratio = difflib.SequenceMatcher(None, found, sought, autojunk=False).quick_ratio()
        if ratio > best:
            best, best_start = ratio, start
    return best_start if best >= _ENOUGH else None


def _shared(words: set[str], line: str) -> float:
    found = set(_WORD.findall(line))
    if not found:
        return 0.0
    return len(words & found) / len(words | found)


def _shown(lines: Sequence[str], start: int, count: int) -> str:
    shown = lines[start : start + min(count, _SHOWN_LINES)]
    body = "\n".join(
        f"{start + i + 1:6}\t{line[:_SHOWN_CHARACTERS]}" for i, line in enumerate(shown)
    )
    more = f"\n       (… {count - len(shown)} more lines)" if count > len(shown) else ""
    return f"The file has:\n{body}{more}"


def _difference(lines: Sequence[str], start: int, block: Sequence[str]) -> str:
    """The first line that differs, in both versions, with white space made visible."""
    for offset, wanted in enumerate(block):
        found = lines[start + offset] if start + offset < len(lines) else ""
        if found != wanted:
            return (
                f"\nThe first difference is in line {start + offset + 1}:\n"
                f"  you gave:     {wanted[:_SHOWN_CHARACTERS]!r}\n"
                f"  the file has: {found[:_SHOWN_CHARACTERS]!r}"
            )
    return ""
