"""Commands that go on beside the turns: started, looked at, stopped.

Told of at their end, and never left behind.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import anyio.lowlevel
import pytest

from tests.support.background_shell import background_shell, plays, start
from tests.support.role_models import agent_call, role_model
from tests.support.sandboxed_session import skip_without_sandbox
from tests.support.source_code import ROOT
from tests.support.world import World, crash, facts, request_lines, until, until_holds, until_idle
from weft.api.session import Session
from weft.errors import UsageError
from weft.events import (
    FileTouched,
    InputQueued,
    PermissionRequest,
    SystemNote,
    ToolComplete,
    ToolExecuting,
    TurnFinished,
    TurnStarted,
)
from weft.providers.script import CallTogether, CallTool, Stall
from weft.providers.scripted import ScriptedModel
from weft.runtime.background_commands import MOST
from weft.workspace.process import orphans

pytestmark = pytest.mark.anyio

SERVER = "echo ready; exec sleep 1000"


def look(name: str = "bg_1", wait_seconds: float = 10) -> CallTool:
    return CallTool(name="shell_output", args={"id": name, "wait_seconds": wait_seconds})


def stop(name: str = "bg_1") -> CallTool:
    return CallTool(name="shell_stop", args={"id": name})


def results(model: ScriptedModel) -> list[str]:
    return [line for line in request_lines(model.requests[-1]) if line.startswith("result: ")]


async def shells(session: Session) -> list[tuple[str, str, int | None]]:
    return [
        (each.id, str(each.status), each.exit_code)
        for each in await session.background_commands()
        if each.kind == "shell"
    ]


async def until_over(session: Session, name: str = "bg_1") -> SystemNote:
    """Wait for the end of a command to be on record."""
    with anyio.fail_after(10):
        async with await session.subscribe(after=0) as events:
            async for event in events:
                end = event.background if isinstance(event, SystemNote) else None
                if isinstance(event, SystemNote) and end is not None and end.id == name:
                    return event
    raise AssertionError("the session ended first")


async def until_turns(session: Session, count: int) -> None:
    """Wait until so many turns have ended."""

    async def have_ended() -> bool:
        return len(await facts(session, TurnFinished)) >= count

    await until_holds(session, have_ended)
    await until_idle(session)


def marked(world: World) -> list[int]:
    """The processes that still run and were started in this world's project."""
    found = []
    for pid in os.listdir("/proc"):
        if not pid.isdigit():
            continue
        try:
            if os.readlink(f"/proc/{pid}/cwd") == str(world.project):
                state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
                found += [int(pid)] if state not in "ZX" else []
        except OSError:
            continue
    return found


async def gone(world: World) -> None:
    """Wait until nothing of this world runs; a killed process takes a moment."""
    with anyio.fail_after(10):
        while marked(world):
            await anyio.lowlevel.checkpoint()


# --- starting, looking, stopping


@pytest.mark.requirement("session:background_commands")
async def test_a_server_runs_on_is_looked_at_and_stopped(world: World) -> None:
    model = plays(
        background_shell("echo ready; while read -t 1000 line; do :; done < <(sleep 1000)"),
        look(wait_seconds=0),
        "It is up.",
        stop(),
        "Down.",
    )
    async with world.open(model) as app:
        session = await start(app)
        await session.send_message("serve")
        started, looked = results(model)
        assert started == "result: ready\n(It runs in the background as bg_1.)"
        assert looked == "result: (nothing new)\n(bg_1: it still runs)"
        [work] = await session.background_commands()
        assert (work.id, work.kind, work.status) == ("bg_1", "shell", "running")
        assert work.title.startswith("echo ready; ")
        assert marked(world)
        await session.send_message("stop it")
        assert results(model)[-1] == "result: (nothing new)\n(bg_1: it was stopped)"
        await until_over(session)
        assert not marked(world)
        [(_, status, code)] = await shells(session)
        assert (status, code) == ("exited", -15)
        assert await facts(session, InputQueued) == [], "the model knows: it has ended it itself"


