"""The log file: what developers need to know, kept off the user's screen.

The file is made when there is something to write: `weft.log` beside the data, private, and begun
anew when it grows too large.
"""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path

MAX_BYTES = 4 * 1024 * 1024
_SHOWN = "%(asctime)s %(process)d %(levelname)s %(name)s %(message)s"


def log_path() -> Path:
    """Where the log is, if there is one."""
    try:
        from weft.config.paths import places
    except Exception:  # the program itself may be what is broken
        return Path("~/.local/share/weft/weft.log").expanduser()
    return places(os.environ).home / "weft.log"


def log_to_file() -> None:
    """Send warnings and errors of all modules to the file."""
    root = logging.getLogger()
    if not any(isinstance(handler, _LazyFile) for handler in root.handlers):
        root.addHandler(_LazyFile())
        root.setLevel(os.environ.get("WEFT_LOG", "WARNING").upper())


def log_crash(error: BaseException) -> str:
    """Write an error down with all there is to know; returns where, for the user."""
    try:
        log_to_file()
        logging.getLogger("weft").error("crashed", exc_info=error)
        return f"see {log_path()}"
    except Exception:  # not even that: the sentence must still reach the user
        return "it could not be logged"


class _LazyFile(logging.Handler):
    """Opens its file with the first record; one that cannot be opened is done without."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.setFormatter(logging.Formatter(_SHOWN))
        self.formatter.converter = time.gmtime  # type: ignore[union-attr]  # set one line above

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
