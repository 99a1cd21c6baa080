"""The check of a summary against the record, and the summary that is made where there is none.

A summary is a model's word.  What it may not do is bring finished work back as open: such lines are
struck.  Everything else that it gets wrong stands beside the record, which is carried whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from weft.context.build import LineEntry
from weft.context.sizes import CHARACTERS_PER_TOKEN
from weft.messages import ToolCall, ToolResult

SUMMARY_SHARE: Final = 0.1
"""How much of the room a summary may take."""
LEAST_SUMMARY: Final = 2_000
LEAST_SHARE: Final = 0.2
"""What it may have in a small window: so many characters, or this share."""
NAMED_SHARE: Final = 0.75
"""How many of a task's words a line must have to speak of it."""
LINE: Final = 160
"""Characters of one step in a summary that no model wrote."""
CUT: Final = "[… the summary was too long and ends here]"
LEAST_WORDS: Final = 3
"""Words of a task that may stand in any order."""
BOLD_LEVEL: Final = 100
"""A line in bold is a heading below any other."""

_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+")
_WORD: Final = re.compile(r"\w+")
_DONE: Final = re.compile(
    r"\b(?:done|finished|complete[d]?|fixed|added|implemented|removed|written|passe[sd]|was|were|"
    r"has been|have been)\b|\[x\]|✓|✔|☑",
    re.IGNORECASE,
)
_OPEN: Final = re.compile(
    r"\b(?:todo|to do|next|remain\w*|still|open|pending|unfinished|incomplete|not yet|yet to|"
    r"must|needs?|should|will|continue|start|begin|not (?:done|finished|complete\w*|fixed))\b"
    r"|\[ \]|☐",
    re.IGNORECASE,
)
_PLANNED: Final = re.compile(
    r"\b(?:plan|planned|outstanding|upcoming|left|backlog)\b", re.IGNORECASE
)
"""Words that say so in a heading only."""
_SMALL: Final = frozenset(
    ("a", "an", "and", "the", "to", "of", "in", "on", "for", "with", "at", "by", "is", "it", "as")
)


def checked(summary: str, finished: Iterable[str]) -> tuple[str, tuple[str, ...]]:
    """The summary without the lines that show finished tasks as open, and those lines."""
    tasks = [(task.lower().strip(), words) for task in finished if (words := _words(task))]
    headings: list[tuple[int, str]] = []
    kept: list[str] = []
    struck: list[str] = []
    for line in summary.splitlines():
        level, title = _heading(line)
        while level and headings and headings[-1][0] >= level:
            headings.pop()
        is_open = _is_open_work(line, [each for _, each in headings])
        if level:
            headings.append((level, title))
        # By sentence: a summary may be one long paragraph.
        said = [line] if level else _SENTENCE.split(line)
        wrong = [each for each in said if _reopens(each, is_open, tasks)]
        struck += (each.strip() for each in wrong)
        if rest := [each for each in said if each not in wrong]:
            kept.append(" ".join(rest) if wrong else line)
    return "\n".join(kept).strip(), tuple(struck)


def _heading(line: str) -> tuple[int, str]:
    """The level of a heading and what it says; 0 where it is none."""
    # By hand: a pattern with blanks on both sides of the words goes back over every gap of a long
    # line, and a model may write any line.
    bare = line.strip()
    if bare.startswith("#"):
        words = bare.lstrip("#")
        return len(bare) - len(words), words.strip(" \t*:")
    words = bare.removesuffix(":")
    if not bare.startswith("**") or "**" in words[2:-2] or not words[2:].endswith("**"):
        return 0, ""
    return BOLD_LEVEL, words.strip(" \t*:")


def _is_open_work(line: str, headings: Sequence[str]) -> bool:
    """Whether a line stands where work is listed that remains."""
    bare = line.strip()
    lead = bare[2:].partition("**")[0] if bare.startswith("**") else ""
    for title in (lead, *reversed(headings)):
        if _OPEN.search(title) or _PLANNED.search(title):
            return True
        if _DONE.search(title):
            return False
    return not headings and bare.startswith(("- ", "* ", "• "))


def _reopens(sentence: str, is_open: bool, tasks: Sequence[tuple[str, frozenset[str]]]) -> bool:
    lower, said = sentence.lower(), _words(sentence)
    if not any(_speaks_of(lower, said, *task) for task in tasks):
        return False
    # In doubt it goes where open work is listed: what was finished is carried in a list of its own.
    # Elsewhere it may be what is known of that work, which nothing else carries.
    return bool(_OPEN.search(sentence)) or (is_open and not _DONE.search(sentence))


def _speaks_of(sentence: str, said: frozenset[str], task: str, named: frozenset[str]) -> bool:
    # One ordinary word, or two, meet by chance.
    if len(named) < LEAST_WORDS:
        return task in sentence and len(named) > 1
    return len(named & said) >= NAMED_SHARE * len(named)


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower())) - _SMALL


def bounded_summary(summary: str, space: int) -> str:
    """The summary as far as there is room for it, cut at the end of a line."""
    most = _most_characters(space)
    if len(summary) <= most:
        return summary
    head = summary[:most]
    return f"{head[: head.rfind(chr(10)) if chr(10) in head else most]}\n{CUT}"


def _most_characters(space: int) -> int:
    characters = space * CHARACTERS_PER_TOKEN
    return int(max(characters * SUMMARY_SHARE, min(LEAST_SUMMARY, characters * LEAST_SHARE)))


def step_list(gone: Sequence[LineEntry], before: str, space: int, why: str) -> str:
    """What happened, step by step from the record, in the place of a summary that could not be
    had; the newest steps where there is no room for all.
    """
    most = _most_characters(space)
    head = [f"No summary could be written: {why}."]
    if before:
        head += ["", "The summary before it said:", before[: most // 2]]
    head += ["", "The steps since, from the record:"]
    left = most - sum(map(len, head))
    steps = [line for entry in gone for line in _steps(entry)]
    shown: list[str] = []
    for line in reversed(steps):
        left -= len(line) + 1
        if left < 0:
            shown.append(f"({len(steps) - len(shown)} earlier steps are left out)")
            break
        shown.append(line)
    return "\n".join([*head, *reversed(shown)])


def _steps(entry: LineEntry) -> Iterable[str]:
    node = entry.node
    if node.text.strip():
        yield f"- {'user' if node.role == 'user' else 'agent'}: {_line(node.text, LINE)}"
    for call in node.calls:
        yield _call_step(call, entry.results.get(call.call_uid))


def _call_step(call: ToolCall, result: ToolResult | None) -> str:
    target = next((value for value in call.args.values() if isinstance(value, str)), "")
    ended = "no result" if result is None else "failed" if result.is_error else "done"
    return f"- {call.name} {_line(target, LINE)}: {ended}"


def _line(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[:most]}…"
