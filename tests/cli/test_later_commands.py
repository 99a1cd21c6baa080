"""`weft at`, `weft waits`; `/at`, `/loop`, `/waits`."""

from __future__ import annotations

import json

import pytest

from tests.support.chat_driver import driven_chat
from tests.support.weft_program import WeftProgram
from tests.support.world import facts, until_idle
from weft.app import App
from weft.cli.unattended.server_notice import NO_SERVER
from weft.events import InputScheduled, ScheduleEnded
from weft.view import AnswerBlock


@pytest.mark.process
def test_a_prompt_is_scheduled_listed_and_cancelled(weft: WeftProgram) -> None:
    model = ("-m", weft.script("done"))
    made = weft.call("at", "+2h", "look", "at the build", *model)
    assert NO_SERVER in made.stderr
    assert "it is sent at" in made.stderr
    wait_id = made.stdout.strip()
    [wait] = json.loads(weft.call("waits", "--json").stdout)
    assert (wait["id"], wait["kind"], wait["text"]) == (wait_id, "schedule", "look at the build")
    assert "look at the build" in weft.call("waits", "list", wait["session_id"]).stdout
    assert "scheduled" in weft.call("session", "list").stdout
    assert "cancelled" in weft.call("waits", "cancel", wait_id).stderr
    assert "nothing waits" in weft.call("waits").stderr


@pytest.mark.process
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("noon", "x"), "'noon' is no time: write 17:00, 2027-01-31T17:00 or +2h"),
        ((), "takes a time and a prompt"),
        (("+1h",), "needs a prompt"),
        (("2001-01-01", "x"), "that time is over"),
        (("+1h", "x", "--every", "1s"), "at least 10 seconds apart"),
        (("+1h", "x", "-m", "nowhere:model"), "nowhere"),
    ],
)
def test_what_cannot_be_scheduled_is_one_sentence_and_no_session(
    weft: WeftProgram, words: tuple[str, ...], said: str
) -> None:
    model = () if "-m" in words else ("-m", weft.script("done"))
    ended = weft.call("at", *words, *model)
    assert ended.returncode != 0
    assert said in ended.stderr
    assert weft.sessions() == []


@pytest.mark.process
def test_a_command_of_a_session_schedules_nothing(weft: WeftProgram) -> None:
    ended = weft.call("at", "+1h", "x", env={"WEFT_RUN": "1"})
    assert ended.returncode != 0
    assert "a model does not give itself later turns" in ended.stderr


@pytest.mark.anyio
async def test_a_loop_sends_its_prompt_now_and_again_until_it_is_cancelled(app: App) -> None:
    async with driven_chat(app, "First.", "Second.") as talk:
        talk.screen.typed("/loop 5m look at the build")
        await talk.screen.noted("it is sent now and every 5m, 100 times or 7 days at most")
        session = talk.chat.conversation.session
        assert session is not None
        assert await app.host.wake_due() == [session.id]
        await until_idle(session)
        await talk.screen.until(lambda: talk.screen.of(AnswerBlock))
        [left] = talk.chat.left_at_work()
        assert left == f"it still waits, and {NO_SERVER}"
        [wait] = await session.waits()
        assert (wait.every, wait.rounds) == (300.0, 1)
        await session.cancel_wait(wait.id)
        assert talk.chat.left_at_work() == []
        assert [each.reason for each in await facts(session, ScheduleEnded)] == ["cancelled"]


@pytest.mark.anyio
async def test_a_prompt_for_later_and_what_is_wrong_with_one_is_said(app: App) -> None:
    async with driven_chat(app, "Hello.") as talk:
        talk.screen.typed("/at 17:00 run the tests")
        await talk.screen.noted("/waits shows and cancels it")
        session = talk.chat.conversation.session
        assert session is not None
        assert len(await facts(session, InputScheduled)) == 1
        talk.screen.typed("/at 17:00")
        await talk.screen.noted("/at needs a time and a prompt")
        talk.screen.typed("/loop /compact")
        await talk.screen.noted("/compact")
        talk.screen.typed("/loop")
        await talk.screen.noted("/loop needs a prompt")
