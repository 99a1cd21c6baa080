"""Diagnostics as the model reads them: the worst first, and no more than it can use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

import msgspec

from weft.lsp.client import MOST_PROBLEMS, KnownDiagnostics
from weft.lsp.positions import column, lines_of_text
from weft.lsp.wire import SEVERITIES, CodeDiagnostic

MOST_LINES: Final = 10
"""Of the files that were edited, for one server."""
MOST_ELSEWHERE: Final = 5
"""Of the files that import them."""
_MOST_CHARACTERS: Final = 200
_WARNING: Final = 2
_ProblemKey: TypeAlias = tuple[str, int, str, str]


class FileFindings(msgspec.Struct, frozen=True, kw_only=True):
    """What one server says of one file."""

    path: str
    """As it is shown."""
    text: str
    encoding: str
    known: KnownDiagnostics
    is_edited: bool
    """False for a file that only imports one that was edited."""


class ShownProblems:
    """What the model has been shown of each file, so that old warnings are not repeated."""

    def __init__(self) -> None:
        self._shown: dict[str, Counter[_ProblemKey]] = {}

    def new_in(
        self, server: str, findings: FileFindings, items: Iterable[CodeDiagnostic]
    ) -> list[CodeDiagnostic]:
        """Those of these problems that are to be shown: errors of an edited file always are."""
        left = Counter(self._shown.get(findings.path, ()))
        new: list[CodeDiagnostic] = []
        for item in items:
            key = _key(server, item)
            is_old, left[key] = left[key] > 0, left[key] - 1
            if not is_old or (findings.is_edited and _severity(item) == 1):
                new.append(item)
        return new

    def note(self, server: str, findings: FileFindings, lines: Iterable[CodeDiagnostic]) -> None:
        """These have been shown; what a server does not say of a file any more is forgotten."""
        shown = Counter(self._shown.get(findings.path, ()))
        shown.update(_key(server, item) for item in lines)
        there = Counter(_key(server, item) for item in findings.known.items)
        others = Counter({key: count for key, count in shown.items() if key[0] != server})
        self._shown[findings.path] = others + (shown & there)


def said_by(server: str, files: Sequence[FileFindings], shown: ShownProblems) -> list[str]:
    """The lines of one server; the first says how many problems there are."""
    edited = [each for each in files if each.is_edited]
    others = [each for each in files if not each.is_edited]
    lines, count, old = _lines(server, edited, shown, MOST_LINES, worst=_WARNING)
    more, elsewhere, old_elsewhere = _lines(server, others, shown, MOST_ELSEWHERE, worst=1)
    is_sure = all(each.known.is_sure for each in files)
    unsure = "" if is_sure else " (it names no version: this may lag behind the last edit)"
    total = count + elsewhere
    head = "no problems" if not total else "1 problem" if total == 1 else f"{total} problems"
    if any(len(each.known.items) >= MOST_PROBLEMS for each in files):
        head += " or more"
    if old + old_elsewhere:
        head += f", {old + old_elsewhere} of them shown before"
    if elsewhere:
        more.insert(0, "in files that import it:")
    return [f"{server}: {head}{unsure}", *lines, *more]


def _lines(
    server: str, files: Sequence[FileFindings], shown: ShownProblems, most: int, *, worst: int
) -> tuple[list[str], int, int]:
    """Lines, how many problems there are, and how many of them are left out as old."""
    count = 0
    new: list[tuple[FileFindings, CodeDiagnostic]] = []
    for each in files:
        bad = sorted(
            (item for item in each.known.items if _severity(item) <= worst),
            key=lambda item: item.range.start,
        )
        count += len(bad)
        new += [(each, item) for item in shown.new_in(server, each, bad)]
    new.sort(key=lambda found: (_severity(found[1]), found[0].path, found[1].range.start))
    for each in files:
        shown.note(server, each, [item for where, item in new[:most] if where is each])
    lines = [_line(each, item) for each, item in new[:most]]
    if len(new) > most:
        lines.append(f"… and {len(new) - most} more")
    return lines, count, count - len(new)


def _line(findings: FileFindings, item: CodeDiagnostic) -> str:
    start = item.range.start
    lines = lines_of_text(findings.text)
    line = lines[start.line] if start.line < len(lines) else ""
    place = f"{start.line + 1}:{column(line, start.character, findings.encoding) + 1}"
    message = " ".join(item.text.split())
    if len(message) > _MOST_CHARACTERS:
        message = f"{message[:_MOST_CHARACTERS]}…"
    code = f" [{item.label}]" if item.label else ""
    kind = SEVERITIES.get(_severity(item), "error")
    return f"{findings.path}:{place} {kind}: {message}{code}"


def _severity(item: CodeDiagnostic) -> int:
    return item.severity or 1


def _key(server: str, item: CodeDiagnostic) -> _ProblemKey:
    # Without the place: an edit above moves a problem, and does not make it a new one.
    return (server, _severity(item), item.text, item.label)
