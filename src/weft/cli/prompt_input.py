"""Prompt input: the words of the command line, what is piped in, and the files that they name.

Which files those are, and whether they may be read, is decided in `weft.project.mentions`, for
every edge.  What is piped in names none: a log or a diff is data, and an `@` in it is not the
user's.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeAlias

from weft.errors import UsageError
from weft.messages import File, Image, Text

if TYPE_CHECKING:  # loaded where a prompt names files: it costs start-up time
    from weft.app import App
    from weft.project.mentions import AskRead

MAX_BYTES = 10 * 1024 * 1024
"""What may be piped in."""
MOST_MISSING = 3
"""Names of no file that one sentence lists."""
WAIT_SECONDS = 3.0
"""Silence on a pipe after which we say what we are waiting for."""

PromptParts: TypeAlias = tuple[Text | Image | File, ...]


def read_piped(has_prompt: bool) -> str:
    """What is piped in, "" when nothing is.

    Raises:
        UsageError: it is too large, or no text.
    """
    source = sys.stdin
    if source is None or source.closed or source.isatty():
        return ""
    # The descriptor and not `sys.stdin.read()`: the limit must hold before the data is in memory.
    fd = source.fileno()
    if has_prompt:
        _say_what_we_wait_for(fd)
    data = b""
    while len(data) <= MAX_BYTES and (more := os.read(fd, 1 << 20)):
        data += more
    if len(data) > MAX_BYTES:
        raise UsageError(
            f"what is piped in is larger than {MAX_BYTES // 1024**2} MB; "
            "put it in a file and let the model read the parts it needs"
        )
    return _as_text(data)


def _say_what_we_wait_for(fd: int) -> None:
    """A pipe that its writer keeps open would hold us up for ever without a word."""
    # A file or `/dev/null` has an end; only a pipe can stay open without a word.
    if not stat.S_ISFIFO(os.fstat(fd).st_mode):
        return
    import select  # only for pipes

    if not select.select([fd], [], [], WAIT_SECONDS)[0]:
        print(
            "weft: waiting for the end of standard input (`< /dev/null` if there is none)",
            file=sys.stderr,
        )


def compose(words: Iterable[str], *, piped: str = "") -> PromptParts:
    """The text of a prompt, before any file is attached; nothing when it is empty.

    Raises:
        UsageError: it is not text.
    """
    # As with other programs, a lone dash stands for what is piped in.
    given = list(words)
    text = " ".join(_checked(word) for word in given) if given != ["-"] else ""
    whole = "\n\n".join(part for part in (text, piped) if part.strip())
    return (Text(text=whole),) if whole else ()


async def attached(
    app: App,
    words: Iterable[str],
    *,
    images: Iterable[str] = (),
    ask: AskRead | None = None,
    tell: Callable[[str], None] | None = None,
) -> PromptParts:
    """The files that these words name with `@`, and the images that the user picked.

    `tell` is given one sentence where a name looks like a path and there is no such file.

    Raises:
        UsageError: one may not be read, or cannot be attached.
    """
    # Most prompts name no file, and finding files loads the project's modules: a quick look first
    # keeps the start fast.
    naming = [word for word in words if "@" in word]
    picked = list(map(_absolute, images))

    def tell_missing(names: tuple[str, ...]) -> None:
        if tell is not None:
            tell(missing_text(names))

    files = await app.attach_files(naming, ask=ask, missing=tell_missing) if naming else ()
    return (*files, *(await app.read_images(picked) if picked else ()))


def missing_text(names: tuple[str, ...]) -> str:
    """The sentence about names of no file."""
    shown = ", ".join(repr(name) for name in names[:MOST_MISSING])
    more = f" and {len(names) - MOST_MISSING} more" if len(names) > MOST_MISSING else ""
    return f"there is no file {shown}{more}; nothing of it is attached"


def _absolute(path: str) -> str:
    return os.path.abspath(os.path.expanduser(path))


def _checked(word: str) -> str:
    try:
        # Python passes bytes that are not UTF-8 as lone surrogates. They cannot be stored as JSON,
        # so they are refused here, with a sentence, and not later by the encoder.
        word.encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            "the prompt is not text: it holds bytes that are not UTF-8; "
            "name the file with @FILE or -i FILE instead"
        ) from error
    return word


def _as_text(data: bytes) -> str:
    try:
        # Windows programs begin their output with a byte order mark; the model would see it as
        # text.
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"what is piped in is not text (byte {error.start} is not UTF-8); "
            "images go with -i FILE"
        ) from error
    if "\0" in text:
        raise UsageError(
            "what is piped in is not text (it holds NUL bytes); images go with -i FILE"
        )
    return text
