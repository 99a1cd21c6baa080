"""The index of changes is a cache: several processes may read the logs on at once, and damage of it
costs time and nothing else.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import apsw
import pytest

from tests.support.rewind_project import open_world, shell, start, turns, write
from tests.support.world import World
from weft.app import App
from weft.runtime.blame.changes_file import FILE
from weft.runtime.blame.version_index import VersionIndex
from weft.store import Record, Store

pytestmark = [pytest.mark.anyio, pytest.mark.process]


class CrossedStore:
    """A store of which the first read is delayed until another process has read all of it."""

    def __init__(self, store: Store, project: str, folder: Path) -> None:
        self._store, self._project, self._folder = store, project, folder
        self._is_crossed = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def read(self, stream: str, *, after: int = 0, limit: int = 1000) -> list[Record]:
        if not self._is_crossed:
            self._is_crossed = True
            (await opened(self._store, self._project, self._folder)).close()
        return await self._store.read(stream, after=after, limit=limit)


async def opened(store: Store, project: str, folder: Path) -> VersionIndex:
    return await VersionIndex.opened(store, project, folder)


def rows(folder: Path) -> list[tuple[Any, ...]]:
    db = apsw.Connection(str(folder / FILE))
    return list(db.execute("SELECT session, seq, path, grp FROM version ORDER BY session, seq"))


async def seqs(index: VersionIndex, path: str) -> list[int]:
    return [each.seq for each in await index.of_path(path)]


def project_of(app: App) -> str:
    return app.host.services.project_path


async def test_two_that_read_the_same_log_on_at_once_take_each_change_in_once(
    world: World,
) -> None:
    folder = world.base / "crossed"
    plan = [write("a.txt", "one\n"), write("a.txt", "two\n"), write("b.txt", "three\n")]
    async with open_world(world, turns(*plan)) as app:
        session = await start(app)
        for number in range(len(plan)):
            await session.send_message(f"write {number}")
            crossed = CrossedStore(app.store, project_of(app), folder)
            index = await opened(cast("Store", crossed), project_of(app), folder)
            found = [each.seq for name in "ab" for each in await index.of_path(f"{name}.txt")]
            index.close()
            assert len(found) == len(set(found)) == number + 1
        assert len(rows(folder)) == len(set(rows(folder))) == len(plan)


async def test_one_that_makes_the_index_while_another_does_deletes_nothing_under_it(
    world: World,
) -> None:
    folder = world.base / "busy"
    folder.mkdir()
    async with open_world(world, turns(write("a.txt", "one\n"))) as app:
        session = await start(app)
        await session.send_message("write it")
        # Another process is making it, and not done yet.
        other = apsw.Connection(str(folder / FILE))
        other.execute("BEGIN EXCLUSIVE")
        other.execute("CREATE TABLE mark (said TEXT)")
        inode = (folder / FILE).stat().st_ino
        index = await opened(app.store, project_of(app), folder)
        assert len(await seqs(index, "a.txt")) == 1
        index.close()
        assert (folder / FILE).stat().st_ino == inode
        other.execute("COMMIT")
        other.close()


@pytest.mark.parametrize("what", ["its pages", "its rows"])
async def test_a_damaged_index_is_made_anew(world: World, what: str) -> None:
    folder = world.base / "damaged"
    names = [f"file{number}.txt" for number in range(60)]
    command = "; ".join(f"echo {name} > {name}" for name in names)
    async with open_world(world, turns(shell(command), write("a.txt", "one\n"))) as app:
        session = await start(app)
        await session.send_message("write them")
        index = await opened(app.store, project_of(app), folder)
        index.close()
        whole = len(rows(folder))
        assert whole >= len(names)
        if what == "its pages":
            data = bytearray((folder / FILE).read_bytes())
            data[4096:] = b"\xa5" * (len(data) - 4096)
            (folder / FILE).write_bytes(data)
        else:
            db = apsw.Connection(str(folder / FILE))
            db.execute("UPDATE version SET body = x'00'")
            db.close()
        for _ in range(2):
            index = await opened(app.store, project_of(app), folder)
            assert len(await seqs(index, names[0])) == 1
            assert len(await seqs(index, names[-1])) == 1
            index.close()
        await session.send_message("one more")
        index = await opened(app.store, project_of(app), folder)
        index.close()
        assert len(rows(folder)) == whole + 1
