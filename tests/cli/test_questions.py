"""Which keys answer a question, and what becomes of what is being typed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import pytest

from tests.support.idle_loop import all_tasks_blocked
from tests.support.memory_terminal import DrivenScreen, MemoryTerminal, driven_screen
from weft.cli.chat.paint.text_cells import without_attributes
from weft.cli.chat.screens.screen import ChoiceQuestion, ChoiceRow, GoBack
from weft.cli.chat.screens.terminal.question_panel import CALM_SECONDS, QuestionPanel
from weft.cli.chat.screens.terminal.styles import RowStyles
from weft.clock import ManualClock
from weft.view import NoteBlock, PermissionBlock

pytestmark = pytest.mark.anyio

DOWN, TAB_BACK = "\x1b[B", "\x1b[Z"


def shell_permission(preview: str = "touch made") -> ChoiceQuestion:
    return ChoiceQuestion(
        title="Allow this command?",
        rule="Run a command ─ in the sandbox",
        preview=(PermissionBlock(tool="shell", target=preview, preview=preview),),
        rows=tuple(ChoiceRow(label) for label in ("Yes", "Yes, this turn", "Yes, always", "No")),
        hint="Esc stops the turn",
        picked=-1,
    )


def edit_permission(lines: int) -> ChoiceQuestion:
    """As long as the question about an edit is."""
    command = "\n".join(f"line {number};" for number in range(lines))
    return ChoiceQuestion(
        title="Allow this edit?",
        rule=f"Edit calc.py ─ +{lines}",
        preview=(PermissionBlock(tool="shell", target=command, preview=command),),
        rows=(
            ChoiceRow("Yes", key="y"),
            ChoiceRow("Yes, and every edit of calc.py in this session"),
            ChoiceRow("Yes, and all edits in this session", key="s-tab"),
            ChoiceRow("No, and say what to do instead", key="n"),
        ),
        hint="Tab adds a note to yes · e opens it in your editor · Esc stops the turn",
        other_keys=("tab", "e"),
    )


class Asked:
    """A question on the screen, and what became of it."""

    def __init__(self, driven: DrivenScreen) -> None:
        self.driven = driven
        self.answer: int | None = None
        self.is_answered = False

    @property
    def terminal(self) -> MemoryTerminal:
        return self.driven.terminal

    @property
    def draft(self) -> str:
        return self.driven.screen.input.editor.text

    async def ask(self, question: ChoiceQuestion) -> None:
        self.answer = await self.driven.screen.choose(question)
        self.is_answered = True

    def wait(self, seconds: float) -> None:
        assert isinstance(self.driven.clock, ManualClock)
        self.driven.clock.advance(seconds)

    async def type(self, keys: str) -> None:
        await self.driven.type(keys)


@asynccontextmanager
async def asked(
    question: ChoiceQuestion,
    tmp_path: Path,
    draft: str = "",
    columns: int = 80,
    rows: int = 24,
) -> AsyncIterator[Asked]:
    async with (
        driven_screen(tmp_path, columns=columns, rows=rows) as driven,
        anyio.create_task_group() as group,
    ):
        await driven.type(draft)
        state = Asked(driven)
        group.start_soon(state.ask, question)
        await all_tasks_blocked()
        yield state
        group.cancel_scope.cancel()


async def test_a_key_pressed_as_the_question_comes_up_is_dropped_and_says_so(
    tmp_path: Path,
) -> None:
    async with asked(shell_permission(), tmp_path) as state:
        state.wait(CALM_SECONDS / 2)
        await state.type("1")
        assert not state.is_answered
        assert state.draft == ""
        await state.terminal.shows("just appeared: press again")
        state.wait(CALM_SECONDS)
        await state.type("1")
        assert (state.is_answered, state.answer) == (True, 0)


async def test_a_key_after_a_moment_is_an_answer(tmp_path: Path) -> None:
    async with asked(shell_permission(), tmp_path) as state:
        state.wait(CALM_SECONDS * 2)
        await state.type("2")
        assert (state.is_answered, state.answer) == (True, 1)
        assert state.draft == ""


async def test_a_draft_stays_dim_while_the_question_has_the_keyboard_and_comes_back(
    tmp_path: Path,
) -> None:
    async with asked(shell_permission(), tmp_path, draft="use ") as state:
        await state.terminal.shows("Allow this command?", "› use")
        assert not state.terminal.has_cursor
        state.wait(CALM_SECONDS * 2)
        await state.type("1")
        assert state.answer == 0
        assert state.draft == "use ", "the digit did not reach the input"
        await state.type("x")
        await state.terminal.shows("› use x")
        assert state.terminal.has_cursor


async def test_a_letter_that_is_no_answer_shows_which_are(tmp_path: Path) -> None:
    async with asked(shell_permission(), tmp_path) as state:
        state.wait(CALM_SECONDS * 2)
        await state.type("q")
        assert not state.is_answered
        assert state.draft == ""
        await state.terminal.shows("press 1 to 4")


async def test_enter_takes_no_row_that_was_not_picked(tmp_path: Path) -> None:
    async with asked(shell_permission(), tmp_path) as state:
        state.wait(CALM_SECONDS * 2)
        await state.type("\r")
        assert not state.is_answered
        await state.type(f"{DOWN}\r")
        assert state.answer == 0


async def test_rows_are_answered_by_their_letters_too(tmp_path: Path) -> None:
    rows = (ChoiceRow("Yes", key="y"), ChoiceRow("All", key="s-tab"), ChoiceRow("No", key="n"))
    for key, answer in (("y", 0), (TAB_BACK, 1), ("n", 2)):
        async with asked(ChoiceQuestion(title="Go?", rows=rows), tmp_path) as state:
            state.wait(CALM_SECONDS * 2)
            await state.type(key)
            assert state.answer == answer


async def test_a_dismissed_question_has_no_answer(tmp_path: Path) -> None:
    """None, and not a falsehood that could be taken for the number of the first row."""
    async with asked(shell_permission(), tmp_path) as state:
        state.wait(CALM_SECONDS * 2)
        await state.type("\x1b")
        await state.terminal.until(lambda: state.is_answered)
        assert state.answer is None


async def test_a_paste_is_never_an_answer(tmp_path: Path) -> None:
    async with asked(shell_permission(), tmp_path) as state:
        state.wait(CALM_SECONDS * 2)
        await state.type("\x1b[200~1\x1b[201~")
        assert not state.is_answered
        assert state.draft == "1"


async def test_the_preview_stands_inside_the_question_and_leaves_nothing_behind(
    tmp_path: Path,
) -> None:
    async with asked(shell_permission(), tmp_path) as state:
        screen = await state.terminal.shows("touch made", "Allow this command?")
        assert screen.index("touch made") < screen.index("Allow this command?")
        state.wait(CALM_SECONDS * 2)
        await state.type("4")
        await state.terminal.until(lambda: "touch made" not in state.terminal.text)
        assert not any("touch made" in row for row in state.terminal.history)


async def test_a_preview_that_does_not_fit_is_printed_whole_above(tmp_path: Path) -> None:
    preview = "\n".join(f"echo {number}" for number in range(60))
    async with asked(shell_permission(preview), tmp_path) as state:
        await state.terminal.shows("shown above: 60 lines", "Allow this command?", "4 No")
        history = "\n".join(state.terminal.history)
        assert all(history.count(f"echo {number}\n") == 1 for number in range(60))


@pytest.mark.parametrize("columns", [30, 40, 100])
@pytest.mark.parametrize("lines", [2, 9])
async def test_a_preview_is_once_in_the_scrollback_and_the_question_leaves_nothing(
    tmp_path: Path, columns: int, lines: int
) -> None:
    for rows in range(8, 25):
        async with asked(edit_permission(lines), tmp_path, columns=columns, rows=rows) as state:
            state.wait(CALM_SECONDS * 2)
            state.driven.redraw()
            history = state.terminal.history
            shown = [sum(f"line {n};" in row for row in history) for n in range(lines)]
            assert shown == [1] * lines, (rows, "\n".join(history))
            await state.type("4")
            state.driven.redraw()
            left = "\n".join(state.terminal.history)
            assert not any(text in left for text in ("Edit calc", "Allow", "Yes", "above")), rows


@pytest.mark.parametrize("columns", [30, 40, 80])
async def test_title_and_picked_row_are_seen_in_every_window(tmp_path: Path, columns: int) -> None:
    for rows in range(8, 25):
        async with asked(edit_permission(3), tmp_path, columns=columns, rows=rows) as state:
            state.wait(CALM_SECONDS * 2)
            for picked in ("❯ 1 Yes", "❯ 2 Yes, and every", "❯ 3 Yes, and all", "❯ 4 No, and"):
                state.driven.redraw()
                screen = state.terminal.text
                assert "Allow this edit?" in screen, (rows, screen)
                assert picked in screen, (rows, screen)
                state.driven.screen.input.press("down")


async def test_the_hint_goes_before_any_answer(tmp_path: Path) -> None:
    async with asked(edit_permission(3), tmp_path, columns=40, rows=12) as state:
        state.wait(CALM_SECONDS * 2)
        state.driven.redraw()
        screen = state.terminal.text
        assert "── Edit calc.py" in screen
        assert all(text in screen for text in ("❯ 1 Yes", "2 Yes, and every", "3 Yes, ", "4 No"))
        assert "Esc stops the turn" not in screen
        await state.type("q")
        assert "press 1 to 4" in state.terminal.text, "what a key has done is said"


async def test_an_answer_is_seen_with_all_that_it_covers_or_not_at_all(tmp_path: Path) -> None:
    scope = "python3 -m pytest tests --maxfail=1"
    rows = (ChoiceRow("Yes"), ChoiceRow("Yes, and again:", scope), ChoiceRow("No"))
    for height in range(5, 12):
        question = ChoiceQuestion(title="Go?", rows=rows)
        async with asked(question, tmp_path, columns=24, rows=height) as state:
            screen = state.terminal.text
            assert ("2 Yes, and again:" in screen) == ("--maxfail=1" in screen), screen


async def test_a_draft_takes_no_row_of_the_preview(tmp_path: Path) -> None:
    for rows in range(14, 25):
        draft = "\x1b[200~" + "\n".join("abcdefgh") + "\x1b[201~"
        async with asked(edit_permission(6), tmp_path, draft=draft, rows=rows) as state:
            state.driven.redraw()
            history = state.terminal.history
            assert all(sum(f"line {n};" in row for row in history) == 1 for n in range(6)), rows


@pytest.mark.parametrize("rows", [10, 16, 24])
async def test_what_is_approved_is_seen_while_a_note_is_written(tmp_path: Path, rows: int) -> None:
    question = edit_permission(3)
    async with asked(question, tmp_path, columns=60, rows=rows) as state:
        state.wait(CALM_SECONDS * 2)
        state.driven.redraw()
        await state.type("\t")
        async with anyio.create_task_group() as group:
            group.start_soon(partial(state.driven.screen.ask_line, "A note:", about=question))
            await all_tasks_blocked()
            state.driven.redraw()
            screen, history = state.terminal.text, state.terminal.history
            assert "── Edit calc.py" in screen, screen
            assert "A note:" in screen
            assert all(sum(f"line {n};" in row for row in history) == 1 for n in range(3))
            group.cancel_scope.cancel()


async def test_nothing_of_a_preview_is_cut_at_the_edge_of_the_window(tmp_path: Path) -> None:
    long = "echo " + "x" * 300 + " && rm -rf everything"
    async with asked(shell_permission(long), tmp_path) as state:
        await state.terminal.shows("Allow this command?")
        shown = "".join("".join(state.terminal.history).split())
        assert "".join(long.split()) in shown


@pytest.mark.parametrize("columns", [24, 40, 80])
async def test_what_an_answer_covers_is_never_cut(tmp_path: Path, columns: int) -> None:
    scope = "python3 -m pytest tests/test_calc.py --maxfail=1 -k add"
    rows = (ChoiceRow("Yes"), ChoiceRow("Yes, and again in this session:", scope))
    async with asked(ChoiceQuestion(title="Go?", rows=rows), tmp_path, columns=columns) as state:
        screen = await state.terminal.shows("Go?")
        assert scope.replace(" ", "") in "".join(screen.split())


@pytest.mark.parametrize("left", ["draft", ""])
async def test_esc_typing_esc_is_not_esc_esc(tmp_path: Path, left: str) -> None:
    async with driven_screen(tmp_path) as driven:
        editor = driven.screen.input.editor
        await driven.type(left)
        for key in ("escape", "x", "backspace", "escape"):
            driven.screen.input.press(key)
        assert editor.text == left, "the line is not cleared"
        assert driven.sent() == [], "the user did not ask to go back"
        driven.screen.input.press("escape")
        assert editor.text == ""
        assert driven.sent() == ([] if left else [GoBack()])


async def test_a_second_question_waits_for_the_answer_to_the_first(tmp_path: Path) -> None:
    async with asked(shell_permission(), tmp_path) as first:
        second = Asked(first.driven)
        async with anyio.create_task_group() as group:
            rows = (ChoiceRow("Red"), ChoiceRow("Blue"))
            group.start_soon(second.ask, ChoiceQuestion(title="Which colour?", rows=rows))
            await all_tasks_blocked()
            assert "Which colour?" not in first.terminal.text
            first.wait(CALM_SECONDS * 2)
            await first.type("3")
            await first.terminal.shows("Which colour?")
            assert (first.answer, second.is_answered) == (2, False)
            first.wait(CALM_SECONDS * 2)
            await first.type("2")
        assert second.answer == 1


async def test_a_cancelled_question_is_gone(tmp_path: Path) -> None:
    async with driven_screen(tmp_path) as driven:
        async with anyio.create_task_group() as group:
            group.start_soon(driven.screen.choose, shell_permission())
            await driven.terminal.shows("Allow this command?")
            group.cancel_scope.cancel()
        driven.screen.show(NoteBlock(text="next"))
        screen = await driven.terminal.shows("next")
        assert "Allow" not in screen


def test_details_stand_in_one_column() -> None:
    question = ChoiceQuestion(
        title="What should answer?",
        rows=(ChoiceRow("A key", "first"), ChoiceRow("Something longer", "second")),
        hint="1-2",
    )
    styles = RowStyles(coloured=False, unicode=True)
    panel = QuestionPanel(question, ManualClock())
    rows = [without_attributes(row) for row in panel.rows([], width=79, styles=styles)]
    assert rows[1].index("first") == rows[2].index("second")
    narrow = [without_attributes(row) for row in panel.rows([], width=26, styles=styles)]
    assert narrow[1] == " ❯ 1 A key  first", "no room for a column"


@pytest.mark.parametrize(
    ("danger", "rule"),
    [
        (
            "OUTSIDE the sandbox",
            ["── Run a command ──────────────────────", "  OUTSIDE the sandbox"],
        ),
        (
            "outside this folder: /etc/a/rather/long/path",
            [
                "── Run a command ──────────────────────",
                "  outside this folder:",
                "  /etc/a/rather/long/path",
            ],
        ),
        ("no", ["── Run a command ─ no ─────────────────"]),
    ],
)
def test_a_narrow_window_has_the_title_and_the_danger_whole(danger: str, rule: list[str]) -> None:
    question = ChoiceQuestion(
        title="Allow this command?",
        rows=(ChoiceRow("Yes"),),
        hint="1",
        rule="Run a command ─ of some kind that is long",
        danger=danger,
    )
    styles = RowStyles(coloured=False, unicode=True)
    panel = QuestionPanel(question, ManualClock())
    rows = [without_attributes(row) for row in panel.rows(["ls"], width=39, styles=styles)]
    assert rows[: len(rule) + 1] == [*rule, "ls"]
    wide = [without_attributes(row) for row in panel.rows(["ls"], width=120, styles=styles)]
    assert danger in wide[0]
