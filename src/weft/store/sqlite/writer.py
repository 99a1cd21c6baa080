"""The one thread of a process that writes: jobs in, groups committed, futures resolved.

What it promises, and where:

- *A result means durable.*  A future gets its result after COMMIT returned under
  `synchronous=FULL`, never before.
- *A refused job fails alone.*  Each job runs in a savepoint of its own inside the group's
  transaction.
- *A failed commit fails the whole group*, each job with its own error; nothing of it was written.
- *A connection that saw an I/O error is dead.*  It is replaced, at once or, while the disk goes on
  failing, before the next group. The failed frames may still be in the log file, whole, and only a
  living connection's index says that they do not count.  So the new connection is opened before the
  old one is closed, and commits something small that overwrites them before any result is
  delivered: what was reported as failed cannot come back.
- *The file must still be the file.*  SQLite goes on writing into a deleted one; we refuse.
- *A cancelled wait changes nothing*: the job is run all the same, only its result is dropped.

The loop is woken once for each group: 12 µs against the 0.3 ms that the group's commit takes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import queue
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import apsw
import msgspec

from weft import faults
from weft.errors import StoreError, StoreUnavailable
from weft.store.sqlite.ballast import BallastFile
from weft.store.sqlite.connect import (
    BUSY_WRITER_CACHE_KB,
    BusyHandler,
    StoreFull,
    Synchronous,
    explained,
    hold_pages,
    is_at_rest,
    is_full,
    is_read_only,
    open_writer,
)
from weft.store.sqlite.query import fetch
from weft.store.sqlite.schema import UNSCRUBBED
from weft.store.sqlite.write_ahead_log import WriteAhead
from weft.store.threads import call, settle

MOST_IN_A_GROUP = 1000
_MANY_JOBS = 16
"""Jobs in one group that only many sessions bring."""
_REWRITE_PATIENCE_SECONDS = 1.0

_BEFORE_BEGIN = faults.point("store.sqlite.before_begin")
_BEFORE_COMMIT = faults.point("store.sqlite.before_commit")
_AFTER_COMMIT = faults.point("store.sqlite.after_commit")

_HURTS_THE_GROUP = (
    apsw.BusyError,
    apsw.FullError,
    apsw.InterruptError,
    apsw.IOError,
    apsw.NoMemError,
)

logger = logging.getLogger(__name__)


class WriteJob(msgspec.Struct, frozen=True):
    """Something to do in a write transaction."""

    work: Callable[[apsw.Connection], object]
    future: asyncio.Future[object] | None
    """Of the caller that waits; None for a job without one."""
    stream: str = ""
    """What it is about, for messages."""
    grows: tuple[str, ...] = ()
    """Streams that are longer when it is done."""
    weight: int = 0
    """Bytes that count against the bound on jobs without a waiting caller."""


class JobResult(msgspec.Struct, frozen=True):
    """How a job ended."""

    job: WriteJob
    result: object
    error: Exception | None


class WriterThread:
    """The writer thread of one store.

    `deliver` is called on the loop with each group that is done, `on_close` in the thread before it
    closes the file.
    """

    def __init__(
        self,
        path: Path,
        *,
        synchronous: Synchronous,
        vfs: str | None,
        busy_seconds: float,
        deliver: Callable[[Sequence[JobResult]], None],
        on_close: Callable[[], None],
    ) -> None:
        self._path = path
        self._synchronous: Synchronous = synchronous
        self._vfs = vfs
        self._patience = BusyHandler(busy_seconds, path)
        self._deliver = deliver
        self._on_close = on_close
        self._loop = asyncio.get_running_loop()
        self._jobs: queue.SimpleQueue[WriteJob | None] = queue.SimpleQueue()
        self._ballast = BallastFile(path)
        # Not on a file system that is only played: the file that we would lengthen is not the one
        # it writes.
        self._ahead = WriteAhead(path, self._patience) if vfs is None else None
        self._db: apsw.Connection | None = None
        self._is_dead = False
        self._holds_many_pages = False
        self.is_read_only = False
        """Set when it has opened: the store can only be read."""
        self.is_full = False
        """Set with it where that is because the disk is full."""
        self._inode = 0
        self._thread = threading.Thread(target=self._run, name="weft-writer", daemon=True)
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self._ended: asyncio.Future[None] = self._loop.create_future()

    async def open(self) -> None:
        """Start the thread and wait until the file is open; a cancelled wait ends the thread."""
        self._thread.start()
        try:
            await self._opened
        except BaseException:
            self._jobs.put(None)
            raise

    def submit(self, job: WriteJob) -> None:
        """Hand in a job; it is run after all that were handed in before."""
        self._jobs.put(job)

    def end(self) -> None:
        """Finish what was handed in, then end; not waited for."""
        self._jobs.put(None)

    async def ended(self) -> None:
        """Wait until the thread has ended, after `end`.  A cancelled wait changes nothing."""
        await asyncio.wait([self._ended])
        # Reporting it was the thread's last act; what is left of it does not hold up the loop.
        self._thread.join()

    # -- the thread

    def _run(self) -> None:
        try:
            # A store that cannot be written is still there to be read.
            self.is_read_only = self._vfs is None and is_read_only(self._path)
            if not self.is_read_only:
                self._connect_or_read()
        except Exception as error:
            self._tell(self._opened, error)
            return
        self._tell(self._opened, None)
        try:
            is_open = True
            while is_open:
                group, is_open = self._collect()
                if group:
                    self._finish(self._commit(group))
                    self._tend()
        finally:
            self._on_close()
            self._rewrite()
            self._disconnect()
            self._tell(self._ended, None)

    def _collect(self) -> tuple[list[WriteJob], bool]:
        """The next group: one job, and all that wait behind it."""
        first = self._jobs.get()
        if first is None:
            return [], False
        group = [first]
        with contextlib.suppress(queue.Empty):
            while len(group) < MOST_IN_A_GROUP:
                job = self._jobs.get_nowait()
                if job is None:
                    return group, False
                group.append(job)
        return group, True

    def _commit(self, group: Sequence[WriteJob]) -> list[JobResult]:
        if self.is_read_only:
            return [JobResult(job, None, self._why_not()) for job in group]
        try:
            db = self._living()
            if len(group) >= _MANY_JOBS and not self._holds_many_pages:
                hold_pages(db, BUSY_WRITER_CACHE_KB)
                self._holds_many_pages = True
            # A lease that cannot be had is refused soon, with the name of the process that is in
            # the way; facts of a session that works are worth the whole wait.
            self._patience.start(waits_for_suspended=any(job.grows for job in group))
            _BEFORE_BEGIN.hit()
            # Immediate: a transaction that starts as a reader and writes later fails at once,
            # without the busy handler, if another process has committed in between.
            db.execute("begin immediate")
            done = [self._apply(db, job) for job in group]
            _BEFORE_COMMIT.hit()
            db.execute("commit")
        except StoreError as error:
            return [JobResult(job, None, _again(error)) for job in group]
        except Exception as error:
            return self._failed(group, error)
        _AFTER_COMMIT.hit()
        self._ballast.keep()
        return done

    def _tend(self) -> None:
        if self._ahead is not None and self._db is not None and not self._is_dead:
            self._ahead.tend(self._db, is_idle=self._jobs.empty())

    def empty_log(self) -> None:
        """Have the write-ahead log emptied after the group that runs; called by a job."""
        if self._ahead is not None:
            self._ahead.holds_deleted = True

    def _rewrite(self) -> None:
        """Before the file is closed: write it anew when something was deleted from it."""
        # After the readers have ended, and never while appends could wait for it.
        if self._ahead is None or self._db is None or self._is_dead:
            return
        self._patience.start(_REWRITE_PATIENCE_SECONDS)
        try:
            if fetch(self._db, "select 1 from meta where key = ?", (UNSCRUBBED,)):
                from weft.store.sqlite.delete import rewrite  # only then: few sessions are deleted

                if rewrite(self._db, self._path):
                    self._ahead.empty(self._db)
        except apsw.Error as error:
            # The note in the file stays, so that the next process to close it tries again.
            logger.warning("the store was not rewritten after a delete: %s", error)

    def _apply(self, db: apsw.Connection, job: WriteJob) -> JobResult:
        db.execute("savepoint job")
        try:
            done = JobResult(job, job.work(db), None)
        except Exception as error:
            # SQLite may have rolled the whole transaction back by itself; then the savepoints are
            # gone, and what the jobs before did is gone with them.
            if isinstance(error, _HURTS_THE_GROUP) or not db.in_transaction:
                raise
            db.execute("rollback to job")
            done = JobResult(job, None, self._explained(error, job.stream))
        db.execute("release job")
        return done

    def _failed(self, group: Sequence[WriteJob], error: Exception) -> list[JobResult]:
        """Take the transaction back, for good where the disk lets us, and give each job its own
        error.
        """
        number = self._db.system_errno if self._db is not None else 0
        if is_full(error, number):
            self._ballast.drop()
        # After these two SQLite's own state is known; after any other error it may be wrong.
        self._is_dead = not isinstance(error, (apsw.BusyError, apsw.FullError))
        try:
            if self._db is not None and self._db.in_transaction:
                self._db.execute("rollback")
        except apsw.Error:
            self._is_dead = True
        if self._is_dead:
            with contextlib.suppress(apsw.Error, StoreError):
                self._revive()
        if not isinstance(error, apsw.Error):
            logger.error("the writer failed", exc_info=error)
        return [JobResult(job, None, self._explained(error, job.stream, number)) for job in group]

    def _explained(self, error: Exception, stream: str, number: int = 0) -> Exception:
        if isinstance(error, apsw.Error):
            return explained(error, self._path, stream=stream, number=number)
        if isinstance(error, UnicodeEncodeError):
            from weft.store.text import unstorable  # few texts are: start-up time

            return unstorable(error)
        return error

    # -- the connection

    def _why_not(self) -> StoreUnavailable:
        """Why nothing is written to a store that can only be read."""
        if self.is_full:
            why = f"the disk is full, nothing was written to {self._path}; make room there"
            return StoreFull(why)
        why = f"the store {self._path} is read-only: it can be read, and nothing was written"
        return StoreUnavailable(why)

    def _connect_or_read(self) -> None:
        """Connect; where there is no room even for that, what is stored can still be read."""
        try:
            self._connect_with_room()
        except StoreFull:
            if self._vfs is not None or not self._path.stat().st_size or not is_at_rest(self._path):
                raise
            self.is_read_only = self.is_full = True

    def _connect_with_room(self) -> None:
        """Connect; on a full disk the ballast is given up for it, since even opening writes."""
        try:
            self._connect()
        except StoreFull:
            if not self._ballast.drop():
                raise
            self._connect()

    def _connect(self) -> None:
        self._db = open_writer(
            self._path, synchronous=self._synchronous, vfs=self._vfs, patience=self._patience
        )
        self._inode = os.stat(self._path).st_ino
        self._holds_many_pages = False
        if self._ahead is not None:
            self._ahead.attach(self._db)

    def _living(self) -> apsw.Connection:
        """A connection that may be trusted, on the file that has our name."""
        self._check_file()
        if self._is_dead:
            self._revive()
        assert self._db is not None
        return self._db

    def _revive(self) -> None:
        """Replace a dead connection, and overwrite what its failed commit left in the log."""
        self._check_file()
        old = self._db
        self._connect()
        if old is not None:
            old.close()
        assert self._db is not None
        # Any commit will do: it takes the place of the failed frames in the log.
        self._db.execute("update meta set value = value + 1 where key = 'reopened'")
        self._is_dead = False

    def _check_file(self) -> None:
        try:
            # Before every group, not once: users move and restore files while we run.
            is_same = os.stat(self._path).st_ino == self._inode
        except OSError:
            is_same = False
        if not is_same:
            raise StoreUnavailable(
                f"{self._path} was removed or replaced while it was open, nothing was written; "
                "put it back, or restart"
            )

    def _disconnect(self) -> None:
        try:
            if self._db is not None:
                self._db.close()
        except apsw.Error:
            logger.warning("the store could not be closed in order", exc_info=True)

    # -- back to the loop

    def _finish(self, done: Sequence[JobResult]) -> None:
        call(self._loop, self._deliver, done)

    def _tell(self, future: asyncio.Future[None], error: Exception | None) -> None:
        call(self._loop, settle, future, None, error)


def _again(error: StoreError) -> StoreError:
    """The same refusal as a value of its own: an exception that several tasks raise mixes up their
    tracebacks.
    """
    copy = type(error).__new__(type(error), *error.args)
    copy.__dict__.update(error.__dict__)
    return copy
