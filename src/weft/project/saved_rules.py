"""Saved permission rules: what the user allowed "always", for one project.

A rule that is kept covers exactly what was shown, in this project, from the next session on that is
opened.  It lies in the user's own folder: a project can neither bring nor read it.  Where the file
cannot be trusted or read, more is asked; nothing else happens.
"""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path
from typing import Final

import msgspec

from weft.errors import UsageError
from weft.permissions import PermissionRule

logger = logging.getLogger(__name__)

NAME: Final = "rules.json"
LARGEST: Final = 4 * 1024 * 1024


class SavedRules:
    """The file with the rules, `~/.config/weft/rules.json`: for each project what is allowed in it,
    `tool(target)`.
    """

    def __init__(self, config: Path) -> None:
        self.path = config / NAME

    def of(self, project: str) -> tuple[PermissionRule, ...]:
        """What is allowed in a project."""
        try:
            kept = self._read()
        except (OSError, msgspec.DecodeError) as error:
            logger.warning("saved rules are not read: %s", type(error).__name__)
            return ()
        return tuple(_rule(text, str(self.path)) for text in kept.get(project, ()))

    def add(self, project: str, text: str) -> None:
        """Keep one more; it is there once, however often it is added.  Others who add at this
        moment wait.

        Raises:
            UsageError: the file cannot be read or written, so that nothing was kept.
        """
        import fcntl  # only when a rule is kept: it costs start-up time

        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                # On a file of its own: the rules are replaced by a rename, and a lock on the
                # replaced file would no longer keep out a process that opens the new one.
                fcntl.flock(lock, fcntl.LOCK_EX)
                self._write(project, text)
            finally:
                os.close(lock)
        except (OSError, msgspec.DecodeError) as error:
            raise UsageError(f"the rule cannot be saved in {self.path}: {error}") from error

    def _read(self) -> dict[str, list[str]]:
        try:
            handle = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return {}
        with os.fdopen(handle, "rb") as file:
            # Of the opened file, not of the path: between a check of the path and the opening
            # another file could take its place.
            about = os.fstat(handle)
            is_ours = about.st_uid == os.geteuid() and not about.st_mode & 0o022
            if not is_ours or not stat.S_ISREG(about.st_mode) or about.st_size > LARGEST:
                raise PermissionError(f"{self.path} is not private to this user")
            return msgspec.json.decode(file.read(), type=dict[str, list[str]])

    def _write(self, project: str, text: str) -> None:
        kept = self._read()
        if text in kept.get(project, ()):
            return
        kept.setdefault(project, []).append(text)
        passing = f"{self.path}.{os.getpid()}"
        handle = os.open(passing, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(kept)) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(passing, self.path)


def _rule(text: str, source: str) -> PermissionRule:
    tool, _, rest = text.partition("(")
    # Exact: the user allowed what was shown, and a `*` in a command that was shown is a character
    # and not a pattern.
    return PermissionRule(
        verdict="allow", tool=tool, pattern=rest.removesuffix(")"), source=source, is_exact=True
    )
