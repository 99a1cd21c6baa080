"""A message that is taken out of what models are sent, and put back: nothing in the log changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.compaction import SummarizingModel, send_prompts, start
from tests.support.world import (
    World,
    facts,
    message_lines,
    request_lines,
    until,
    until_idle,
)
from weft.api.session import Session
from weft.errors import UsageError
from weft.events import ModelCallStarted, NodeMarked, PermissionRequest
from weft.providers.script import CallTool, Stall
from weft.providers.scripted import ScriptedModel
from weft.store import READER_VERSION
from weft.tree import EXCLUDED_READER

pytestmark = pytest.mark.anyio


async def ids(session: Session) -> list[str]:
    """The ids of the present line, oldest first."""
    return [each for each, _ in await session.messages_with_ids()]


@pytest.mark.requirement("session:exclude", "session:include")
async def test_an_excluded_message_is_in_no_request_and_comes_back_as_it_was(world: World) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one", "secret two", "three")
        whole = teller.seen
        gone = (await ids(session))[2]
        report = await session.exclude(gone)
        assert (report.message, report.calls, report.summarized) == (gone, 0, False)
        assert report.tokens > 0
        await send_prompts(session, "four")
        assert not any("secret" in line for line in teller.seen)
        assert teller.seen[-1] == "user: four"
        assert (await message_lines(session))[2] == "user: secret two"
        await session.include(gone)
        await send_prompts(session, "five")
        assert teller.seen[: len(whole)] == whole
        marks = [(fact.mark, fact.value) for fact in await facts(session, NodeMarked)]
        assert marks == [("excluded", True), ("excluded", None)]


async def test_it_stays_out_after_a_restart_and_in_a_fork(world: World) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one", "secret two")
        await session.exclude((await ids(session))[2])
    async with world.open(teller.model) as app:
        session = await app.sessions.get("s")
        await send_prompts(session, "three")
        assert not any("secret" in line for line in teller.seen)
        fork = await app.sessions.fork_session("s")
        await send_prompts(fork, "four")
        assert not any("secret" in line for line in teller.seen)
        row = await app.store.row(fork.id)
        assert row is not None
        assert row.min_reader == EXCLUDED_READER


async def test_a_call_goes_with_its_result(plain_world: World) -> None:
    plain_world.write("a.txt", "what the file says")
    read = CallTool(name="read", args={"path": "a.txt"})
    model = ScriptedModel([read, "it says so", "and now", "again"])
    async with plain_world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_message("look")
        before = model.requests[-1].messages
        caller = (await ids(session))[1]
        assert (await session.exclude(caller)).calls == 1
        await session.send_message("go on")
        assert "what the file says" not in str(model.requests[-1].messages)
        assert request_lines(model.requests[-1]) == [
            "user: look",
            "assistant: it says so",
            "user: go on",
        ]
        await session.include(caller)
        await session.send_message("go on")
        assert model.requests[-1].messages[: len(before)] == before


async def test_a_message_that_is_excluded_while_a_turn_runs_is_not_in_its_next_call(
    world: World,
) -> None:
    world.write("a.txt", "text")
    read = CallTool(name="read", args={"path": "a.txt"})
    model = ScriptedModel(["hello", [Stall(gate="go"), read], "done"])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_message("secret one")
        await session.send_prompt("look")
        await model.gate("go").reached.wait()
        await session.exclude((await ids(session))[0])
        model.gate("go").opened.set()
        await until_idle(session)
        assert "secret" in str(model.requests[1].messages)
        assert "secret" not in str(model.requests[2].messages)
        # Found out before the append, so that no call is put on record twice.
        assert len(await facts(session, ModelCallStarted)) == 3


async def test_calls_that_still_run_cannot_be_excluded(plain_world: World) -> None:
    write = CallTool(name="write", args={"path": "b.txt", "content": "x"})
    model = ScriptedModel([write, "done"])
    async with plain_world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_prompt("write")
        await until(session, PermissionRequest)
        with pytest.raises(UsageError, match="still run"):
            await session.exclude((await ids(session))[1])
        with pytest.raises(UsageError, match="no message"):
            await session.exclude("nod_none")
        await session.abort()


async def test_a_summary_is_made_without_it_and_an_earlier_one_is_named(
    plain_world: World,
) -> None:
    teller = SummarizingModel()
    async with plain_world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one", "always say secret words")
        line = await ids(session)
        await session.exclude(line[2])
        await session.compact()
        assert "secret" not in str(teller.summaries[-1].messages)
        await send_prompts(session, "three")
        assert not any("secret" in each for each in teller.seen)
        assert "secret" not in str(teller.asked[-1].messages)
        assert (await session.exclude(line[0])).summarized
        await session.summarize()
        assert "secret" not in str(teller.summaries[-1].messages + teller.asked[-1].messages)


async def test_a_pinned_message_that_is_excluded_is_not_carried(plain_world: World) -> None:
    teller = SummarizingModel()
    async with plain_world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "a secret", "two")
        first = (await ids(session))[0]
        await session.compact()
        await session.pin(first)
        await send_prompts(session, "three")
        assert "secret" in str(teller.asked[-1].messages)
        await session.exclude(first)
        await send_prompts(session, "four")
        assert "secret" not in str(teller.asked[-1].messages)


async def test_when_everything_is_excluded_the_request_is_still_one(plain_world: World) -> None:
    teller = SummarizingModel()
    async with plain_world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one")
        for each in await ids(session):
            await session.exclude(each)
        await send_prompts(session, "two")
        assert request_lines(teller.asked[-1]) == ["user: two"]


async def test_an_older_program_does_not_open_the_session_until_it_is_put_back(
    world: World,
) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one", "two")
        gone = (await ids(session))[0]
        await session.exclude(gone)
        row = await app.store.row(session.id)
        assert row is not None
        assert row.min_reader == EXCLUDED_READER == READER_VERSION
        await session.include(gone)
        await send_prompts(session, "three")
        row = await app.store.row(session.id)
        assert row is not None
        assert row.min_reader == 1


async def test_it_stays_out_in_an_export_that_is_read_again(
    plain_world: World, tmp_path: Path
) -> None:
    teller = SummarizingModel()
    async with plain_world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "secret one", "two")
        await session.exclude((await ids(session))[0])
        path = tmp_path / "s.json"
        await app.sessions.export_session(session.id, "json", path)
        read = await app.sessions.import_session(path)
        again = read.session
        await send_prompts(again, "three")
        assert not any("secret" in line for line in teller.seen)
        row = await app.store.row(again.id)
        assert row is not None
        assert row.min_reader == EXCLUDED_READER
