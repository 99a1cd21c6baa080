"""Connections to Postgres: how they are made, what is checked, and what their errors mean."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import asyncpg

from weft.errors import Corrupt, StoreError, StoreOutage, StoreUnavailable
from weft.store.postgres.settings import PostgresSettings

SCHEMA = "weft"
OLDEST_SERVER = 140_000
"""Postgres 14."""

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

LOST = (
    ConnectionError,
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.QueryCanceledError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.TooManyConnectionsError,
)
"""What a broken connection, a restart, a failover and a partition look like to the driver."""

REPEATABLE = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError)
"""The transaction was taken back whole, and goes through the next time."""

logger = logging.getLogger(__name__)


async def connect(
    settings: PostgresSettings, tenant: int | None = None, *, silence_seconds: float = 8.0
) -> Connection:
    """A connection of our own, outside any pool, for the statements of one tenant.

    The server ends it when its other end was not heard of for `silence_seconds`.

    Raises:
        StoreUnavailable: the address is wrong, or this user may not come in.
        StoreOutage: the server cannot be reached for now.
    """
    try:
        return await asyncpg.connect(
            settings.dsn,
            timeout=settings.answer_seconds,
            command_timeout=settings.answer_seconds,
            server_settings=server_settings(tenant, silence_seconds),
        )
    except Exception as error:
        raise explained(error) from error


def server_settings(tenant: int | None, silence_seconds: float = 8.0) -> dict[str, str]:
    """What every connection sets."""
    found = {
        "application_name": "weft",
        "search_path": SCHEMA,
        "client_encoding": "UTF8",
        "timezone": "UTC",
        # An answer means that it is on the disk; the server's own default may be weaker.
        "synchronous_commit": "on",
        # A lock that is had must show what was committed before, within a transaction too.
        "default_transaction_isolation": "read committed",
        # Each group is one call with the same plan; planning it anew takes longer than running it.
        "plan_cache_mode": "force_generic_plan",
        "jit": "off",
        "tcp_keepalives_idle": str(max(1, round(silence_seconds) - 5)),
        "tcp_keepalives_interval": "1",
        "tcp_keepalives_count": "3",
        "tcp_user_timeout": str(round(silence_seconds * 1000)),
    }
    if tenant is not None:
        found["weft.tenant"] = str(tenant)
    return found


def explained(error: Exception) -> StoreError:
    """What the driver said, in plain words; nothing was written."""
    if isinstance(error, StoreError):
        return error
    wrong = (
        asyncpg.InvalidAuthorizationSpecificationError,
        asyncpg.InvalidCatalogNameError,
        asyncpg.InsufficientPrivilegeError,
        asyncpg.ClientConfigurationError,
    )
    if isinstance(error, (*wrong, ValueError)):
        return StoreUnavailable(f"the database cannot be used: {_said(error)}")
    if isinstance(error, (*LOST, *REPEATABLE)):
        return StoreOutage(f"the database cannot be reached for now: {_said(error)}")
    if isinstance(error, (asyncpg.DiskFullError, asyncpg.OutOfMemoryError)):
        return StoreUnavailable(f"the database has no room left: {_said(error)}")
    if isinstance(error, asyncpg.DataCorruptedError | asyncpg.IndexCorruptedError):
        return Corrupt("the database", _said(error))
    return StoreUnavailable(f"the database refused: {_said(error)}")


def _said(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


async def check_server(db: Connection) -> None:
    """Refuse a server that cannot keep what it is told.

    Raises:
        StoreUnavailable: it is too old, a standby, has another encoding, or loses what it answered.
    """
    shown = await db.fetchrow(
        """select current_setting('server_version_num')::integer as version,
               current_setting('fsync') as fsync, current_setting('full_page_writes') as pages,
               current_setting('server_encoding') as encoding,
               pg_is_in_recovery() as is_standby,
               current_setting('synchronous_standby_names') as standbys,
               (select count(*) from pg_stat_replication) as replicas"""
    )
    assert shown is not None
    wrong = _wrong_settings(shown)
    if wrong:
        raise StoreUnavailable(f"this Postgres server cannot hold a store: {'; '.join(wrong)}")
    if shown["replicas"] and not shown["standbys"]:
        logger.warning(
            "the database has a replica that it does not wait for: a failover can lose what was "
            "accepted; set synchronous_standby_names"
        )


def _wrong_settings(shown: asyncpg.Record) -> list[str]:
    wrong = []
    if shown["version"] < OLDEST_SERVER:
        wrong.append("it is older than version 14")
    if shown["is_standby"]:
        wrong.append("it is a standby, which takes no writes; name the primary")
    wrong += [
        f"{name} is off, so that a crash loses what was accepted; switch it on"
        for name, value in (("fsync", shown["fsync"]), ("full_page_writes", shown["pages"]))
        if value != "on"
    ]
    if shown["encoding"] != "UTF8":
        wrong.append(f"its encoding is {shown['encoding']}; make a database with UTF8")
    return wrong


async def close(db: Connection | None) -> None:
    """End a connection that may be broken, without waiting for it."""
    if db is not None and not db.is_closed():
        db.terminate()


Work: TypeAlias = "Callable[[Connection], Awaitable[object]]"
