"""Side questions that were answered before, for screens that open a session again."""

from __future__ import annotations

import msgspec

from weft.events import AsideAnswered
from weft.ids import NodeId
from weft.messages import Text
from weft.runtime.session_host import SessionHost
from weft.session import SessionPort
from weft.session.log.stored_line import read_places


class SideQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A question beside the line, and its answer."""

    seq: int
    """That of its fact."""
    node: str | None
    """The last message that was sent along: behind it is its place."""
    question: str
    answer: str
    model: str
    at: float


async def told_asides(port: SessionPort, host: SessionHost) -> tuple[SideQuestion, ...]:
    """Those whose place is on the present line, oldest first."""
    tree = port.state.tree
    if not tree.asides:
        return ()  # as nearly all; the line is not walked for them
    line = set(tree.line(tree.head))
    places = [each.at for each in tree.asides if each.node is None or each.node in line]
    shown = {each.at: each.node for each in tree.asides}
    async with host.registry.reading(port.state.session_id) as store:
        found = await read_places(places, store)
    return tuple(
        _told(fact, shown[place])
        for place in places
        if isinstance(fact := found.get(place), AsideAnswered)
    )


def _told(fact: AsideAnswered, node: NodeId | None) -> SideQuestion:
    return SideQuestion(
        seq=fact.seq,
        node=node,
        question=" ".join(part.text for part in fact.question if isinstance(part, Text)),
        answer=fact.answer,
        model=fact.model,
        at=fact.at,
    )
