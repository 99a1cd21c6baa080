"""One update of the index: what has changed since the last is read, and nothing else.

Runs in the indexer's process.  A file is known by its size and times; one that has others is known
by its content, also when that is the content of another branch from last week.  Only what is left
is parsed, on all cores.  Each batch is one write, so that a map can be made from the first of them,
and what a kill takes is the batch that was being read.

Parsers are programs of others, and a file can be made to crash one or to keep it busy for hours.
So none runs in the process that writes: what a file may cost is bounded by a process that dies of
it, and the file is then known as one without definitions.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import closing, suppress
from typing import Final, NamedTuple

import msgspec

from weft.repo.definitions import EMPTY, MOST_BYTES, READER_VERSION, FileReading
from weft.repo.file_paths import PlainFolders
from weft.repo.index_cache import VERSION_NOTE, FileEntry, FileStamp, IndexCache, KnownFile
from weft.repo.parsers.extractors import load_reader, readers_version, source_language
from weft.repo.parsers.source_reader import content_digest, read_content
from weft.repo.parsers.worker_pool import WorkerPool
from weft.workspace import read_beneath

BATCH_FILES: Final = 200
_SHARED_FROM: Final = 48
"""Files from which on a second process pays for its start."""
_UNSETTLED_NS: Final = 50_000_000
"""A file that was written this short a time ago may be written again within the same tick of the
kernel's clock: it is looked at once more with the next update."""
READERS: Final = "readers"
"""The note that says by which readers the files were read, those of installed packages too."""


class UpdateReport(NamedTuple):
    """What an update did."""

    parsed: tuple[str, ...] = ()
    """Files that were read by their parser."""
    known: tuple[str, ...] = ()
    """Files that have changed to content that was read before."""
    removed: tuple[str, ...] = ()


class _FileTask(NamedTuple):
    path: str
    language: str
    stamp: FileStamp


class _FileDone(NamedTuple):
    path: str
    language: str
    stamp: FileStamp
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
    looked_at = set(paths)
    known = cache.known_files(None if is_whole else looked_at)
    tasks = _tasks(project, looked_at)
    there = {task.path for task in tasks}
    gone = (known.keys() if is_whole else looked_at & known.keys()) - there
    if gone:
        cache.write([], gone)
    # Other readers may find something else in the same file: then no time says anything.
    is_other = is_whole and cache.note(READERS) != readers_version()
    changed = [
        task
        for task in tasks
        if is_other or (found := known.get(task.path)) is None or found.stamp != task.stamp
    ]
    parsed: list[str] = []
    reused: list[str] = []
    digests = _digests(cache, project, changed)
    # Closed at once: workers are not to run on while files settle.
    with closing(_read_all(project, changed, digests, cores, go_on)) as done:
        for batch in _batches(done):
            if not go_on():
                break
            _write_batch(cache, batch, known)
            for each in batch:
                (reused if each.reading is None else parsed).append(each.path)
            cache.merge()
    if is_other and go_on():
        cache.keep(READERS, readers_version())
        cache.keep(VERSION_NOTE, READER_VERSION)
    written()
    _settle(cache, project, changed)
    return UpdateReport(tuple(parsed), tuple(reused), tuple(sorted(gone)))


def _tasks(project: str, paths: Iterable[str]) -> list[_FileTask]:
    """What is to be read at some paths: those where a source file is."""
    plain = PlainFolders(project)
    found: list[_FileTask] = []
    for path in sorted(paths):
        language = source_language(path)
        if language is None or not plain.hold(path):
            continue
        with suppress(OSError, ValueError):
            about = os.lstat(f"{project}/{path}")
            if stat.S_ISREG(about.st_mode):
                found.append(_FileTask(path, language, FileStamp.of(about)))
    return found


