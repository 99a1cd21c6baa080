"""One update of the index: what has changed since the last is read, and nothing else.

Runs in the indexer's process.  A file is known by its size and time; one that has others is known
by its content, also when that is the content of another branch from last week.  Only what is left
is parsed, on all cores.  Each batch is one write, so that a map can be made from the first of them,
and what a kill takes is the batch that was being read.
"""

from __future__ import annotations

import os
import selectors
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Final, NamedTuple

import msgspec

from weft.file_io import write_all
from weft.repo.definitions import FileReading
from weft.repo.index_cache import FileEntry, FileStamp, IndexCache, KnownFile
from weft.repo.languages import language_of
from weft.repo.source_reader import MOST_BYTES, content_digest, read_content
from weft.workspace import read_beneath

BATCH_FILES: Final = 200
_SHARED_FROM: Final = 48
"""Files from which on a second process pays for its start."""
_UNSETTLED_NS: Final = 50_000_000
"""A file that was written this short a time ago may be written again within the same tick of the
kernel's clock: it is looked at once more with the next update."""
_LENGTH: Final = 4


class UpdateReport(NamedTuple):
    """What an update did."""

    parsed: tuple[str, ...] = ()
    """Files that were read by their parser."""
    known: tuple[str, ...] = ()
    """Files that have changed to content that was read before."""
    removed: tuple[str, ...] = ()


class _FileTask(msgspec.Struct, frozen=True, array_like=True):
    path: str
    language: str
    size: int
    mtime: int


class _FileDone(msgspec.Struct, frozen=True, array_like=True):
    task: _FileTask
    digest: bytes
    reading: FileReading | None
    """None when the cache has it."""


def update_index(
    cache: IndexCache,
    project: str,
    paths: Iterable[str],
    *,
    is_whole: bool = True,
    go_on: Callable[[], bool] = lambda: True,
    written: Callable[[], None] = lambda: None,
    cores: int = 1,
) -> UpdateReport:
    """Bring the index up to date with these files.

    `paths` are all files of the project, or with `is_whole` off those that may have changed or
    gone. `go_on` is asked before each batch; `written` is called when all of it can be read, which
    may be a moment before the files have settled.
    """
    known = cache.known_files()
    looked_at = set(paths)
    tasks = [task for path in sorted(looked_at) if (task := _task(project, path)) is not None]
    there = {task.path for task in tasks}
    gone = (known.keys() if is_whole else looked_at & known.keys()) - there
    if gone:
        cache.write([], gone)
    changed = [task for task in tasks if not _is_unchanged(task, known.get(task.path))]
    parsed: list[str] = []
    reused: list[str] = []
    digests = cache.digests()
    for batch in _batches(_read_all(project, changed, digests, cores)):
        if not go_on():
            break
        _write_batch(cache, batch, known)
        for done in batch:
            (reused if done.reading is None else parsed).append(done.task.path)
        cache.merge()
    written()
    _settle(cache, project, changed)
    return UpdateReport(tuple(parsed), tuple(reused), tuple(sorted(gone)))


def _task(project: str, path: str) -> _FileTask | None:
    """What is to be read at a path; None where no source file is."""
    language = language_of(path)
    if language is None:
        return None
    try:
        about = os.lstat(f"{project}/{path}")
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(about.st_mode):
        return None
    return _FileTask(path, language, about.st_size, about.st_mtime_ns)


def _is_unchanged(task: _FileTask, known: KnownFile | None) -> bool:
    return known is not None and known.stamp == (task.size, task.mtime)


def _write_batch(
    cache: IndexCache, batch: Sequence[_FileDone], known: Mapping[str, KnownFile]
) -> None:
    entries: list[FileEntry] = []
    touched: dict[str, FileStamp] = {}
    for done in batch:
        path, stamp = done.task.path, FileStamp(done.task.size, _stamped(done.task.mtime))
        before = known.get(path)
        if before is not None and before.digest == done.digest:
            touched[path] = stamp
            continue
        reading = done.reading if done.reading is not None else cache.reading(done.digest)
        if reading is not None:
            entries.append(FileEntry(path, stamp, done.task.language, done.digest, reading))
    cache.write(entries)
    cache.touch(touched)


