"""Faults of disk and data: each has a clear message, loses nothing acknowledged, and leaves other
sessions alone.

`python -m tests.crash.faults` runs every scenario and prints one JSON line;
`tests/store/test_faults.py` runs the same ones.  A scenario is a function of an empty folder that
raises AssertionError when something is wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from tests.support.faulty_disk import faulty_disk
from tests.support.file_size_limit import file_size_limit
from tests.support.store_connection import open_connection
from weft.errors import Corrupt, StoreUnavailable, TooNew
from weft.ids import SessionId
from weft.store import Append, Record, SessionRow, Store
from weft.store.jsonl import open_jsonl
from weft.store.sqlite import open_sqlite
from weft.testing.store_contract import A, B, bodies, facts, project, refuses

Scenario = Callable[[Path], Awaitable[None]]
SCENARIOS: dict[str, Scenario] = {}


def scenario(function: Scenario) -> Scenario:
    """Add one to the list."""
    SCENARIOS[function.__name__] = function
    return function


# -- SQLite: the disk


@scenario
async def sqlite_on_a_full_disk_says_so_and_small_appends_go_on(folder: Path) -> None:
    path = folder / "weft.db"
    ballast = folder / "weft.db.ballast"
    with faulty_disk("full") as disk:
        async with await open_sqlite(path, vfs="full") as store:
            a, b = await store.take_lease(A), await store.take_lease(B)
            await store.append(facts(a, 0, "kept"))
            assert ballast.stat().st_size == 8 << 20
            assert ballast.stat().st_blocks * 512 >= 8 << 20, "its room is not really taken"
            disk.full = {"write"}
            told = await asyncio.gather(
                store.append(facts(a, 1, "too much")),
                store.append(facts(b, 0, "too much")),
                return_exceptions=True,
            )
            for error in told:
                assert isinstance(error, StoreUnavailable)
                assert "disk is full" in str(error)
                assert str(path) in str(error)
            assert told[0] is not told[1], "each waits for an error of its own"
            assert not ballast.exists(), "the spare room was not given up"
            disk.full = set()
            await store.append(facts(a, 1, "small"))
            await store.append(facts(b, 0, "small"))
        assert disk.failures
    async with await open_sqlite(path) as store:
        assert bodies(await store.read(A)) == [b"kept", b"small"]
        assert bodies(await store.read(B)) == [b"small"]


@scenario
async def sqlite_beyond_a_quota_is_told_as_a_full_disk(folder: Path) -> None:
    async with await open_sqlite(folder / "weft.db") as store:
        lease = await store.take_lease(A)
        await store.append(facts(lease, 0, "kept"))
        with file_size_limit(200_000), refuses(StoreUnavailable) as refusal:
            await store.append(facts(lease, 1, "x" * 500_000))
        assert "disk is full" in str(refusal.error)
        await store.append(facts(lease, 1, "small"))
        assert bodies(await store.read(A)) == [b"kept", b"small"]


@scenario
async def sqlite_after_an_io_error_reopens_and_what_failed_stays_away(folder: Path) -> None:
    path = folder / "weft.db"
    for operation in ("sync", "write"):
        with faulty_disk("broken") as disk:
            async with await open_sqlite(path, vfs="broken") as store:
                lease = await store.take_lease(A)
                end = await store.last_seq(A)
                await store.append(facts(lease, end, f"before {operation}"))
                disk.broken = {operation}
                for _ in range(2):
                    with refuses(StoreUnavailable) as refusal:
                        await store.append(facts(lease, end + 1, f"failed {operation}"))
                    assert "disk failed" in str(refusal.error)
                assert await store.last_seq(A) == end + 1
                disk.broken = set()
                await store.append(facts(lease, end + 1, f"after {operation}"))
                await still_works(store, B)
    async with await open_sqlite(path) as store:
        kept = [b"before sync", b"after sync", b"before write", b"after write"]
        assert bodies(await store.read(A)) == kept
        assert bodies(await store.read(B)) == [b"more", b"more"]


@scenario
async def sqlite_never_brings_back_what_it_said_had_failed(folder: Path) -> None:
    path = folder / "weft.db"
    with faulty_disk("broken") as disk:
        async with await open_sqlite(path, vfs="broken") as store:
            lease = await store.take_lease(A)
            await store.append(facts(lease, 0, "kept"))
            disk.syncs_to_fail = 1
            with refuses(StoreUnavailable):
                await store.append(facts(lease, 1, "failed"))
            # As after kill -9 at this moment: the files as they are, opened by somebody else.
            copied = copy_of(folder, "copied")
            # The second failure hits whatever is done to mend the first.
            disk.syncs_to_fail = 2
            with refuses(StoreUnavailable):
                await store.append(facts(lease, 1, "failed"))
            await store.append(facts(lease, 1, "after"))
            assert not disk.syncs_to_fail
    async with await open_sqlite(copied / "weft.db") as store:
        assert bodies(await store.read(A)) == [b"kept"]
    async with await open_sqlite(path) as store:
        assert bodies(await store.read(A)) == [b"kept", b"after"]


@scenario
async def sqlite_locked_by_another_process_is_waited_for_then_refused(folder: Path) -> None:
    path = folder / "weft.db"
    async with await open_sqlite(path, busy_seconds=0.05) as store:
        lease = await store.take_lease(A)
        locker = open_connection(path)
        locker.execute("begin immediate")
        with refuses(StoreUnavailable) as refusal:
            await store.append(facts(lease, 0, "refused"))
        assert "stayed locked by" in str(refusal.error)
        assert await store.read(A) == [], "reading goes on"
        locker.execute("rollback")
        locker.close()
        await store.append(facts(lease, 0, "kept"))
        assert bodies(await store.read(A)) == [b"kept"]


@scenario
async def sqlite_waits_for_a_lock_that_is_given_back(folder: Path) -> None:
    path = folder / "weft.db"
    async with await open_sqlite(path) as store:
        lease = await store.take_lease(A)
        locker = open_connection(path)
        locker.execute("begin immediate")
        waiting = asyncio.ensure_future(store.append(facts(lease, 0, "kept")))
        done, _ = await asyncio.wait([waiting], timeout=0.05)
        assert not done
        locker.execute("commit")
        locker.close()
        await waiting
        assert await store.last_seq(A) == 1


@scenario
async def sqlite_writes_into_no_file_that_was_removed_or_replaced(folder: Path) -> None:
    path = folder / "weft.db"
    store = await open_sqlite(path)
    lease = await store.take_lease(A)
    await store.append(facts(lease, 0, "kept"))
    path.rename(folder / "moved.db")
    with refuses(StoreUnavailable) as refusal:
        await store.append(facts(lease, 1, "into the void"))
    assert "removed or replaced" in str(refusal.error)
    path.write_bytes(b"")
    with refuses(StoreUnavailable):
        await store.append(facts(lease, 1, "into another file"))
    path.unlink()
    (folder / "moved.db").rename(path)
    await store.append(facts(lease, 1, "back again"))
    await store.aclose()
    async with await open_sqlite(path) as again:
        assert bodies(await again.read(A)) == [b"kept", b"back again"]


# -- SQLite: the data


@scenario
async def sqlite_of_a_newer_program_is_refused_and_left_as_it_is(folder: Path) -> None:
    path = folder / "weft.db"
    async with await open_sqlite(path) as store:
        await store.append(project(0, "p"))
    change(path, "pragma user_version = 99")
    before = path.read_bytes()
    with refuses(TooNew) as refusal:
        await open_sqlite(path)
    assert "newer Weft" in str(refusal.error)
    assert path.read_bytes() == before


@scenario
async def sqlite_refuses_what_is_no_store(folder: Path) -> None:
    garbage = folder / "garbage.db"
    garbage.write_bytes(b"this is no database, but it is long enough to be looked at " * 50)
    before = garbage.read_bytes()
    with refuses(Corrupt):
        await open_sqlite(garbage)
    assert garbage.read_bytes() == before
    foreign = folder / "foreign.db"
    change(foreign, "create table theirs (x)")
    with refuses(StoreUnavailable) as refusal:
        await open_sqlite(foreign)
    assert "another program" in str(refusal.error)
    (folder / "file").write_text("")
    with refuses(StoreUnavailable):
        await open_sqlite(folder / "file" / "weft.db")
    with refuses(StoreUnavailable):
        await open_sqlite(folder)


@scenario
async def sqlite_with_one_bad_row_hurts_that_session_alone(folder: Path) -> None:
    path = folder / "weft.db"
    async with await open_sqlite(path) as store:
        await fill(store)
    number = f"(select stream_no from streams where name = '{A}')"
    change(path, f"delete from facts where stream_no = {number} and seq = 2")
    change(path, f"update sessions set row = cast('{{\"id\": 5' as blob) where id = '{A}'")
    async with await open_sqlite(path) as store:
        with refuses(Corrupt) as refusal:
            await store.read(A)
        assert isinstance(refusal.error, Corrupt)
        assert (refusal.error.stream, refusal.error.seq) == (A, 2)
        assert bodies(await store.read(A, limit=1)) == [b"one"]
        rows = {row.id: row for row in await store.rows()}
        assert "cannot be read" in rows[A].damaged
        assert not rows[B].damaged
        await still_works(store, B)


@scenario
async def sqlite_with_a_broken_page_hurts_what_is_on_it_alone(folder: Path) -> None:
    path = folder / "weft.db"
    async with await open_sqlite(path) as store:
        lease = await store.take_lease(A)
        row = SessionRow(id=A)
        big = Record(1, 0.0, "k", b"z" * 200_000)
        await store.append(
            Append(stream=A, expected_seq=0, records=(big,), fence=lease.fence, row=row)
        )
        await fill(store, B)
    data = bytearray(path.read_bytes())
    at = data.find(b"z" * 4000) // 4096 * 4096
    data[at : at + 4] = b"\xff\xff\xff\xff"  # the number of the next page of the big body
    path.write_bytes(data)
    async with await open_sqlite(path) as store:
        with refuses(Corrupt):
            await store.read(A)
        assert {row.id for row in await store.rows()} == {A, B}
        await still_works(store, B)


# -- jsonl


@scenario
async def jsonl_cuts_a_torn_last_line_off_and_reports_it(folder: Path) -> None:
    for name, torn in (
        ("half a line", b'{"after":3,"records":[{"seq":4,"at":0.0,"ki'),
        ("zeros to the end", b'{"after":3,"rec' + bytes(40) + b"\n"),
        ("not even text", b"\xff\xfe\x00"),
    ):
        place = folder / name
        async with await open_jsonl(place) as store:
            await fill(store)
        log = place / "logs" / f"{A}.jsonl"
        whole = log.read_bytes()
        log.write_bytes(whole + torn)
        async with await open_jsonl(place) as store:
            assert bodies(await store.read(A)) == [b"one", b"two", b"three"]
            assert len(store.repairs) == 1
            assert f"{A}.jsonl was torn" in store.repairs[0]
            assert log.read_bytes() == whole
            assert log.with_suffix(".torn").read_bytes() == torn
            await still_works(store, A)
            await still_works(store, B)


@scenario
async def jsonl_with_one_bad_line_hurts_that_session_alone(folder: Path) -> None:
    async with await open_jsonl(folder) as store:
        await fill(store)
        lease = await store.take_lease(A)
        await store.append(facts(lease, 3, "four"))
    log = folder / "logs" / f"{A}.jsonl"
    first, rest = log.read_bytes().split(b"\n", 1)
    for damaged in (b"{garbage}\n" + rest, rest, first + b"\n" + first + b"\n" + rest):
        log.write_bytes(damaged)
        (folder / "rows" / f"{A}.json").unlink(missing_ok=True)
        async with await open_jsonl(folder) as store:
            with refuses(Corrupt) as refusal:
                await store.read(A)
            assert isinstance(refusal.error, Corrupt)
            assert refusal.error.stream == A
            assert log.read_bytes() == damaged, "damage is not a torn end: nothing is cut"
            rows = {row.id: row for row in await store.rows()}
            assert rows[A].damaged
            assert not rows[B].damaged
            await still_works(store, B)


@scenario
async def jsonl_on_a_full_disk_says_so_and_nothing_is_half_written(folder: Path) -> None:
    async with await open_jsonl(folder) as store:
        a, b = await store.take_lease(A), await store.take_lease(B)
        await store.append(facts(a, 0, "kept"), facts(b, 0, "kept"))
        with file_size_limit(60_000), refuses(StoreUnavailable) as refusal:
            await store.append(facts(a, 1, "x" * 100_000))
        assert "disk is full" in str(refusal.error)
        log = folder / "logs" / f"{B}.jsonl"
        await store.append(facts(b, 1, "y" * 50_000))
        # The journal and the first file have room for this batch, the second file has not.
        with file_size_limit(log.stat().st_size + 20_000), refuses(StoreUnavailable):
            await store.append(facts(a, 1, "x" * 15_000), facts(b, 2, "x" * 15_000))
        assert await store.last_seq(A) == 1
        assert await store.last_seq(B) == 2
        await store.append(facts(a, 1, "small"), facts(b, 2, "small"))
        assert store.repairs == (), "what failed was cut off at once, not found torn later"
    async with await open_jsonl(folder) as store:
        assert store.repairs == ()
        assert bodies(await store.read(A)) == [b"kept", b"small"]
        assert await store.last_seq(B) == 3


@scenario
async def jsonl_locked_by_another_process_is_waited_for_then_refused(folder: Path) -> None:
    async with await open_jsonl(folder, busy_seconds=0.05) as store:
        lease = await store.take_lease(A)
        locker = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            "import fcntl, sys; f = open(sys.argv[1], 'r+'); fcntl.lockf(f, fcntl.LOCK_EX); "
            "print('locked', flush=True); sys.stdin.read()",
            str(folder / "lock"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert locker.stdin is not None
        assert locker.stdout is not None
        await locker.stdout.readline()
        with refuses(StoreUnavailable) as refusal:
            await store.append(facts(lease, 0, "refused"))
        assert "stayed locked by" in str(refusal.error)
        locker.stdin.close()
        await locker.wait()
        await store.append(facts(lease, 0, "kept"))
        assert bodies(await store.read(A)) == [b"kept"]


@scenario
async def jsonl_of_a_newer_program_is_refused_and_left_as_it_is(folder: Path) -> None:
    async with await open_jsonl(folder) as store:
        await fill(store)
    (folder / "version.json").write_text('{"weft_jsonl": 99}')
    before = content_of(folder)
    with refuses(TooNew) as refusal:
        await open_jsonl(folder)
    assert "newer Weft" in str(refusal.error)
    assert content_of(folder) == before
    (folder / "version.json").write_text("what is this")
    with refuses(StoreUnavailable):
        await open_jsonl(folder)
    (folder / "file").write_text("")
    with refuses(StoreUnavailable):
        await open_jsonl(folder / "file" / "store")


@scenario
async def jsonl_whose_side_files_are_gone_or_spoilt_makes_them_again(folder: Path) -> None:
    async with await open_jsonl(folder) as store:
        await fill(store)
        before = await store.rows()
        lease = await store.take_lease(A)
        # As after a crash between the line and the side file: the row on the side is an old one.
        renamed = SessionRow(id=A, title="Renamed", last_active=9.0)
        stale = (folder / "rows" / f"{A}.json").read_bytes()
        await store.append(
            Append(stream=A, expected_seq=3, records=(), fence=lease.fence, row=renamed)
        )
        side = folder / "rows" / f"{A}.json"
        side.write_bytes(stale)
        assert await store.row(A) == renamed
        side.write_bytes(stale)
        await store.append(facts(lease, 3, "four"))
        assert await store.row(A) == renamed
    for kept_bytes in (0, 9, None):
        for file in (folder / "rows").iterdir():
            if kept_bytes is None:
                file.unlink()
            else:
                file.write_bytes(file.read_bytes()[:kept_bytes])
        async with await open_jsonl(folder) as store:
            assert await store.rows() == [renamed, *(row for row in before if row.id != A)]


# -- what the scenarios are made of


async def fill(store: Store, *names: SessionId) -> None:
    """Three facts and a row for each session."""
    for name in names or (A, B):
        lease = await store.take_lease(name)
        row = SessionRow(id=name, title="Fine", last_active=1.0)
        add = facts(lease, 0, "one", "two", "three")
        await store.append(
            Append(stream=name, expected_seq=0, records=add.records, fence=add.fence, row=row)
        )
        await store.release_lease(lease)


async def still_works(store: Store, name: SessionId) -> None:
    """A session can be read, written and listed."""
    end = await store.last_seq(name)
    lease = await store.take_lease(name)
    await store.append(facts(lease, end, "more"))
    assert bodies(await store.read(name, after=end)) == [b"more"]
    await store.release_lease(lease)


def change(path: Path, sql: str) -> None:
    """Change a database behind the store's back."""
    db = open_connection(path)
    db.execute(sql)
    db.close()


