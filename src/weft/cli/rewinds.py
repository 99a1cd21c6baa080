"""What a rewind does to files, in words: for the chat and for `weft session rewind`."""

from __future__ import annotations

from collections import Counter

from weft.api import RewindItem, RewindPlan

_DOES = {
    "restore": "goes back",
    "delete": "is removed",
    "recreate": "comes back",
    "conflict": "stays",
    "unavailable": "stays",
    "unchanged": "is so already",
}

_SEVERAL = {
    "goes back": "go back",
    "is removed": "are removed",
    "comes back": "come back",
    "stays": "stay",
}


def acting(plan: RewindPlan) -> list[RewindItem]:
    """The files that it changes."""
    return [item for item in plan.files if item.action in ("restore", "delete", "recreate")]


def file_rows(plan: RewindPlan) -> list[tuple[str, str, str]]:
    """For each file: its name, what happens to it, and why."""
    rows = [
        (item.path, _DOES[item.action], item.reason)
        for item in plan.files
        if item.action != "unchanged"
    ]
    apart = [each.partition(": ") for each in plan.left_out]
    # Git's own folder never goes along; to say so each time helps nobody.
    return [*rows, *((path, "is not kept", why) for path, _, why in apart if path != ".git/")]


def in_words(plan: RewindPlan) -> str:
    """All of it in a few words: `2 files go back, 1 file stays`."""
    counts = Counter(_DOES[item.action] for item in plan.files if item.action != "unchanged")
    said = [
        f"1 file {does}" if count == 1 else f"{count} files {_SEVERAL[does]}"
        for does, count in counts.items()
    ]
    return ", ".join(said) or "no file changes"
