"""Every name of `Session` and `SessionManager` on the far side of a server: it works, or it says
in a sentence why it does not.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

import weft
import weft.sync
from tests.support.example_count import cases
from tests.support.served_world import ServedWorld, serving
from tests.support.world import PATIENCE, World
from weft.api import Session, SessionManager
from weft.errors import (
    AmbiguousId,
    NoPendingRequest,
    SessionNotFound,
    UsageError,
    ViewerRefused,
    WeftError,
)
from weft.events import FactBase, Replaced, SystemNote
from weft.ids import client_name
from weft.providers.scripted import ScriptedModel
from weft.server.client.remote_app import RemoteSessions
from weft.server.client.remote_session import RemoteSession

pytestmark = pytest.mark.anyio

REFUSED = {
    "continue_and_wait": "continue_turn",
    "files_at": "process that has the session",
    "write_files": "process that has the session",
    "open_at": "process that has the session",
}
"""Calls of a session that do not travel, and a word of the sentence that says so."""

Use = Callable[[RemoteSession], Awaitable[object]]


async def _last(session: RemoteSession) -> str:
    return (await session.messages_with_ids())[-1][0]


USES: dict[str, Use] = {
    "abort": lambda s: s.abort("enough"),
    "activate_skill": lambda s: _refused(s.activate_skill("none")),
    "add_system_message": lambda s: s.add_system_message("noted", "warning"),
    "answer_question": lambda s: _refused(s.answer_question("req_1", "yes"), NoPendingRequest),
    "approve_plan": lambda s: _refused(s.approve_plan(), NoPendingRequest),
    "attach": lambda s: s.attach("driver"),
    "background_commands": lambda s: _equal(s.background_commands(), []),
    "boundary_for": lambda s: _equal(s.boundary_for("a.txt"), None),
    "branch_at": lambda s: s.branch_at(1, "other"),
    "checkpoint": lambda s: s.checkpoint("here"),
    "children": lambda s: _equal(s.children(), []),
    "claim_driver": lambda s: s.claim_driver(),
    "clear_all_boundaries": lambda s: s.clear_all_boundaries(),
    "clear_boundary": lambda s: s.clear_boundary("a.txt"),
    "clear_queues": lambda s: s.clear_queues(),
    "combine_queue_entries_to_text": lambda s: _equal(
        _soon(s.combine_queue_entries_to_text(())), ""
    ),
    "compact": lambda s: s.compact("the numbers"),
    "compare_files": lambda s: _refused(s.compare_files("nod_a", "nod_b")),
    "continue_turn": lambda s: s.continue_turn(),
    "cycle_model": lambda s: _refused(s.cycle_model()),
    "cycle_thinking_level": lambda s: s.cycle_thinking_level(),
    "deactivate_skill": lambda s: _refused(s.deactivate_skill("none")),
    "delete_branch": lambda s: _refused(s.delete_branch("none")),
    "dequeue_steering": lambda s: _equal(s.dequeue_steering(), ()),
    "detach": lambda s: s.detach(),
    "edit_plan": lambda s: _refused(s.edit_plan({"summary": "", "steps": []})),
    "edit_queued": lambda s: _refused(s.edit_queued("ent_none", "x")),
    "editor_snapshot": lambda s: s.editor_snapshot(),
    "expand_command": lambda s: _refused(s.expand_command("/none at all")),
    "generate_branches": lambda s: _refused(s.generate_branches("Do.", 0)),
    "get_available_models": lambda s: s.get_available_models(),
    "get_commands": lambda s: _has(s.get_commands(), "/help"),
    "get_history": lambda s: _length(s.get_history(limit=1), 1),
    "get_mode": lambda s: _equal(s.get_mode(), "normal"),
    "get_provider": lambda s: _equal(s.get_provider(), "scripted"),
    "get_queued_messages": lambda s: _equal(s.get_queued_messages(), ((), ())),
    "get_status": lambda s: _equal(s.get_status(), "idle"),
    "join": lambda s: _joined(s),
    "kill_background": lambda s: _refused(s.kill_background("bg_none")),
    "line": lambda s: s.line(limit=1),
    "list_agents": lambda s: s.list_agents(),
    "list_branches": lambda s: _length(s.list_branches(), 1),
    "list_commands": lambda s: _equal(s.list_commands(), []),
    "list_skills": lambda s: _equal(s.list_skills(), ([], [])),
    "load_session": lambda s: s.load_session(s.id),
    "messages": lambda s: _length(s.messages(), 2),
    "bisect": lambda s: _outcome(s.bisect("true", in_copies=True), "nothing"),
    "receipts": lambda s: _equal(s.receipts(), ()),
    "differences": lambda s: _equal(s.differences(), []),
    "goal": lambda s: _equal(s.goal(), None),
    "set_goal": lambda s: _refused(s.set_goal("Reach it.")),
    "edit_goal": lambda s: _refused(s.edit_goal("Another.")),
    "pause_goal": lambda s: _refused(s.pause_goal()),
    "resume_goal": lambda s: _refused(s.resume_goal()),
    "clear_goal": lambda s: _equal(s.clear_goal(), False),
    "waits": lambda s: _equal(s.waits(), []),
    "wait_for": lambda s: s.wait_for({"kind": "file", "place": "never.txt"}),
    "cancel_wait": lambda s: _equal(s.cancel_wait("wai_none"), False),
    "schedule": lambda s: s.schedule("+1h", "look at the build", every="5m"),
    "messages_with_ids": lambda s: _length(s.messages_with_ids(), 2),
    "metadata": lambda s: s.metadata(),
    "net_changes": lambda s: _equal(s.net_changes(), []),
    "new_session": lambda s: s.new_session(title="Another"),
    "nodes": lambda s: _of_last(s, lambda node: _length(s.nodes([node]), 1)),
    "pin": lambda s: _of_last(s, s.pin),
    "queue_follow_up": lambda s: s.queue_follow_up("And then?"),
    "queue_steering": lambda s: s.queue_steering("Rather this."),
    "read_file": lambda s: s.read_file("a.txt"),
    "recall_queues": lambda s: _equal(s.recall_queues(), ((), ())),
    "reject_plan": lambda s: _refused(s.reject_plan("no"), NoPendingRequest),
    "remove_queued": lambda s: _refused(s.remove_queued("ent_none")),
    "rename_branch": lambda s: s.rename_branch(0, "renamed"),
    "reorder_queue": lambda s: s.reorder_queue([]),
    "respond_to_approval": lambda s: _refused(s.respond_to_approval("approve")),
    "respond_to_permission": lambda s: _refused(s.respond_to_permission("deny")),
    "restore_revision": lambda s: _of_last(s, lambda node: _refused(s.restore_revision(node, 7))),
    "revert_hunk": lambda s: _refused(s.revert_hunk("a.txt", "0")),
    "revisions": lambda s: _of_last(s, s.revisions),
    "rewind": lambda s: s.rewind(None, preview=True),
    "send_message": lambda s: s.send_message("Again."),
    "send_prompt": lambda s: s.send_prompt("Again."),
    "session_id": lambda s: _equal(_soon(s.session_id()), s.id),
    "set_boundary": lambda s: s.set_boundary("a.txt", 0, 0),
    "set_budget": lambda s: s.set_budget(2.5),
    "set_mode": lambda s: s.set_mode("normal"),
    "set_model": lambda s: s.set_model("scripted:model"),
    "set_permission_mode": lambda s: s.set_permission_mode("plan"),
    "set_thinking_level": lambda s: s.set_thinking_level("low"),
    "stop": lambda s: s.stop(),
    "subscribe": lambda s: _whole_log(s),
    "stop_after_step": lambda s: _equal(s.stop_after_step(), False),
    "summarize": lambda s: s.summarize(),
    "ask_aside": lambda s: s.ask_aside("What is it?"),
    "asides": lambda s: s.asides(),
    "coming_back": lambda s: s.coming_back(),
    "set_resume": lambda s: s.set_resume("auto"),
    "summarize_branch": lambda s: _of_last(s, lambda node: _refused(s.summarize_branch("nod_x"))),
    "switch_branch": lambda s: s.switch_branch(0),
    "take_hunk": lambda s: _refused(s.take_hunk("a.txt", "0", "nod_a", "nod_b")),
    "todos": lambda s: _equal(s.todos(), ()),
    "toggle_all_tool_collapses": lambda s: s.toggle_all_tool_collapses(),
    "toggle_tool_collapse": lambda s: _of_last(s, s.toggle_tool_collapse),
    "touched_files": lambda s: _equal(s.touched_files(), []),
    "tree": lambda s: s.tree(),
    "undo_compaction": lambda s: _refused(s.undo_compaction()),
    "undo_rewind": lambda s: _refused(s.undo_rewind()),
    "exclude": lambda s: _of_last(s, s.exclude),
    "include": lambda s: _of_last(s, s.include),
    "request": lambda s: s.request(),
    "unpin": lambda s: _of_last(s, s.unpin),
    "unsubscribe": lambda s: s.unsubscribe(),
    "update_model": lambda s: s.update_model("scripted:model"),
    "usage": lambda s: s.usage(),
    "wait": lambda s: _waited(s),
    "weave_files": lambda s: _refused(s.weave_files("nod_a", "nod_b")),
}
"""A use of each call, with positional arguments where the API has them."""


async def _soon(value: Any) -> Any:
    return value


async def _equal(call: Awaitable[Any], expected: object) -> None:
    assert await call == expected


async def _has(call: Awaitable[Any], item: object) -> None:
    assert item in await call


async def _outcome(call: Awaitable[Any], outcome: str) -> None:
    assert (await call).outcome == outcome


async def _length(call: Awaitable[Any], length: int) -> None:
    assert len(await call) == length


async def _refused(call: Awaitable[Any], kind: type[WeftError] = WeftError) -> None:
    with pytest.raises(kind):
        await call


async def _of_last(session: RemoteSession, use: Callable[[str], Awaitable[object]]) -> None:
    await use(await _last(session))


async def _whole_log(session: RemoteSession) -> None:
    events = await session.subscribe(after=0, live=False)
    seen = [event.seq async for event in events if isinstance(event, FactBase)]
    assert seen == list(range(1, (await session.editor_snapshot()).seq + 1))


async def _joined(session: RemoteSession) -> None:
    joined = await session.join()
    async with joined.events:
        await session.add_system_message("after it")
        async for event in joined.events:
            if isinstance(event, SystemNote):
                assert event.seq == joined.seq + 1
                return


async def _waited(session: RemoteSession) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(_stop_when_followed, session)
        assert "stopped" in await session.wait()


async def _stop_when_followed(session: RemoteSession) -> None:
    await session.stop()


def _public(cls: type) -> set[str]:
    return {name for name in dir(cls) if not name.startswith("_")}


def test_the_table_names_every_call_of_a_session() -> None:
    assert USES.keys() | REFUSED.keys() == _public(Session)


@pytest.mark.parametrize("name", cases(sorted(USES)))
async def test_a_call_works_through_a_server(name: str, plain_world: World) -> None:
    plain_world.write("a.txt", "one\n")
    async with _spoken(plain_world) as (session, _):
        with anyio.fail_after(PATIENCE):
            await USES[name](session)


@pytest.mark.parametrize("name", sorted(REFUSED))
async def test_a_call_that_cannot_travel_says_so(name: str, plain_world: World) -> None:
    async with _spoken(plain_world) as (session, _):
        with pytest.raises(UsageError, match=REFUSED[name]):
            await getattr(session, name)()


async def test_a_callback_cannot_travel(plain_world: World) -> None:
    async with _spoken(plain_world) as (session, _):
        with pytest.raises(UsageError, match="ask"):
            await session.read_file("a.txt", ask=lambda path: True)


async def test_a_name_that_no_session_has_is_no_attribute(plain_world: World) -> None:
    async with _spoken(plain_world) as (session, _):
        assert not hasattr(session, "nonsense")


async def test_a_wrong_argument_is_the_callers_mistake_and_not_sent(plain_world: World) -> None:
    async with _spoken(plain_world) as (session, _):
        with pytest.raises(TypeError, match="set_budget"):
            await session.set_budget(1.0, 2, 3, 4)


CANNOT_TRAVEL = {"export_session": {"missing"}, "start_session": {"store"}}
"""Arguments of the manager's calls that stay in one process."""


