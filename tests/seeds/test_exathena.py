"""ExAthena: "a process that owns a multi-turn conversation".

Start, send twice with context, stop, resume; the three levels of entry; stores to choose from; and
permissions that do not survive a resume. What went wrong there (`seeds.md` 6.2) does not here: a
turn is stored as it happens, and instructions are told once.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import weft
from tests.support.scripted_stage import ScriptedStage
from tests.support.world import crash, request_lines, until_status
from weft.app import App
from weft.providers import ModelInfo
from weft.providers.script import CallTool, SayText, Stall
from weft.providers.scripted import ScriptedModel, ScriptedProvider
from weft.store import MemoryStore

pytestmark = pytest.mark.anyio

LLAMA = "ollama:llama3.1"
MIX = 'defp deps, do: [{:jason, "~> 1.4"}, {:req, "~> 0.5"}]\n'
READ = CallTool(name="read", args={"path": "mix.exs"})


@pytest.mark.requirement("session:send_message", "session:wait")
async def test_the_documented_usage(stage: ScriptedStage) -> None:
    """One message with a tool, a second that knows the first, stop."""
    stage.world.write("mix.exs", MIX)
    model = stage.plays(LLAMA, READ, "jason and req", "two")
    async with stage.open() as app:
        session = await app.sessions.start_session(
            model=LLAMA, tools="all", project_path=stage.world.project
        )
        result = await session.send_message("read mix.exs and list deps")
        assert result.text == "jason and req"
        assert (result.finish_reason, result.iterations, result.tool_calls_made) == ("stop", 2, 1)
        assert result.usage.total_tokens > 0
        assert result.session_id == session.session_id() == session.id
        assert result.model == LLAMA
        second = await session.send_message("how many are that?")
        assert second.text == "two"
        assert [message.role for message in await session.messages()] == [
            "user",
            "assistant",
            "tool",
            "assistant",
            "user",
            "assistant",
        ]
        await session.stop()
        assert await session.wait() == "stopped"
    assert [line.partition(":")[0] for line in request_lines(model.last_request)] == [
        "user",
        "assistant",
        "result",
        "assistant",
        "user",
    ]
    assert "jason" in request_lines(model.last_request)[2]


async def test_a_stopped_session_is_resumed_by_its_id(stage: ScriptedStage) -> None:
    model = stage.plays(LLAMA, "Hello Ann.", "You are Ann.")
    async with stage.open() as app:
        session = await app.sessions.start_session(session_id="mine", system_prompt="Be brief.")
        await session.send_message("I am Ann.")
        before = await session.messages_with_ids()
        await session.stop()
        resumed = await app.sessions.start_session(session_id="mine")
        assert await resumed.messages_with_ids() == before
        assert (await resumed.send_message("Who am I?")).text == "You are Ann."
    assert model.last_request.system.startswith("Be brief.")
    assert request_lines(model.last_request)[:2] == ["user: I am Ann.", "assistant: Hello Ann."]


async def test_prior_messages_seed_a_fresh_session(stage: ScriptedStage) -> None:
    """`resume` gives the messages, `start_link(messages: …)` takes them."""
    model = stage.plays(LLAMA, "Hello Ann.", "You are Ann.")
    async with stage.open() as app:
        first = await app.sessions.start_session()
        await first.send_message("I am Ann.")
        record = await app.sessions.read_session(first.id)
        seed = [{"role": each.role, "content": each.content} for each in record.messages]
        other = await app.sessions.start_session(messages=seed)
        assert other.id != first.id
        assert [m.content for m in await other.messages()] == ["I am Ann.", "Hello Ann."]
        assert (await other.send_message("Who am I?")).text == "You are Ann."
    assert request_lines(model.last_request) == [
        "user: I am Ann.",
        "assistant: Hello Ann.",
        "user: Who am I?",
    ]


async def test_permissions_do_not_survive_a_resume(stage: ScriptedStage) -> None:
    """Each session re-establishes trust with the host."""
    write = CallTool(name="write", args={"path": "a.txt", "content": "x"})
    stage.plays(LLAMA, write, "one", write, "two", write, "three")
    async with stage.open() as app:
        session = await app.sessions.start_session(session_id="mine")
        await session.send_prompt("write")
        await until_status(session, "awaiting_permission")
        await session.respond_to_permission("allow_always")
        await until_status(session, "idle")
        assert (await session.send_message("write again")).text == "two"
    async with stage.open() as app:
        session = await app.sessions.get("mine")
        await session.send_prompt("and again")
        await until_status(session, "awaiting_permission")


async def test_a_turn_is_stored_as_it_happens(stage: ScriptedStage) -> None:
    """There, a crash in the middle of a turn lost all of it but the user's message."""
    stage.world.write("mix.exs", MIX)
    model = stage.plays(LLAMA, READ, (SayText(text="so far"), Stall(gate="g")), "jason and req")
    app = await stage.open().__aenter__()
    session = await app.sessions.start_session(session_id="mine")
    await session.send_prompt("read mix.exs and list deps")
    await model.gate("g").reached.wait()
    await crash(app)
    async with stage.open() as later:
        session = await later.sessions.get("mine")
        assert [message.role for message in await session.messages()][:3] == [
            "user",
            "assistant",
            "tool",
        ]
        assert (await session.continue_and_wait()).text == "jason and req"


