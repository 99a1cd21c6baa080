"""Leases in SQLite: which process may write to a stream.

Run by the writer inside its transaction, so that two processes can never both get one.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import apsw

from weft.store.address import stored_address, with_stored_address
from weft.store.base import Lease, Owner
from weft.store.checks import check_reader, owned_error
from weft.store.liveness import ProcessLiveness, forget, is_alive, tidy
from weft.store.sqlite.appends import StreamPosition, decode_row, find, find_or_add
from weft.store.sqlite.query import fetch

_OWNER = "select process_id, pid, started, host, boot_id, socket from processes"


def take(
    db: apsw.Connection,
    streams: Sequence[str],
    owner: Owner,
    *,
    steal: bool,
    presence: ProcessLiveness,
    now: float,
) -> list[Lease]:
    """Make `owner` the one writer of these streams, under higher fences.

    Raises:
        Owned: a living process holds one of them and `steal` is not set.
        TooNew: only a newer program understands one of the sessions.
    """
    places = [find_or_add(db, stream) for stream in streams]
    buried: set[str | None] = set()
    for stream, place in zip(streams, places, strict=True):
        _check_reader(db, place)
        # One look for each holder: a dead one may have had thousands.
        if not steal and place.process_id not in buried:
            check_free(db, stream, place, owner, presence.directory)
            buried.add(place.process_id)
    register(db, owner, presence)
    db.executemany(
        # The fence grows in the same transaction that finds the stream free.  Every append compares
        # it in its own, so a process that was stopped and wakes up later cannot write.
        "update streams set fence = fence + 1, process_id = ?, taken = ? where stream_no = ?",
        ((owner.process_id, now, place.stream_no) for place in places),
    )
    held = zip(streams, places, strict=True)
    return [Lease(stream, place.fence + 1, owner) for stream, place in held]


def check_free(
    db: apsw.Connection, stream: str, place: StreamPosition, owner: Owner, directory: Path
) -> None:
    """Refuse when a living process other than `owner` holds the stream; tidy a dead one away."""
    holder = place.process_id
    if holder is None or holder == owner.process_id:
        return
    if not is_alive(directory, holder):
        bury(db, holder, directory)
        return
    taken = fetch(db, "select taken from streams where stream_no = ?", (place.stream_no,))
    raise owned_error(stream, owner_of(db, holder), taken[0][0])


def register(db: apsw.Connection, owner: Owner, presence: ProcessLiveness) -> None:
    """Show that this process lives, and write down who it is.

    The first time, tidy the dead away.
    """
    if presence.show():
        for (process_id,) in fetch(db, "select process_id from processes"):
            if not is_alive(presence.directory, process_id):
                bury(db, process_id, presence.directory)
        tidy(presence.directory)
    db.execute(
        "insert or replace into processes values (?, ?, ?, ?, ?, ?)",
        (
            owner.process_id,
            owner.pid,
            owner.started,
            owner.host,
            owner.boot_id,
            stored_address(owner),
        ),
    )


def bury(db: apsw.Connection, process_id: str, directory: Path) -> None:
    """Forget a dead process and free what it held."""
    db.execute("update streams set process_id = null where process_id = ?", (process_id,))
    db.execute("delete from processes where process_id = ?", (process_id,))
    forget(directory, process_id)


def release(db: apsw.Connection, leases: Sequence[Lease], owner: Owner) -> None:
    """Give leases back, those that are still ours."""
    db.executemany(
        "update streams set process_id = null where name = ? and fence = ? and process_id = ?",
        ((lease.stream, lease.fence, owner.process_id) for lease in leases),
    )


def release_all(db: apsw.Connection, owner: Owner) -> None:
    """Give every lease back and forget this process."""
    db.execute("update streams set process_id = null where process_id = ?", (owner.process_id,))
    db.execute("delete from processes where process_id = ?", (owner.process_id,))


def owner_of(db: apsw.Connection, process_id: str) -> Owner | None:
    """The process that opened the store as `process_id`."""
    found = fetch(db, f"{_OWNER} where process_id = ?", (process_id,))
    if not found:
        return None
    process_id, pid, started, host, boot_id, socket = found[0]
    owner = Owner(process_id=process_id, pid=pid, started=started, host=host, boot_id=boot_id)
    return with_stored_address(owner, socket)


def lease_of(db: apsw.Connection, stream: str, directory: Path) -> Lease | None:
    """The lease of `stream`, if its holder lives."""
    place = find(db, stream)
    if place is None or place.process_id is None or not is_alive(directory, place.process_id):
        return None
    owner = owner_of(db, place.process_id)
    return Lease(stream, place.fence, owner) if owner is not None else None


def _check_reader(db: apsw.Connection, place: StreamPosition) -> None:
    kept = fetch(db, "select id, row from sessions where stream_no = ?", (place.stream_no,))
    if kept:
        check_reader(decode_row(*kept[0]))