def _stamped(mtime: int) -> int:
    """The time that is written down: one that no file has where it may still be written to
    unnoticed.
    """
    return mtime if time.time_ns() - mtime > _UNSETTLED_NS else -1


def _settle(cache: IndexCache, project: str, changed: Iterable[_FileTask]) -> None:
    """Write down the times of files that were written to just before they were read, once they
    have been left alone for a moment.
    """
    now = time.time_ns()
    fresh = [task for task in changed if now - task.mtime <= 2 * _UNSETTLED_NS]
    if not fresh:
        return
    newest = max(task.mtime for task in fresh)
    time.sleep(min(max(0, newest + _UNSETTLED_NS - now), _UNSETTLED_NS) / 1e9)
    still = [task for task in fresh if _task(project, task.path) == task]
    cache.touch({task.path: FileStamp(task.size, task.mtime) for task in still})


def _batches(done: Iterator[_FileDone]) -> Iterator[list[_FileDone]]:
    batch: list[_FileDone] = []
    for each in done:
        batch.append(each)
        if len(batch) >= BATCH_FILES:
            yield batch
            batch = []
    if batch:
        yield batch


def _read(project: str, task: _FileTask, digests: Set[bytes]) -> _FileDone | None:
    content = read_beneath(project, task.path, MOST_BYTES + 1)
    if content is None:
        return None
    digest = content_digest(content, task.language)
    reading = None if digest in digests else read_content(content, task.language)
    return _FileDone(task, digest, reading)


def _read_all(
    project: str, tasks: Sequence[_FileTask], digests: Set[bytes], cores: int
) -> Iterator[_FileDone]:
    if cores < 2 or len(tasks) < _SHARED_FROM:
        for task in tasks:
            if (done := _read(project, task, digests)) is not None:
                yield done
        return
    yield from _read_in_processes(project, tasks, digests, cores)


# --- on all cores --------------------------------------------------------------------------------


def _read_in_processes(
    project: str, tasks: Sequence[_FileTask], digests: Set[bytes], cores: int
) -> Iterator[_FileDone]:
    children: dict[int, int] = {}
    with selectors.DefaultSelector() as selector:
        try:
            for number in range(cores):
                pid, pipe = _start_child(project, tasks[number::cores], digests)
                children[pipe] = pid
                selector.register(pipe, selectors.EVENT_READ)
            while selector.get_map():
                for key, _ in selector.select():
                    if frame := _frame(key.fd):
                        yield from _frames.decode(frame)
                    else:
                        selector.unregister(key.fd)
        finally:
            # A child that still writes ends with its pipe.
            for pipe, pid in children.items():
                os.close(pipe)
                os.waitpid(pid, 0)


_frames: Final = msgspec.msgpack.Decoder(list[_FileDone])
_FRAME_FILES: Final = 16


def _start_child(project: str, tasks: Sequence[_FileTask], digests: Set[bytes]) -> tuple[int, int]:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return pid, reader
    # Never back into the caller: it would write the index, or run the exit handlers, a second time.
    try:
        os.close(reader)
        _work(project, tasks, digests, writer)
    finally:
        os._exit(0)


def _work(project: str, tasks: Sequence[_FileTask], digests: Set[bytes], writer: int) -> None:
    for start in range(0, len(tasks), _FRAME_FILES):
        some = tasks[start : start + _FRAME_FILES]
        done = [found for task in some if (found := _read(project, task, digests)) is not None]
        frame = msgspec.msgpack.encode(done)
        # The parent may be gone: then this fails, and the process ends.
        write_all(writer, len(frame).to_bytes(_LENGTH, "big") + frame)


def _frame(pipe: int) -> bytes:
    """One frame; empty when the child has ended."""
    head = _exactly(pipe, _LENGTH)
    return _exactly(pipe, int.from_bytes(head, "big")) if head else b""


def _exactly(pipe: int, count: int) -> bytes:
    pieces: list[bytes] = []
    while count > 0 and (piece := os.read(pipe, count)):
        pieces.append(piece)
        count -= len(piece)
    return b"" if count else b"".join(pieces)