@pytest.mark.requirement("background:judged")
async def test_it_is_recorded_as_intended_and_asked_about_like_any_other(world: World) -> None:
    model = plays(background_shell(SERVER), "Fine.")
    async with world.open(model) as app:
        session = await app.sessions.start_session(session_id="s")
        await session.send_prompt("serve")
        asked = await until(session, PermissionRequest)
        off = "# without a sandbox: it is switched off"
        assert asked.preview == f"# goes on in the background\n{off}\n{SERVER}"
        assert asked.tool_path == SERVER, "rules and grants name the same command"
        assert not marked(world)
        await session.respond_to_permission("allow_once")
        await until_idle(session)
        intended, complete = await facts(session, ToolExecuting, ToolComplete)
        assert isinstance(intended, ToolExecuting)
        assert intended.args["background"] is True
        assert isinstance(complete, ToolComplete)
        assert complete.result.data["background"] == {"id": "bg_1", "command": SERVER}


async def test_a_rule_that_denies_the_command_denies_it_in_the_background_too(world: World) -> None:
    model = plays(background_shell("npm run dev"), "Fine.")
    config = {"permissions.deny": ["shell(npm run dev)"]}
    async with world.open(model, config=config) as app:
        session = await start(app, permission_mode="bypass")
        await session.send_message("serve")
        assert "Denied" in results(model)[0]
        assert await shells(session) == []


async def test_one_that_fails_at_once_says_so_and_leaves_nothing_behind(world: World) -> None:
    model = plays(background_shell("echo no such thing >&2; exit 7"), "Fine.")
    async with world.open(model) as app:
        session = await start(app)
        await session.send_message("serve")
        [result] = results(model)
        assert result == (
            "result: no such thing\n(exit code 7)\n(It ended at once; nothing runs in "
            "the background.)"
        )
        [complete] = await facts(session, ToolComplete)
        assert complete.is_error
        assert await session.background_commands() == []


async def test_looking_waits_for_something_new_and_then_only_tells_that(world: World) -> None:
    os.mkfifo(world.project / "pipe")
    model = plays(
        background_shell("echo one; cat pipe; echo three"),
        [Stall(), look()],
        look(),
        look(),
        "Seen.",
        "Over.",
    )
    async with world.open(model) as app:
        session = await start(app)
        await session.send_prompt("serve")
        await model.gate().reached.wait()
        [(_, status, _)] = await shells(session)
        assert status == "running"
        async with await anyio.open_file(world.project / "pipe", "w") as pipe:
            await pipe.write("two\n")
            await pipe.flush()
            model.gate().opened.set()

            async def has_looked() -> bool:
                return len(await facts(session, ToolComplete)) >= 2

            await until_holds(session, has_looked)
        await until_over(session)
        await until_turns(session, 1)
        seen = [complete.result.text for complete in await facts(session, ToolComplete)]
        assert seen[0].startswith("one\n")
        assert seen[1] == "two\n(bg_1: it still runs)"
        assert "".join(seen).count("two") == 1
        assert "".join(seen).count("three") == 1
        assert any("(bg_1: it ended with exit code 0)" in text for text in seen)


async def test_more_than_so_many_are_refused_before_the_user_is_asked(world: World) -> None:
    calls = CallTogether(calls=tuple(background_shell(SERVER) for _ in range(MOST + 1)))
    model = plays(calls, stop("bg_3"), background_shell(SERVER), "Fine.")
    async with world.open(model) as app:
        session = await start(app)
        await session.send_message("serve")
        first = results(model)
        assert all("ready" in line for line in first[:MOST])
        assert f"{MOST} commands run in the background already" in first[MOST]
        assert "as bg_9.)" in first[MOST + 2], "a name is never used twice"
        assert len([each for each in await shells(session) if each[1] == "running"]) == MOST


