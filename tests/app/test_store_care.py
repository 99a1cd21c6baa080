"""A store in use: copied as one moment had it, checked to the last byte, written anew smaller."""

from __future__ import annotations

import os
import random
import stat
from contextlib import suppress
from pathlib import Path

import apsw
import pytest

import weft
from tests.support.example_count import examples
from tests.support.file_size_limit import file_size_limit
from tests.support.world import World
from weft.app.store_care import VacuumReport, backup, checked, vacuum
from weft.errors import StoreError, StoreUnavailable, UsageError
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
    with pytest.raises(UsageError, match="overwrites nothing"):
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
    "the last fact": (
        "delete from facts where (stream_no, seq) in "
        "(select stream_no, max(seq) from facts group by stream_no)",
        "were stored",
    ),
    "a blob that is gone": ("delete from blobs", "its content is missing"),
    "a name that is no text": (
        "update streams set name = cast(x'ff80' as text)",
        "no text",
    ),
    "a fact that tells nonsense": (
        """update facts set body = cast(replace(cast(body as text), '"node"', '"nose"') as blob)""",
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


@pytest.mark.parametrize("content", [b"", b"root:x:0:0:root:/root:/bin/bash\n" * 200])
async def test_a_file_that_is_no_store_is_told_so(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    path.write_bytes(content)
    if content:
        assert (await checked(path)).problems
    else:
        with pytest.raises(StoreUnavailable, match="is no store"):
            await checked(path)
    assert path.read_bytes() == content


async def test_no_damage_makes_a_check_fail_itself(shared_world: World, tmp_path: Path) -> None:
    """Whatever is in the file: the check ends, and finds something or says why it cannot."""
    copy = tmp_path / "copy.db"
    backup(await _made(shared_world), copy)
    whole = copy.read_bytes()
    for seed in range(examples(60)):
        some = random.Random(seed)
        data = bytearray(whole)
        for _ in range(some.choice((1, 30, 400))):
            data[some.randrange(len(data))] ^= 1 << some.randrange(8)
        copy.write_bytes(data)
        with suppress(StoreError):
            await checked(copy)


async def test_a_backup_says_which_disk_is_full(shared_world: World, tmp_path: Path) -> None:
    path, target = await _made(shared_world), tmp_path / "copy.db"
    with file_size_limit(64 * 1024), pytest.raises(StoreUnavailable) as full:
        backup(path, target)
    assert "the disk is full" in str(full.value)
    assert str(target) in str(full.value)
    assert list(tmp_path.glob("*copy*")) == []


async def test_a_folder_that_is_none_cannot_take_a_backup(
    shared_world: World, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnavailable, match=r"cannot write .*Not a directory"):
        backup(await _made(shared_world), tmp_path / "file" / "copy.db")


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


def test_a_vacuum_never_frees_less_than_nothing() -> None:
    assert VacuumReport(bytes_before=10, bytes_after=25, unnamed_bytes=0).freed == 0


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


async def test_a_start_that_fails_closes_the_store_it_has_opened(tmp_path: Path) -> None:
    place = tmp_path / "weft.db"
    wrong = {"model.default": "scripted:x", "model.fallback": ["nobody:x"]}
    with pytest.raises(UsageError, match="nobody"):
        async with weft.open(tmp_path, place, wrong, environ={"HOME": str(tmp_path)}):
            pass
    assert place.exists()
    # Both resolved: a folder of the tests may be a link.
    opened = [os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")]
    assert not [name for name in opened if name.startswith(os.path.realpath(place))]
