"""Records of opencode's sessions: from its database, its older folder of files, or an export.

The database may be open in opencode at the same time; it is only read, and nothing in it is run.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from weft.api.imports.opencode_database import LARGEST_VALUE, OpencodeDatabase, open_database
from weft.errors import UsageError
from weft.sha256 import sha256

LARGEST_EXPORT: Final = 64 * 1024 * 1024
MOST_BYTES: Final = 512 * 1024 * 1024
_MOST_AGENTS: Final = 500
"""Sessions of agents, and of their agents, that are read of one."""


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
        self._has_more_agents = False

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
        if self._has_more_agents:
            said.append(f"of its agents only the first {_MOST_AGENTS} are read")
        if self._left_out:
            said.append(f"{self._left_out} of its records are damaged or too large, and left out")
        return tuple(said)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The records.

        Raises:
            UsageError: the file cannot be read.
        """
        if self.path.is_dir():
            yield from self._of_folder()
        elif self.path.suffix == ".json":
            yield from self._of_export()
        else:
            with open_database(self.path) as database:
                yield from self._of_database(database)

    def _taken(self, data: bytes) -> dict[str, Any] | None:
        """A value, which counts for the digest and the bounds."""
        self._bytes += len(data)
        if self._bytes > MOST_BYTES:
            self._is_cut = True
            return None
        self._digest.update(data)
        try:
            return msgspec.json.decode(data, type=dict[str, Any])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            self._left_out += 1
            return None

    # -- its database

    def _of_database(self, database: OpencodeDatabase) -> Iterator[dict[str, Any]]:
        for session_id in self._descending(partial(database.children, most=_MOST_AGENTS)):
            about: dict[str, Any] | None = database.session(session_id)
            if about is None:
                raise self._missing(session_id)
            self._digest.update(session_id.encode())
            yield {"session": {**about, "revert": _decoded(about.get("revert") or "{}")}}
            for message_id, data in database.messages(session_id):
                if (message := self._taken(data)) is None:
                    continue
                yield {"message": {**message, "id": message_id}}
                for part in database.parts(message_id):
                    if (taken := self._taken(part)) is not None:
                        yield {"part": taken}

    def _descending(self, children: Callable[[str], list[str]]) -> Iterator[str]:
        """The session, and those of its agents, each behind the one that called it."""
        seen, waiting = {self._id}, [self._id]
        while waiting:
            yield (session_id := waiting.pop())
            found = [each for each in children(session_id) if each not in seen]
            room = _MOST_AGENTS - len(seen)
            self._has_more_agents = self._has_more_agents or len(found) > room
            seen.update(found[:room])
            waiting += reversed(found[:room])

    def _missing(self, session_id: str) -> UsageError:
        return UsageError(f"there is no session {session_id!r} in {str(self.path)!r}")

    # -- its older folder

    def _of_folder(self) -> Iterator[dict[str, Any]]:
        agents: dict[str, list[str]] = {}
        for file in _session_files(self.path):
            if isinstance(parent := _about(file).get("parentID"), str):
                agents.setdefault(parent, []).append(file.stem)
        for session_id in self._descending(lambda each: agents.get(each, [])):
            about = self._session_file(session_id)
            if about is None:
                raise self._missing(session_id)
            yield {"session": about}
            messages = list(self._files(self.path / "message" / _plain(session_id)))
            for message in sorted(messages, key=_age):
                yield {"message": message}
                parts = list(self._files(self.path / "part" / _plain(message.get("id"))))
                for part in sorted(parts, key=lambda each: str(each.get("id"))):
                    yield {"part": part}

    def _session_file(self, session_id: str) -> dict[str, Any] | None:
        found = _session_place(self.path, session_id)
        return self._file(found) if found is not None else None

    def _files(self, folder: Path) -> Iterator[dict[str, Any]]:
        for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
            if (value := self._file(path)) is not None:
                yield value

    def _file(self, path: Path) -> dict[str, Any] | None:
        try:
            return self._taken(plain_bytes(path, LARGEST_VALUE))
        except UsageError:  # a link, a pipe, or too large
            self._left_out += 1
            return None

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
                parts = each.get("parts")
                for part in parts if isinstance(parts, list) else ():
                    yield {"part": part}


def session_ids(path: Path, folder: str) -> list[str]:
    """The sessions that worked in a folder, the newest first; those of agents are not named.

    Raises:
        UsageError: the database cannot be read.
    """
    if not path.is_dir():
        with open_database(path) as database:
            return database.listed(folder)
    found: list[tuple[float, str]] = []
    for file in _session_files(path):
        about = _about(file)
        if about.get("directory") == folder and not about.get("parentID"):
            found.append((_age(about)[0], file.stem))
    return [name for _, name in sorted(found, reverse=True)]


def has_session(path: Path, session_id: str) -> bool:
    """It has a session of that id.

    Raises:
        UsageError: the database cannot be read.
    """
    if path.is_dir():
        return _session_place(path, session_id) is not None
    with open_database(path) as database:
        return database.session(session_id) is not None


def _session_files(storage: Path) -> Iterator[Path]:
    for folder in _folders(storage / "session"):
        yield from sorted(folder.glob("ses_*.json"))


def _session_place(storage: Path, session_id: str) -> Path | None:
    name = f"{_plain(session_id)}.json"
    found = (folder / name for folder in _folders(storage / "session"))
    return next((path for path in found if path.is_file() and not path.is_symlink()), None)


def _about(file: Path) -> dict[str, Any]:
    """What is written of a session; nothing where it cannot be read."""
    try:
        return _decoded(plain_bytes(file, LARGEST_VALUE))
    except UsageError:
        return {}


def _decoded(data: bytes | str) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, TypeError, RecursionError):
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
