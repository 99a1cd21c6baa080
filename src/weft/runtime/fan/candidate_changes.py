"""What a candidate changed: its overlay compared with the base.

The upper layer alone does not tell: it also holds old contents that were pinned there because the
user changed a file meanwhile, ignored files such as caches and dependencies, and the candidate's
own commits.  None of those is part of its work.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from typing import Final

import anyio.to_thread
import msgspec

from weft.repo.file_paths import IgnoredPaths
from weft.runtime.fan.base_files import BaseFile, BaseFiles
from weft.sha256 import sha256
from weft.tools.diff import unified
from weft.workspace.repository_copies.included_files import slashes
from weft.workspace.sandbox.overlay_changes import OverlayChange, changes

LARGEST: Final = 8 * 1024 * 1024
"""Bytes of a file that are compared and carried; larger ones are named only."""
TOO_LARGE: Final = "(too large)"
MOST_PACKED: Final = 64 * 1024 * 1024
"""Bytes of a candidate's work that are stored when it is pruned."""
_CHECK_NAMES: Final = frozenset(
    (
        *("conftest.py", "pytest.ini", "tox.ini", "noxfile.py", "setup.cfg", "pyproject.toml"),
        *("package.json", "jest.config.js", "jest.config.ts", "vitest.config.ts"),
        *("vitest.config.js", "karma.conf.js", ".mocharc.json", "cargo.toml", "go.mod"),
        *("build.gradle", "pom.xml", "rakefile", "phpunit.xml", "cmakelists.txt"),
        *("makefile", "justfile"),
    )
)
_TEST_FOLDERS: Final = frozenset(("test", "tests", "spec", "specs", "__tests__", "testdata"))


class CandidateChange(msgspec.Struct, frozen=True, kw_only=True):
    """One path that a candidate left different from the base."""

    path: str
    before: BaseFile | None = None
    """None where the base has nothing."""
    after: BaseFile | None = None
    """None where it was removed."""

    @property
    def text(self) -> str:
        """The change as a unified diff."""
        return "\n".join((*self._head(), *self.lines))

    def _head(self) -> tuple[str, str]:
        """The two lines that name the file, and what kind of file it is now."""
        old = "/dev/null" if self.before is None else self.path
        return f"--- {old}", f"+++ {'/dev/null' if self.after is None else self.path}{self._kind}"

    @property
    def _kind(self) -> str:
        after = self.after
        if after is None:
            return ""
        if stat.S_ISLNK(after.mode):
            return " (link)"
        before = 0o644 if self.before is None else self.before.mode
        return f" (mode {stat.S_IMODE(after.mode):o})" if (before ^ after.mode) & 0o100 else ""

    @property
    def lines(self) -> list[str]:
        """The lines of the diff below its head."""
        before, after = _text(self.before), _text(self.after)
        if before is None or after is None:
            return [f"(binary: {_sizes(self)})"]
        if self.before is not None and self.after is not None:
            return unified(before, after, self.path).split("\n")[2:]
        if not before + after:
            return ["(empty)"]
        # Whole lines against nothing: half a line would be compared with half a line.
        return unified(_whole(before), _whole(after), self.path).split("\n")[2:]


class CandidateDiff(msgspec.Struct, frozen=True, kw_only=True):
    """All that a candidate changed."""

    changes: tuple[CandidateChange, ...] = ()
    left_out: tuple[str, ...] = ()
    """What is not carried: ignored files, special ones, larger ones; in sentences."""

    @property
    def too_large(self) -> list[str]:
        """Those of `left_out` that are its work, and too large to be carried."""
        return [each for each in self.left_out if each.endswith(TOO_LARGE)]

    @property
    def text(self) -> str:
        """As a unified diff."""
        return "".join(f"{change.text.rstrip()}\n" for change in self.changes)

    @property
    def added(self) -> int:
        """Lines that came."""
        return self._count("+")

    @property
    def removed(self) -> int:
        """Lines that went."""
        return self._count("-")

    def _count(self, sign: str) -> int:
        return sum(line.startswith(sign) for change in self.changes for line in change.lines)

    @property
    def group(self) -> str:
        """Equal for diffs that come to the same: blanks at the ends of lines do not count."""
        if not self.changes:
            return ""
        digest = sha256()
        for change in self.changes:
            after = change.after.data if change.after is not None else b"\0gone"
            kind = b"" if change.after is None else b"%o" % stat.S_IFMT(change.after.mode)
            # At the ends alone: in some languages what stands before a line says where it belongs.
            lines = [line.rstrip() for line in after.splitlines() if line.strip()]
            parts = (os.fsencode(change.path), kind, b"\n".join(lines), b"")
            digest.update(b"\0".join(parts))
        return digest.hexdigest()[:16]


def touches_checks(paths: Iterable[str], command: str) -> list[str]:
    """Those of these paths that are tests, configure them, or are named in the verify command."""
    named = {word.strip("'\"`;&|()").removeprefix("./") for word in command.split()}
    return [path for path in paths if _is_check(path) or path in named]


def _is_check(path: str) -> bool:
    *folders, name = path.lower().split("/")
    stem = name.partition(".")[0]
    return (
        name in _CHECK_NAMES
        or not _TEST_FOLDERS.isdisjoint(folders)
        or stem.startswith("test_")
        or stem.endswith(("_test", "_spec"))
        or ".test." in name
        or ".spec." in name
    )