async def test_a_flood_is_bounded_and_what_comes_after_it_is_still_seen(world: World) -> None:
    os.mkfifo(world.project / "pipe")
    flood = "yes 0123456789 | head -c 3000000; cat pipe; echo END"
    model = plays(background_shell(flood), [Stall(), look()], look(), "Fine.", "Over.")
    async with world.open(model) as app:
        session = await start(app)
        await session.send_prompt("serve")
        await model.gate().reached.wait()
        async with await anyio.open_file(world.project / "pipe", "w"):
            pass
        note = await until_over(session)
        assert note.background is not None
        assert note.background.exit_code == 0
        model.gate().opened.set()
        await until_turns(session, 1)
        seen = [complete.result.text for complete in await facts(session, ToolComplete)]
        assert "characters left out" in "".join(seen)
        assert any("END\n" in text for text in seen)
        assert all(len(text) < 40_000 for text in seen)


async def test_secrets_in_what_it_prints_reach_neither_model_nor_log(world: World) -> None:
    key = "sk-ant-api03-" + "a1B2" * 20
    os.mkfifo(world.project / "pipe")
    (world.project / "key").write_text(key)
    model = plays(
        background_shell("cat key; echo; cat pipe; cat key; exit 3"),
        "Fine.",
        look(),
        "I see.",
        "Ah.",
    )
    async with world.open(model) as app:
        session = await start(app)
        await session.send_message("serve")
        async with await anyio.open_file(world.project / "pipe", "w"):
            pass
        await until_over(session)
        await until_turns(session, 2)
        first, last = [complete.result.text for complete in await facts(session, ToolComplete)]
        stored = str(await facts(session, object))
        assert "redacted" in first
        assert "redacted" in last
        assert key[:30] not in stored
    assert all(key[:30] not in line for line in request_lines(model.last_request))


# --- its end


@pytest.mark.requirement("background:told")
async def test_its_end_is_reported_to_the_user_and_steers_the_model(world: World) -> None:
    world.write("words", "broken\n")
    os.mkfifo(world.project / "pipe")
    model = plays(background_shell("cat pipe; cat words >&2; exit 3"), "It is up.", "It broke.")
    async with world.open(model) as app:
        session = await start(app)
        await session.send_message("serve")
        async with await anyio.open_file(world.project / "pipe", "w"):
            pass
        note = await until_over(session)
        assert note.text.endswith("is over: it ended with exit code 3.")
        assert note.background is not None
        assert (note.background.exit_code, note.background.why) == (3, "exited")

        await until_turns(session, 2)
        heard = request_lines(model.last_request)[-1]
        assert heard.startswith("user: [The background command bg_1 (cat pipe; ")
        assert heard.endswith("`shell_output` shows what it printed last.")
        assert "broken" not in heard, "what a program prints is never said in the person's place"
        assert await shells(session) == [("bg_1", "exited", 3)]


@pytest.mark.requirement("background:changes")
async def test_what_it_changed_is_named_and_never_taken_for_certain(world: World) -> None:
    world.write("a.txt", "old\n")
    os.mkfifo(world.base / "pipe")
    model = plays(background_shell("cat ../pipe; echo new > a.txt"), "Up.", "Over.", "Hm.")
    async with world.open(model) as app:
        session = await start(app)
        await session.send_message("serve")
        async with await anyio.open_file(world.base / "pipe", "w"):
            pass
        await until_over(session)
        await until_turns(session, 2)
        [touched] = await facts(session, FileTouched)
        assert (touched.path, touched.action, touched.is_certain) == ("a.txt", "modified", False)
        assert [each.path for each in await session.touched_files()] == ["a.txt"]
        first = (await session.messages_with_ids())[0][0]
        plan = await session.rewind(first, preview=True)
        [item] = [item for item in plan.files if item.path == "a.txt"]
        assert item.action == "conflict", "it may be the person's own work"


async def test_what_it_changed_beyond_a_boundary_is_reported(world: World) -> None:
    world.write("code.py", "a\nb\nc\n")
    os.mkfifo(world.base / "pipe")
    model = plays(background_shell("cat ../pipe; sed -i s/a/x/ code.py"), "Up.", "Over.")
    async with world.open(model) as app:
        session = await start(app)
        await session.set_boundary("code.py", 1, 1)
        await session.send_message("serve")
        async with await anyio.open_file(world.base / "pipe", "w"):
            pass
        await until_over(session)
        await until_turns(session, 2)
        notes = [note.text for note in await facts(session, SystemNote)]
        assert any("Nothing was put back" in note and "code.py" in note for note in notes)
        [queued] = await facts(session, InputQueued)
        assert "Ask the user whether this may stay" in str(queued.parts)
        assert world.read("code.py").startswith("x\n")


