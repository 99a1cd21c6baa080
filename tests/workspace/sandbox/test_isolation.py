"""Twelve ways out of the sandbox, each tried as root and as nobody, and each tried again with its
wall taken down.

A probe that fails for another reason than the wall would prove nothing; so for every one there is a
twin in which just that wall is missing, and there the way is open.
"""

from __future__ import annotations

import os
import pty
import socket
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.support.sandbox_cell import (
    NEEDS_LANDLOCK,
    WITHOUT_LANDLOCK,
    SandboxCell,
    keeper_without,
    sandbox_cell,
)

pytestmark = pytest.mark.anyio

WHO = pytest.mark.parametrize("who", ["root", "nobody", "me"])

KEEPS_ALL = keeper_without("forswear_capabilities()")
"""A keeper whose commands have every capability that it has itself."""


def with_a_writable_disk(argv: list[str]) -> list[str]:
    return ["--bind" if word == "--ro-bind" else word for word in argv]


def without_the_switch(argv: list[str]) -> list[str]:
    return [word for word in argv if word != "--disable-userns"]


# --- 1: writing elsewhere


@WHO
async def test_nothing_but_the_project_can_be_written(who: str) -> None:
    async with sandbox_cell(who) as box:
        assert await box.shell(f"echo harm > {box.outside}/canary") != 0
        assert "Read-only file system" in box.output
        assert await box.shell("echo harm > /etc/weft-was-here") != 0
        assert (box.outside / "canary").read_text() == "unharmed"
    assert not Path("/etc/weft-was-here").exists()


@NEEDS_LANDLOCK
async def test_landlock_keeps_files_of_a_writable_disk_from_being_written_to() -> None:
    async with sandbox_cell(argv=with_a_writable_disk) as box:
        assert await box.shell(f"echo harm > {box.outside}/canary") != 0
        assert "Permission denied" in box.output
        assert (box.outside / "canary").read_text() == "unharmed"


async def test_on_a_writable_disk_without_it_they_could() -> None:
    async with sandbox_cell(argv=with_a_writable_disk, without=WITHOUT_LANDLOCK) as box:
        assert await box.shell(f"echo harm > {box.outside}/canary") == 0
        assert (box.outside / "canary").read_text() == "harm\n"


# --- 2: making the disk writable again


REMOUNT = (
    "import ctypes, sys; libc = ctypes.CDLL(None, use_errno=True)\n"
    "done = libc.mount(b'none', b'/', None, 32 | 4096, None)\n"
    "sys.exit(0 if done == 0 else ctypes.get_errno())"
)


@WHO
async def test_the_disk_cannot_be_mounted_anew(who: str) -> None:
    async with sandbox_cell(who) as box:
        assert await box.python(REMOUNT) == 1
        assert await box.shell(f"echo harm > {box.outside}/canary") != 0


@WHO
async def test_no_filter_is_needed_for_that_nor_a_lack_of_capabilities(who: str) -> None:
    """The kernel locks what bubblewrap mounted, even for a command that kept every capability of
    its namespace.
    """
    async with sandbox_cell(who, without=KEEPS_ALL, filtered=False) as box:
        assert await box.python(REMOUNT) == 1
        assert await box.shell(f"echo harm > {box.outside}/canary") != 0


@WHO
async def test_no_capability_is_left_and_none_can_be_had(who: str) -> None:
    async with sandbox_cell(who) as box:
        assert await box.shell("grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status") == 0
        sets = dict(line.split(":\t") for line in box.output.splitlines())
        capabilities = {name: value for name, value in sets.items() if name.startswith("Cap")}
        assert set(capabilities.values()) == {"0" * 16}
        assert (sets["NoNewPrivs"], sets["Seccomp"]) == ("1", "2")


async def test_a_keeper_that_gives_up_nothing_hands_it_on() -> None:
    async with sandbox_cell(without=KEEPS_ALL, filtered=False) as box:
        assert await box.shell("grep -E '^(CapEff|Seccomp:)' /proc/self/status") == 0
        assert "0" * 16 not in box.output
        assert "Seccomp:\t0" in box.output


# --- 3: a namespace of one's own


@WHO
async def test_no_namespace_can_be_made(who: str) -> None:
    async with sandbox_cell(who) as box:
        assert await box.run("unshare", "--user", "--map-root-user", "true") != 0
        assert await box.run("unshare", "--mount", "true") != 0


