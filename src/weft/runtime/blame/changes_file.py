"""The file of the index of changes: opened, made, and emptied where it is damaged.

Other processes may have it open at any time, so it is never removed: a new file of that name would
take the journal of the old one for its own.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path
from typing import Final

import apsw
import msgspec

logger = logging.getLogger(__name__)

FILE: Final = "changes.db"
SCHEMA: Final = 2
WAIT_MS: Final = 2_000
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
_NOT_DAMAGE: Final = (
    *(apsw.BusyError, apsw.LockedError, apsw.FullError, apsw.IOError, apsw.CantOpenError),
    *(apsw.ReadOnlyError, apsw.PermissionsError, apsw.NoMemError, apsw.InterruptError),
)


def open_changes(folder: Path | None) -> apsw.Connection:
    """The file below a folder; in memory without one.  Blocks.

    Raises:
        apsw.Error, OSError: it cannot be opened, or is damaged.
    """
    if folder is None:
        return _prepared(apsw.Connection(":memory:"))
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    db = apsw.Connection(str(folder / FILE))
    try:
        return _prepared(db)
    except apsw.Error:
        db.close()
        raise


def empty_if_damaged(folder: Path, error: Exception) -> None:
    """Empty the file where an error says that what stands in it is wrong: the next look fills it.

    Blocks.
    """
    if not isinstance(error, apsw.Error | msgspec.MsgspecError) or isinstance(error, _NOT_DAMAGE):
        return
    try:
        db = apsw.Connection(str(folder / FILE))
        try:
            _empty(db)
        finally:
            db.close()
    except apsw.Error:
        logger.info("the index of changes cannot be emptied", exc_info=True)


def _empty(db: apsw.Connection) -> None:
    db.set_busy_timeout(WAIT_MS)
    with suppress(apsw.Error):
        db.execute("PRAGMA user_version").fetchall()  # it has to have been looked at
    db.config(apsw.SQLITE_DBCONFIG_RESET_DATABASE, 1)
    db.execute("VACUUM")
    db.config(apsw.SQLITE_DBCONFIG_RESET_DATABASE, 0)


def _prepared(db: apsw.Connection) -> apsw.Connection:
    db.set_busy_timeout(WAIT_MS)
    # A cut of power must not leave the place of a log without the changes up to it.
    db.execute("PRAGMA synchronous = NORMAL")
    if _version(db) == SCHEMA:
        return db
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("BEGIN IMMEDIATE")
    try:
        version = _version(db)
        if version == 0:
            db.execute(_TABLES)
            db.execute(f"PRAGMA user_version = {SCHEMA}")
        elif version != SCHEMA:
            raise apsw.SchemaChangeError("written by another version")
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")
    return db


def _version(db: apsw.Connection) -> int:
    row = db.execute("PRAGMA user_version").fetchone()
    return int(row[0]) if row else 0
