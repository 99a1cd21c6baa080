"""Hunks of a text: pieces of a difference that can be had or left each for itself.  Pure."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Final

import msgspec

from weft.errors import UsageError
from weft.workspace.boundaries.lines import LineHunk, hunks, lines_of

_CONTEXT: Final = 3
"""Lines around a change; changes that are nearer to each other are one hunk."""


class FileHunk(msgspec.Struct, frozen=True, kw_only=True):
    """One hunk of a difference."""

    id: str
    """Names it as long as neither text changes around it."""
    before: int
    """Its first line in the text before, from 1, and how many there are."""
    before_count: int
    after: int
    after_count: int
    added: int
    removed: int
    text: str
    """Its lines, each with its sign, below a line `@@ -1,2 +1,3 @@`."""


class _Group(msgspec.Struct, frozen=True):
    """Changes that stand near to each other, and the lines around them, from 0."""

    changes: tuple[LineHunk, ...]
    length: int
    """Of the text before."""

    @property
    def _around(self) -> tuple[int, int]:
        first, last = self.changes[0], self.changes[-1]
        return min(_CONTEXT, first.old_start), min(_CONTEXT, self.length - last.old_end)

    @property
    def old(self) -> tuple[int, int]:
        above, below = self._around
        return self.changes[0].old_start - above, self.changes[-1].old_end + below

    @property
    def new(self) -> tuple[int, int]:
        above, below = self._around
        return self.changes[0].new_start - above, self.changes[-1].new_end + below


def file_hunks(path: str, before: str, after: str) -> list[FileHunk]:
    """What has to be done to the text before to have the one after.

    Where too much differs to be compared line by line, it is one hunk.  Takes seconds for some
    texts: call it in a thread.
    """
    old, new = _lines(before), _lines(after)
    return [_hunk(path, group, old, new) for group in _groups(old, new)]


def with_hunk(path: str, before: str, after: str, hunk: str, *, is_taken: bool) -> str:
    """The text before with this hunk alone, or the text after without it.

    As slow as `file_hunks`.

    Raises:
        UsageError: there is no such hunk, because the file was changed since.
    """
    old, new = _lines(before), _lines(after)
    for group in _groups(old, new):
        if _hunk(path, group, old, new).id != hunk:
            continue
        (old_from, old_to), (new_from, new_to) = group.old, group.new
        if is_taken:
            lines = [*old[:old_from], *new[new_from:new_to], *old[old_to:]]
        else:
            lines = [*new[:new_from], *old[old_from:old_to], *new[new_to:]]
        return b"".join(lines).decode()
    raise UsageError(f"{path} has no such hunk any more; look at its changes again")


def _lines(text: str) -> list[bytes]:
    # Not `splitlines`: a form feed in a line is no end of it, for tools and for other diffs.
    return lines_of(text.encode())


def _groups(old: list[bytes], new: list[bytes]) -> list[_Group]:
    near: list[list[LineHunk]] = []
    for change in hunks(old, new):
        if near and change.old_start - near[-1][-1].old_end <= 2 * _CONTEXT:
            near[-1].append(change)
        else:
            near.append([change])
    return [_Group(tuple(changes), len(old)) for changes in near]


def _hunk(path: str, group: _Group, old: Sequence[bytes], new: Sequence[bytes]) -> FileHunk:
    (old_from, old_to), (new_from, new_to) = group.old, group.new
    lines: list[str] = []
    at = old_from
    for change in group.changes:
        lines += _signed(" ", old[at : change.old_start])
        lines += _signed("-", old[change.old_start : change.old_end])
        lines += _signed("+", new[change.new_start : change.new_end])
        at = change.old_end
    lines += _signed(" ", old[at:old_to])
    head = f"@@ -{_place(old_from, old_to)} +{_place(new_from, new_to)} @@\n"
    text = "".join(lines)
    return FileHunk(
        id=sha256(f"{path}\0{head}{text}".encode()).hexdigest()[:16],
        before=old_from + 1,
        before_count=old_to - old_from,
        after=new_from + 1,
        after_count=new_to - new_from,
        added=sum(line.startswith("+") for line in lines),
        removed=sum(line.startswith("-") for line in lines),
        text=head + text,
    )


def _signed(sign: str, lines: Sequence[bytes]) -> list[str]:
    return [f"{sign}{line.decode()}" + ("" if line.endswith(b"\n") else "\n") for line in lines]


def _place(start: int, end: int) -> str:
    count = end - start
    return f"{start + 1 if count else start},{count}"
