"""The second connection of a store: it holds the lock that is a sign of life, and carries hints of
what other processes have committed.

A hint is only a hint: followed streams are looked at every quarter of a second as well.  Hints are
sent by the process that appended, outside its commits (NOTIFY takes a lock that all commits of a
database wait for), and only for streams that another process follows.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence

import asyncpg

from weft.errors import StoreError
from weft.store.follower import FollowerBell
from weft.store.postgres import reader
from weft.store.postgres.connection import LOST, Connection, close, connect
from weft.store.postgres.registration import ProcessRegistration, elapsed
from weft.store.postgres.settings import PostgresSettings
from weft.store.postgres.store_tasks import StoreTasks
from weft.store.postgres.text_codec import stored

CHANNEL = "weft"
POLL_SECONDS = 0.25
WATCHED_SECONDS = 10.0
"""How long others ring for a stream after a follower has said that it listens."""
_RING_SECONDS = 0.02
_AGAIN_SECONDS = 1.0
_MOST_PAYLOAD = 7_000
"""Bytes; Postgres takes 8,000."""

_WATCH = """
    with locked as materialized (
        select stream_no from streams
        where tenant = $1 and process_no is distinct from $2 and name = any ($3)
        order by name for update
    )
    update streams s set watched_until = clock_timestamp() + $4 * interval '1 second'
    from locked l where s.tenant = $1 and s.stream_no = l.stream_no
"""
"""In the order in which appends lock them."""

logger = logging.getLogger(__name__)


class SideChannel:
    """The connection for the lock and for hints, and the tasks that drive it."""

    def __init__(self, settings: PostgresSettings, registration: ProcessRegistration) -> None:
        self._settings = settings
        self._registration = registration
        self._db: Connection | None = None
        self._is_listening = asyncio.Event()
        self._to_ring: set[int] = set()
        self._has_rings = asyncio.Event()
        self._numbers: dict[int, str] = {}
        self._ends: dict[str, int] = {}
        self._watched: dict[str, float] = {}
        self._locked = 0
        """The number of the process whose lock is held."""
        self._tasks = StoreTasks()
        self._busy = asyncio.Lock()
        self.bell = FollowerBell(self._on_sleepers)

    def open(self) -> None:
        """Begin."""
        for work in (self._poll, self._ring, self._hold, self._beat):
            self._tasks.start(self._repeat(work), f"weft{work.__name__}")

    async def end(self) -> None:
        """End the tasks and close the connection."""
        await self._tasks.cancel_all()
        db, self._db = self._db, None
        if db is not None:
            with contextlib.suppress(*LOST):
                await db.close(timeout=1.0)

    def ring_others(self, stream_nos: Iterable[int]) -> None:
        """Tell other processes that these streams have grown; not waited for."""
        self._to_ring.update(stream_nos)
        if self._to_ring:
            self._has_rings.set()

    # -- the lock

    @property
    def holds_lock(self) -> bool:
        """Whether the lock is held, as far as this side knows."""
        is_open = self._db is not None and not self._db.is_closed()
        return is_open and self._locked == self._registration.process_no

    async def _hold(self) -> None:
        """Hold the lock of this process, on whatever connection there is."""
        db = await self._living()
        if self._locked != self._registration.process_no:
            async with self._busy:
                await db.execute("select pg_advisory_lock($1)", self._registration.lock)
                await self._registration.note_lock(db)
            self._locked = self._registration.process_no
        await asyncio.sleep(_AGAIN_SECONDS)

    async def _beat(self) -> None:
        """Say that this process lives while the lane is busy with something long."""
        times = self._settings.times
        await asyncio.sleep((times.grace_seconds - times.beat_seconds) / 2)
        if self._registration.silent_seconds < (times.grace_seconds + times.beat_seconds) / 2:
            return
        db = await self._living()
        began = elapsed()
        async with self._busy, db.transaction():
            await db.execute("set local synchronous_commit = on")
            is_known = await self._registration.beat(db)
        if is_known:
            self._registration.confirm(began)

    # -- following

    def _on_sleepers(self, are_there: bool) -> None:
        if are_there:
            self._is_listening.set()
        else:
            self._is_listening.clear()
            self._ends.clear()

    async def _poll(self) -> None:
        """Wake the followers whose streams have grown, by whichever process."""
        await self._is_listening.wait()
        streams = self.bell.streams()
        db = await self._living()
        async with self._busy:
            await self._watch(db, streams)
            found = await reader.last_seqs(db, self._registration.tenant, streams)
        known, self._ends = self._ends, {name: end for name, (_, end) in found.items()}
        self._numbers = {number: name for name, (number, _) in found.items()}
        self.bell.ring(name for name, end in self._ends.items() if end != known.get(name))
        await asyncio.sleep(POLL_SECONDS)

    async def _watch(self, db: Connection, streams: Sequence[str]) -> None:
        """Say that these streams are followed here, as long as they are."""
        now = time.monotonic()
        due = [each for each in streams if self._watched.get(each, 0.0) < now]
        if not due:
            return
        await db.execute(
            _WATCH,
            *self._registration.key,
            [stored(each) for each in due],
            WATCHED_SECONDS,
        )
        again = now + WATCHED_SECONDS / 2
        self._watched = {each: self._watched.get(each, again) for each in streams}
        self._watched.update(dict.fromkeys(due, again))

    def _on_hint(self, _db: object, _pid: int, _channel: str, payload: object) -> None:
        numbers = (int(word) for word in str(payload).split(",") if word.isdigit())
        self.bell.ring(self._numbers[number] for number in numbers if number in self._numbers)

    # -- ringing

    async def _ring(self) -> None:
        await self._has_rings.wait()
        # What comes within a moment goes with it: one hint is one transaction.
        await asyncio.sleep(_RING_SECONDS)
        numbers, self._to_ring = self._to_ring, set()
        self._has_rings.clear()
        db = await self._living()
        async with self._busy:
            for payload in _payloads(numbers):
                await db.execute("select pg_notify($1, $2)", CHANNEL, payload)

    # -- the connection

    async def _living(self) -> Connection:
        async with self._busy:
            if self._db is None or self._db.is_closed():
                self._locked = 0
                # Kept through a silence for as long as the leases: the lock that goes with it must
                # mean that the process is gone, and not that the network is.
                self._db = await connect(
                    self._settings,
                    self._registration.tenant,
                    silence_seconds=self._settings.times.ttl_seconds + 1,
                )
                # A hint that a crash loses is looked for anyway.
                await self._db.execute("set synchronous_commit = off")
                await self._db.add_listener(CHANNEL, self._on_hint)
            return self._db

    async def _repeat(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do `work` again and again; after a fault of the database, after a pause and on another
        connection: one that was cut off does not say so for a quarter of an hour.
        """
        while True:
            try:
                await work()
            except (*LOST, StoreError, asyncpg.PostgresError) as error:
                logger.debug("the side channel lost the database: %s", error)
                await close(self._db)
                await asyncio.sleep(_AGAIN_SECONDS)


def _payloads(numbers: Iterable[int]) -> list[str]:
    """The numbers as texts that Postgres takes."""
    payloads, now = list[str](), ""
    for number in numbers:
        now = f"{now},{number}" if now else str(number)
        if len(now) > _MOST_PAYLOAD:
            payloads.append(now)
            now = ""
    return [*payloads, now] if now else payloads
