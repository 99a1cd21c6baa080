"""The usage ledger: tokens and cost of every model call of the session, and kept nowhere else.

It holds sums, not calls: budgets are checked before every model call, screens ask for each cut of
the costs at any time, and a sum over all calls would make each of these dearer than the one before.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Final, TypeVar

import msgspec

from weft.events import (
    AnyFact,
    ChildFinished,
    ModelCallStarted,
    NewMessage,
    NodesJoined,
    NodeSplit,
    Purpose,
    UsageRecorded,
)
from weft.ids import NodeId, TurnId
from weft.messages import NOTHING_USED, Usage
from weft.tree import ConversationTree

_K = TypeVar("_K", bound=str)

MOST_SUMS: Final = 128
"""Lines whose sums are at hand, half of them at least: those that were paid for last."""
MOST_STEPS: Final = 8
"""Nodes of a line that are walked for a cost that came."""
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


class UsageLedger(msgspec.Struct, kw_only=True, dict=True):
    """What was used: in all, and cut by model, turn, purpose and node."""

    total: Usage = NOTHING_USED
    calls: int = 0
    """How many calls were counted; of a child session, one for each model."""
    models: dict[str, Usage] = {}
    turns: dict[str, Usage] = {}
    """The empty name holds what belongs to no turn."""
    purposes: dict[str, Usage] = {}
    """The empty name holds what child sessions used."""
    nodes: dict[NodeId, Usage] = {}
    """What was used for each node, in the order in which they were first paid for."""
    shallowest: int = 0
    """The least depth of a node in `nodes`: above it no line has used anything."""
    joined: dict[NodeId, NodeId] = {}
    """Nodes that were joined with others, by those that are gone: their text is in the other, and
    so is what they cost."""
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
        # The most frequent kind first: a session is opened by folding all that it has.
        match fact:
            case UsageRecorded():
                self._count(fact)
            case ModelCallStarted(purpose=purpose) if purpose != "turn":
                # A call of a turn is open in `OpenTurn.call`; these have no other place. What is
                # left here after a crash was sent, and recovery books an estimate for it.
                self.asides[fact.node] = SideCall(
                    model=fact.model,
                    purpose=purpose,
                    turn_id=fact.turn_id or None,
                    input_tokens=fact.input_tokens,
                )
            # A child keeps its own ledger; here it is a row for each model and has no purpose.
            case ChildFinished():
                for model, used in used_by(fact).items():
                    self._add(used, model, "", fact.turn_id)
            case _:
                pass

    def record(self, fact: UsageRecorded, tree: ConversationTree) -> None:
        """`apply` and `place` in one: the one fact of each model call."""
        self._count(fact)
        if fact.node is not None:
            self._place(fact.node, fact.usage, tree)

    def _count(self, fact: UsageRecorded) -> None:
        if self.asides and fact.node is not None:
            self.asides.pop(fact.node, None)
        usage, purpose = fact.usage, fact.purpose
        if purpose == "turn":
            self.last_call = usage
            if not fact.estimated:
                self.measured_tokens = usage.total_tokens
                if fact.request_estimate >= LEAST_COUNTED:
                    self.calibrate(fact)
        self._add(usage, fact.model, purpose, fact.turn_id)

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

    def _add(self, usage: Usage, model: str, purpose: str, turn_id: TurnId | None) -> None:
        self.calls += 1
        before = self.total
        self.total = after = usage if before is NOTHING_USED else before + usage
        # Most sessions have one model and one purpose, whose sum is the total: it is added up
        # once, and kept once.
        if self.models.get(model) is before:
            self.models[model] = after
        else:
            _add_to(self.models, model, usage)
        if self.purposes.get(purpose) is before:
            self.purposes[purpose] = after
        else:
            _add_to(self.purposes, purpose, usage)
        _add_to(self.turns, turn_id or "", usage)

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
            case NodesJoined(node=node, child=child) if node in tree.nodes:
                self._part(child)
                self.joined[child] = node
                self._gone.setdefault(node, {})[child] = True
                self._restart()
            case NodeSplit(tail=tail):
                self._part(tail.id)
                self._restart()
                if tail.id in self.loose and tail.id in tree.nodes:
                    self._place(tail.id, self.loose.pop(tail.id), tree)
            case _:
                pass

    def _part(self, gone: NodeId) -> None:
        into = self.joined.get(gone)
        if into is not None:
            self._gone[into].pop(gone, None)
            del self.joined[gone]

    def _restart(self) -> None:
        """Lines have other nodes now, which may be less deep than they were."""
        self._sums.clear()
        self.shallowest = min(self.shallowest, 1)

    # Beside the fields: it is neither stored nor compared.
    @property
    def _sums(self) -> dict[NodeId, Usage]:
        """What some lines have used: a line is walked up to the nearest of them."""
        known: dict[NodeId, Usage] | None = self.__dict__.get("sums")
        if known is None:
            known = self.__dict__["sums"] = {}
        return known

    @property
    def _gone(self) -> dict[NodeId, dict[NodeId, bool]]:
        """The other way round than `joined`."""
        known: dict[NodeId, dict[NodeId, bool]] | None = self.__dict__.get("gone")
        if known is None:
            known = self.__dict__["gone"] = {}
            for gone, into in self.joined.items():
                known.setdefault(into, {})[gone] = True
        return known

    def _place(self, node: NodeId, usage: Usage, tree: ConversationTree) -> None:
        holder = tree.nodes.get(node)
        if holder is None:
            _add_to(self.loose, node, usage)
            return
        known = self.nodes.get(node)
        self.nodes[node] = usage if known is None else known + usage
        if holder.depth < self.shallowest or not self.shallowest:
            self.shallowest = 1 if self.joined else holder.depth
        # A node is paid for before anything follows it, except by a child that worked in the
        # background.
        sums = self._sums
        if holder.children or node in sums or node in self.joined:
            sums.clear()
        # Nearly always the line above was paid for just now. Where it was not, it is walked when
        # it is asked for, and not with every cost.
        above = sums.get(holder.parent) if holder.parent is not None else None
        if above is None or known is not None or self.joined:
            self._sum(node, tree, most=MOST_STEPS)
        else:
            sums[node] = above + usage
            if len(sums) > MOST_SUMS:
                _drop_half(sums)

    def on_line(self, tip: NodeId | None, tree: ConversationTree) -> Usage:
        """Sum of the calls that made the line that ends at `tip`: its nodes, and those that were
        joined with them.
        """
        if tip is None or not self.nodes or tip not in tree.nodes:
            return NOTHING_USED
        return self._sum(tip, tree, most=None) or NOTHING_USED

    def _sum(self, tip: NodeId, tree: ConversationTree, most: int | None) -> Usage | None:
        """The same, which is at hand then; None where it takes more steps up the line than that."""
        nodes, sums = tree.nodes, self._sums
        line: list[NodeId] = []
        total = NOTHING_USED
        at: NodeId | None = tip
        while at is not None and (holder := nodes.get(at)) is not None:
            if at in sums:
                total = sums[at]
                break
            if len(line) == most:
                return None
            line.append(at)
            # A fork's line is its source's for thousands of nodes, which the source has paid for.
            if holder.depth <= self.shallowest:
                break
            at = holder.parent
        for node in reversed(line):
            total += self._of_node(node, tree)
        sums[tip] = total
        if len(sums) > MOST_SUMS:
            _drop_half(sums)
        return total

    def _of_node(self, node: NodeId, tree: ConversationTree) -> Usage:
        """What a node of a line adds to it."""
        if not self.joined:
            return self.nodes.get(node, NOTHING_USED)
        # One that is gone stands below the one that it was joined with, which counts it already.
        if (into := self.joined.get(node)) is not None and into in tree.walk_up(node):
            return NOTHING_USED
        total = NOTHING_USED
        ahead, seen = [node], {node}
        while ahead:
            each = ahead.pop()
            total += self.nodes.get(each, NOTHING_USED)
            more = [gone for gone in self._gone.get(each, ()) if gone not in seen]
            seen.update(more)
            ahead += more
        return total


def _add_to(sums: dict[_K, Usage], name: _K, usage: Usage) -> None:
    known = sums.get(name)
    sums[name] = usage if known is None else known + usage


def _drop_half(sums: dict[NodeId, Usage]) -> None:
    """Drop the older half: one by one, each would be looked for behind those that are gone."""
    for node in list(islice(sums, len(sums) // 2)):
        del sums[node]


def used_by(fact: AnyFact) -> Mapping[str, Usage]:
    """What a fact adds to a ledger, by model."""
    match fact:
        case UsageRecorded(usage=usage, model=model):
            return {model: usage}
        case ChildFinished(usage=usage, models=models) if usage is not None:
            return models or {"": usage}
        case _:
            return {}
