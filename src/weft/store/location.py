"""The location of a store: what a name or a path stands for, and how it is opened."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import msgspec

from weft.errors import UsageError
from weft.store.base import Store

if TYPE_CHECKING:  # an extra
    from weft.store.postgres.transfer import TransferReport

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
    if is_postgres(text):
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


def is_postgres(name: str) -> bool:
    """Whether the name of a store is the address of a database."""
    return name.startswith(("postgres:", "postgresql:"))


async def _open_postgres(address: str) -> Store:
    with _extra_needed():
        from weft.store.postgres import open_postgres

    dsn, tenant = _database(address)
    return await open_postgres(dsn, tenant=tenant, **_host_words(address))


async def migrate_postgres(address: str) -> int:
    """Make or update the schema of a database; returns its version."""
    with _extra_needed():
        from weft.store.postgres.migration import VERSION

    store = await _open_postgres(_address(*address.split(":", 1)))
    await store.aclose()
    return VERSION


async def copy_store(source: str, target: str) -> TransferReport:
    """Copy a whole store from a SQLite file to Postgres, or back.

    Raises:
        UsageError: the target is not empty.
        StoreError: one of both cannot be read or written; nothing was copied.
    """
    with _extra_needed():
        from weft.store.postgres.transfer import copy_to_postgres, copy_to_sqlite

    if is_postgres(target):
        dsn, tenant = _database(_address(*target.split(":", 1)))
        return await copy_to_postgres(Path(source), dsn, tenant)
    dsn, tenant = _database(_address(*source.split(":", 1)))
    return await copy_to_sqlite(dsn, Path(target), tenant)


@contextlib.contextmanager
def _extra_needed() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise UsageError(
            "a Postgres store needs the extra: pip install 'weft[postgres]'"
        ) from error


def _host_words(address: str) -> dict[str, Any]:
    """What an address says of this host among others: `slot`, and `lease`, the times after which
    a silent one is dead, `BEAT,GRACE,TTL` in seconds.
    """
    from urllib.parse import parse_qs, urlsplit  # only here: start-up time

    from weft.store.postgres.settings import LeaseTimes

    words = parse_qs(urlsplit(address).query)
    found: dict[str, Any] = {"slot": words["slot"][-1]} if "slot" in words else {}
    if "lease" not in words:
        return found
    try:
        beat, grace, ttl = map(float, words["lease"][-1].split(","))
    except ValueError as error:
        raise UsageError("lease= takes three numbers of seconds: BEAT,GRACE,TTL") from error
    times = LeaseTimes(beat_seconds=beat, grace_seconds=grace, ttl_seconds=ttl)
    return {**found, "times": times}


def _database(address: str) -> tuple[str, str]:
    """The address for the driver, and the tenant."""
    from urllib.parse import parse_qsl, urlencode, urlsplit  # only here: start-up time

    parts = urlsplit(address)
    # Ours, and not the driver's: it would pass an unknown word on to the server.
    words = dict(parse_qsl(parts.query, keep_blank_values=True))
    tenant = words.pop("tenant", "main")
    for name in ("slot", "lease"):
        words.pop(name, None)
    return parts._replace(query=urlencode(words)).geturl(), tenant


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
