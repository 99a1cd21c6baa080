"""Token estimates: how many tokens text is likely to be, before a vendor has counted, and how many
a model has room for.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, TypeAlias

import msgspec

from weft.messages import CallResults, File, Image, Message, Part, Text, Thinking, ToolCall

CHARACTERS_PER_TOKEN: Final = 4
"""Good within a third for code and English, and too low for other scripts and for dense data.

Only what was used replaces it, once a vendor has reported it: in the ledger, not where it is judged
what will fit.
"""
# About what an image of the size that vendors scale to costs; the bytes say nothing about it.
IMAGE_TOKENS: Final = 1_500
SOFT_SHARE: Final = 0.7
"""How full the room for input gets before the line is compacted at the next natural boundary."""
HARD_SHARE: Final = 0.9
"""How full it gets before the line is compacted at once."""

RoomLevel: TypeAlias = Literal["free", "soft", "hard"]


def estimate_text(characters: int) -> int:
    """Tokens of so many characters."""
    return (characters + CHARACTERS_PER_TOKEN - 1) // CHARACTERS_PER_TOKEN


def estimate(messages: Iterable[Message]) -> int:
    """Tokens of some messages."""
    characters = 0
    images = 0
    for message in messages:
        if isinstance(message, CallResults):
            characters += sum(len(result.text) for result in message.results)
            images += sum(_pictures(image) for r in message.results for image in r.images)
            continue
        for part in message.parts:
            characters += _characters(part)
            images += _pictures(part) if isinstance(part, Image) else 0
    return estimate_text(characters) + images * IMAGE_TOKENS


def _pictures(image: Image) -> int:
    """As how many pictures it counts: vendors look at each page of a document.

    One whose text lies beside it counts with that text: a request has one of the two.
    """
    return 0 if image.text_beside else max(image.pages, 1)


def _characters(part: Part) -> int:
    match part:
        case Text(text=text) | File(text=text):
            return len(text)
        case Thinking(text=text, redacted=redacted):
            return len(text) + len(redacted)
        case ToolCall(name=name, args=args):
            return len(name) + len(msgspec.json.encode(args))
        case _:
            return 0


def room(window: int, most_output: int) -> int:
    """Tokens that a request may have as input, with place left for the answer."""
    # Vendors count the answer into the window. A model whose limit for output is most of its window
    # would otherwise have no room for input at all.
    return max(1, window - min(most_output, window // 4))


def room_level(
    tokens: int,
    window: int,
    most_output: int,
    shares: tuple[float, float] = (SOFT_SHARE, HARD_SHARE),
) -> RoomLevel:
    """How full the room is: whether to compact before the next request, or soon."""
    soft, hard = shares
    used = tokens / room(window, most_output)
    return "hard" if used > hard else "soft" if used > soft else "free"
