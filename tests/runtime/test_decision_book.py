"""The decision graph in stores: one append with the session's fact, shared by all, for good."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

import weft
from tests.support.file_tree import files_holding
from tests.support.world import PATIENCE, World, facts
from weft.app import App
from weft.clock import ManualClock
from weft.config.project_ids import RelatedProject
from weft.decisions import (
    CheckEvidence,
    DecisionAdded,
    DecisionChanged,
    DecisionEntry,
    DecisionGraph,
    DecisionNode,
    DecisionPurged,
    LoggedEntry,
    fold_decisions,
    log_entry,
)
from weft.decisions.graph_index import index_of
from weft.errors import Fenced, OutcomeUnknown, UsageError
from weft.events import DecisionLogged, SystemNote, encode, kind_of
from weft.ids import DecisionId, ProjectId
from weft.providers.script import CallTool
from weft.providers.scripted import ScriptedModel
from weft.runtime.decisions.decision_book import DecisionBook, logged_commit, shared_book
from weft.store import Append, MemoryStore, Record, Store, project_stream
from weft.testing.scripted_store import AppendFault, scripted_store

pytestmark = pytest.mark.anyio

STORES = ["memory", "jsonl", "sqlite"]


def entry(title: str, seed: str = "s") -> LoggedEntry:
    return log_entry(DecisionEntry(title=title, status="active"), DecisionGraph(), seed=seed)


@asynccontextmanager
async def opened(base: Path, kind: str) -> AsyncGenerator[App]:
    project = base / "project"
    project.mkdir(exist_ok=True)
    place = {"memory": "memory", "jsonl": f"jsonl:{base}/logs", "sqlite": f"sqlite:{base}/w.db"}
    environ = {"HOME": str(base), "PATH": os.environ["PATH"]}
    async with weft.open(project, place[kind], {"sandbox.mode": "off"}, environ=environ) as app:
        yield app


async def project_of(app: App, session_id: str) -> str:
    port = await app.host.local_port(weft.ids.SessionId(session_id))
    return port.state.about.project_key


async def log(app: App, session_id: str, logged: LoggedEntry) -> str:
    """Put an entry down for a session; returns the project's id."""
    port = await app.host.local_port(weft.ids.SessionId(session_id))
    project = port.state.about.project_key
    commit = logged_commit(project, logged.facts, ids=logged.ids, summary=logged.node.title)
    await port.actor.append(lambda state: commit)
    return project


async def titles(store: Store, project: str) -> list[str]:
    graph = await DecisionBook(store, project, ManualClock()).refresh()
    return [node.title for node in graph.nodes.values()]


@pytest.mark.parametrize("kind", STORES)
async def test_a_decision_is_stored_in_one_append_with_its_session_and_outlives_it(
    tmp_path: Path, kind: str
) -> None:
    async with opened(tmp_path, kind) as app:
        session = await app.sessions.start_session(model=ScriptedModel([]))
        logged = entry("Use SQLite")
        project = await log(app, session.id, logged)
        [fact] = await facts(session, DecisionLogged)
        assert (fact.ids, fact.project_id) == (logged.ids, project)
        await session.stop()
        await app.sessions.delete_session(session.id)
        assert await titles(app.store, project) == ["Use SQLite"]
    if kind == "memory":
        return
    async with opened(tmp_path, kind) as app:
        other = await app.sessions.start_session(model=ScriptedModel([]))
        port = await app.host.local_port(other.id)
        assert port.state.about.project_key == project
        assert await titles(app.store, project) == ["Use SQLite"]


@pytest.mark.parametrize("fault", ["stored", "unstored", "late"])
async def test_a_decision_whose_answer_was_lost_is_stored_once(
    plain_world: World, fault: AppendFault
) -> None:
    store, script = scripted_store(MemoryStore())
    async with plain_world.open(ScriptedModel([]), store=store) as app:
        session = await app.sessions.start_session()
        script.goes_down_with = fault
        with pytest.raises(OutcomeUnknown):
            await log(app, session.id, entry("ours"))
        script.is_down = False
        project = await log(app, session.id, entry("next"))
        assert await titles(app.store, project) == ["ours", "next"]
        assert len(await facts(session, DecisionLogged)) == 2


