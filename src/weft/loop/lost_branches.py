"""Branches that a dead process was generating, and the facts that settle them.

Each has its node id from the start, so that its draft tells whose text it is.  Every branch that
was begun becomes a partial node, also one of which nothing was kept: it may have been sent and paid
for, and is marked as empty.  What it cost is estimated and marked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import msgspec

from weft.context import estimate_text
from weft.events import BranchesEnded, BranchesStarted, Fact, NewMessage, UsageRecorded
from weft.ids import NodeId
from weft.loop.base import Commit
from weft.messages import Node, Text, Usage, clean_text
from weft.state import SessionState


def branch_ends(
    state: SessionState,
    generations: Collection[str],
    drafts: Mapping[NodeId, str],
    cost: Callable[[str, Usage], float | None],
) -> Commit:
    """What ends these generations: partial nodes of what is left of their branches."""
    facts: list[Fact] = []
    ended: list[NodeId] = []
    for gen_id in generations:
        started = state.generations.started.get(gen_id)
        if started is None:
            continue
        failed = state.generations.failed.get(gen_id, ())
        for number, slot in enumerate(started.plan):
            if slot.node_id not in state.tree.nodes and number not in failed:
                ended.append(slot.node_id)
                facts += _ending(started, number, drafts.get(slot.node_id, ""), cost)
        facts.append(BranchesEnded(gen_id=gen_id, reason="interrupted"))
    return Commit(facts=tuple(facts), ends_drafts=tuple(ended))


def _ending(
    started: BranchesStarted, number: int, text: str, cost: Callable[[str, Usage], float | None]
) -> list[Fact]:
    slot = started.plan[number]
    usage = Usage(input_tokens=started.input_tokens, output_tokens=estimate_text(len(text)))
    used = msgspec.structs.replace(usage, cost_usd=cost(slot.model, usage))
    how = {
        "strategy": slot.strategy,
        "max_tokens": slot.max_tokens,
        "temperature": slot.temperature,
    }
    marks: dict[str, object] = {"gen_id": started.gen_id, "slot": number, "partial": True}
    if not text.strip():
        marks["empty"] = True
    node = Node(
        id=slot.node_id,
        role="assistant",
        parts=(Text(text=clean_text(text)),) if text else (),
        parent=started.source,
        parent_revision=started.source_revision,
        model=slot.model,
        usage=used,
        metadata={"loom": how, **marks},
    )
    facts: list[Fact] = [NewMessage(node=node, advance=False)]
    # It may not have been sent: what a vendor may bill is counted, and marked as a guess.
    facts.append(
        UsageRecorded(
            usage=used,
            model=slot.model,
            purpose="branch",
            estimated=True,
            node=slot.node_id,
        )
    )
    return facts
