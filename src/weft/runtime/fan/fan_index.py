"""The index of fan-outs: which session each belongs to.

One small file for each, written before anything else of it, so that whatever is found on disk can
be told from a leftover by the log of its session.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from weft.errors import UsageError
from weft.ids import SessionId
from weft.store import Store

IN_MEMORY: Final = "memory"
"""The name of all stores that end with their process."""


class FanEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One fan-out."""

    fan_id: str
    session_id: SessionId
    project: str
    prompt: str = ""
    at: float = 0.0
    is_closed: bool = False
    store: str = ""
    """Which store has its session (`store_name`)."""


def store_name(store: Store) -> str:
    """What tells a store from the others of this user; empty where nothing does."""
    if not store.is_lasting:
        return IN_MEMORY
    # Stores in files have one of these; several may meet in one folder, so that tells them not.
    place = getattr(store, "path", None) or getattr(store, "folder", None)
    return str(place) if isinstance(place, Path) else ""


class FanIndex:
    """All fan-outs that this user's sessions know.  Everything here blocks."""

    def __init__(self, home: Path) -> None:
        self._folder = home / "fans"

    def add(self, entry: FanEntry) -> None:
        """Write one down."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._folder / f"{entry.fan_id}.json"
        beside = path.with_suffix(f".{os.getpid()}.tmp")
        beside.write_bytes(msgspec.json.encode(entry))
        beside.replace(path)

    def entries(self, project: str | None = None) -> list[FanEntry]:
        """Those of a project, or all; the newest first."""
        found: list[FanEntry] = []
        for path in self._folder.glob("fan_*.json"):
            with suppress(OSError, msgspec.MsgspecError):
                found.append(msgspec.json.decode(path.read_bytes(), type=FanEntry))
        mine = [entry for entry in found if project is None or entry.project == project]
        return sorted(mine, key=lambda entry: (entry.at, entry.fan_id), reverse=True)

    def find(self, fan_id: str) -> FanEntry:
        """The one that this id, or a unique prefix or suffix of it, means.

        Raises:
            UsageError: none, or several.
        """
        known = self.entries()
        matches = [entry for entry in known if entry.fan_id == fan_id] or [
            entry
            for entry in known
            if fan_id and (entry.fan_id.startswith(fan_id) or entry.fan_id.endswith(fan_id))
        ]
        if len(matches) == 1:
            return matches[0]
        if not matches:
            raise UsageError(f"there is no fan-out {fan_id!r}; `weft fan list` shows them")
        raise UsageError(
            f"{fan_id!r} means several: {', '.join(entry.fan_id for entry in matches[:5])}"
        )

    def close(self, fan_id: str) -> None:
        """Note that it is over."""
        with suppress(UsageError):
            self.add(msgspec.structs.replace(self.find(fan_id), is_closed=True))

    def forget(self, fan_id: str) -> None:
        """Remove what is written down of one whose session is gone."""
        with suppress(FileNotFoundError):
            (self._folder / f"{fan_id}.json").unlink()
