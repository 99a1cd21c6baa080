"""Standard output and error: flushed at once, and never written to another open file.

When a program is started with a standard stream closed, the next file it opens gets that number,
and a `print` goes into it.  So the three numbers are taken first.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from typing import Any

import msgspec

from weft.cli.exit_codes import FAILED, CommandExit, TerminalClosed

_encoder = msgspec.json.Encoder()


def write(text: str) -> None:
    """Write to standard output, now.  On a terminal only what is fit for one.

    Raises:
        BrokenPipeError: the reader has closed the output.
        CommandExit: it cannot be written.
    """
    if sys.stdout is not None and sys.stdout.isatty():
        # Only for a terminal: a pipe gets exactly what the model wrote.
        text = _clean(text)
    _write(sys.stdout, text.encode("utf-8", "replace"))


def write_line(text: str) -> None:
    """`write`, with a newline behind it."""
    write(text if text.endswith("\n") else f"{text}\n")


def write_json(value: Any) -> None:
    """One JSON value on one line.

    What a terminal could obey is written as `\\uXXXX`, which is the same JSON.
    """
    data = _encoder.encode(value)
    if not data.isascii() or b"\x7f" in data:
        data = _without_risky(data.decode()).encode()
    _write(sys.stdout, data + b"\n")


def write_pretty(value: Any) -> None:
    """A JSON value for people and programs."""
    data = msgspec.json.format(_encoder.encode(value), indent=2).decode()
    _write(sys.stdout, (_without_risky(data) + "\n").encode())


def complain(text: str) -> None:
    """Write a complaint to standard error; it does not matter if that is closed."""
    if not text or sys.stderr is None:
        return
    try:
        _write(sys.stderr, f"weft: {_clean(text)}\n".encode("utf-8", "replace"))
    except (OSError, CommandExit, ValueError):
        return


def tell(text: str) -> None:
    """A line on standard error that is no complaint."""
    if sys.stderr is None:
        return
    try:
        _write(sys.stderr, f"{_clean(text)}\n".encode("utf-8", "replace"))
    except (OSError, CommandExit, ValueError):
        return


def has_terminal() -> bool:
    """Whether standard error is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


def show_passing(text: str) -> None:
    """Show a line on the terminal in place of the one that was shown before; none for no text."""
    if not has_terminal():
        return
    try:
        # Cut at the margin: what runs over it cannot be taken back.
        width = os.get_terminal_size(sys.stderr.fileno()).columns or 80
        _write(sys.stderr, f"\r\x1b[K{_clean(text)[: width - 1]}".encode("utf-8", "replace"))
    except (OSError, CommandExit, ValueError):
        return


def take_standard_streams() -> None:
    """Make sure that the numbers 0, 1 and 2 are ours.

    A closed output is remembered: see `check_output`.
    """
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one


def check_output(has_file: bool) -> None:
    """Refuse to work where no output can be read.

    Raises:
        CommandExit: standard output was closed from the start and no file takes the answer.
    """
    if sys.stdout is None and not has_file:
        raise CommandExit(
            FAILED, "standard output is closed; leave it open, or take the answer with -o FILE"
        )


def forget_output() -> None:
    """Nothing can be written any more: let Python's own flush at the end go nowhere, quietly."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    # Python flushes standard output once more at exit; on a closed pipe that would print a
    # traceback.
    os.dup2(devnull, 1)
    os.close(devnull)


def _write(stream: Any, data: bytes) -> None:
    if stream is None:
        return
    try:
        stream.flush()
        # Through the buffer, because the stream's own encoding may be ASCII; flushed before, so
        # that the order with `print` stays.
        stream.buffer.write(data)
        stream.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        if stream is sys.stdout:
            is_terminal = stat.S_ISCHR(os.fstat(1).st_mode)
            forget_output()
            # What the kernel answers once the other side of a terminal is gone. SIGHUP comes with
            # it, sooner or later than this, and the exit code is to be the same.
            if error.errno == errno.EIO and is_terminal:
                raise TerminalClosed(errno.EIO, "the terminal was closed") from error
        raise CommandExit(FAILED, f"cannot write the output: {error.strerror}") from error


def _clean(text: str) -> str:
    from weft.cli.sanitize import clean  # a run into a pipe has no use for it

    return clean(text)


def _without_risky(text: str) -> str:
    """JSON with what a terminal could obey as `\\uXXXX`."""
    from weft.cli.sanitize import HIDDEN  # as above

    return re.sub(rf"[\x7f-\x9f{HIDDEN}]", _escaped, text)


def _escaped(found: re.Match[str]) -> str:
    number = ord(found.group())
    if number < 0x10000:
        return f"\\u{number:04x}"
    number -= 0x10000
    return f"\\u{0xD800 + (number >> 10):04x}\\u{0xDC00 + (number & 0x3FF):04x}"
