"""The usage ledger: tokens and cost of every model call of the session, and kept nowhere else.

It holds sums, not calls: budgets are checked before every model call, screens ask for each cut of
the costs at any time, and a sum over all calls would make each of these dearer than the one before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from weft.events import AnyFact, ChildFinished, ModelCallStarted, NewMessage, Purpose, UsageRecorded
from weft.ids import NodeId, TurnId
from weft.messages import NOTHING_USED, Usage
from weft.tree import ConversationTree

LEAST_COUNTED: Final = 500
"""Tokens of a request from which on it tells how a vendor counts: in a short one the vendor's own
frame is most of it."""
PLAUSIBLE: Final = (0.5, 4.0)
"""Vendors' tokens to one of ours.  Beyond that it is no count of the request: some servers leave
out what they had in a cache, or report nothing."""


class SideCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A model call outside the answers of turns: a compaction, a summary."""

    model: str
    purpose: Purpose
    turn_id: TurnId | None = None
    input_tokens: int = 0
    """About how many tokens it is sent."""


class UsageLedger(msgspec.Struct, kw_only=True):
    """What was used: in all, and cut by model, turn, purpose and line."""

    total: Usage = NOTHING_USED
    calls: int = 0
    """How many calls were counted; of a child session, one for each model."""
    models: dict[str, Usage] = {}
    turns: dict[str, Usage] = {}
    """The empty name holds what belongs to no turn."""
    purposes: dict[str, Usage] = {}
    """The empty name holds what child sessions used."""
    lines: dict[NodeId, Usage] = {}
    """For each node that used something: what its line used, down to it and with it."""
    shallowest: int = 0
    """The least depth of a node in `lines`: above it no line has used anything."""
    loose: dict[NodeId, Usage] = {}
    """What was used for a node that the tree does not have: not yet, or as for a summary never."""
    last_call: Usage | None = None
    """The newest answer of a turn: its context was the whole line."""
    measured_tokens: int = 0
    """All tokens of the newest answer that was not an estimate."""
    ratios: dict[str, float] = {}
    """By model: how many tokens the vendor counts where we estimate one."""
    asides: dict[NodeId, SideCall] = {}
    """Side calls that have begun and whose usage is not recorded yet."""

    def apply(self, fact: AnyFact) -> None:
        """Take one more fact in; `place` then takes the lines in."""
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
            case UsageRecorded(usage=usage):
                if fact.node is not None:
                    self.asides.pop(fact.node, None)
                if fact.purpose == "turn":
                    self.last_call = usage
                    if not fact.estimated:
                        self.measured_tokens = usage.total_tokens
                self.calibrate(fact)
                self._add(usage, model=fact.model, purpose=fact.purpose, turn_id=fact.turn_id)
            # A child keeps its own ledger; here it is a row for each model and has no purpose.
            case ChildFinished():
                for model, used in used_by(fact).items():
                    self._add(used, model=model, purpose="", turn_id=fact.turn_id)
            case _:
                pass

    def ratio(self, model: str) -> float:
        """How many tokens a model's vendor counts where we estimate one; 1 until it has counted."""
        return self.ratios.get(model, 1.0)

    def calibrate(self, fact: UsageRecorded) -> None:
        """Learn from a count of a turn's request how the vendor counts."""
        is_count = fact.purpose == "turn" and not fact.estimated
        if not is_count or fact.request_estimate < LEAST_COUNTED:
            return
        usage = fact.usage
        read = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
        counted = read / fact.request_estimate
        if not PLAUSIBLE[0] <= counted <= PLAUSIBLE[1]:
            return
        # Up at once and down by halves: a request that is taken for too small does not fit, one
        # that is taken for too large only costs an early summary.
        known = self.ratios.get(fact.model, counted)
        self.ratios[fact.model] = counted if counted > known else (known + counted) / 2

    def _add(self, usage: Usage, *, model: str, purpose: str, turn_id: TurnId | None) -> None:
        self.calls += 1
        before = self.total
        self.total = after = usage if before is NOTHING_USED else before + usage
        for sums, name in (
            (self.models, model),
            (self.purposes, purpose),
            (self.turns, turn_id or ""),
        ):
            known = sums.get(name)
            # Most sessions have one model and one purpose, whose sum is the total: it is added up
            # once, and kept once.
            if known is before:
                sums[name] = after
            else:
                sums[name] = usage if known is None else known + usage

    # -- lines

    def place(self, fact: AnyFact, tree: ConversationTree) -> None:
        """Add what a fact used to the lines of its node; the tree has taken the fact in."""
        match fact:
            case UsageRecorded(usage=usage, node=node) if node is not None:
                self._place(node, usage, tree)
            case ChildFinished(node=node) if node is not None:
                for used in used_by(fact).values():
                    self._place(node, used, tree)
            case NewMessage(node=new) if new.id in self.loose:
                self._place(new.id, self.loose.pop(new.id), tree)
            case _:
                pass

    def _place(self, node: NodeId, usage: Usage, tree: ConversationTree) -> None:
        holder = tree.nodes.get(node)
        if holder is None:
            known = self.loose.get(node)
            self.loose[node] = usage if known is None else known + usage
            return
        self.lines[node] = self.on_line(node, tree) + usage
        if holder.depth < self.shallowest or not self.shallowest:
            self.shallowest = holder.depth
        # A node is paid for before anything follows it, except by a child that worked in the
        # background: what has come below it meanwhile is walked once.
        ahead = list(holder.children)
        while ahead:
            below = ahead.pop()
            if below in self.lines:
                self.lines[below] = self.lines[below] + usage
            ahead += tree.nodes[below].children

    def on_line(self, tip: NodeId | None, tree: ConversationTree) -> Usage:
        """Sum of the calls that made the line that ends at `tip`."""
        lines, nodes = self.lines, tree.nodes
        while lines and tip is not None and (holder := nodes.get(tip)) is not None:
            if tip in lines:
                return lines[tip]
            # A fork's line is its source's for thousands of nodes, which the source has paid for.
            if holder.depth <= self.shallowest:
                break
            tip = holder.parent
        return NOTHING_USED


def used_by(fact: AnyFact) -> Mapping[str, Usage]:
    """What a fact adds to a ledger, by model."""
    match fact:
        case UsageRecorded(usage=usage, model=model):
            return {model: usage}
        case ChildFinished(usage=usage, models=models) if usage is not None:
            return models or {"": usage}
        case _:
            return {}
