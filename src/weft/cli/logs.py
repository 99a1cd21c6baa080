"""The log file: what developers need to know, kept off the user's screen.

The file is made when there is something to write: `weft.log` beside the data, private, and begun
anew when it grows too large.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

from weft.errors import UsageError

MAX_BYTES = 4 * 1024 * 1024
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
# The session in a place of its own: when it is deleted, its records are found by it.
_SHOWN = "%(asctime)s %(process)d %(levelname)s %(name)s [%(session)s] %(message)s"
_FOLLOWS = "  | "
"""Begins each line of a traceback, which no record begins with."""
_CONTROL = r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]"


def log_path() -> Path:
    """Where the log is, if there is one."""
    try:
        from weft.config.paths import places
    except Exception:  # the program itself may be what is broken
        return Path("~/.local/share/weft/weft.log").expanduser()
    return places(os.environ).home / "weft.log"


def log_to_file() -> None:
    """Send warnings and errors of all modules to the file.

    Raises:
        UsageError: the environment asks for a level that there is not.
    """
    root = logging.getLogger()
    if not any(isinstance(handler, _LazyFile) for handler in root.handlers):
        level = os.environ.get("WEFT_LOG") or "WARNING"
        if level.upper() not in LEVELS:
            known = ", ".join(each.lower() for each in LEVELS)
            raise UsageError(f"WEFT_LOG takes one of {known}, not {level!r}")
        root.addHandler(_LazyFile())
        root.setLevel(level.upper())


def log_crash(error: BaseException) -> str:
    """Write an error down with all there is to know; returns where, for the user."""
    try:
        log_to_file()
        logging.getLogger("weft").error("crashed", exc_info=error)
        return f"see {log_path()}"
    except Exception:  # not even that: the sentence must still reach the user
        return "it could not be logged"


class _OneLine(logging.Formatter):
    """A record in one line, without secrets; what belongs to it follows in lines that are marked.

    A text that a record quotes (of a model, a file, a server) can then neither look like a record
    of its own nor act on the terminal that shows the log.
    """

    def __init__(self) -> None:
        super().__init__(_SHOWN, defaults={"session": "-"})
        self.converter = time.gmtime
        self._redact: Callable[[str], str] | None = None

    def format(self, record: logging.LogRecord) -> str:
        message, *more = self._masked(self._split(record))
        lines = [_escaped(message)]
        lines += [_FOLLOWS + _escaped(line) for text in more for line in text.split("\n")]
        return "\n".join(lines)

    def _split(self, record: logging.LogRecord) -> list[str]:
        """The line of a record, then its traceback and its stack."""
        record.message = record.getMessage()
        record.asctime = self.formatTime(record, self.datefmt)
        found = [self.formatMessage(record)]
        if record.exc_info:
            found.append(self.formatException(record.exc_info))
        if record.stack_info:
            found.append(self.formatStack(record.stack_info))
        return found

    def _masked(self, texts: list[str]) -> list[str]:
        if self._redact is None:
            self._redact = redactor()
        return [self._redact(text) for text in texts]


def redactor() -> Callable[[str], str]:
    """Masks shapes, and the keys of the environment and of `weft auth login`."""
    try:
        from weft.config.api_keys import known_secrets  # with the first record: start-up time
        from weft.config.paths import places
        from weft.redact import Redactor

        return Redactor(known_secrets(os.environ, places(os.environ).config))
    except Exception:  # the program itself may be what is broken: then say nothing of its values
        return lambda text: "(not written: secrets in it could not be masked)"


def _escaped(text: str) -> str:
    return re.sub(_CONTROL, lambda found: found[0].encode("unicode_escape").decode(), text)


class _LazyFile(logging.Handler):
    """Opens its file with the first record; one that cannot be opened is done without."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.setFormatter(_OneLine())

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record)
            path = log_path()
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            # One old file is kept; a log must never fill the disk.
            if path.exists() and path.stat().st_size > MAX_BYTES:
                path.replace(path.with_suffix(".log.1"))
            # Opened for each record: several processes share the file, another one may have moved
            # it aside, and O_APPEND keeps their lines whole.
            fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(fd, f"{line}\n".encode("utf-8", "replace"))
            finally:
                os.close(fd)
        except OSError:
            return
