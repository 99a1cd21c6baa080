"""Diagnostics as the model reads them: the worst first, and no more than it can use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from weft.lsp.client import KnownDiagnostics
from weft.lsp.positions import column, lines_of_text
from weft.lsp.wire import SEVERITIES, CodeDiagnostic

MOST_LINES: Final = 10
"""Of the files that were edited, for one server."""
MOST_ELSEWHERE: Final = 5
"""Of the files that import them."""
_MOST_CHARACTERS: Final = 200
_WARNING: Final = 2


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
        self._shown: dict[str, set[tuple[object, ...]]] = {}

    def is_old(self, server: str, findings: FileFindings, item: CodeDiagnostic) -> bool:
        """True for a problem that need not be shown again: errors of an edited file always are."""
        if findings.is_edited and _severity(item) == 1:
            return False
        return _key(server, item) in self._shown.get(findings.path, ())

    def note(self, server: str, findings: FileFindings) -> None:
        """What a server says of a file has been shown or counted, as far as it is bad enough."""
        kept = {key for key in self._shown.get(findings.path, ()) if key[0] != server}
        worst = _WARNING if findings.is_edited else 1
        self._shown[findings.path] = kept | {
            _key(server, item) for item in findings.known.items if _severity(item) <= worst
        }


def said_by(server: str, files: Sequence[FileFindings], shown: ShownProblems) -> list[str]:
    """The lines of one server; the first says how many problems there are."""
    edited = [each for each in files if each.is_edited]
    others = [each for each in files if not each.is_edited]
    lines, count, old = _lines(server, edited, shown, MOST_LINES, worst=_WARNING)
    more, elsewhere, old_elsewhere = _lines(server, others, shown, MOST_ELSEWHERE, worst=1)
    for each in files:
        shown.note(server, each)
    is_sure = all(each.known.is_sure for each in files)
    unsure = "" if is_sure else " (it names no version: this may lag behind the last edit)"
    total = count + elsewhere
    head = "no problems" if not total else "1 problem" if total == 1 else f"{total} problems"
    if old + old_elsewhere:
        head += f", {old + old_elsewhere} of them shown before"
    if elsewhere:
        more.insert(0, "in files that import it:")
    return [f"{server}: {head}{unsure}", *lines, *more]


def _lines(
    server: str, files: Iterable[FileFindings], shown: ShownProblems, most: int, *, worst: int
) -> tuple[list[str], int, int]:
    """Lines, how many problems there are, and how many of them are left out as old."""
    found = sorted(
        (
            (_severity(item), each, item)
            for each in files
            for item in each.known.items
            if _severity(item) <= worst
        ),
        key=lambda found: (found[0], found[1].path, found[2].range.start),
    )
    new = [(each, item) for _, each, item in found if not shown.is_old(server, each, item)]
    lines = [_line(each, item) for each, item in new[:most]]
    if len(new) > most:
        lines.append(f"… and {len(new) - most} more")
    return lines, len(found), len(found) - len(new)


def _line(findings: FileFindings, item: CodeDiagnostic) -> str:
    start = item.range.start
    lines = lines_of_text(findings.text)
    line = lines[start.line] if start.line < len(lines) else ""
    place = f"{start.line + 1}:{column(line, start.character, findings.encoding) + 1}"
    message = " ".join(item.message.split())
    if len(message) > _MOST_CHARACTERS:
        message = f"{message[:_MOST_CHARACTERS]}…"
    code = f" [{item.code}]" if item.code not in (None, "") else ""
    kind = SEVERITIES.get(_severity(item), "error")
    return f"{findings.path}:{place} {kind}: {message}{code}"


def _severity(item: CodeDiagnostic) -> int:
    return item.severity or 1


def _key(server: str, item: CodeDiagnostic) -> tuple[object, ...]:
    # Without the place: an edit above moves a problem, and does not make it a new one.
    return (server, _severity(item), item.message, item.code)
