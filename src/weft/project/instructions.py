"""Instructions: what the user and the project want every model to know, in `AGENTS.md`.

The user's own file comes first, then one file a folder from the repository's root down to the
project, nearest last; `CLAUDE.md` is read where a folder has no `AGENTS.md`.  A file that is not to
be read is left out and named in `problems`.  Secrets are masked: all of this goes to a model and is
stored with the conversation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from weft.errors import UsageError
from weft.workspace import (
    SmallText,
    SourceFolder,
    project_folders,
    read_small_text,
    user_folder,
)

NAMES: Final = ("AGENTS.md", "CLAUDE.md")
LIMIT: Final = 32 * 1024
"""Bytes of all instructions together, unless the settings say otherwise; what is beyond is left
out, and said so.
"""
_SLACK: Final = 4 * 1024
"""Bytes that are read beyond the limit: a secret is masked before the text is cut, not cut
in two.
"""


class InstructionFile(msgspec.Struct, frozen=True):
    """The instructions of one folder."""

    path: str
    text: str


class InstructionSet(msgspec.Struct, frozen=True):
    """All instructions for a project, outermost first, and what is wrong with those left out."""

    found: tuple[InstructionFile, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The part of the system prompt: each text under its path; empty when there are none."""
        return "\n\n".join(f"# Instructions from {each.path}\n\n{each.text}" for each in self.found)


def find_instructions(
    project: Path,
    config: Path,
    redact: Callable[[str], str] = str,
    limit: int = LIMIT,
    folders: Sequence[SourceFolder] | None = None,
) -> InstructionSet:
    """The instructions that count for a project, up to so many bytes; `folders` are those of the
    project, where they are known.
    """
    found: list[InstructionFile] = []
    problems: list[str] = []
    if not limit:
        return InstructionSet()
    left = limit
    limited = f"instructions are limited to {limit // 1024} KiB"
    # The user's file takes its room first, so that a project cannot crowd it out of the limit.
    theirs = project_folders(project) if folders is None else folders
    for folder in (user_folder(config), *reversed(theirs)):
        file = _nearest(folder, left + _SLACK, problems)
        if file is None:
            continue
        # Masked before it is cut: half of a key no longer looks like one and would get through.
        text, size = _cut(redact(file.text).strip(), left, limited, is_cut=file.is_cut)
        if text:
            found.append(InstructionFile(file.path, text))
        if size > left:
            problems.append(f"{file.path}: only its beginning counts, because {limited}")
        left -= size
        if left <= 0:
            break
    return InstructionSet(tuple(found), tuple(problems))


def _nearest(folder: SourceFolder, limit: int, problems: list[str]) -> SmallText | None:
    """The file that counts in a folder: the first that is there and is a text."""
    for name in NAMES:
        try:
            file = read_small_text(folder, name, limit, cut=True)
        except UsageError as error:
            problems.append(str(error))
            continue
        if file is not None:
            return file
    return None


def _cut(text: str, left: int, limited: str, *, is_cut: bool) -> tuple[str, int]:
    """A text as far as there is room for it, and its size; more than `left` when it is cut."""
    data = text.encode()
    if len(data) <= left and not is_cut:
        return text, len(data)
    # The limit is in bytes and may fall inside a character; "ignore" drops that half.
    kept = data[:left].decode("utf-8", "ignore")
    return f"{kept}\n\n[The rest is left out: {limited}.]", max(len(data), left + 1)
