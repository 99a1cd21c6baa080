"""Token estimates: how many tokens text is likely to be, before a vendor has counted, and how many
a model has room for.

The prefix of a request holds texts that others write: instructions, memory, skills, agents.  Each
is a zone with a budget: so many tokens as the settings say, and no more than a share of the model's
window, so that a small model keeps room for the conversation.  What is beyond it is cut off at the
end, which is said where it is cut.  The conversation is not cut: it is compacted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, TypeAlias

import msgspec

from weft.messages import CallResults, File, Image, Message, Part, Text, Thinking, ToolCall

CHARACTERS_PER_TOKEN: Final = 4
"""Good within a third for code and English, and too low for other scripts and for dense data.

What a vendor reports corrects it, for each model: `ModelEnvironment.window_left` is the window in
tokens of this size.
"""
# About what an image of the size that vendors scale to costs; the bytes say nothing about it.
IMAGE_TOKENS: Final = 1_500
SOFT_SHARE: Final = 0.7
"""How full the room for input gets before the line is compacted at the next natural boundary."""
HARD_SHARE: Final = 0.9
"""How full it gets before the line is compacted at once."""
ZONE_SHARES: Final = {
    "instructions": 1 / 8,
    "memory": 1 / 16,
    "skills": 1 / 8,
    "agents": 1 / 16,
    "results": 1 / 8,
}
"""What has a budget, and the share of the window that it may take at most.

Those of the prefix are less than half of it together: system prompt and tools come on top, and
cannot be cut.  `results` is each result of a tool.
"""
_CUT: Final = "[The rest is left out: "

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


def zone_budget(name: str, configured: int, window: int) -> int:
    """Tokens that a zone may have in a window; `window` is 0 where it is not known."""
    if not window:
        return configured
    return min(configured, int(window * ZONE_SHARES[name]))


def fitted(text: str, name: str, tokens: int) -> str:
    """A text as far as its zone has room for it; cut at the end of a line.

    What was fitted stays as it is when it is fitted again.
    """
    # A sixteenth more passes: headings come on top of what the files were read up to.
    if estimate_text(len(text)) <= tokens + tokens // 16:
        return text
    note = f"\n\n{_CUT}the setting context.{name} and the model's window allow {tokens:,} tokens.]"
    room = tokens * CHARACTERS_PER_TOKEN - len(note)
    if room <= 0:
        return ""
    end = text.rfind("\n", 0, room + 1)
    # A single long line is better cut inside than left out.
    kept = text[: end if end > room // 2 else room].rstrip()
    return kept + note


def is_cut(text: str) -> bool:
    """Whether a zone holds less than it was given."""
    return _CUT in text[-400:]
