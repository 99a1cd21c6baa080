"""What is said to the model: words of the command line, what is piped in, and files that are named.

`@path` as a word of its own must be a file; inside a longer text, `@path` sends the file along where there is one and is plain text
otherwise (`@alice`).  The text itself is never changed.
"""

from __future__ import annotations

import base64
import os
import re
import stat
import sys
from collections.abc import Iterable
from typing import TypeAlias

from weft.config.paths import leads_out
from weft.errors import UsageError
from weft.messages import File, Image, Text

MAX_BYTES = 10 * 1024 * 1024
"""What one prompt may hold, all files together."""
WAIT_SECONDS = 3.0
"""Silence on a pipe after which we say what we are waiting for."""

PICTURES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}

Said: TypeAlias = tuple[Text | Image | File, ...]

_mention = re.compile(r"(?<![\w@/])@(\"[^\"\n]+\"|[^\s\"'`,;()<>\[\]{}]+)")


def read_piped(has_prompt: bool) -> str:
    """What is piped in, "" when nothing is.

    Raises:
        UsageError: it is too large, or no text.
    """
    source = sys.stdin
    if source is None or source.closed or source.isatty():
        return ""
    fd = source.fileno()
    if has_prompt:
        _say_what_we_wait_for(fd)
    data = b""
    while len(data) <= MAX_BYTES and (more := os.read(fd, 1 << 20)):
        data += more
    if len(data) > MAX_BYTES:
        raise UsageError(
            f"what is piped in is larger than {_size(MAX_BYTES)}; put it in a file and let the model read the parts it needs"
        )
    return _as_text(data, "what is piped in")


def _say_what_we_wait_for(fd: int) -> None:
    """A pipe that nobody closes would hold us up for ever without a word."""
    if not stat.S_ISFIFO(os.fstat(fd).st_mode):
        return
    import select  # only for pipes

    if not select.select([fd], [], [], WAIT_SECONDS)[0]:
        print(
            "weft: waiting for the end of standard input (`< /dev/null` if there is none)",
            file=sys.stderr,
        )


def compose(
    words: Iterable[str], *, piped: str = "", images: Iterable[str] = (), folder: str = "."
) -> Said:
    """The parts of a prompt.

    Raises:
        UsageError: it is empty, not text or too large, or names a file that cannot be read.
    """
    texts: list[str] = []
    named: list[str] = []
    for word in words:
        _check_word(word)
        if (path := _file_word(word, folder)) is not None:
            named.append(path)
        else:
            texts.append(word)
    text = " ".join(texts)
    named += [path for path in mentioned(text, folder) if path not in named]
    whole = "\n\n".join(part for part in (text, piped) if part.strip())
    parts: list[Text | Image | File] = [Text(text=whole)] if whole else []
    parts += [_read_file(path, folder) for path in named]
    parts += [_read_picture(path, folder) for path in images]
    _check_size(parts)
    return tuple(parts)


def mentioned(text: str, folder: str) -> list[str]:
    """The files that a text names with `@`, in order."""
    found: list[str] = []
    for match in _mention.finditer(text):
        path = match.group(1).strip('"')
        # A sentence may end right behind the name.
        for candidate in (path, path.rstrip(".,:;!?")):
            if candidate and os.path.isfile(_place(candidate, folder)):
                if candidate not in found:
                    found.append(candidate)
                break
    return found


def _check_word(word: str) -> None:
    try:
        word.encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            "the prompt is not text: it holds bytes that are not UTF-8; name the file with @FILE or -i FILE instead"
        ) from error


def _file_word(word: str, folder: str) -> str | None:
    """The path of a word `@path`; None when it is no such word."""
    if len(word) < 2 or not word.startswith("@"):
        return None
    path = word[1:]
    if os.path.isfile(_place(path, folder)):
        return path
    if any(letter.isspace() for letter in word):
        return None
    raise UsageError(f"there is no file {path!r} (from {word!r})")


def _read_file(path: str, folder: str) -> File | Image:
    if os.path.splitext(path)[1].lower() in PICTURES:
        return _read_picture(path, folder)
    return File(name=path, text=_as_text(_read(path, folder), f"{path!r}"))


def _read_picture(path: str, folder: str) -> Image:
    kind = PICTURES.get(os.path.splitext(path)[1].lower())
    if kind is None:
        raise UsageError(
            f"{path!r} is no picture that models take; those are {', '.join(sorted(PICTURES))}"
        )
    data = base64.b64encode(_read(path, folder)).decode()
    return Image(media_type=kind, data=data, name=os.path.basename(path))


def _read(path: str, folder: str) -> bytes:
    if leads_out(os.path.expanduser(path), folder):
        raise UsageError(
            f"{path!r} leads out of the project by a symbolic link; "
            "if you mean that file, name it by its own path"
        )
    try:
        with open(_place(path, folder), "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot read {path!r}: {error.strerror}") from error
    if len(data) > MAX_BYTES:
        raise UsageError(
            f"{path!r} is larger than {_size(MAX_BYTES)}; name it without sending it along, and the model reads what it needs"
        )
    return data


def _as_text(data: bytes, what: str) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{what} is not text (byte {error.start} is no UTF-8); pictures go with -i FILE"
        ) from error
    if "\0" in text:
        raise UsageError(f"{what} is not text (it holds NUL bytes); pictures go with -i FILE")
    return text


def _check_size(parts: Iterable[Text | Image | File]) -> None:
    total = sum(
        len(part.data) if isinstance(part, Image) else len(part.text.encode()) for part in parts
    )
    if total > MAX_BYTES * 4 // 3:
        raise UsageError(
            f"the prompt is larger than {_size(MAX_BYTES)} with its files; let the model read what it needs"
        )


def _place(path: str, folder: str) -> str:
    return os.path.join(folder, os.path.expanduser(path))


def _size(count: int) -> str:
    return f"{count // (1024 * 1024)} MB"