def test_the_manager_has_the_names_and_arguments_of_the_api() -> None:
    assert _public(SessionManager) == _public(RemoteSessions)
    for name in _public(SessionManager) - {"start_session", "get"}:
        ours = inspect.signature(getattr(SessionManager, name)).parameters
        theirs = inspect.signature(getattr(RemoteSessions, name)).parameters
        left_out = CANNOT_TRAVEL.get(name, set())
        assert [each for each in ours if each not in left_out] == list(theirs), name


async def test_the_manager_works_through_a_server(plain_world: World, tmp_path: Path) -> None:
    async with (
        _spoken(plain_world) as (session, served),
        weft.connect(served.server.url, served.token) as app,
    ):
        sessions = app.sessions
        short = session.id[:20]
        assert (await sessions.get(short)).id == session.id
        found = await sessions.find_session(short)
        assert found is not None
        assert found.id == session.id
        assert await sessions.find_session("ses_none") is None
        assert await sessions.resolve_id(short) == session.id
        assert [row.id for row in await sessions.list_saved(plain_world.project)] == [session.id]
        assert await sessions.list_saved(tmp_path) == []
        fork = await sessions.fork_session(session.id, at=0)
        with pytest.raises(AmbiguousId):
            await sessions.find_session("ses_")
        file = tmp_path / "export.json"
        await sessions.export_session(session.id, "json", file)
        assert file.stat().st_mode & 0o077 == 0
        report = await sessions.import_session(file)
        assert await report.session.messages() == await session.messages()
        with pytest.raises(UsageError, match="cannot read"):
            await sessions.import_session(tmp_path / "none.json")
        with pytest.raises(UsageError, match="unloads idle sessions itself"):
            await sessions.unload_idle(1.0)
        with pytest.raises(UsageError, match="tools= cannot travel"):
            await sessions.start_session(tools=[print])
        await sessions.delete_session(fork.id)
        with pytest.raises(SessionNotFound):
            await sessions.resolve_id(fork.id)


