"""Sessions from outside: all at a glance, their logs, queues and turns, in the background."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from tests.support.weft_program import WeftProgram, call, text
from tests.support.world import PATIENCE, World
from weft.cli.operate.session_overview import SessionLine, in_order, overview
from weft.events import PermissionRequest
from weft.ids import SessionId
from weft.providers.script import CallTool, SayText, Stall
from weft.providers.scripted import ScriptedModel


@pytest.fixture
def short() -> Iterator[WeftProgram]:
    """The program below a path that is short enough for a socket in it, as in a home folder."""
    with tempfile.TemporaryDirectory(prefix="weft") as folder:
        program = WeftProgram(Path(folder))
        yield program
        program.close()


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
def test_a_message_to_a_session_of_no_process_is_worked_on_by_a_server(short: WeftProgram) -> None:
    """The command itself ends at once, and a turn of its own process would end with it."""
    write = call("write", path="b.txt", content="x")
    script = short.script("Hello.", [write], "Written.")
    short.run("-p", "-m", script, "--name", "Outside", "Say hello")
    try:
        sent = short.run("queue", "Outside", "Write it")
        assert "started" in sent.stderr
        session = json.loads(short.run("ps", "--json").stdout)[0]["id"]
        followed = short.start("logs", session, "-f")
        assert followed.stdout is not None
        with followed:
            assert any(b"Write it" in line for line in followed.stdout)
            followed.terminate()
        assert _state_when(short, "needs you") == "write"
        assert f"write b.txt (`weft attach {session}` answers)" in short.run("logs", session).stderr
        assert short.run("queue", "Outside", "And then").stderr == "queued\n"
        assert short.run("stop", "Outside").stderr == "stopped; 1 queued message stays\n"
    finally:
        assert short.run("serve", "stop").returncode == 0


def _state_when(weft: WeftProgram, state: str) -> str:
    """What a session asks for, once it is in this state."""
    watched = weft.start("ps", "--watch", "--json")
    assert watched.stdout is not None
    with watched:
        text = ""
        for line in watched.stdout:
            text += line.decode()
            if line == b"]\n":
                [row] = json.loads(text)
                if row["state"] == state:
                    break
                text = ""
        watched.terminate()
    return str(row["asks"])


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
def test_prompts_in_the_background_that_come_at_once_share_one_server(short: WeftProgram) -> None:
    """On a machine that never had a server, by the path of a socket that the kernel takes."""
    script = short.script("Done.")
    running = [short.start("--bg", "-m", script, "--name", f"At once {n}", "Go") for n in range(3)]
    try:
        ends = [each.communicate() for each in running]
        assert [each.returncode for each in running] == [0, 0, 0], ends
        servers = json.loads(short.run("serve", "status", "--json").stdout)
        assert [each["url"] for each in servers] == [f"unix:{short.data}/server/background.sock"]
    finally:
        stopped = short.run("serve", "stop")
    assert stopped.returncode == 0


@pytest.mark.process
def test_what_is_piped_in_goes_with_a_prompt_in_the_background(short: WeftProgram) -> None:
    script = short.script({"when": {"user_says": "Explain\n\nline 1"}, "steps": [text("Seen.")]})
    try:
        started = short.run("--bg", "-m", script, "Explain", stdin="line 1\n")
        assert started.returncode == 0, started.stderr
        assert "line 1" in short.run("logs", started.stdout.strip()).stdout
        # What cannot be begun leaves no empty session behind.
        refused = short.run("--bg", "-m", "local:no-such-model", "Explain")
        assert refused.returncode != 0
        assert len(json.loads(short.run("ps", "--json").stdout)) == 1
    finally:
        assert short.run("serve", "stop").returncode == 0


@pytest.mark.parametrize(
    "options",
    [
        ["--disallowedTools", "Bash(rm *)"],
        ["--allowedTools", "Read"],
        ["--continue"],
        ["--resume", "ses_1"],
        ["--ephemeral"],
        ["--no-sandbox"],
        ["--add-dir", "/tmp"],
        ["--mcp-config", "{}"],
        ["--output-format", "json"],
        ["--print"],
        ["--set", "model.default=x"],
        ["--permission-mode", "dontAsk"],
    ],
)
def test_an_option_that_the_server_would_not_know_of_is_refused(
    options: list[str], weft: WeftProgram
) -> None:
    """A rule that is left out in silence would be a veto that is missing."""
    done = weft.call("--bg", *options, "Go")
    assert done.returncode == 2
    assert f"--bg takes no {options[0]}" in done.stderr
    assert not (weft.data / "server").exists()


@pytest.mark.process
def test_the_store_is_backed_up_checked_and_shrunk_from_the_command_line(
    weft: WeftProgram,
) -> None:
    weft.run("-p", "-m", weft.script("Hello."), "Say hello")
    assert weft.run("store", "path").stdout == f"{weft.data / 'weft.db'}\n"
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
    assert "takes the file" in weft.call("store", "backup", "").stderr
    other = weft.call("store", "verify", "/etc/passwd")
    assert (other.returncode, other.stdout) == (1, "the file: file is not a database\n")
