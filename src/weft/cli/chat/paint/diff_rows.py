"""A change as rows: line numbers, a sign in the margin, the words that changed.

Read from a unified diff.  New numbers stand before added and unchanged lines, old ones before
removed lines.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, TypeAlias

from weft.cli.chat.paint.code_colours import syntax_spans
from weft.cli.chat.paint.styled_text import StyledLine, StyledSpan
from weft.cli.chat.paint.text_cells import cells, graphemes

CONTEXT = 2
NARROW = 60
"""Columns up to which one line of context is shown; up to `NARROWEST` none is."""
NARROWEST = 40
MAX_ROWS = 40

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_CUT = re.compile(r"\(… (\d+) more lines\)$")
_WORD = re.compile(r"\w+|\s+|[^\w\s]")
_LIKE = 0.5
"""Rows that share no more than this are two different lines, not one that changed."""
_LONGEST_COMPARED = 500
_NOT_CODE = (".md", ".txt", ".rst", ".csv", ".log")

RowKind: TypeAlias = Literal["same", "removed", "added", "gap", "file"]
_SIGNS = {"same": " ", "removed": "-", "added": "+", "gap": " ", "file": " "}


class DiffRow(NamedTuple):
    """One line of a change."""

    kind: RowKind
    number: int
    text: str


class FileDiff(NamedTuple):
    """A change of one file."""

    rows: list[DiffRow]
    added: int
    removed: int
    left_out: int = 0
    """Lines that the diff itself does not show."""
    is_new: bool = False

    @property
    def counts(self) -> str:
        """`+1 −1`"""
        return f"+{self.added} −{self.removed}"


def read_diff(diff: str) -> FileDiff:
    """The rows of a unified diff, with all the context that it has."""
    lines = diff.split("\n")
    if diff.startswith("--- "):
        lines = lines[2:]
    rows: list[DiffRow] = []
    old = new = added = removed = left_out = 0
    is_new = False
    # Some programs write an empty context line without its space.
    for place, line in enumerate(lines):
        if hunk := _HUNK.match(line):
            is_new = is_new or (hunk[1], hunk[2]) == ("0", "0")
            if rows and rows[-1].kind != "file":
                rows.append(DiffRow("gap", 0, ""))
            old, new = int(hunk[1]), int(hunk[3])
        elif line.startswith("+"):
            rows.append(DiffRow("added", new, line[1:]))
            new, added = new + 1, added + 1
        elif line.startswith("-"):
            rows.append(DiffRow("removed", old, line[1:]))
            old, removed = old + 1, removed + 1
        elif line.startswith("*** "):
            # Of a change of several files: the next one begins.
            rows.append(DiffRow("file", 0, line[4:]))
        elif cut := _CUT.match(line):
            left_out = int(cut[1])
        elif line.startswith(" ") or (not line and new and place < len(lines) - 1):
            rows.append(DiffRow("same", new, line[1:]))
            old, new = old + 1, new + 1
    # A new file without a newline at its end comes as the replacement of one empty line.
    if rows[:1] == [DiffRow("removed", 1, "")] and removed == 1 and len(rows) == added + 1:
        return FileDiff(rows[1:], added, 0, left_out, is_new=True)
    return FileDiff(rows, added, removed, left_out, is_new)


def context_for(width: int) -> int:
    """Lines of context in a window of this width."""
    return 0 if width <= NARROWEST else 1 if width <= NARROW else CONTEXT


def with_context(rows: list[DiffRow], context: int) -> list[DiffRow]:
    """Changed rows with this many unchanged ones around them; a gap where something is left out."""
    changed = [place for place, row in enumerate(rows) if row.kind in ("added", "removed")]
    near = {
        each
        for place in changed
        for each in range(place - context, place + context + 1)
        if 0 <= each < len(rows)
    }
    near |= {place for place, row in enumerate(rows) if row.kind == "file"}
    kept: list[DiffRow] = []
    last = -1
    for place in sorted(near):
        if rows[place].kind == "gap":
            continue
        if kept and place != last + 1 and "file" not in (rows[place].kind, kept[-1].kind):
            kept.append(DiffRow("gap", 0, ""))
        kept.append(rows[place])
        last = place
    return kept


def diff_lines(
    diff: FileDiff, width: int, *, path: str = "", has_rows: bool = False, limit: int | None = None
) -> list[StyledLine]:
    """A change as lines that fit; `limit` is the number of rows that a record shows."""
    rows = with_context(diff.rows, context_for(width))
    shown = rows if limit is None or len(rows) <= limit + 1 else rows[:limit]
    marks = _changed_words(shown)
    digits = max(4, *(len(str(row.number)) for row in shown), 0) if shown else 4
    has_syntax = has_rows and bool(path) and not path.endswith(_NOT_CODE)
    lines: list[StyledLine] = []
    for place, row in enumerate(shown):
        lines += _row_lines(row, marks.get(place, []), width, digits, has_syntax=has_syntax)
    rest = rows[len(shown) :]
    left_out = sum(row.kind != "gap" for row in rest) + diff.left_out
    if left_out:
        places = 1 + sum(row.kind == "gap" for row in rest)
        where = f" in {places} places" if places > 1 else ""
        key = "" if limit is None else " · Ctrl+O"
        said = f"… {left_out} more {'line' if left_out == 1 else 'lines'}{where}{key}"
        lines.append(StyledLine((StyledSpan("  "), StyledSpan(said, "quiet"))))
    return lines


def _row_lines(
    row: DiffRow, marked: list[tuple[int, int]], width: int, digits: int, *, has_syntax: bool
) -> list[StyledLine]:
    if row.kind == "gap":
        return [StyledLine((StyledSpan(f"{'⋮':>{digits}}", "quiet"),))]
    if row.kind == "file":
        return [StyledLine((StyledSpan("  "), StyledSpan(row.text, "quiet")))]
    style = "" if row.kind == "same" else row.kind
    text = row.text.expandtabs(4)
    margin = StyledSpan(f"{row.number:>{digits}} ", "quiet")
    sign = StyledSpan(f"{_SIGNS[row.kind]} ", style)
    room = max(8, width - digits - 3)
    lines: list[StyledLine] = []
    for spans in cut_rows(_pieces(text, style, marked, has_syntax=has_syntax), room):
        lead = (margin, sign) if not lines else (StyledSpan(" " * (digits + 3)),)
        lines.append(StyledLine((*lead, *spans)))
    return lines


def _pieces(
    text: str, style: str, marked: list[tuple[int, int]], *, has_syntax: bool
) -> list[StyledSpan]:
    """The text of a row with its colours: changed words keep to their own."""
    spans: list[StyledSpan] = []
    place = 0
    for start, end in [*marked, (len(text), len(text))]:
        if start > place:
            same = text[place:start]
            pieces = syntax_spans(same) if has_syntax else [(same, "")]
            spans += [StyledSpan(said, f"{style} {own}".strip()) for said, own in pieces]
        if end > start:
            spans.append(StyledSpan(text[start:end], f"{style}_word"))
        place = max(place, end)
    return spans


def cut_rows(spans: list[StyledSpan], room: int) -> list[list[StyledSpan]]:
    """Spans as rows of a window, cut where it ends: code is not wrapped by words."""
    rows: list[list[StyledSpan]] = [[]]
    used = 0
    for span in spans:
        piece = ""
        for each in graphemes(span.text):
            size = cells(each)
            if used + size > room:
                rows[-1].append(span._replace(text=piece))
                rows.append([])
                piece, used = "", 0
            piece += each
            used += size
        if piece:
            rows[-1].append(span._replace(text=piece))
    return rows


def _changed_words(rows: list[DiffRow]) -> dict[int, list[tuple[int, int]]]:
    """Of each row that has a partner on the other side, the places that differ."""
    marks: dict[int, list[tuple[int, int]]] = {}
    place = 0
    while place < len(rows):
        removed = _run(rows, place, "removed")
        added = _run(rows, removed, "added")
        if removed > place and added > removed:
            # Paired in their order, as a diff writes them: the first removed with the first added.
            for old, new in zip(range(place, removed), range(removed, added), strict=False):
                pair = _compared(rows[old].text, rows[new].text)
                if pair is not None:
                    marks[old], marks[new] = pair
        place = max(added, removed, place + 1)
    return marks


def _run(rows: list[DiffRow], place: int, kind: RowKind) -> int:
    while place < len(rows) and rows[place].kind == kind:
        place += 1
    return place


def _compared(old: str, new: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]] | None:
    if len(old) + len(new) > _LONGEST_COMPARED or "\t" in old + new:
        return None
    import difflib  # only where two lines are alike

    before, after = _WORD.findall(old), _WORD.findall(new)
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    same = sum(
        len("".join(before[block.a : block.a + block.size]).strip())
        for block in matcher.get_matching_blocks()
    )
    longest = max(len(old.strip()), len(new.strip()), 1)
    if same / longest <= _LIKE:
        return None
    removed: list[tuple[int, int]] = []
    added: list[tuple[int, int]] = []
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            continue
        if i2 > i1:
            removed.append((len("".join(before[:i1])), len("".join(before[:i2]))))
        if j2 > j1:
            added.append((len("".join(after[:j1])), len("".join(after[:j2]))))
    return removed, added
