"""Differences between the log and the disk in words, the same on every screen.  Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from weft.view.sentences import count_of

_WHOSE: Final = {
    "outside": "not by this session",
    "unknown": "perhaps by a command of this session that was interrupted or still runs",
}


class DifferenceReport(Protocol):
    """What is shown of a difference."""

    @property
    def path(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def by(self) -> str: ...


def difference_rows(found: Sequence[DifferenceReport]) -> list[tuple[str, str, str]]:
    """For each file: its name, what was done to it, and whose change that is."""
    return [(each.path, each.kind, _WHOSE.get(each.by, each.by)) for each in found]


def difference_summary(found: Sequence[DifferenceReport]) -> str:
    """All of it in a few words."""
    if not found:
        return "the files are what the log tells of"
    what = "is not what the log tells" if len(found) == 1 else "are not what the log tells"
    return f"{count_of(len(found), 'file')} {what}"
