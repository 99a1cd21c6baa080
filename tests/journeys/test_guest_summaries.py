"""Summaries that a guest asks for: the owner of the session makes them, and counts what they
cost.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.world import World, facts
from weft.api.session import Session
from weft.errors import UsageError
from weft.events import UsageRecorded
from weft.messages import Usage
from weft.providers.scripted import ScriptedModel
from weft.session import RecordUsage

pytestmark = pytest.mark.anyio


async def calls_by_purpose(session: Session) -> list[str]:
    return [fact.purpose for fact in await facts(session, UsageRecorded)]


async def test_a_guest_gets_a_handover_from_the_owner(shared_world: World) -> None:
    model = ScriptedModel(["one", "# Handover"])
    async with shared_world.open(model) as owner, shared_world.open(ScriptedModel([])) as guest:
        here = await owner.sessions.start_session(session_id="s")
        await here.send_message("a")
        there = await guest.sessions.get("s")
        text, path = await there.summarize()
        assert text == "# Handover"
        assert Path(path).read_text().strip() == "# Handover"
        assert await calls_by_purpose(here) == ["turn", "summary"]
        assert (await there.usage()).total == (await here.usage()).total


async def test_a_guest_brings_over_what_was_learned_on_another_branch(shared_world: World) -> None:
    model = ScriptedModel(["one", "two", "It did not work."])
    async with shared_world.open(model) as owner, shared_world.open(ScriptedModel([])) as guest:
        here = await owner.sessions.start_session(session_id="s")
        await here.send_message("a")
        await here.send_message("b")
        left = (await here.messages_with_ids())[-1][0]
        await here.branch_at(1)
        there = await guest.sessions.get("s")
        assert await there.summarize_branch(left, input_id="inp_x") == "It did not work."
        # The same once more is answered, and not paid for again.
        assert await there.summarize_branch(left, input_id="inp_x") == "It did not work."
        assert await calls_by_purpose(here) == ["turn", "turn", "branch"]


async def test_what_is_wrong_about_it_is_said_as_it_is_to_the_owner(shared_world: World) -> None:
    model = ScriptedModel(["one"])
    async with shared_world.open(model) as owner, shared_world.open(ScriptedModel([])) as guest:
        here = await owner.sessions.start_session(session_id="s")
        there = await guest.sessions.get("s")
        with pytest.raises(UsageError, match="the session is empty"):
            await there.summarize()
        await here.send_message("a")
        with pytest.raises(UsageError, match="there is no message 'nod_x'"):
            await there.summarize_branch("nod_x")


async def test_a_guest_still_records_no_costs(shared_world: World) -> None:
    async with (
        shared_world.open(ScriptedModel(["one"])) as owner,
        shared_world.open(ScriptedModel([])) as guest,
    ):
        await owner.sessions.start_session(session_id="s")
        port = await (await guest.sessions.get("s"))._port()
        with pytest.raises(UsageError, match="only for the process that has the session"):
            await port.call(RecordUsage(usage=Usage(), model="scripted:script"))
