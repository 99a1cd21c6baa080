"""What was found of another agent, in rows and sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from weft.messages import Usage
from weft.view.sentences import count_of


class ShownImport(Protocol):
    """A session of another agent, as far as it is shown."""

    @property
    def id(self) -> str:
        """That it has there."""
        ...

    @property
    def title(self) -> str:
        """Its first words."""
        ...

    @property
    def state(self) -> str:
        """What becomes of it."""
        ...

    @property
    def session(self) -> str:
        """Ours."""
        ...

    @property
    def messages(self) -> int:
        """Messages of all branches."""
        ...

    @property
    def calls(self) -> int:
        """Tool calls."""
        ...

    @property
    def interrupted(self) -> int:
        """Calls without a result."""
        ...

    @property
    def branches(self) -> int:
        """Ends of lines."""
        ...

    @property
    def usage(self) -> Usage | None:
        """What it used there."""
        ...

    @property
    def problems(self) -> tuple[str, ...]:
        """What is not taken."""
        ...

    @property
    def path(self) -> str:
        """Where it stands."""
        ...


class ShownSetup(Protocol):
    """A part of another agent's set-up, as far as it is shown."""

    @property
    def kind(self) -> str:
        """What it is."""
        ...

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def state(self) -> str:
        """What becomes of it."""
        ...

    @property
    def why(self) -> str:
        """Why so."""
        ...


def import_rows(found: Sequence[ShownImport]) -> list[tuple[str, ...]]:
    """Each session: what becomes of it, its title and size, and its id here, else there."""
    return [
        (
            each.state,
            each.title or each.path.rpartition("/")[2],
            str(each.messages),
            str(each.calls),
            str(each.branches),
            each.session or each.id,
        )
        for each in found
    ]


def import_problems(found: Sequence[ShownImport]) -> Iterator[str]:
    """What is not whole, a line each."""
    for each in found:
        named = each.title or each.path
        for problem in each.problems:
            yield f"{named}: {problem}"
        if each.interrupted and each.state != "left out":
            calls = count_of(each.interrupted, "call")
            has = "has" if each.interrupted == 1 else "have"
            yield f"{named}: {calls} {has} no result there, and will say that"


def setup_rows(found: Sequence[ShownSetup]) -> list[tuple[str, ...]]:
    """Each part of a set-up: what becomes of it, what it is, its name, and why."""
    return [(each.state, each.kind, each.name, each.why) for each in found]


def import_summary(sessions: Sequence[ShownImport], setup: Sequence[ShownSetup]) -> str:
    """What there is, what was done, and what it used elsewhere, in a line."""
    counts = [
        f"{count_of(number, 'session')} {word}"
        for state, word in _WORDS
        if (number := sum(each.state == state for each in sessions))
    ]
    for state, word in _WORDS[:2]:
        if number := sum(each.state == state for each in setup):
            counts.append(f"{count_of(number, 'part')} of the set-up {word}")
    tokens = sum(
        each.usage.total_tokens for each in sessions if each.usage and each.state in ("new", "made")
    )
    used = f"; {tokens:,} tokens were used there and count as imported, not as yours here"
    if not counts:
        return "there is nothing to import: no session of this folder, and no set-up"
    return f"{', '.join(counts)}{used if tokens else ''}"


_WORDS = (
    ("new", "to take over"),
    ("made", "taken over"),
    ("there", "here already"),
    ("left out", "left out"),
)
