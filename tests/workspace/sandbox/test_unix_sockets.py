"""Escapes from the sandbox by unix sockets; with the wall that stops it taken down, each one works.

A server listens outside, at a path or an abstract address that can be seen from within, and a
command tries to reach it or to pass a descriptor (`socket_attacks`).  What counts is what the
server received, not what the command says.
"""

from __future__ import annotations

import array
import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import anyio
import pytest

from tests.support import socket_attacks
from tests.support.sandbox_cell import SYSTEM_PYTHON, SandboxCell, keeper_without, sandbox_cell
from tests.support.socket_attacks import RECEIVING, SECRET
from weft.workspace.sandbox import seccomp as sandbox_filter

pytestmark = pytest.mark.anyio

WHO = pytest.mark.parametrize("who", ["root", "nobody", "me"])
ATTACKS = Path(socket_attacks.__file__).read_text()
NUMBERS = sandbox_filter.NUMBERS.get(os.uname().machine, {})
USES = ("sendto", "sendmsg", "sendmmsg", "connect", "reconnect")
BY_PAIRS = [
    f"{source} {kind} {use}"
    for source in ("paired", "more-bits")
    for kind in ("DGRAM", "RAW")  # the kernel takes the one for the other
    for use in USES
]
ASKING_FOR_THE_PROCESSOR = 3 * 8
"""Bytes at the beginning of the filter."""
IA32 = ("ia32-socket", "ia32-pair", "ia32-socketcall")
IN_A_QUEUE = 8
"""Datagrams that a socket takes before they are read; the kernel's limit may be 10."""


class Server:
    """A socket outside, as a program of the user's has it."""

    def __init__(self, kind: str, address: str) -> None:
        self.address = address
        self.socket = socket.socket(socket.AF_UNIX, getattr(socket, f"SOCK_{kind}"))
        self.socket.setblocking(False)
        if address.startswith("@"):
            self.socket.bind(f"\0{address[1:]}")
        else:
            self._bind(Path(address))
        if kind != "DGRAM":
            self.socket.listen()
        self._is_connected = kind != "DGRAM"

    def _bind(self, path: Path) -> None:
        # By a short name: a socket's path may not be long.
        with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
            os.symlink(path.parent, f"{folder}/x")
            self.socket.bind(f"{folder}/x/{path.name}")
        path.chmod(0o666)

    def got(self) -> dict[str, list[bytes]]:
        """The ways by which something came in, and what is in the files that came along."""
        found: dict[str, list[bytes]] = {}
        while True:
            try:
                message, files = self._next()
            except BlockingIOError:
                return found
            found[message.decode()] = [os.pread(file, 100, 0) for file in files]
            for file in files:
                os.close(file)

    def _next(self) -> tuple[bytes, list[int]]:
        if not self._is_connected:
            return socket.recv_fds(self.socket, 100, 4)[:2]
        with self.socket.accept()[0] as connection:
            return socket.recv_fds(connection, 100, 4)[:2]

    def close(self) -> None:
        self.socket.close()
        if not self.address.startswith("@"):
            os.unlink(self.address)


def server(kind: str, address: str | Path) -> closing[Server]:
    return closing(Server(kind, str(address)))


async def arriving(box: SandboxCell, ways: Sequence[str], there: Server) -> dict[str, list[bytes]]:
    """Those of the ways by which something came out, and what."""
    found: dict[str, list[bytes]] = {}
    said = ""
    for start in range(0, len(ways), IN_A_QUEUE):
        await box.python(ATTACKS, there.address, *ways[start : start + IN_A_QUEUE])
        said += box.output
        found |= there.got()
    box.output = said
    return found


def is_refused(box: SandboxCell, ways: Sequence[str]) -> bool:
    """True when the last command said of each of the ways that the sandbox does not permit it."""
    return box.output == "".join(f"{way}: Operation not permitted\n" for way in ways)


@contextmanager
def places(box: SandboxCell) -> Iterator[list[Path]]:
    """Where a server's socket can be seen from within."""
    found = [box.outside / "socket", box.project / "socket"]
    with tempfile.TemporaryDirectory(dir=box.outside.parent) as elsewhere:
        os.chmod(elsewhere, 0o755)
        found.append(Path(elsewhere) / "socket")
        if os.access("/run", os.W_OK):
            found.append(Path(f"/run/weft-test-{os.getpid()}"))
        yield found


