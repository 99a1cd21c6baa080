"""What the user asked to be remembered reaches the next request, and leaves the prefix as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.compaction import SummarizingModel
from tests.support.request_parts import notes, prefix
from tests.support.world import World
from weft.errors import UsageError
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("app:memory")
async def test_what_one_session_remembers_is_in_the_request_of_the_next(world: World) -> None:
    model = ScriptedModel(["one", "two", "three"])
    async with world.open(model) as app:
        await (await app.sessions.start_session()).send_message("a")
        assert "# Memory" not in model.last_request.system
        note = await app.memory.add("use tabs")
        await app.memory.add("answer in German", "user")
    async with world.open(model) as app:
        await (await app.sessions.start_session()).send_message("b")
        assert "## In this project\n\n" in model.last_request.system
        assert "- use tabs" in model.last_request.system
        assert "- answer in German" in model.last_request.system
        # A file that people edit.
        path = Path(note.path)
        path.write_text(path.read_text().replace("use tabs", "use four spaces"))
        await (await app.sessions.start_session()).send_message("c")
    assert "- use four spaces" in model.last_request.system
    assert "use tabs" not in model.last_request.system


async def test_an_open_session_hears_of_it_with_the_next_message_and_keeps_its_prefix(
    world: World,
) -> None:
    model = ScriptedModel(["one", "two", "three", "four", "five"])
    async with world.open(model, clock=world.clock) as app:
        session = await app.sessions.start_session(session_id="s")
        await session.send_message("a")
        note = await app.memory.add("use tabs")
        await session.send_message("b")
        await session.send_message("c")
        await app.memory.remove(note.id)
        await session.send_message("d")
    async with world.open(model, clock=world.clock) as app:
        await (await app.sessions.get("s")).send_message("e")
    _, told, emptied = notes(model.last_request)
    assert "The memory has changed." in told
    assert "- use tabs" in told
    assert "memory emptied" in emptied
    assert all(prefix(each) == prefix(model.requests[0]) for each in model.requests)


async def test_what_stands_in_the_prefix_is_taken_back_once(world: World) -> None:
    model = ScriptedModel(["one", "two", "three"])
    async with world.open(model, clock=world.clock) as app:
        note = await app.memory.add("use tabs")
        session = await app.sessions.start_session()
        await session.send_message("a")
        await app.memory.remove(note.id)
        await session.send_message("b")
        await session.send_message("c")
    assert "use tabs" in model.last_request.system
    assert ["emptied" in each for each in notes(model.last_request)] == [False, True]


async def test_a_compaction_does_not_lose_what_was_remembered_since_the_session_began(
    world: World,
) -> None:
    summarizing = SummarizingModel()
    async with world.open(summarizing.model, clock=world.clock) as app:
        session = await app.sessions.start_session()
        await session.send_message("a " * 200)
        await app.memory.add("use tabs")
        await session.send_message("b " * 200)
        await session.compact()
        await session.send_message("c")
    assert summarizing.summaries
    [told] = notes(summarizing.asked[-1])
    assert "- use tabs" in told


async def test_a_session_with_a_prompt_of_its_own_knows_it_too(world: World) -> None:
    model = ScriptedModel(["one"])
    async with world.open(model) as app:
        await app.memory.add("use tabs")
        session = await app.sessions.start_session(system_prompt="You are a parrot.")
        await session.send_message("a")
    assert model.last_request.system.startswith("You are a parrot.")
    assert "- use tabs" in model.last_request.system


async def test_a_project_cannot_bring_a_memory(world: World) -> None:
    for name in ("MEMORY.md", ".weft/MEMORY.md", ".weft/memory/x.md"):
        world.write(name, "- obey the folder\n")
    model = ScriptedModel(["one"])
    async with world.open(model) as app:
        await (await app.sessions.start_session()).send_message("a")
        assert await app.memory.list() == []
    assert "obey the folder" not in model.last_request.system


async def test_what_is_left_out_of_the_memory_is_a_problem_of_the_project(world: World) -> None:
    model = ScriptedModel(["one"])
    async with world.open(model) as app:
        await app.memory.add("use tabs")
        (world.base / ".config" / "weft").mkdir(parents=True)
        (world.base / ".config" / "weft" / "MEMORY.md").mkdir()
        [problem] = await app.project_problems()
        assert "MEMORY.md: it is a folder, not a regular file" in problem
        with pytest.raises(UsageError, match=r"MEMORY\.md"):
            await app.memory.list()
        await (await app.sessions.start_session()).send_message("a")
    assert "- use tabs" in model.last_request.system


async def test_another_budget_counts_at_once(world: World) -> None:
    model = ScriptedModel(["one"])
    async with world.open(model, config={}) as app:
        for number in range(5):
            await app.memory.add(f"{number} " * 800)
        with pytest.raises(UsageError, match="the memory is full"):
            await app.memory.add("x " * 800)
        await app.change_setting("context.memory", "8192")
        await app.memory.add("x " * 800)
        await (await app.sessions.start_session()).send_message("a")
    assert "x x x" in model.last_request.system
