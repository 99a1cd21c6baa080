"""`JsonlStore`: the contract, with each question sent to a thread that asks the files under the
lock.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from weft.clock import Clock, SystemClock
from weft.errors import Corrupt, StoreError
from weft.ids import BlobId, SessionId
from weft.store.base import (
    Append,
    Draft,
    DraftChunk,
    KeptContent,
    Lease,
    Record,
    RowPlace,
    SearchHit,
    SessionRow,
    Snapshot,
)
from weft.store.checks import check_appends, check_leasable, check_overwritable
from weft.store.drafts import ended_drafts
from weft.store.follower import FollowerBell
from weft.store.jsonl import (
    append as appending,
)
from weft.store.jsonl import draft_file
from weft.store.jsonl import (
    leases as leasing,
)
from weft.store.jsonl import (
    session_list as listing,
)
from weft.store.jsonl import (
    sidecars as beside,
)
from weft.store.jsonl.folder import JsonlFolder
from weft.store.queued_store import DiskStore
from weft.store.text import refused_if_unstorable
from weft.store.threads import WorkerThread
from weft.store.watch import ChangeWatch

T = TypeVar("T")

logger = logging.getLogger(__name__)


class JsonlStore(DiskStore):
    """A `Store` in a folder of files.

    Made by `open_jsonl`.  It belongs to the event loop that opened it.
    """

    def __init__(self, folder: Path, *, busy_seconds: float, clock: Clock) -> None:
        self.folder = folder.absolute()
        super().__init__(self.folder / "run", clock)
        self._busy_seconds = busy_seconds
        self._worker = WorkerThread("weft-jsonl")
        # A search reads every file: in a thread of its own, and releasing the lock between two
        # files, it holds up no append.
        self._searcher = WorkerThread("weft-search")
        self._watch = ChangeWatch(self._look, on_change=self._ring_all)
        self._bell = FollowerBell(self._watch.want)
        self._held: set[str] = set()
        self._opened: JsonlFolder

    async def open(self) -> None:
        """Make the folder ready, and finish a batch that a crash left half written."""
        make = partial(JsonlFolder, self.folder, busy_seconds=self._busy_seconds)
        try:
            self._opened = await self._worker.ask(make)
        except BaseException:
            self._is_closed = True
            self._worker.end()
            raise

    @property
    def repairs(self) -> tuple[str, ...]:
        """What was found torn and cut off since the store was opened, one sentence each."""
        return tuple(self._opened.repairs)

    # -- the core

    async def append(self, *appends: Append) -> None:
        check_appends(appends)
        if not appends:
            return
        process_id = self.owner.process_id
        future = self._ask_soon(lambda opened: appending.append(opened, appends, process_id))
        grown = {one.stream for one in appends if one.records}
        # By callback, so that followers are woken also when the caller was cancelled.
        future.add_done_callback(lambda _: self._bell.ring(grown))
        await future
        # Not before: a refused append ends no draft, and what came later would leave a hole in it.
        self._clipped -= ended_drafts(self._clipped, appends)

    async def read(self, stream: str, *, after: int = 0, limit: int = 1000) -> list[Record]:
        return await self._ask(lambda opened: opened.log(stream).read(max(0, after), limit))

    async def read_at(self, stream: str, seqs: Sequence[int]) -> list[Record]:
        return await self._ask(lambda opened: _read_at(opened, stream, seqs))

    async def last_seq(self, stream: str) -> int:
        return await self._ask(lambda opened: opened.log(stream).last_seq)

    async def take_lease(self, stream: str, *, steal: bool = False) -> Lease:
        return (await self.take_leases([stream], steal=steal))[0]

    async def take_leases(self, streams: Sequence[str], *, steal: bool = False) -> list[Lease]:
        for stream in streams:
            check_leasable(stream)
        wanted = list(dict.fromkeys(streams))
        return await self._ask(lambda opened: self._take(opened, wanted, steal=steal))

    def _take(self, opened: JsonlFolder, streams: Sequence[str], *, steal: bool) -> list[Lease]:
        taken = leasing.take(
            opened,
            {stream: listing.row(opened, SessionId(stream)) for stream in streams},
            self.owner,
            steal=steal,
            presence=self._presence,
            now=self._clock.now(),
        )
        self._held.update(streams)
        return taken

    async def release_lease(self, lease: Lease) -> None:
        await self.release_leases([lease])

    async def release_leases(self, leases: Sequence[Lease]) -> None:
        await self._ask(lambda opened: leasing.release(opened, leases, self.owner))

    async def lease_of(self, stream: str) -> Lease | None:
        return await self._ask(lambda opened: leasing.lease_of(opened, stream))

    # -- lists and search

    async def row(self, session_id: SessionId) -> SessionRow | None:
        return await self._ask(lambda opened: listing.row(opened, session_id))

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

        wanted = RowQuery(
            project_path=project_path,
            query=query,
            limit=limit,
            archived=archived,
            children=children,
            after=after,
        )
        self._check_open()
        worker = self._searcher if query else self._worker
        return await worker.ask(lambda: listing.rows(self._opened, wanted))

    async def due(
        self, before: float, *, project_path: str | None = None, limit: int = 100
    ) -> list[SessionRow]:
        return await self._ask(lambda opened: listing.due(opened, before, project_path, limit))

    async def ids_with_prefix(self, prefix: str, *, limit: int = 10) -> list[SessionId]:
        return await self._ask(lambda opened: listing.ids_with_prefix(opened, prefix, limit))

    async def search(self, query: str, *, limit: int = 20) -> list[SearchHit]:
        self._check_open()
        return await self._searcher.ask(lambda: listing.search(self._opened, query, limit))

    async def mark_damaged(self, session_id: SessionId, reason: str) -> None:
        await self._ask(lambda opened: listing.mark_damaged(opened, session_id, reason))

    async def overwrite(self, stream: str, records: Sequence[Record]) -> None:
        check_overwritable(stream)
        await self._ask(lambda opened: beside.overwrite(opened, stream, records))

    async def delete(self, session_id: SessionId) -> None:
        await self._ask(lambda opened: beside.delete(opened, session_id, self.owner))

    # -- beside the log

    def _hand_in_draft(self, chunk: DraftChunk, weight: int) -> None:
        done = self._worker.ask(lambda: self._save(chunk))
        done.add_done_callback(lambda _: self._weigh_less(weight))

    def _weigh_less(self, weight: int) -> None:
        self._draft_bytes -= weight

    def _save(self, chunk: DraftChunk) -> None:
        try:
            with self._opened.entered():
                draft_file.save_draft(self._opened, chunk, self.owner.process_id)
        except StoreError as error:
            logger.warning("a draft of %s was not kept: %s", chunk.stream, error)

    async def load_drafts(self, stream: str) -> list[Draft]:
        return await self._ask(lambda opened: draft_file.load_drafts(opened, stream))

    async def blob(self, blob_id: BlobId) -> bytes | None:
        return await self._ask(lambda opened: beside.blob(opened, blob_id))

    async def missing_blobs(
        self, blob_ids: Collection[BlobId], *, project_path: str | None = None
    ) -> set[BlobId]:
        # The trees in the logs name what they need, of whichever project it is.
        return await self._ask(lambda opened: beside.missing_blobs(opened, blob_ids))

    async def sweep_blobs(self) -> int:
        return await self._ask(beside.sweep_blobs)

    async def history_contents(self, project_path: str) -> list[KeptContent]:
        return await self._ask(lambda opened: beside.history_contents(opened, project_path))

    async def trim_history(
        self, project_path: str, most_bytes: int, newest: BlobId | None = None
    ) -> int:
        return await self._ask(
            lambda opened: beside.trim_history(opened, project_path, most_bytes, newest)
        )

    async def save_snapshot(self, stream: str, snapshot: Snapshot) -> None:
        await self._ask(lambda opened: beside.save_snapshot(opened, stream, snapshot))

    async def load_snapshot(self, stream: str, version: str) -> Snapshot | None:
        return await self._ask(lambda opened: beside.load_snapshot(opened, stream, version))

    async def _publish_owner(self) -> None:
        await self._ask(lambda opened: leasing.register(opened, self.owner, self._presence))

    # -- life

    async def aclose(self) -> None:
        """Finish what was handed in, give back all leases, and close.

        A cancelled wait lets it go on by itself.
        """
        if self._is_closed:
            return
        self._is_closed = True
        self._bell.ring_all()
        self._watch.end()
        self._searcher.end()
        self._worker.tell(self._release)
        self._worker.end()
        await self._worker.ended()

    def _release(self) -> None:
        # The other threads first: they read files that are about to be closed.
        self._watch.join()
        self._searcher.join()
        try:
            with self._opened.entered():
                for stream in self._held:
                    held = leasing.holding(self._opened, stream)
                    if held.process_id == self.owner.process_id:
                        leasing.put(self._opened, stream, leasing.LeaseFile(fence=held.fence))
                leasing.bury(self._opened, self.owner.process_id)
        except StoreError as error:
            # The lock goes with the process: the next one finds the leases free.
            logger.warning("the leases could not be given back: %s", error)
        self._presence.end()
        self._opened.close()

    # -- the threads

    async def _ask(self, work: Callable[[JsonlFolder], T]) -> T:
        return await self._ask_soon(work)

    def _ask_soon(self, work: Callable[[JsonlFolder], T]) -> asyncio.Future[T]:
        self._check_open()
        return self._worker.ask(lambda: self._under_the_lock(work))

    def _under_the_lock(self, work: Callable[[JsonlFolder], T]) -> T:
        with refused_if_unstorable(), self._opened.entered():
            return work(self._opened)

    def _look(self) -> object:
        """The sizes of the files that are followed.

        Runs in the watch's thread, without the lock.
        """
        sizes = []
        for stream in self._bell.streams():
            try:
                sizes.append((stream, os.stat(self._opened.places.log(stream)).st_size))
            except OSError:
                sizes.append((stream, 0))
        return sizes

    def _ring_all(self) -> None:
        self._bell.ring_all()


def _read_at(opened: JsonlFolder, stream: str, seqs: Sequence[int]) -> list[Record]:
    log = opened.log(stream)
    for seq in seqs:
        if not 1 <= seq <= log.last_seq:
            raise Corrupt(stream, "there is no such record", seq=seq)
    return log.read_at(seqs)


async def open_jsonl(
    directory: str | os.PathLike[str],
    *,
    busy_seconds: float = 60.0,
    clock: Clock | None = None,
) -> JsonlStore:
    """Open the store in the folder `directory`, making it when it is missing.

    `busy_seconds` is how long a folder that another process has locked is waited for.

    Raises:
        TooNew: a newer Weft made the folder; it is left as it is.
        StoreUnavailable: it cannot be made, opened or locked.
    """
    store = JsonlStore(Path(directory), busy_seconds=busy_seconds, clock=clock or SystemClock())
    await store.open()
    return store