# --- its life


@pytest.mark.requirement("background:life")
async def test_it_survives_an_abort_and_the_turns_after_it(world: World) -> None:
    model = plays(background_shell(SERVER), Stall(), "Hello.")
    async with world.open(model) as app:
        session = await start(app)
        await session.send_prompt("serve")
        await model.gate().reached.wait()
        await session.abort()
        assert marked(world)
        assert (await shells(session))[0][1] == "running"
        await session.send_message("hello")
        assert marked(world)


async def test_an_abort_before_its_call_has_returned_ends_it(world: World) -> None:
    model = plays(background_shell(SERVER), "Hello.")
    async with world.open(model) as app:
        session = await start(app)
        await session.send_prompt("serve")
        with anyio.fail_after(10):
            while not marked(world):
                await anyio.lowlevel.checkpoint()
        await session.abort()
        await gone(world)
        assert await shells(session) == []
        assert (await facts(session, ToolComplete))[0].result.status == "aborted"


@pytest.mark.requirement("session:kill_background")
async def test_the_user_stops_it_with_all_that_it_started(world: World) -> None:
    model = plays(
        background_shell("setsid sleep 1000 & sleep 1000 & echo ready; wait"), "Up.", "I see."
    )
    async with world.open(model) as app:
        session = await start(app)
        await session.send_message("serve")
        assert len(marked(world)) >= 3
        await session.kill_background("bg_1", input_id="k")
        assert not marked(world)
        [(_, status, _)] = await shells(session)
        assert status == "exited"
        await session.kill_background("bg_1", input_id="k")
        with pytest.raises(UsageError, match="nothing runs in the background"):
            await session.kill_background("bg_1")
        assert len(await facts(session, TurnStarted)) == 1, "nobody asked for a turn"
        await session.send_message("and?")
        assert any(
            "bg_1" in line and "was stopped" in line for line in request_lines(model.last_request)
        )


async def test_one_that_does_not_listen_is_killed(world: World) -> None:
    model = plays(
        background_shell("trap '' TERM; echo ready; while :; do sleep 1000; done"), stop(), "Down."
    )
    async with world.open(model) as app:
        session = await start(app)
        await session.send_message("serve")
        assert "it was stopped" in results(model)[1]
        assert not marked(world)


@pytest.mark.requirement("background:life")
@pytest.mark.parametrize("ending", ["stop_session", "aclose"])
async def test_it_ends_with_the_session_and_that_is_on_record(world: World, ending: str) -> None:
    model = plays(background_shell(SERVER), "Up.", "I see.")
    async with world.open(model) as app:
        session = await start(app)
        await session.send_message("serve")
        assert marked(world)
        if ending == "stop_session":
            await app.sessions.stop_session("s")
            assert not marked(world)
    assert not marked(world)
    async with world.open(model) as app:
        session = await app.sessions.get("s")
        [(_, status, _)] = await shells(session)
        assert status == "exited"
        await session.send_message("and?")
        assert any(
            "bg_1" in line and "was stopped" in line for line in request_lines(model.last_request)
        )


async def test_a_session_with_a_running_command_is_not_unloaded(world: World) -> None:
    model = plays(background_shell(SERVER), "Up.")
    async with world.open(model) as app:
        session = await start(app)
        await session.send_message("serve")
        assert await app.sessions.unload_idle(0) == 0
        await session.kill_background("bg_1")
        assert await app.sessions.unload_idle(0) == 1


async def test_what_another_program_left_is_reported_when_the_session_is_resumed(
    world: World,
) -> None:
    model = plays(background_shell(SERVER), "Up.", "I see.")
    app = await world.open(model).__aenter__()
    session = await start(app)
    await session.send_message("serve")
    await crash(app)
    async with world.open(model) as app:
        session = await app.sessions.get("s")
        assert await shells(session) == [("bg_1", "interrupted", None)]
        assert [note for note in await facts(session, SystemNote) if note.background] == []
        await session.send_message("and?")
        [note] = [note for note in await facts(session, SystemNote) if note.background]
        assert "the program that ran it was interrupted" in note.text
        assert await shells(session) == [("bg_1", "exited", None)]
        assert any(
            "bg_1" in line and "interrupted" in line for line in request_lines(model.last_request)
        )


