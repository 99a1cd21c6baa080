"""`SqliteStore`: the contract, with each question sent to the thread that answers it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar, cast

import apsw

from weft.clock import Clock, SystemClock
from weft.errors import StoreUnavailable
from weft.ids import BlobId, NodeId, SessionId
from weft.store.base import (
    Append,
    Draft,
    DraftChunk,
    KeptContent,
    Lease,
    NodePlace,
    Record,
    RowPlace,
    SearchHit,
    SessionRow,
    Snapshot,
)
from weft.store.checks import check_appends, check_leasable, check_overwritable
from weft.store.drafts import ended_drafts
from weft.store.follower import FollowerBell
from weft.store.queued_store import DiskStore
from weft.store.sqlite import appends as writing
from weft.store.sqlite import leases
from weft.store.sqlite import reader as reading
from weft.store.sqlite.connect import Synchronous
from weft.store.sqlite.reader import ReadConnection, ReaderThread
from weft.store.sqlite.writer import JobResult, WriteJob, WriterThread
from weft.store.threads import settle
from weft.store.watch import ChangeWatch

T = TypeVar("T")


class SqliteStore(DiskStore):
    """A `Store` in one SQLite file.

    Made by `open_sqlite`.  It belongs to the event loop that opened it.
    """

    def __init__(
        self,
        path: Path,
        *,
        synchronous: Synchronous,
        vfs: str | None,
        busy_seconds: float,
        clock: Clock,
    ) -> None:
        path = path.absolute()
        super().__init__(path.parent / "run", clock)
        self.path = path
        self._writer = WriterThread(
            path,
            synchronous=synchronous,
            vfs=vfs,
            busy_seconds=busy_seconds,
            deliver=self._deliver,
            on_close=self._release,
        )
        self._reader = ReaderThread(path, vfs=vfs, busy_seconds=busy_seconds, name="weft-reader")
        # Searches get a thread of their own: a slow one must not hold up the reading of a session.
        self._searcher = ReaderThread(path, vfs=vfs, busy_seconds=busy_seconds, name="weft-search")
        self._here = ReadConnection(path, vfs=vfs, busy_seconds=0)
        """For the event loop's own thread; it is opened with the first look."""
        connection = ReadConnection(path, vfs=vfs, busy_seconds=0)
        self._connections = (self._here, connection)
        self._watch = ChangeWatch(
            connection.data_version,
            on_change=self._look_for_growth,
            on_close=connection.close,
        )
        self._bell = FollowerBell(self._watch.want)
        self._seen: dict[str, int] = {}

    async def open(self) -> None:
        """Start the writer; the file exists and is ours afterwards."""
        await self._writer.open()
        if self._writer.is_read_only:
            # No lease is ever taken here, and no socket made.
            self.is_shared, self.meeting_folder = False, None
            for each in (self._reader.connection, self._searcher.connection, *self._connections):
                each.is_full = self._writer.is_full

    # -- the core

    async def append(self, *appends: Append) -> None:
        check_appends(appends)
        if not appends:
            return
        await self._write(
            lambda db: writing.append(db, appends, self.owner.process_id),
            stream=appends[0].stream,
            grows=tuple(append.stream for append in appends if append.records),
        )
        # Not before: a refused append ends no draft, and what came later would leave a hole in it.
        self._clipped -= ended_drafts(self._clipped, appends)

    async def read(self, stream: str, *, after: int = 0, limit: int = 1000) -> list[Record]:
        start = max(0, after)
        return await self._ask(lambda db: reading.read(db, stream, start, limit), stream)

    async def read_at(self, stream: str, seqs: Sequence[int]) -> list[Record]:
        return await self._ask(lambda db: reading.read_at(db, stream, seqs), stream)

    def read_now(self, stream: str, seqs: Sequence[int]) -> list[Record]:
        # A record is found in tens of microseconds; the way to the reader's thread takes as long.
        return self._here.run(lambda db: reading.read_at(db, stream, seqs), stream)

    def blob_now(self, blob_id: BlobId) -> bytes | None:
        return self._here.run(lambda db: reading.blob(db, blob_id))

    async def last_seq(self, stream: str) -> int:
        def query(db: apsw.Connection) -> dict[str, int]:
            return reading.last_seqs(db, [stream])

        # By the writer while nothing has been read: every run asks, and the reader, a thread and a
        # connection, may never be needed otherwise.  But a file that cannot be written, or is
        # locked, can still be read.
        if not self._reader.is_used:
            with suppress(StoreUnavailable):
                return (await self._write(query, stream=stream)).get(stream, 0)
        return (await self._ask(query, stream)).get(stream, 0)

    async def take_lease(self, stream: str, *, steal: bool = False) -> Lease:
        return (await self.take_leases([stream], steal=steal))[0]

    async def take_leases(self, streams: Sequence[str], *, steal: bool = False) -> list[Lease]:
        for stream in streams:
            check_leasable(stream)
        if not streams:
            return []
        work = partial(
            leases.take,
            streams=list(dict.fromkeys(streams)),
            owner=self.owner,
            steal=steal,
            presence=self._presence,
            now=self._clock.now(),
        )
        return await self._write(work, stream=streams[0])

    async def release_lease(self, lease: Lease) -> None:
        await self.release_leases([lease])

    async def release_leases(self, given_back: Sequence[Lease]) -> None:
        about = given_back[0].stream if given_back else ""
        await self._write(lambda db: leases.release(db, given_back, self.owner), stream=about)

    async def lease_of(self, stream: str) -> Lease | None:
        directory = self._presence.directory
        return await self._ask(lambda db: leases.lease_of(db, stream, directory), stream)

    # -- lists and search

    async def row(self, session_id: SessionId) -> SessionRow | None:
        return await self._ask(lambda db: reading.row(db, session_id), session_id)

    async def rows(
        self,
        *,
        project_path: str | None = None,
        query: str | None = None,
        limit: int = 100,
        archived: bool = False,
        children: bool = False,
        after: RowPlace | None = None,
    ) -> list[SessionRow]:
        from weft.store.session_rows import RowQuery  # for lists alone: start-up time
        from weft.store.text import is_storable

        if project_path is not None and not is_storable(project_path):
            return []

        wanted = RowQuery(
            project_path=project_path,
            query=query,
            limit=limit,
            archived=archived,
            children=children,
            after=after,
        )
        reader = self._searcher if query else self._reader
        return await self._ask(lambda db: reading.rows(db, wanted), reader=reader)

    async def due(
        self, before: float, *, project_path: str | None = None, limit: int = 100
    ) -> list[SessionRow]:
        return await self._ask(lambda db: reading.due(db, before, project_path, limit))

    async def ids_with_prefix(self, prefix: str, *, limit: int = 10) -> list[SessionId]:
        from weft.store.text import is_storable  # as above

        if not is_storable(prefix):
            return []
        return await self._ask(lambda db: reading.ids_with_prefix(db, prefix, limit))

    async def nodes_with_prefix(self, prefix: str, *, limit: int = 10) -> list[NodePlace]:
        from weft.store.text import is_storable  # as above

        if not is_storable(prefix):
            return []
        return await self._ask(lambda db: reading.nodes_with_prefix(db, prefix, limit))

    async def nodes_named(self, nodes: Collection[NodeId]) -> list[NodePlace]:
        from weft.store.text import is_storable  # as above

        asked = [node for node in nodes if is_storable(node)]
        return await self._ask(lambda db: reading.nodes_named(db, asked))

    async def search(self, query: str, *, limit: int = 20) -> list[SearchHit]:
        return await self._ask(lambda db: reading.search(db, query, limit), reader=self._searcher)

    async def mark_damaged(self, session_id: SessionId, reason: str) -> None:
        await self._write(
            lambda db: writing.mark_damaged(db, session_id, reason), stream=session_id
        )

    async def overwrite(self, stream: str, records: Sequence[Record]) -> None:
        from weft.store.sqlite import delete as removal  # as below

        check_overwritable(stream)
        await self._write(lambda db: removal.overwrite(db, stream, records), stream=stream)
        await self._empty_log()

    async def delete(self, session_id: SessionId) -> None:
        from weft.store.sqlite import delete as removal  # with the first one: start-up time

        directory = self._presence.directory
        has_words = await self._write(
            lambda db: removal.delete(db, session_id, self.owner, directory), stream=session_id
        )
        # In small steps, each a job of its own: appends go on in between.
        pages = -removal.MERGED_PAGES
        while has_words and await self._write(partial(removal.merge_words, pages=pages)):
            pages = removal.MERGED_PAGES
        await self._empty_log()

    async def _empty_log(self) -> None:
        await self._write(lambda _: self._writer.empty_log())
        # The log is emptied between two groups, so an empty job returns when that was tried.
        await self._write(lambda _: None)

    # -- drafts, which are not in the log

    def _hand_in_draft(self, chunk: DraftChunk, weight: int) -> None:
        process_id = self.owner.process_id
        self._writer.submit(
            WriteJob(lambda db: writing.save_draft(db, chunk, process_id), None, weight=weight)
        )

    async def load_drafts(self, stream: str) -> list[Draft]:
        return await self._write(lambda db: writing.load_drafts(db, stream), stream=stream)

    async def blob(self, blob_id: BlobId) -> bytes | None:
        return await self._ask(lambda db: reading.blob(db, blob_id))

    async def missing_blobs(
        self, blob_ids: Collection[BlobId], *, project_path: str | None = None
    ) -> set[BlobId]:
        # By the writer: an append follows that needs the answer, and the reader, a thread and a
        # connection, may never be needed otherwise.
        return await self._write(lambda db: reading.missing_blobs(db, blob_ids, project_path))

    async def sessions_with(self, blob_id: BlobId) -> list[SessionId]:
        return await self._ask(lambda db: reading.sessions_with(db, blob_id))

    async def sweep_blobs(self) -> int:
        from weft.store.sqlite.delete import sweep_blobs  # as above

        return await self._write(sweep_blobs)

    async def history_contents(self, project_path: str) -> list[KeptContent]:
        from weft.store.sqlite.delete import history_contents  # as above

        return await self._ask(lambda db: history_contents(db, project_path))

    async def trim_history(
        self, project_path: str, most_bytes: int, newest: BlobId | None = None
    ) -> int:
        # Nearly always enough: every session asks with its first change of a file.
        if await self._write(lambda db: reading.history_bytes(db, project_path)) <= most_bytes:
            return 0
        from weft.store.sqlite.delete import trim_history  # as above

        return await self._write(lambda db: trim_history(db, project_path, most_bytes, newest))

    async def save_snapshot(self, stream: str, snapshot: Snapshot) -> None:
        await self._write(lambda db: writing.save_snapshot(db, stream, snapshot), stream=stream)

    async def load_snapshot(self, stream: str, version: str) -> Snapshot | None:
        return await self._ask(lambda db: reading.load_snapshot(db, stream, version), stream)

    async def _publish_owner(self) -> None:
        await self._write(lambda db: leases.register(db, self.owner, self._presence))

    # -- life

    async def aclose(self) -> None:
        """Finish what was handed in, give back all leases, and close.

        A cancelled wait lets it go on by itself.
        """
        if self._is_closed:
            return
        self._is_closed = True
        self._bell.ring_all()
        owner = self.owner
        self._writer.submit(WriteJob(lambda db: leases.release_all(db, owner), None))
        self._here.close()
        self._watch.end()
        self._reader.end()
        self._searcher.end()
        self._writer.end()
        await self._writer.ended()

    def _release(self) -> None:
        """The writer's last act: it closes after the readers, because the last one to close tidies
        the file up.
        """
        for thread in (self._watch, self._reader, self._searcher):
            thread.join()
        self._presence.end()

    # -- the threads

    async def _ask(
        self,
        query: Callable[[apsw.Connection], T],
        stream: str = "",
        *,
        reader: ReaderThread | None = None,
    ) -> T:
        self._check_open()
        return await (reader or self._reader).ask(query, stream)

    async def _write(
        self,
        work: Callable[[apsw.Connection], T],
        *,
        stream: str = "",
        grows: tuple[str, ...] = (),
    ) -> T:
        self._check_open()
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        # The wait is on a future and not on the job: a cancelled caller stops waiting, and the
        # commit goes on, because it may be half-way to the disk.
        self._writer.submit(WriteJob(work, future, stream, grows))
        return cast("T", await future)

    def _deliver(self, done: Sequence[JobResult]) -> None:
        """One group is durable or has failed: wake all callers and followers at once."""
        grown: set[str] = set()
        for ended in done:
            job = ended.job
            self._draft_bytes -= job.weight
            if job.future is not None:
                settle(job.future, ended.result, ended.error)
            if ended.error is None:
                grown.update(job.grows)
        # Once for the whole group, so that a follower reads one time and not once for each append.
        self._bell.ring(grown)

    def _look_for_growth(self) -> None:
        """Something was committed, by us or another process: wake those whose stream is
        longer now.
        """
        streams = self._bell.streams()
        if not streams or self._is_closed:
            return
        # `data_version` changes with every commit of any session; only streams that grew are woken.
        ends = self._reader.ask(lambda db: reading.last_seqs(db, streams))
        ends.add_done_callback(self._wake_grown)

    def _wake_grown(self, ends: asyncio.Future[dict[str, int]]) -> None:
        if ends.cancelled() or ends.exception() is not None:
            self._bell.ring_all()
            return
        known, self._seen = self._seen, ends.result()
        self._bell.ring(name for name, end in self._seen.items() if end != known.get(name))


async def open_sqlite(
    path: str | os.PathLike[str],
    *,
    synchronous: Synchronous = "FULL",
    vfs: str | None = None,
    busy_seconds: float = 60.0,
    clock: Clock | None = None,
) -> SqliteStore:
    """Open the store in the file `path`, making it when it is missing.

    `busy_seconds` is how long a file that another process has locked is waited for.  `synchronous`
    other than "FULL" loses accepted facts in a power cut; it and `vfs` are there for the tests that
    prove it.

    Raises:
        TooNew: a newer Weft made the file; it is left as it is.
        StoreUnavailable: it cannot be made, opened or locked.
        Corrupt: it is no database any more.
    """
    store = SqliteStore(
        Path(path),
        synchronous=synchronous,
        vfs=vfs,
        busy_seconds=busy_seconds,
        clock=clock or SystemClock(),
    )
    await store.open()
    return store
