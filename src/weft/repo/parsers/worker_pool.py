"""Worker processes for work that may crash, never end, or eat the memory.

Each is a copy of this process, has its share of the items, and hands back bytes for each of them.
One that dies, by itself or by its limits, costs the item that it was at and nothing else: another
takes over the rest of its share.  Workers end with their parent.
"""

from __future__ import annotations

import gc
import os
import resource
import selectors
import signal
import struct
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final, NoReturn

from weft.file_io import write_all

CPU_SECONDS: Final = 3.0
"""What one item may take: ten times what the slowest grammar takes for the largest file."""
MOST_MEMORY: Final = 1024**3
_HEAD: Final = struct.Struct("!II")
"""Number of the item, and how many bytes follow."""
_CHUNK: Final = 256 * 1024
_FRAME_ITEMS: Final = 16
_GATHERED: Final = 100_000
"""Objects that a collector looks for cycles among: more than a file of usual size leads to."""
_ASK_SECONDS: Final = 0.5

Work = Callable[[int], bytes]


class WorkerPool:
    """Has items worked on by processes; an item is known by its number."""

    def __init__(
        self,
        work: Work,
        cores: int,
        go_on: Callable[[], bool] = lambda: True,
        *,
        steps_aside: bool = False,
    ) -> None:
        """`go_on` is asked now and then; when it says no, all workers are ended.  Workers that step
        aside have the time that nothing else wants.
        """
        self._work = _aside(work) if steps_aside else work
        self._cores = cores
        self._go_on = go_on
        self._workers: dict[int, _Worker] = {}

    def run(self, count: int) -> Iterator[tuple[int, bytes | None]]:
        """The outcome of each item, as they come; None for one that ended its worker."""
        items = range(count)
        with selectors.DefaultSelector() as selector:
            try:
                for number in range(min(self._cores, count)):
                    self._start(selector, items[number :: self._cores], _FRAME_ITEMS)
                while self._workers:
                    for key, _ in selector.select(_ASK_SECONDS):
                        yield from self._read(selector, self._workers[key.fd])
                    if not self._go_on():
                        return
            finally:
                self._end()

    def _start(self, selector: selectors.BaseSelector, items: Iterable[int], frame: int) -> None:
        worker = _Worker(self._work, items, frame, list(self._workers))
        self._workers[worker.pipe] = worker
        selector.register(worker.pipe, selectors.EVENT_READ)

    def _read(
        self, selector: selectors.BaseSelector, worker: _Worker
    ) -> Iterator[tuple[int, bytes | None]]:
        data = os.read(worker.pipe, _CHUNK)
        if data:
            yield from worker.take(data)
            return
        selector.unregister(worker.pipe)
        del self._workers[worker.pipe]
        os.close(worker.pipe)
        os.waitpid(worker.pid, 0)
        if not worker.left:
            return
        if worker.frame == 1 or len(worker.left) == 1:
            # What it had done went out at once, or nothing else was left: it died of the next one.
            yield worker.left.popleft(), None
            frame = _FRAME_ITEMS
        else:
            frame = 1  # it died of one of sixteen: find out of which
        if worker.left:
            self._start(selector, worker.left, frame)

    def _end(self) -> None:
        # All pipes first: a worker that writes gives up then, whatever else it does not hear.
        for pipe in self._workers:
            os.close(pipe)
        for worker in self._workers.values():
            os.kill(worker.pid, signal.SIGKILL)
            os.waitpid(worker.pid, 0)
        self._workers.clear()


class _Worker:
    """One process, seen from its parent."""

    def __init__(self, work: Work, items: Iterable[int], frame: int, others: Sequence[int]) -> None:
        self.left = deque(items)
        """What it has not handed back yet."""
        self.frame = frame
        self._rest = bytearray()
        self.pipe, writer = os.pipe()
        parent = os.getpid()
        try:
            self.pid = os.fork()
        except OSError:
            os.close(self.pipe)
            os.close(writer)
            raise
        if self.pid == 0:
            # A read end that stays open in a sibling would keep a worker alive whose parent has
            # closed its own.
            for fd in (self.pipe, *others):
                os.close(fd)
            _serve(work, self.left, frame, writer, parent)
        os.close(writer)

    def take(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """What is whole of what came."""
        self._rest += data
        place = 0
        while len(self._rest) - place >= _HEAD.size:
            item, length = _HEAD.unpack_from(self._rest, place)
            end = place + _HEAD.size + length
            if len(self._rest) < end:
                break
            self.left.remove(item)
            yield item, bytes(self._rest[place + _HEAD.size : end])
            place = end
        del self._rest[:place]


def _serve(work: Work, items: Iterable[int], frame: int, writer: int, parent: int) -> NoReturn:
    # Never back into the caller: it would write the index, or run the exit handlers, a second time.
    try:
        _set_limits()
        # What was there before is shared with the parent: the collector would look at all of it,
        # and so copy it, page by page.
        gc.freeze()
        # And what one item takes goes with it: it is looked at when more than that has gathered.
        gc.set_threshold(_GATHERED)
        done: list[bytes] = []
        for item in items:
            if os.getppid() != parent:
                os._exit(1)
            # Of CPU time, and by a signal that kills: a parser does not come back to Python.
            signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
            outcome = work(item)
            done.append(_HEAD.pack(item, len(outcome)) + outcome)
            if len(done) >= frame:
                write_all(writer, b"".join(done))
                done.clear()
        write_all(writer, b"".join(done))
        os._exit(0)
    finally:
        os._exit(1)


def _aside(work: Work) -> Work:
    """The same work, done with the lowest priority from its first item on."""
    has_stepped = False

    def done(item: int) -> bytes:
        nonlocal has_stepped
        if not has_stepped:
            has_stepped = True
            _step_aside()
        return work(item)

    return done


def _step_aside() -> None:
    # Not by the lowest priority: a process of that keeps its core until the kernel's next tick, and
    # a command is a dozen processes that wait for one another.  An idle one is put off at once.
    # Where the kernel shares time between sessions first (autogroup), that counts among the
    # processes of one session only: neither this one nor its parent may begin one of its own.
    with suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def _set_limits() -> None:
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    with suppress(OSError, ValueError):
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        most = MOST_MEMORY if hard == resource.RLIM_INFINITY else min(MOST_MEMORY, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
        # A parser that dies leaves no core file behind.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
