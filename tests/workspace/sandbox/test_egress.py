"""The way out of the sandbox for allowed hosts: nothing but the proxy is reached, by root or by
anybody; and programs that people use work through it.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from tests.support.allowed_hosts import file_server, judge, proxy
from tests.support.sandbox_cell import sandbox_cell
from tests.support.sandboxed_project import sandboxed_project
from weft.workspace import ProcessCommand
from weft.workspace.egress.judge import EgressJudge
from weft.workspace.sandbox.machine import PROXY_PORT, SandboxOptions

pytestmark = pytest.mark.anyio

WHO = pytest.mark.parametrize("who", ["root", "nobody", "me"])
TCP = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 2)"
UDP = "import socket, sys; socket.socket(2, 2).sendto(b'out', ('127.0.0.1', int(sys.argv[1])))"
ASK = (
    "import socket, sys\n"
    f"s = socket.create_connection(('127.0.0.1', {PROXY_PORT}), 5)\n"
    "s.sendall(sys.argv[1].encode().decode('unicode_escape').encode('latin-1'))\n"
    "data = b''\n"
    "while (more := s.recv(65536)): data += more\n"
    "print(data.decode('latin-1'))"
)


def asking(host: str, port: int) -> str:
    return f"GET http://{host}:{port}/file HTTP/1.1\\r\\nHost: {host}:{port}\\r\\n\\r\\n"


# --- the walls


@WHO
async def test_only_allowed_hosts_are_reached_and_only_by_the_proxy(
    who: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("content")
    with file_server(tmp_path) as port, closing(datagrams()) as udp:
        way_out = proxy(f"allow localhost:{port}")
        async with sandbox_cell(who) as box:
            ask = (ASK, asking("localhost", port))
            assert await box.python(*ask, reaching=way_out) == 0
            assert "content" in box.output
            assert await box.python(ASK, asking("127.0.0.1", port), reaching=way_out) == 0
            assert "403 Forbidden" in box.output
            # Past the proxy there is nothing: no server of this machine, no packet, no name.
            assert await box.python(TCP, "127.0.0.1", str(port), reaching=way_out) != 0
            await box.python(UDP, str(udp.getsockname()[1]), reaching=way_out)
            assert await box.run("getent", "hosts", "example.org", reaching=way_out) != 0
        with pytest.raises(BlockingIOError):
            udp.recv(10)


@WHO
async def test_another_command_does_not_reach_the_proxy(who: str, tmp_path: Path) -> None:
    """It is in another network, even while the first command runs."""
    async with sandbox_cell(who) as box, anyio.create_task_group() as group:
        waits = "while [ ! -e {} ]; do sleep 0.02; done"
        stop = box.outside / "stop"

        async def first() -> None:
            await box.shell(waits.format(stop), reaching=proxy("allow localhost"))

        group.start_soon(first)
        assert await box.python(TCP, "127.0.0.1", str(PROXY_PORT)) != 0
        stop.touch()


async def test_in_the_network_of_all_commands_it_could() -> None:
    """What keeps it out is the network of its own: in that of all commands the port is open."""

    def without(source: str) -> str:
        apart = "            flags |= CLONE_NEWNET\n"
        raised = "            raise_loopback()\n            self._hand_out"
        assert apart in source
        assert raised in source
        return source.replace(apart, "").replace(raised, "            self._hand_out")

    async with sandbox_cell(without=without) as box, anyio.create_task_group() as group:
        done = box.outside / "stop"

        async def first() -> None:
            line = f"while [ ! -e {done} ]; do sleep 0.02; done"
            await box.shell(f": > /dev/null; {line}", reaching=proxy("allow localhost"))

        group.start_soon(first)
        reached = -1
        with anyio.fail_after(20):
            while reached != 0:
                reached = await box.python(TCP, "127.0.0.1", str(PROXY_PORT)) or 0
        done.touch()


@WHO
async def test_the_command_has_no_descriptor_of_the_listener_and_no_unix_socket(who: str) -> None:
    async with sandbox_cell(who) as box:
        way_out = proxy("allow localhost")
        assert await box.shell("ls /proc/self/fd", reaching=way_out) == 0
        assert set(box.output.split()) <= {"0", "1", "2", "3"}
        assert await box.python("import socket; socket.socket(socket.AF_UNIX)", reaching=way_out)
        assert "PermissionError" in box.output
        # Nor can it take the place of the proxy.
        bind = f"import socket; socket.create_server(('127.0.0.1', {PROXY_PORT}))"
        assert await box.python(bind, reaching=way_out) != 0
        assert await box.shell("ip link add x type dummy || unshare -n true", reaching=way_out)


@WHO
async def test_its_own_servers_are_reached(who: str) -> None:
    script = (
        "import socket; s = socket.create_server(('127.0.0.1', 0));"
        "socket.create_connection(s.getsockname()); s.accept()"
    )
    async with sandbox_cell(who) as box:
        assert await box.python(script, reaching=proxy("allow localhost")) == 0, box.output


def datagrams() -> socket.socket:
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.bind(("127.0.0.1", 0))
    receiver.setblocking(False)
    return receiver


# --- programs


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"there is no {program}")


def allowing(*rules: str) -> EgressJudge:
    return judge(*rules)


async def run(tmp_path: Path, rules: tuple[str, ...], *lines: str) -> list[tuple[int, str]]:
    """The lines, one command after the other, in a project whose commands have these rules."""
    base = tmp_path / "base"
    base.mkdir(exist_ok=True)
    async with sandboxed_project(base, egress=lambda command: judge(*rules)) as there:
        found = []
        for line in lines:
            result = await there.shell(line)
            found.append((result.exit_code, result.output + "\n".join(result.remarks)))
        return found


def make_repository(work: Path, bare: Path) -> None:
    """A bare repository that a server of files can serve."""
    me = ("-c", "user.name=a", "-c", "user.email=a@b")
    for line in (
        ["git", "init", "-q", str(work)],
        ["git", *me, "-C", str(work), "commit", "-q", "--allow-empty", "-m", "x"],
        ["git", "clone", "-q", "--bare", str(work), str(bare)],
        ["git", "-C", str(bare), "update-server-info"],
    ):
        subprocess.run(line, check=True, capture_output=True)


@needs("git")
async def test_git_lists_the_refs_of_an_allowed_host_and_of_no_other(tmp_path: Path) -> None:
    served = tmp_path / "served"
    await anyio.to_thread.run_sync(make_repository, tmp_path / "work", served / "r.git")
    with file_server(served) as port:
        rules = (f"allow localhost:{port}",)
        good, bad = await run(
            tmp_path,
            rules,
            f"git ls-remote http://localhost:{port}/r.git && git clone -q "
            f"http://localhost:{port}/r.git mine && git -C mine log --format=%s",
            "git ls-remote http://other.example/r.git",
        )
    assert (good[0], "refs/heads" in good[1], good[1].endswith("x\n")) == (0, True, True), good
    assert bad[0] != 0
    assert "fetch(domain:other.example)" in bad[1]


async def test_pip_downloads_from_an_allowed_host_and_from_no_other(tmp_path: Path) -> None:
    pip = shutil.which("pip3", path="/usr/bin:/usr/local/bin") or shutil.which("pip")
    if pip is None:
        pytest.skip("there is no pip")
    import zipfile

    folder = tmp_path / "served" / "simple" / "thing"
    folder.mkdir(parents=True)
    wheel = "thing-1.0-py3-none-any.whl"
    with zipfile.ZipFile(folder / wheel, "w") as made:
        made.writestr("thing.py", "")
        about = "thing-1.0.dist-info"
        made.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n")
        tag = "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        made.writestr(f"{about}/WHEEL", tag)
        made.writestr(f"{about}/RECORD", "")
    (folder / "index.html").write_text(f'<a href="{wheel}">{wheel}</a>')
    options = "--trusted-host other.example --retries 0 -q --no-deps"
    line = f"{pip} download {options} --index-url http://{{}}/simple thing && ls"
    with file_server(tmp_path / "served") as port:
        good, bad = await run(
            tmp_path,
            (f"allow localhost:{port}",),
            line.format(f"localhost:{port}"),
            f"rm -f *.whl; {line.format('other.example')}",
        )
    assert good[0] == 0, good
    assert wheel in good[1]
    assert bad[0] != 0
    assert "fetch(domain:other.example)" in bad[1]


@needs("npm")
async def test_npm_looks_up_a_package_of_an_allowed_host_and_of_no_other(tmp_path: Path) -> None:
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "thing").write_text(
        '{"name": "thing", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": '
        '{"name": "thing", "version": "1.0.0", "dist": {"tarball": "http://x/y.tgz"}}}}'
    )
    line = "npm view --fetch-retries=0 --cache /tmp/npm --registry http://{}/ thing version"
    with file_server(folder) as port:
        good, bad = await run(
            tmp_path,
            (f"allow localhost:{port}",),
            line.format(f"localhost:{port}"),
            line.format("other.example"),
        )
    assert (good[0], "1.0.0" in good[1]) == (0, True), good
    assert bad[0] != 0
    assert "fetch(domain:other.example)" in bad[1]


PULL = (
    "import os, sys, urllib.request, concurrent.futures as c\n"
    "def get(n): return len(urllib.request.urlopen(sys.argv[1]).read())\n"
    "with c.ThreadPoolExecutor(50) as pool: print(sum(pool.map(get, range(200))))"
)


async def test_fifty_connections_at_once_get_all_they_asked_for(tmp_path: Path) -> None:
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "file").write_bytes(b"x" * 100_000)
    with file_server(folder) as port:
        script = f'{sys.executable} -c "$PULL" http://localhost:{port}/file'
        (found,) = await run(tmp_path, (f"allow localhost:{port}",), f"PULL='{PULL}'; {script}")
    assert found == (0, "20000000\n")


async def test_a_large_download_takes_no_memory_of_ours(tmp_path: Path) -> None:
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "file").touch()
    os.truncate(folder / "file", 400 * 1024 * 1024)

    def peak() -> int:
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))

    with file_server(folder) as port:
        rules = (f"allow localhost:{port}",)
        script = (
            "import sys, urllib.request\n"
            "source, size = urllib.request.urlopen(sys.argv[1]), 0\n"
            "while (data := source.read(1 << 20)): size += len(data)\n"
            "print(size)"
        )
        before = peak()
        (found,) = await run(
            tmp_path, rules, f"{sys.executable} -c '{script}' http://localhost:{port}/file"
        )
        assert found == (0, f"{400 * 1024 * 1024}\n")
        assert peak() - before < 64 * 1024


async def test_an_abort_ends_the_command_its_connections_and_its_proxy(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
        opened: list[socket.socket] = []
        async with sandboxed_project(
            tmp_path, egress=lambda command: judge(f"allow localhost:{port}")
        ) as there:
            before = len(os.listdir("/proc/self/fd"))
            with anyio.fail_after(20):
                async with anyio.create_task_group() as group:
                    group.start_soon(there.shell, f"curl -s http://localhost:{port}/")
                    opened.append((await anyio.to_thread.run_sync(server.accept))[0])
                    group.cancel_scope.cancel()
            with closing(opened[0]):
                opened[0].settimeout(10)
                while opened[0].recv(1000):
                    pass  # the request, then the end
            assert len(os.listdir("/proc/self/fd")) <= before + 1
            assert (await there.shell("echo on")).output == "on\n"


async def test_where_nothing_is_allowed_a_command_has_no_proxy_and_no_network_of_its_own(
    tmp_path: Path,
) -> None:
    asked: list[ProcessCommand] = []

    def nothing(command: ProcessCommand) -> None:
        asked.append(command)

    async with sandboxed_project(tmp_path, egress=nothing) as there:
        first = await there.shell("readlink /proc/self/ns/net; env | grep -ci proxy")
        second = await there.shell("readlink /proc/self/ns/net; env | grep -ci proxy")
        assert first.output == second.output
        assert first.output.endswith("\n0\n")
        assert len(asked) == 2


async def test_with_the_machines_network_there_is_no_proxy(tmp_path: Path) -> None:
    async with sandboxed_project(
        tmp_path,
        settled=SandboxOptions(network=True),
        egress=lambda command: judge("allow localhost"),
    ) as there:
        assert (await there.shell("env | grep -ci proxy_")).output == "0\n"
