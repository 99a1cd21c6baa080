"""What sessions add to the stream of their project: in one append with their own facts."""

from __future__ import annotations

import anyio
import pytest

from tests.support.world import PATIENCE, World, facts
from weft.api.session import Session
from weft.app import App
from weft.errors import Fenced, OutcomeUnknown
from weft.events import NewMessage, SessionCreated, SessionRestarted, SystemNote, decode
from weft.ids import NodeId
from weft.loop import Commit, ProjectFacts
from weft.messages import Node, Text
from weft.providers.scripted import ScriptedModel
from weft.store import MemoryStore, project_stream
from weft.testing.scripted_store import AppendFault, scripted_store

pytestmark = pytest.mark.anyio


async def add(app: App, session: Session, text: str, project: str = "p") -> None:
    """Append to the session and to the project at once."""
    port = await app.host.local_port(session.id)
    note = SystemNote(text=text)
    commit = Commit(facts=(note,), projects=(ProjectFacts(project_id=project, facts=(note,)),))
    await port.actor.append(lambda state: commit)


async def on_stream(app: App, project: str = "p") -> list[SystemNote]:
    found = [decode(each.body) for each in await app.store.read(project_stream(project))]
    return [fact for fact in found if isinstance(fact, SystemNote)]


async def test_rivals_on_one_project_stream_all_get_their_batch_in_once(world: World) -> None:
    async with world.open(ScriptedModel([])) as app:
        sessions = [await app.sessions.start_session() for _ in range(20)]

        async def write(session: Session) -> None:
            for number in range(3):
                await add(app, session, f"{session.id} {number}")

        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as group:
                for session in sessions:
                    group.start_soon(write, session)
        stored = await on_stream(app)
        assert [each.seq for each in stored] == list(range(1, 61))
        wanted = {f"{session.id} {number}" for session in sessions for number in range(3)}
        assert sorted(each.text for each in stored) == sorted(wanted)
        assert all(each.text.startswith(each.session_id) for each in stored)
        for session in sessions:
            assert len(await facts(session, SystemNote)) == 3
            assert await facts(session, SessionRestarted) == []


@pytest.mark.parametrize("rivals", [0, 2])
@pytest.mark.parametrize("fault", ["stored", "unstored", "late"])
async def test_a_batch_whose_answer_was_lost_gets_whole_into_both_streams(
    plain_world: World, fault: AppendFault, rivals: int
) -> None:
    """Also where others have added to the project's stream before it is sent again."""
    store, script = scripted_store(MemoryStore())
    async with plain_world.open(ScriptedModel([]), store=store) as app:
        one, other = [await app.sessions.start_session() for _ in range(2)]
        script.goes_down_with = fault
        with pytest.raises(OutcomeUnknown):
            await add(app, one, "ours")
        script.is_down = False
        for number in range(rivals):
            await add(app, other, f"theirs {number}")
        await add(app, one, "next")
        for stored in (await on_stream(app), await facts(one, SystemNote)):
            assert [fact.text for fact in stored if fact.session_id == one.id] == ["ours", "next"]
        assert await facts(one, SessionRestarted) == []


async def test_a_session_that_was_taken_over_adds_nothing_to_its_project(world: World) -> None:
    async with world.open(ScriptedModel([])) as app:
        session = await app.sessions.start_session()
        await app.store.take_lease(session.id, steal=True)
        with pytest.raises(Fenced):
            await add(app, session, "too late")
        assert await on_stream(app) == []


async def test_sessions_of_one_project_carry_its_id(world: World) -> None:
    async with world.open(ScriptedModel([])) as app:
        first = await app.sessions.start_session()
        second = await app.sessions.start_session()
        made = [(await facts(each, SessionCreated))[0].project_id for each in (first, second)]
        if app.store.is_lasting:
            assert made[0].startswith("prj_")
            assert made[0] == made[1]
        else:
            assert made == ["", ""]
            assert not (world.base / "projects").exists()


async def test_long_parts_on_a_project_stream_are_blobs_that_it_keeps(world: World) -> None:
    async with world.open(ScriptedModel([])) as app:
        session = await app.sessions.start_session()
        port = await app.host.local_port(session.id)
        words = "words " * 50_000
        node = Node(id=NodeId("nod_long"), role="user", parts=(Text(text=words),))
        batch = ProjectFacts(project_id="p", facts=(NewMessage(node=node),))
        await port.actor.append(
            lambda state: Commit(facts=(SystemNote(text="x"),), projects=(batch,))
        )
        [record] = await app.store.read(project_stream("p"))
        assert len(record.body) < 10_000
        fact = decode(record.body)
        assert isinstance(fact, NewMessage)
        [part] = fact.node.parts
        assert isinstance(part, Text)
        assert part.blob is not None
        await app.sessions.delete_session(session.id)
        data = await app.store.blob(part.blob)
        assert data is not None
        assert data.decode() == words
