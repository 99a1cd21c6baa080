"""`!command` in the chat: run by the user, recorded like a call of the model."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.support.chat_driver import ChatDriver, driven_chat
from tests.support.weft_program import call
from weft.app import App, open_app
from weft.cli.chat.paint.card_text import card_text
from weft.cli.chat.paint.full_lines import full_lines
from weft.cli.chat.paint.plain_words import plain_lines
from weft.cli.chat.paint.theme import PaintTheme
from weft.cli.chat.paint.tool_cards import tool_lines
from weft.view import ToolCard, UserBlock

pytestmark = [pytest.mark.anyio, pytest.mark.process]

THEME = PaintTheme()


async def ran(talk: ChatDriver, line: str) -> ToolCard:
    before = len(talk.screen.of(ToolCard))
    talk.screen.typed(line)
    await talk.screen.until(lambda: len(talk.screen.of(ToolCard)) > before)
    card = talk.screen.of(ToolCard)[-1]
    assert isinstance(card, ToolCard)
    return card


async def test_a_command_of_the_user_is_run_without_a_question(app: App) -> None:
    async with driven_chat(app, "Never.") as talk:
        said = card_text(await ran(talk, "!echo one; touch made"))
        assert (said.mark, said.verb, said.target) == ("! ", "", "echo one; touch made")
        assert said.output == ("one",)
        assert talk.screen.question is None
        assert talk.screen.of(UserBlock) == []
        assert (Path(app.project_path) / "made").exists()


def untimed(line: str) -> str:
    """Without how long it took, which is told where a busy machine took a second."""
    return re.sub(r"(?: ·|,)? +\d+(?:\.\d+)? s(?=\.?$)", "", line)


async def test_the_card_is_what_was_typed_and_says_how_it_failed(app: App) -> None:
    async with driven_chat(app, "Never.") as talk:
        card = await ran(talk, "!!echo no >&2; exit 3")
        for painted in (tool_lines(card, 60, THEME), full_lines(card, 60, THEME)):
            lines = [untimed("".join(span.text for span in line.spans)) for line in painted]
            assert lines == ["!! echo no >&2; exit 3  exit 3", "  no"]
        said = list(map(untimed, plain_lines(card)))
        assert said == ["You ran echo no >&2; exit 3, exit 3.", "no"]


async def test_escape_stops_the_command_and_its_output_stays(app: App) -> None:
    fifo = Path(app.project_path) / "never"
    os.mkfifo(fifo)
    async with driven_chat(app, "Never.") as talk:
        talk.screen.typed("!echo begun; cat never")
        await talk.screen.until(
            lambda: any("begun" in tool.output for tool in talk.screen.live.running.values())
        )
        assert talk.screen.live.can_stop
        talk.screen.typed("!ls")
        await talk.screen.noted("your last command still runs; Esc stops it")
        assert talk.screen.line == "!ls"
        talk.screen.interrupted()
        await talk.screen.until(lambda: talk.screen.of(ToolCard))
        (card,) = talk.screen.of(ToolCard)
        said = card_text(card)
        assert (said.end, said.output) == ("stopped", ("begun",))
        assert said.result.startswith("stopped")


async def test_what_is_denied_is_not_run_and_leaves_no_session(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    rules = tmp_path / ".config" / "weft" / "config.toml"
    rules.parent.mkdir(parents=True)
    rules.write_text('[permissions]\ndeny = ["shell(touch made)"]\n')
    environ = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    async with open_app(project, tmp_path / "weft.db", environ=environ) as app:
        async with driven_chat(app, "Never.") as talk:
            talk.screen.typed("!touch made")
            note = await talk.screen.noted("was not run")
            assert note.startswith("`touch made` was not run. Denied: the rule")
            await talk.screen.until(lambda: talk.chat.conversation.session is None)
        assert await app.sessions.list_saved() == []
    assert not (project / "made").exists()


async def test_an_empty_command_is_one_sentence(app: App) -> None:
    async with driven_chat(app, "Never.") as talk:
        talk.screen.typed("!")
        await talk.screen.noted("write a command behind the !, such as !git status")


async def test_a_command_runs_beside_a_turn(app: App) -> None:
    async with driven_chat(app, [call("shell", command="touch made; echo on")], "Done.") as talk:
        talk.screen.typed("go")
        await talk.screen.asked()
        assert card_text(await ran(talk, "!echo beside")).output == ("beside",)
        assert talk.screen.live.is_busy
        talk.screen.answer(0)
        await talk.screen.until(lambda: "Done." in talk.screen.words())
        assert [card_text(card).output for card in talk.screen.of(ToolCard)] == [
            ("beside",),
            ("on",),
        ]