# --- datagram pairs: an end of one sends to any address


@pytest.fixture
def with_pairs_of_datagrams(monkeypatch: pytest.MonkeyPatch) -> None:
    """The filter with this wall alone missing."""
    every = (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET)
    monkeypatch.setattr(sandbox_filter, "PAIRS", every)


@WHO
@pytest.mark.parametrize("network", [False, True])
async def test_no_datagram_and_no_descriptor_leaves_by_a_pair(who: str, network: bool) -> None:
    async with sandbox_cell(who, network=network) as box:
        with places(box) as paths:
            for path in paths:
                with server("DGRAM", path) as there:
                    assert await arriving(box, BY_PAIRS, there) == {}
                    assert is_refused(box, BY_PAIRS), box.output


@pytest.mark.usefixtures("with_pairs_of_datagrams")
async def test_a_pair_of_datagrams_would_be_a_way_out_for_both() -> None:
    async with sandbox_cell() as box:
        with server("DGRAM", box.outside / "socket") as there:
            found = await arriving(box, BY_PAIRS, there)
            assert list(found) == BY_PAIRS
            passed = [way for way, files in found.items() if files == [SECRET]]
            assert passed == [way for way in BY_PAIRS if way.endswith(("sendmsg", "connect"))]


@WHO
@pytest.mark.parametrize("network", [False, True])
async def test_no_abstract_address_is_reached_by_a_pair(who: str, network: bool) -> None:
    async with sandbox_cell(who, network=network) as box:
        with server("DGRAM", f"@weft-test-{os.getpid()}") as there:
            assert await arriving(box, BY_PAIRS, there) == {}
            assert is_refused(box, BY_PAIRS), box.output


@pytest.mark.usefixtures("with_pairs_of_datagrams")
@pytest.mark.parametrize("network", [False, True])
async def test_a_network_of_its_own_hides_abstract_addresses_and_nothing_else_does(
    network: bool,
) -> None:
    async with sandbox_cell(network=network) as box:
        with server("DGRAM", f"@weft-test-{os.getpid()}") as there:
            assert list(await arriving(box, BY_PAIRS, there)) == (BY_PAIRS if network else [])


@pytest.mark.parametrize("kind", ["STREAM", "SEQPACKET"])
async def test_an_end_of_another_pair_stays_with_its_peer(kind: str) -> None:
    """The kernel's own rule, on which allowing these pairs rests.

    A socket without a peer gets there.
    """
    ways = [f"{source} {kind} {use}" for source in ("paired", "more-bits") for use in USES]
    async with sandbox_cell(unix_sockets=True) as box:
        with server(kind, box.outside / "socket") as there:
            found = await arriving(box, [*ways, f"made {kind} connect"], there)
            assert list(found) == [f"made {kind} connect"]


@WHO
@pytest.mark.parametrize("kind", ["STREAM", "SEQPACKET", "DGRAM"])
async def test_no_socket_can_be_made_to_reach_a_server(who: str, kind: str) -> None:
    async with sandbox_cell(who) as box:
        with server(kind, box.outside / "socket") as there:
            assert await arriving(box, [f"made {kind} connect"], there) == {}
            assert is_refused(box, [f"made {kind} connect"]), box.output


@pytest.mark.parametrize("kind", ["STREAM", "SEQPACKET", "DGRAM"])
async def test_where_unix_sockets_are_allowed_every_kind_gets_there(kind: str) -> None:
    async with sandbox_cell(unix_sockets=True) as box:
        ways = [f"made {kind} connect", *(BY_PAIRS if kind == "DGRAM" else [])]
        with server(kind, box.outside / "socket") as there:
            assert list(await arriving(box, ways, there)) == ways


@pytest.mark.parametrize("kind", ["STREAM", "SEQPACKET", "DGRAM"])
async def test_a_socket_of_the_project_is_another_one_in_the_overlay(kind: str) -> None:
    """No filter is needed there: the kernel finds sockets by inode, and the overlay has its own."""
    async with sandbox_cell(unix_sockets=True) as box:
        with server(kind, box.project / "socket") as there:
            assert await arriving(box, [f"made {kind} connect"], there) == {}
            assert "Connection refused" in box.output


# --- a descriptor from outside


RECEIVE = "paired DGRAM receive"


