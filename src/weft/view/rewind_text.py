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
MOST_UNTRACKED = 10
"""Rows for what is not tracked: the files that do change must stay in view."""


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
    return [*rows, *_untracked_rows(plan)]


def _untracked_rows(plan: RewindReport) -> list[tuple[str, str, str]]:
    """What is not tracked, folders of one name together: caches stand beside every module."""
    alike: dict[tuple[str, str], list[str]] = {}
    for path, _, why in (each.partition(": ") for each in plan.left_out):
        # Git's own folder is never tracked; saying so each time would hide what matters.
        if path != ".git/":
            folder = path.rstrip("/").rpartition("/")[2] + "/" if path.endswith("/") else path
            alike.setdefault((folder, why), []).append(path)
    rows = [
        (
            paths[0] if len(paths) == 1 else f"{folder} in {len(paths)} folders",
            f"not tracked ({_UNTRACKED.get(why, why)})",
            "",
        )
        for (folder, why), paths in alike.items()
    ]
    more = len(rows) - MOST_UNTRACKED
    if more > 0:
        rows[MOST_UNTRACKED:] = [(f"{more} more", "not tracked", "")]
    return rows


def rewind_summary(plan: RewindReport) -> str:
    """All of it in a few words: `restored 2 files, kept 1 file`."""
    counts = Counter(
        _VERBS[item.action][plan.is_done] for item in plan.files if item.action in _VERBS
    )
    said = [f"{verb} {count_of(count, 'file')}" for verb, count in counts.items()]
    return ", ".join(said) or "no file changes"
