"""The proposal that a message of the user may answer."""

from __future__ import annotations

from typing import Final

from weft.ids import NodeId
from weft.loop import LineEntry
from weft.messages import Text
from weft.session import LineReader
from weft.state import SessionState

LONGEST_PROPOSAL: Final = 8_000
"""Characters of a proposal that are looked at: its end."""
NEAREST: Final = 4
"""Nodes above a message that its proposal is looked for in."""


async def proposal_above(parent: NodeId | None, state: SessionState, line: LineReader) -> str:
    """What the model said last before a message, back to the message before."""
    near: list[NodeId] = []
    for name in state.tree.ancestors(parent):
        if state.tree.nodes[name].role != "assistant" or len(near) >= NEAREST:
            break
        near.append(name)
    near.reverse()  # the cut below keeps the end, which must be what was said last
    entries = await line.nodes(near) if near else []
    texts = [text_of(entry) for entry in entries]
    return "\n".join(text for text in texts if text)[-LONGEST_PROPOSAL:]


def text_of(entry: LineEntry) -> str:
    """What a node says."""
    return "".join(part.text for part in entry.node.parts if isinstance(part, Text))
