"""The index of all versions of a project's files: one SQLite file beside the index of its words,
read on from the last fact of each session that was taken in.

It is a cache: it may be deleted at any time, and where it cannot be opened or written, all logs are
read into memory instead.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

import anyio.to_thread
import apsw
import msgspec

from weft.errors import StoreError
from weft.ids import BlobId, SessionId
from weft.messages import clean_text
from weft.runtime.blame.changes_file import empty_if_damaged, open_changes
from weft.runtime.blame.file_versions import FileVersion, LogFold, MadeCommit, VersionFold
from weft.store import SessionRow, Store

logger = logging.getLogger(__name__)

PAGE: Final = 2_000
MOST_TRIES: Final = 5
"""Times that a log is read on while others read it on, too."""
_ROWS: Final = 500
T = TypeVar("T")
_Row: TypeAlias = tuple[Any, ...]


class VersionIndex:
    """What is known of all sessions of a project."""

    def __init__(self, store: Store, project_path: str, folder: Path | None) -> None:
        self._store = store
        self._project = project_path
        self._folder = folder
        self._db: apsw.Connection | None = None
        self.unread: list[SessionId] = []
        """Sessions that cannot be read."""

    @classmethod
    async def opened(cls, store: Store, project_path: str, folder: Path | None) -> VersionIndex:
        """The index, with all that the sessions tell of by now; `folder` is where it is kept."""
        index = cls(store, project_path, folder)
        try:
            await index._open(folder)
        except (apsw.Error, msgspec.MsgspecError, OSError) as error:
            await index._do_without(error)
        return index

    async def _open(self, folder: Path | None) -> None:
        self._db = await anyio.to_thread.run_sync(open_changes, folder)
        await self._read_on()

    async def _do_without(self, error: Exception) -> None:
        """Look at the logs themselves: another process writes the file, the disk is full, or it is
        damaged.
        """
        logger.info("the index of changes is not used", exc_info=error)
        self.close()
        if self._folder is not None:
            await anyio.to_thread.run_sync(empty_if_damaged, self._folder, error)
        await self._open(None)

    def close(self) -> None:
        """Let go of the file."""
        if self._db is not None:
            self._db.close()

    # -- reading the logs

    async def _read_on(self) -> None:
        self.unread.clear()
        rows = await _all_rows(self._store, self._project)
        known = await anyio.to_thread.run_sync(self._known)
        if gone := known.keys() - {row.id for row in rows}:
            await anyio.to_thread.run_sync(self._forget_all, gone)
        for row in rows:
            created, seq = known.get(row.id, (row.created, 0))
            if row.damaged:
                self.unread.append(row.id)
                continue
            # While a turn runs the row may be behind its log.
            if created == row.created and seq == row.last_seq and not row.turn_open:
                continue
            try:
                await self._read_log(row)
            except StoreError as error:
                # A session that cannot be read hides none of the others.
                logger.warning("a session cannot be read: %s", error, extra={"session": row.id})
                self.unread.append(row.id)

    async def _read_log(self, row: SessionRow) -> None:
        for _ in range(MOST_TRIES):
            place = await anyio.to_thread.run_sync(self._place_in, row)
            seq, fold = 0, VersionFold(row.id, LogFold())
            # A shorter log is another one of that name.
            if place is not None and await self._store.last_seq(row.id) >= place[0]:
                seq, fold = place[0], VersionFold(row.id, _fold_of(place[1]))
            last = seq
            while records := await self._store.read(row.id, after=last, limit=PAGE):
                await anyio.to_thread.run_sync(fold.take, records)
                last = records[-1].seq
            save = partial(self._save, row, fold, place, last, anew=not seq)
            if await anyio.to_thread.run_sync(save):
                return
        raise apsw.BusyError("other processes read the same log on")

    def _known(self) -> dict[str, tuple[float, int]]:
        return {name: (created, seq) for name, created, seq in self._rows(_KNOWN)}

    def _place_in(self, row: SessionRow) -> _Row | None:
        """How far a log was read, and what is known of it from there on."""
        sql = "SELECT seq, fold FROM log WHERE session = ? AND created = ?"
        return next(iter(self._rows(sql, row.id, row.created)), None)

    def _save(
        self, row: SessionRow, fold: VersionFold, place: _Row | None, last: int, *, anew: bool
    ) -> bool:
        """Take changes in; False where another process has done so since `place` was looked up."""
        with _Writing(self._open_db()) as db:
            if self._place_in(row) != place:
                return False
            if anew:
                self._forget(row.id)
            db.execute(
                "INSERT OR REPLACE INTO log VALUES (?, ?, ?, ?)",
                (row.id, row.created, last, msgspec.json.encode(fold.known)),
            )
            db.executemany(
                "INSERT INTO version VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [_row(version, in_place=fold.known.place) for version in fold.versions],
            )
            db.executemany(
                "INSERT INTO made VALUES (?, ?, ?)",
                [(each.session, each.commit, msgspec.json.encode(each)) for each in fold.commits],
            )
        return True

    def _forget_all(self, sessions: Iterable[str]) -> None:
        """Forget sessions that were deleted."""
        with _Writing(self._open_db()):
            for name in sessions:
                self._forget(SessionId(name))

    def _forget(self, session: SessionId) -> None:
        for table in ("log", "version", "made"):
            self._open_db().execute(f"DELETE FROM {table} WHERE session = ?", (session,))

    # -- looking things up

    async def of_path(self, path: str) -> list[FileVersion]:
        """All versions of a path in the project itself, the oldest first."""
        if path != clean_text(path):
            return []  # a name that is no text is in no log
        return await self._versions("path = ? AND place = 0", path)

    async def of_candidate(self, session: SessionId, path: str) -> list[FileVersion]:
        """Those of a candidate, in what it works in."""
        return await self._versions("session = ? AND path = ?", session, path)

    async def with_content(self, content: BlobId) -> list[FileVersion]:
        """All versions that are this content, of whatever path in the project."""
        return await self._versions("after = ? AND place = 0", content)

    async def beside(self, version: FileVersion) -> list[FileVersion]:
        """What was changed in one go with a version."""
        return await self._versions("session = ? AND grp = ?", version.session, version.group)

    async def last_paths(self, most: int) -> list[str]:
        """Paths that were changed, the last ones first."""
        sql = "SELECT path FROM version WHERE place = 0 GROUP BY path ORDER BY max(at) DESC LIMIT ?"
        return await self._found(lambda row: str(row[0]), sql, most)

    async def made_commit(self, commit: str) -> MadeCommit | None:
        """The call that made a commit."""
        sql = "SELECT body FROM made WHERE commit_id = ?"
        found = await self._found(lambda row: _decode(row[0], MadeCommit), sql, commit)
        return found[0] if found else None

    async def _versions(self, where: str, *values: str) -> list[FileVersion]:
        sql = f"SELECT body FROM version WHERE {where}"
        found = await self._found(lambda row: _decode(row[0], FileVersion), sql, *values)
        return sorted(found, key=lambda each: each.order)

    async def _found(self, read: Callable[[_Row], T], sql: str, *values: str | int) -> list[T]:
        def look() -> list[T]:
            return [read(row) for row in self._rows(sql, *values)]

        try:
            return await anyio.to_thread.run_sync(look)
        except (apsw.Error, msgspec.MsgspecError) as error:
            await self._do_without(error)
        return await anyio.to_thread.run_sync(look)

    def _rows(self, sql: str, *values: str | int | float) -> list[_Row]:
        return list(self._open_db().execute(sql, values))

    def _open_db(self) -> apsw.Connection:
        assert self._db is not None
        return self._db


class _Writing:
    """A transaction that has the file to itself from its beginning."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db

    def __enter__(self) -> apsw.Connection:
        self._db.execute("BEGIN IMMEDIATE")
        return self._db

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is None:
            self._db.execute("COMMIT")
        elif self._db.in_transaction:
            self._db.execute("ROLLBACK")


_KNOWN: Final = "SELECT session, created, seq FROM log"


def _fold_of(body: bytes) -> LogFold:
    return _decode(body, LogFold)


def _decode(body: bytes, shape: type[T]) -> T:
    return msgspec.json.decode(body, type=shape)


def _row(version: FileVersion, *, in_place: bool) -> tuple[Any, ...]:
    return (
        *(version.session, version.seq, version.at, _text(version.path), version.after),
        *(version.group, int(in_place), msgspec.json.encode(version)),
    )


def _text(path: str) -> str:
    return path.encode(errors="replace").decode()


async def _all_rows(store: Store, project_path: str) -> Sequence[SessionRow]:
    """Every session of a project, archived ones, agents and candidates too."""
    found: list[SessionRow] = []
    place = None
    while rows := await store.rows(
        project_path=project_path, limit=_ROWS, archived=True, children=True, after=place
    ):
        found += rows
        place = rows[-1].last_active, rows[-1].id
    return found