async def test_a_session_that_was_taken_over_adds_no_decision(plain_world: World) -> None:
    async with plain_world.open(ScriptedModel([])) as app:
        session = await app.sessions.start_session()
        project = await log(app, session.id, entry("in time"))
        await app.store.take_lease(session.id, steal=True)
        with pytest.raises(Fenced):
            await log(app, session.id, entry("too late"))
        assert await titles(app.store, project) == ["in time"]


async def test_books_that_write_at_the_same_time_lose_nothing() -> None:
    store = MemoryStore()
    books = [DecisionBook(store, "prj_1", ManualClock()) for _ in range(5)]
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            for number, book in enumerate(books):
                group.start_soon(book.add, entry(f"title {number}", str(number)).facts)
    for book in books:
        assert len((await book.refresh()).nodes) == 5
    seqs = [record.seq for record in await store.read(project_stream("prj_1"))]
    assert seqs == [1, 2, 3, 4, 5]


async def test_a_book_reads_on_and_passes_over_what_it_cannot_read() -> None:
    store, clock = MemoryStore(), ManualClock()
    book, reader = DecisionBook(store, "p", clock), DecisionBook(store, "p", clock)
    await book.add(entry("one").facts)
    assert len((await reader.refresh()).nodes) == 1
    note = SystemNote(text="another kind", seq=2)
    strange = [
        Record(2, 1.0, kind_of(note), encode(note)),
        Record(3, 1.0, "decision_added", b'{"kind":"decision_added","seq":3}'),
    ]
    await store.append(Append(stream=project_stream("p"), expected_seq=1, records=tuple(strange)))
    await book.add(entry("two").facts)
    for each in (book, reader):
        graph = await each.refresh()
        assert [node.title for node in graph.nodes.values()] == ["one", "two"]
        assert graph.seq == 4
    added = [fact for fact in entry("one").facts if isinstance(fact, DecisionAdded)]
    assert fold_decisions(added).nodes.keys() <= graph.nodes.keys()


async def test_a_clock_that_went_back_hides_no_decision_beside_another_project() -> None:
    store = MemoryStore()
    other = ProjectId("prj_other")

    async def related() -> tuple[str, list[RelatedProject]]:
        return "", [RelatedProject(other, "")]

    written = [("prj_p", 1_000.0), ("prj_p", 500.0), (other, 1_000.0), ("prj_p", 1_001.0)]
    for number, (project, at) in enumerate(written):
        book = DecisionBook(store, project, ManualClock(at))
        await book.add(entry(f"{number}", seed=f"{number}").facts)
    graph = await DecisionBook(store, "prj_p", ManualClock(), related).refresh()
    # Each stream in its own order; of the same time, the other one's first.
    assert [node.title for node in graph.nodes.values()] == ["2", "0", "1", "3"]


async def test_a_session_with_a_store_of_its_own_has_its_decisions_there(tmp_path: Path) -> None:
    script: list[CallTool | str] = [
        CallTool(name="decision_log", args={"title": "Of the session"}),
        "done",
    ]
    async with opened(tmp_path, "sqlite") as app:
        session = await app.sessions.start_session(
            model=ScriptedModel(script), store=f"jsonl:{tmp_path}/other"
        )
        await session.send_message("log it")
        assert await app.decisions.nodes() == []
        await app.decisions.log("Of the application")
        with pytest.raises(UsageError, match="a store of its own"):
            await app.decisions.log("Of both", session=session.id)
        await session.stop()
        await app.decisions.log("After it")
    async with opened(tmp_path, "sqlite") as app:
        found = {node.title for node in await app.decisions.nodes()}
        assert found == {"Of the application", "After it"}


def test_only_some_books_are_kept() -> None:
    books: dict[tuple[int, str], DecisionBook] = {}
    store, clock = MemoryStore(), ManualClock()
    first = shared_book(books, store, "p", clock)
    assert shared_book(books, store, "p", clock) is first
    assert shared_book(books, MemoryStore(), "p", clock) is not first
    for number in range(100):
        shared_book(books, store, f"p{number}", clock)
    assert len(books) < 50


async def test_what_is_stored_is_no_failure_when_it_cannot_be_read_on() -> None:
    store, script = scripted_store(MemoryStore())
    book = DecisionBook(store, "prj_a", ManualClock())
    script.faults.append("down")
    await book.add(entry("Use SQLite").facts)
    assert not book.graph.nodes
    script.is_down = False
    assert await titles(store, "prj_a") == ["Use SQLite"]


SECRET = "hunter2horse"


