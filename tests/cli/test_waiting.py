"""What waits to be said, and what is around the conversation."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.support.chat_driver import ChatDriver, RecordingScreen, driven_chat
from tests.support.weft_program import text
from weft.api.session import Session
from weft.app import App
from weft.cli.chat.screens.screen import LineSubmitted
from weft.providers.scripted import ScriptedModel
from weft.view import AnswerBlock, TableBlock, UserBlock

pytestmark = pytest.mark.anyio


HELD = [text("I begin."), {"do": "stall", "gate": "held"}]
"""An answer that does not end before `go_on`, however fast the machine is."""


async def go_on(app: App, session: Session) -> None:
    """Let the held answer end."""
    model = app.host.model((await session.metadata()).model)
    assert isinstance(model, ScriptedModel)
    model.gate("held").opened.set()


def session_of(talk: ChatDriver) -> Session:
    session = talk.chat.conversation.session
    assert session is not None
    return session


def later(screen: RecordingScreen) -> int:
    """How many messages wait for the end of the turn."""
    return sum(each.delivery == "follow_up" for each in screen.live.queue)


def waits(screen: RecordingScreen, *texts: str) -> bool:
    return [each.text for each in screen.live.queue] == list(texts)


async def test_a_follow_up_waits_for_the_end_of_the_turn_and_steering_does_not(app: App) -> None:
    async with driven_chat(app, HELD, "Heard.", "Heard.") as talk:
        talk.screen.typed("go")
        await talk.screen.until(lambda: talk.screen.live.text)
        talk.screen.typed(LineSubmitted("and afterwards this", later=True))
        await talk.screen.until(lambda: later(talk.screen))
        talk.screen.typed("/queue and that")
        await talk.screen.until(lambda: later(talk.screen) == 2)
        steering, follow_up = await session_of(talk).get_queued_messages()
        assert (len(steering), [entry.text for entry in follow_up]) == (
            0,
            ["and afterwards this", "and that"],
        )
        await go_on(app, session_of(talk))
        await talk.screen.until(lambda: talk.screen.words().count("Heard.") == 2)
        said = [said.text for said in talk.screen.of(UserBlock) if not said.text.startswith("/")]
        assert said == ["go", "and afterwards this", "and that"]


async def test_a_line_with_a_hash_that_is_no_note_is_said_as_it_was_typed(app: App) -> None:
    async with driven_chat(app, HELD, "Heard.", "Heard.") as talk:
        talk.screen.typed("go")
        await talk.screen.until(lambda: talk.screen.live.text)
        line = LineSubmitted("# read  @/tmp/a.png", later=True, typed="# read  [Image #1]")
        talk.screen.typed(line)
        await talk.screen.pick("send it as a message")
        await talk.screen.until(lambda: talk.screen.live.queue)
        assert waits(talk.screen, "# read  [Image #1]")
        assert later(talk.screen) == 1
        await go_on(app, session_of(talk))
        await talk.screen.until(lambda: talk.screen.words().count("Heard.") == 1)


async def test_a_follow_up_while_nothing_runs_is_simply_said(app: App) -> None:
    async with driven_chat(app, "Hello.") as talk:
        talk.screen.typed(LineSubmitted("hi", later=True))
        await talk.screen.until(lambda: "Hello." in talk.screen.words())


async def test_the_queue_is_shown_changed_reordered_and_taken_back(app: App) -> None:
    async with driven_chat(app, [text("word " * 20_000, 5)], "Heard.", pace_seconds=0.005) as talk:
        talk.screen.typed("go")
        await talk.screen.until(lambda: talk.screen.live.text)
        for each in ("one", "two", "three"):
            talk.screen.typed(f"/queue {each}")
        await talk.screen.until(partial(waits, talk.screen, "one", "two", "three"))
        talk.screen.typed("/queue")
        question = await talk.screen.pick("three")
        assert [row.details for row in question.rows[:3]] == [("after this turn",)] * 3
        await talk.screen.pick("Send it first")
        await talk.screen.until(partial(waits, talk.screen, "three", "one", "two"))
        talk.screen.typed("/queue")
        await talk.screen.pick("one")
        await talk.screen.pick("Remove it")
        await talk.screen.until(partial(waits, talk.screen, "three", "two"))
        talk.screen.typed("/queue")
        await talk.screen.pick("two")
        await talk.screen.pick("Edit it")
        await talk.screen.until(lambda: isinstance(talk.screen.question, str))
        talk.screen.answer("another")
        await talk.screen.until(partial(waits, talk.screen, "three", "another"))
        talk.screen.typed("/queue")
        await talk.screen.pick("Take all of them back")
        await talk.screen.until(lambda: talk.screen.line)
        assert talk.screen.line == "three\n\nanother"
        assert talk.screen.live.is_busy, "the turn goes on"
        talk.screen.typed("/queue")
        await talk.screen.noted("the queue is empty")
        talk.screen.typed("/steer")
        await talk.screen.noted("/steer needs")


# --- around it -------------------------------------------------------------------------------


async def test_skills_are_listed_and_switched_on_and_off(app: App) -> None:
    folder = Path(app.project_path) / ".agents" / "skills" / "tidy"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: tidy\ndescription: Tidies up.\n---\nTidy.\n")
    async with driven_chat(app, "Hello.") as talk:
        await talk.say("hi")
        talk.screen.typed("/skills")
        question = await talk.screen.pick("tidy")
        assert question.rows[0].details == ("", "Tidies up.")
        await talk.screen.noted("the skill tidy is on")
        assert (await session_of(talk).list_skills())[1] == ["tidy"]
        talk.screen.typed("/skills tidy")
        await talk.screen.noted("the skill tidy is off")
        assert (await session_of(talk).list_skills())[1] == []
        talk.screen.typed("/skills nope")
        await talk.screen.noted("no skill 'nope'; there are tidy")


async def test_instructions_are_shown_with_where_they_come_from(app: App) -> None:
    (Path(app.project_path) / "AGENTS.md").write_text("\n# Be brief\n\nAlways.\n")
    async with driven_chat(app, "Hello.") as talk:
        talk.screen.typed("/memory")
        await talk.screen.until(lambda: talk.screen.of(TableBlock))
        assert talk.screen.of(TableBlock)[0].rows == (("AGENTS.md", "Be brief"),)


async def test_a_boundary_is_counted_from_one_as_people_do(app: App) -> None:
    (Path(app.project_path) / "a.txt").write_text("1\n2\n3\n4\n")
    async with driven_chat(app, "Hello.") as talk:
        await talk.say("hi")
        talk.screen.typed("/boundary a.txt 2-3")
        await talk.screen.noted("a.txt may be edited in lines 2-3 only")
        held = await session_of(talk).boundary_for("a.txt")
        assert held is not None
        assert (held.first, held.last) == (1, 2)
        talk.screen.typed("/boundary a.txt")
        await talk.screen.noted("a.txt may be edited: lines 2-3")
        talk.screen.typed("/boundary a.txt off")
        await talk.screen.noted("a.txt may be edited everywhere")
        assert await session_of(talk).boundary_for("a.txt") is None
        for typed, told in [
            ("/boundary", "needs a file and lines"),
            ("/boundary a.txt x-y", "'x-y' is not a range of lines"),
            ("/boundary a.txt 3-2", "'3-2' is not a range of lines"),
            ("/boundary nope.txt 1-2", "nope.txt"),
        ]:
            talk.screen.typed(typed)
            await talk.screen.noted(told)


async def test_a_budget_and_a_handover(app: App) -> None:
    async with driven_chat(app, "Hello.", "# Decisions\n\nNone.", "# Decisions\n\nNone.") as talk:
        talk.screen.typed("/handover")
        await talk.screen.noted("nothing to hand over yet")
        await talk.say("hi")
        talk.screen.typed("/handover")
        written = (await talk.screen.noted("written to ")).removeprefix("written to ")
        shown = [block.text for block in talk.screen.of(AnswerBlock)][-1]
        assert Path(written).read_text() == shown
        for typed, told in [
            ("/budget", "needs an amount"),
            ("/budget much", "not 'much'"),
            ("/budget -1", "more than 0"),
            ("/budget 2.5", "the limit is $2.50"),
            ("/budget off", "no limit now"),
        ]:
            talk.screen.typed(typed)
            await talk.screen.noted(told)
        talk.screen.typed("/model next")
        await talk.screen.noted("no rotation is configured")