async def test_an_agents_commands_end_with_the_agent(world: World) -> None:
    model = role_model(
        {"ask": [agent_call("dig"), "Fine."], "dig": [background_shell(SERVER), "Up."]}
    )
    async with world.open(model) as app:
        session = await start(app)
        await session.send_message("ask")
        await gone(world)


async def test_neither_a_fork_nor_an_import_has_it(plain_world: World) -> None:
    model = plays(background_shell(SERVER), "Up.")
    async with plain_world.open(model) as app:
        session = await start(app)
        await session.send_message("serve")
        file = plain_world.base / "session.json"
        await app.sessions.export_session("s", path=file)
        fork = await app.sessions.fork_session("s")
        assert await fork.background_commands() == []
        report = await app.sessions.import_session(file)
        assert await report.session.background_commands() == []
        assert (await shells(session))[0][1] == "running"


# --- another process


OWNER = """
import sys, anyio
from pathlib import Path
from tests.support.background_shell import background_shell, plays, start
from tests.support.world import World

async def main():
    world = World("sqlite", Path(sys.argv[1]))
    async with world.open(plays(background_shell(sys.argv[2]), "Up.")) as app:
        session = await start(app)
        await session.send_message("serve")
        sys.stdout.write("up")
        sys.stdout.flush()
        await anyio.sleep_forever()

anyio.run(main)
"""


@asynccontextmanager
async def owner(world: World, command: str) -> AsyncGenerator[anyio.abc.Process]:
    """Another process that has the session, with a background command."""
    world.project.rmdir()  # it is made there
    argv = [sys.executable, "-c", OWNER, str(world.base), command]
    async with await anyio.open_process(argv, cwd=ROOT, stderr=None) as process:
        assert process.stdout is not None
        with anyio.fail_after(30):
            assert (await process.stdout.receive()).startswith(b"up")
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()


def below(pid: int) -> list[int]:
    """The processes that one has started."""
    return [
        int(child)
        for task in Path(f"/proc/{pid}/task").iterdir()
        for child in (task / "children").read_text().split()
    ]


def keepers_of(pid: int) -> list[int]:
    """The keeper of a process, and its reapers."""
    mark = f"{orphans.KEEPER}=".encode()
    found = [each for each in below(pid) if mark in Path(f"/proc/{each}/environ").read_bytes()]
    assert found
    return [*found, *(reaper for keeper in found for reaper in below(keeper))]


async def kill_outright(process: anyio.abc.Process, *, with_keepers: bool) -> None:
    """Kill a process that has a session, and what would end its commands."""
    # Stopped, so that it does not see and store the end of its keeper.
    process.send_signal(signal.SIGSTOP)
    for pid in keepers_of(process.pid) if with_keepers else []:
        os.kill(pid, signal.SIGKILL)
    process.kill()
    await process.wait()


@pytest.mark.parametrize("with_keepers", [False, True], ids=["alone", "with its keepers"])
@pytest.mark.requirement("background:crash")
async def test_what_a_killed_program_left_running_is_killed_and_reported(
    shared_world: World, with_keepers: bool
) -> None:
    world = shared_world
    model = plays("unused", "unused", "I see.")
    command = "echo ready; echo made > made; setsid sleep 1000 & sleep 1000"
    async with owner(world, command) as process:
        await kill_outright(process, with_keepers=with_keepers)
    if with_keepers:
        assert len(marked(world)) >= 2, "nothing was there to take them along"
    else:
        await gone(world)
    async with world.open(model) as app:
        session = await app.sessions.get("s")
        assert await shells(session) == [("bg_1", "interrupted", None)]
        await session.send_message("and?")
        await gone(world)
        [note] = [note for note in await facts(session, SystemNote) if note.background]
        assert note.background is not None
        assert note.background.why == "lost"
        assert any(
            "bg_1" in line and "killed" in line for line in request_lines(model.last_request)
        )
        [touched] = await facts(session, FileTouched)
        assert (touched.path, touched.is_certain) == ("made", False)
        assert await shells(session) == [("bg_1", "exited", None)]


