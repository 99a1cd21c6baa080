"""The decision graph as tools reach it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from weft.decisions.facts import DecisionEvidence, DecisionFact
from weft.decisions.graph import DecisionGraph


class DecisionAccess(Protocol):
    """The graph of the session's project, and what a tool needs to add to it."""

    @property
    def project_id(self) -> str:
        """What the project's stream is named by."""
        ...

    @property
    def kinds(self) -> Collection[str]:
        """The kinds of nodes that can be logged."""
        ...

    @property
    def now(self) -> float:
        """Wall-clock seconds."""
        ...

    async def graph(self) -> DecisionGraph:
        """As it is now."""
        ...

    def turn(self) -> DecisionEvidence:
        """The turn that runs, as evidence."""
        ...

    async def noted(self, facts: Sequence[DecisionFact]) -> tuple[DecisionFact, ...]:
        """The same facts without secrets, with the files that they are about as they are now."""
        ...
