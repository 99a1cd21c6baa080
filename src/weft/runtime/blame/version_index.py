"""The index of all versions of a project's files: one SQLite file beside the index of its words,
read on from the last fact of each session that was taken in.

It is a cache: it may be deleted at any time, and where it cannot be opened or written, all logs are
read into memory instead.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio.to_thread
import apsw
import msgspec

from weft.errors import StoreError
from weft.ids import BlobId, SessionId
from weft.messages import clean_text
from weft.runtime.blame.file_versions import FileVersion, LogFold, MadeCommit, VersionFold
from weft.store import SessionRow, Store

logger = logging.getLogger(__name__)

FILE: Final = "changes.db"
PAGE: Final = 2_000
_ROWS: Final = 500
_SCHEMA: Final = 1
_TABLES: Final = """
CREATE TABLE log (session TEXT PRIMARY KEY, created REAL, seq INTEGER, fold BLOB) WITHOUT ROWID;
CREATE TABLE version (
    session TEXT, seq INTEGER, at REAL, path TEXT, after TEXT, grp TEXT, place INTEGER, body BLOB
);
CREATE INDEX version_path ON version (path);
CREATE INDEX version_after ON version (after);
CREATE INDEX version_group ON version (session, grp);
CREATE TABLE made (session TEXT, commit_id TEXT, body BLOB);
CREATE INDEX made_commit ON made (commit_id);
"""


class VersionIndex:
    """What is known of all sessions of a project."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self.unread: list[SessionId] = []
        """Sessions that cannot be read."""

    @classmethod
    async def opened(cls, store: Store, project_path: str, folder: Path | None) -> VersionIndex:
        """The index, with all that the sessions tell of by now; `folder` is where it is kept."""
        index = cls(await anyio.to_thread.run_sync(_opened, folder))
        try:
            await index._read_on(store, project_path)
        except apsw.Error:
            # Another process writes it, or the disk is full: it is only a cache.
            logger.info("the index of changes is not used", exc_info=True)
            index.close()
            index = cls(_opened(None))
            await index._read_on(store, project_path)
        return index

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    # -- reading the logs

    async def _read_on(self, store: Store, project_path: str) -> None:
        rows = await _all_rows(store, project_path)
        await anyio.to_thread.run_sync(self._forget_others, {row.id for row in rows})
        known = {name: (created, seq) for name, created, seq in self._db.execute(_KNOWN)}
        for row in rows:
            created, seq = known.get(row.id, (row.created, 0))
            if row.damaged:
                self.unread.append(row.id)
                continue
            # While a turn runs the row may be behind its log.
            if created == row.created and seq == row.last_seq and not row.turn_open:
                continue
            try:
                await self._read_log(store, row, seq if created == row.created else 0)
            except StoreError as error:
                # A session that cannot be read hides none of the others.
                logger.warning("a session cannot be read: %s", error, extra={"session": row.id})
                self.unread.append(row.id)

    async def _read_log(self, store: Store, row: SessionRow, seq: int) -> None:
        if seq and await store.last_seq(row.id) < seq:
            seq = 0  # another log of that name
        fold = VersionFold(row.id, self._fold_of(row.id) if seq else LogFold())
        last = seq
        while records := await store.read(row.id, after=last, limit=PAGE):
            await anyio.to_thread.run_sync(fold.take, records)
            last = records[-1].seq
        await anyio.to_thread.run_sync(partial(self._save, row, fold, last, anew=not seq))

    def _fold_of(self, session: SessionId) -> LogFold:
        found = self._one("SELECT fold FROM log WHERE session = ?", session)
        return LogFold() if found is None else msgspec.json.decode(found, type=LogFold)

    def _save(self, row: SessionRow, fold: VersionFold, last: int, *, anew: bool) -> None:
        with self._db:
            if anew:
                self._forget(row.id)
            self._db.execute(
                "INSERT OR REPLACE INTO log VALUES (?, ?, ?, ?)",
                (row.id, row.created, last, msgspec.json.encode(fold.known)),
            )
            self._db.executemany(
                "INSERT INTO version VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [_row(version, in_place=fold.known.place) for version in fold.versions],
            )
            self._db.executemany(
                "INSERT INTO made VALUES (?, ?, ?)",
                [(each.session, each.commit, msgspec.json.encode(each)) for each in fold.commits],
            )

    def _forget_others(self, sessions: set[SessionId]) -> None:
        """Forget sessions that were deleted."""
        gone = [name for name, *_ in self._db.execute(_KNOWN) if name not in sessions]
        if gone:
            with self._db:
                for name in gone:
                    self._forget(SessionId(name))

    def _forget(self, session: SessionId) -> None:
        for table in ("log", "version", "made"):
            self._db.execute(f"DELETE FROM {table} WHERE session = ?", (session,))

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
        found = await anyio.to_thread.run_sync(lambda: list(self._db.execute(sql, (most,))))
        return [str(path) for (path,) in found]

    async def made_commit(self, commit: str) -> MadeCommit | None:
        """The call that made a commit."""
        sql = "SELECT body FROM made WHERE commit_id = ?"
        body = await anyio.to_thread.run_sync(lambda: self._one(sql, commit))
        return None if body is None else msgspec.json.decode(body, type=MadeCommit)

    async def _versions(self, where: str, *values: str) -> list[FileVersion]:
        sql = f"SELECT body FROM version WHERE {where}"
        rows = await anyio.to_thread.run_sync(lambda: list(self._db.execute(sql, values)))
        found = [msgspec.json.decode(body, type=FileVersion) for (body,) in rows]
        return sorted(found, key=lambda each: each.order)

    def _one(self, sql: str, *values: str) -> Any:
        row = self._db.execute(sql, values).fetchone()
        return None if row is None else row[0]


_KNOWN: Final = "SELECT session, created, seq FROM log"


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


def _opened(folder: Path | None) -> apsw.Connection:
    """The file, made anew where it cannot be read; in memory where there can be none."""
    if folder is not None:
        for path in _twice(folder / FILE):
            try:
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                return _prepared(apsw.Connection(str(path)))
            except (apsw.Error, OSError):
                logger.info("the index of changes is made anew", exc_info=True)
    return _prepared(apsw.Connection(":memory:"))


def _twice(path: Path) -> Iterator[Path]:
    yield path
    for end in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + end).unlink(missing_ok=True)
    yield path


def _prepared(db: apsw.Connection) -> apsw.Connection:
    db.set_busy_timeout(2_000)
    db.execute("PRAGMA synchronous = OFF")
    row = db.execute("PRAGMA user_version").fetchone()
    version = row[0] if row else 0
    if version != _SCHEMA:
        if version:
            db.close()
            raise apsw.SchemaChangeError("written by another version")
        with db:
            db.execute(_TABLES)
            db.execute(f"PRAGMA user_version = {_SCHEMA}")
    return db
