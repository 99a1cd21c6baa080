"""Database of opencode, read only: it may be open in opencode, and its file may be anybody's.

Values are read as bytes, because a column holds whatever was written there, and no view, function
or extension that the file names is run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import apsw

from weft.errors import UsageError

LARGEST_VALUE: Final = 16 * 1024 * 1024
_MOST_STEPS: Final = 1_000_000_000
"""Of SQLite's machine: a file may be made so that a question of it never ends."""
_STEPS: Final = 100_000
_COLUMNS: Final = ("id", "parent_id", "directory", "title", "version", "revert", "time_created")
_HEADER: Final = 20
_WITH_LOG: Final = b"\x02\x02"


class OpencodeDatabase:
    """An open database of opencode.  Blocks."""

    def __init__(self, database: apsw.Connection) -> None:
        """Use `open_database`."""
        self._database = database

    def listed(self, folder: str) -> list[str]:
        """The sessions that worked in a folder, the newest first; those of agents are not named."""
        ids = self._database.execute(
            "select cast(id as blob) from session where directory = ? and parent_id is null "
            "and typeof(id) = 'text' order by rowid desc",
            (folder,),
        )
        return list(_plain_texts(ids))

    def session(self, session_id: str) -> dict[str, Any] | None:
        """What is written of a session."""
        columns = self._database.execute("select name from pragma_table_info('session')")
        there = {name for (name,) in columns}
        names = [name for name in _COLUMNS if name in there]
        values = ", ".join(f"cast({name} as blob)" for name in names)  # names of ours
        row = self._database.execute(
            f"select {values} from session where id = ?", (session_id,)
        ).fetchone()
        if row is None:
            return None
        return {
            name: None if value is None else value.decode("utf-8", "replace")
            for name, value in zip(names, row, strict=True)
        }

    def messages(self, session_id: str) -> Iterator[tuple[str, bytes]]:
        """The messages of a session, each with its id."""
        found = self._database.execute(
            "select cast(id as blob), cast(data as blob) from message "
            "where session_id = ? and length(data) < ? order by rowid",
            (session_id, LARGEST_VALUE),
        )
        for key, data in found:
            yield (key or b"").decode("utf-8", "replace"), data

    def parts(self, message_id: str) -> Iterator[bytes]:
        """The parts of a message."""
        found = self._database.execute(
            "select cast(data as blob) from part where message_id = ? and length(data) < ? "
            "order by rowid",
            (message_id, LARGEST_VALUE),
        )
        for (data,) in found:
            yield data

    def children(self, session_id: str, most: int) -> list[str]:
        """The sessions of its agents."""
        ids = self._database.execute(
            "select cast(id as blob) from session where parent_id = ? and typeof(id) = 'text' "
            "order by rowid limit ?",
            (session_id, most),
        )
        return list(_plain_texts(ids))


@contextmanager
def open_database(path: Path) -> Iterator[OpencodeDatabase]:
    """The database of a file, to be read only.

    Raises:
        UsageError: it is none, it cannot be read, or it changed under a reader that saw no log.
    """
    if path.is_symlink() or not path.is_file():
        raise UsageError(f"{str(path)!r} is not a file")
    try:
        is_alone = _is_alone(path)
        before = _signs(path)
        connection = _connected(path, is_alone)
        try:
            yield OpencodeDatabase(connection)
        finally:
            connection.close()
    except (apsw.Error, OSError) as error:
        raise UsageError(f"cannot read {str(path)!r}: {error}") from error
    if is_alone and _signs(path) != before:
        raise UsageError(f"{str(path)!r} changed while it was read; import it again")


def _connected(path: Path, is_alone: bool) -> apsw.Connection:
    """A connection that writes nothing."""
    flags, name = apsw.SQLITE_OPEN_READONLY, str(path)
    if is_alone:
        # Else SQLite makes files for the log beside it, and leaves them there.
        flags, name = flags | apsw.SQLITE_OPEN_URI, f"file:{quote(name)}?immutable=1"
    database = apsw.Connection(name, flags=flags)
    database.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    database.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    database.limit(apsw.SQLITE_LIMIT_LENGTH, 2 * LARGEST_VALUE)
    database.set_busy_timeout(2_000)
    steps = 0

    def is_enough() -> bool:
        nonlocal steps
        steps += _STEPS
        return steps > _MOST_STEPS

    database.set_progress_handler(is_enough, _STEPS)
    names = "('session', 'message', 'part')"
    listing = f"select count(*) from sqlite_master where type = 'table' and name in {names}"
    try:
        if database.execute(listing).fetchone() != (3,):
            raise UsageError(f"{str(path)!r} is no database of opencode that can be read")
    except BaseException:
        database.close()
        raise
    return database


def _is_alone(path: Path) -> bool:
    """It has a write-ahead log that is empty, and no program has it open."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    with open(os.open(path, flags), "rb") as file:
        has_log = file.read(_HEADER)[18:] == _WITH_LOG
    _, log = _signs(path)
    return has_log and not os.path.lexists(f"{path}-shm") and (log is None or log[0] == 0)


def _signs(path: Path) -> tuple[tuple[int, int, int] | None, tuple[int, int, int] | None]:
    """What tells a file and its log from those of before."""
    found: list[tuple[int, int, int] | None] = [None, None]
    for place, name in enumerate((str(path), f"{path}-wal")):
        with suppress(FileNotFoundError):
            about = os.stat(name, follow_symlinks=False)
            found[place] = (about.st_size, about.st_mtime_ns, about.st_ino)
    return found[0], found[1]


def _plain_texts(rows: Any) -> Iterator[str]:
    """Ids that are text."""
    for (value,) in rows:
        with suppress(UnicodeDecodeError):
            yield value.decode()
