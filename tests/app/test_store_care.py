"""A store in use: copied as one moment had it, checked to the last byte, written anew smaller."""

from __future__ import annotations

import stat
from pathlib import Path

import apsw
import pytest

from tests.support.world import World
from weft.app.store_care import backup, checked, vacuum
from weft.errors import UsageError
from weft.messages import Text
from weft.providers.scripted import ScriptedModel
from weft.store.sqlite.maintenance import RecordReader

pytestmark = pytest.mark.anyio


async def test_a_backup_of_a_store_that_is_written_to_is_whole(
    shared_world: World, tmp_path: Path
) -> None:
    """What was accepted before is in it, and a second program opens it."""
    world, path = shared_world, _file(shared_world)
    async with world.open(ScriptedModel(["One.", "Two."])) as app:
        session = await app.sessions.start_session(title="Kept")
        await session.send_message("x" * 100_000)
        copy = tmp_path / "copy.db"
        assert backup(path, copy) == copy.stat().st_size
        await session.send_message("after it")
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert list(tmp_path.glob(".copy*")) == []
    found = await checked(copy)
    assert found.problems == []
    assert found.logs >= 1
    assert found.blobs >= 1
    async with world.open(ScriptedModel(["Three."]), store=copy) as app:
        record = await app.sessions.read_session(session.id)
        assert [each.role for each in record.messages] == ["user", "assistant"]
        again = await app.sessions.get(session.id)
        assert (await again.send_message("Go on.")).text == "Three."


async def test_a_backup_replaces_nothing(shared_world: World, tmp_path: Path) -> None:
    path = await _made(shared_world)
    taken = tmp_path / "taken.db"
    taken.write_text("mine")
    with pytest.raises(UsageError, match="replaces nothing"):
        backup(path, taken)
    assert taken.read_text() == "mine"


async def test_a_check_writes_nothing(shared_world: World, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    backup(await _made(shared_world), copy)
    before = copy.read_bytes()
    assert (await checked(copy)).problems == []
    assert copy.read_bytes() == before
    assert [each.name for each in tmp_path.glob("copy.db*")] == ["copy.db"]


DAMAGES = {
    "a blob that was changed": (
        "update blobs set data = zeroblob(size) where blob_no = (select min(blob_no) from blobs)",
        "is not what its name says",
    ),
    "a fact that is missing": ("delete from facts where seq = 2", "fact 2 is missing"),
    "a fact that is none": (
        "update facts set body = cast('{' as blob) where seq = 3",
        "log ses_",
    ),
    "a fact of another session": (
        "update facts set body = (select body from facts where seq = 1) where seq = 2",
        "another place",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_check_finds(damage: str, shared_world: World, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    backup(await _made(shared_world), copy)
    statement, says = DAMAGES[damage]
    db = apsw.Connection(str(copy))
    db.execute(statement)
    db.close()
    found = await checked(copy)
    assert any(says in each for each in found.problems), found.problems


async def test_a_check_finds_a_page_that_was_overwritten(
    shared_world: World, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.db"
    backup(await _made(shared_world), copy)
    data = bytearray(copy.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 4096] = b"\xff" * 4096
    copy.write_bytes(data)
    assert (await checked(copy)).problems != []


async def test_a_vacuum_says_what_it_gave_back(shared_world: World) -> None:
    path = await _made(shared_world)
    async with shared_world.open(ScriptedModel(["Two."])) as app:
        session = await app.sessions.start_session()
        await session.send_message("y" * 300_000)
        await app.sessions.delete_session(session.id)
    db = apsw.Connection(str(path))
    db.execute("create table filler (data blob)")
    db.execute("insert into filler values (zeroblob(4000000))")
    db.execute("drop table filler")
    db.close()
    report = vacuum(path)
    assert report.freed > 3_000_000
    assert report.bytes_after < report.bytes_before
    assert (await checked(path)).problems == []


async def test_forks_are_replayed_with_what_they_share(shared_world: World, tmp_path: Path) -> None:
    path = await _made(shared_world)
    async with shared_world.open(ScriptedModel(["Two."])) as app:
        rows = await app.sessions.list_saved()
        fork = await app.sessions.fork_session(rows[0].id)
        await fork.send_message("Elsewhere.")
    copy = tmp_path / "copy.db"
    backup(path, copy)
    reader = RecordReader(copy)
    assert len([each for each in reader.streams if each.startswith("ses_")]) == 2
    reader.close()
    assert (await checked(copy)).problems == []


async def _made(world: World) -> Path:
    """A store with a session that has a blob."""
    async with world.open(ScriptedModel(["One."])) as app:
        session = await app.sessions.start_session()
        await session.send_message([Text(text="z" * 200_000)])
    return _file(world)


def _file(world: World) -> Path:
    path = world.store()
    assert isinstance(path, Path)
    return path