@WHO
async def test_the_filter_is_not_alone_in_that(who: str) -> None:
    async with sandbox_cell(who, filtered=False) as box:
        assert await box.run("unshare", "--user", "--map-root-user", "true") != 0


async def test_without_both_a_namespace_can_be_made() -> None:
    async with sandbox_cell(argv=without_the_switch, filtered=False) as box:
        assert await box.run("unshare", "--user", "true") == 0


# --- 4: other processes


PTRACE = (
    "import ctypes, sys; libc = ctypes.CDLL(None, use_errno=True)\n"
    "done = libc.ptrace(ctypes.c_long(int(sys.argv[1])), "
    "ctypes.c_long(int(sys.argv[2])), None, None)\n"
    "sys.exit(0 if done == 0 else ctypes.get_errno())"
)


@WHO
async def test_no_process_can_be_looked_into(who: str) -> None:
    async with sandbox_cell(who) as box:
        assert await box.python(PTRACE, "16", "1") == 1
        assert await box.python(PTRACE, "0", "0") == 1
        assert await box.shell("cat /proc/1/environ /proc/1/maps") != 0


@WHO
async def test_the_one_that_holds_the_box_cannot_be_looked_into_without_the_filter(
    who: str,
) -> None:
    async with sandbox_cell(who, filtered=False) as box:
        assert await box.python(PTRACE, "0", "0") == 0
        assert await box.python(PTRACE, "16", "1") == 1


# --- 5: typing into the terminal


TYPE = (
    "import fcntl, sys\n"
    "fcntl.ioctl(0, 0x540E, 0)\n"  # TIOCSCTTY
    "fcntl.ioctl(0, 0x5412, b'x')"  # TIOCSTI
)


async def types(box: SandboxCell) -> bool:
    """Whether a command with a terminal can type into it."""
    master, slave = pty.openpty()
    try:
        os.fchmod(slave, 0o666)
        return await box.python(TYPE, stdin=slave) == 0
    finally:
        os.close(master)
        os.close(slave)


@WHO
async def test_nothing_can_be_typed_into_a_terminal(who: str) -> None:
    async with sandbox_cell(who) as box:
        assert not await types(box)
        assert "PermissionError" in box.output


async def test_without_the_filter_it_could_be() -> None:
    setting = Path("/proc/sys/dev/tty/legacy_tiocsti")
    if setting.exists() and setting.read_text().strip() == "0":
        pytest.skip("the kernel itself forbids it")
    async with sandbox_cell(filtered=False) as box:
        assert await types(box)


# --- 8: unix sockets


CONNECT = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"


@WHO
async def test_no_server_outside_can_be_reached_by_its_path(who: str) -> None:
    async with sandbox_cell(who) as box:
        with listening(box.outside / "socket"):
            assert await box.python(CONNECT, str(box.outside / "socket")) != 0
            assert "PermissionError" in box.output


async def test_where_unix_sockets_are_allowed_it_can() -> None:
    async with sandbox_cell(unix_sockets=True) as box:
        with listening(box.outside / "socket"):
            assert await box.python(CONNECT, str(box.outside / "socket")) == 0


async def test_a_pair_of_sockets_is_no_way_out_and_works() -> None:
    async with sandbox_cell() as box:
        assert await box.python("import socket; socket.socketpair()") == 0


def listening(path: Path) -> closing[socket.socket]:
    server = socket.socket(socket.AF_UNIX)
    # By a short name: a socket's path may not be long.
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        os.symlink(path.parent, f"{folder}/x")
        server.bind(f"{folder}/x/{path.name}")
    path.chmod(0o666)
    server.listen()
    return closing(server)


# --- 9, 10: the network


TCP = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 2)"
UDP = "import socket, sys; socket.socket(2, 2).sendto(b'out', ('127.0.0.1', int(sys.argv[1])))"


@WHO
async def test_no_packet_leaves(who: str) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as tcp, closing(datagrams()) as udp:
        async with sandbox_cell(who) as box:
            assert await box.python(TCP, str(tcp.getsockname()[1])) != 0
            await box.python(UDP, str(udp.getsockname()[1]))
            assert await box.run("getent", "hosts", "example.org") != 0
        with pytest.raises(BlockingIOError):
            udp.recv(10)


