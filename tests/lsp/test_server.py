"""The life of a language server: started once, stopped, and never in a loop."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import pytest

from tests.support.language_project import (
    PATIENCE,
    LanguageProject,
    language_project,
    launcher,
    scripted_spec,
    supervised,
)
from weft.clock import ManualClock, SystemClock
from weft.errors import FinalToolError
from weft.jsonrpc import PeerClosed
from weft.lsp import LanguageServer, ServerLimits, ServerSpec
from weft.workspace.process.orphans import MARK
from weft.workspace.process.piped import PipedProgram, family_of, run_filter, start_piped
from weft.workspace.sandbox.read_only import ReadOnlySandbox

pytestmark = [pytest.mark.anyio, pytest.mark.process]


async def until_not_running(project: LanguageProject) -> None:
    with anyio.fail_after(PATIENCE):
        await project.server.wait_end()


def is_alive(pid: int) -> bool:
    """False for one that is gone, or only waits to be reaped by whoever adopted it."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] not in "ZX"


async def test_a_stand_in_that_says_it_is_not_installed_is_started_once(tmp_path: Path) -> None:
    async with language_project(tmp_path, "proxy") as project:
        assert project.server.use() is not None
        assert not await project.server.ready_within(PATIENCE)
        assert project.server.state == "failed"
        assert project.server.why.startswith("not installed: error: 'rust-analyzer'")
        assert project.server.use() is None, "it is not started again"
        assert project.server.state == "failed"


async def test_a_program_that_speaks_no_protocol_has_failed_with_what_it_said(
    tmp_path: Path,
) -> None:
    async with language_project(tmp_path, "garbage") as project:
        project.server.use()
        assert not await project.server.ready_within(PATIENCE)
        assert project.server.state == "failed"
        assert "listening on stdio" in project.server.why


async def test_one_that_crashes_is_started_again_twice_and_then_no_more(tmp_path: Path) -> None:
    async with language_project(tmp_path, "crash") as project:
        for _ in range(3):
            await project.ready()
            project.edit("a.scr", "CRASH\n")
            await until_not_running(project)
            assert "it met the word" in project.server.why
        assert project.server.use() is None
        assert project.server.state == "failed"
        assert "again and again" in project.server.why


async def test_a_handshake_that_is_refused_without_a_word_is_the_end_of_it(tmp_path: Path) -> None:
    async with language_project(tmp_path, "refuses") as project:
        project.server.use()
        with anyio.fail_after(PATIENCE):
            await project.server.wait_end()
        assert project.server.state == "failed"
        assert "error -32603" in project.server.why


async def test_whatever_ends_it_takes_from_what_it_may_be_restarted(tmp_path: Path) -> None:
    """An error that no one has thought of must not be the way to endless restarts."""

    async def launch(spec: ServerSpec) -> tuple[PipedProgram, ServerSpec]:
        raise RecursionError("a fault of ours")

    async with supervised() as supervisor:
        server = LanguageServer(
            scripted_spec(),
            str(tmp_path),
            launch,
            supervisor.start,
            limits=ServerLimits(restarts=2),
            clock=SystemClock(),
        )
        starts = 0
        while server.use() is not None and starts < 9:
            starts += 1
            await server.wait_end()
        assert starts == 3
        assert server.state == "failed"


async def test_one_that_is_stopped_while_it_is_launched_never_runs(tmp_path: Path) -> None:
    launching, go = anyio.Event(), anyio.Event()
    start = launcher(tmp_path)

    async def launch(spec: ServerSpec) -> tuple[PipedProgram, ServerSpec]:
        launching.set()
        await go.wait()
        return await start(spec)

    async with supervised() as supervisor:
        server = LanguageServer(
            scripted_spec(),
            str(tmp_path),
            launch,
            supervisor.start,
            limits=ServerLimits(),
            clock=SystemClock(),
        )
        server.use()
        await launching.wait()
        await server.stop("enough")
        go.set()
        assert not await server.ready_within(0.3)
        assert (server.state, server.why, server.pid) == ("stopped", "enough", None)


async def test_one_that_does_not_read_any_more_is_ended(tmp_path: Path) -> None:
    async with language_project(tmp_path) as project:
        client = await project.ready()
        client.peer.close("it does not read what it is sent")
        await until_not_running(project)
        assert project.server.why == "it does not read what it is sent"


async def test_what_is_asked_while_it_ends_finds_it_gone(tmp_path: Path) -> None:
    """Between the end of its tasks and that of its process it still counts as ready."""
    async with language_project(tmp_path, "pull") as project:
        client = await project.ready()
        document = project.edit("a.scr", "def x\n")
        assert project.server._life is not None
        project.server._life.group = None
        with pytest.raises(PeerClosed):
            project.edit("a.scr", "def y\n")
        assert document.version == 2
        assert client.documents


async def test_one_that_is_restarted_by_the_user_has_all_its_chances_again(tmp_path: Path) -> None:
    async with language_project(tmp_path, "crash", limits=ServerLimits(restarts=0)) as project:
        await project.ready()
        project.edit("a.scr", "CRASH\n")
        await until_not_running(project)
        assert project.server.use() is None
        await project.server.stop("restarted")
        assert await project.messages("a.scr", "BUG 1\n") == ["BUG 1"]


async def test_one_that_is_not_used_is_stopped_and_comes_back(tmp_path: Path) -> None:
    clock = ManualClock()
    limits = ServerLimits(idle_seconds=60.0, look_seconds=0.01)
    async with language_project(tmp_path, clock=clock, limits=limits) as project:
        await project.ready()
        clock.advance(61.0)
        await until_not_running(project)
        assert (project.server.state, project.server.why) == ("stopped", "idle")
        assert await project.messages("a.scr", "BUG 1\n") == ["BUG 1"]