async def handed_in(box: SandboxCell) -> bytes:
    """What a command wrote to a file outside, whose descriptor it had a server send to it."""
    shared = box.scratch / "shared"
    shared.mkdir(mode=0o777)
    canary = os.open(box.outside / "canary", os.O_RDWR)

    async def answer(there: Server) -> None:
        await anyio.wait_readable(there.socket)
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [canary]))]
        there.socket.sendmsg([b"here"], rights, 0, str(shared / "own"))

    try:
        with server("DGRAM", box.outside / "socket") as there:
            async with anyio.create_task_group() as group:
                group.start_soon(answer, there)
                await box.python(
                    ATTACKS,
                    there.address,
                    RECEIVE,
                    temporary=((str(shared), os.path.dirname(RECEIVING)),),
                )
                group.cancel_scope.cancel()
        return os.pread(canary, 100, 0)
    finally:
        os.close(canary)


async def test_no_descriptor_can_be_sent_in() -> None:
    async with sandbox_cell() as box:
        assert await handed_in(box) == b"unharmed"
        assert is_refused(box, [RECEIVE]), box.output


@pytest.mark.usefixtures("with_pairs_of_datagrams")
async def test_by_a_pair_of_datagrams_one_could() -> None:
    async with sandbox_cell() as box:
        assert await handed_in(box) == RECEIVE.encode()


# --- ways around the filter: io_uring and other ABIs


@WHO
@pytest.mark.parametrize("network", [False, True])
async def test_neither_io_uring_nor_another_abi_leads_out(who: str, network: bool) -> None:
    async with sandbox_cell(who, network=network) as box:
        with server("DGRAM", box.outside / "socket") as there:
            ways = ["io_uring", *(IA32 if os.uname().machine == "x86_64" else ())]
            assert await arriving(box, ways, there) == {}
            assert is_refused(box, ways), box.output
            assert await arriving(box, ["x32"], there) == {}
            assert box.output == "x32: Function not implemented\n"


async def test_io_uring_would_make_sockets_behind_the_filter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    skip_unless_it_works_outside("io_uring")
    for name in [name for name in NUMBERS if name.startswith("io_uring")]:
        monkeypatch.delitem(sandbox_filter.NUMBERS[os.uname().machine], name)
    async with sandbox_cell() as box:
        with server("DGRAM", box.outside / "socket") as there:
            ways = ["io_uring", "made DGRAM sendto"]
            assert list(await arriving(box, ways, there)) == ["io_uring"]


@pytest.mark.parametrize("way", IA32)
async def test_a_filter_that_does_not_ask_for_the_processor_lets_32_bit_calls_through(
    way: str,
) -> None:
    skip_unless_it_works_outside(way)
    async with sandbox_cell(weakened=lambda code: code[ASKING_FOR_THE_PROCESSOR:]) as box:
        with server("DGRAM", box.outside / "socket") as there:
            assert list(await arriving(box, [way, "made DGRAM sendto"], there)) == [way]


async def test_a_filter_that_does_not_ask_for_the_abi_lets_x32_calls_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    skip_unless_it_works_outside("x32")
    monkeypatch.setattr(sandbox_filter, "X32", 0xFFFFFFFF)
    async with sandbox_cell() as box:
        with server("DGRAM", box.outside / "socket") as there:
            ways = ["x32", "made DGRAM sendto"]
            assert list(await arriving(box, ways, there)) == ["x32"]


def skip_unless_it_works_outside(way: str) -> None:
    """A kernel that was built or set up without it needs no wall, and cannot show one."""
    if way != "io_uring" and os.uname().machine != "x86_64":
        pytest.skip("this processor has one ABI")
    with (
        tempfile.TemporaryDirectory(dir="/var/tmp") as folder,
        server("DGRAM", f"{folder}/socket") as there,
    ):
        argv = [SYSTEM_PYTHON, "-I", "-S", "-c", ATTACKS, there.address, way]
        said = subprocess.run(argv, stdout=subprocess.PIPE, check=True).stdout
        if not there.got():
            pytest.skip(f"the kernel has no {said.decode()}")


# --- descriptors of others


LISTED = "import os; print(sorted(map(int, os.listdir('/proc/self/fd'))))"
"""With the one by which the folder is read."""


@WHO
async def test_a_command_inherits_its_input_and_outputs_and_nothing_else(who: str) -> None:
    async with sandbox_cell(who) as box:
        assert await box.python(LISTED) == 0
        assert box.output == "[0, 1, 2, 3]\n"


