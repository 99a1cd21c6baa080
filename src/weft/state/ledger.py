"""The usage ledger: tokens and cost of every model call of the session, and kept nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import msgspec

from weft.events import AnyFact, ChildFinished, ModelCallStarted, Purpose, UsageRecorded
from weft.ids import NodeId, TurnId
from weft.messages import NOTHING_USED, Usage

_K = TypeVar("_K")


class UsageRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What one call used, and for what."""

    usage: Usage
    model: str
    purpose: Purpose | None = None
    """None: the sum of a child session."""
    estimated: bool = False
    turn_id: TurnId | None = None
    node: NodeId | None = None


class SideCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A model call outside the answers of turns: a compaction, a summary."""

    model: str
    purpose: Purpose
    turn_id: TurnId | None = None
    input_tokens: int = 0
    """About how many tokens it is sent."""


class UsageLedger(msgspec.Struct):
    """All rows, and their sum."""

    rows: list[UsageRow] = []
    total: Usage = NOTHING_USED
    asides: dict[NodeId, SideCall] = {}
    """Side calls that have begun and whose usage is not recorded yet."""

    def apply(self, fact: AnyFact) -> None:
        """Take one more fact in."""
        match fact:
            case ModelCallStarted(node=node, model=model, purpose=purpose) if purpose != "turn":
                # A call of a turn is open in `OpenTurn.call`; these have no other place. What is
                # left here after a crash was sent, and recovery books an estimate for it.
                self.asides[node] = SideCall(
                    model=model,
                    purpose=purpose,
                    turn_id=fact.turn_id or None,
                    input_tokens=fact.input_tokens,
                )
                return
            case UsageRecorded(usage=usage):
                if fact.node is not None:
                    self.asides.pop(fact.node, None)
                row = UsageRow(
                    usage=usage,
                    model=fact.model,
                    purpose=fact.purpose,
                    estimated=fact.estimated,
                    turn_id=fact.turn_id,
                    node=fact.node,
                )
            # A child keeps its own ledger; here it is a row for each model and has no purpose.
            case ChildFinished(usage=usage) if usage is not None:
                for model, used in (fact.models or {"": usage}).items():
                    self._add(
                        UsageRow(usage=used, model=model, turn_id=fact.turn_id, node=fact.node)
                    )
                return
            case _:
                return
        self._add(row)

    def _add(self, row: UsageRow) -> None:
        self.rows.append(row)
        # Kept while folding: budgets are checked before every model call, and a sum over all rows
        # would make a long session quadratic.
        self.total = self.total + row.usage

    def by_model(self) -> dict[str, Usage]:
        """Sum for each `provider:model`."""
        return _sums(self.rows, lambda row: row.model)

    def by_turn(self) -> dict[TurnId | None, Usage]:
        """Sum for each turn; None holds what belongs to no turn."""
        return _sums(self.rows, lambda row: row.turn_id)

    def by_purpose(self) -> dict[Purpose | None, Usage]:
        """Sum for each purpose; None holds what child sessions used."""
        return _sums(self.rows, lambda row: row.purpose)

    def on_line(self, nodes: Iterable[NodeId]) -> Usage:
        """Sum of the calls that made these nodes."""
        on_line = set(nodes)
        total = NOTHING_USED
        for row in self.rows:
            if row.node in on_line:
                total = total + row.usage
        return total


def _sums(rows: Iterable[UsageRow], key: Callable[[UsageRow], _K]) -> dict[_K, Usage]:
    sums: dict[_K, Usage] = {}
    for row in rows:
        name = key(row)
        sums[name] = sums.get(name, NOTHING_USED) + row.usage
    return sums