async def test_one_that_holds_too_much_memory_is_ended(tmp_path: Path) -> None:
    limits = ServerLimits(max_memory=48 * 1024 * 1024, look_seconds=0.01)
    async with language_project(tmp_path, "grow", limits=limits) as project:
        await project.ready()
        project.edit("a.scr", "def x\n")
        await until_not_running(project)
        assert "more than lsp.max_memory allows" in project.server.why


async def test_nothing_that_it_started_outlives_it(tmp_path: Path) -> None:
    async with language_project(tmp_path, "child") as project:
        await project.messages("a.scr", "BUG 1\n")
        assert project.server.pid is not None
        pids = family_of(project.server.pid)
        assert len(pids) >= 3, "bubblewrap, the server, and the child in a session of its own"
        await project.server.stop("enough")
        assert [pid for pid in pids if is_alive(pid)] == []


async def test_it_can_write_nothing_and_see_no_secrets(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("KEY=canary-1")
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "key").write_text("canary-2")
    box = ReadOnlySandbox(environ=os.environ)
    script = (
        "cat .env hidden/key; touch written /etc/written; echo x > a; cat < /dev/tcp/127.0.0.1/1; "
        "echo end"
    )
    program = await box.start(["/bin/bash", "-c", script], str(tmp_path), [str(hidden)])
    said = b""
    while chunk := await program.receive():
        said += chunk
    await program.kill()
    assert said == b"end\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == [".env", "hidden"]


async def test_where_no_filter_of_system_calls_is_known_nothing_is_started(tmp_path: Path) -> None:
    box = ReadOnlySandbox(environ=os.environ, machine="riscv1024")
    assert "riscv1024" in await box.why_not(str(tmp_path))
    with pytest.raises(FinalToolError, match="riscv1024"):
        await box.start(["/bin/true"], str(tmp_path))


@pytest.mark.parametrize("confined", [True, False])
async def test_a_server_is_told_whose_child_it_is_where_it_can_see_that(
    tmp_path: Path, confined: bool
) -> None:
    """In a namespace of its own it would not find us, take us for dead, and end."""

    async def unconfined(spec: ServerSpec) -> tuple[PipedProgram, ServerSpec]:
        return await start_piped(spec.command, cwd=str(tmp_path), environ=os.environ), spec

    launch = launcher(tmp_path) if confined else unconfined
    async with language_project(tmp_path, "parent", launch=launch) as project:
        expected = None if confined else os.getpid()
        assert await project.messages("a.scr", "def x\n") == [f"processId {expected}"]


async def test_what_runs_inside_another_weft_keeps_its_mark(tmp_path: Path) -> None:
    """By it the outer one finds what it has to end."""
    environ = {"PATH": "/usr/bin:/bin", MARK: "1.2.3.4"}
    program = await start_piped(["cat", "/proc/self/environ"], cwd="/", environ=environ)
    result = await run_filter(program, b"", seconds=PATIENCE, most=10_000)
    marks = dict(each.split(b"=", 1) for each in result.output.split(b"\0") if each)
    assert marks[MARK.encode()].decode().startswith("1.2.3.4/")


async def test_memory_that_is_shared_counts_too(tmp_path: Path) -> None:
    limits = ServerLimits(max_memory=48 * 1024 * 1024, look_seconds=0.01)
    async with language_project(tmp_path, "share", limits=limits) as project:
        await project.ready()
        project.edit("a.scr", "def x\n")
        await until_not_running(project)
        assert "more than lsp.max_memory allows" in project.server.why


async def test_all_processes_of_a_server_go_first_when_memory_runs_out(tmp_path: Path) -> None:
    async with language_project(tmp_path, "child") as project:
        await project.messages("a.scr", "BUG 1\n")
        assert project.server.pid is not None
        with anyio.fail_after(PATIENCE):
            while True:
                pids = family_of(project.server.pid)
                scores = {Path(f"/proc/{pid}/oom_score_adj").read_text().strip() for pid in pids}
                if len(pids) >= 3 and scores == {"500"}:
                    break
                await anyio.sleep(0.01)


@pytest.mark.parametrize("place", ["/tmp", "/var/tmp", "/dev/shm", "/dev", "hidden"])
async def test_files_in_memory_are_bounded(tmp_path: Path, place: str) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    box = ReadOnlySandbox(environ=os.environ, max_files=1024 * 1024)
    script = f"head -c 2000000 /dev/zero > {place}/x; stat -c %s {place}/x || echo 0"
    program = await box.start(["/bin/bash", "-c", script], str(tmp_path), [str(hidden)])
    result = await run_filter(program, b"", seconds=PATIENCE, most=10_000)
    assert int(result.output) <= 1024 * 1024


async def test_servers_that_hold_too_much_together_give_way(tmp_path: Path) -> None:
    """The one that was used longest ago first; it comes back when it is needed."""
    crowd: list[LanguageServer] = []
    limits = ServerLimits(look_seconds=0.01)
    async with (
        language_project(tmp_path, limits=limits, crowd=crowd) as old,
        language_project(tmp_path, limits=limits, crowd=crowd) as new,
    ):
        await old.ready()
        await new.ready()
        new.server.use()
        crowd += [old.server, new.server]
        await until_not_running(old)
        assert "together" in old.server.why
        assert new.server.state == "ready"
        crowd.clear()
        assert await old.messages("a.scr", "BUG 1\n") == ["BUG 1"]
