"""Views that stay: one tree for commands inside and tools outside, shared with nothing else."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from tests.support.allowed_hosts import file_server, judge
from tests.support.fan_project import viewed_project
from weft.errors import FinalToolError
from weft.workspace import ProcessCommand, RunResult
from weft.workspace.sandbox.client import SandboxUnavailable
from weft.workspace.sandbox.machine import PROXY_PORT
from weft.workspace.views import held_view
from weft.workspace.views.held_view import HeldView, ViewPlace

pytestmark = [pytest.mark.anyio, pytest.mark.process]

SERVER = (
    "python3 -c \"import socket; s = socket.socket(); s.bind(('127.0.0.1', 3000)); s.listen();"
    " socket.create_connection(('127.0.0.1', 3000)); print('bound', flush=True); "
    'import time; time.sleep(0.3)"'
)


async def test_commands_inside_and_tools_outside_see_one_tree_and_the_project_none_of_it(
    tmp_path: Path,
) -> None:
    async with viewed_project(tmp_path, views=2) as at:
        workspace = at.views[0].workspace()
        await at.shell(0, "echo inside > made.txt; rm src/two.txt; ln -s src/one.txt link")
        assert (await workspace.read("made.txt")).data == b"inside\n"
        assert await workspace.resolve("link") == "src/one.txt"
        assert await workspace.peek("src/two.txt") is None
        before = await workspace.read("src/one.txt")
        await workspace.write("src/one.txt", b"outside\n", expected=before.hash)
        await workspace.write("a/b/new.txt", b"deep\n", expected=None)
        assert await at.shell(0, "cat link a/b/new.txt") == (0, "outside\ndeep\n")
        assert (await at.shell(1, "cat src/one.txt made.txt"))[1].startswith("one\nchanged\n")
        assert sorted(os.listdir(at.project)) == sorted(
            [".env", ".git", ".gitignore", "new.txt", "node_modules", "src"]
        )
        assert (at.project / "src/one.txt").read_text() == "one\nchanged\n"


async def test_a_link_that_leads_out_of_the_view_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    async with viewed_project(tmp_path) as at:
        await at.shell(0, f"ln -s {tmp_path}/secret out; ln -s ../../x up; ln -s $PWD/new.txt in")
        workspace = at.views[0].workspace()
        for name in ("out", "up"):
            with pytest.raises(FinalToolError, match="leads out"):
                await workspace.read(name)
        assert (await workspace.read("in")).data == b"new\n"


async def test_two_views_bind_the_same_port_at_once_and_reach_their_own_server(
    tmp_path: Path,
) -> None:
    async with viewed_project(tmp_path, views=2) as at:
        said: list[tuple[int, str]] = []

        async def serve(number: int) -> None:
            said.append(await at.shell(number, SERVER))

        async with anyio.create_task_group() as group:
            group.start_soon(serve, 0)
            group.start_soon(serve, 1)
        assert said == [(0, "bound\n"), (0, "bound\n")]


async def test_a_command_of_a_view_reaches_what_its_rules_allow_and_the_others_do_not(
    tmp_path: Path,
) -> None:
    served = tmp_path / "served"
    served.mkdir()
    (served / "file").write_text("content")
    async with viewed_project(tmp_path) as at:
        with file_server(served) as port:
            rules = judge(f"allow localhost:{port}")
            runner = at.views[0].runner(
                at.runner, lambda command: rules if "curl" in command.argv[2] else None
            )

            async def ran(line: str) -> RunResult:
                argv = ("/bin/sh", "-c", line)
                return await runner.run(ProcessCommand(argv=argv, cwd=str(at.project)))

            good = await ran(f"curl -s http://localhost:{port}/file | tee fetched.txt")
            assert good.output == "content"
            assert await at.shell(0, "cat fetched.txt") == (0, "content")
            other = await ran("curl -s http://other.example/file")
            assert "the sandbox does not reach other.example" in other.output
            assert "fetch(domain:other.example)" in other.remarks[0]
            # Beside one that has a way out, another has none: they are in different networks.
            reach = f"import socket; socket.create_connection(('127.0.0.1', {PROXY_PORT}), 2)"
            waiting = (
                f"curl -s -o /dev/null http://localhost:{port}/; until test -e end; do :; done"
            )
            async with anyio.create_task_group() as group:
                group.start_soon(ran, waiting)
                assert (await ran(f'python3 -c "{reach}"')).exit_code != 0
                await ran("touch end")


async def test_where_the_network_is_allowed_views_work_and_use_the_machine_s(
    tmp_path: Path,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        reach = f"python3 -c \"import socket; socket.create_connection(('127.0.0.1', {port}))\""
        async with viewed_project(tmp_path, views=2, network=True) as at:
            assert not at.views[0].has_own_network
            for number in (0, 1):
                assert await at.shell(number, f"{reach}; echo $? > own.txt; cat own.txt") == (
                    0,
                    "0\n",
                )
            # One command after the other, in one view.
            assert await at.shell(0, "cat own.txt") == (0, "0\n")


async def test_commands_run_side_by_side_in_one_view_and_end_by_themselves(tmp_path: Path) -> None:
    async with viewed_project(tmp_path) as at:
        ends: list[tuple[int, str]] = []

        async def run(line: str) -> None:
            ends.append(await at.shell(0, line))

        async with anyio.create_task_group() as group:
            # The first goes on only when the second has run; its end takes nothing of the other.
            group.start_soon(run, "until [ -e sign ]; do sleep 0.02; done; sleep 0.1; echo first")
            group.start_soon(run, "touch sign; echo second")
        assert sorted(ends) == [(0, "first\n"), (0, "second\n")]


async def test_secrets_are_hidden_from_commands_and_tools(tmp_path: Path) -> None:
    async with viewed_project(tmp_path) as at:
        code, output = await at.shell(0, "cat .env")
        assert code != 0
        assert "secret" not in output
        # Root may open the empty file that stands in its place; others may not even that.
        with suppress(FinalToolError):
            assert (await at.views[0].workspace().read(".env")).data == b""


async def test_one_place_is_never_mounted_twice_and_what_was_written_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with viewed_project(tmp_path) as at:
        first = at.views[0]
        await at.shell(0, "echo kept > kept.txt")
        sandbox = first._sandbox  # the second one has to be of the same keeper
        again = HeldView(sandbox, root=first.root, place=first.place, pins=(at.base.pin,))
        monkeypatch.setattr(held_view, "LOCK_SECONDS", 0.1)
        with pytest.raises(SandboxUnavailable, match="in use"):
            await again.open()
        await first.close()
        monkeypatch.undo()
        await again.open()
        assert (await again.workspace().read("kept.txt")).data == b"kept\n"
        await again.close()


async def test_a_view_that_broke_down_is_made_anew_with_the_next_command(tmp_path: Path) -> None:
    async with viewed_project(tmp_path) as at:
        await at.shell(0, "echo kept > kept.txt")
        cell = at.views[0]._cell
        assert cell is not None
        cell.signal(b"kill")
        assert await at.shell(0, "cat kept.txt") == (0, "kept\n")


async def test_nothing_runs_outside_and_a_full_overlay_refuses_commands(tmp_path: Path) -> None:
    async with viewed_project(tmp_path) as at:
        runner = at.views[0].runner(at.runner)
        outside = ProcessCommand(argv=("true",), cwd=str(at.project), is_unconfined=True)
        with pytest.raises(FinalToolError, match="overlay"):
            await runner.run(outside)
        at.views[0].most_bytes = 1000
        assert (await at.shell(0, "head -c 5000 /dev/zero > big"))[0] == 0
        with pytest.raises(FinalToolError, match="limit"):
            await at.shell(0, "true")


def test_a_place_has_the_mode_of_the_project(tmp_path: Path) -> None:
    os.chmod(tmp_path, 0o750)
    place = ViewPlace(folder=str(tmp_path / "place"))
    place.make(str(tmp_path))
    assert os.stat(place.upper).st_mode & 0o777 == 0o750
