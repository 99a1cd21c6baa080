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
_SMALL: Final = frozenset(
    ("a", "an", "and", "the", "to", "of", "in", "on", "for", "with", "at", "by", "is", "it", "as")
)


def checked(summary: str, finished: Iterable[str]) -> tuple[str, tuple[str, ...]]:
    """The summary without the lines that show finished tasks as open, and those lines."""
    tasks = [(task.lower().strip(), words) for task in finished if (words := _words(task))]
    heading = ""
    kept: list[str] = []
    struck: list[str] = []
    for line in summary.splitlines():
        if found := _heading(line):
            heading = found
            kept.append(line)
            continue
        # By sentence: a summary may be one long paragraph.
        wrong = [each for each in _SENTENCE.split(line) if _reopens(each, heading, tasks)]
        struck += (each.strip() for each in wrong)
        rest = [each for each in _SENTENCE.split(line) if each not in wrong]
        if rest:
            kept.append(" ".join(rest) if wrong else line)
    return "\n".join(kept).strip(), tuple(struck)


def _heading(line: str) -> str:
    """What a line says as a heading, empty where it is none."""
    # By hand: a pattern with blanks on both sides of the words goes back over every gap of a long
    # line, and a model may write any line.
    bare = line.strip()
    if not bare.startswith(("#", "**")):
        return ""
    words = bare.lstrip("#") if bare[0] == "#" else bare[2:]
    return words.strip().removesuffix(":").removesuffix("**").strip()


def _reopens(sentence: str, heading: str, tasks: Sequence[tuple[str, frozenset[str]]]) -> bool:
    lower, said = sentence.lower(), _words(sentence)
    if not any(_speaks_of(lower, said, *task) for task in tasks):
        return False
    # In doubt it goes: what was finished is carried in a list of its own.
    is_done = _DONE.search(sentence) or (_DONE.search(heading) and not _OPEN.search(heading))
    return bool(_OPEN.search(sentence)) or not is_done


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
