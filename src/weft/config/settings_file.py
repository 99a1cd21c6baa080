"""Changing the user's `config.toml`: one setting at a time, comments and order kept.

The file is replaced as a whole by a rename, in the folder that a link leads to, with the mode that
it had; what another program wrote meanwhile is not lost.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from weft.config.setting_keys import KEYS, known, typed_value
from weft.config.settings import LARGEST_FILE, SettingValue
from weft.config.toml_edit import toml_text, with_value, without_value
from weft.errors import UsageError
from weft.file_io import write_all
from weft.workspace import read_small_file, user_folder

_TRIES = 5
"""How often a change is made again because another program changed the file meanwhile."""


class SettingsFile:
    """The user's own settings."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "config.toml"

    def change(self, name: str, text: str) -> None:
        """Set a setting to what a user typed.

        Raises:
            UsageError: there is no such setting, it takes no such value, or the file cannot be
                changed.
        """
        check_settable(name, self.path)
        value = typed_value(name, text)
        source = str(self.path)
        self._replace(lambda before: with_value(before, name, value, source=source))

    def unset(self, name: str) -> bool:
        """Take a setting out; False when the file did not have it.

        Raises:
            UsageError: as above.
        """
        check_settable(name, self.path)
        source = str(self.path)
        return self._replace(lambda before: without_value(before, name, source=source))

    def _replace(self, edit: Callable[[str], str | None]) -> bool:
        for _ in range(_TRIES):
            before = self._read()
            after = edit(before.decode("utf-8", "surrogateescape"))
            if after is None:
                return False
            if self._written(before, after.encode("utf-8", "surrogateescape")):
                return True
        raise UsageError(f"{self.path} is being changed by another program; try again")

    def _read(self) -> bytes:
        found = read_small_file(user_folder(self.path.parent), self.path.name, LARGEST_FILE)
        return found.data if found is not None else b""

    def _written(self, before: bytes, after: bytes) -> bool:
        """Put the new content in place; False when the old one has changed meanwhile."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            # Where a link leads: users keep such files in a repository of their own, and a rename
            # over the link would part the two.
            goal = Path(os.path.realpath(self.path))
            return self._renamed(goal, before, after)
        except OSError as error:
            raise UsageError(f"cannot change {self.path}: {error.strerror}") from error

    def _renamed(self, goal: Path, before: bytes, after: bytes) -> bool:
        import tempfile  # only when something is written: it costs start-up time

        fd, name = tempfile.mkstemp(dir=goal.parent, prefix=f".{goal.name}-")
        try:
            try:
                write_all(fd, after)
                _keep_mode(fd, goal)
                # Before the rename, which may reach the disk first: after a crash the file would
                # be empty.
                os.fsync(fd)
            finally:
                os.close(fd)
            is_same = self._read() == before
            if is_same:
                os.replace(name, goal)
                return True
            os.unlink(name)
            return False
        except BaseException:
            if os.path.lexists(name):
                os.unlink(name)
            raise


def _keep_mode(fd: int, goal: Path) -> None:
    """The mode and owner of the file that is replaced; a new one is private: it may hold keys."""
    try:
        about = os.stat(goal)
    except FileNotFoundError:
        return
    if about.st_uid != os.geteuid() or about.st_gid != os.getegid():
        try:
            os.fchown(fd, about.st_uid, about.st_gid)
        except PermissionError as error:
            raise UsageError(f"{goal} belongs to another user; change it as that user") from error
    os.fchmod(fd, stat.S_IMODE(about.st_mode))


def setting_note(value: SettingValue, name: str, path: Path, *, was_there: bool) -> str:
    """What to say of a setting after it was changed; `value` is the one that counts now."""
    shown = toml_text(value.value)
    if not was_there:
        return f"{name} is not set in {path}; it is {shown} ({value.source})"
    if value.source == str(path):
        return f"{name} = {shown} in {path}"
    if value.source == "default":
        return f"{name} is back at its default, {shown}"
    return f"{path} is changed, but {value.source} comes before it: {name} is still {shown}"


def check_settable(name: str, path: Path) -> None:
    """Refuse what cannot be set with one word or line.

    Raises:
        UsageError: there is no such setting, or it is a table.
    """
    known(name)
    if isinstance(KEYS[name].default, dict):
        raise UsageError(f"{name} is a table; write it into {path}")
