"""Places inside a text: words to cut behind, and tokens by their probability."""

from __future__ import annotations

import math

import pytest

from weft.cli.loom_view.focus import TokenCursor, cursor_spans, moved_cursor
from weft.ids import NodeId
from weft.loom.token_places import PlacedToken


def places(text: str, step: int) -> list[int | None]:
    """Where the cursor goes, step by step, until it stays or leaves."""
    found: list[int | None] = []
    at: int | None = None
    for _ in range(20):
        at = moved_cursor(text, at, step)
        if at is None or (found and found[-1] == at):
            break
        found.append(at)
    return found


def test_the_cursor_goes_from_word_to_word_and_leaves_to_the_right() -> None:
    assert places(" kept every thread", 1) == [5, 11]
    assert moved_cursor(" kept every thread", 11, 1) is None


def test_to_the_left_it_begins_behind_the_last_word_but_one_and_stays_at_the_first() -> None:
    assert places(" kept every thread", -1) == [11, 5]


@pytest.mark.parametrize("text", ["", " ", "one", "  one  "])
def test_a_text_of_one_word_has_no_place_to_cut(text: str) -> None:
    assert moved_cursor(text, None, 1) is None
    assert moved_cursor(text, None, -1) is None


def test_scripts_without_spaces_are_cut_at_characters() -> None:
    assert places("織機は", 1) == [1, 2]


def test_what_would_be_cut_off_is_quiet() -> None:
    before, cursor, after = cursor_spans("one two", 3)
    assert (before.text, after.text, after.style) == ("one", " two", "quiet")
    assert cursor.text == "▏"


def tokens() -> TokenCursor:
    likely, other, rare = math.log(0.9), math.log(0.3), math.log(0.02)
    return TokenCursor(
        node=NodeId("n"),
        tokens=(
            PlacedToken(" kept", likely, ((" kept", likely), (" had", rare)), 0, 5),
            PlacedToken("\ufffd", likely, (), 5, 5),
            PlacedToken(
                " all", other, ((" all", other), (" the", other - 0.1), (" a", rare)), 5, 9
            ),
            PlacedToken(" day", rare, (), 9, 13),
        ),
    )


def test_tokens_are_walked_and_those_without_width_passed_over() -> None:
    cursor = tokens()
    cursor.move(1)
    assert cursor.index == 2
    cursor.move(1)
    cursor.move(1)
    assert cursor.index == 3
    cursor.move(-1)
    cursor.move(-1)
    cursor.move(-1)
    assert cursor.index == 0


def test_alternatives_go_round_and_are_shown_with_their_probability() -> None:
    cursor = tokens()
    chosen = [cursor.chosen]
    assert cursor.words() == "␣kept 90% · [␣had 2%]"
    cursor.move(1)
    for _ in range(2):
        cursor.turn(1)
        chosen.append(cursor.chosen)
    cursor.move(1)
    assert [*chosen, cursor.chosen] == [" had", " a", " the", None]
    assert "no other is known" in cursor.words()


def test_the_next_undecided_place_is_found() -> None:
    cursor = tokens()
    cursor.next_open(1)
    assert cursor.index == 2
    cursor.next_open(1)
    assert cursor.index == 2
    cursor.next_open(-1)
    assert cursor.index == 2


def test_tokens_are_styled_by_their_probability_and_lose_no_text() -> None:
    spans = tokens().spans(" kept all day.")
    assert "".join(span.text for span in spans) == " kept all day."
    styles = {span.text: span.style for span in spans if span.text}
    assert styles == {" kept": "mark", " all": "ask", " day": "bold bad", ".": ""}
