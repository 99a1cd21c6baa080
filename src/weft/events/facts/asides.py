"""Facts of side questions: what was asked beside the line, and the answer."""

from __future__ import annotations

from weft.events.base import FactBase
from weft.ids import NodeId
from weft.messages import Part


# In no request: it is told to screens, and never to the model.
class AsideAnswered(FactBase, frozen=True, tag="aside_answered"):
    """A question was answered from a place in the tree, without entering the line."""

    call: NodeId
    """That of its `model_call_started`."""
    node: NodeId | None = None
    """The place: the last message that was sent along."""
    question: tuple[Part, ...] = ()
    answer: str = ""
    model: str = ""
