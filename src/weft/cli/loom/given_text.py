"""Texts that a command is given: in words, from a file, or from a pipe."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Final

from weft.errors import UsageError

MOST_BYTES: Final = 10 * 1024 * 1024


def text_of(words: Sequence[str], file: str | None = None) -> str:
    """The text that words give: themselves, `-` what is piped in, `@FILE` a file.

    Raises:
        UsageError: there is none, there are two, or it is no text.
    """
    said = " ".join(words)
    if file is not None:
        if words:
            raise UsageError("give either a text or --file, not both")
        return file_text(file)
    if not words and sys.stdin is not None and not sys.stdin.closed and not sys.stdin.isatty():
        # Nothing was asked of a pipe: an empty one is as good as none.
        data = _piped(MOST_BYTES)
        text = _decoded(data, "what is piped in") if data else ""
    else:
        text = piped_text() if said == "-" else value_text(said)
    if not text.strip():
        raise UsageError(
            "there is no text to begin with; give one (weft loom new 'Once upon a time'), "
            "@FILE, or - for what is piped in"
        )
    return text


def value_text(value: str) -> str:
    """The value of an option or a word: `@FILE` stands for what is in the file.

    Raises:
        UsageError: the file cannot be read, or it is no text.
    """
    if value.startswith("@") and len(value) > 1 and "\n" not in value:
        return file_text(value[1:])
    if not is_unicode(value):
        raise UsageError("the text holds bytes that are not UTF-8")
    return value


def is_unicode(value: str) -> bool:
    """Whether a word of the command line is text: bytes that are not come as lone surrogates."""
    return not any("\ud800" <= each <= "\udfff" for each in value)


def piped_text() -> str:
    """What is piped in, without the newline that ends it.

    Raises:
        UsageError: there is nothing, it is too large, or no text.
    """
    return _decoded(piped_bytes(MOST_BYTES), "what is piped in")


def piped_bytes(most: int) -> bytes:
    """The same, whatever it is."""
    if sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
        raise UsageError("nothing is piped in")
    data = _piped(most)
    if not data:
        raise UsageError("nothing is piped in")
    return data


def _piped(most: int) -> bytes:
    data = sys.stdin.buffer.read(most + 1)
    if len(data) > most:
        raise UsageError(f"what is piped in is larger than {most // 1024**2} MB")
    return data


def file_text(path: str) -> str:
    """The text of a file, without the newline that ends it.

    Raises:
        UsageError: it cannot be read, it is too large, or no text.
    """
    return _decoded(file_bytes(path), repr(path))


def _decoded(data: bytes, named: str) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{named} is not text (byte {error.start} is not UTF-8)") from None
    if "\0" in text:
        raise UsageError(f"{named} is not text (it holds NUL bytes)")
    return without_last_newline(text.replace("\r\n", "\n"))


def file_bytes(path: str, most: int = MOST_BYTES) -> bytes:
    """What is in a file.

    Raises:
        UsageError: it cannot be read, or it is too large.
    """
    try:
        with open(os.path.expanduser(path), "rb") as file:
            data = file.read(most + 1)
    except OSError as error:
        raise UsageError(f"cannot read {path!r}: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"cannot read {path!r}: {error}") from error
    if len(data) > most:
        raise UsageError(f"{path!r} is larger than {most // 1024**2} MB")
    return data


def without_last_newline(text: str) -> str:
    """A text as a model goes on from it: the newline that ends a file begins no new line."""
    return text[:-1] if text.endswith("\n") else text
