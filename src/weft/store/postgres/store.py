"""`PostgresStore`: the contract, with writes sent down the lane and reads to a pool."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import TypeVar

import asyncpg
import msgspec

from weft.clock import Clock, SystemClock
from weft.errors import StoreError
from weft.ids import BlobId, NodeId, SessionId, new_id
from weft.store.address import is_over_network
from weft.store.base import (
    Append,
    Draft,
    DraftChunk,
    KeptContent,
    Lease,
    LeaseLiveness,
    NodePlace,
    Record,
    RowPlace,
    SearchHit,
    SessionRow,
    Snapshot,
    StoreHost,
)
from weft.store.checks import check_appends, check_leasable, check_overwritable
from weft.store.drafts import DraftPiece, ended_drafts, joined_drafts
from weft.store.liveness import this_process
from weft.store.postgres import leases, migration, reader, removal, rows
from weft.store.postgres.connection import (
    LOST,
    Connection,
    check_server,
    close,
    connect,
    explained,
    server_settings,
)
from weft.store.postgres.lane import AppendJob, DraftJob, WorkJob, WriteLane
from weft.store.postgres.registration import ProcessRegistration, hosts
from weft.store.postgres.settings import LeaseTimes, PostgresSettings
from weft.store.postgres.side_channel import SideChannel
from weft.store.postgres.store_tasks import StoreTasks
from weft.store.postgres.text_codec import loaded, stored
from weft.store.queued_store import QueuedStore
from weft.store.session_rows import RowQuery
from weft.store.text import check_text, check_texts_of, is_storable

T = TypeVar("T")
_READ_TRIES = 3


class PostgresStore(QueuedStore):
    """A `Store` in a Postgres database, for one tenant.

    Made by `open_postgres`.  It belongs to the event loop that opened it.
    """

    liveness: LeaseLiveness = "time"

    def __init__(self, settings: PostgresSettings, clock: Clock) -> None:
        now = clock.now()
        super().__init__(this_process(new_id("prc", now), started=now), clock)
        self.is_shared = True
        self._settings = settings
        self.tenant = settings.tenant
        self._given_back: ReturnedLeases | None = None
        """The last ones, which may still wait."""
        self._registration: ProcessRegistration
        self._lane: WriteLane
        self._side: SideChannel
        self._pool: asyncpg.Pool[asyncpg.Record]
        self._closing: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Connect, check the server, make or migrate the schema, and say that this process
        lives.
        """
        db = await connect(self._settings)
        try:
            await check_server(db)
            await migration.migrate(db)
            tenant = await migration.tenant_number(db, self._settings.tenant)
            await db.execute("select set_config('weft.tenant', $1, false)", str(tenant))
            self._registration = ProcessRegistration(self._settings, tenant, self.owner)
            self._side = SideChannel(self._settings, self._registration)
            self._bell = self._side.bell
            self._lane = WriteLane(
                self._settings,
                self._registration,
                on_grown=self._on_grown,
                on_drafts=self._on_drafts,
            )
            self._pool = await asyncpg.create_pool(
                self._settings.dsn,
                min_size=0,
                max_size=self._settings.readers,
                timeout=self._settings.answer_seconds,
                command_timeout=self._settings.answer_seconds,
                server_settings=server_settings(tenant),
            )
            await self._lane.open(db)
        except BaseException as error:
            await close(db)
            if isinstance(error, asyncpg.PostgresError | asyncpg.InterfaceError | OSError):
                raise explained(error) from error
            raise
        self._side.open()

    def lease_seconds_left(self) -> float:
        times = self._settings.times
        # A lock that is lost lets others take over sooner.  The guard begins two seconds before the
        # end; of the grace one must do, or each lost connection would end all turns at once.
        most = times.ttl_seconds if self._side.holds_lock else times.grace_seconds + 1.0
        # Counted from before the question was sent: the database noted it later than that.
        return min(most, times.ttl_seconds) - self._registration.silent_seconds

    # -- the core

    async def append(self, *appends: Append) -> None:
        check_appends(appends)
        for one in appends:
            check_texts_of(one)
        if not appends:
            return
        self._check_open()
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._lane.submit(AppendJob(appends, future))
        await future
        self._clipped -= ended_drafts(self._clipped, appends)

    async def read(self, stream: str, *, after: int = 0, limit: int = 1000) -> list[Record]:
        return await self._ask(reader.read, stream, max(0, after), limit)

    async def read_at(self, stream: str, seqs: Sequence[int]) -> list[Record]:
        return await self._ask(reader.read_at, stream, seqs)

    async def last_seq(self, stream: str) -> int:
        found = await self._ask(reader.last_seqs, [stream])
        return found[stream][1] if stream in found else 0

    async def take_lease(self, stream: str, *, steal: bool = False) -> Lease:
        return (await self.take_leases([stream], steal=steal))[0]

    async def take_leases(self, streams: Sequence[str], *, steal: bool = False) -> list[Lease]:
        for stream in streams:
            check_leasable(stream)
        check_text(*streams)
        if not streams:
            return []
        names, now = list(dict.fromkeys(streams)), self._clock.now()
        times = self._settings.times
        return await self._work(
            lambda db: leases.take(db, self._registration, times, names, steal=steal, now=now)
        )

    async def release_lease(self, lease: Lease) -> None:
        await self._give_back(lease, is_left=False)

    async def leave_lease(self, lease: Lease) -> None:
        # Of a server alone: what a command line was at is its user's to go on with.
        await self._give_back(lease, is_left=is_over_network(self.owner.address))

    async def _give_back(self, lease: Lease, *, is_left: bool) -> None:
        """Give a lease back, in one statement with those that are given back meanwhile: a host
        that is drained has hundreds.
        """
        self._check_open()
        batch = self._given_back
        # Never before anything that was handed in earlier: an append must find its lease.
        if batch is None or not self._lane.is_last(batch.job):
            batch = self._given_back = ReturnedLeases(self._registration)
            self._lane.submit(batch.job)
        (batch.left if is_left else batch.free).append(lease)
        # One of several that wait: a cancel is that one's alone.
        await asyncio.shield(batch.job.future)

    async def adopt(self, limit: int = 50, *, only: str | None = None) -> list[Lease]:
        times, now = self._settings.times, self._clock.now()
        return await self._work(
            lambda db: leases.adopt(db, self._registration, times, limit, now, only)
        )

    async def release_leases(self, given_back: Sequence[Lease]) -> None:
        await self._work(lambda db: leases.release(db, self._registration, given_back))

    async def lease_of(self, stream: str) -> Lease | None:
        return await self._ask(leases.lease_of, self._settings.times, stream)

    # -- lists and search

    async def row(self, session_id: SessionId) -> SessionRow | None:
        return await self._ask(reader.row, session_id)

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
        return await self._ask(reader.rows, wanted)

    async def due(
        self, before: float, *, project_path: str | None = None, limit: int = 100
    ) -> list[SessionRow]:
        return await self._ask(reader.due, before, project_path, limit)

    async def ids_with_prefix(self, prefix: str, *, limit: int = 10) -> list[SessionId]:
        if not is_storable(prefix):
            return []
        return await self._ask(reader.ids_with_prefix, prefix, limit)

    async def nodes_with_prefix(self, prefix: str, *, limit: int = 10) -> list[NodePlace]:
        if not is_storable(prefix):
            return []
        return await self._ask(reader.nodes_with_prefix, prefix, limit)

    async def nodes_named(self, nodes: Collection[NodeId]) -> list[NodePlace]:
        return await self._ask(reader.nodes_named, [each for each in nodes if is_storable(each)])

    async def search(self, query: str, *, limit: int = 20) -> list[SearchHit]:
        return await self._ask(reader.search, query, limit)

    async def mark_damaged(self, session_id: SessionId, reason: str) -> None:
        check_text(session_id, reason)
        await self._work(lambda db: rows.mark_damaged(db, self._tenant, session_id, reason))

    async def delete(self, session_id: SessionId) -> None:
        times = self._settings.times
        await self._work(lambda db: removal.delete(db, self._registration, times, session_id))

    async def overwrite(self, stream: str, records: Sequence[Record]) -> None:
        check_overwritable(stream)
        await self._work(lambda db: removal.overwrite(db, self._tenant, stream, records))

    # -- beside the log

    def _hand_in_draft(self, chunk: DraftChunk, weight: int) -> None:
        self._lane.submit(DraftJob(chunk, weight))

    async def load_drafts(self, stream: str) -> list[Draft]:
        async def load(db: Connection) -> list[Draft]:
            found = await db.fetch(
                f"""select node, part, chunk from drafts
                    where tenant = $1 and stream_no = ({reader.STREAM}) order by chunk_no""",
                self._tenant,
                stored(stream),
            )
            return joined_drafts(_piece(*row) for row in found)

        return await self._work(load)

    async def blob(self, blob_id: BlobId) -> bytes | None:
        return await self._ask(reader.blob, blob_id)

    async def missing_blobs(
        self, blob_ids: Collection[BlobId], *, project_path: str | None = None
    ) -> set[BlobId]:
        return await self._ask(reader.missing_blobs, blob_ids, project_path)

    async def sessions_with(self, blob_id: BlobId) -> list[SessionId]:
        return await self._ask(reader.sessions_with, blob_id)

    async def sweep_blobs(self) -> int:
        return await self._work(lambda db: removal.sweep_blobs(db, self._tenant))

    async def history_contents(self, project_path: str) -> list[KeptContent]:
        return await self._work(lambda db: removal.history_contents(db, self._tenant, project_path))

    async def trim_history(
        self, project_path: str, most_bytes: int, newest: BlobId | None = None
    ) -> int:
        return await self._work(
            lambda db: removal.trim_history(db, self._tenant, project_path, most_bytes, newest)
        )

    async def save_snapshot(self, stream: str, snapshot: Snapshot) -> None:
        await self._work(lambda db: rows.save_snapshot(db, self._tenant, stream, snapshot))

    async def load_snapshot(self, stream: str, version: str) -> Snapshot | None:
        return await self._ask(reader.load_snapshot, stream, version)

    async def publish_load(self, load: float) -> None:
        await self._work(lambda db: self._registration.publish_load(db, load))

    async def hosts(self) -> list[StoreHost]:
        return await self._ask(hosts, self._settings.times)

    async def _publish_owner(self) -> None:
        await self._work(lambda db: self._registration.publish(db, self.owner))

    # -- life

    async def aclose(self) -> None:
        """Finish what was handed in, give back all leases, and close.

        A cancelled wait lets it go on by itself.
        """
        if self._closing is None:
            self._is_closed = True
            self._bell.ring_all()
            self._closing = StoreTasks().start(self._close(), "weft-close")
        await asyncio.shield(self._closing)

    async def abandon(self) -> None:
        """Let this process look as if it had not been heard of for long.  For tests."""
        await self._work(self._registration.age)

    async def _close(self) -> None:
        # Without the database the leases run out by themselves.
        with contextlib.suppress(StoreError):
            await self._lane.run(self._registration.withdraw)
        await self._lane.end()
        await self._side.end()
        self._pool.terminate()

    # -- the connections

    @property
    def _tenant(self) -> int:
        return self._registration.tenant

    async def _work(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        self._check_open()
        return await self._lane.run(work)

    async def _ask(self, query: Callable[..., Awaitable[T]], *arguments: object) -> T:
        """Ask a connection for reading; once more where that one was dead already."""
        self._check_open()
        for left in reversed(range(_READ_TRIES)):
            try:
                async with self._pool.acquire(timeout=self._settings.answer_seconds) as db:
                    return await query(db, self._tenant, *arguments)
            except LOST as error:
                self._check_open()
                if not left:
                    raise explained(error) from error
                # The others may be as dead as this one, and each would be waited for.
                await self._pool.expire_connections()
            except asyncpg.PostgresError as error:
                raise explained(error) from error
            except UnicodeEncodeError as error:
                from weft.store.text import unstorable  # few texts are

                raise unstorable(error) from error
        raise AssertionError("not reached")

    def _on_grown(self, streams: set[str], watched: Sequence[int]) -> None:
        self._bell.ring(streams)
        self._side.ring_others(watched)

    def _on_drafts(self, freed: int) -> None:
        self._draft_bytes -= freed


class ReturnedLeases:
    """Leases that are given back in one go."""

    def __init__(self, registration: ProcessRegistration) -> None:
        self._registration = registration
        self.free: list[Lease] = []
        self.left: list[Lease] = []
        """Those of sessions whose turn goes on by itself."""
        self.job = WorkJob(self._give, asyncio.get_running_loop().create_future())

    async def _give(self, db: Connection) -> None:
        if self.free:
            await leases.release(db, self._registration, self.free)
        if self.left:
            await leases.leave(db, self._registration, self.left)


def _piece(node: str, column: str, chunk: bytes) -> DraftPiece:
    part, _, call = loaded(column).partition(":")
    index, _, tool = call.partition(":")
    return DraftPiece(NodeId(loaded(node)), part, bytes(chunk).decode(), int(index or 0), tool)


async def open_postgres(
    dsn: str,
    *,
    tenant: str = "main",
    times: LeaseTimes | None = None,
    slot: str = "",
    clock: Clock | None = None,
) -> PostgresStore:
    """Open the store in the database that `dsn` names, for one tenant; the schema is made when it
    is missing.

    Raises:
        TooNew: a newer Weft has changed the schema so that this one must not write.
        StoreUnavailable: the server cannot be reached, or cannot keep what it is told.
    """
    settings = PostgresSettings(dsn=dsn, tenant=tenant, slot=slot)
    if times is not None:
        settings = msgspec.structs.replace(settings, times=times)
    store = PostgresStore(settings, clock or SystemClock())
    await store.open()
    return store
