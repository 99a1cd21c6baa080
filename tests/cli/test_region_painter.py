"""The painter of the bottom region, judged by a terminal in memory."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.example_count import examples
from tests.support.memory_terminal import MemoryWindow
from weft.cli.chat.screens.terminal.region_painter import RegionPainter

COLUMNS, ROWS = 20, 12
TEXTS = st.lists(
    st.sampled_from(["", "a", "bb", "x" * COLUMNS, "中文", "\x1b[1mq\x1b[0m"]), max_size=5
)
LINES = st.lists(
    st.sampled_from(["", "one", "two", "y" * COLUMNS, "z" * (COLUMNS + 3)]), max_size=4
)


def plain(row: str) -> str:
    return row.replace("\x1b[1m", "").replace("\x1b[0m", "")


def broken(line: str) -> list[str]:
    return [line[at : at + COLUMNS] for at in range(0, len(line), COLUMNS)] or [""]


@given(st.lists(st.tuples(LINES, TEXTS, st.integers(0, 4)), min_size=1, max_size=8))
@settings(max_examples=examples(100), deadline=None)
def test_the_screen_is_what_was_finished_and_then_the_region(
    steps: list[tuple[list[str], list[str], int]],
) -> None:
    terminal = MemoryWindow(COLUMNS, ROWS)
    painter = RegionPainter(terminal.write)
    finished: list[str] = []
    for above, rows, row in steps:
        rows = rows or [""]
        cursor = (min(row, len(rows) - 1), 1)
        painter.draw(rows, cursor, above=above, columns=COLUMNS)
        finished += [piece for line in above for piece in broken(line)]
        wanted = [*finished, *(plain(each) for each in rows)]
        # A wide character takes two cells, of which the terminal shows the second as nothing.
        assert "\n".join(terminal.history).rstrip() == "\n".join(wanted).rstrip()
        at = len(wanted) - len(rows) + cursor[0]
        assert terminal.cursor == (at - max(0, len(terminal.history) - ROWS), 1)


@given(
    st.integers(3, 8),
    st.lists(
        st.tuples(
            st.lists(st.sampled_from(["", "one", "two", "z" * (COLUMNS + 3)]), max_size=9),
            st.lists(st.sampled_from(["", "a", "bb", "status"]), min_size=1, max_size=7),
        ),
        min_size=2,
        max_size=6,
    ),
)
@settings(max_examples=examples(100), deadline=None)
def test_nothing_is_lost_or_left_when_more_comes_than_the_window_holds(
    height: int, steps: list[tuple[list[str], list[str]]]
) -> None:
    terminal = MemoryWindow(COLUMNS, height)
    painter = RegionPainter(terminal.write)
    finished: list[str] = []
    for above, rows in steps:
        rows = rows[-(height - 1) :]
        painter.draw(rows, None, above=above, columns=COLUMNS, height=height)
        finished += [piece for line in above for piece in broken(line)]
        assert "\n".join(terminal.history).rstrip() == "\n".join([*finished, *rows]).rstrip()


def test_many_lines_above_a_region_that_grows_leave_it_whole() -> None:
    terminal = MemoryWindow(COLUMNS, 8)
    painter = RegionPainter(terminal.write)
    painter.draw(["diff", "diff", "question", "yes", "no", "status"], None, height=8)
    above = [f"line {n}" for n in range(5)]
    rows = ["rule", "title", "question", "yes", "no", "status"]
    painter.draw(rows, None, above=above, columns=COLUMNS, height=8)
    assert terminal.history == [*above, *rows]


def test_what_does_not_change_is_not_written() -> None:
    terminal = MemoryWindow(COLUMNS, ROWS)
    painter = RegionPainter(terminal.write)
    painter.draw(["text", "rule", "input"], (2, 0))
    terminal.written = ""
    painter.draw(["text", "rule", "input"], (2, 0))
    assert terminal.written == ""
    painter.draw(["text", "rule", "inputs"], (2, 1))
    assert "rule" not in terminal.written
    terminal.written = ""
    painter.draw(["rule", "inputs"], (1, 1), above=["text"])
    assert terminal.written == "", "text that stands there settles without a byte"
    painter.draw(["more", "rule", "inputs"], (2, 1))
    assert terminal.rows[:4] == ["text", "more", "rule", "inputs"]


def test_every_frame_is_synchronized_and_the_cursor_is_shown_where_it_belongs() -> None:
    terminal = MemoryWindow(COLUMNS, ROWS)
    painter = RegionPainter(terminal.write)
    shown = []
    painter.draw(["a", "b"], (0, 1))
    assert terminal.written.startswith("\x1b[?2026h")
    assert terminal.written.endswith("\x1b[?2026l")
    assert terminal.cursor == (0, 1)
    shown.append(terminal.has_cursor)
    painter.draw(["a", "b"], None)
    shown.append(terminal.has_cursor)
    painter.erase()
    shown.append(terminal.has_cursor)
    assert terminal.text == ""
    assert shown == [True, False, True]


def test_rows_that_others_drew_are_written_anew() -> None:
    terminal = MemoryWindow(COLUMNS, ROWS)
    terminal.write("greeting\r\nrule\r\n> typed\r\nstatus\x1b[1A\r\x1b[7C")
    painter = RegionPainter(terminal.write)
    painter.adopt(4, 2)
    painter.draw(["rule", "> typed more", "status"], (1, 12), above=["Greeting"])
    assert terminal.text == "Greeting\nrule\n> typed more\nstatus"


@pytest.mark.parametrize(("columns", "above"), [(20, 2), (10, 4), (7, 6)])
def test_the_height_above_the_cursor_is_that_of_the_new_width(columns: int, above: int) -> None:
    for rewraps, expected in ((True, above), (False, 2)):
        painter = RegionPainter(lambda text: None, rewraps=rewraps)
        painter.draw(["x" * 20, "y" * 20, "input"], (2, 0))
        assert painter.rows_above_cursor(columns) == expected


def test_rows_that_stay_are_pushed_down_when_one_comes_in_above_them() -> None:
    terminal = MemoryWindow(COLUMNS, ROWS)
    painter = RegionPainter(terminal.write)
    painter.draw(["one", "rule", "input", "status"], (2, 0))
    terminal.written = ""
    painter.draw(["one", "two", "rule", "input", "status"], (3, 0))
    assert terminal.text == "one\ntwo\nrule\ninput\nstatus"
    assert "rule" not in terminal.written
    painter.draw(["one", "two", "", "rule", "input", "status"], (4, 0))
    assert terminal.text == "one\ntwo\n\nrule\ninput\nstatus"
    assert terminal.cursor == (4, 0)
