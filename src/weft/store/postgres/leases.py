"""Leases: which process may append to a stream.

The fence grows in the transaction that finds the stream free, and every append compares it in its
own; so a process that was stopped, or cut off, and comes back cannot write.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from weft.errors import Owned
from weft.store.base import READER_VERSION, Lease, SessionRow
from weft.store.checks import check_reader, owned_error
from weft.store.liveness import tell_death
from weft.store.postgres.connection import Connection
from weft.store.postgres.registration import ProcessRegistration, owners
from weft.store.postgres.settings import LeaseTimes
from weft.store.postgres.text_codec import loaded, stored

_ADD = """
    insert into streams (tenant, name) select $1, n.name from unnest($2::text[]) n(name)
    order by n.name on conflict (tenant, name) do nothing
"""
_LOCK = """
    select s.name, s.stream_no, s.process_no, s.taken, k.min_reader
    from streams s left join sessions k on k.tenant = s.tenant and k.stream_no = s.stream_no
    where s.tenant = $1 and s.name = any ($2) order by s.name for update of s
"""
_ALIVE = """
    select p.no from unnest($2::bigint[]) p(no) where is_alive_v1($1, p.no, $3, $4)
"""
_TAKE = """
    update streams set fence = fence + 1, process_no = $2, taken = $3
    where tenant = $1 and stream_no = any ($4) returning name, fence
"""
_FREE = """
    update streams s set process_no = null
    from unnest($3::text[], $4::bigint[]) l(name, fence)
    where s.tenant = $1 and s.process_no = $2 and s.name = l.name and s.fence = l.fence
"""
_LEAVE = _FREE.replace("set process_no = null", "set process_no = $5")
_ADOPT = """
    with recursive dead as materialized (
        select p.process_no from processes p
        where p.tenant = $1 and p.process_no <> $2 and p.address like 'http%'
          and not is_alive_v1(p.tenant, p.process_no, $3, $4)
        union all select $5::bigint
    ), roots as materialized (
        select s.stream_no, s.name from streams s
        join sessions k on k.tenant = s.tenant and k.stream_no = s.stream_no
        where s.tenant = $1 and s.process_no in (select process_no from dead) and not k.is_child
          and k.min_reader <= $8 and ($9::text is null or s.name = $9)
        order by s.name limit $6 for update of s skip locked
    ), family as (
        select stream_no, name from roots
        union
        select s.stream_no, s.name from family f
        join sessions k on k.tenant = $1 and k.parent_id = f.name and k.is_child
        join streams s on s.tenant = k.tenant and s.stream_no = k.stream_no
        where s.process_no in (select process_no from dead)
    )
    update streams s set fence = s.fence + 1, process_no = $2, taken = $7
    from family f where s.tenant = $1 and s.stream_no = f.stream_no returning s.name, s.fence
"""
"""A session and those that work for it are taken together: their host died, or left them."""
LEFT = -1
"""In the place of a process that holds a lease: it was left for the next host that looks."""
_HELD = """
    select fence, process_no from streams
    where tenant = $1 and name = $2 and process_no is not null
"""


class HeldStream(msgspec.Struct, frozen=True):
    """A stream, and the process that holds it."""

    name: str
    process_no: int | None
    taken: float


async def take(
    db: Connection,
    registration: ProcessRegistration,
    times: LeaseTimes,
    streams: Sequence[str],
    *,
    steal: bool,
    now: float,
) -> list[Lease]:
    """Become the one writer of all of these.

    Raises:
        Owned, TooNew: of one of them; none is taken.
    """
    tenant = registration.tenant
    names = {stored(stream): stream for stream in streams}
    await db.execute(_ADD, tenant, sorted(names))
    rows = await db.fetch(_LOCK, tenant, list(names))
    for row in rows:
        if row["min_reader"] is not None:
            name = names[row["name"]]
            check_reader(SessionRow(id=name, min_reader=row["min_reader"]))  # type: ignore[arg-type]
    if not steal:
        held = [HeldStream(names[r["name"]], r["process_no"], r["taken"]) for r in rows]
        await check_free(db, registration, times, held)
    numbers = [row["stream_no"] for row in rows]
    taken = await db.fetch(_TAKE, tenant, registration.process_no, now, numbers)
    fences = {row["name"]: row["fence"] for row in taken}
    return [Lease(stream, fences[name], registration.owner) for name, stream in names.items()]


async def check_free(
    db: Connection, registration: ProcessRegistration, times: LeaseTimes, held: Sequence[HeldStream]
) -> None:
    """Refuse when a living process other than this one holds one of them.

    Raises:
        Owned: says which.
    """
    holders = {each.process_no for each in held} - {None, registration.process_no}
    if not holders:
        return
    alive = await living(db, registration.tenant, times, [no for no in holders if no])
    if holders - alive:
        tell_death()
    for each in held:
        if each.process_no in alive:
            raise await _owned(db, registration.tenant, each)


async def living(
    db: Connection, tenant: int, times: LeaseTimes, process_nos: Sequence[int]
) -> set[int]:
    """Those of some processes that live."""
    rows = await db.fetch(_ALIVE, tenant, process_nos, times.ttl_seconds, times.grace_seconds)
    return {row[0] for row in rows}


async def _owned(db: Connection, tenant: int, held: HeldStream) -> Owned:
    number = held.process_no or 0
    found = await owners(db, tenant, [number])
    return owned_error(held.name, found.get(number), held.taken)


async def release(
    db: Connection, registration: ProcessRegistration, leases: Sequence[Lease]
) -> None:
    """Give leases back, those that are still ours."""
    names = [stored(lease.stream) for lease in leases]
    await db.execute(_FREE, *registration.key, names, [lease.fence for lease in leases])


async def leave(db: Connection, registration: ProcessRegistration, leases: Sequence[Lease]) -> None:
    """Leave leases for the next host that looks, those that are still ours."""
    names = [stored(lease.stream) for lease in leases]
    fences = [lease.fence for lease in leases]
    await db.execute(_LEAVE, *registration.key, names, fences, LEFT)


async def adopt(
    db: Connection,
    registration: ProcessRegistration,
    times: LeaseTimes,
    limit: int,
    now: float,
    only: str | None,
) -> list[Lease]:
    """Take what dead hosts held, and what was left; of one session, or of some."""
    found = await db.fetch(
        _ADOPT,
        *registration.key,
        times.ttl_seconds,
        times.grace_seconds,
        LEFT,
        limit,
        now,
        READER_VERSION,
        None if only is None else stored(only),
    )
    return [Lease(loaded(row["name"]), row["fence"], registration.owner) for row in found]


async def lease_of(db: Connection, tenant: int, times: LeaseTimes, stream: str) -> Lease | None:
    """The lease of a stream, if its holder lives."""
    held = await db.fetchrow(_HELD, tenant, stored(stream))
    if held is None:
        return None
    number = held["process_no"]
    if number not in await living(db, tenant, times, [number]):
        return None
    found = await owners(db, tenant, [number])
    return Lease(stream, held["fence"], found[number]) if number in found else None
