"""What is kept of a project's files, and what goes next, in rows and sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from weft.view.sentences import count_of

_UNITS = ("B", "KB", "MB")


class ShownState(Protocol):
    """A message that loses a file."""

    @property
    def title(self) -> str:
        """Of its session."""
        ...

    @property
    def message(self) -> str | None:
        """Its id."""
        ...

    @property
    def path(self) -> str:
        """The file."""
        ...

    @property
    def loses(self) -> tuple[str, ...]:
        """What looks at it in vain."""
        ...


class ShownContent(Protocol):
    """A content that goes next."""

    @property
    def bytes(self) -> int:
        """Its size."""
        ...

    @property
    def states(self) -> Sequence[ShownState]:
        """What is lost with it."""
        ...


class ShownContents(Protocol):
    """The file contents of a project."""

    @property
    def sessions(self) -> int:
        """How many it has."""
        ...

    @property
    def contents(self) -> int:
        """How many are kept."""
        ...

    @property
    def bytes(self) -> int:
        """What they take."""
        ...

    @property
    def quota(self) -> int:
        """What they may take."""
        ...

    @property
    def room(self) -> int:
        """What may come before one goes."""
        ...

    @property
    def next(self) -> Sequence[ShownContent]:
        """What goes next."""
        ...

    @property
    def more(self) -> int:
        """What goes with it and is not named."""
        ...


def size_text(size: int) -> str:
    """A size, for people."""
    amount = float(size)
    for unit in _UNITS:
        if abs(amount) < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


def store_lines(found: ShownContents) -> list[str]:
    """How much is kept, and when the first of it goes."""
    kept = (
        f"{count_of(found.sessions, 'session')} of this project, kept until you delete them; "
        f"{count_of(found.contents, 'file content')}, {size_text(found.bytes)} of "
        f"{size_text(found.quota)} (history.quota)"
    )
    if not found.quota:
        return [kept, "history.quota is 0: no file contents are kept"]
    if not found.next:
        return [kept, f"no file content goes before {size_text(found.room)} more are stored"]
    going = sum(each.bytes for each in found.next)
    more = f", and {count_of(found.more, 'more')}" if found.more else ""
    number = count_of(len(found.next), "file content")
    return [kept, f"next to go, as soon as room is needed: {number}{more}, {size_text(going)}"]


def next_rows(found: ShownContents) -> list[tuple[str, ...]]:
    """What goes next, a row for each message that loses something."""
    return [
        (
            state.path,
            size_text(each.bytes),
            ", ".join(state.loses),
            state.message or "",
            state.title,
        )
        for each in found.next
        for state in each.states
    ]
