"""The main screen at any size: every row as wide as the window, nothing foreign obeyed."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from tests.support.example_count import cases
from tests.support.terminal_attacks import ATTACKS
from weft.cli.chat.paint.text_cells import row_cells, without_attributes
from weft.cli.chat.screens.terminal.region_painter import ScreenSize
from weft.cli.chat.screens.terminal.styles import RowStyles
from weft.cli.loom_view.focus import cursor_spans
from weft.cli.loom_view.scene import BranchRow, LinePart, LoomScene
from weft.cli.loom_view.scene_rows import ScenePainter, SceneStatus
from weft.ids import NodeId

A, B = NodeId("a"), NodeId("b")


def row(place: int, text: str, **fields: Any) -> BranchRow:
    return BranchRow(place=place, text=text, **{"node": NodeId(f"n{place}"), **fields})


def scene(*rows: BranchRow, **fields: Any) -> LoomScene:
    given = {
        "title": "once-upon-a-time",
        "nodes": 214,
        "cost_usd": 0.031,
        "models": 3,
        "node": A,
        "line": (LinePart("Once upon a time there was a loom that"),),
        "rows": rows,
        "count": len(rows),
        "selected": 0 if rows else -1,
        "n_branches": 4,
        "max_tokens": 40,
        "has_context": True,
        **fields,
    }
    return LoomScene(**given)


DRAWN = (
    row(
        0, " kept every thread anyone had cut, by colour", model="x:haiku", below=12, cost_usd=0.001
    ),
    row(1, " remembered", state="growing", model="x:local", tokens=41, node=None),
    row(2, " wove two stories at once", state="partial", model="x:gpt", cost_usd=0.002),
    row(3, "rate limited, again in 8 s", state="failed", model="x:sonnet", node=None),
)


def frame(shown: LoomScene, columns: int, rows: int, **options: Any) -> list[str]:
    styles = options.pop("styles", RowStyles(coloured=False))
    status = options.pop("status", SceneStatus(hints=("Space grows", "? keys")))
    painter = ScenePainter(styles)
    found = painter.frame(shown, ScreenSize(columns, rows), status, **options).rows
    assert len(found) == rows
    assert [row_cells(each) for each in found if row_cells(each) > columns] == []
    return [without_attributes(each) for each in found]


def test_the_screen_is_the_one_that_was_drawn() -> None:
    drawn = frame(scene(*DRAWN, below="and every evening it asked", path=("ch.2",)), 80, 14)
    assert drawn[0].startswith("┌ once-upon-a-time ─")
    assert drawn[0].endswith("─ 214 nodes · $0.031 · 3 models ┐")
    assert drawn[1].startswith("│ Once upon a time there was a loom that▏")
    assert "▸1 ● kept every thread anyone had cut" in drawn[3]
    text = "\n".join(drawn)
    assert "haiku" in drawn[3]
    assert "+12  $.001 │" in drawn[3]
    assert "2 ○ remembered" in text
    assert "41 tok" in text
    assert "3 ◐ (partial) wove two" in text
    assert "4 ✗ rate limited, again in 8 s" in text
    assert drawn[-3].startswith("├ below ▸1: and every evening it asked ─")
    assert drawn[-2].startswith("└ ch.2 ▸ root ─")
    assert drawn[-2].endswith("─ n 4 · 40 tok · 0.9 · ctx on ┘")


COLUMNS = (1, 4, 10, 20, 40, 60, 80, 119, 120, 200)
ROWS = (1, 2, 3, 5, 6, 8, 12, 24, 60)


@pytest.mark.parametrize(("columns", "rows"), cases(product(COLUMNS, ROWS)))
def test_any_size_is_filled_and_nothing_is_wider(columns: int, rows: int) -> None:
    wide = "織機は静かに歌った 🧵👩‍👩‍👧 " * 20
    many = [row(n, wide, model="x:gpt") for n in range(40)]
    frame(scene(*DRAWN, below=wide, line=(LinePart(wide),)), columns, rows)
    frame(scene(*many, selected=35), columns, rows)
    frame(scene(), columns, rows)


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_the_branch_that_keys_act_on_is_always_seen(columns: int) -> None:
    many = [row(n, f"branch {n}") for n in range(60)]
    for selected in (0, 30, 59):
        drawn = frame(scene(*many, selected=selected), columns, 16)
        assert sum("▸" in each for each in drawn) == 1
        assert any(f"▸{selected + 1:>2} ● branch {selected}" in each for each in drawn)


def test_in_a_wide_window_the_line_is_left_and_the_branches_right() -> None:
    drawn = frame(scene(*DRAWN), 200, 20)
    assert drawn[1].index("Once upon") < 100 < drawn[1].index("▸1 ●")


def test_a_long_line_shows_its_end_and_scrolls() -> None:
    text = "\n".join(f"line {n}" for n in range(100))
    shown = scene(line=(LinePart(text),))
    drawn = frame(shown, 60, 12)
    assert "line 99▏" in "\n".join(drawn)
    assert "line 80" not in "\n".join(drawn)
    assert "line 80" in "\n".join(frame(shown, 60, 12, scroll=15))
    assert "line 0 " in "\n".join(frame(shown, 60, 12, scroll=1000))


def test_the_cursor_in_a_text_is_seen_wherever_it_stands() -> None:
    words = " ".join(f"word{n}" for n in range(300))
    for at in (5, words.index("word150"), words.index("word299")):
        spans = cursor_spans(words, at)
        shown = scene(row(0, words[:4000]), row(1, "other"))
        assert "▏" in "\n".join(frame(shown, 80, 14, focus=spans)[3:])
        leaf = scene(line=(LinePart("Once "), LinePart(words)))
        assert "▏" in "\n".join(frame(leaf, 80, 14, focus=spans))


@pytest.mark.parametrize("attack", cases(ATTACKS.values()), ids=cases(ATTACKS))
def test_nothing_that_a_model_or_a_file_says_is_obeyed(attack: str) -> None:
    shown = scene(
        row(0, attack, model=attack, name=attack, why=attack, state="partial"),
        row(1, attack, state="failed"),
        title=attack,
        line=(LinePart(attack, attack),),
        below=attack,
        path=(attack,),
    )
    status = SceneStatus(hints=("Space grows",))
    size = ScreenSize(80, 24)
    for text in ScenePainter(RowStyles(coloured=False)).frame(shown, size, status).rows:
        bare = without_attributes(text)
        assert not any(ord(each) < 32 or 0x7F <= ord(each) < 0xA0 for each in bare), text


def test_roles_are_told_apart_in_a_conversation() -> None:
    line = (LinePart("Hello?", "user"), LinePart("Hi.", "assistant"), LinePart("Bye", "user"))
    text = "\n".join(each.strip("│ ") for each in frame(scene(line=line), 60, 20))
    assert "user\nHello?\n\nassistant\nHi.\n\nuser\nBye" in text


def test_without_unicode_every_row_is_ascii_and_as_wide() -> None:
    styles = RowStyles(coloured=False, unicode=False)
    found = ScenePainter(styles).frame(
        scene(*DRAWN, below="x"), ScreenSize(80, 14), SceneStatus(hints=("a",))
    )
    written = [styles.written(each) for each in found.rows]
    assert all(each.isascii() for each in written)
    assert "?" not in "".join(written)
    assert {len(without_attributes(each)) for each in written} == {80}


def test_a_notice_and_what_grows_stand_in_the_footer() -> None:
    assert (
        "└ deleted; u brings it back ─"
        in frame(scene(), 80, 12, status=SceneStatus(notice="deleted; u brings it back"))[-2]
    )
    assert (
        "└ ⠹ 3 growing ─" in frame(scene(), 80, 12, status=SceneStatus(activity="⠹ 3 growing"))[-2]
    )


def test_the_rows_of_a_growing_branch_are_not_broken_anew_with_each_word() -> None:
    words = [f" word{n % 7}" for n in range(2_000)]
    changes, text = 0, "".join(words[:500])
    before = frame(scene(row(0, text, state="growing", tokens=1)), 80, 12)
    for word in words[500:600]:
        text += word
        after = frame(scene(row(0, text, state="growing", tokens=1)), 80, 12)
        changes += sum(one != two for one, two in zip(before, after, strict=True))
        before = after
    # A word changes one row, and a new row all that move up by one.
    assert changes < 250
