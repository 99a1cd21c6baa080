"""`@path` in what is said: the file goes along where there is one in the project; otherwise it is plain text (`@alice`).

Finding the names is a pure function.  Attaching reads through the workspace, so only files of the project and of the folders added to it can be
named, whatever links say; what is too large, or no text, is left out and said so.  The text itself is never changed.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from weft.errors import ToolError
from weft.messages import File, Image, Text
from weft.workspace import FileState, Workspace

MOST_FILES: Final = 20
LARGEST_TEXT: Final = 256 * 1024
LARGEST_PICTURE: Final = 5 * 1024 * 1024
LARGEST_TOGETHER: Final = 8 * 1024 * 1024
"""Bytes of all files that go along with one message."""
PICTURES: Final = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}

_LETTER: Final = r"[^\s\"'`,;()<>\[\]{}"
MENTION: Final = rf"(?<![\w@/.])@(\"[^\"\n]+\"|{_LETTER}@]{_LETTER}]*)"
_mention: Final = re.compile(MENTION)
_SENTENCE_END: Final = ".,:;!?"

Parts: TypeAlias = tuple[Text | Image | File, ...]


def mentions_in(text: str) -> tuple[str, ...]:
    """The paths that a text names with `@`, each once, in order; whether there is such a file is another question.

    A path with spaces stands in quotes: `@"my notes.md"`.  An address (`a@b.org`) names nothing.
    """
    return tuple(dict.fromkeys(match.group(1).strip('"') for match in _mention.finditer(text)))


async def with_mentions(
    text: str, workspace: Workspace, redact: Callable[[str], str] = str
) -> Parts:
    """A text, and behind it the files that it names."""
    return (Text(text=text), *await attached(mentions_in(text), workspace, redact))


async def attached(
    names: Iterable[str], workspace: Workspace, redact: Callable[[str], str] = str
) -> Parts:
    """The files of these names as parts; names that are no file of the project give nothing."""
    parts: list[Text | Image | File] = []
    left_out: list[str] = []
    room = LARGEST_TOGETHER
    seen: set[str] = set()
    for name in names:
        found = await _find(name, workspace)
        if found is None or found.path in seen:
            continue
        seen.add(found.path)
        part = _part(found, redact)
        if len(seen) > MOST_FILES or found.size > room:
            part = f"{found.path}: too many or too large files in one message"
        if isinstance(part, str):
            left_out.append(part)
            continue
        room -= found.size
        parts.append(part)
    if left_out:
        told = "; ".join(left_out)
        parts.append(Text(text=f"\n[Not sent along: {told}. Read what you need with your tools.]"))
    return tuple(parts)


async def _find(name: str, workspace: Workspace) -> FileState | None:
    """The file that is meant; a sentence may end right behind its name."""
    for candidate in dict.fromkeys((name, name.rstrip(_SENTENCE_END))):
        try:
            if not candidate or workspace.is_outside(candidate):
                continue
            real = await workspace.resolve(candidate)
            found = await workspace.peek(real, limit=LARGEST_PICTURE + 1)
        except ToolError:
            continue
        if found is not None:
            return found
    return None


def _part(found: FileState, redact: Callable[[str], str]) -> Image | File | str:
    """The file as a part, or why it is none."""
    kind = PICTURES.get(os.path.splitext(found.path)[1].lower())
    if found.truncated or len(found.data) > (LARGEST_PICTURE if kind else LARGEST_TEXT):
        return f"{found.path}: too large ({found.size:,} bytes)"
    if kind is not None:
        data = base64.b64encode(found.data).decode()
        return Image(media_type=kind, data=data, name=found.path)
    try:
        text = found.data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return f"{found.path}: not a text"
    if "\0" in text:
        return f"{found.path}: not a text"
    return File(name=found.path, text=redact(text))
