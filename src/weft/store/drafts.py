"""Answers in flight, put together from their chunks."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from weft.ids import NodeId
from weft.store.base import Draft, DraftCall, DraftChunk


def ends_draft(chunk: DraftChunk, node: NodeId) -> bool:
    """Whether what was kept of `node` before is void with this chunk: its answer begins again."""
    return chunk.restart and chunk.node == node


class DraftPiece(msgspec.Struct, frozen=True):
    """What a store keeps of a chunk."""

    node: NodeId
    part: str
    chunk: str
    index: int = 0
    tool: str = ""


def joined_drafts(pieces: Iterable[DraftPiece]) -> list[Draft]:
    """One draft for each node out of its pieces, in order."""
    by_node: dict[NodeId, list[DraftPiece]] = {}
    for piece in pieces:
        by_node.setdefault(piece.node, []).append(piece)
    return [_joined(node, its) for node, its in by_node.items()]


def _joined(node: NodeId, pieces: list[DraftPiece]) -> Draft:
    calls: dict[int, DraftCall] = {}
    for piece in pieces:
        if piece.part == "arguments":
            known = calls.get(piece.index)
            before = "" if known is None else known.arguments
            calls[piece.index] = DraftCall(
                index=piece.index, tool=piece.tool, arguments=before + piece.chunk
            )
    return Draft(
        node=node,
        text="".join(piece.chunk for piece in pieces if piece.part == "text"),
        thinking="".join(piece.chunk for piece in pieces if piece.part == "thinking"),
        calls=tuple(calls[index] for index in sorted(calls)),
    )
