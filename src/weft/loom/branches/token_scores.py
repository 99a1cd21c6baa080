"""The tokens of a branch with their probabilities: stored as a blob, read when a node is shown."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from weft.errors import UsageError
from weft.ids import BlobId
from weft.loom.boundary_repair import RepairedText, TextEdit
from weft.providers import TokenLogprob


class TokenScores(msgspec.Struct, frozen=True):
    """What a model reported of its tokens, and where the node's text differs from them."""

    tokens: tuple[TokenLogprob, ...]
    edits: tuple[TextEdit, ...] = ()


def stored_scores(tokens: Sequence[TokenLogprob], repaired: RepairedText) -> tuple[BlobId, bytes]:
    """The scores as they are stored, and their name."""
    data = msgspec.json.encode(TokenScores(tuple(tokens), repaired.edits))
    return BlobId(hashlib.sha256(data).hexdigest()), data


def read_scores(data: bytes) -> TokenScores | None:
    """The scores from their bytes; None where a newer program wrote them."""
    try:
        return msgspec.json.decode(data, type=TokenScores)
    except msgspec.MsgspecError:
        return None


def text_with_alternative(
    text: str, scores: TokenScores, index: int, alternative: str | None
) -> str:
    """A node's text up to a token, and what could have stood in its place.

    Raises:
        UsageError: there is no such token, or no alternative to it.
    """
    tokens = scores.tokens
    if not 0 <= index < len(tokens):
        raise UsageError(f"there is no token {index}; the node has {len(tokens)}")
    chosen = tokens[index]
    if alternative is None:
        others = [other for other, _ in chosen.alternatives if other != chosen.text]
        if not others:
            raise UsageError(f"the model named no alternative to token {index}; give one")
        alternative = others[0]
    raw = sum(len(token.text) for token in tokens[:index])
    return text[: RepairedText(text, scores.edits).offset(raw)] + alternative
