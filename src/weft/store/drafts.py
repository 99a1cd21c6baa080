"""Answers in flight, put together from their chunks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from weft.ids import NodeId
from weft.store.base import Append, Draft, DraftCall, DraftChunk


def ends_draft(chunk: DraftChunk, node: NodeId) -> bool:
    """Whether what was kept of `node` before is void with this chunk: its answer begins again."""
    return chunk.restart and chunk.node == node


def ended_drafts(
    drafts: Iterable[tuple[str, NodeId]], appends: Sequence[Append]
) -> set[tuple[str, NodeId]]:
    """Those of some drafts, each a stream and a node, that the appends end."""
    dropped = {one.stream for one in appends if one.drop_draft}
    ended = {(one.stream, node) for one in appends for node in one.ends_drafts}
    return {draft for draft in drafts if draft in ended or draft[0] in dropped}


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
