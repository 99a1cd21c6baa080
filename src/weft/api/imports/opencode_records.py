"""Records of opencode's sessions: from its database, its older folder of files, or an export.

The database may be open in opencode at the same time; it is only read, and nothing in it is run.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import apsw
import msgspec

from weft.errors import UsageError
from weft.sha256 import sha256

LARGEST_VALUE: Final = 16 * 1024 * 1024
LARGEST_EXPORT: Final = 64 * 1024 * 1024
MOST_BYTES: Final = 512 * 1024 * 1024
_MOST_STEPS: Final = 1_000_000_000
"""Of SQLite's machine: a file may be made so that a question of it never ends."""
_STEPS: Final = 100_000
_SESSION: Final = re.compile(r"ses_[A-Za-z0-9]{1,60}")
_MOST_AGENTS: Final = 500
_COLUMNS: Final = ("id", "parent_id", "directory", "title", "version", "revert", "time_created")


class OpencodeRecords:
    """The records of one session and of those of its agents.  Blocks."""

    def __init__(self, place: Path, session_id: str) -> None:
        """`place` is the database, the `storage` folder, or an export."""
        self.path = place
        self._id = session_id
        self._digest = sha256(b"")
        self._left_out = 0
        self._bytes = 0
        self._is_cut = False

    @property
    def digest(self) -> str:
        """SHA-256 of what was read."""
        return self._digest.hexdigest()

    @property
    def problems(self) -> tuple[str, ...]:
        """What was not whole, a sentence each."""
        said = []
        if self._is_cut:
            said.append(f"only its first {MOST_BYTES // 1024 // 1024} MiB were read")
        if self._left_out:
            said.append(f"{self._left_out} of its records are damaged or too large, and left out")
        return tuple(said)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The records.

        Raises:
            UsageError: the file cannot be read.
        """
        if self.path.is_dir():
            yield from self._of_folder(self._id, set())
        elif self.path.suffix == ".json":
            yield from self._of_export()
        else:
            try:
                with closing(open_database(self.path)) as database:
                    yield from self._of_database(database, self._id, set())
            except apsw.Error as error:
                raise UsageError(f"cannot read {str(self.path)!r}: {error}") from error

    def _taken(self, data: bytes | str) -> dict[str, Any] | None:
        """A value, which counts for the digest and the bounds."""
        encoded = data.encode("utf-8", "replace") if isinstance(data, str) else data
        self._bytes += len(encoded)
        if self._bytes > MOST_BYTES:
            self._is_cut = True
            return None
        self._digest.update(encoded)
        try:
            return msgspec.json.decode(encoded, type=dict[str, Any])
        except (msgspec.MsgspecError, RecursionError):
            self._left_out += 1
            return None

    # -- its database

    def _of_database(
        self, database: apsw.Connection, session_id: str, seen: set[str]
    ) -> Iterator[dict[str, Any]]:
        seen.add(session_id)
        about = _row(database, session_id)
        if about is None:
            raise UsageError(f"there is no session {session_id!r} in {str(self.path)!r}")
        self._digest.update(session_id.encode())
        yield {"session": about}
        found = database.execute(
            "select id, data from message where session_id = ? and length(data) < ? order by rowid",
            (session_id, LARGEST_VALUE),
        )
        for message_id, data in found:
            message = self._taken(data)
            if message is not None:
                yield {"message": {**message, "id": message_id}}
                for (part,) in database.execute(
                    "select data from part where message_id = ? and length(data) < ? "
                    "order by rowid",
                    (message_id, LARGEST_VALUE),
                ):
                    if (taken := self._taken(part)) is not None:
                        yield {"part": taken}
        children = database.execute(
            "select id from session where parent_id = ? order by rowid limit ?",
            (session_id, _MOST_AGENTS),
        )
        for (child,) in list(children):
            if child not in seen:
                yield from self._of_database(database, child, seen)

    # -- its older folder

    def _of_folder(self, session_id: str, seen: set[str]) -> Iterator[dict[str, Any]]:
        seen.add(session_id)
        about = self._session_file(session_id)
        if about is None:
            raise UsageError(f"there is no session {session_id!r} in {str(self.path)!r}")
        yield {"session": about}
        messages = list(self._files(self.path / "message" / session_id))
        for message in sorted(messages, key=_age):
            yield {"message": message}
            parts = list(self._files(self.path / "part" / _plain(message.get("id"))))
            for part in sorted(parts, key=lambda each: str(each.get("id"))):
                yield {"part": part}
        for child in self._children(session_id):
            if child not in seen:
                yield from self._of_folder(child, seen)

    def _session_file(self, session_id: str) -> dict[str, Any] | None:
        name = f"{_plain(session_id)}.json"
        for folder in _folders(self.path / "session"):
            if (path := folder / name).is_file():
                return self._file(path)
        return None

    def _children(self, session_id: str) -> Iterator[str]:
        for folder in _folders(self.path / "session"):
            for about in self._files(folder):
                if about.get("parentID") == session_id:
                    yield str(about.get("id"))

    def _files(self, folder: Path) -> Iterator[dict[str, Any]]:
        for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
            if (value := self._file(path)) is not None:
                yield value

    def _file(self, path: Path) -> dict[str, Any] | None:
        return self._taken(plain_bytes(path, LARGEST_VALUE))

    # -- an export

    def _of_export(self) -> Iterator[dict[str, Any]]:
        data = plain_bytes(self.path, LARGEST_EXPORT)
        value = self._taken(data)
        if value is None or not isinstance(value.get("info"), dict):
            raise UsageError(f"{str(self.path)!r} is no export of opencode, or not whole")
        yield {"session": value["info"]}
        messages = value.get("messages")
        for each in messages if isinstance(messages, list) else ():
            if isinstance(each, dict):
                yield {"message": each.get("info")}
                for part in each.get("parts") or ():
                    yield {"part": part}


def open_database(path: Path) -> apsw.Connection:
    """A database of others, to be read only."""
    if path.is_symlink() or not path.is_file():
        raise UsageError(f"{str(path)!r} is not a file")
    database = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
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
    found = database.execute(
        f"select count(*) from sqlite_master where type = 'table' and name in {names}"
    ).fetchone()
    if found != (3,):
        database.close()
        raise UsageError(f"{str(path)!r} is no database of opencode that can be read")
    return database


def session_ids(path: Path, folder: str) -> list[str]:
    """The sessions that worked in a folder, the newest first; those of agents are not named."""
    if path.is_dir():
        found: list[tuple[Any, str]] = []
        for each in _folders(path / "session"):
            for file in sorted(each.glob("ses_*.json")):
                about = _decoded(plain_bytes(file, LARGEST_VALUE))
                if about.get("directory") == folder and not about.get("parentID"):
                    created = about.get("time")
                    age = created.get("created") if isinstance(created, dict) else 0
                    found.append((age if isinstance(age, int) else 0, file.stem))
        return [name for _, name in sorted(found, reverse=True)]
    listing = "select id from session where directory = ? and parent_id is null order by rowid desc"
    try:
        with closing(open_database(path)) as database:
            listed = database.execute(listing, (folder,))
            return [name for (name,) in listed if isinstance(name, str)]
    except apsw.Error as error:
        raise UsageError(f"cannot read {str(path)!r}: {error}") from error


def _row(database: apsw.Connection, session_id: str) -> dict[str, Any] | None:
    there = {row[1] for row in database.execute("select * from pragma_table_info('session')")}
    names = [name for name in _COLUMNS if name in there]
    row = database.execute(
        f"select {', '.join(names)} from session where id = ?",  # names of ours
        (session_id,),
    ).fetchone()
    if row is None:
        return None
    about: dict[str, Any] = dict(zip(names, row, strict=True))
    about["revert"] = _decoded(about.get("revert") or "{}")
    return about


def _decoded(data: bytes | str) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _age(message: dict[str, Any]) -> tuple[float, str]:
    time = message.get("time")
    created = time.get("created") if isinstance(time, dict) else 0
    return (created if isinstance(created, int | float) else 0, str(message.get("id")))


def _plain(given: Any) -> str:
    """An id that is no path."""
    text = str(given)
    return text if re.fullmatch(r"[A-Za-z0-9_]{1,80}", text) else "none"


def _folders(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return [each for each in sorted(folder.iterdir()) if each.is_dir() and not each.is_symlink()]


def plain_bytes(path: Path, most: int) -> bytes:
    """A regular file, through no link.

    Raises:
        UsageError: it cannot be read, is something else, or larger.
    """
    import stat  # only here

    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
    try:
        with open(os.open(path, flags), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UsageError(f"{str(path)!r} is not a file")
            data = file.read(most + 1)
    except OSError as error:
        raise UsageError(f"cannot read {str(path)!r}: {error.strerror}") from error
    if len(data) > most:
        raise UsageError(f"{str(path)!r} is larger than {most // 1024 // 1024} MiB")
    return data
