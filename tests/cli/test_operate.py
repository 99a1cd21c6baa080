"""Sessions from outside: all at a glance, their logs, queues and turns, in the background."""

from __future__ import annotations

import json

import anyio
import anyio.lowlevel
import pytest

from tests.support.weft_program import WeftProgram
from tests.support.world import PATIENCE, World
from weft.cli.operate.session_overview import SessionLine, in_order, overview
from weft.events import PermissionRequest
from weft.ids import SessionId
from weft.providers.script import CallTool, SayText, Stall
from weft.providers.scripted import ScriptedModel


@pytest.mark.anyio
async def test_sessions_that_need_the_user_come_first(shared_world: World) -> None:
    """Also those that another process has; what none works on is not opened for it."""
    write = CallTool(name="write", args={"path": "new.txt", "content": "x"})
    model = ScriptedModel(["Yes.", write, (SayText(text="one"), Stall())])
    async with shared_world.open(model) as owner:
        idle = await owner.sessions.start_session(title="Idle")
        await idle.send_message("Go.")
        first = await owner.sessions.start_session(title="Asks")
        events = await first.subscribe(after=0)
        await first.send_prompt("Write it.")
        with anyio.fail_after(PATIENCE):
            async for event in events:
                if isinstance(event, PermissionRequest):
                    break
            second = await owner.sessions.start_session(title="Works")
            await second.send_prompt("Go.")
            await model.gate().reached.wait()
        async with shared_world.open(ScriptedModel([])) as app:
            lines = await overview(app, 20)
            assert [(each.title, each.state) for each in lines] == [
                ("Asks", "needs you"),
                ("Works", "working"),
                ("Idle", "idle"),
            ]
            assert lines[0].asks == "write"
            assert len(await overview(app, 1)) == 1
    async with shared_world.open(ScriptedModel([])) as app:
        states = {each.title: each.state for each in await overview(app, 20)}
        assert states == {"Asks": "interrupted", "Works": "interrupted", "Idle": "idle"}
        assert await app.sessions.list_active() == []


def test_the_order_is_by_need_and_then_by_time() -> None:
    lines = [
        _line("idle", 9.0),
        _line("working", 1.0),
        _line("needs you", 2.0),
        _line("error", 5.0),
        _line("needs you", 3.0),
    ]
    ordered = [(each.state, each.last_active) for each in in_order(lines)]
    assert ordered == [
        ("needs you", 3.0),
        ("needs you", 2.0),
        ("error", 5.0),
        ("working", 1.0),
        ("idle", 9.0),
    ]


def _line(state: str, at: float) -> SessionLine:
    return SessionLine(
        id=SessionId("ses_1"),
        state=state,  # type: ignore[arg-type]  # one of them, as written above
        title="",
        project_path="",
        model="",
        last_active=at,
        cost_usd=0.0,
    )


@pytest.mark.process
def test_a_session_is_read_queued_and_stopped_from_outside(weft: WeftProgram) -> None:
    script = weft.script("Hello.", "And more.")
    weft.run("-p", "-m", script, "--name", "Outside", "Say hello")
    said = weft.run("logs", "Outside")
    assert "Say hello" in said.stdout
    assert "Hello." in said.stdout
    facts = [json.loads(line) for line in weft.run("logs", "Outside", "--json").stdout.splitlines()]
    assert [fact["seq"] for fact in facts] == list(range(1, len(facts) + 1))
    assert "nothing is queued" in weft.run("queue", "Outside").stderr
    assert "nothing is at work" in weft.run("stop", "Outside").stderr
    assert "weft ps" in weft.run("logs").stderr
    rows = json.loads(weft.run("ps", "--json").stdout)
    assert [(row["title"], row["state"]) for row in rows] == [("Outside", "idle")]
    assert "Outside" in weft.run("ps").stdout


@pytest.mark.process
def test_a_prompt_in_the_background_is_worked_on_by_a_server(weft: WeftProgram) -> None:
    """Without one it starts one, on a unix socket: no port is opened."""
    script = weft.script("Done in the background.")
    started = weft.run("--bg", "-m", script, "--name", "Behind", "Do it")
    assert started.returncode == 0, started.stderr
    session = started.stdout.strip()
    try:
        assert session.startswith("ses_")
        assert "weft attach" in started.stderr
        servers = json.loads(weft.run("serve", "status", "--json").stdout)
        assert [each["url"].partition(":")[0] for each in servers] == ["unix"]
        followed = weft.start("logs", session, "-f")
        assert followed.stdout is not None
        with followed:
            assert any(b"Done in the background." in line for line in followed.stdout)
            followed.terminate()
    finally:
        assert weft.run("serve", "stop").returncode == 0
    assert "needs a prompt" in weft.run("--bg").stderr


@pytest.mark.process
def test_the_store_is_backed_up_checked_and_shrunk_from_the_command_line(
    weft: WeftProgram,
) -> None:
    weft.run("-p", "-m", weft.script("Hello."), "Say hello")
    copy = weft.home / "copy.db"
    assert weft.run("store", "backup", str(copy)).returncode == 0
    checked = weft.run("store", "verify", str(copy))
    assert checked.returncode == 0
    assert "all is well" in checked.stderr
    assert json.loads(weft.run("store", "verify", "--json").stdout)["problems"] == []
    copy.write_bytes(copy.read_bytes()[:-4096])
    damaged = weft.run("store", "verify", str(copy))
    assert damaged.returncode == 1
    assert damaged.stdout or damaged.stderr
    assert json.loads(weft.run("store", "vacuum", "--json").stdout)["freed"] >= 0
    assert "there is no store" in weft.run("store", "verify", "/no/such").stderr
    assert "takes the file" in weft.run("store", "backup").stderr
