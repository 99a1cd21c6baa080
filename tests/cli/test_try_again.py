"""Enter on the empty line: the turn that failed or was stopped is tried again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.chat_driver import driven_chat
from tests.support.memory_terminal import driven_screen
from tests.support.weft_program import call
from weft.app import App
from weft.cli.chat.screens.screen import LineSubmitted
from weft.view import NoteBlock, UserBlock

pytestmark = pytest.mark.anyio

FAILS = [{"do": "error", "error": "AuthFailed", "times": 1}, {"do": "text", "text": "Done."}]


async def test_it_tries_again_after_an_error_and_only_then(app: App) -> None:
    async with driven_chat(app, FAILS, "More.") as talk:
        talk.screen.typed("")
        await talk.say("go")
        assert talk.screen.of(NoteBlock)[-1].advice.startswith(
            "Your message is kept. Enter on the empty line tries again"
        )
        talk.screen.typed("")
        await talk.screen.until(lambda: "Done." in talk.screen.words())
        await talk.screen.idle()
        talk.screen.typed("")
        await talk.say("more")
        assert talk.screen.words() == "Done.More."
        assert [block.text for block in talk.screen.of(UserBlock)] == ["go", "more"]


@pytest.mark.process
async def test_it_goes_on_after_a_stop(app: App) -> None:
    async with driven_chat(app, [call("shell", command="touch made")], "Done.") as talk:
        talk.screen.typed("go")
        await talk.screen.asked()
        talk.screen.answer(None)
        await talk.screen.until(lambda: talk.screen.of(NoteBlock))
        await talk.screen.idle()
        talk.screen.typed("")
        await talk.screen.until(lambda: "Done." in talk.screen.words())


async def test_enter_on_the_empty_line_reaches_the_chat_and_shows_no_message(
    tmp_path: Path,
) -> None:
    async with driven_screen(tmp_path) as driven:
        await driven.type("\r")
        assert driven.sent() == [LineSubmitted("")]
        assert "Waiting" not in driven.terminal.text
