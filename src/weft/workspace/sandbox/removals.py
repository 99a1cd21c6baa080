"""Removed files that the file history does not hold by itself: ignored ones, large ones, and those
whose names are no text.

Each has one of four fates, in this order: it is still there under another name; its content goes
to the history, so that a rewind brings it back (small ignored files); it is moved aside, where the
user finds it for a while; it is gone.  The last two are named, in the result and in the plan of a
rewind.  A command that would leave many of them gone is not allowed to: those files stay.

A file that was emptied, or that a link took the place of, counts as removed, and so does one that
was rewritten and has no text for a name.  An ignored one that was rewritten goes to the history if
it is small; a large one is named.  What tools make again
(`skipped_folders`) is none of this.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from weft.workspace.sandbox.overlay_plan import ApplyStep, holds_nothing, is_text, size_of

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
    rewritten: dict[str, str] = {}
    """Files that hold something else now and whose content is too large for the history."""
    gone_bytes: int = 0
    overwritten: set[str] = set()
    """Files that another file of the project was moved over."""
    only_copies: set[str] = set()
    """Files that were moved here and that the history does not hold: a rewind leaves them."""

    def loses(self, step: ApplyStep) -> bool:
        """True for a step after which what a file held is not there any more."""
        return (
            step.do == "remove"
            or is_emptied(step)
            or step.is_rewritten
            or step.path in self.overwritten
        )

    @property
    def is_bulk(self) -> bool:
        """True when more would be gone than a command may remove unasked."""
        return len(self.gone) >= BULK_FILES or self.gone_bytes >= BULK_BYTES


def plan_removals(
    steps: Sequence[ApplyStep], *, room: int, is_same: Callable[[str, str], bool]
) -> RemovalPlan:
    """What to do with the removed files that the history does not hold; `room` is how many bytes
    may be moved aside, `is_same` compares a file of the project with one of the command's.
    """
    plan = RemovalPlan()
    removed = [
        (step, why)
        for step in steps
        # What is rewritten is named only, unless its name keeps it out of the history.
        if (not step.is_rewritten or not is_text(step.path)) and (why := why_not_held(step))
    ]
    moved = _Moved(steps, is_same)
    by_path = {step.path: step for step in steps if step.do == "put"}
    for step, why in removed:
        assert step.before is not None
        size = step.before.disk_bytes
        if (place := moved.place_of(step)) is not None:
            over = by_path.get(place)
            if over is not None and place not in plan.overwritten and (why := _unheld(over)):
                plan.overwritten.add(place)
                # The loop comes to it: what was there is gone like a removed file.
                removed.append((over, why))
            if over is not None and _goes_in_a_rewind(over, plan):
                if _is_small_ignored(step):
                    plan.kept.add(step.path)
                else:
                    plan.only_copies.add(place)
            continue
        if _is_small_ignored(step):
            plan.kept.add(step.path)
        elif size <= room:
            plan.aside[step.path] = why
            room -= size
        else:
            plan.gone[step.path] = why
            plan.gone_bytes += size
    _plan_rewritten(plan, steps)
    return plan


def _goes_in_a_rewind(step: ApplyStep, plan: RemovalPlan) -> bool:
    """True when a rewind takes away, or puts something else in the place of, what is put here."""
    return not step.is_ignored or step.path in plan.overwritten or step.is_rewritten


def _is_small_ignored(step: ApplyStep) -> bool:
    """True for an ignored file whose content is at hand for the history."""
    before = step.before
    return _unheld(step) == IGNORED and before is not None and before.data is not None


def _plan_rewritten(plan: RemovalPlan, steps: Sequence[ApplyStep]) -> None:
    """Keep what was rewritten where it is small, and name the rest.

    Large ones are not moved aside: a database is rewritten by every second command, and would take
    the room of what is removed.
    """
    for step in steps:
        if step.path in plan.overwritten or step.path in plan.aside or step.path in plan.gone:
            continue
        if step.is_rewritten and (why := _unheld(step)):
            if step.before is not None and step.before.data is not None:
                plan.kept.add(step.path)
            else:
                plan.rewritten[step.path] = why


def why_not_held(step: ApplyStep) -> str:
    """Why the history does not hold a removed file by itself; empty when it does, and for what
    tools make again.
    """
    before = step.before
    if not (step.do == "remove" or is_emptied(step) or step.is_rewritten):
        return ""
    if before is None or before.kind not in ("file", "link"):
        return ""
    return _unheld(step)


def _unheld(step: ApplyStep) -> str:
    """Why the history does not hold what is at a path now; empty when it does."""
    before = step.before
    if step.is_remade or before is None or before.kind not in ("file", "link"):
        return ""
    if not is_text(step.path):
        return "its name is not text"
    if step.is_ignored:
        return IGNORED
    return "too large" if before.data is None else ""


def is_emptied(step: ApplyStep) -> bool:
    """True for a file that is there still, and nothing of what it held."""
    before, after = step.before, step.after
    if step.do != "put" or before is None or after is None:
        return False
    return before.kind == "file" and size_of(before) > 0 and holds_nothing(after)


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

    def __init__(self, steps: Sequence[ApplyStep], is_same: Callable[[str, str], bool]) -> None:
        put = [step for step in steps if step.do == "put" and step.after is not None]
        self._hashes = {
            step.after.hash: step.path
            for step in put
            if step.after is not None and step.after.hash is not None
        }
        self._is_same = is_same
        self._copies: dict[int, list[str]] = {}
        # The content of a large or an ignored file was not read; copies that the overlay made of a
        # file of the project's are compared with it.  One of its size alone may be any other.
        for step in put:
            if step.is_copy and step.after is not None:
                self._copies.setdefault(size_of(step.after), []).append(step.path)

    def place_of(self, step: ApplyStep) -> str | None:
        """Where a removed file is now; None where it is nowhere, and for what was moved over."""
        assert step.before is not None
        if step.do != "remove":
            return None
        digest = step.before.hash
        if digest is not None and digest in self._hashes:
            return self._hashes[digest]
        copies = self._copies.get(size_of(step.before), [])
        return next((copy for copy in copies if self._is_same(step.path, copy)), None)
