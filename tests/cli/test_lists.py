"""Lists in the bottom region and in words: filter, columns, keys; leaving one changes nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from tests.support.memory_terminal import DrivenScreen, driven_screen
from weft.cli.chat.paint.text_cells import cells
from weft.cli.chat.screens.list_picker import VISIBLE_ROWS, ListPicker
from weft.cli.chat.screens.list_question import ListAnswer, ListKey, ListQuestion, ListRow
from weft.cli.chat.screens.plain_screen import list_answer
from weft.cli.chat.screens.terminal.list_panel import ListPanel
from weft.cli.chat.screens.terminal.styles import RowStyles
from weft.view import UserBlock

pytestmark = pytest.mark.anyio

LEVELS = ("default", "low", "high")


def models(**fields: object) -> ListQuestion:
    rows = (
        ListRow(
            "claude-sonnet-5-5",
            ("anthropic", "$3 / $15 per 1M", "1M context", "thinking, images", "sonnet", "now"),
            is_current=True,
            levels=LEVELS,
            level="low",
        ),
        ListRow("claude-opus-5", ("anthropic", "$5 / $25", "1M", "thinking", "opus", "")),
        ListRow("gpt-6-sol", ("openai", "no key: /login openai"), is_dim=True),
    )
    given = {
        "title": "Model",
        "rows": rows,
        "enter": "this session",
        "keys": (ListKey("c-d", "also as default", word="default"), ListKey("space", "preview")),
        "keeps": (1, 0, 5, 2, 3),
        "levels_label": "Effort",
        **fields,
    }
    # Fields of the struct.
    return ListQuestion(**given)  # type: ignore[arg-type]


def drawn(question: ListQuestion, width: int, *keys: str, limit: int = 18) -> list[str]:
    panel = ListPanel(question)
    for key in keys:
        panel.picker.press(key)
    return panel.rows([], width=width, limit=limit, styles=_Bare())


class _Bare(RowStyles):
    """No attributes, so that rows can be compared."""

    def __call__(self, style: str, text: str) -> str:
        return text


# --- rules -------------------------------------------------------------------------------------


def pressed(question: ListQuestion, *keys: str) -> ListPicker:
    picker = ListPicker(question)
    for key in keys:
        picker.press(key)
    return picker


def test_typing_narrows_the_rows_and_a_digit_is_looked_for() -> None:
    rows = tuple(ListRow(f"row {number}") for number in range(20))
    picker = pressed(ListQuestion(title="?", rows=rows), *"row", "space", *"17")
    assert picker.picked == 17
    for _ in range(6):
        picker.press("backspace")
    assert len(picker.found) == 20


def test_the_picked_row_is_always_on_the_screen() -> None:
    rows = tuple(ListRow(f"row {number}") for number in range(40))
    picker = ListPicker(ListQuestion(title="?", rows=rows))
    for key in ("down",) * 45 + ("pagedown", "pagedown", "end", "up", "pageup", "home"):
        picker.press(key)
        assert picker.picked in picker.visible()
        assert len(picker.visible()) == VISIBLE_ROWS


@pytest.mark.parametrize("key", ["escape", "c-c"])
def test_esc_leaves_without_an_answer_whatever_was_pressed_before(key: str) -> None:
    picker = pressed(models(), "down", "up", "right", *"cla", key)
    assert picker.is_over
    assert picker.answer is None


def test_a_letter_is_always_looked_for_and_never_a_key() -> None:
    """`d` begins deepseek; what a key does is done with Ctrl."""
    picker = pressed(models(), *"d")
    assert not picker.is_over
    assert picker.words == "d"
    assert pressed(models(), "c-d").answer == ListAnswer(0, "c-d")


def test_space_looks_into_a_row_until_words_were_typed() -> None:
    assert pressed(models(), "space").answer == ListAnswer(0, "space")
    picker = pressed(models(), *"opus", "space", *"25")
    assert picker.words == "opus 25"
    assert picker.picked == 1


def test_left_and_right_choose_the_level_and_an_untouched_one_is_none() -> None:
    assert pressed(models(), "enter").answer == ListAnswer(0)
    assert pressed(models(), "right", "right", "enter").answer == ListAnswer(0, level="high")
    assert pressed(models(), "left", "left", "left", "enter").answer == ListAnswer(
        0, level="default"
    )


def test_enter_on_nothing_does_nothing() -> None:
    picker = pressed(models(), *"nothing like it", "enter")
    assert not picker.is_over


# --- drawing -------------------------------------------------------------------------------------


def test_a_list_has_title_and_count_columns_levels_and_keys() -> None:
    rows = [row.rstrip() for row in drawn(models(), 110)]
    assert rows[0].startswith("Model  ")
    assert rows[0].endswith("type to filter · 1 of 3")
    assert rows[1].split("   ")[:3] == [" ❯ ● claude-sonnet-5-5", "anthropic", "$3 / $15 per 1M"]
    assert rows[1].endswith("now")
    assert rows[2].index("anthropic") == rows[1].index("anthropic")
    assert rows[2].index("$5 / $25") == rows[1].index("$3")
    assert "no key: /login openai" in rows[3]
    assert rows[4].startswith("   Effort   default  [low]  high")
    assert rows[4].endswith("←→")
    assert rows[5] == " Enter this session · Ctrl+D also as default · Space preview · Esc"


@pytest.mark.parametrize("width", [20, 39, 60, 61, 79, 110, 199])
def test_every_row_fits_and_the_label_is_there(width: int) -> None:
    for keys in ((), ("down",), ("o", "p"), ("x", "x")):
        rows = drawn(models(), width, *keys)
        assert all(cells(row) <= width for row in rows), rows
    assert "claude-sonnet" in drawn(models(), width)[1]


def test_a_narrow_window_shows_the_label_and_one_detail() -> None:
    rows = [row.rstrip() for row in drawn(models(), 39)]
    assert rows[0].endswith("1 of 3")
    assert rows[1] == " ❯ ● claude-sonnet-5…   $3 / $15 per 1M"
    assert rows[2] == "     claude-opus-5      $5 / $25"


def test_a_low_window_keeps_the_title_and_the_picked_row() -> None:
    many = models(rows=tuple(ListRow(f"row {number}") for number in range(30)), picked=29)
    rows = drawn(many, 79, limit=6)
    assert len(rows) <= 6
    assert rows[0].startswith("Model")
    assert any("❯ row 29" in row for row in rows)


# --- on the screen -------------------------------------------------------------------------------


class Picking:
    """A list on the screen, and what became of it."""

    def __init__(self, driven: DrivenScreen) -> None:
        self.driven = driven
        self.answer: ListAnswer | None = None
        self.is_over = False

    async def ask(self, question: ListQuestion) -> None:
        self.answer = await self.driven.screen.choose_from(question)
        self.is_over = True


@asynccontextmanager
async def picking(question: ListQuestion, folder: Path, draft: str = "") -> AsyncIterator[Picking]:
    async with driven_screen(folder) as driven, anyio.create_task_group() as group:
        if draft:
            await driven.type(draft)
        state = Picking(driven)
        group.start_soon(state.ask, question)
        await driven.terminal.shows(question.title)
        yield state
        group.cancel_scope.cancel()


async def test_a_list_takes_keys_at_once_and_the_draft_stays(tmp_path: Path) -> None:
    async with picking(models(), tmp_path, draft="half a thought") as state:
        terminal = state.driven.terminal
        await terminal.shows("type to filter · 1 of 3")
        await state.driven.type("opus")
        screen = await terminal.shows("/opus · 1 of 1", "half a thought")
        assert "sonnet" not in screen
        await state.driven.type("\r")
        await terminal.until(lambda: state.is_over)
        assert state.answer == ListAnswer(1, words="opus")
        assert state.driven.screen.input.editor.text == "half a thought"


async def test_esc_closes_the_list_and_leaves_nothing_behind(tmp_path: Path) -> None:
    async with picking(models(), tmp_path) as state:
        await state.driven.type("\x1b")
        await state.driven.terminal.until(lambda: state.is_over)
        assert state.answer is None
        await state.driven.terminal.until(lambda: "Model" not in state.driven.terminal.text)
        assert not any("claude" in row for row in state.driven.terminal.history)


async def test_a_look_into_a_row_stands_in_the_place_of_the_rows(tmp_path: Path) -> None:
    looked = models(peek=(UserBlock(text="what was said"),))
    async with picking(looked, tmp_path) as state:
        screen = await state.driven.terminal.shows("what was said", "goes back to the list")
        assert "claude" not in screen
        await state.driven.type("\x1b")
        await state.driven.terminal.until(lambda: state.is_over)
        assert state.answer == ListAnswer(0, "space"), "back to the list, not out of it"


async def test_a_paste_is_looked_for(tmp_path: Path) -> None:
    async with picking(models(), tmp_path) as state:
        await state.driven.type("\x1b[200~opus\x1b[201~")
        await state.driven.terminal.shows("/opus · 1 of 1")


# --- in words ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("2", ListAnswer(1)),
        ("1 high", ListAnswer(0, level="high")),
        ("default 2", ListAnswer(1, "c-d")),
        ("preview 3", ListAnswer(2, "space")),
        ("4", None),
        ("0", None),
        ("1 loud", None),
        ("default", None),
        ("default 9", None),
        ("opus", None),
    ],
)
def test_a_typed_line_means_a_row_a_level_or_a_key(typed: str, meant: ListAnswer | None) -> None:
    assert list_answer(models(), typed) == meant


def test_a_terminal_without_unicode_shows_a_list_with_what_it_has() -> None:
    styles = RowStyles(coloured=False, unicode=False)
    panel = ListPanel(models(title="→ Before “this”"))
    rows = [styles.written(row) for row in panel.rows([], width=79, limit=18, styles=styles)]
    assert all(row.isascii() and "?" not in row for row in rows), rows
    assert '> Before "this"' in rows[0]