def copy_of(folder: Path, name: str) -> Path:
    """The database and its log as they are on disk at this instant."""
    copied = folder / name
    copied.mkdir()
    for file in ("weft.db", "weft.db-wal"):
        shutil.copy(folder / file, copied / file)
    return copied


def content_of(folder: Path) -> dict[Path, bytes]:
    """Every file and what is in it."""
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def main(argv: Sequence[str]) -> int:
    """Run every scenario and print the line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=0, help="scenarios to run; 0 for all")
    parser.add_argument("--seed", type=int, default=1, help="unused: nothing here is random")
    chosen = parser.parse_args(argv)
    start = time.monotonic()
    wrong = 0
    names = list(SCENARIOS)[: chosen.n or None]
    for name in names:
        with tempfile.TemporaryDirectory(prefix="faults-") as folder:
            try:
                asyncio.run(_run(SCENARIOS[name], Path(folder)))
            except Exception:
                wrong += 1
                print(f"{name}:\n{traceback.format_exc()}", file=sys.stderr)
    line = {
        "claim": "faults",
        "n": len(names),
        "violations": wrong,
        "seed": chosen.seed,
        "seconds": round(time.monotonic() - start, 1),
    }
    print(json.dumps(line))
    return int(bool(wrong))


async def _run(one: Scenario, folder: Path) -> None:
    await one(folder)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