async def test_instructions_are_told_once_however_many_turns_there_are(
    stage: ScriptedStage,
) -> None:
    stage.world.write("AGENTS.md", "Always whisper.")
    model = stage.plays(LLAMA, "a", "b", "c")
    async with stage.open() as app:
        session = await app.sessions.start_session()
        for prompt in ("one", "two", "three"):
            await session.send_message(prompt)
    assert model.last_request.system.count("Always whisper.") == 1
    assert "Always whisper." not in str(model.last_request.messages)


async def test_a_checkpoint_a_fork_and_a_rewind(stage: ScriptedStage) -> None:
    model = stage.plays(LLAMA, "a", "b", "fork", "again")
    async with stage.open() as app:
        session = await app.sessions.start_session(title="Plan")
        await session.send_message("one")
        label = await session.checkpoint("before two")
        await session.send_message("two")
        fork = await app.sessions.fork_session(session.id, at=1)
        about = await fork.metadata()
        assert (about.title, about.parent_id) == ("Plan (fork)", session.id)
        await fork.send_message("otherwise")
        assert request_lines(model.last_request) == ["user: one", "assistant: a", "user: otherwise"]
        await session.rewind(label)
        await session.send_message("two, better")
        assert request_lines(model.last_request) == [
            "user: one",
            "assistant: a",
            "user: two, better",
        ]


class Shelf(MemoryStore):
    """A store of the host's own."""


@pytest.mark.parametrize("kind", ["in_memory", "jsonl", "custom"])
async def test_the_stores_to_choose_from(tmp_path: Path, kind: str) -> None:
    stores = {"in_memory": "memory", "jsonl": f"jsonl:{tmp_path / 'log'}", "custom": Shelf()}
    info = ModelInfo(provider="ollama", name="llama3.1")
    model = ScriptedModel(["Hello Ann.", "You are Ann."], info=info)
    providers = {"ollama": ScriptedProvider({"llama3.1": model})}
    app: App = weft.open(
        tmp_path,
        stores[kind],  # type: ignore[arg-type]  # one of the three
        {"model.default": LLAMA},
        environ={"HOME": str(tmp_path), "WEFT_HOME": str(tmp_path)},
        providers=providers,
    )
    async with app:
        session = await app.sessions.start_session(session_id="mine")
        await session.send_message("I am Ann.")
        await session.stop()
        resumed = await app.sessions.get("mine")
        assert (await resumed.send_message("Who am I?")).text == "You are Ann."


async def test_the_three_levels_of_entry(tmp_path: Path) -> None:
    """A question, a run, a session."""
    (tmp_path / "mix.exs").write_text(MIX)
    answer = await weft.query("say hi", model=ScriptedModel(["hi"]))
    assert answer.text == "hi"
    result = await weft.run(
        "read mix.exs and list deps", model=ScriptedModel([READ, "jason and req"]), cwd=tmp_path
    )
    assert (result.text, result.tool_calls_made) == ("jason and req", 1)
