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
from typing import Any, Final

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
        """What is allowed in a project; what is not right is left out (`problems`)."""
        try:
            kept = msgspec.json.decode(self._read())
        except (OSError, msgspec.DecodeError) as error:
            logger.warning("saved rules are not read: %s", type(error).__name__)
            return ()
        texts = kept.get(project) if isinstance(kept, dict) else None
        if not isinstance(texts, list):
            return ()
        return tuple(_rule(text, str(self.path)) for text in texts if not _problem(text))

    def problems(self, project: str) -> list[str]:
        """What in the file counts for nothing in a project, and why: a sentence each, with the
        line.
        """
        try:
            data = self._read()
            kept = msgspec.json.decode(data)
        except OSError as error:
            return [f"{self.path}: no rule in it counts: {error}"]
        except msgspec.DecodeError as error:
            return [self._at(_bad_line(data), f"no rule in it counts: it is not JSON ({error})")]
        if not isinstance(kept, dict):
            what = "it must be an object, with a list for each project"
            return [self._at(1, f"no rule in it counts: {what}")]
        texts = kept.get(project, [])
        if not isinstance(texts, list):
            what = f"the rules of {project!r} are ignored: they must be a list"
            return [self._at(_line_of(project, data), what)]
        return [
            self._at(_line_of(text, data), f"the rule {text!r} is ignored: {why}")
            for text in texts
            if (why := _problem(text))
        ]

    def _at(self, line: int, what: str) -> str:
        return f"{self.path}, line {line}: {what}"

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

    def _read(self) -> bytes:
        """The file, of which nothing but the owner is known to be right."""
        try:
            handle = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return b"{}"
        with os.fdopen(handle, "rb") as file:
            # Of the opened file, not of the path: between a check of the path and the opening
            # another file could take its place.
            about = os.fstat(handle)
            is_ours = about.st_uid == os.geteuid() and not about.st_mode & 0o022
            if not is_ours or not stat.S_ISREG(about.st_mode) or about.st_size > LARGEST:
                raise PermissionError(f"{self.path} is not private to this user")
            return file.read()

    def _write(self, project: str, text: str) -> None:
        kept = msgspec.json.decode(self._read(), type=dict[str, Any])
        rules = kept.setdefault(project, [])
        if not isinstance(rules, list):
            # It would have to be replaced, and the user may only have forgotten the brackets.
            raise msgspec.DecodeError(f"the rules of {project!r} are not a list")
        if text in rules:
            return
        rules.append(text)
        passing = f"{self.path}.{os.getpid()}"
        handle = os.open(passing, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(kept)) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(passing, self.path)


def _problem(text: object) -> str:
    from weft.permissions import saved_rule_problem  # only where there are rules

    return saved_rule_problem(text)


def _bad_line(data: bytes) -> int:
    """The line at which the text stops being JSON."""
    import json  # only for a broken file: it alone tells the line

    try:
        json.loads(data)
    except json.JSONDecodeError as error:
        return error.lineno
    except (UnicodeDecodeError, RecursionError):
        pass
    return 1


def _line_of(value: object, data: bytes) -> int:
    """The first line that has this value in it."""
    written = msgspec.json.encode(value)
    place = data.find(written)
    return data.count(b"\n", 0, place) + 1 if place >= 0 else 1


def _rule(text: str, source: str) -> PermissionRule:
    tool, _, rest = text.partition("(")
    # Exact: the user allowed what was shown, and a `*` in a command that was shown is a character
    # and not a pattern.
    return PermissionRule(
        verdict="allow", tool=tool, pattern=rest.removesuffix(")"), source=source, is_exact=True
    )
