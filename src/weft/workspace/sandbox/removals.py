"""Removed files that the file history does not hold by itself: ignored ones, large ones, and those
whose names are no text.

Each has one of four fates, in this order: it is still there under another name; its content goes
to the history, so that a rewind brings it back (small ignored files); it is moved aside, where the
user finds it for a while; it is gone.  The last two are named, in the result and in the plan of a
rewind.  A command that would leave many of them gone is not allowed to: those files stay.

What tools make again (`skipped_folders`) is none of this.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from weft.workspace.sandbox.overlay_plan import ApplyStep, size_of

IGNORED: Final = "ignored"
BULK_FILES: Final = 20
"""From so many files that would be gone for good, the command has to ask."""
BULK_BYTES: Final = 256 * 1024 * 1024


class RemovalPlan(msgspec.Struct, kw_only=True):
    """What becomes of the removed files of one command."""

    kept: set[str] = set()
    """Ignored files whose content goes to the history."""
    aside: dict[str, str] = {}
    """Files that are moved aside, with the reason why the history does not hold them."""
    gone: dict[str, str] = {}
    """Files that nothing brings back, with the reason."""
    gone_bytes: int = 0

    @property
    def is_bulk(self) -> bool:
        """True when more would be gone than a command may remove unasked."""
        return len(self.gone) >= BULK_FILES or self.gone_bytes >= BULK_BYTES


def plan_removals(steps: Sequence[ApplyStep], *, room: int) -> RemovalPlan:
    """What to do with the removed files that the history does not hold; `room` is how many bytes
    may be moved aside.
    """
    plan = RemovalPlan()
    removed = [(step, why) for step in steps if (why := why_not_held(step))]
    if not removed:
        return plan
    moved = _Moved(steps)
    for step, why in removed:
        assert step.before is not None
        size = step.before.disk_bytes
        if moved.has(step):
            continue
        if why == IGNORED and step.before.data is not None:
            plan.kept.add(step.path)
        elif size <= room:
            plan.aside[step.path] = why
            room -= size
        else:
            plan.gone[step.path] = why
            plan.gone_bytes += size
    return plan


def why_not_held(step: ApplyStep) -> str:
    """Why the history does not hold a removed file by itself; empty when it does, and for what
    tools make again.
    """
    before = step.before
    if step.do != "remove" or before is None or before.kind not in ("file", "link"):
        return ""
    if step.is_remade:
        return ""
    if not is_text(step.path):
        return "its name is not text"
    if step.is_ignored:
        return IGNORED
    return "too large" if before.data is None else ""


def is_text(path: str) -> bool:
    """True when a name can be stored as text."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def as_text(path: str) -> str:
    """A path for reading: bytes that are no text are written as escapes."""
    return os.fsencode(path).decode(errors="backslashreplace")


def folder_size(folder: str) -> int:
    """Bytes of all files below a folder."""
    return sum(_sizes(folder))


def _sizes(folder: str) -> Iterable[int]:
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                about = os.lstat(f"{parent}/{name}")
                yield min(about.st_size, about.st_blocks * 512)
            except OSError:
                continue


class _Moved:
    """What a command put elsewhere, by content: a file that was moved is not gone."""

    def __init__(self, steps: Sequence[ApplyStep]) -> None:
        put = [step for step in steps if step.do == "put" and step.after is not None]
        self._hashes = {step.after.hash for step in put if step.after is not None}
        # The content of a large or an ignored file is not read; a copy that the overlay made of a
        # file of the project's, as large as this one, is taken for it.
        self._sizes = {size_of(step.after) for step in put if step.is_copy and step.after}

    def has(self, step: ApplyStep) -> bool:
        assert step.before is not None
        if step.before.hash is not None and step.before.hash in self._hashes:
            return True
        return size_of(step.before) in self._sizes
