"""Budget limits: when no further model call may be made, and when to say that one is near.  Pure.

The hard limit refuses before a call, so the last call may go a little beyond it.  The soft one is a
warning, once for each budget that was set: which one was warned of is a setting of the session, and
so outlives the process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from weft.events import Fact, SettingChanged, SystemNote
from weft.loop.base import TurnLimits
from weft.messages import Usage
from weft.state import SessionState

SOFT_SHARE: Final = 0.8
"""How much of a budget may be used before the user is warned."""
WARNED: Final = "budget_told"
"""The setting that holds which budgets the user was warned of."""


def refusal(limits: TurnLimits, total: Usage, *, model: str, is_priced: bool) -> str | None:
    """Why no further call may be made.

    None when one may.  A price that is not known is not taken for nothing.
    """
    # Tokens first: every model has them, and a price may be unknown.
    if limits.max_tokens is not None and total.total_tokens >= limits.max_tokens:
        return f"the limit of {limits.max_tokens} tokens is reached"
    if limits.max_budget_usd is None:
        return None
    if total.cost_usd is None or not is_priced:
        return (
            f"the price of {model} is unknown, so a money budget cannot be kept; "
            "set its price in the config, or lift the budget"
        )
    if total.cost_usd >= limits.max_budget_usd:
        return f"the budget of ${limits.max_budget_usd:g} is used up"
    return None


def warnings(
    limits: TurnLimits, total: Usage, state: SessionState, noted: Sequence[Fact]
) -> list[Fact]:
    """The facts that warn the user, once, that most of a budget is used.

    None when there is nothing new.
    """
    # Most sessions have no budget, and every answer asks.
    if not limits.has_budget:
        return []
    warned = _warned(state, noted)
    sentences: list[str] = []
    now = dict(warned)
    for name, limit, used, shown in (
        ("max_budget_usd", limits.max_budget_usd, total.cost_usd, _money),
        ("max_tokens", limits.max_tokens, total.total_tokens, _tokens),
    ):
        # Compared with the amount and not with a flag: a budget that is raised is news again.
        if limit is None or used is None or used < limit * SOFT_SHARE or warned.get(name) == limit:
            continue
        now[name] = limit
        sentences.append(f"{used / limit:.0%} of the budget is used: {shown(used, limit)}.")
    if not sentences:
        return []
    return [
        SystemNote(text=" ".join(sentences), level="warning"),
        SettingChanged(name=WARNED, value=now),
    ]


def _warned(state: SessionState, noted: Sequence[Fact]) -> dict[str, Any]:
    for fact in reversed(noted):
        if isinstance(fact, SettingChanged) and fact.name == WARNED:
            return dict(fact.value)
    return dict(state.settings.get(WARNED) or {})


def _money(used: float, limit: float) -> str:
    return f"${used:.4g} of ${limit:g}"


def _tokens(used: float, limit: float) -> str:
    return f"{used:,.0f} of {limit:,.0f} tokens"