async def test_with_the_network_they_do() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as tcp, closing(datagrams()) as udp:
        async with sandbox_cell(network=True) as box:
            assert await box.python(TCP, str(tcp.getsockname()[1])) == 0
            assert await box.python(UDP, str(udp.getsockname()[1])) == 0
        assert udp.recv(10) == b"out"


async def test_commands_can_talk_to_themselves() -> None:
    """A test suite that starts a server finds it."""
    script = (
        "import socket; s = socket.create_server(('127.0.0.1', 0));"
        "socket.create_connection(s.getsockname()); s.accept()"
    )
    async with sandbox_cell() as box:
        assert await box.python(script) == 0, box.output


def datagrams() -> socket.socket:
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.bind(("127.0.0.1", 0))
    receiver.setblocking(False)
    return receiver


# --- 11: /proc


@WHO
async def test_proc_shows_the_box_and_leads_nowhere(who: str) -> None:
    async with sandbox_cell(who) as box:
        assert await box.shell("ls /proc/1/root/") != 0
        assert await box.shell("echo /proc/[0-9]*") == 0
        assert len(box.output.split()) <= 3
        assert await box.shell("echo 1 > /proc/sys/kernel/core_pattern") != 0


async def test_without_a_proc_of_its_own_it_sees_everybody() -> None:
    mounted = '    mount("proc", "/proc", "proc", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC)\n'
    async with sandbox_cell(without=keeper_without(mounted.strip())) as box:
        assert await box.shell(f"cat /proc/{os.getpid()}/cmdline") == 0


# --- 12: killing whoever started it


@WHO
async def test_no_process_outside_can_be_killed_and_nothing_is_left_running(who: str) -> None:
    seconds = 1_000_000 + os.getpid()  # other test runs on this machine have sleepers of their own
    async with sandbox_cell(who) as box:
        assert await box.shell("kill -9 1; kill -9 $PPID; kill -9 -1; echo alive") == 0
        assert "alive" in box.output
        assert await box.shell(f"kill -9 {os.getpid()}") != 0
        left = f"setsid sleep {seconds} & (setsid sh -c 'exec sleep {seconds}' &) ; "
        left += "until [ $(grep -ls ^sleep /proc/[0-9]*/cmdline | wc -l) = 2 ]; do :; done"
        assert await box.shell(left) == 0
        assert not [each for each in sleepers() if str(seconds) in each]
        assert await box.shell("true") == 0


async def test_without_a_process_namespace_the_one_that_holds_the_box_dies() -> None:
    async with sandbox_cell(
        without=lambda source: source.replace("flags = CLONE_NEWPID | ", "flags = ", 1)
    ) as box:
        assert await box.shell("kill -9 $PPID; sleep 5") != 0


def sleepers() -> list[str]:
    """Command lines of the processes that sleep."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                line = Path(f"/proc/{name}/cmdline").read_text()
            except OSError:
                continue
            if line.startswith("sleep"):
                found.append(line)
    return found


# --- secrets


@WHO
@pytest.mark.parametrize("early", [True, False])
async def test_what_is_hidden_cannot_be_read_written_or_removed(who: str, early: bool) -> None:
    async with sandbox_cell(who) as box:
        secret, folder = box.project / ".env", box.outside / "keys"
        secret.write_text("KEY=1")
        folder.mkdir()
        (folder / "id").write_text("private")
        named = (str(secret), str(folder))
        hidden: dict[str, Any] = {"hidden" if early else "hidden_late": named}
        assert await box.shell("cat .env", **hidden) != 0
        assert "Permission denied" in box.output
        assert await box.shell("echo x > .env", **hidden) != 0
        assert await box.shell("rm -f .env", **hidden) != 0
        assert await box.shell(f"cat {folder}/id; ls {folder}", **hidden) != 0
        assert "private" not in box.output
        assert await box.shell(f"cat .env {folder}/id") == 0
        assert "KEY=1" in box.output
        assert "private" in box.output
        assert not list(box.upper.iterdir())


@WHO
async def test_where_other_commands_write_cannot_be_seen(who: str) -> None:
    async with sandbox_cell(who) as box:
        hidden = (str(box.scratch),)
        assert await box.shell(f"ls {box.scratch}", hidden=hidden) != 0
        assert await box.shell("echo x > new", hidden=hidden) == 0
        assert (box.upper / "new").read_text() == "x\n"
