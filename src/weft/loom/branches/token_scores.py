"""The tokens of a branch with their probabilities: stored as a blob, read when a node is shown."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from weft.ids import BlobId
from weft.loom.boundary_repair import RepairedText, TextEdit
from weft.loom.token_places import placed_tokens, with_alternative
from weft.providers import TokenLogprob
from weft.sha256 import sha256


class TokenScores(msgspec.Struct, frozen=True):
    """What a model reported of its tokens, and where the node's text differs from them."""

    tokens: tuple[TokenLogprob, ...]
    edits: tuple[TextEdit, ...] = ()


def stored_scores(tokens: Sequence[TokenLogprob], repaired: RepairedText) -> tuple[BlobId, bytes]:
    """The scores as they are stored, and their name."""
    data = msgspec.json.encode(TokenScores(tuple(tokens), repaired.edits))
    return BlobId(sha256(data).hexdigest()), data


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
    # Placed anew: repairs have moved the tokens, and some are only parts of a character.
    raw = "".join(token.text for token in scores.tokens)
    placed = placed_tokens(scores.tokens, raw, RepairedText(text, scores.edits))
    return with_alternative(text, placed, index, alternative)
