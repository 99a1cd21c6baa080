"""A disk that loses what was not synced: what a folder of files may look like after a power cut.

`DiskRecorder` writes down what a program does to the files below a folder, by standing before the
calls of `os`; the program runs on the real disk meanwhile.  `after_cut` plays the first so many of
these steps to a model of a disk and cuts the power: what was synced is there, and of the rest each
sector of each write, each change of a size and each change of a name is there or not,
independently.  That is harsher than any file system in use; what survives it needs no luck.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

SECTOR = 512
WATCHED = (
    "open",
    "write",
    "ftruncate",
    "fdatasync",
    "fsync",
    "mkdir",
    "replace",
    "rename",
    "unlink",
)
"""The calls of `os` that change files; `DiskRecorder` has a method for each."""


class Step(NamedTuple):
    """One call, on one file or folder."""

    do: str
    path: str
    to: str = ""
    offset: int = 0
    data: bytes = b""


class _Opened(NamedTuple):
    path: str
    flags: int


class DiskRecorder:
    """The steps that were taken below `root` while `recording`."""

    def __init__(self, root: Path) -> None:
        self._root = f"{root}{os.sep}"
        self.steps: list[Step] = []
        self._files: dict[int, _Opened] = {}

    def _path(self, fd: int) -> str:
        return self._files[fd].path if fd in self._files else ""

    def _note(self, do: str, path: Any, **more: Any) -> None:
        if f"{os.fspath(path)}{os.sep}".startswith(self._root):
            self.steps.append(Step(do, os.fspath(path), **more))

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Stand before the calls that change files."""
        real = {name: getattr(os, name) for name in WATCHED}
        try:
            for name, call in real.items():
                setattr(os, name, self._standing_before(call, getattr(self, name)))
            yield
        finally:
            for name, call in real.items():
                setattr(os, name, call)

    def _standing_before(
        self, call: Callable[..., Any], note: Callable[..., None]
    ) -> Callable[..., Any]:
        def both(*args: Any, **named: Any) -> Any:
            before = self._before(note.__name__, args[0])
            result = call(*args, **named)
            note(result, before, *args)
            return result

        return both

    def _before(self, name: str, subject: Any) -> int:
        """Where a write will begin; whether a file is there that is opened."""
        if name == "open":
            return os.path.lexists(subject)
        if name != "write" or subject not in self._files:
            return 0
        is_appending = self._files[subject].flags & os.O_APPEND
        return os.fstat(subject).st_size if is_appending else os.lseek(subject, 0, os.SEEK_CUR)

    # One method for each call of `os` that is watched: its result, what was so before it, and its
    # arguments.

    def open(self, fd: int, existed: int, path: Any, flags: int, *_: Any) -> None:
        self._files[fd] = _Opened(os.fspath(path), flags)
        if not existed:
            self._note("make", path)
        elif flags & os.O_TRUNC:
            self._note("size", path, offset=0)

    def write(self, count: int, offset: int, fd: int, data: Any) -> None:
        self._note("write", self._path(fd), offset=offset, data=bytes(data)[:count])

    def ftruncate(self, _: None, __: int, fd: int, size: int) -> None:
        self._note("size", self._path(fd), offset=size)

    def fdatasync(self, _: None, __: int, fd: int) -> None:
        self._note("sync", self._path(fd))

    def fsync(self, _: None, __: int, fd: int) -> None:
        self._note("sync", self._path(fd))

    def mkdir(self, _: None, __: int, path: Any, *___: Any) -> None:
        self._note("folder", path)

    def replace(self, _: None, __: int, path: Any, to: Any) -> None:
        self._note("rename", path, to=os.fspath(to))

    def rename(self, _: None, __: int, path: Any, to: Any) -> None:
        self._note("rename", path, to=os.fspath(to))

    def unlink(self, _: None, __: int, path: Any, *___: Any) -> None:
        self._note("remove", path)


class _File:
    """A file or folder: what is safe, and what was done since."""

    def __init__(self, *, is_folder: bool) -> None:
        self.is_folder = is_folder
        self.safe = b""
        self.names: dict[str, _File] = {}
        self.pending: list[Callable[[_File, Random | None], None]] = []

    def sync(self) -> None:
        for change in self.pending:
            change(self, None)
        self.pending = []

    def cut(self, random: Random) -> None:
        for change in self.pending:
            change(self, random)


def after_cut(steps: list[Step], root: Path, random: Random, into: Path) -> None:
    """Write to `into` what is left below `root` when the power fails after these steps."""
    known: dict[str, _File] = {str(root): _File(is_folder=True)}
    for step in steps:
        _play(step, known)
    _leave(known[str(root)], random, into)


def _play(step: Step, known: dict[str, _File]) -> None:
    above = known.get(os.path.dirname(step.path))
    name = os.path.basename(step.path)
    match step.do:
        case "make" | "folder":
            made = known[step.path] = _File(is_folder=step.do == "folder")
            assert above is not None
            above.pending.append(_naming(name, made))
        case "write":
            known[step.path].pending.append(_writing(step.offset, step.data))
        case "size":
            known[step.path].pending.append(_sizing(step.offset))
        case "sync":
            known[step.path].sync()
        case "rename":
            assert above is not None
            moved = known[step.to] = known.pop(step.path)
            above.pending.append(_renaming(name, os.path.basename(step.to), moved))
        case "remove":
            assert above is not None
            known.pop(step.path)
            above.pending.append(_forgetting(name))


def _happens(random: Random | None) -> bool:
    return random is None or random.random() < 0.5


def _naming(name: str, made: _File) -> Callable[[_File, Random | None], None]:
    def change(folder: _File, random: Random | None) -> None:
        if _happens(random):
            folder.names[name] = made

    return change


def _renaming(name: str, to: str, moved: _File) -> Callable[[_File, Random | None], None]:
    def change(folder: _File, random: Random | None) -> None:
        if _happens(random):
            folder.names.pop(name, None)
            folder.names[to] = moved

    return change


def _forgetting(name: str) -> Callable[[_File, Random | None], None]:
    def change(folder: _File, random: Random | None) -> None:
        if _happens(random):
            folder.names.pop(name, None)

    return change


def _sizing(size: int) -> Callable[[_File, Random | None], None]:
    def change(file: _File, random: Random | None) -> None:
        if _happens(random):
            file.safe = file.safe[:size].ljust(size, b"\0")

    return change


def _writing(offset: int, data: bytes) -> Callable[[_File, Random | None], None]:
    def change(file: _File, random: Random | None) -> None:
        at = offset
        while at < offset + len(data):
            end = min((at // SECTOR + 1) * SECTOR, offset + len(data))
            if _happens(random):
                before = file.safe[:at].ljust(at, b"\0")
                file.safe = before + data[at - offset : end - offset] + file.safe[end:]
            at = end

    return change


def _leave(file: _File, random: Random, into: Path) -> None:
    file.cut(random)
    if not file.is_folder:
        into.write_bytes(file.safe)
        return
    into.mkdir(exist_ok=True)
    for name, below in file.names.items():
        _leave(below, random, into / name)
