"""Leases: a small file for each stream with the fence and its holder, changed under the lock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from weft.store.address import stored_address, with_stored_address
from weft.store.base import Lease, Owner, SessionRow
from weft.store.checks import check_reader, owned_error
from weft.store.jsonl import files
from weft.store.jsonl.folder import JsonlFolder
from weft.store.jsonl.paths import stream_name
from weft.store.liveness import ProcessLiveness, forget, is_alive, tidy


class LeaseFile(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of a stream's lease; the fence outlives the holder and the session."""

    fence: int = 0
    process_id: str | None = None
    taken: float = 0.0


class _ProcessFile(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of a process that has the store open."""

    process_id: str
    pid: int
    started: float
    host: str = ""
    boot_id: str = ""
    socket: str = ""


def holding(folder: JsonlFolder, stream: str) -> LeaseFile:
    """The lease of `stream` as it stands in its file."""
    kept = files.content(folder.places.lease(stream))
    return msgspec.json.decode(kept, type=LeaseFile) if kept else LeaseFile()


def put(folder: JsonlFolder, stream: str, held: LeaseFile) -> None:
    """Write the lease down, durably."""
    files.replace(folder.places.lease(stream), msgspec.json.encode(held), durable=True)


def take(
    folder: JsonlFolder,
    rows: Mapping[str, SessionRow | None],
    owner: Owner,
    *,
    steal: bool,
    presence: ProcessLiveness,
    now: float,
) -> list[Lease]:
    """Make `owner` the one writer of these streams, each given with its row, under higher fences.

    Raises:
        Owned: a living process holds one of them and `steal` is not set.
        TooNew: only a newer program understands one of the sessions.
    """
    # All checks before the first change.
    held = {stream: holding(folder, stream) for stream in rows}
    for stream, row in rows.items():
        check_reader(row)
        if not steal:
            check_free(folder, stream, held[stream], owner)
    register(folder, owner, presence)
    leases = []
    for stream, before in held.items():
        # Never reset, not even when the session is deleted: an old owner could come back and write.
        fence = before.fence + 1
        put(folder, stream, LeaseFile(fence=fence, process_id=owner.process_id, taken=now))
        leases.append(Lease(stream, fence, owner))
    return leases


def check_free(folder: JsonlFolder, stream: str, held: LeaseFile, owner: Owner) -> None:
    """Refuse when a living process other than `owner` holds the stream; tidy a dead one away."""
    if held.process_id is None or held.process_id == owner.process_id:
        return
    if not is_alive(folder.places.run, held.process_id):
        bury(folder, held.process_id)
        return
    raise owned_error(stream, owner_of(folder, held.process_id), held.taken)


def register(folder: JsonlFolder, owner: Owner, presence: ProcessLiveness) -> None:
    """Show that this process lives, and write down who it is.

    The first time, tidy the dead away.
    """
    if presence.show():
        for file in folder.places.processes.glob("*.json"):
            process_id = stream_name(file.stem)
            if not is_alive(folder.places.run, process_id):
                bury(folder, process_id)
        tidy(folder.places.run)
    row = _ProcessFile(
        process_id=owner.process_id,
        pid=owner.pid,
        started=owner.started,
        host=owner.host,
        boot_id=owner.boot_id,
        socket=stored_address(owner),
    )
    files.replace(folder.places.process(owner.process_id), msgspec.json.encode(row), durable=False)


def bury(folder: JsonlFolder, process_id: str) -> None:
    """Forget a dead process."""
    files.remove(folder.places.process(process_id))
    forget(folder.places.run, process_id)


def release(folder: JsonlFolder, leases: Iterable[Lease], owner: Owner) -> None:
    """Give leases back, those that are still ours."""
    for lease in leases:
        held = holding(folder, lease.stream)
        if held.fence == lease.fence and held.process_id == owner.process_id:
            put(folder, lease.stream, LeaseFile(fence=held.fence))


def owner_of(folder: JsonlFolder, process_id: str) -> Owner | None:
    """The process that opened the store as `process_id`."""
    kept = files.content(folder.places.process(process_id))
    if not kept:
        return None
    try:
        row = msgspec.json.decode(kept, type=_ProcessFile)
    except msgspec.MsgspecError:
        return None
    owner = Owner(
        process_id=row.process_id,
        pid=row.pid,
        started=row.started,
        host=row.host,
        boot_id=row.boot_id,
    )
    return with_stored_address(owner, row.socket)


def lease_of(folder: JsonlFolder, stream: str) -> Lease | None:
    """The lease of `stream`, if its holder lives."""
    held = holding(folder, stream)
    if held.process_id is None or not is_alive(folder.places.run, held.process_id):
        return None
    owner = owner_of(folder, held.process_id)
    return Lease(stream, held.fence, owner) if owner is not None else None
