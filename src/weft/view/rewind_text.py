"""Rewind text: what a rewind does to files, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from weft.view.sentences import count_of

_VERBS = {
    "restore": ("restore", "restored"),
    "delete": ("delete", "deleted"),
    "recreate": ("recreate", "recreated"),
    "conflict": ("keep", "kept"),
    "unavailable": ("keep", "kept"),
}
"""What happens to a file, before and after it has happened."""

_UNTRACKED = {"ignored": "gitignored"}


class RewoundFile(Protocol):
    """What a rewind does with one file."""

    @property
    def path(self) -> str: ...
    @property
    def action(self) -> str: ...
    @property
    def reason(self) -> str: ...


class RewindReport(Protocol):
    """What a rewind does, or did."""

    @property
    def files(self) -> Sequence[RewoundFile]: ...
    @property
    def left_out(self) -> Sequence[str]: ...
    @property
    def is_done(self) -> bool: ...


def changed_paths(plan: RewindReport) -> list[str]:
    """The files that it changes."""
    return [item.path for item in plan.files if item.action in ("restore", "delete", "recreate")]


def file_rows(plan: RewindReport) -> list[tuple[str, str, str]]:
    """For each file: its name, what happens to it, and why."""
    rows = [
        (item.path, _VERBS[item.action][plan.is_done], item.reason)
        for item in plan.files
        if item.action in _VERBS
    ]
    for path, _, why in (each.partition(": ") for each in plan.left_out):
        # Git's own folder is never tracked; saying so each time would hide what matters.
        if path != ".git/":
            rows.append((path, f"not tracked ({_UNTRACKED.get(why, why)})", ""))
    return rows


def rewind_summary(plan: RewindReport) -> str:
    """All of it in a few words: `restored 2 files, kept 1 file`."""
    counts = Counter(
        _VERBS[item.action][plan.is_done] for item in plan.files if item.action in _VERBS
    )
    said = [f"{verb} {count_of(count, 'file')}" for verb, count in counts.items()]
    return ", ".join(said) or "no file changes"
