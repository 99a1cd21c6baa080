"""Which keys answer a question, and which belong to what is being typed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input

from weft.cli.chat.questions import permission_question
from weft.cli.chat.screens.screen import ChoiceQuestion, ChoiceRow
from weft.cli.chat.screens.terminal_screen import CALM_SECONDS, TerminalScreen
from weft.clock import ManualClock
from weft.events import PermissionRequest
from weft.ids import CallUid, NodeId, RequestId

pytestmark = pytest.mark.anyio


def shell_permission() -> ChoiceQuestion:
    return permission_question(
        PermissionRequest(
            request_id=RequestId("r"), call_uid=CallUid("c"), node=NodeId("n"), tool_name="shell"
        )
    )


class Asked:
    """A question on the screen, and what became of it."""

    def __init__(self, screen: TerminalScreen, clock: ManualClock) -> None:
        self.screen = screen
        self.clock = clock
        self.answer: int | None = None
        self.is_answered = False

    async def ask(self, question: ChoiceQuestion) -> None:
        self.answer = await self.screen.choose(question)
        self.is_answered = True

    async def type(self, *letters: str) -> None:
        for letter in letters:
            self.screen.typed_at_question(letter)
        await anyio.wait_all_tasks_blocked()


@asynccontextmanager
async def asked(question: ChoiceQuestion, tmp_path: Path, draft: str = "") -> AsyncIterator[Asked]:
    clock = ManualClock()
    with create_pipe_input() as pipe, create_app_session(input=pipe):
        screen = TerminalScreen(folder=str(tmp_path), history=None, coloured=False, clock=clock)
        screen.buffer.insert_text(draft)
        state = Asked(screen, clock)
        async with anyio.create_task_group() as group:
            group.start_soon(state.ask, question)
            await anyio.wait_all_tasks_blocked()
            yield state
            group.cancel_scope.cancel()
        screen.close()
        screen._sending.close()


async def test_a_key_pressed_as_the_question_comes_up_is_text(tmp_path: Path) -> None:
    async with asked(shell_permission(), tmp_path) as state:
        state.clock.advance(CALM_SECONDS / 2)
        await state.type("1")
        assert not state.is_answered
        assert state.screen.buffer.text == "1"


async def test_a_key_after_a_moment_of_calm_is_an_answer(tmp_path: Path) -> None:
    async with asked(shell_permission(), tmp_path) as state:
        state.clock.advance(CALM_SECONDS * 2)
        await state.type("2")
        assert (state.is_answered, state.answer) == (True, 1)
        assert state.screen.buffer.text == ""


async def test_with_a_draft_no_digit_is_an_answer_however_long_one_waits(tmp_path: Path) -> None:
    async with asked(shell_permission(), tmp_path, draft="use ") as state:
        state.clock.advance(CALM_SECONDS * 100)
        await state.type("1", "2")
        assert not state.is_answered
        assert state.screen.buffer.text == "use 12"


async def test_a_letter_that_is_no_answer_begins_a_draft(tmp_path: Path) -> None:
    async with asked(shell_permission(), tmp_path) as state:
        state.clock.advance(CALM_SECONDS * 2)
        await state.type("n", "o", "4")
        assert not state.is_answered
        assert state.screen.buffer.text == "no4"


async def test_a_search_that_the_user_asked_for_takes_letters_at_once(tmp_path: Path) -> None:
    rows = (ChoiceRow("alpha"), ChoiceRow("beta"))
    async with asked(ChoiceQuestion(title="?", rows=rows, is_searched=True), tmp_path) as state:
        await state.type("b", "e")
        assert state.screen.buffer.text == ""
        assert state.screen._choosing is not None
        assert state.screen._choosing.picked() == 1


async def test_a_dismissed_question_has_no_answer(tmp_path: Path) -> None:
    """None, and not a falsehood that could be taken for the number of the first row."""
    async with asked(shell_permission(), tmp_path) as state:
        state.screen.give(None)
        await anyio.wait_all_tasks_blocked()
        assert state.is_answered
        assert state.answer is None


@pytest.mark.parametrize("left", ["draft", ""])
async def test_esc_typing_esc_is_not_esc_esc(tmp_path: Path, left: str) -> None:
    with create_pipe_input() as pipe, create_app_session(input=pipe):
        screen = TerminalScreen(
            folder=str(tmp_path), history=None, coloured=False, clock=ManualClock()
        )
        screen.buffer.insert_text(left)
        screen.escape()
        screen.buffer.insert_text("x")
        screen.buffer.delete_before_cursor()
        screen.escape()
        assert screen.buffer.text == left, "the line is not cleared"
        assert not screen._receiving.statistics().current_buffer_used, "nobody asked to go back"
        screen.escape()
        assert screen.buffer.text == ""
        assert screen._receiving.statistics().current_buffer_used == (0 if left else 1)
        screen.close()
        screen._sending.close()


async def test_a_cancelled_question_is_gone(tmp_path: Path) -> None:
    async with asked(shell_permission(), tmp_path) as state:
        assert state.screen._choosing is not None
    assert state.screen._choosing is None


@pytest.mark.parametrize(
    ("tool", "path", "title"),
    [
        ("shell", "ls", "Allow this command?"),
        ("reviewer ▸ shell", "ls", "Allow this command?"),
        ("edit", "calc.py", "Allow edit to calc.py?"),
        ("read", "/etc/hosts", "Allow read of /etc/hosts?"),
        ("fetch", "", "Allow fetch?"),
        ("edit", "a\x1b[31m.py", "Allow edit to a.py?"),
    ],
)
def test_the_question_names_what_would_be_done(tool: str, path: str, title: str) -> None:
    request = PermissionRequest(
        request_id=RequestId("r"),
        call_uid=CallUid("c"),
        node=NodeId("n"),
        tool_name=tool,
        tool_path=path,
    )
    assert permission_question(request).title == title
