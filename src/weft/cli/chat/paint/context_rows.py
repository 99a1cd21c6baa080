"""The rows of `/context` and `weft context`: who uses what of the window, as bars.

Each zone's bar begins where the one above it ends, so that together they are one bar of what is
used, which needs no colours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.app.context_report import ContextReport
from weft.cli.chat.paint.card_text import card_target
from weft.view import ContextZone, thousands

BAR: Final = 30
"""Cells of a bar: with its label and its number a row fits into 80 columns."""
SHOWN: Final = 60
"""Characters of a tool call in a row."""
_LABELS: Final = {
    "system": "system prompt",
    "instructions": "AGENTS.md",
    "outputs": "tool output",
}
_ALWAYS: Final = ("system", "tools", "instructions", "messages", "outputs")
"""Zones that are shown though they are empty."""


def zone_rows(report: ContextReport) -> tuple[tuple[str, ...], ...]:
    """What fills the window, a row each: the label, the number, and the bar."""
    shown = [each for each in report.zones if each.tokens or each.name in _ALWAYS]
    bars = zip(shown, _bars(shown), strict=True)
    return (
        ("used", _used(report), _whole_bar(report)),
        *((_LABELS.get(zone.name, zone.name), _value(zone, report), bar) for zone, bar in bars),
    )


def more_rows(report: ContextReport, compact: str) -> tuple[tuple[str, ...], ...]:
    """What there is to say besides: the largest results, what is free, when it is compacted.
    `compact` is the command that does it now.
    """
    rows: list[tuple[str, ...]] = []
    for number, each in enumerate(each for each in report.largest if each.tokens):
        target = card_target(each.args)
        said = f"{thousands(each.tokens)}  {each.name} {target}"[:SHOWN].rstrip()
        rows.append(("largest" if number == 0 else "", said))
    if report.window:
        free = max(0, report.window - report.used)
        kept = f", {thousands(report.reserved)} of it for the answer" if report.reserved else ""
        rows.append(("free", f"{_share(free, report)}{kept}"))
        rows.append(("compacted", _when_compacted(report, compact)))
    return tuple(rows)


def _when_compacted(report: ContextReport, compact: str) -> str:
    if report.used >= report.compacts_at:
        return f"with the next message; {compact} does it now"
    share = report.compacts_at * 100 // report.window
    return f"at {thousands(report.compacts_at)} ({share}%); {compact} does it now"


def _used(report: ContextReport) -> str:
    if not report.window:
        return f"{thousands(report.used)} tokens"
    share = report.used * 100 // report.window
    return f"{thousands(report.used)} of {thousands(report.window)} ({share}%)"


def _whole_bar(report: ContextReport) -> str:
    if not report.window:
        return ""
    full = min(BAR, round(BAR * report.used / report.window))
    # Something that is used is seen, however little of the window it is.
    full = max(full, 1 if report.used else 0)
    return "█" * full + "░" * (BAR - full)


def _bars(zones: Sequence[ContextZone]) -> list[str]:
    whole = sum(zone.tokens for zone in zones)
    bars: list[str] = []
    before = 0
    for zone in zones:
        first = min(BAR - 1, BAR * before // whole) if whole else 0
        before += zone.tokens
        last = max(first + 1, round(BAR * before / whole)) if zone.tokens else first
        bars.append("░" * first + "█" * (last - first) + "░" * (BAR - last))
    return bars


def _value(zone: ContextZone, report: ContextReport) -> str:
    return f"{_share(zone.tokens, report)}{', cut' if zone.is_cut else ''}"


def _share(tokens: int, report: ContextReport) -> str:
    if not tokens:
        return "none"
    percent = f" ({tokens * 100 / report.window:.1f}%)" if report.window else ""
    return f"{thousands(tokens)}{percent}"
