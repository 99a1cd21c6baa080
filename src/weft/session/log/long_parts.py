"""Long parts of messages: stored as blobs beside their facts, so that a log stays quick to read."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

import msgspec

from weft.events import (
    FactBase,
    InputEdited,
    InputQueued,
    InputScheduled,
    NewMessage,
    NodeEdited,
    NodesJoined,
    NodeSplit,
    ToolComplete,
)
from weft.ids import BlobId
from weft.messages import File, Image, Part, Text
from weft.sha256 import sha256

FactT = TypeVar("FactT", bound=FactBase)

BLOB_OVER: Final = 32 * 1024
"""Parts longer than this are kept as blobs."""
KEPT_OF_BLOB: Final = 1_000
"""Characters of a long text that stay in the log, to be shown without the blob."""

WITH_PARTS: Final = frozenset(
    {
        *(NewMessage, InputQueued, InputEdited, InputScheduled, NodeEdited, NodeSplit),
        *(NodesJoined, ToolComplete),
    }
)
"""The kinds of facts that `spill` may change."""


def spill(fact: FactT) -> tuple[FactT, dict[BlobId, bytes]]:
    """The fact as it is stored: long parts moved out into blobs."""
    if type(fact) not in WITH_PARTS:
        return fact, {}
    blobs: dict[BlobId, bytes] = {}
    match fact:
        case NewMessage(node=node) if _is_long(node.parts):
            slim = msgspec.structs.replace(node, parts=_spilled(node.parts, blobs))
            return msgspec.structs.replace(fact, node=slim), blobs
        case (
            InputQueued(parts=parts)
            | InputEdited(parts=parts)
            | InputScheduled(parts=parts)
            | NodeEdited(parts=parts)
            | NodesJoined(parts=parts)
        ) if _is_long(parts):
            return msgspec.structs.replace(fact, parts=_spilled(parts, blobs)), blobs
        case NodeSplit(parts=parts, tail=tail) if _is_long((*parts, *tail.parts)):
            slim = msgspec.structs.replace(tail, parts=_spilled(tail.parts, blobs))
            return msgspec.structs.replace(fact, parts=_spilled(parts, blobs), tail=slim), blobs
        case ToolComplete(result=result) if _is_long(result.images):
            images = tuple(_spilled(result.images, blobs))
            slim_result = msgspec.structs.replace(result, images=images)
            return msgspec.structs.replace(fact, result=slim_result), blobs
        case _:
            return fact, blobs


def _is_long(parts: Iterable[Part]) -> bool:
    return any(_length(part) > BLOB_OVER for part in parts)


def _length(part: Part) -> int:
    match part:
        case Text(text=text) | File(text=text):
            return len(text)
        case Image(data=data):
            return len(data)
        case _:
            return 0


def _spilled(parts: Sequence[Part], blobs: dict[BlobId, bytes]) -> tuple[Part, ...]:
    return tuple(_spill_part(part, blobs) if _length(part) > BLOB_OVER else part for part in parts)


def _spill_part(part: Part, blobs: dict[BlobId, bytes]) -> Part:
    match part:
        case Text(text=text) | File(text=text):
            blob_id = _add(blobs, text.encode())
            return msgspec.structs.replace(part, text=text[:KEPT_OF_BLOB], blob=blob_id)
        case Image(data=data):
            blob_id = _add(blobs, base64.b64decode(data))
            return msgspec.structs.replace(part, data="", blob=blob_id)
        case _:
            return part


def _add(blobs: dict[BlobId, bytes], data: bytes) -> BlobId:
    blob_id = BlobId(sha256(data).hexdigest())
    blobs[blob_id] = data
    return blob_id


def blob_of(part: Part) -> BlobId | None:
    """The blob that has the whole of a part; None where the part has it itself."""
    return part.blob if isinstance(part, (Text, File, Image)) else None
