"""Text that cannot be written as UTF-8: half of a surrogate pair, as a cut emoji leaves it.

Every store treats it alike.  What is stored for ever is refused, because no file and no database
would give it back; a draft is kept with a replacement character, because text in flight may be cut
anywhere and a hole in it would be a lie.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from weft.errors import UsageError
from weft.store.base import Append, DraftChunk

_SHOWN = 40
_encoder = msgspec.json.Encoder()


@contextmanager
def refused_if_unstorable() -> Iterator[None]:
    """Turn the error of the encoder into a sentence for the caller.

    Raises:
        UsageError: a text inside cannot be stored.
    """
    try:
        yield
    except UnicodeEncodeError as error:
        raise unstorable(error) from error


def unstorable(error: UnicodeEncodeError) -> UsageError:
    """The sentence for a text that has no UTF-8."""
    start = max(0, error.start - _SHOWN // 2)
    shown = str(error.object)[start : start + _SHOWN]
    return UsageError(
        f"{shown!r} cannot be stored: it holds half of a surrogate pair, which is no character; "
        "replace it"
    )


def is_storable(text: str) -> bool:
    """True for text that has a UTF-8."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_text(*texts: str) -> None:
    """Refuse text that cannot be stored; for stores that encode nothing themselves."""
    with refused_if_unstorable():
        for text in texts:
            if not text.isascii():
                text.encode()


def check_texts_of(append: Append) -> None:
    """Refuse an append of which a text cannot be stored; for stores that encode nothing."""
    # In one go, and all but the bytes: a look at each text would be a tenth of what such a store
    # takes for a round of a turn.
    texts = (append.stream, append.row, append.said, append.ends_drafts, append.names_blobs)
    try:
        _encoder.encode((*texts, append.history, append.trees, *[x.kind for x in append.records]))
    except UnicodeEncodeError as error:
        raise unstorable(error) from error


def storable_draft(chunk: DraftChunk) -> DraftChunk:
    """The chunk with a replacement character for each half of a pair."""
    if chunk.chunk.isascii() and chunk.node.isascii() and chunk.tool.isascii():
        return chunk
    texts = {"chunk": chunk.chunk, "node": chunk.node, "tool": chunk.tool}
    wrong = {name: text for name, text in texts.items() if not is_storable(text)}
    if not wrong:
        return chunk
    mended = {
        name: text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        for name, text in wrong.items()
    }
    return msgspec.structs.replace(chunk, **mended)