async def test_one_that_a_killed_program_left_can_be_killed(shared_world: World) -> None:
    world = shared_world
    async with owner(world, SERVER) as process:
        await kill_outright(process, with_keepers=True)
    assert marked(world)
    async with world.open(plays("unused")) as app:
        session = await app.sessions.get("s")
        await session.kill_background("bg_1")
        await gone(world)
        assert await shells(session) == [("bg_1", "exited", None)]


@pytest.mark.requirement("session:kill_background:elsewhere")
async def test_it_is_seen_and_stopped_from_another_process(shared_world: World) -> None:
    world = shared_world
    async with owner(world, SERVER), world.open(plays("unused")) as app:
        session = await app.sessions.get("s")
        [work] = await session.background_commands()
        assert (work.kind, work.title, work.status) == ("shell", SERVER, "running")
        assert marked(world)
        with anyio.fail_after(20):
            await session.kill_background("bg_1")
        assert await shells(session) == [("bg_1", "exited", -15)]
        await gone(world)


# --- leave, and who has the tools


@pytest.mark.requirement("background:judged")
async def test_where_there_is_a_sandbox_only_the_user_lets_it_run_outside(
    plain_world: World,
) -> None:
    world = plain_world
    model = plays(background_shell(SERVER), "Fine.")
    async with world.open(model, config={"sandbox.mode": "auto"}) as app:
        await skip_without_sandbox(app, world)
        session = await app.sessions.start_session(session_id="s", permission_mode="auto")
        await session.send_prompt("serve")
        asked = await until(session, PermissionRequest)
        assert asked.reason == "it would run outside the sandbox"
        assert asked.preview == f"# goes on in the background\n# outside the sandbox\n{SERVER}"
        await session.respond_to_permission("allow_once")
        await until_idle(session)
        assert marked(world)
        assert "reaches its ports only with outside_sandbox" in results(model)[0]


@pytest.mark.parametrize("settings", [{"auto_approve": True}, {"permission_mode": "bypass"}])
async def test_without_a_user_to_ask_it_is_not_let_out_of_the_sandbox(
    plain_world: World, settings: dict[str, Any]
) -> None:
    world = plain_world
    model = plays(background_shell(SERVER), "Fine.")
    async with world.open(model, config={"sandbox.mode": "auto"}) as app:
        await skip_without_sandbox(app, world)
        session = await app.sessions.start_session(session_id="s", **settings)
        await session.send_message("serve")
        assert "Denied" in results(model)[0]
        assert not marked(world)


@pytest.mark.parametrize(
    ("tools", "has_them"),
    [("all", True), (["read", "shell"], True), (["read", "shell_output", "shell_stop"], False)],
)
async def test_who_has_the_shell_looks_after_what_it_left(
    plain_world: World, tools: Any, has_them: bool
) -> None:
    model = plays("Hello.")
    async with plain_world.open(model) as app:
        session = await start(app, tools=tools)
        await session.send_message("hello")
    offered = {tool.name for tool in model.last_request.tools}
    assert ({"shell_output", "shell_stop"} <= offered) is has_them
    assert ({"shell_output", "shell_stop"} & offered != set()) is has_them


async def test_names_that_nothing_has_are_told_to_the_model(plain_world: World) -> None:
    model = plays(look("bg_7"), stop("bg_7"), "Fine.")
    async with plain_world.open(model) as app:
        session = await start(app)
        await session.send_message("look")
        assert all("there is no background command 'bg_7'" in line for line in results(model))


async def test_a_time_that_was_given_is_its_lifetime(plain_world: World) -> None:
    model = plays(background_shell(SERVER, timeout_seconds=0.7), look(), look(), "Fine.", "Over.")
    async with plain_world.open(model) as app:
        session = await start(app)
        await session.send_message("serve")
        note = await until_over(session)
        assert "at the end of the time it was given" in note.text
        assert not marked(plain_world)
