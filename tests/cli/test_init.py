"""`/init`: the model is asked to write AGENTS.md, and needs permission for it as for any file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.chat_driver import ChatDriver, driven_chat
from tests.support.weft_program import call
from weft.app import App
from weft.cli.chat.screens.screen import ChoiceQuestion
from weft.view import UserBlock

pytestmark = pytest.mark.anyio


async def sent(talk: ChatDriver) -> str:
    """The message as the model reads it."""
    session = talk.chat.conversation.session
    assert session is not None
    return (await session.messages())[0].content


WRITES = [call("write", path="AGENTS.md", content="# Project\n")]


async def test_it_asks_the_model_for_agents_md_and_the_user_before_it_is_written(app: App) -> None:
    made = Path(app.project_path) / "AGENTS.md"
    async with driven_chat(app, WRITES, "Written.") as talk:
        talk.screen.typed("/init mention the tests")
        question = await talk.screen.asked()
        assert isinstance(question, ChoiceQuestion)
        assert question.title == "Allow this edit?"
        assert not made.exists()
        talk.screen.answer(0)
        await talk.screen.until(lambda: "Written." in talk.screen.words())
        shown = [block.text for block in talk.screen.of(UserBlock)]
        assert shown == ["/init mention the tests"], "what was typed, once"
        assert talk.screen.on_their_way == [("/init mention the tests", 0)], "before it is stored"
        said = await sent(talk)
        assert said.startswith("Write AGENTS.md")
        assert said.endswith("The user adds: mention the tests")
    assert made.read_text() == "# Project\n"


async def test_a_file_that_is_there_is_improved(app: App) -> None:
    (Path(app.project_path) / "AGENTS.md").write_text("# Mine\n")
    async with driven_chat(app, "Fine as it is.") as talk:
        talk.screen.typed("/init")
        await talk.screen.until(lambda: "Fine as it is." in talk.screen.words())
        said = await sent(talk)
        assert said.startswith("Improve AGENTS.md")
        assert "Write AGENTS.md" not in said


async def test_it_waits_for_the_end_of_a_turn(app: App) -> None:
    async with driven_chat(app, WRITES, "Written.") as talk:
        talk.screen.typed("go")
        await talk.screen.asked()
        talk.screen.typed("/init")
        await talk.screen.noted("a turn runs; Esc stops it, then /init can begin")
        talk.screen.answer(0)
        await talk.screen.until(lambda: "Written." in talk.screen.words())
