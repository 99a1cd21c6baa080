"""Only what has changed of a row is written, and the row is the same as if all of it were."""

from __future__ import annotations

import pyte
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.cli.chat.screens.terminal.styles import RowStyles
from weft.cli.loom_view.terminal_loop import changed_part
from weft.cli.loom_view.text_rows import padded

STYLES = RowStyles()
WIDTH = 24

piece = st.tuples(
    st.sampled_from(["", "quiet", "bold you", "picked"]),
    st.text(st.sampled_from("ab 織🧵é"), min_size=1, max_size=6),
)
rows = st.lists(piece, max_size=5).map(
    lambda pieces: "".join(STYLES(style, text) for style, text in pieces)
)


def cells_of(*written: str) -> list[tuple[object, ...]]:
    screen = pyte.Screen(WIDTH, 2)
    stream = pyte.Stream(screen)
    for each in written:
        stream.feed(f"\x1b[?7l{each}\x1b[?7h")
    return [tuple(screen.buffer[0][column]) for column in range(WIDTH)]


@given(rows, rows, st.booleans())
def test_a_row_that_is_changed_looks_as_one_that_is_written_anew(
    before: str, after: str, fills: bool
) -> None:
    old, new = (padded(row, WIDTH) for row in (before, after)) if fills else (before, after)
    first = changed_part(1, "", old, WIDTH)
    assert cells_of(first, changed_part(1, old, new, WIDTH)) == cells_of(
        changed_part(1, "", new, WIDTH)
    )


@pytest.mark.parametrize(
    ("before", "after", "written"),
    [
        ("one two", "one three", "\x1b[1;5Hthree\x1b[K"),
        ("\x1b[2mone\x1b[0m two", "\x1b[2mone\x1b[0m three", "\x1b[1;5Hthree\x1b[K"),
        ("a \x1b[2mone\x1b[0m", "a \x1b[2mother\x1b[0m", "\x1b[1;3H\x1b[2mother\x1b[0m\x1b[K"),
        ("", "one", "\x1b[1;1Hone\x1b[K"),
    ],
)
def test_only_the_end_of_a_row_is_written(before: str, after: str, written: str) -> None:
    assert changed_part(1, before, after, WIDTH) == written
