"""Edit boundaries: the lines of a file that may be changed, and how they move with the text.  Pure.

Two questions are answered here, and they are not the same.  *May this change be made?*  Yes, when
everything before the range and everything after it stays byte for byte as it was; the range is then
what lies between the two.  No alignment has to be guessed, so nothing that is allowed is ever
refused, nor the other way round.  *Where is the range after a change from outside?* Where its lines
are as they were, and there is only one such piece before and after, it is there.  Else that takes a
diff: what was changed above shifts the range, what was changed inside lets it grow or shrink, what
was changed below does nothing.

A range whose lines were all removed is empty and stays where it is (`last` is `first - 1`):
dropping it would set the whole file free.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

_LONGEST = 2_000_000
"""Lines on both sides multiplied: beyond it a diff takes too long, and all between the first and
the last difference counts as one change.
"""
_WIDE = (
    (b"\xff\xfe\x00\x00", b"\n\x00\x00\x00"),
    (b"\x00\x00\xfe\xff", b"\x00\x00\x00\n"),
    (b"\xff\xfe", b"\n\x00"),
    (b"\xfe\xff", b"\x00\n"),
)
"""Byte-order marks of encodings in which a line end is more than one byte."""


class LineRange(msgspec.Struct, frozen=True):
    """Lines `first` to `last`, from 0, both included; empty when `last` is `first - 1`."""

    first: int
    last: int

    def __str__(self) -> str:
        """As editors and models count: from 1."""
        if self.last < self.first:
            return f"the empty place before line {self.first + 1}"
        if self.last == self.first:
            return f"line {self.first + 1}"
        return f"lines {self.first + 1} to {self.last + 1}"


class LineHunk(msgspec.Struct, frozen=True):
    """Lines `old_start:old_end` became lines `new_start:new_end`."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def lines_of(data: bytes) -> list[bytes]:
    """The lines of a file with their ends.

    A line ends at a line feed, whatever else its text holds.
    """
    for mark, end in _WIDE:
        if data.startswith(mark):
            return list(_wide_lines(data, end))
    # Not `splitlines`: it also splits at lone carriage returns, as they stand in progress output.
    lines = [line + b"\n" for line in data.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _wide_lines(data: bytes, end: bytes) -> Iterator[bytes]:
    start = position = 0
    while (position := data.find(end, position)) >= 0:
        if position % len(end):  # halves of two characters, no line end
            position += 1
            continue
        position += len(end)
        yield data[start:position]
        start = position
    if start < len(data):
        yield data[start:]


def after_change(before: bytes, after: bytes, allowed: LineRange) -> LineRange | None:
    """The range after a change that keeps to it; None when the change reaches beyond."""
    old, new = lines_of(before), lines_of(after)
    head, tail = old[: allowed.first], old[allowed.last + 1 :]
    rest = len(new) - len(tail)
    if rest < len(head) or new[: len(head)] != head or new[rest:] != tail:
        return None
    return LineRange(allowed.first, rest - 1)


def follow(before: bytes, after: bytes, held: LineRange) -> LineRange:
    """Where the range lies after a change from outside, wherever in the file it was made."""
    old, new = lines_of(before), lines_of(after)
    # By content first: a diff may align equal lines elsewhere and carry the range away from a block
    # that was moved as a whole.
    piece = old[held.first : held.last + 1]
    if piece and len(_places(old, piece)) == 1 == len(places := _places(new, piece)):
        return LineRange(places[0], places[0] + len(piece) - 1)
    return moved(held, hunks(old, new), len(new))


def _places(lines: list[bytes], piece: list[bytes]) -> list[int]:
    """Where the piece stands among the lines; at most two places, for more is no clearer."""
    found: list[int] = []
    start = 0
    while len(found) < 2:
        try:
            start = lines.index(piece[0], start, len(lines) - len(piece) + 1)
        except ValueError:
            break
        if lines[start : start + len(piece)] == piece:
            found.append(start)
        start += 1
    return found


def moved(held: LineRange, changes: list[LineHunk], length: int) -> LineRange:
    """The range after these changes (in order, apart from each other) to a file that has `length`
    lines then.
    """
    start = _moved_start(held.first, changes)
    end = _moved_end(held.last + 1, changes)
    start = min(start, length)
    return LineRange(start, min(max(end, start), length) - 1)


def _moved_start(start: int, changes: list[LineHunk]) -> int:
    """Where the gap before the first line has gone: lines that appear in the gap itself count as
    above.
    """
    shift = 0
    for change in changes:
        if change.old_end <= start:
            shift = change.new_end - change.old_end
        elif change.old_start < start:
            return _within(change, start)
        else:
            break
    return start + shift


def _moved_end(end: int, changes: list[LineHunk]) -> int:
    """Where the gap after the last line has gone: lines that appear in the gap itself count as
    below.
    """
    shift = 0
    for change in changes:
        if change.old_start >= end:
            break
        if change.old_end > end:
            return _within(change, end)
        shift = change.new_end - change.old_end
    return end + shift


def _within(change: LineHunk, gap: int) -> int:
    """A gap inside lines that were replaced: as many lines in as before, as far as there are so
    many.
    """
    return min(change.new_start + gap - change.old_start, change.new_end)


def hunks(old: list[bytes], new: list[bytes]) -> list[LineHunk]:
    """What differs, in order."""
    whole = trimmed(old, new)
    if whole is None:
        return []
    middle_old = old[whole.old_start : whole.old_end]
    middle_new = new[whole.new_start : whole.new_end]
    # `SequenceMatcher` takes quadratic time; one large change is a coarse answer, and a safe one.
    if not middle_old or not middle_new or len(middle_old) * len(middle_new) > _LONGEST:
        return [whole]
    import difflib  # costs milliseconds, and few files are bounded

    matcher = difflib.SequenceMatcher(None, middle_old, middle_new, autojunk=False)
    return [
        LineHunk(
            i1 + whole.old_start, i2 + whole.old_start, j1 + whole.new_start, j2 + whole.new_start
        )
        for tag, i1, i2, j1, j2 in matcher.get_opcodes()
        if tag != "equal"
    ]


def trimmed(old: list[bytes], new: list[bytes]) -> LineHunk | None:
    """All that differs as one change, without the lines that begin and end both.

    None when nothing does.
    """
    shorter = min(len(old), len(new))
    start = 0
    while start < shorter and old[start] == new[start]:
        start += 1
    end = 0
    while end < shorter - start and old[-1 - end] == new[-1 - end]:
        end += 1
    if start + end == len(old) == len(new):
        return None
    return LineHunk(start, len(old) - end, start, len(new) - end)


def refusal(path: str, before: bytes, after: bytes | None, allowed: LineRange) -> str:
    """The error for a change of more than the range.

    `after` None means that the file would be gone.
    """
    count = len(lines_of(before))
    only = f"of {path!r} only {allowed} (of {count}) may be changed"
    if after is None:
        return f"{only}; it may not be removed, renamed or replaced by something else"
    change = trimmed(lines_of(before), lines_of(after))
    if change is None:
        return only
    tried = LineRange(change.old_start, change.old_end - 1)
    what = (
        f"adds lines before line {tried.first + 1}"
        if tried.last < tried.first
        else f"touches {tried}"
    )
    return (
        f"{only}, and this change {what}; nothing of it was written.  Leave all other lines "
        "exactly as they are"
    )