async def test_a_client_with_a_name_drives_a_session_of_another_process(
    shared_world: World,
) -> None:
    async with (
        shared_world.open(ScriptedModel(["One."])) as owner,
        serving(shared_world, ScriptedModel([])) as served,
        weft.connect(served.server.url, served.token) as app,
    ):
        held = await owner.sessions.start_session()
        await held.send_message("Go.")
        session = await app.sessions.get(held.id)
        client = await session.attach("driver", "ann@host")
        assert client_name(client) == "ann@host"
        assert session.driver == client
        await held.attach("viewer", "ben")
        assert held.driver == client
        with pytest.raises(ViewerRefused, match="ann@host drives"):
            await held.send_prompt("Me too.")


async def test_readers_of_a_handle_end_when_another_takes_its_place(plain_world: World) -> None:
    async with _spoken(plain_world) as (session, _):
        events = await session.subscribe()
        other = await session.new_session(title="Next")
        with anyio.fail_after(PATIENCE):
            seen = [event async for event in events]
        assert isinstance(seen[-1], Replaced)
        assert seen[-1].by == other.id
        assert (await other.metadata()).title == "Next"


async def test_a_program_without_a_loop_connects_too(plain_world: World) -> None:
    async with _spoken(plain_world) as (session, served):
        url, token = served.server.url, served.token

        def drive() -> None:
            with weft.sync.connect(url, token) as app:
                far = app.sessions.get(session.id)
                far.add_system_message("from a script")
                assert far.send_message("Again.").text == "Two."
                assert "system" in [message.role for message in far.messages()]
                with far.subscribe(after=0, live=False) as events:
                    assert any(isinstance(event, SystemNote) for event in events)
                joined = far.join(after=0)
                assert isinstance(next(joined.events), FactBase)
                joined.events.close()
                with pytest.raises(UsageError, match="process that has the session"):
                    far.files_at(0)

        with anyio.fail_after(PATIENCE):
            await anyio.to_thread.run_sync(drive)


@asynccontextmanager
async def _spoken(world: World) -> AsyncGenerator[tuple[RemoteSession, ServedWorld]]:
    """A session with one exchange of messages, through a server."""
    model = ScriptedModel(["One.", "Two.", "Three."])
    async with (
        serving(world, model) as served,
        weft.connect(served.server.url, served.token) as app,
    ):
        session = await app.sessions.start_session(title="Far")
        await session.send_message("Go.")
        yield session, served
