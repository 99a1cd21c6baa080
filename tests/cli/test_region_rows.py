"""The rows of the bottom region: tools, activity, agents, queue, status."""

from __future__ import annotations

import time

import pytest

from weft.cli.chat.paint.text_cells import (
    cells,
    fit,
    fit_row,
    row_cells,
    tail_rows,
    word_wrap,
)
from weft.cli.chat.screens.terminal.activity import TurnActivity
from weft.cli.chat.screens.terminal.region_rows import RegionRows
from weft.cli.chat.screens.terminal.status_line import StatusPlace, status_row
from weft.cli.chat.screens.terminal.styles import RowStyles
from weft.clock import ManualClock
from weft.view import (
    AnswerBlock,
    LiveArea,
    QueuedInput,
    RetryNotice,
    RunningTool,
    TaskRow,
    WaitNotice,
)

PLAIN = RowStyles(coloured=False)
PLACE = StatusPlace(folder="calc", branch="main", sandbox=True)


def live(**fields: object) -> LiveArea:
    # Fields of the struct.
    return LiveArea(model="anthropic:claude-sonnet-4-6", **fields)  # type: ignore[arg-type]


class Turn:
    """A turn at a moment."""

    def __init__(self, live: LiveArea) -> None:
        self.live, self.clock = live, ManualClock()
        self.activity = TurnActivity(self.clock)
        self.activity.look(live)

    def after(self, seconds: float) -> Turn:
        self.clock.advance(seconds)
        return self

    def rows(self, width: int = 79) -> RegionRows:
        styles = _Bare()
        return RegionRows(self.live, self.activity, width=width, styles=styles, mark="⠹")


class _Bare(RowStyles):
    """No attributes at all, to compare text."""

    def __call__(self, style: str, text: str) -> str:
        return text


# --- activity ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({}, "⠹ Waiting for claude-sonnet-4-6 9 s · Esc stops"),
        ({"thinking": "x" * 840}, "⠹ Thinking 9 s · ↓ 210 tokens · Esc stops"),
        ({"text": "x" * 8400}, "⠹ Writing 9 s · ↓ 2.1k tokens · Esc stops"),
        ({"preparing": "edit calc.py"}, "⠹ Preparing edit calc.py 9 s · Esc stops"),
        (
            {"status": "executing_tool", "running": {"c": RunningTool(name="shell make")}},
            "⠹ Running 1 command 9 s · Esc stops",
        ),
        ({"phase": "planning"}, "⠹ Planning 9 s · Esc stops"),
    ],
    ids=lambda each: str(each)[:20],
)
def test_the_activity_line_says_what_arrives(fields: dict[str, object], shown: str) -> None:
    turn = Turn(live(status=fields.pop("status", "thinking"), **fields)).after(9)
    assert turn.rows().activity()[0] == shown


@pytest.mark.parametrize(
    ("wait", "shown"),
    [
        (
            {"name": "bg_1", "text": "make test"},
            "⠹ Waiting for bg_1 (make test) · 2 min 9 s · Esc stops",
        ),
        ({"until": 3600.0}, "⠹ Waiting until AT · 2 min 9 s · Esc stops"),
        (
            {"name": "bg_1", "until": 3600.0},
            "⠹ Waiting for bg_1 · 2 min 9 s · until AT at the latest · Esc stops",
        ),
    ],
    ids=("command", "time", "both"),
)
def test_a_turn_that_waits_says_for_what_since_when_and_until_when(
    wait: dict[str, float], shown: str
) -> None:
    turn = Turn(live(status="waiting"))
    now = turn.clock.now()
    until = wait.pop("until", None)
    at = "" if until is None else time.strftime("%H:%M", time.localtime(now + until))
    # Fields of the struct.
    notice = WaitNotice(
        since=now,
        until=None if until is None else now + until,
        **wait,  # type: ignore[arg-type]
    )
    turn.live.wait = notice
    assert turn.after(129).rows(90).activity() == [shown.replace("AT", at)]
    assert all(cells(row) <= 40 for row in turn.rows(40).activity())