async def test_a_keeper_that_hands_descriptors_down_gives_its_socket_away() -> None:
    handed = keeper_without("os.set_inheritable(fd, False)")
    script = (
        "import os, stat; print([n for n in map(int, os.listdir('/proc/self/fd'))"
        " if n > 2 and os.path.exists(f'/proc/self/fd/{n}') and stat.S_ISSOCK(os.stat(n).st_mode)])"
    )
    async with sandbox_cell(without=handed) as box:
        assert await box.python(script) == 0
        assert box.output not in ("", "[]\n")
    async with sandbox_cell() as box:
        assert await box.python(script) == 0
        assert box.output == "[]\n"


TAKE = (
    "import ctypes, os, sys; libc = ctypes.CDLL(None, use_errno=True)\n"
    "pid = int(sys.argv[1]) or os.fork() or __import__('signal').pause()\n"
    "handle = os.pidfd_open(pid)\n"
    "took = [n for n in range(20) if libc.syscall(438, handle, n, 0) >= 0]\n"
    "os.kill(pid, 9) if pid > 1 else None\n"
    "sys.exit(0 if took else ctypes.get_errno())"
)
"""Take descriptors out of another process: the one that holds the cell, or a child."""


@WHO
async def test_no_descriptor_can_be_taken_out_of_a_process(who: str) -> None:
    async with sandbox_cell(who) as box:
        assert await box.python(TAKE, "1") == 1
        assert await box.python(TAKE, "0") == 1
        assert await box.shell("readlink /proc/1/fd/0 || cat < /proc/1/fd/0") != 0


async def test_without_the_filter_those_of_the_one_that_holds_the_cell_are_out_of_reach() -> None:
    async with sandbox_cell(filtered=False) as box:
        assert await box.python(TAKE, "0") == 0
        assert await box.python(TAKE, "1") != 0


async def test_a_keeper_that_gives_up_nothing_has_them_taken() -> None:
    walls = ("forswear_capabilities()", "prctl(PR_SET_DUMPABLE, 0)", "restrict_writing(writable)")
    async with sandbox_cell(without=keeper_without(*walls), filtered=False) as box:
        assert await box.python(TAKE, "1") == 0
        assert await box.shell("readlink /proc/1/fd/0 && cat < /proc/1/fd/0") == 0


# --- what everyday programs need of pairs


EVERYDAY = {
    "descriptors are passed": (
        "import os, socket\n"
        "for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):\n"
        "    a, b = socket.socketpair(socket.AF_UNIX, kind)\n"
        "    socket.send_fds(a, [b'x'], [os.open('file', os.O_RDONLY)])\n"
        "    _, [fd], _, _ = socket.recv_fds(b, 1, 1)\n"
        "    assert os.read(fd, 10) == b'old\\n'\n"
    ),
    "multiprocessing": (
        "import multiprocessing as m\n"
        "context = m.get_context('fork')\n"
        "a, b = context.Pipe()\n"
        "p = context.Process(target=lambda: b.send(b.recv() + 1)); p.start()\n"
        "a.send(41); assert a.recv() == 42; p.join(); assert p.exitcode == 0\n"
        "with context.Pool(2) as pool: assert pool.map(abs, [-1, 2]) == [1, 2]\n"
    ),
    "asyncio": (
        "import asyncio\n"
        "async def main():\n"
        "    p = await asyncio.create_subprocess_exec('cat', stdin=-1, stdout=-1)\n"
        "    out, _ = await p.communicate(b'through'); assert out == b'through'\n"
        "asyncio.run(main())\n"
    ),
}


@WHO
@pytest.mark.parametrize("name", EVERYDAY)
async def test_pairs_of_streams_serve_everyday_programs(who: str, name: str) -> None:
    async with sandbox_cell(who) as box:
        assert await box.python(EVERYDAY[name]) == 0, box.output


async def test_a_connection_of_datagrams_by_address_still_works_within() -> None:
    """What is refused are unix sockets: a server that speaks UDP is found, by either call."""
    script = (
        "import socket; s = socket.socket(2, 2); s.bind(('127.0.0.1', 0))\n"
        "c = socket.socket(2, 2)\n"
        "c.sendto(b'1', s.getsockname()); c.connect(s.getsockname()); c.send(b'2')\n"
        "assert s.recv(1) + s.recv(1) == b'12'"
    )
    async with sandbox_cell() as box:
        assert await box.python(script) == 0, box.output
