"""The project's files at the ends of two branches, beside those where the branches part.

All three are rebuilt from the log (`runtime/snapshots/node_files.py`), so that nothing on the disk
has to be in either state.
"""

from __future__ import annotations

import difflib
import stat
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, TypeAlias

import anyio.to_thread
import msgspec

from weft.api.branch_files.branch_facts import BranchFacts, ChangedText
from weft.api.file_changes.hunks import FileHunk, file_hunks
from weft.errors import UsageError
from weft.ids import BlobId, NodeId
from weft.runtime.snapshots.node_files import FileAt, NodeFiles, files_at, stored_content
from weft.state import SessionState
from weft.store import Store
from weft.workspace.sandbox.merge import merge

FileOrigin: TypeAlias = Literal["first", "second", "same", "merged", "conflict"]


class FileVersion(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a file that is known."""

    mode: int
    data: bytes | None = None
    """None where the content is not stored."""
    content: BlobId | None = None
    """Hash of the content in a log, which is known also where the content is not stored."""

    @property
    def text(self) -> str | None:
        """What it says; None where it is no text that is known."""
        if self.data is None or not stat.S_ISREG(self.mode):
            return None
        try:
            return self.data.decode()
        except UnicodeDecodeError:
            return None

    def is_like(self, other: FileVersion | None) -> bool:
        """Whether both are the same file, as far as that is known."""
        if other is None or self.data is None:
            return False
        return self.data == other.data and stat.S_IFMT(self.mode) == stat.S_IFMT(other.mode)


class BranchFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that is not the same at the ends of two branches and where they part."""

    path: str
    origin: FileOrigin
    """Who changed it: the first branch, the second, both alike (`same`), or both in a way that goes
    together (`merged`) or does not (`conflict`)."""
    diff: str = ""
    """From the first branch's version to the second's; empty where one is no text."""
    why: str = ""
    """Of a conflict, in a few words."""
    hunks: tuple[FileHunk, ...] = ()
    """The difference piece by piece, each to be taken for itself."""


class SidedFile(msgspec.Struct, frozen=True, kw_only=True):
    """The versions of one file."""

    shown: BranchFile
    base: FileVersion | None
    first: FileVersion | None
    second: FileVersion | None
    merged: FileVersion | None = None

    def version(self, origin: FileOrigin) -> FileVersion | None:
        """What there is to be, if this side is taken."""
        if origin == "merged":
            return self.merged
        return self.second if origin == "second" else self.first


class FileComparison(msgspec.Struct, frozen=True, kw_only=True):
    """The files of two branches side by side."""

    ancestor: NodeId
    """The last message that both go through."""
    first: NodeId
    second: NodeId
    files: tuple[BranchFile, ...]
    """Those that are not the same everywhere, by path."""
    is_exact: bool = True
    why: str = ""
    """Why not: files were changed by others, or contents are not stored."""
    sides: tuple[BranchFacts, ...] = ()
    """What the first branch took, and the second; empty where nobody asked for it."""

    @property
    def diff(self) -> str:
        """All differences of the second branch from the first, as one text."""
        return "".join(file.diff for file in self.files)


class BranchSides(msgspec.Struct, frozen=True, kw_only=True):
    """A comparison with the contents that it compared."""

    comparison: FileComparison
    files: tuple[SidedFile, ...]

    def changed(self, which: Literal["first", "second"]) -> list[ChangedText]:
        """The files that one of the branches changed."""
        return [
            (file.shown.path, _text(file.base), _text(file.version(which)))
            for file in self.files
            if not _agree(file.base, file.version(which))
        ]


async def compare_files(
    first: NodeId, second: NodeId, state: SessionState, store: Store
) -> BranchSides:
    """The files of two branches.

    Raises:
        UsageError: a message is not there, the branches do not part, or no snapshot tells.
    """
    ancestor = parting(first, second, state)
    base = await files_at(ancestor, state, store)
    one, two = await files_at(first, state, store), await files_at(second, state, store)
    found: list[SidedFile] = []
    for path in sorted({*base.files, *one.files, *two.files}):
        sides = [each.files.get(path) for each in (base, one, two)]
        if any(side is not None and side.is_folder for side in sides) or _is_one(sides):
            continue
        versions = [await _version(side, store) for side in sides]
        # In a thread: comparing may take seconds, in which no session could say a word.
        found.append(await anyio.to_thread.run_sync(partial(compared, path, *versions)))
    comparison = FileComparison(
        ancestor=ancestor,
        first=first,
        second=second,
        files=tuple(each.shown for each in found),
        is_exact=one.is_exact and two.is_exact,
        why=_why(one, two),
    )
    return BranchSides(comparison=comparison, files=tuple(found))


def shown_comparison(
    found: FileComparison, redact: Callable[[str], str], may_show: Callable[[str], bool]
) -> FileComparison:
    """A comparison without what may not be shown; its hunks keep their ids."""
    files = tuple(_shown(file, redact, may_show) for file in found.files)
    return msgspec.structs.replace(found, files=files)


def _shown(
    file: BranchFile, redact: Callable[[str], str], may_show: Callable[[str], bool]
) -> BranchFile:
    if not may_show(file.path):
        return msgspec.structs.replace(file, diff="", hunks=(), why="a rule forbids to read it")
    hunks = [msgspec.structs.replace(hunk, text=redact(hunk.text)) for hunk in file.hunks]
    return msgspec.structs.replace(file, diff=redact(file.diff), hunks=tuple(hunks))


def parting(first: NodeId, second: NodeId, state: SessionState) -> NodeId:
    """The last message that two branches have in common.

    Raises:
        UsageError: a message is not there, there is none in common, or one branch is above the
            other.
    """
    for node in (first, second):
        state.tree.require(node)
    one, two = state.tree.line(first), state.tree.line(second)
    shared = 0
    while shared < min(len(one), len(two)) and one[shared] == two[shared]:
        shared += 1
    if shared == 0:
        raise UsageError("these messages have no message above them in common")
    if shared in (len(one), len(two)):
        raise UsageError("one of these messages is above the other; name two branches that part")
    return one[shared - 1]


def _is_one(sides: Sequence[FileAt | None]) -> bool:
    known = {None if side is None else (side.mode, side.content) for side in sides}
    return len(known) == 1


async def _version(side: FileAt | None, store: Store) -> FileVersion | None:
    if side is None:
        return None
    data = await stored_content(side, store)
    return FileVersion(mode=side.mode, data=data, content=side.content)


def compared(
    path: str, base: FileVersion | None, first: FileVersion | None, second: FileVersion | None
) -> SidedFile:
    merged: FileVersion | None = None
    why, origin = "", _origin(base, first, second)
    if origin == "conflict":
        together = _together(base, first, second)
        if isinstance(together, FileVersion):
            origin, merged = "merged", together
        else:
            why = together
    shown = BranchFile(
        path=path,
        origin=origin,
        diff=_diff(path, first, second),
        why=why,
        hunks=_hunks(path, first, second),
    )
    return SidedFile(shown=shown, base=base, first=first, second=second, merged=merged)


def _origin(
    base: FileVersion | None, first: FileVersion | None, second: FileVersion | None
) -> FileOrigin:
    if _agree(first, second):
        return "same"
    if _agree(first, base):
        return "second"
    return "first" if _agree(second, base) else "conflict"


def _agree(one: FileVersion | None, other: FileVersion | None) -> bool:
    """Whether both are known to be the same: a content that is not known agrees with none."""
    if one is None or other is None:
        return one is other
    is_known = one.content is not None
    return is_known and (one.mode, one.content) == (other.mode, other.content)


def _together(
    base: FileVersion | None, first: FileVersion | None, second: FileVersion | None
) -> FileVersion | str:
    """Both changes in one file, or why that cannot be."""
    if first is None or second is None:
        return "one branch removed it, the other changed it"
    if base is None:
        return "both branches made it"
    if base.text is None or first.text is None or second.text is None:
        return "it is no text, or its content is not stored"
    assert base.data is not None
    assert first.data is not None
    assert second.data is not None
    together = merge(base.data, first.data, second.data)
    if together is None:
        return "both branches changed the same lines"
    return FileVersion(mode=first.mode | (second.mode & 0o111), data=together)


def _text(version: FileVersion | None) -> str | None:
    """What a version says: nothing where there is no file, None where it is no text."""
    return "" if version is None else version.text


def _diff(path: str, first: FileVersion | None, second: FileVersion | None) -> str:
    one, two = _text(first), _text(second)
    if one is None or two is None:
        return ""
    lines = difflib.unified_diff(
        one.splitlines(keepends=True),
        two.splitlines(keepends=True),
        f"a/{path}" if first is not None else "/dev/null",
        f"b/{path}" if second is not None else "/dev/null",
    )
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def _hunks(
    path: str, first: FileVersion | None, second: FileVersion | None
) -> tuple[FileHunk, ...]:
    one, two = _text(first), _text(second)
    return () if one is None or two is None else tuple(file_hunks(path, one, two))


def _why(one: NodeFiles, two: NodeFiles) -> str:
    return "; ".join(dict.fromkeys(each.why for each in (one, two) if each.why))