def test_the_key_that_stops_it_is_the_last_to_go() -> None:
    turn = Turn(live(status="thinking", text="x" * 8400)).after(9)
    assert turn.rows(40).activity()[0] == "⠹ Writing 9 s · Esc stops"
    assert turn.rows(24).activity()[0] == "⠹ Writing 9 s"


def test_seconds_are_those_of_the_turn_and_come_after_the_first() -> None:
    turn = Turn(live(status="thinking"))
    assert turn.rows().activity() == ["⠹ Waiting for claude-sonnet-4-6 · Esc stops"]
    turn.after(3)
    turn.live.text = "word"
    turn.activity.look(turn.live)
    assert turn.after(2).rows().activity() == ["⠹ Writing 5 s · ↓ 1 tokens · Esc stops"]


def test_tokens_that_were_handed_out_are_counted_on() -> None:
    turn = Turn(live(status="thinking", text="y" * 40))
    turn.activity.handed_out((AnswerBlock(text="x" * 400),))
    turn.activity.look(turn.live)
    assert "↓ 110 tokens" in turn.rows().activity()[0]


def test_silence_is_said_after_ten_seconds_and_not_while_a_tool_runs() -> None:
    turn = Turn(live(status="thinking", text="word"))
    assert "no data" not in turn.after(9).rows().activity()[0]
    assert turn.after(6).rows().activity()[0] == "⠹ Writing 15 s · no data for 15 s · Esc stops"
    assert turn.rows(39).activity()[0] == "⠹ Writing 15 s · no data for 15 s"
    turn.live.running["c"] = RunningTool(name="shell sleep 100")
    turn.activity.look(turn.live)
    assert "no data" not in turn.after(60).rows().activity()[0]


def test_a_retry_counts_down_and_its_countdown_is_never_cut() -> None:
    reason = "Rate limit (429): Number of request tokens has exceeded your per-minute rate limit"
    retry = RetryNotice(attempt=1, tries=8, wait_ms=5000, reason=reason)
    turn = Turn(live(status="thinking", retry=retry))
    assert turn.after(2).rows().activity() == [
        "⠹ Rate limit (429): next try in 3 s, 2 of 8 · Esc stops",
        "  Number of request tokens has exceeded your per-minute rate limit",
    ]
    narrow = turn.rows(39).activity()
    assert "next try in 3 s, 2 of 8" in narrow[0]
    assert " ".join(row.strip() for row in narrow[1:]) in reason
    assert all(cells(row) <= 39 for row in narrow)


@pytest.mark.parametrize(
    "reason",
    [
        "Number of request tokens has exceeded your per-minute rate limit",
        "see https://example.com/limits about the rate limit of your account",
        "The answer of the gateway that stands before the model was no JSON: <html> busy",
    ],
)
def test_a_retry_without_a_short_head_loses_no_words(reason: str) -> None:
    retry = RetryNotice(attempt=1, tries=7, wait_ms=5000, reason=reason)
    turn = Turn(live(status="thinking", retry=retry)).after(3)
    for width in (40, 80):
        first, *words = turn.rows(width).activity()
        assert first.startswith("⠹ Trying again: next try in 2 s, 2 of 7")
        assert " ".join(row.strip() for row in words) == reason
        assert all(row.startswith("  ") for row in words)


def test_words_of_a_retry_that_are_too_many_end_in_an_ellipsis() -> None:
    retry = RetryNotice(attempt=1, tries=7, wait_ms=5000, reason="busy " * 60)
    rows = Turn(live(status="thinking", retry=retry)).rows(40).activity()
    assert len(rows) == 4
    assert rows[-1].endswith("…")
    assert all(cells(row) <= 40 for row in rows)


def test_thoughts_stand_below_the_activity_two_rows_of_them() -> None:
    rows = Turn(live(status="thinking", thinking="word " * 100)).rows(40).activity()
    assert len(rows) == 3
    assert all(cells(row) <= 40 for row in rows)
    assert rows[1].startswith("  word word")


# --- tools, agents, queue ----------------------------------------------------------------------