def compared(one: CandidateDiff, other: CandidateDiff, first: str, second: str) -> str:
    """How the files of one candidate differ from those of another, as a unified diff."""
    ones = {change.path: change for change in one.changes}
    others = {change.path: change for change in other.changes}
    said: list[str] = []
    for path in sorted(ones | others):
        mine, yours = ones.get(path), others.get(path)
        # What only one of them changed is as the base has it with the other.
        known = mine or yours
        assert known is not None
        before = mine.after if mine is not None else known.before
        after = yours.after if yours is not None else known.before
        if not is_same(before, after):
            text = CandidateChange(path=path, before=before, after=after).text
            said.append(text.replace(f"--- {path}", f"--- {path} ({first})", 1))
            said[-1] = said[-1].replace(f"+++ {path}", f"+++ {path} ({second})", 1)
    return "".join(f"{each.rstrip()}\n" for each in said)


async def candidate_diff(base: BaseFiles, upper: str) -> CandidateDiff:
    """Compare what lies in an upper layer with the base.

    Raises:
        TooMuch: it is more than is carried over.
        FinalToolError: the base cannot be read.
    """
    found = await anyio.to_thread.run_sync(changes, upper)
    known = await base.paths()
    ignored = base.ignored()
    wanted, left_out = await anyio.to_thread.run_sync(_wanted, found, known, ignored)
    return await changes_between(base, upper, wanted, left_out)


async def changes_between(
    base: BaseFiles,
    folder: str,
    wanted: dict[str, OverlayChange | None],
    left_out: Sequence[str],
) -> CandidateDiff:
    """Compare these paths of a folder with the base; None: nothing is left there.

    Raises:
        FinalToolError: the base cannot be read.
    """
    before = await base.read(wanted)
    after = await anyio.to_thread.run_sync(_after, folder, wanted)
    changed = [
        CandidateChange(path=path, before=before.get(path), after=after[path])
        for path in sorted(wanted)
        if not is_same(before.get(path), after[path])
    ]
    return CandidateDiff(changes=tuple(changed), left_out=tuple(left_out))


def _wanted(
    found: Sequence[OverlayChange], known: set[str], ignored: IgnoredPaths
) -> tuple[dict[str, OverlayChange | None], list[str]]:
    """The paths to compare, each with what is in the layer (None: nothing is left there), and what
    is left out.
    """
    wanted: dict[str, OverlayChange | None] = {}
    left_out: list[str] = []
    skipped = 0
    seen = {change.path for change in found}
    folders = {path[:end] for path in known for end in slashes(path)}
    for change in found:
        path = change.path
        if path == ".git" or path.startswith(".git/") or "/.git/" in path:
            continue
        is_other_kind = change.kind != "folder" and path in folders
        if change.kind == "gone" or change.is_opaque or is_other_kind:
            # A folder that is gone, or was made anew, takes all that the base has below it.
            below = f"{path}/"
            wanted |= {each: None for each in known if each.startswith(below) and each not in seen}
        if change.kind == "folder" and path in known:
            wanted[path] = None  # a folder took the place of a file
        if change.kind == "folder" or (change.kind == "gone" and path not in known):
            continue
        if path not in known and ignored.holds(path, is_folder=False):
            skipped += 1
        elif change.kind == "special" or change.size > LARGEST:
            left_out.append(f"{path} {'(special file)' if change.kind == 'special' else TOO_LARGE}")
        else:
            wanted[path] = change
    if skipped:
        left_out.append(f"{skipped:,} ignored files")
    return wanted, left_out


def _after(upper: str, wanted: dict[str, OverlayChange | None]) -> dict[str, BaseFile | None]:
    found: dict[str, BaseFile | None] = {}
    for path, change in wanted.items():
        name = f"{upper}/{path}"
        if change is None or change.kind == "gone":
            found[path] = None
        elif change.kind == "link":
            found[path] = BaseFile(change.mode, os.fsencode(os.readlink(name)))
        else:
            with open(name, "rb") as file:
                found[path] = BaseFile(change.mode, file.read())
    return found


def is_same(before: BaseFile | None, after: BaseFile | None) -> bool:
    """Whether two versions of a file are the same, as far as git keeps them."""
    if before is None or after is None:
        return before is after
    # Of a mode, what git keeps: its kind, and whether the user may execute it.
    kind = stat.S_IFMT(before.mode) == stat.S_IFMT(after.mode)
    return kind and before.data == after.data and not (before.mode ^ after.mode) & 0o100


def _text(file: BaseFile | None) -> str | None:
    if file is None:
        return ""
    if b"\0" in file.data:
        return None
    return file.data.decode(errors="replace")


def _whole(text: str) -> str:
    return f"{text}\n" if text and not text.endswith("\n") else text


def _sizes(change: CandidateChange) -> str:
    sizes = [len(file.data) if file is not None else 0 for file in (change.before, change.after)]
    return f"{sizes[0]:,} to {sizes[1]:,} bytes"


def packed(diff: CandidateDiff) -> bytes | None:
    """What a candidate changed, to be stored; None where that is too much."""
    changed = [(os.fsencode(change.path), change.after) for change in diff.changes]
    size = sum(len(after.data) for _, after in changed if after is not None)
    return msgspec.msgpack.encode(changed) if size <= MOST_PACKED else None


def unpacked(data: bytes) -> list[tuple[str, BaseFile | None]]:
    """The same, as it was stored."""
    changed = msgspec.msgpack.decode(data, type=list[tuple[bytes, BaseFile | None]])
    return [(os.fsdecode(path), after) for path, after in changed]
