"""The offer to go on with a turn that a crash has cut off, in words."""

from __future__ import annotations


def coming_back_text(parked: str, tokens: int, max_cost_usd: float | None) -> str:
    """What happened, and what it costs to go on."""
    said = f"The last turn is {parked}." if parked else "The last turn was interrupted."
    if not tokens:
        return said
    cost = "its price is not known" if max_cost_usd is None else f"at most {_money(max_cost_usd)}"
    return f"{said} The next model call sends about {tokens:,} tokens: {cost}."


def _money(usd: float) -> str:
    return f"${usd:.4f}" if 0 < usd < 0.01 else f"${usd:.2f}"