def test_what_is_running_shows_the_end_of_its_output() -> None:
    running = RunningTool(name="shell make")
    running.take("".join(f"line {number}\n" for number in range(100)))
    turn = Turn(live(status="executing_tool", running={"c": running})).after(7)
    assert turn.rows(40).tools() == [
        "⠹ Running make 7 s",
        *(f"  line {number}" for number in range(96, 100)),
    ]


def test_of_several_tools_each_has_a_row_and_the_latest_its_output() -> None:
    tools = {name: RunningTool(name=f"shell {name}", output=f"out {name}") for name in "ab"}
    rows = Turn(live(status="executing_tool", running=tools)).rows()
    assert rows.tools() == ["⠹ Running a", "⠹ Running b", "  out b"]
    assert rows.activity() == ["⠹ Running 2 commands · Esc stops"]


def test_what_a_tool_prints_is_harmless() -> None:
    tool = RunningTool(name="shell \x1b]0;x\x07ls", output="\x1b[2J\u202eevil\n" + "w" * 500)
    rows = Turn(live(status="executing_tool", running={"c": tool})).rows(30).tools()
    assert "\x1b" not in "".join(rows)
    assert all(cells(row) <= 30 for row in rows)


@pytest.mark.parametrize("width", [39, 79])
def test_agents_stand_below_their_activity(width: int) -> None:
    worker = TaskRow(name="doer", title="Find callers", call_uid="c", doing="read a\x1b[31m.txt")
    worker.calls, worker.tokens = 2, 12_345
    beside = TaskRow(name="other", title="x" * 100, background=True, cost_usd=0.5)
    turn = Turn(
        live(
            status="executing_tool",
            running={"c": RunningTool(name="agent doer: Find callers", output="noise")},
            tasks={"a": worker, "b": beside},
        )
    ).after(6)
    assert turn.rows(width).tools() == []
    assert turn.rows(width).activity() == ["⠹ 1 agent 6 s · Esc stops"]
    first, second = turn.rows(width).agents()
    assert first.startswith("  ├ Find callers ")
    assert first.endswith("  read a.txt · 2 calls" if width > 60 else "  read a.txt")
    del turn.live.tasks["b"]
    (row,) = turn.rows(width).agents()
    assert row.endswith(
        "  read a.txt · 2 calls · 12.3k tokens" if width > 60 else "  read a.txt · 2 calls"
    )
    assert second.startswith("  └ xxxx")
    assert all(cells(row) <= width for row in (first, second))
    assert "\x1b" not in first


def test_the_queue_says_when_and_how_to_get_it_back() -> None:
    rows = Turn(
        live(
            queue=[
                QueuedInput(entry_id="b", text="late", delivery="follow_up"),
                QueuedInput(entry_id="a", text="also\nthis"),
            ]
        )
    ).rows()
    assert rows.queue(hints=True) == [
        "  next   › also this",
        "         Up edits · Esc stops and brings them back",
        "  after  › late",
    ]
    assert len(rows.queue(hints=False)) == 2
    narrow = Turn(live(queue=[QueuedInput(entry_id="a", text="this")])).rows(39)
    assert narrow.queue(hints=True)[1] == "         Up edits · Esc returns them"


def test_nothing_in_flight_takes_no_row() -> None:
    rows = Turn(live()).rows()
    assert rows.tools() == rows.activity() == rows.agents() == rows.queue(hints=True) == []


# --- status ------------------------------------------------------------------------------------


def test_the_status_says_mode_model_context_cost_and_place() -> None:
    fields = {"context_used": 24_000, "context_window": 200_000, "cost_usd": 0.03}
    row = status_row(live(effort="medium", **fields), PLACE, width=100, styles=_Bare())
    left = " asks first · claude-sonnet-4-6 medium · context 12% · $0.03 · sandbox"
    assert row == left + " " * (100 - len(left) - len("main  calc")) + "main  calc"


def test_uncommitted_changes_are_a_star_behind_the_branch() -> None:
    place = PLACE._replace(is_changed=True)
    assert status_row(live(), place, width=100, styles=_Bare()).endswith("  main*  calc")
    elsewhere = StatusPlace(folder="calc", is_changed=True)
    assert "*" not in status_row(live(), elsewhere, width=100, styles=_Bare())


