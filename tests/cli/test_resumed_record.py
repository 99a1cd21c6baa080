"""What a resumed conversation shows of what was done before."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.chat_driver import RecordingScreen, driven_chat
from tests.support.weft_program import call, text
from weft.app import App
from weft.cli.chat.screens.list_question import ListQuestion
from weft.cli.chat.screens.screen import InterruptPressed
from weft.view import AnyBlock, ThinkingBlock, ToolCard, UserBlock

pytestmark = [pytest.mark.anyio, pytest.mark.process]


def record(blocks: list[AnyBlock]) -> list[tuple[object, ...]]:
    """What a screen says of thoughts and calls."""
    return [
        ("thought", block.text)
        if isinstance(block, ThinkingBlock)
        else (block.name, block.duration_ms, block.was_shown, block.allowed_for)
        for block in blocks
        if isinstance(block, ThinkingBlock | ToolCard)
    ]


async def allow(screen: RecordingScreen, row: int) -> None:
    await screen.choice()
    screen.answer(row)


async def test_thoughts_times_and_approvals_are_there_again(app: App) -> None:
    steps = (
        [{"do": "thinking", "text": "Hm."}, call("shell", command="echo a > a")],
        [text("More."), call("shell", command="echo b > b")],
    )
    async with driven_chat(app, *steps, "Done.") as talk:
        screen = talk.screen
        screen.typed("go")
        await allow(screen, 0)
        await allow(screen, 1)
        await screen.until(lambda: screen.words().endswith("Done."))
        await screen.idle()
        before = record(screen.blocks)
        assert before[0] == ("thought", "Hm.")
        assert before[1][1], "a process takes some time"
        assert [each[2:] for each in before[1:3]] == [(True, ""), (True, "session")]
        session = talk.chat.conversation.session
        assert session is not None
        screen.blocks.clear()
        screen.typed("/new")
        await screen.until(lambda: talk.chat.conversation.session is None)
        screen.typed(f"/resume {session.id}")
        await screen.until(lambda: screen.words().endswith("Done."))
        assert record(screen.blocks) == before


async def test_a_message_with_a_file_is_shown_as_it_was_typed(app: App) -> None:
    (Path(app.project_path) / "notes.txt").write_text("one\n")
    async with driven_chat(app, "Read.") as talk:
        talk.screen.typed("what is in @notes.txt")
        await talk.screen.until(lambda: "Read." in talk.screen.words())
        before = talk.screen.of(UserBlock)
        session = talk.chat.conversation.session
        assert session is not None
        talk.screen.blocks.clear()
        await talk.chat.switch(session.id)
        (said,) = talk.screen.of(UserBlock)
        assert (said.text, said.attached) == ("what is in @notes.txt", ("notes.txt",))
        assert said.attached == before[0].attached


def head_of(app: App, branch: str) -> None:
    git = Path(app.project_path) / ".git"
    for folder in ("objects", "refs"):
        (git / folder).mkdir(parents=True, exist_ok=True)
    (git / "HEAD").write_text(f"ref: refs/heads/{branch}\n")


async def test_the_list_says_on_which_branch_a_conversation_was_last_active(app: App) -> None:
    head_of(app, "main")
    async with driven_chat(app, "One.", "Two.") as talk:
        screen = talk.screen
        screen.typed("first")
        await screen.until(lambda: "One." in screen.words())
        await screen.idle()
        head_of(app, "feat/x")
        screen.typed("second")
        await screen.until(lambda: "Two." in screen.words())
        await screen.idle()
        head_of(app, "elsewhere")
        screen.typed("/new")
        await screen.until(lambda: talk.chat.conversation.session is None)
        screen.typed("/resume")
        question = await screen.asked()
        assert isinstance(question, ListQuestion)
        assert "feat/x" in question.rows[0].details
        screen.answer(None)


async def test_what_a_stopped_command_had_printed_is_there_again(app: App) -> None:
    command = "for n in 1 2 3; do echo tick $n; done; sleep 1000"
    flags = ("--permission-mode", "bypass")
    async with driven_chat(app, [call("shell", command=command)], "Done.", flags=flags) as talk:
        screen = talk.screen
        screen.typed("go")
        await screen.until(
            lambda: any("tick 3" in each.output for each in screen.live.running.values())
        )
        screen.typed(InterruptPressed())
        await screen.until(lambda: screen.of(ToolCard))
        await screen.idle()
        (before,) = screen.of(ToolCard)
        session = talk.chat.conversation.session
        assert session is not None
        screen.blocks.clear()
        await talk.chat.switch(session.id)
        (after,) = screen.of(ToolCard)
        assert after.output == before.output
        assert "tick 3" in after.output
        assert "tick" not in after.result.text, "the model reads that it was stopped"
