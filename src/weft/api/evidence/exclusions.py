"""Messages that are sent to no model any more: what goes with one of them."""

from __future__ import annotations

import msgspec

from weft.context import ContextTarget, estimate, render
from weft.ids import NodeId
from weft.session import SessionPort
from weft.state import SessionState


class MessageExclusion(msgspec.Struct, frozen=True, kw_only=True):
    """A message that no request has any more, and what that means."""

    message: str
    tokens: int
    """About how many tokens less a request has."""
    calls: int
    """Tool calls that went with it, each with its result."""
    summarized: bool
    """It was compacted before: the summary may still tell of it."""

    @property
    def said(self) -> str:
        """The same in a sentence."""
        calls = f", with {self.calls} tool calls and their results" if self.calls else ""
        said = f"taken out of the next requests: about {self.tokens:,} tokens{calls}"
        if self.summarized:
            said += "; it was compacted, and the summary may still tell of it"
        return said


async def exclusion_of(port: SessionPort, node: NodeId) -> MessageExclusion:
    """What goes with a message of a session."""
    tree = port.state.tree
    [entry] = await port.nodes([node])
    messages = render(entry, ContextTarget(*_target(port.state)))
    compacted = tree.compaction_for(tree.head)
    return MessageExclusion(
        message=node,
        tokens=estimate(messages),
        calls=len(entry.node.calls),
        summarized=compacted is not None and node in tree.walk_up(compacted.upto),
    )


def _target(state: SessionState) -> tuple[str, str]:
    provider, _, model = state.settings.model.partition(":")
    return provider, model
