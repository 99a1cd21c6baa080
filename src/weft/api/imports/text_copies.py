"""Copies of texts of other agents into the user's own folder: instructions, commands, skills.

What is there already is never replaced.  Links are not followed, and what is copied is bounded.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

import msgspec

from weft.api.imports.opencode_records import plain_bytes
from weft.errors import UsageError
from weft.file_io import write_all

LARGEST: Final = 256 * 1024
MOST_FILES: Final = 200
"""Of one skill, and of one folder of commands or skills."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class TextCopy(msgspec.Struct, frozen=True):
    """A text, or a folder of them, and what became of it."""

    name: str
    state: Literal["new", "made", "there", "left out"]
    why: str = ""


class TextCopies:
    """Copies into one folder.  Blocks."""

    def __init__(self, config: Path) -> None:
        self._config = config

    def file(self, source: Path, name: str, write: bool) -> TextCopy | None:
        """One file; None where there is none."""
        if not source.is_file():
            return None
        target = self._config / name
        try:
            data = _text(source)
            if os.path.lexists(target):
                return _beside(source, target, data)
            if write:
                _put(target, data)
        except (UsageError, OSError) as error:
            return TextCopy(source.name, "left out", _sentence(error))
        return TextCopy(source.name, "made" if write else "new", f"{source} to {target}")

    def texts(self, source: Path, name: str, write: bool) -> Iterator[TextCopy]:
        """The Markdown files of a folder, and of those in it."""
        for path in _below(source, ".md"):
            inner = path.relative_to(source)
            if copied := self.file(path, f"{name}/{inner}", write):
                yield msgspec.structs.replace(copied, name=str(inner))

    def folders(self, source: Path, name: str, main: str, write: bool) -> Iterator[TextCopy]:
        """The folders in a folder that have such a file, each with all that is in it."""
        if not source.is_dir() or source.is_symlink():
            return
        for folder in sorted(source.iterdir())[:MOST_FILES]:
            if folder.is_symlink() or not _NAME.fullmatch(folder.name):
                continue
            if (folder / main).is_file():
                yield self._folder(folder, f"{name}/{folder.name}", main, write)

    def _folder(self, source: Path, name: str, main: str, write: bool) -> TextCopy:
        target = self._config / name
        if os.path.lexists(target):
            try:
                return _beside(source / main, target / main, _text(source / main), source.name)
            except UsageError as error:
                return TextCopy(source.name, "left out", _sentence(error))
        try:
            texts = [(path.relative_to(source), _text(path)) for path in _below(source, "")]
            for inner, data in texts if write else ():
                _put(target / inner, data)
        except (UsageError, OSError) as error:
            return TextCopy(source.name, "left out", _sentence(error))
        return TextCopy(source.name, "made" if write else "new", f"{source} to {target}")


def _beside(source: Path, target: Path, data: bytes, name: str = "") -> TextCopy:
    """A text beside one of ours."""
    same = target.is_file() and plain_bytes(target.resolve(), LARGEST) == data
    why = "" if same else f"you have another one, {target}; copy what you need from {source}"
    return TextCopy(name or source.name, "there" if same else "left out", why)


def _below(folder: Path, end: str) -> list[Path]:
    """Files with plain names below a folder, through no link; not more than may be."""
    found: list[Path] = []
    for here, folders, files in os.walk(folder, followlinks=False):
        folders[:] = sorted(each for each in folders if _NAME.fullmatch(each))
        for name in sorted(files):
            path = Path(here, name)
            if _NAME.fullmatch(name) and name.endswith(end) and not path.is_symlink():
                found.append(path)
        if len(found) > MOST_FILES:
            return found[:MOST_FILES]
    return found


def _text(path: Path) -> bytes:
    data = plain_bytes(path, LARGEST)
    if b"\0" in data:
        raise UsageError(f"{str(path)!r} is no text")
    return data


def _put(target: Path, data: bytes) -> None:
    """A new file, which must not be there."""
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    fd = os.open(target, flags, 0o600)
    try:
        write_all(fd, data)
    finally:
        os.close(fd)


def _sentence(error: Exception) -> str:
    return str(error) if isinstance(error, UsageError) else f"cannot be written: {error}"
