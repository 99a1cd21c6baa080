"""A deleted session leaves no readable byte in the files of its store."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import msgspec
import pytest

from tests.support.file_tree import files_holding
from tests.support.store_connection import open_connection
from weft.ids import BlobId, NodeId, SessionId
from weft.store import (
    Append,
    Blob,
    DraftChunk,
    Lease,
    Record,
    SearchText,
    SessionRow,
    Snapshot,
    Store,
    project_stream,
)
from weft.store.jsonl import open_jsonl
from weft.store.sqlite import open_sqlite

pytestmark = [pytest.mark.anyio, pytest.mark.process]

GONE, STAYS = SessionId("ses_gone"), SessionId("ses_stays")
MARK, OTHER = "xylophone7", "marimba9"
SIZES = (1, 5, 20, 60, 400)
"""Repetitions of the mark: bodies that share a page, and bodies that need pages of their own."""


@pytest.fixture(params=["sqlite", "jsonl"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@contextlib.asynccontextmanager
async def opened(kind: str, folder: Path) -> AsyncIterator[Store]:
    store: Store
    if kind == "sqlite":
        store = await open_sqlite(folder / "weft.db")
    else:
        store = await open_jsonl(folder / "jsonl")
    with anyio.fail_after(60):
        try:
            yield store
        finally:
            await store.aclose()


def blob_of(text: str) -> Blob:
    data = text.encode()
    return Blob(BlobId(hashlib.sha256(data).hexdigest()), data)


def spoken(lease: Lease, seq: int, mark: str, blobs: tuple[Blob, ...] = ()) -> Append:
    """One fact with the mark wherever a store keeps text."""
    text = f"{mark} {seq} " * SIZES[seq % len(SIZES)]
    return Append(
        stream=lease.stream,
        expected_seq=seq,
        records=(Record(seq + 1, 1.0, "said", text.encode()),),
        fence=lease.fence,
        row=SessionRow(id=SessionId(lease.stream), title=f"{mark} {seq}", project_path="/p"),
        said=(SearchText(node=NodeId(f"n{seq}"), text=text),),
        blobs=blobs,
        history=tuple(blob.id for blob in blobs[1:]),
        drop_draft=seq % 7 == 0,
    )


async def interleave(store: Store, rounds: int = 150) -> tuple[Lease, Lease]:
    """Two sessions that grow in turns, so that their records lie on the same pages."""
    gone, stays = await store.take_lease(GONE), await store.take_lease(STAYS)
    for seq in range(rounds):
        blobs = (blob_of(f"{MARK} output {seq} " * 300), blob_of(f"{MARK} file {seq} " * 300))
        await store.append(spoken(gone, seq, MARK, blobs if seq % 10 == 0 else ()))
        await store.append(spoken(stays, seq, OTHER))
        await store.save_snapshot(GONE, Snapshot(seq + 1, "v", f"{MARK} snap ".encode() * 500))
        draft = DraftChunk(
            stream=GONE, fence=gone.fence, node=NodeId("n"), part="text", chunk=f"{MARK} d" * 99
        )
        store.save_draft(draft)
    return gone, stays


async def test_nothing_of_a_deleted_session_can_be_read_in_any_file(
    kind: str, tmp_path: Path
) -> None:
    async with opened(kind, tmp_path) as store:
        await interleave(store)
        assert files_holding(tmp_path, MARK)
        await store.delete(GONE)
        assert len(await store.read(STAYS)) == 150
    assert files_holding(tmp_path, MARK) == []
    async with opened(kind, tmp_path) as store:
        assert {hit.session_id for hit in await store.search(OTHER)} == {STAYS}


async def test_nothing_of_an_overwritten_record_can_be_read_in_any_file(
    kind: str, tmp_path: Path
) -> None:
    stream = project_stream("prj_1")
    async with opened(kind, tmp_path) as store:
        stays = await store.take_lease(STAYS)
        for seq in range(60):
            words = {0: MARK, 1: OTHER}[seq % 2]
            body = f'"{words} {seq}{" more" * SIZES[seq % len(SIZES)]}"'.encode()
            record = Record(seq + 1, 1.0, "said", body)
            await store.append(
                Append(stream=stream, expected_seq=seq, records=(record,)),
                spoken(stays, seq, OTHER),
            )
        assert files_holding(tmp_path, MARK)
        await store.overwrite(stream, [Record(n, 1.0, "said", b'"-"') for n in range(1, 60, 2)])
    assert files_holding(tmp_path, MARK) == []
    async with opened(kind, tmp_path) as store:
        assert len(await store.read(stream)) == 60


async def test_the_blobs_of_a_deleted_session_go_but_those_that_another_one_names(
    kind: str, tmp_path: Path
) -> None:
    shared, own = blob_of("shared"), blob_of("own")
    async with opened(kind, tmp_path) as store:
        gone, stays = await store.take_lease(GONE), await store.take_lease(STAYS)
        await store.append(spoken(gone, 0, MARK, (shared, own)))
        await store.append(
            msgspec.structs.replace(spoken(stays, 0, OTHER), names_blobs=(shared.id,))
        )
        await store.delete(GONE)
        assert await store.blob(shared.id) == b"shared"
        assert await store.blob(own.id) is None


async def test_a_fork_keeps_what_it_reads_and_the_last_fork_takes_it_along(
    kind: str, tmp_path: Path
) -> None:
    async with opened(kind, tmp_path) as store:
        gone, stays = await store.take_lease(GONE), await store.take_lease(STAYS)
        await store.append(spoken(gone, 0, MARK, (blob_of(f"{MARK} output"),)))
        fork = SessionRow(id=STAYS, parent_id=GONE, project_path="/p")
        await store.append(msgspec.structs.replace(spoken(stays, 0, OTHER), row=fork))
        await store.delete(GONE)
    assert files_holding(tmp_path, MARK)
    async with opened(kind, tmp_path) as store:
        assert await store.read(GONE)
        await store.delete(STAYS)
    assert files_holding(tmp_path, MARK) == []
    assert files_holding(tmp_path, OTHER) == []


async def test_while_the_store_stays_open_the_log_of_sqlite_is_emptied_at_once(
    tmp_path: Path,
) -> None:
    async with opened("sqlite", tmp_path) as store:
        lease = await store.take_lease(GONE)
        await store.append(spoken(lease, 0, MARK))
        await store.delete(GONE)
        assert files_holding(tmp_path, MARK) == []


async def test_a_reader_that_holds_the_log_delays_its_emptying_and_not_the_delete(
    tmp_path: Path,
) -> None:
    async with opened("sqlite", tmp_path) as store:
        lease = await store.take_lease(GONE)
        await store.append(spoken(lease, 0, MARK))
        reader = open_connection(tmp_path / "weft.db")
        reader.execute("begin")
        assert list(reader.execute("select count(*) from facts"))
        await store.delete(GONE)
        assert await store.last_seq(GONE) == 0
        reader.close()
        # Any later commit does what could not be done then.
        other = await store.take_lease(STAYS)
        await store.append(spoken(other, 0, OTHER))
        await store.last_seq(STAYS)
    assert files_holding(tmp_path, MARK) == []


async def test_a_rewrite_that_a_crash_prevented_is_made_up_for_by_the_next_close(
    tmp_path: Path,
) -> None:
    async with opened("sqlite", tmp_path) as store:
        await interleave(store, 20)
    db = open_connection(tmp_path / "weft.db")
    # What a process that was killed right after its delete leaves behind.
    db.execute("pragma secure_delete = off")
    for table in ("facts", "said", "sessions", "drafts", "snapshots", "blob_refs", "history_refs"):
        db.execute(
            f"delete from {table} where stream_no = "
            "(select stream_no from streams where name = 'ses_gone')"
        )
    db.execute("delete from blobs")
    db.execute("insert into said_words (said_words) values ('delete-all')")
    db.execute("insert into meta values ('unscrubbed', 1)")
    db.close()
    assert files_holding(tmp_path, MARK)
    async with opened("sqlite", tmp_path) as store:
        assert await store.last_seq(STAYS) == 20
    assert files_holding(tmp_path, MARK) == []
