"""Choosing with the keyboard."""

from __future__ import annotations

from weft.cli.chat.screens.picker import VISIBLE_ROWS, ListPicker
from weft.cli.chat.screens.screen import ChoiceQuestion, ChoiceRow


def question(count: int = 4, **fields: object) -> ChoiceQuestion:
    rows = tuple(ChoiceRow(f"row {number}", f"detail {number}") for number in range(count))
    # Fields of the struct.
    return ChoiceQuestion(title="?", rows=rows, **fields)  # type: ignore[arg-type]


def test_enter_allows_nothing_before_something_was_picked() -> None:
    choosing = ListPicker(question(picked=-1))
    assert choosing.picked() is None
    choosing.move(1)
    assert choosing.picked() == 0


def test_digits_choose_and_other_letters_do_not() -> None:
    choosing = ListPicker(question())
    assert choosing.typed("3") == 2
    assert choosing.typed("9") is None
    assert choosing.typed("\u0663") in (None, 2), (
        "other scripts' digits may count, or not; nothing breaks"
    )
    assert not choosing.understands("x")
    assert not choosing.understands("0")


def test_moving_wraps_at_both_ends() -> None:
    choosing = ListPicker(question(picked=0))
    choosing.move(-1)
    assert choosing.picked() == 3
    choosing.move(1)
    assert choosing.picked() == 0


def test_typing_narrows_a_search_and_the_number_stays_that_of_the_row() -> None:
    choosing = ListPicker(question(20, is_searched=True))
    for letter in "row 17":
        assert choosing.typed(letter) is None
    assert choosing.picked() == 17
    for _ in range(6):
        choosing.erase()
    assert len(choosing.rows()) == 20


def test_the_picked_row_is_always_on_the_screen() -> None:
    choosing = ListPicker(question(40, picked=0))
    for _ in range(60):
        choosing.move(1)
        picked = choosing.picked()
        assert picked in [number for number, _ in choosing.visible()]
        assert len(choosing.visible()) == VISIBLE_ROWS
