"""Frames that met another width than the one that they were measured for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from weft.cli.chat.paint.text_cells import row_behind, word_wrap
from weft.cli.chat.screens.terminal.frame_ledger import (
    MOST_UNANSWERED,
    FrameLedger,
    RecordLine,
    SentFrame,
    lines_behind,
)

WIDE, NARROW = "a" * 90, "b" * 30
FRAME = SentFrame((WIDE, NARROW, "rule", "input"), at=3, column=2, up=3, columns=100)
RECORD = tuple(map(RecordLine, ("first", "second", "third")))


def test_a_frame_at_its_own_width_leaves_nothing() -> None:
    ledger = FrameLedger()
    ledger.sent(FRAME)
    assert not ledger.answered(20, 100)
    assert (ledger.leftovers, ledger.lost, ledger.unanswered) == ([], [], 0)


def test_a_frame_in_a_narrower_window_began_below_the_rows_that_were_broken() -> None:
    ledger = FrameLedger()
    ledger.sent(FRAME._replace(above=("done", "y" * 80)))
    assert ledger.answered(20, 60)
    # One row more than was counted: the first of the two that the wide row takes now.
    assert ledger.leftovers == ["a" * 60, "done", "y" * 60]
    assert ledger.lost == ["done", "y" * 80], "cut in the window, so printed once more"


def test_a_frame_that_reached_the_top_of_the_window_began_below_it() -> None:
    ledger = FrameLedger()
    ledger.sent(FRAME)
    # Two rows above the cursor where three were counted: one more stays.
    assert ledger.answered(3, 60)
    assert ledger.leftovers == [WIDE]


def test_a_terminal_that_cuts_rows_has_none_above_a_torn_frame() -> None:
    ledger = FrameLedger(rewraps=False)
    ledger.sent(FRAME._replace(above=("done",)))
    assert ledger.answered(20, 60)
    assert ledger.leftovers == ["done"]


def test_lines_that_a_wider_window_had_pulled_down_are_printed_again() -> None:
    ledger = FrameLedger()
    # Erased by five rows, as at 40 columns; at 100 the rows were whole again, and three.
    ledger.sent(FRAME._replace(up=5, columns=40, record=RECORD))
    assert ledger.answered(20, 100)
    assert ledger.lost == ["second", "third"]


def test_rows_that_scrolled_off_are_true_up_to_what_the_torn_frame_wrote() -> None:
    ledger = FrameLedger()
    ledger.sent(FRAME._replace(above=("done",)))
    ledger.answered(20, 60)
    assert ledger.left(2, 60) == ["a" * 60]
    assert ledger.leftovers == []


def test_a_key_that_looks_like_an_answer_is_none() -> None:
    ledger = FrameLedger()
    assert not ledger.is_answer((12, 100), 100), "nothing was asked"
    ledger.sent(FRAME)
    assert ledger.is_answer((12, 100), 100)
    assert not ledger.is_answer((1, 2), 100), "Shift+F3"


def test_a_terminal_that_never_answers_is_not_asked_for_ever() -> None:
    ledger = FrameLedger()
    for _ in range(MOST_UNANSWERED + 1):
        ledger.sent(FRAME)
    assert not ledger.is_asking
    assert ledger.unanswered == 0


WORDS = st.lists(st.text("abcé中", min_size=1, max_size=7), min_size=1, max_size=30)


@given(WORDS, st.integers(8, 40), st.integers(8, 40), st.data())
def test_what_is_printed_and_what_is_left_are_the_text(
    words: list[str], before: int, after: int, data: st.DataObject
) -> None:
    text = " ".join(words)
    printed = word_wrap(text, before)
    printed = printed[: data.draw(st.integers(0, len(printed)))]
    lines = word_wrap(text, after)
    count, rest = lines_behind(lines, printed)
    whole = "".join([*printed, rest, *lines[count:]])
    assert "".join(whole.split()) == "".join(text.split())


def test_the_end_of_a_row_keeps_its_attributes() -> None:
    assert row_behind("\x1b[1mbold\x1b[0m and plain", 2) == "\x1b[1mld\x1b[0m and plain"
    assert row_behind("中文字", 3) == "文字", "a character is not halved"
