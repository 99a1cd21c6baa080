"""The lane: the one connection of a store that writes, and the jobs that wait for it.

What it promises, and how:

- *A result means durable.*  A caller is answered after the database has answered.
- *What is handed in first is done first.*  Appends and drafts that wait are sent as one group;
  anything else (a lease, a delete) is a transaction of its own, in its turn.
- *A lost answer is decided, not guessed.*  Every group has the next number of this process.  After
  a broken connection the same group is sent again under the same number: the database answers what
  it answered before, or does it now.  The first try may still be running there: the row of the
  process is locked by it, so the second one waits for its end.
- *An outage costs time, not errors*: up to the patience of the store.
- *A cancelled wait changes nothing*: only its result is dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TypeVar, cast

import msgspec

from weft.errors import OutcomeUnknown, StoreError, StoreOutage, WeftError
from weft.store.base import Append, DraftChunk
from weft.store.postgres.connection import (
    LOST,
    REPEATABLE,
    Connection,
    close,
    connect,
    explained,
)
from weft.store.postgres.group import APPEND, CommitGroup
from weft.store.postgres.registration import ProcessRegistration, elapsed
from weft.store.postgres.settings import PostgresSettings
from weft.store.postgres.store_tasks import StoreTasks
from weft.store.threads import settle

MOST_IN_A_GROUP = 1000
MOST_BYTES_IN_A_GROUP = 16 << 20
"""A call of the database has at most 1 GB, and its memory is several times that of the group."""
_SLOWEST_BYTES = 1 << 20
"""What a second is enough for, of large content."""
_FIRST_PAUSE = 0.02
_LONGEST_PAUSE = 1.0

T = TypeVar("T")
logger = logging.getLogger(__name__)


class AppendJob(msgspec.Struct, frozen=True):
    """One call of `append`."""

    appends: tuple[Append, ...]
    future: asyncio.Future[None]


class DraftJob(msgspec.Struct, frozen=True):
    """A chunk that no caller waits for."""

    chunk: DraftChunk
    weight: int


class WorkJob(msgspec.Struct, frozen=True):
    """Statements in a transaction of their own; they may run twice, when an answer is lost."""

    work: Callable[[Connection], Awaitable[object]]
    future: asyncio.Future[object]


Job = AppendJob | DraftJob | WorkJob


class WriteLane:
    """The writing connection of one store, and the task that drives it."""

    def __init__(
        self,
        settings: PostgresSettings,
        registration: ProcessRegistration,
        *,
        on_grown: Callable[[set[str], Sequence[int]], None],
        on_drafts: Callable[[int], None],
    ) -> None:
        self._settings = settings
        self._registration = registration
        self._on_grown = on_grown
        self._on_drafts = on_drafts
        self._jobs: deque[Job] = deque()
        self._wake = asyncio.Event()
        self._is_ending = False
        self._db: Connection | None = None
        self._number = 0
        """Of the last group that was answered."""
        self._is_unsure = False
        """Set while the number that the database has is not known."""
        self._tasks = StoreTasks()
        self._task: asyncio.Task[None] | None = None

    # -- from the outside

    async def open(self, db: Connection) -> None:
        """Begin, on a connection that is open."""
        self._db = db
        await self._registration.register(db)
        self._task = self._tasks.start(self._run(), "weft-lane")

    def submit(self, job: Job) -> None:
        """Hand in a job; it is done after all that were handed in before."""
        self._jobs.append(job)
        self._wake.set()

    def is_last(self, job: Job) -> bool:
        """Whether a job waits, and nothing was handed in after it."""
        return bool(self._jobs) and self._jobs[-1] is job

    async def run(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Do `work` in its turn, in a transaction."""
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self.submit(WorkJob(work, future))
        return cast("T", await future)

    async def end(self) -> None:
        """Finish what was handed in, and close the connection."""
        self._is_ending = True
        self._wake.set()
        if self._task is not None:
            await asyncio.wait([self._task])
        db, self._db = self._db, None
        if db is not None:
            with contextlib.suppress(*LOST):
                await db.close(timeout=1.0)

    # -- the task

    async def _run(self) -> None:
        while await self._has_jobs():
            first = self._jobs[0]
            try:
                if isinstance(first, WorkJob):
                    await self._beat_if_due()
                    await self._work(self._jobs.popleft())  # type: ignore[arg-type]
                else:
                    await self._commit(self._collect())
            except Exception:
                # A fault of ours: the jobs have been answered, and the next ones must be too.
                logger.exception("the lane failed")

    async def _has_jobs(self) -> bool:
        """Wait for a job, with signs of life meanwhile; False at the end."""
        while not self._jobs:
            if self._is_ending:
                return False
            self._wake.clear()
            try:
                async with asyncio.timeout(self._settings.times.beat_seconds):
                    await self._wake.wait()
            except TimeoutError:
                await self._beat()
        return True

    async def _beat_if_due(self) -> None:
        """Among jobs that are no sign of life themselves."""
        if self._registration.silent_seconds >= self._settings.times.beat_seconds:
            await self._beat()

    async def _beat(self) -> None:
        began = elapsed()
        try:
            if not await self._registration.beat(await self._living()):
                await self._register_again()
        except Exception as error:
            await self._drop()
            logger.debug("a sign of life was not answered: %s", error)
            return
        self._registration.confirm(began)

    def _collect(self) -> list[AppendJob | DraftJob]:
        """All appends and drafts that wait in front of anything else."""
        group: list[AppendJob | DraftJob] = []
        room = MOST_BYTES_IN_A_GROUP
        while self._jobs and len(group) < MOST_IN_A_GROUP:
            job = self._jobs[0]
            if isinstance(job, WorkJob):
                break
            room -= _bytes_of(job)
            if room < 0 and group:
                break
            group.append(job)
            self._jobs.popleft()
        return group

    # -- groups

    async def _commit(self, jobs: Sequence[AppendJob | DraftJob]) -> None:
        try:
            group = _group_of(jobs)
            outcome, watched = await self._send(group, sum(map(_bytes_of, jobs)))
        except WeftError as error:
            self._fail(jobs, error)
            return
        except Exception as error:
            await self._one_by_one(jobs, error)
            return
        self._answer(jobs, group.refusals(outcome), watched)

    async def _send(self, group: CommitGroup, size: int) -> tuple[str, Sequence[int]]:
        """Have a group carried out, once, however often it takes.

        Raises:
            OutcomeUnknown: the answer stayed lost.
            StoreUnavailable: it was never sent.
        """
        was_sent = False
        last: Exception = StoreOutage("the database was not asked")
        seconds = self._settings.answer_seconds + size / _SLOWEST_BYTES
        async for _ in self._tries():
            try:
                db = await self._living()
                if not was_sent and self._is_unsure:
                    self._number = await self._registration.use_up_number(db)
                    self._is_unsure = False
                began = elapsed()
                was_sent = True
                arguments = group.arguments(*self._registration.key, self._number + 1)
                answer = await db.fetchrow(APPEND, *arguments, timeout=seconds)
                outcome, watched = answer  # type: ignore[misc]
                if await self._is_settled(outcome):
                    self._number += 1
                    self._registration.confirm(began)
                    return outcome, watched
            except REPEATABLE as error:
                last = error
            except (*LOST, StoreError) as error:
                # Where it was sent before, a user that may not come in again leaves open as well
                # what became of it.
                if not was_sent and not isinstance(error, (*LOST, StoreOutage)):
                    raise
                await self._drop()
                last = error
        self._is_unsure = True
        if was_sent:
            raise OutcomeUnknown(
                f"the database did not answer for {self._settings.patience_seconds:g} s; what was "
                "sent is stored whole, or not at all"
            ) from last
        raise explained(last) from last

    async def _is_settled(self, outcome: str) -> bool:
        """Whether the database has carried out the group, or did so before."""
        if outcome == "gone":
            # Others took this process for dead and tidied it away: its leases are lost, and the
            # group, sent again, is told so stream by stream.
            await self._register_again()
            return False
        if outcome.startswith("lost "):
            self._number = int(outcome.removeprefix("lost "))
            logger.error(
                "THE DATABASE HAS LOST COMMITS THAT IT HAD ANSWERED (a failover to a replica that "
                "was behind, or a restored backup): sessions of this process say so with their "
                "next message; set synchronous_standby_names"
            )
            return False
        return True

    async def _register_again(self) -> None:
        db = await self._living()
        await self._registration.register(db)
        self._number = 0

    async def _one_by_one(self, jobs: Sequence[AppendJob | DraftJob], error: Exception) -> None:
        """One job of a group is not what the database takes: it fails alone."""
        if len(jobs) == 1:
            self._fail(jobs, explained(error))
            return
        for job in jobs:
            await self._commit([job])

    def _answer(
        self,
        jobs: Sequence[AppendJob | DraftJob],
        refusals: dict[int, WeftError],
        watched: Sequence[int],
    ) -> None:
        grown: set[str] = set()
        freed = 0
        for number, job in enumerate(jobs):
            if isinstance(job, DraftJob):
                freed += job.weight
                continue
            settle(job.future, None, refusals.get(number))
            if number not in refusals:
                grown.update(one.stream for one in job.appends if one.records)
        self._on_drafts(freed)
        self._on_grown(grown, watched)

    def _fail(self, jobs: Sequence[AppendJob | DraftJob], error: Exception) -> None:
        told = error if isinstance(error, WeftError) else explained(error)
        self._on_drafts(sum(job.weight for job in jobs if isinstance(job, DraftJob)))
        for job in jobs:
            if isinstance(job, AppendJob):
                # Each its own: an exception that several tasks raise mixes up their tracebacks.
                settle(job.future, None, _copy_of(told))

    # -- work

    async def _work(self, job: WorkJob) -> None:
        last: Exception = StoreOutage("the database was not asked")
        async for _ in self._tries():
            try:
                db = await self._living()
                async with db.transaction():
                    result = await job.work(db)
            except REPEATABLE as error:
                last = error
            except (*LOST, StoreOutage) as error:
                await self._drop()
                last = error
            except Exception as error:
                told = error if isinstance(error, WeftError | UnicodeEncodeError) else None
                settle(job.future, None, told or explained(error))
                return
            else:
                settle(job.future, result, None)
                return
        settle(job.future, None, explained(last))

    # -- the connection

    async def _tries(self) -> AsyncIterator[None]:
        """Once, and again after ever longer pauses until the patience is used up."""
        ends = time.monotonic() + self._settings.patience_seconds
        pause = _FIRST_PAUSE
        yield None
        while time.monotonic() < ends:
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)
            yield None

    async def _living(self) -> Connection:
        if self._db is None or self._db.is_closed():
            self._db = await connect(self._settings, self._registration.tenant)
        return self._db

    async def _drop(self) -> None:
        """A connection that saw an error is never used again."""
        db, self._db = self._db, None
        await close(db)


def _group_of(jobs: Sequence[AppendJob | DraftJob]) -> CommitGroup:
    group = CommitGroup()
    for number, job in enumerate(jobs):
        if isinstance(job, AppendJob):
            group.add_job(number, job.appends)
        else:
            group.add_draft(job.chunk)
    return group


def _bytes_of(job: AppendJob | DraftJob) -> int:
    """About what a job weighs."""
    if isinstance(job, DraftJob):
        return job.weight
    return sum(
        sum([len(blob.data) for blob in one.blobs]) + sum([len(r.body) for r in one.records])
        for one in job.appends
    )


def _copy_of(error: Exception) -> Exception:
    """The same error, without a call of its class: not all of them take their own arguments."""
    again = type(error).__new__(type(error), *error.args)
    vars(again).update(vars(error))
    return again
