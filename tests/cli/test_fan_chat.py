"""`/fan` in the chat: begun, shown, compared, kept after a look."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from tests.support.chat_driver import driven_chat
from tests.support.fan_project import git
from weft.app import App
from weft.cli.chat.commands.fan_commands import _parsed
from weft.errors import UsageError

pytestmark = [pytest.mark.anyio, pytest.mark.process, pytest.mark.timeout(60)]

ANSWERS = (
    "Hello.",
    [{"do": "call", "name": "shell", "args": {"command": "echo 2 > a.txt"}}],
    "It is 2 now.",
)


async def test_candidates_are_begun_shown_and_kept_from_the_chat(app: App) -> None:
    project = Path(app.project_path)
    (project / "a.txt").write_text("1\n")
    git(project, "init", "-q")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "first")
    async with driven_chat(app, *ANSWERS) as talk:
        await talk.say("hello")
        talk.screen.typed("/fan -n 2 --verify 'grep -q 2 *.txt' make it 2")
        await talk.screen.noted("2 candidates are at work")
        (fan,) = app.host.fan_runs.values()
        with anyio.fail_after(30):
            await fan.settled.wait()
        talk.screen.typed("/fan")
        await talk.screen.noted("✓ 1/1 (✗ base)")
        talk.screen.typed("/fan diff 1")
        await talk.screen.noted("+2")
        talk.screen.typed("/fan compare 1 2")
        await talk.screen.noted("they are the same")
        talk.screen.typed("/fan prune 2")
        await talk.screen.noted("/fan restore brings it back")
        talk.screen.typed("/fan restore 2")
        await talk.screen.noted("it is there again")
        talk.screen.typed("/fan open 2")
        await talk.screen.noted("this is candidate 2, in its overlay")
        await talk.say("and now?")
        talk.screen.typed("/fan back")
        await talk.screen.noted("✓ 1/1 (✗ base)")
        talk.screen.typed("/fan keep 1")
        question = await talk.screen.choice()
        assert question.title == "Put candidate 1 into the project?"
        assert (project / "a.txt").read_text() == "1\n"
        talk.screen.answer(0)
        await talk.screen.noted("kept; /rewind takes it back")
        talk.screen.typed("/fan lesson 2")
        await talk.screen.noted("added to the conversation:")
        assert (project / "a.txt").read_text() == "2\n"


def test_options_stand_before_the_task() -> None:
    options, task = _parsed("-n 3 -m a:b -m c:d --verify 'make \"it\"' do -n 2 things")
    assert options == {"-n": ["3"], "-m": ["a:b", "c:d"], "--verify": ['make "it"']}
    assert task == "do -n 2 things"
    with pytest.raises(UsageError, match="/fan"):
        _parsed("--models a do it")
