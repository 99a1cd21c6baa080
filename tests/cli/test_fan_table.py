"""The live table of a fan-out: its rows, and each of its keys."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from anyio.streams.memory import MemoryObjectSendStream

from tests.support.fan_project import git
from tests.support.fan_stage import RIGHT, VERIFY, WRONG, idle, make_stage, names, open_stage, right
from tests.support.world import PATIENCE, World
from weft.api.fan import Fan
from weft.cli.commands.fan_table.live_table import LiveTable

pytestmark = [pytest.mark.process, pytest.mark.timeout(90)]


class Terminal:
    """What the user sees and presses."""

    def __init__(self, table: LiveTable, keys: MemoryObjectSendStream[str], text: list[str]):
        self.table, self._keys, self._text = table, keys, text

    async def press(self, keys: str, until: str) -> str:
        """Press these, and wait until something is shown; returns all that was since."""
        self._text.clear()
        for key in keys:
            await self._keys.send(key)
        with anyio.move_on_after(PATIENCE):
            while until not in "".join(self._text):  # noqa: ASYNC110 - a terminal has no event
                await anyio.sleep(0.01)
        seen = "".join(self._text)
        assert until in seen
        return seen

    async def key(self, name: str) -> None:
        await self._keys.send(name)


@pytest.fixture
async def fan(tmp_path: Path) -> AsyncIterator[tuple[Fan, World]]:
    world = World("sqlite", tmp_path)
    make_stage(world)
    models = [idle("idle"), right("right")]
    async with open_stage(world, *models) as app:
        session = await app.sessions.start_session()
        begun = await session.generate_branches("mend it", 2, names(*models), VERIFY)
        with anyio.fail_after(PATIENCE):
            await begun.wait()
        yield begun, world


async def talk(fan: Fan, keys: list[tuple[str, str]]) -> tuple[LiveTable, list[str]]:
    """Press keys one after the other, each when what the last one led to is seen."""
    send, receive = anyio.create_memory_object_stream[str](10)
    text: list[str] = []
    table = LiveTable(fan, read_key=receive.receive, write=text.append)
    seen: list[str] = []
    async with send, receive, anyio.create_task_group() as group:
        group.start_soon(table.run)
        terminal = Terminal(table, send, text)
        for pressed, until in keys:
            seen.append(await terminal.press(pressed, until))
        await terminal.key("q")
    return table, seen


@pytest.mark.anyio
async def test_candidates_are_looked_at_and_one_is_kept_by_keys(fan: tuple[Fan, World]) -> None:
    begun, world = fan
    _, seen = await talk(
        begun,
        [
            ("", "▸ 2★"),
            ("d", "+    return a + b"),
            ("=", "compare 2 with which?"),
            ("1", "+++ NOTES.txt"),
            ("1", "▸ 1"),
            ("x", "its overlay is removed"),
            ("u", "done"),
            ("2k", "put candidate 2 into the project?"),
            ("n", "nothing was done"),
            ("k", "put candidate 2 into the project?"),
            ("y", "take it back"),
            ("r", "has ended"),
        ],
    )
    assert "take      src/add.py" in seen[7]
    assert world.read("src/add.py") == RIGHT
    assert begun.candidates()[0].state == "kept"


@pytest.mark.anyio
async def test_a_candidate_is_chosen_to_be_opened_in_the_chat(fan: tuple[Fan, World]) -> None:
    begun, world = fan
    send, receive = anyio.create_memory_object_stream[str](10)
    table = LiveTable(begun, read_key=receive.receive, write=lambda text: None)
    async with send, receive:
        for key in ("down", "up", "down", "o"):
            await send.send(key)
        table.draw()
        await table.run()
    assert table.opens == 1
    assert world.read("src/add.py") == WRONG


SCRIPT = {
    "by": "content",
    "answers": [
        {"steps": [{"do": "call", "name": "shell", "args": {"command": "echo 2 > a.txt"}}]},
        {"steps": [{"do": "text", "text": "Done."}]},
    ],
}


def test_a_real_terminal_has_the_table_and_its_keys(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.txt").write_text("1\n")
    git(project, "init", "-q")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "first")
    script = tmp_path / "script.json"
    script.write_text(json.dumps(SCRIPT))
    ours, theirs = pty.openpty()
    home = str(tmp_path)
    environ = {"HOME": home, "WEFT_HOME": home, "PATH": os.environ["PATH"], "TERM": "xterm"}
    if "PYTHONPATH" in os.environ:
        environ["PYTHONPATH"] = os.environ["PYTHONPATH"]
    argv = [sys.executable, "-m", "weft", "fan", "make it 2", "-n", "2"]
    argv += ["-m", f"scripted:{script}", "--verify", "grep -q 2 *.txt"]
    process = subprocess.Popen(
        argv, cwd=project, env=environ, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    try:
        assert "✓ 1/1" in shown(ours, "★")
        os.write(ours, b"k")
        shown(ours, "put candidate")
        os.write(ours, b"y")
        shown(ours, "take it back")
        os.write(ours, b"q")
        assert process.wait(PATIENCE) == 0
        assert (project / "a.txt").read_text() == "2\n"
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def shown(fd: int, until: str) -> str:
    seen = b""
    while until not in seen.decode(errors="replace"):
        assert select.select([fd], [], [], PATIENCE)[0], seen
        seen += os.read(fd, 4096)
    return seen.decode(errors="replace")
