"""The row of this process in the database: who it is, and that it lives."""

from __future__ import annotations

import time

import asyncpg

from weft.store.base import Owner, StoreHost
from weft.store.postgres.connection import Connection
from weft.store.postgres.settings import LeaseTimes, PostgresSettings

LOCK_CLASS = 1465206900
"""Of advisory locks: "Weft"."""

_REGISTER = """
    insert into processes (
        tenant, process_id, pid, started, host, boot_id, address, accepting, slot
    ) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
    on conflict (tenant, process_id) do update set
        address = excluded.address, accepting = excluded.accepting, seen = clock_timestamp()
    returning process_no
"""
_TIDY = """
    delete from processes p
    where p.tenant = $1 and p.seen < clock_timestamp() - interval '1 day'
      and not exists (
          select 1 from streams s where s.tenant = p.tenant and s.process_no = p.process_no)
"""
_TIDY_LOCKS = """
    delete from held_locks h where h.tenant = $1 and not exists (
        select 1 from processes p where p.tenant = h.tenant and p.process_no = h.process_no)
"""
_REPLACE = """
    update processes set seen = 'epoch'
    where tenant = $1 and slot = $2 and process_id <> $3
"""
_BEAT = """
    update processes set seen = clock_timestamp() where tenant = $1 and process_no = $2
"""
_NEXT = """
    update processes set last_commit = last_commit + 1, last_outcome = '[]'
    where tenant = $1 and process_no = $2 returning last_commit
"""
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""It goes on while the machine sleeps, as the clock of the database does."""


def elapsed() -> float:
    """Seconds since the machine started."""
    return time.clock_gettime(_CLOCK)


class ProcessRegistration:
    """The number under which the database knows this process; another after it was given up."""

    def __init__(self, settings: PostgresSettings, tenant: int, owner: Owner) -> None:
        self.tenant = tenant
        self.owner = owner
        self._settings = settings
        self.process_no = 0
        self._confirmed = elapsed()

    @property
    def silent_seconds(self) -> float:
        """Since the last sign of life was sent that the database has answered: others may count
        this process as dead a while after that, and not sooner."""
        return elapsed() - self._confirmed

    def confirm(self, sent: float) -> None:
        """Note that a sign of life was answered, by the time when it was sent."""
        self._confirmed = max(self._confirmed, sent)

    @property
    def key(self) -> tuple[int, int]:
        """The tenant and the process."""
        return self.tenant, self.process_no

    @property
    def lock(self) -> int:
        """The advisory lock that is held while this process lives."""
        return (LOCK_CLASS << 32) + self.process_no

    async def register(self, db: Connection) -> None:
        """Write down who this process is, and that it lives."""
        owner = self.owner
        self.process_no = await db.fetchval(
            _REGISTER,
            self.tenant,
            owner.process_id,
            owner.pid,
            owner.started,
            owner.host,
            owner.boot_id,
            owner.address,
            owner.accepting,
            self._settings.slot,
        )
        if self._settings.slot:
            await db.execute(_REPLACE, self.tenant, self._settings.slot, owner.process_id)
        await db.execute(_TIDY, self.tenant)
        await db.execute(_TIDY_LOCKS, self.tenant)

    async def beat(self, db: Connection) -> bool:
        """Say that this process lives; False where it was given up."""
        return (await db.execute(_BEAT, *self.key)) != "UPDATE 0"

    async def note_lock(self, db: Connection) -> None:
        """Say that this process holds its advisory lock."""
        await db.execute(
            "insert into held_locks (tenant, process_no) values ($1, $2) on conflict do nothing",
            *self.key,
        )

    async def use_up_number(self, db: Connection) -> int:
        """The number of the last group, after the next one was used up: a group whose answer was
        given up may still be on its way, and must neither be carried out after this nor answer
        for another.

        It waits for one that is running.
        """
        found = await db.fetchval(_NEXT, *self.key)
        if found is None:
            await self.register(db)
        return int(found or 0)

    async def publish(self, db: Connection, owner: Owner) -> None:
        """Tell others where this process takes commands."""
        self.owner = owner
        await self.register(db)

    async def publish_load(self, db: Connection, load: float) -> None:
        """Tell others how busy this process is."""
        await db.execute(
            "update processes set load = $3 where tenant = $1 and process_no = $2", *self.key, load
        )

    async def age(self, db: Connection) -> None:
        """Let the last sign of life be long ago."""
        await db.execute(
            "update processes set seen = 'epoch' where tenant = $1 and process_no = $2",
            *self.key,
        )

    async def withdraw(self, db: Connection) -> None:
        """Give every lease back and forget this process."""
        await db.execute(
            "update streams set process_no = null where tenant = $1 and process_no = $2", *self.key
        )
        for table in ("held_locks", "processes"):
            await db.execute(
                f"delete from {table} where tenant = $1 and process_no = $2", *self.key
            )


_HOSTS = """
    select {columns}, load from processes p
    where p.tenant = $1 and p.address like 'http%' and is_alive_v1(p.tenant, p.process_no, $2, $3)
    order by p.process_no
"""
_COLUMNS = "process_no, process_id, pid, started, host, boot_id, address, accepting"


async def hosts(db: Connection, tenant: int, times: LeaseTimes) -> list[StoreHost]:
    """The living processes that take commands over a network."""
    query = _HOSTS.format(columns=_COLUMNS)
    rows = await db.fetch(query, tenant, times.ttl_seconds, times.grace_seconds)
    return [StoreHost(owner=_owner(row), load=row["load"]) for row in rows]


def _owner(row: asyncpg.Record) -> Owner:
    return Owner(**{name: row[name] for name in Owner.__struct_fields__})


async def owners(db: Connection, tenant: int, process_nos: list[int]) -> dict[int, Owner]:
    """Who some processes are."""
    rows = await db.fetch(
        f"select {_COLUMNS} from processes where tenant = $1 and process_no = any ($2)",
        tenant,
        process_nos,
    )
    return {row["process_no"]: _owner(row) for row in rows}
