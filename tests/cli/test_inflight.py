"""The redrawn lines: what is in flight, and the status."""

from __future__ import annotations

import pytest

from weft.cli.chat.screens.live_area import Fragments, fit, in_flight, status_line, tail
from weft.view import LiveArea, QueuedInput, RunningTool


def plain(drawn: Fragments) -> str:
    return "".join(text for _, text in drawn)


def live(**fields: object) -> LiveArea:
    # Fields of the struct.
    return LiveArea(model="anthropic:claude-sonnet-4-6", **fields)  # type: ignore[arg-type]


def test_the_status_says_mode_model_context_and_cost() -> None:
    drawn = status_line(
        live(mode="plan", effort="high", context_used=20_000, context_window=200_000, cost_usd=0.5),
        width=100,
    )
    assert plain(drawn) == " plan · anthropic:claude-sonnet-4-6 high · 10% of 200k · $0.50"


def test_an_unknown_price_is_not_shown_as_nothing() -> None:
    assert "cost unknown" in plain(status_line(live(cost_usd=None), width=100))
    assert "under $0.01" in plain(status_line(live(cost_usd=0.001), width=100))


@pytest.mark.parametrize("width", [10, 20, 30, 40, 60, 100])
def test_a_narrow_window_keeps_the_mode_and_loses_the_least(width: int) -> None:
    shown = plain(status_line(live(context_used=1, context_window=100), width=width))
    assert len(shown) <= width
    assert shown.startswith(" default"[:width])
    if width >= 30:
        assert "claude-sonnet-4-6" in shown


def test_what_is_running_shows_the_end_of_its_output() -> None:
    running = RunningTool(name="shell make")
    running.take("".join(f"line {number}\n" for number in range(100)))
    drawn = plain(
        in_flight(
            live(status="executing_tool", running={"c": running}), width=40, rows=24, seconds=7
        )
    )
    assert "● shell make\n" in drawn
    assert "line 99" in drawn
    assert "line 50" not in drawn
    assert "working 7 s" in drawn


def test_text_in_flight_is_bounded_by_the_window_and_harmless() -> None:
    text = "\x1b[2J" + "word " * 1000
    drawn = plain(in_flight(live(text=text, status="thinking"), width=30, rows=20, seconds=1))
    assert "\x1b" not in drawn
    assert drawn.count("\n") <= 12
    assert all(len(line) <= 30 for line in drawn.split("\n"))


def test_what_waits_to_be_said_is_shown() -> None:
    assert "then: also this" in plain(
        in_flight(
            live(queue=[QueuedInput(entry_id="e", text="also\nthis")]), width=40, rows=20, seconds=0
        )
    )


def test_nothing_in_flight_takes_no_line() -> None:
    assert in_flight(live(), width=80, rows=24, seconds=0) == []


def test_wide_letters_are_counted_by_their_cells() -> None:
    assert fit("\u4e2d\u6587\u4e2d\u6587", 5) == "\u4e2d\u6587…"
    assert tail("\u4e2d" * 10, 10, 5) == ["\u4e2d" * 5, "\u4e2d" * 5]
