"""Hunks of a text: pieces of a difference that can be had or left each for itself.  Pure."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from hashlib import sha256
from typing import Final

import msgspec

from weft.errors import UsageError

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
    """The lines of a hunk, from 0."""

    opcodes: Sequence[tuple[str, int, int, int, int]]

    @property
    def old(self) -> tuple[int, int]:
        return self.opcodes[0][1], self.opcodes[-1][2]

    @property
    def new(self) -> tuple[int, int]:
        return self.opcodes[0][3], self.opcodes[-1][4]


def file_hunks(path: str, before: str, after: str) -> list[FileHunk]:
    """What has to be done to the text before to have the one after."""
    old, new = _lines(before), _lines(after)
    return [_hunk(path, group, old, new) for group in _groups(old, new)]


def with_hunk(path: str, before: str, after: str, hunk: str, *, is_taken: bool) -> str:
    """The text before with this hunk alone, or the text after without it.

    Raises:
        UsageError: there is no such hunk, because the file was changed since.
    """
    old, new = _lines(before), _lines(after)
    for group in _groups(old, new):
        if _hunk(path, group, old, new).id != hunk:
            continue
        (old_from, old_to), (new_from, new_to) = group.old, group.new
        if is_taken:
            return "".join([*old[:old_from], *new[new_from:new_to], *old[old_to:]])
        return "".join([*new[:new_from], *old[old_from:old_to], *new[new_to:]])
    raise UsageError(f"{path} has no such hunk any more; look at its changes again")


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _groups(old: Sequence[str], new: Sequence[str]) -> list[_Group]:
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    return [_Group(group) for group in matcher.get_grouped_opcodes(_CONTEXT)]


def _hunk(path: str, group: _Group, old: Sequence[str], new: Sequence[str]) -> FileHunk:
    lines: list[str] = []
    for kind, old_from, old_to, new_from, new_to in group.opcodes:
        if kind == "equal":
            lines += [f" {line}" for line in old[old_from:old_to]]
            continue
        lines += [f"-{line}" for line in old[old_from:old_to]]
        lines += [f"+{line}" for line in new[new_from:new_to]]
    (old_from, old_to), (new_from, new_to) = group.old, group.new
    head = f"@@ -{_place(old_from, old_to)} +{_place(new_from, new_to)} @@\n"
    text = "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
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


def _place(start: int, end: int) -> str:
    count = end - start
    return f"{start + 1 if count else start},{count}"
