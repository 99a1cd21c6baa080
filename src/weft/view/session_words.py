"""What is said of a session beside its messages: a side question with its answer, and the offer to
go on with a turn that a crash has cut off.
"""

from __future__ import annotations

from weft.events import AsideAnswered
from weft.messages import Text


def coming_back_text(parked: str, tokens: int, max_cost_usd: float | None) -> str:
    """What happened, and what it costs to go on."""
    said = f"The last turn is {parked}." if parked else "The last turn was interrupted."
    if not tokens:
        return said
    cost = "its price is not known" if max_cost_usd is None else f"at most {_money(max_cost_usd)}"
    return f"{said} The next model call sends about {tokens:,} tokens: {cost}."


def aside_text(told: AsideAnswered) -> str:
    """The question, and the answer below it."""
    asked = " ".join(part.text for part in told.question if isinstance(part, Text))
    return aside_words(asked, told.answer)


def aside_words(question: str, answer: str) -> str:
    """The same, of one that is told again."""
    return f"Side question: {question}\n{answer}"


def _money(usd: float) -> str:
    return f"${usd:.4f}" if 0 < usd < 0.01 else f"${usd:.2f}"
