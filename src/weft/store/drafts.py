"""Text in flight, put together from its chunks."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ids import NodeId
from weft.store.base import Draft, DraftChunk


def ends_draft(chunk: DraftChunk, node: NodeId) -> bool:
    """Whether what was kept of `node` before is void with this chunk: another answer began, or the
    same one over again.
    """
    return chunk.restart or chunk.node != node


def joined_draft(node: NodeId, parts: Sequence[tuple[str, str]]) -> Draft:
    """One draft out of its chunks, in order."""
    return Draft(
        node=node,
        text="".join(chunk for part, chunk in parts if part == "text"),
        thinking="".join(chunk for part, chunk in parts if part == "thinking"),
    )
