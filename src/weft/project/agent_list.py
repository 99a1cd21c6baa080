"""List of skills or agents for the system prompt: a line each, bounded together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol

LONGEST_LISTING: Final = 32 * 1024
"""Characters of all lines."""


class NamedEntry(Protocol):
    """Something with a name and a description: a skill, an agent."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def is_project(self) -> bool:
        """The project brings it, not the user."""
        ...


def listing_of(known: Iterable[NamedEntry]) -> str:
    """A line for each, sorted by name.

    Where there is no room for all, the user's own stay: a project cannot push them out.
    """
    lines: dict[str, str] = {}
    left, left_out = LONGEST_LISTING, 0
    # False sorts before True: the user's entries take their room first.
    for each in sorted(known, key=lambda each: (each.is_project, each.name)):
        line = f"- {each.name}: {' '.join(each.description.split())}"
        left -= len(line)
        if left >= 0:
            lines[each.name] = line
        else:
            left_out += 1
    more = [f"[{left_out} more are left out: the list is too long]"] if left_out else []
    return "\n".join([*(lines[name] for name in sorted(lines)), *more])
