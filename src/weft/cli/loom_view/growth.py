"""Branches that grow: what has come of each, from the plan to the closing event.  Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import msgspec

from weft.cli.loom_view.scene import BranchRow
from weft.cli.loom_view.text_rows import stable_start
from weft.events import TokenReceived
from weft.ids import NodeId
from weft.loom import (
    BranchFailure,
    GenerationCancelled,
    GenerationComplete,
    GenerationError,
    GenerationEvent,
    ModelPlanEntry,
)

SHOWN: Final = 4_000
"""Characters of a growing branch that a screen may have room for."""
MOST_BRANCHES: Final = 64


class GrowingBranch(msgspec.Struct):
    """One branch on its way."""

    model: str
    pieces: list[str] = []
    tokens: int = 0
    node: NodeId | None = None
    """The id that it will have; known with its first token."""
    failure: str = ""

    @property
    def tail(self) -> str:
        """The end of what has come."""
        self.pieces[:] = ["".join(self.pieces)]
        return self.pieces[0][stable_start(self.pieces[0], SHOWN) :]


class BranchGrowth:
    """The branches of one generation."""

    def __init__(self, source: NodeId, plan: Sequence[ModelPlanEntry]) -> None:
        self.source = source
        self.branches = [
            GrowingBranch(model=entry.model, pieces=[])
            for entry in plan
            if entry.enabled
            for _ in range(entry.n_branches)
        ][:MOST_BRANCHES]
        self.is_over = False

    @property
    def tokens(self) -> int:
        """Pieces that have come of all."""
        return sum(branch.tokens for branch in self.branches)

    def take(self, event: GenerationEvent) -> str:
        """One event of the generation; returns what the user is to be told."""
        match event:
            case TokenReceived(branch_idx=number) if number < len(self.branches):
                branch = self.branches[number]
                branch.pieces.append(event.token)
                branch.tokens += 1
                branch.node = event.node_id
            case GenerationComplete(new_nodes=new, failures=failures):
                self._end(failures)
                return f"{_counted(len(new))}" + (f", {len(failures)} failed" if failures else "")
            case GenerationCancelled(new_nodes=new):
                self._end(())
                return f"stopped; {_counted(len(new))} kept" if new else "stopped"
            case GenerationError(error=error, failures=failures):
                self._end(failures)
                return "" if failures else error
            case _:
                pass
        return ""

    def _end(self, failures: Sequence[BranchFailure]) -> None:
        self.is_over = True
        for failure in failures:
            if failure.branch_idx < len(self.branches):
                self.branches[failure.branch_idx].failure = failure.sentence

    def why(self, node: NodeId) -> str:
        """Why a branch broke off; empty where it did not."""
        return next((each.failure for each in self.branches if each.node == node), "")

    def rows(self, stored: Collection[NodeId]) -> list[BranchRow | NodeId]:
        """The branches in the order of the plan: the id of one that is stored, a row for one that
        is not.  Of a generation that is over, those that failed are left.
        """
        found: list[BranchRow | NodeId] = []
        for slot, branch in enumerate(self.branches):
            if branch.node is not None and branch.node in stored:
                found.append(branch.node)
            elif branch.failure or not self.is_over:
                found.append(_row(branch, slot))
        return found


def _row(branch: GrowingBranch, slot: int) -> BranchRow:
    if branch.failure:
        return BranchRow(text=branch.failure, state="failed", model=branch.model, slot=slot)
    return BranchRow(
        text=branch.tail,
        state="growing" if branch.tokens else "waiting",
        model=branch.model,
        tokens=branch.tokens,
        slot=slot,
    )


def _counted(number: int) -> str:
    return f"{number} new branch" if number == 1 else f"{number} new branches"
