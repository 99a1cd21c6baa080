"""Choosing with the keyboard."""

from __future__ import annotations

from weft.cli.chat.screens.picker import VISIBLE_ROWS, ChoicePicker
from weft.cli.chat.screens.screen import ChoiceQuestion, ChoiceRow


def question(count: int = 4, **fields: object) -> ChoiceQuestion:
    rows = tuple(ChoiceRow(f"row {number}", f"detail {number}") for number in range(count))
    # Fields of the struct.
    return ChoiceQuestion(title="?", rows=rows, **fields)  # type: ignore[arg-type]


def test_enter_allows_nothing_before_something_was_picked() -> None:
    choosing = ChoicePicker(question(picked=-1))
    assert choosing.picked() is None
    choosing.move(1)
    assert choosing.picked() == 0


def test_digits_choose_and_other_letters_do_not() -> None:
    choosing = ChoicePicker(question())
    assert choosing.typed("3") == 2
    assert choosing.typed("9") is None
    assert choosing.typed("\u0663") in (None, 2), (
        "other scripts' digits may count, or not; nothing breaks"
    )
    assert not choosing.understands("x")
    assert not choosing.understands("0")


def test_moving_wraps_at_both_ends() -> None:
    choosing = ChoicePicker(question(picked=0))
    choosing.move(-1)
    assert choosing.picked() == 3
    choosing.move(1)
    assert choosing.picked() == 0


def test_the_picked_row_is_always_on_the_screen() -> None:
    choosing = ChoicePicker(question(40, picked=0))
    for _ in range(60):
        choosing.move(1)
        picked = choosing.picked()
        assert picked in [number for number, _ in choosing.visible()]
        assert len(choosing.visible()) == VISIBLE_ROWS
