"""What models are told before and beside the conversation: the bytes of the prefix stay, and news
come as notes.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.request_parts import notes, prefix
from tests.support.world import World, crash, facts
from weft.events import PrefixFrozen
from weft.providers import ModelRequest
from weft.providers.script import CallTool
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio

DAY = 24 * 3600.0


def put_on_branch(project: Path, name: str) -> None:
    (project / ".git").mkdir(exist_ok=True)
    (project / ".git" / "HEAD").write_text(f"ref: refs/heads/{name}\n")


def make_repository(project: Path) -> None:
    (project / "kept.txt").write_text("one\n")
    who = ("-c", "user.name=A", "-c", "user.email=a@b")
    for args in (("init", "-q"), ("add", "kept.txt"), (*who, "commit", "-qm", "x")):
        subprocess.run(["git", *args], cwd=project, check=True)


def is_continued(before: ModelRequest, after: ModelRequest) -> bool:
    return after.messages[: len(before.messages)] == before.messages


# On a store that hosts share, the repository is saved for the next one, by git.
@pytest.mark.process
async def test_date_branch_and_mode_come_with_the_first_message_and_again_when_they_change(
    world: World,
) -> None:
    put_on_branch(world.project, "main")
    model = ScriptedModel(["one", "two", "three", "four", "five"])
    async with world.open(model, clock=world.clock) as app:
        session = await app.sessions.start_session(session_id="s")
        await session.send_message("a")
        await session.send_message("b")
        world.clock.advance(DAY)
        await session.send_message("c")
        put_on_branch(world.project, "other")
        await session.send_message("d")
        await session.set_permission_mode("accept_edits")
        await session.send_message("e")
    told = notes(model.last_request)
    assert [note.count("\n") for note in told] == [5, 2, 2, 2]
    assert "Git: on branch main" in told[0]
    assert "Permission mode: default" in told[0]
    assert told[1].startswith("<environment>\nDate: 2027-01-1")
    assert told[2:] == [
        "<environment>\nGit: on branch other\n</environment>",
        "<environment>\nPermission mode: accept_edits. Edits in the project run without asking; "
        "commands may ask the user for permission first.\n</environment>",
    ]
    for before, after in zip(model.requests, model.requests[1:], strict=False):
        assert prefix(after) == prefix(before)
        assert is_continued(before, after)


@pytest.mark.process
async def test_uncommitted_changes_are_told_and_told_again_when_they_are_others(
    world: World,
) -> None:
    make_repository(world.project)
    model = ScriptedModel(["one", "two", "three"])
    async with world.open(model, clock=world.clock) as app:
        session = await app.sessions.start_session(session_id="s")
        await session.send_message("a")
        await session.send_message("b")
        (world.project / "kept.txt").write_text("two, and longer\n")
        await session.send_message("c")
    first, *later = notes(model.last_request)
    assert "\nUncommitted changes of tracked files: none\n" in first
    assert later == [
        "<environment>\nUncommitted changes of tracked files: 1 file (kept.txt)\n</environment>"
    ]
    assert all(prefix(request) == prefix(model.requests[0]) for request in model.requests)


@pytest.mark.parametrize("leave", ["close", "crash"])
async def test_what_was_told_is_not_told_again_after_a_restart(world: World, leave: str) -> None:
    model = ScriptedModel(["one", "two"])
    app = await world.open(model, clock=world.clock).__aenter__()
    session = await app.sessions.start_session(session_id="s")
    await session.send_message("a")
    await (crash(app) if leave == "crash" else app.aclose())
    async with world.open(model, clock=world.clock) as app:
        await (await app.sessions.get("s")).send_message("b")
    assert len(notes(model.last_request)) == 1
    assert prefix(model.requests[1]) == prefix(model.requests[0])


async def test_a_line_that_was_not_told_is_told(world: World) -> None:
    """The first message is edited: its new version stands on a line without the note."""
    model = ScriptedModel(["one", "two"])
    async with world.open(model) as app:
        session = await app.sessions.start_session(session_id="s")
        await session.send_message("a")
        await session.rewind(None, files=False)
        await session.send_message("b")
    assert len(notes(model.last_request)) == 1


async def test_plan_mode_is_told_and_has_only_its_tools(world: World) -> None:
    model = ScriptedModel([[CallTool(name="write", args={"path": "x", "content": ""})], "a", "b"])
    async with world.open(model) as app:
        session = await app.sessions.start_session(session_id="s", permission_mode="plan")
        await session.send_message("a")
        await session.set_permission_mode("default")
        await session.send_message("b")
    planning, denied, working = model.requests
    assert "Permission mode: plan." in notes(planning)[0]
    assert [tool.name for tool in planning.tools] == [
        *("read", "list", "find", "grep", "todo", "ask", "wait_for", "decision_log", "agent")
    ]
    # A model that remembers a tool is told why it may not use it.
    assert "plan mode changes nothing" in repr(denied.messages)
    assert "write" in [tool.name for tool in working.tools]
    assert "Permission mode: default." in notes(working)[-1]
    assert is_continued(denied, working)


async def test_a_mode_that_is_set_in_the_middle_of_a_turn_is_told_before_the_next_call(
    world: World,
) -> None:
    model = ScriptedModel([[CallTool(name="meanwhile", args={})], "done"])

    async def meanwhile() -> str:
        """The user sets a mode while a tool runs."""
        await session.set_permission_mode("plan")
        return "done"

    async with world.open(model) as app:
        session = await app.sessions.start_session(
            session_id="s", tools=["all", meanwhile], permission_mode="bypass"
        )
        await session.send_message("a")
    first, second = model.requests
    assert [len(notes(each)) for each in model.requests] == [1, 2]
    assert "Permission mode: plan." in notes(second)[1]
    assert "write" in [tool.name for tool in first.tools]
    assert "write" not in [tool.name for tool in second.tools]
    assert is_continued(first, second)


async def test_an_edit_of_the_instructions_is_a_message_and_no_new_prefix(world: World) -> None:
    world.write("AGENTS.md", "Use tabs.")
    model = ScriptedModel(["one", "two", "three", "four"])
    async with world.open(model) as app:
        session = await app.sessions.start_session(session_id="s")
        await session.send_message("a")
        world.write("AGENTS.md", "Use spaces.")
        await session.send_message("b")
        await session.send_message("c")
    async with world.open(model) as app:
        session = await app.sessions.get("s")
        (world.project / "AGENTS.md").unlink()
        await session.send_message("d")
        frozen = await facts(session, PrefixFrozen)
    assert len(frozen) == 1
    assert all(prefix(each) == prefix(model.requests[0]) for each in model.requests)
    assert "Use tabs." in model.requests[0].system
    assert [len(notes(each)) for each in model.requests] == [1, 2, 2, 3]
    assert "Use spaces." in notes(model.requests[1])[1]
    assert "were removed" in notes(model.requests[3])[2]


async def test_a_compaction_takes_what_was_told_and_it_is_told_again(world: World) -> None:
    model = ScriptedModel(["one", "two", "three", "a summary", "four"])
    async with world.open(model) as app:
        session = await app.sessions.start_session(session_id="s")
        for text in ("a", "b", "c"):
            await session.send_message(text * 4_000)
        await session.compact()
        await session.send_message("d")
    assert len(notes(model.last_request)) == 1
    assert "Date: " in notes(model.last_request)[0]


async def test_ask_is_described_only_where_a_user_is_there(world: World) -> None:
    model = ScriptedModel(["one", "two"])
    async with world.open(model) as app:
        there = await app.sessions.start_session()
        await there.send_message("a")
        away = await app.sessions.start_session(asking="no")
        await away.send_message("a")
    first, second = model.requests
    assert "ask" in [tool.name for tool in first.tools]
    assert "ask" not in [tool.name for tool in second.tools]
    assert "no user is there to ask" in notes(second)[0]


async def test_a_session_without_tools_is_told_nothing(world: World) -> None:
    model = ScriptedModel(["one"])
    async with world.open(model) as app:
        session = await app.sessions.start_session(session_id="s", tools=[])
        await session.send_message("a")
    assert notes(model.last_request) == []
