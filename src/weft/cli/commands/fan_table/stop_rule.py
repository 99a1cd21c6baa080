"""The rule that ends a fan-out before all its candidates are done."""

from __future__ import annotations

from typing import Literal

from weft.errors import UsageError


def stop_rule(given: str | None) -> tuple[Literal["all", "verified"], float | None]:
    """`verified`, or an amount of money.

    Raises:
        UsageError: it is neither.
    """
    if given is None:
        return "all", None
    if given == "verified":
        return "verified", None
    try:
        amount = float(given.removeprefix("$"))
    except ValueError:
        amount = 0.0
    if not 0 < amount < 1e6:
        raise UsageError(f"--stop-when takes `verified` or an amount as `$0.50`, not {given!r}")
    return "all", amount
