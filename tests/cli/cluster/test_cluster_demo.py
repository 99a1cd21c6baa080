"""`weft cluster demo`: Postgres and several servers in one command, and nothing left of it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from tests.support.free_port import free_port
from tests.support.server_cluster import seen
from tests.support.tmux_terminal import wait_until
from tests.support.weft_program import WeftProgram, call
from tests.support.world import PATIENCE
from weft.cli import main
from weft.cli.cluster import demo_database
from weft.server import connect

pytestmark = [pytest.mark.anyio, pytest.mark.process]


def processes_of(folder: Path) -> list[int]:
    """Those that name a folder in their command line or work below it."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "cmdline").read_bytes() + (place / "environ").read_bytes()
        except OSError:
            continue
        if os.fsencode(folder) in words and int(place.name) != os.getpid():
            found.append(int(place.name))
    return found


class RunningDemo:
    """The command, with all that it makes below one folder."""

    def __init__(self, root: Path) -> None:
        self.program = WeftProgram(root)
        # Not below the folder of the test: Postgres runs as another user where we are root.
        self.made = Path(tempfile.mkdtemp(prefix="weft-demo-test-"))
        self.made.chmod(0o755)
        self.port = free_port()
        self.process: subprocess.Popen[str] | None = None

    def start(self, model: str) -> list[str]:
        """Start it; returns what it says once all of it runs."""
        environ = {
            **self.program.environment,
            "TMPDIR": str(self.made),
            "WEFT_MODEL_DEFAULT": model,
        }
        self.process = subprocess.Popen(
            self.program.argv("cluster", "demo", "--servers", "2", "--port", str(self.port)),
            env=environ,
            cwd=self.program.project,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self.process.stdout is not None
        said = []
        for line in self.process.stdout:
            said.append(line)
            if line.startswith("Each page"):
                return said
        raise AssertionError(said)

    def token(self, number: int) -> str:
        """The token for programs of one server."""
        (file,) = self.made.glob(f"weft-demo-*/host-{number}/server/*.token")
        return file.read_text().strip()

    def url(self, number: int) -> str:
        return f"http://127.0.0.1:{self.port + number - 1}"

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            assert self.process.stdout is not None
            self.process.stdout.close()
        wait_until(lambda: not processes_of(self.made))
        shutil.rmtree(self.made)


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[RunningDemo]:
    running = RunningDemo(tmp_path)
    yield running
    running.close()


async def test_a_server_may_die_and_ctrl_c_leaves_nothing(demo: RunningDemo) -> None:
    model = demo.program.script([call("write", path="a.txt", content="a\n")], "Done.", "More.")
    said = demo.start(model)
    assert [line.split()[0] for line in said[1:3]] == ["host-1", "host-2"]
    first = int(said[1].split()[2])
    async with (
        connect(demo.url(1), demo.token(1)) as one,
        connect(demo.url(2), demo.token(2)) as two,
    ):
        made = await one.sessions.start_session(auto_approve=True)
        await made.send_prompt("Go.")
        await seen((demo.program.project / "a.txt").exists)
        os.kill(first, signal.SIGKILL)
        session = await two.sessions.get(made.id)
        await session.send_prompt("More?")
        events = await session.subscribe(after=0)
        with anyio.fail_after(PATIENCE):
            async for event in events:
                if "More." in str(event):
                    break
    assert demo.process is not None
    demo.process.send_signal(signal.SIGINT)
    out, _ = demo.process.communicate(timeout=PATIENCE)
    assert demo.process.returncode == 0, out
    assert "host-1 has ended" in out
    assert "Traceback" not in out
    assert processes_of(demo.made) == []
    assert list(demo.made.iterdir()) == []


async def test_it_takes_all_of_it_along_when_it_is_killed(demo: RunningDemo) -> None:
    demo.start(demo.program.script("Hi."))
    assert demo.process is not None
    assert len(processes_of(demo.made)) > 3
    demo.process.kill()
    demo.process.wait()
    await seen(lambda: not processes_of(demo.made))


def test_a_port_that_is_taken_is_said_and_nothing_is_left(demo: RunningDemo) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", demo.port + 1))
        taken.listen()
        done = demo.program.run(
            *("cluster", "demo", "--servers", "2", "--port", str(demo.port)),
            env={"TMPDIR": str(demo.made)},
        )
    assert done.returncode == 1
    assert "host-2 does not start" in done.stderr
    assert str(demo.port + 1) in done.stderr
    assert list(demo.made.iterdir()) == []
    assert processes_of(demo.made) == []


def test_without_postgres_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(demo_database, "_SERVERS", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["cluster", "demo"]) == 1
    assert "apt-get install postgresql" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--servers", "10"], "up to 9"),
        (["--servers", "0"], "--servers"),
        (["--port", "65535"], "has none"),
    ],
)
def test_numbers_that_do_not_fit_are_one_sentence(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cluster", "demo", *words]) == 2
    assert sentence in capsys.readouterr().err