def test_what_has_no_room_goes_in_its_order_and_mode_and_model_stay() -> None:
    fields = {"context_used": 24_000, "context_window": 200_000, "cost_usd": 0.03}
    gone: list[str] = []
    words = ("calc", "main", "sandbox", "$0.03", "medium", "context")
    for width in range(100, 30, -1):
        row = status_row(live(effort="medium", **fields), PLACE, width=width, styles=_Bare())
        assert cells(row) <= width
        assert row.startswith(" asks first · claude-sonnet-4-6")
        gone += [word for word in words if word not in row and word not in gone]
    assert gone == list(words)


@pytest.mark.parametrize("width", [5, 10, 20, 30])
def test_a_tiny_window_keeps_the_beginning(width: int) -> None:
    row = status_row(live(), PLACE, width=width, styles=_Bare())
    assert cells(row) <= width
    assert row.startswith(" asks first"[: width - 1])


@pytest.mark.parametrize(
    ("mode", "words", "code"),
    [
        ("default", "asks first", "2"),
        ("accept_edits", "edits allowed", "35"),
        ("plan", "plan only", "35"),
        ("auto", "auto in sandbox", "35"),
        ("bypass", "asks nothing", "1;31"),
    ],
)
def test_the_mode_has_its_words_and_colour(mode: str, words: str, code: str) -> None:
    row = status_row(live(mode=mode), PLACE, width=100, styles=RowStyles())
    assert f"\x1b[{code}m{words}\x1b[0m" in row


def test_a_full_context_is_coloured_and_says_what_to_do() -> None:
    def shown(used: int) -> str:
        area = live(context_used=used, context_window=100)
        return status_row(area, PLACE, width=100, styles=RowStyles())

    assert "\x1b[2m · context 74%\x1b[0m" in shown(74)
    assert "\x1b[33m · context 75%\x1b[0m" in shown(75)
    assert "\x1b[31m · context 90% · /compact\x1b[0m" in shown(90)


def test_an_unknown_price_is_not_shown_as_nothing() -> None:
    for cost, words in ((None, "cost unknown"), (0.001, "under $0.01")):
        assert words in status_row(live(cost_usd=cost), PLACE, width=100, styles=PLAIN)


def test_a_notice_takes_the_left_half() -> None:
    row = status_row(live(), PLACE, width=60, styles=_Bare(), notice="Ctrl+C again quits")
    assert row.startswith(" Ctrl+C again quits  ")
    assert row.endswith("main  calc")


# --- cells -------------------------------------------------------------------------------------


FAMILY = "\U0001f469\u200d\U0001f469\u200d\U0001f467"


@pytest.mark.parametrize(
    ("text", "wide"),
    [("abc", 3), ("\u4e2d\u6587", 4), (FAMILY, 2), ("नमस्ते", 4), ("می\u200cخواهم", 7), ("é", 1)],
)
def test_text_is_measured_by_what_a_reader_sees(text: str, wide: int) -> None:
    assert cells(text) == wide
    assert row_cells(f"\x1b[1;36m{text}\x1b[0m") == wide


def test_text_is_cut_between_characters_and_says_so() -> None:
    assert fit("\u4e2d\u6587\u4e2d\u6587", 5) == "\u4e2d\u6587…"
    assert fit(FAMILY * 3, 5) == f"{FAMILY * 2}…"
    assert fit_row(f"\x1b[31m{FAMILY * 3}\x1b[0m", 4) == f"\x1b[31m{FAMILY * 2}\x1b[0m"
    assert tail_rows("\u4e2d" * 10, 10, 5) == ["\u4e2d" * 5, "\u4e2d" * 5]


def test_words_are_wrapped_whole_and_long_ones_are_cut() -> None:
    assert word_wrap("one two three", 8) == ["one two", "three"]
    assert word_wrap("a " + "x" * 20, 8) == ["a", "x" * 8, "x" * 8, "x" * 4]
    assert word_wrap("a\n\nb", 8) == ["a", "", "b"]
