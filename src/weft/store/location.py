"""The location of a store: what a name or a path stands for, and how it is opened."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

import msgspec

from weft.errors import UsageError
from weft.store.base import Store

StoreArgument: TypeAlias = "Store | str | os.PathLike[str]"


class DefaultPaths(Protocol):
    """Where a store is kept that is named by its kind alone."""

    @property
    def home(self) -> Path: ...

    @property
    def database(self) -> Path: ...


class StoreLocation(msgspec.Struct, frozen=True):
    """What a store is, by name; two that are equal are one store."""

    kind: Literal["memory", "jsonl", "sqlite", "postgres"]
    path: str = ""
    """Of Postgres the address of the database, which may hold a password: never shown."""

    @property
    def files(self) -> list[Path]:
        """What it is made of on the disk."""
        if not self.path or self.kind == "postgres":
            return []
        # SQLite keeps the newest pages in the WAL file: to hide only the database would show
        # commands the latest conversations.
        beside = ("", "-wal", "-shm") if self.kind == "sqlite" else ("",)
        return [Path(self.path + end) for end in beside]


def location_of(wanted: StoreArgument, paths: DefaultPaths) -> StoreLocation | None:
    """What a name or a path stands for; None for a store itself.

    "memory"; "jsonl" and "sqlite", which are kept with our data; `jsonl:FOLDER`, `sqlite:FILE`;
    `postgres://…`, where `tenant=NAME` among its parameters names the tenant; a folder is a JSONL
    store, and anything else an SQLite file.

    Raises:
        UsageError: it is none of these.
    """
    if not isinstance(wanted, str | os.PathLike):
        given_store(wanted)
        return None
    text = os.fspath(wanted)
    if not text:
        raise UsageError("a store needs a name or a path: memory, jsonl, sqlite, or where it lies")
    if text == "memory":
        return StoreLocation("memory")
    kind, _, rest = text.partition(":")
    if kind in ("postgres", "postgresql"):
        return StoreLocation("postgres", _address(kind, rest))
    if kind == "jsonl":
        # Real paths: two spellings of one file are one store, which is opened once.
        return StoreLocation("jsonl", os.path.realpath(rest or paths.home / "jsonl"))
    if kind == "sqlite":
        return StoreLocation("sqlite", os.path.realpath(rest or paths.database))
    return StoreLocation("jsonl" if os.path.isdir(text) else "sqlite", os.path.realpath(text))


async def open_location(location: StoreLocation) -> Store:
    """Open the store at a location, and make it if there is none."""
    if location.kind == "memory":
        from weft.store.memory import MemoryStore  # for tests and runs that are forgotten

        return MemoryStore()
    if location.kind == "jsonl":
        from weft.store.jsonl import open_jsonl  # only this one: each costs start-up time

        return await open_jsonl(location.path)
    if location.kind == "postgres":
        return await _open_postgres(location.path)
    from weft.store.sqlite import open_sqlite  # as above

    return await open_sqlite(location.path)


def _address(scheme: str, rest: str) -> str:
    """The address of a database.

    Raises:
        UsageError: it names none.
    """
    if not rest.startswith("//"):
        raise UsageError(f"a Postgres store is named by its address: {scheme}://USER@HOST/DATABASE")
    return f"postgresql:{rest}"


async def _open_postgres(address: str) -> Store:
    from urllib.parse import parse_qsl, urlencode, urlsplit  # only here: start-up time

    try:
        from weft.store.postgres import open_postgres
    except ImportError as error:
        raise UsageError(
            "a Postgres store needs the extra: pip install 'weft[postgres]'"
        ) from error
    parts = urlsplit(address)
    # Ours, and not the driver's: it would pass an unknown word on to the server.
    words = dict(parse_qsl(parts.query, keep_blank_values=True))
    tenant = words.pop("tenant", "main")
    return await open_postgres(parts._replace(query=urlencode(words)).geturl(), tenant=tenant)


def given_store(wanted: object) -> Store:
    """A store that was handed in.

    Raises:
        UsageError: it is none.
    """
    if not hasattr(wanted, "take_lease"):
        raise UsageError(
            f"{wanted!r} is not a store; give a Store, a path, postgres://…, "
            "or memory, jsonl or sqlite"
        )
    return wanted  # type: ignore[return-value]  # a protocol; its methods tell the rest