@pytest.mark.process
@pytest.mark.parametrize("kind", STORES)
async def test_a_purged_decision_is_gone_from_the_graph_and_from_every_file(
    tmp_path: Path, kind: str
) -> None:
    async with opened(tmp_path, kind) as app:
        session = await app.sessions.start_session(session_id="s", model="scripted:x")
        old = await app.decisions.log(f"Log in with {SECRET}", why=f"since {SECRET}")
        node = await app.decisions.log(
            f"The password is {SECRET}",
            why=f"{SECRET} was set",
            scope=[f"{SECRET}/**"],
            tags=[SECRET],
            options=[{"title": f"not {SECRET}", "verdict": "rejected", "why": SECRET}],
            evidence=[CheckEvidence(command=f"login {SECRET}", exit=0)],
            supersedes=old.id,
            session=None,
        )
        await app.decisions.change(node.id, why=f"again {SECRET}", reason=SECRET)
        kept = await app.decisions.log("Logins are logged")
        await app.decisions.link(node.id, kept.id, rationale=SECRET)
        elsewhere = DecisionBook(app.store, await project_of(app, session.id), ManualClock())
        assert node.id in (await elsewhere.refresh()).nodes
        report = await app.decisions.purge(node.id[:12], old.id)
        assert len(report.ids) == 3
        # Whoever has read it before, whoever reads it now.
        anew = DecisionBook(app.store, elsewhere.project_id, ManualClock())
        for graph in (await app.decisions.graph(), await elsewhere.refresh(), await anew.refresh()):
            assert set(graph.nodes) == {kept.id}
            assert graph.edges == {}
        assert await app.decisions.query(SECRET) == []
        assert (await app.decisions.pulse()).summary
        with pytest.raises(UsageError, match="no decision"):
            await app.decisions.purge(node.id)
    assert files_holding(tmp_path, SECRET) == []


async def test_a_purge_says_which_sessions_still_have_the_words(tmp_path: Path) -> None:
    async with opened(tmp_path, "memory") as app:
        await app.sessions.start_session(session_id="s", model="scripted:x")
        node = await app.decisions.log(f"The password is {SECRET}", session="s")
        assert (await app.decisions.purge(node.id)).sessions == ("s",)
        assert (await app.decisions.purge()).ids == ()


def test_what_is_purged_does_not_come_back_with_facts_of_another_machine() -> None:
    logged = entry("secret")
    graph = fold_decisions([DecisionPurged(id=logged.node.id), *logged.facts])
    assert graph.nodes == {}


def attempt(number: int) -> DecisionAdded:
    node = DecisionNode(
        id=DecisionId(f"dec_try{number}"),
        kind="action",
        title=f"attempt {number}",
        status="abandoned",
        by="auto",
        tags=("attempt",),
    )
    return DecisionAdded(node=node)


async def test_an_old_attempt_that_the_user_takes_up_again_comes_back_into_the_shared_book() -> (
    None
):
    store, clock = MemoryStore(), ManualClock()
    shared = DecisionBook(store, "p", clock, most_noted=2)
    await shared.add([attempt(number) for number in range(5)])
    assert list(shared.graph.nodes) == ["dec_try3", "dec_try4"]
    other = DecisionBook(store, "p", clock)
    await other.add([DecisionChanged(id=DecisionId("dec_try1"), why="It was right after all.")])
    for book in (shared, DecisionBook(store, "p", clock, most_noted=2)):
        graph = await book.refresh()
        assert list(graph.nodes) == ["dec_try1", "dec_try3", "dec_try4"]
        assert graph.nodes[DecisionId("dec_try1")].why == "It was right after all."
        assert index_of(graph).nodes.keys() == graph.nodes.keys()


async def test_a_shared_book_stays_as_it_is_while_it_is_read_again() -> None:
    store, clock = MemoryStore(), ManualClock()
    book = DecisionBook(store, "p", clock, most_noted=1)
    await book.add([attempt(number) for number in range(3)])
    before, seen = book.graph, []
    read = store.read

    async def looked_at(*args: Any, **options: Any) -> list[Record]:
        seen.append(list(book.graph.nodes))
        return await read(*args, **options)

    store.read = looked_at  # type: ignore[method-assign]
    await book.add([DecisionChanged(id=DecisionId("dec_try0"), title="once more")])
    assert book.graph is not before
    assert {tuple(names) for names in seen} == {("dec_try2",), ("dec_try0", "dec_try2")}