def _write_batch(
    cache: IndexCache, batch: Sequence[_FileDone], known: Mapping[str, KnownFile]
) -> None:
    entries: list[FileEntry] = []
    touched: dict[str, FileStamp] = {}
    for path, language, stamp, digest, found in batch:
        before = known.get(path)
        if before is not None and before.digest == digest:
            touched[path] = _settled(stamp)
            continue
        reading = found if found is not None else cache.reading(digest)
        if reading is not None:
            entries.append(FileEntry(path, _settled(stamp), language, digest, reading))
    cache.write(entries)
    cache.touch(touched)


def _settled(stamp: FileStamp) -> FileStamp:
    """The stamp that is written down: one that no file has where it may still be written to
    unnoticed.
    """
    is_settled = time.time_ns() - stamp.ctime > _UNSETTLED_NS
    return stamp if is_settled else FileStamp(stamp.size, -1, stamp.ctime)


def _settle(cache: IndexCache, project: str, changed: Iterable[_FileTask]) -> None:
    """Write down the times of files that were written to just before they were read, once they
    have been left alone for a moment.
    """
    now = time.time_ns()
    fresh = {task.path: task for task in changed if now - task.stamp.ctime <= 2 * _UNSETTLED_NS}
    if not fresh:
        return
    newest = max(task.stamp.ctime for task in fresh.values())
    time.sleep(min(max(0, newest + _UNSETTLED_NS - now), _UNSETTLED_NS) / 1e9)
    still = [task for task in _tasks(project, fresh) if task == fresh[task.path]]
    cache.touch({task.path: task.stamp for task in still})


def _batches(done: Iterator[_FileDone]) -> Iterator[list[_FileDone]]:
    batch: list[_FileDone] = []
    for each in done:
        batch.append(each)
        if len(batch) >= BATCH_FILES:
            yield batch
            batch = []
    if batch:
        yield batch


def _digests(cache: IndexCache, project: str, changed: Sequence[_FileTask]) -> Set[bytes]:
    """What need not be parsed: of a few files it is asked, for there may be a hundred thousand."""
    if len(changed) >= _SHARED_FROM:
        return cache.digests()
    contents = ((task, read_beneath(project, task.path, MOST_BYTES + 1)) for task in changed)
    found = (content_digest(data, task.language) for task, data in contents if data is not None)
    return {digest for digest in found if cache.has_reading(digest)}


# --- reading, in workers -------------------------------------------------------------------------


def _read_all(
    project: str,
    tasks: Sequence[_FileTask],
    digests: Set[bytes],
    cores: int,
    go_on: Callable[[], bool],
) -> Generator[_FileDone, None, None]:
    is_bulk = len(tasks) >= _SHARED_FROM
    if not is_bulk:
        # The workers are copies: what is loaded here need not be loaded with each edit.
        cores = 1
        for language in {task.language for task in tasks}:
            load_reader(language)

    def work(item: int) -> bytes:
        return _encode(_read(project, tasks[item], digests))

    for item, outcome in WorkerPool(work, cores, go_on, steps_aside=is_bulk).run(len(tasks)):
        try:
            digest, reading = _UNREAD if outcome is None else _decode(outcome)
        except msgspec.MsgspecError:  # an extractor gave something else than definitions
            digest, reading = _UNREAD
        yield _FileDone(*tasks[item], digest, reading)


def _read(project: str, task: _FileTask, digests: Set[bytes]) -> tuple[bytes, FileReading | None]:
    content = read_beneath(project, task.path, MOST_BYTES + 1)
    if content is None:
        return _UNREAD
    digest = content_digest(content, task.language)
    if digest in digests:
        return digest, None
    try:
        return digest, read_content(content, task.language)
    except Exception:  # an extractor of others may raise anything
        return _UNREAD


_UNREAD: Final[tuple[bytes, FileReading]] = (b"unread", EMPTY)
"""Of a file that cannot be read, or not within its limits: its times still count, so that it is
tried again when it has changed."""
_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(tuple[bytes, FileReading | None]).decode
