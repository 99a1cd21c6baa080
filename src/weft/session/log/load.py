"""From a log to a state: the newest snapshot, if it fits, and the facts after it.

For a fork, the shared past first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol, cast

import anyio.lowlevel
import anyio.to_thread
import msgspec

from weft.errors import Corrupt, SessionNotFound, StoreError, TooNew
from weft.events import ForkPoint, SessionCreated, decode
from weft.ids import SessionId
from weft.session.log.snapshot_schedule import is_snapshot_due
from weft.state import FOLD_VERSION, SessionState
from weft.store import READER_VERSION, Record, Snapshot, Store
from weft.tree import LogPosition

logger = logging.getLogger(__name__)

PAGE: Final = 2_000
"""Facts that are read at a time."""
STRIDE: Final = 500
"""Facts that are decoded before others get their turn on the event loop."""
DEEPEST_FORK: Final = 1_000


async def load_state(session_id: SessionId, store: Store) -> SessionState:
    """The state of a stored session.

    Raises:
        SessionNotFound: there is no such session.
        TooNew: a newer Weft wrote it.
        Corrupt: its facts cannot be read; the session is then listed as damaged.
    """
    state, _ = await load_with_snapshot(session_id, store)
    return state


async def load_with_snapshot(session_id: SessionId, store: Store) -> tuple[SessionState, int]:
    """The same, and how far the snapshot reached that was used; 0 when there was none.

    Raises:
        SessionNotFound, TooNew, Corrupt: as `load_state`.
    """
    row = await store.row(session_id)
    if row is not None and row.min_reader > READER_VERSION:
        raise TooNew(
            f"session {session_id!r} was written by a newer Weft; update this one to open it"
        )
    # By the log and not by the row: a deleted session that forks share has facts and no row.
    if await store.last_seq(session_id) == 0:
        raise SessionNotFound(session_id)
    try:
        return await _load(session_id, store)
    except Corrupt as error:
        await store.mark_damaged(session_id, error.detail)
        raise


async def load_for_owner(session_id: SessionId, store: Store) -> tuple[SessionState, int]:
    """The same, for a process that has the session's lease: what it had to read of the log is kept
    as a snapshot, if that was much.

    Now and not with the first message: a process that dies a moment later would leave the next
    one to read all of it again, and a turn would pay for it.  It adds a quarter to what was spent
    on reading.

    Raises:
        SessionNotFound, TooNew, Corrupt: as `load_state`.
    """
    state, snapshot_seq = await load_with_snapshot(session_id, store)
    if not is_snapshot_due(state.seq, snapshot_seq):
        return state, snapshot_seq
    try:
        await keep_snapshot(state, store)
    except StoreError:
        logger.exception("no snapshot was kept", extra={"session": session_id})
    return state, state.seq


class LogReader(Protocol):
    """As much of a store as replaying needs."""

    async def read(self, stream: str, *, after: int = 0, limit: int = 1000) -> list[Record]: ...

    async def load_snapshot(self, stream: str, version: str) -> Snapshot | None: ...


async def replay_log(session_id: SessionId, log: LogReader) -> int:
    """Fold a stored session from its first fact on, with what it shares of others; returns how many
    facts it has of its own.

    Raises:
        Corrupt: a fact is missing, cannot be read, or is in the wrong place.
    """
    state, _ = await _load(session_id, cast("Store", log))
    return state.seq


async def _load(session_id: SessionId, store: Store) -> tuple[SessionState, int]:
    state = await _from_snapshot(session_id, store)
    if state is None:
        state = await _past_of(session_id, store)
    snapshot_seq = state.seq
    await fold_after(state, session_id, state.seq, store)
    return state, snapshot_seq


async def _from_snapshot(
    session_id: SessionId, store: Store, upto: int | None = None
) -> SessionState | None:
    """The newest snapshot's state; a snapshot that cannot be read is as good as none, and so is one
    that was made after `upto`.
    """
    kept = await store.load_snapshot(session_id, FOLD_VERSION)
    if kept is None or (upto is not None and kept.seq > upto):
        return None
    from weft.state import unpack  # not for a new session

    try:
        return await anyio.to_thread.run_sync(unpack, kept.data)
    # A snapshot is a cache: the log has everything, and reading it only takes longer.
    except msgspec.MsgspecError:
        return None


async def fold_after(
    state: SessionState, log: str, after: int, store: Store, upto: int = 0
) -> None:
    """Fold the facts of `log` after `after` (up to and including `upto`, 0: all) into the state."""
    while (not upto or after < upto) and (
        records := await store.read(log, after=after, limit=PAGE)
    ):
        for record in records:
            # A hole means that the store lost a fact. To fold on would give a state that never was,
            # and the next append would make it permanent.
            if record.seq != after + 1:
                raise Corrupt(log, f"fact {after + 1} is missing", seq=after + 1)
            after = record.seq
            fact = decode(record.body, stream=log, seq=after)
            if fact.seq != after or fact.session_id != log:
                raise Corrupt(log, "a fact names another place than its own", seq=after)
            state.apply(fact)
            if after == upto:
                break
            # To open a session of a hundred thousand facts must not stop the text of others.
            if not after % STRIDE:
                await anyio.lowlevel.checkpoint()


async def _past_of(session_id: SessionId, store: Store) -> SessionState:
    """What a fork shares, before its first own fact: its ancestors' logs, oldest first, each up to
    the point it was forked at; read from the nearest snapshot on that was made before that point.
    """
    state = SessionState(session_id=session_id)
    ahead: list[tuple[SessionId, int, int]] = []
    log = session_id
    while (fork := await fork_of(log, store)) is not None:
        log = fork.session_id
        kept = await _from_snapshot(log, store, upto=fork.seq)
        ahead.append((log, 0 if kept is None else kept.seq, fork.seq))
        if kept is not None:
            state = kept.fork(session_id)
            break
        # Only damage can make a circle, and following one would never end.
        if len(ahead) > DEEPEST_FORK:
            raise Corrupt(session_id, "its forks go round in a circle")
    for ancestor, after, upto in reversed(ahead):
        await fold_after(state, ancestor, after, store, upto)
    return state


async def load_state_at(place: LogPosition, store: Store) -> SessionState:
    """The state of a session as it was once the fact at this place was in.

    Raises:
        SessionNotFound, Corrupt: as `load_state`.
    """
    log, upto = place.log, place.seq
    state = await _from_snapshot(log, store, upto=upto)
    if state is None:
        state = await _past_of(log, store)
    await fold_after(state, log, state.seq, store, upto)
    return state


async def fork_of(log: SessionId, store: Store) -> ForkPoint | None:
    """The place in another log that a session was forked at; None where it was not.

    Raises:
        Corrupt: the log is missing.
    """
    records = await store.read(log, limit=1)
    if not records:
        raise Corrupt(log, "the log that this session was forked from is missing")
    first = decode(records[0].body)
    return first.fork if isinstance(first, SessionCreated) else None


class SnapshotPutOff(Exception):
    """Something else was to be done first; no snapshot was kept."""


async def keep_snapshot(
    state: SessionState, store: Store, *, gives_way: Callable[[], bool] = lambda: False
) -> None:
    """Keep the state, so that the next opening reads less.

    The state must not change before this returns; `gives_way` is asked every few milliseconds, in
    another thread, whether something else has to be done first.

    Raises:
        SnapshotPutOff: it has.
    """
    # In a thread: that of a long session takes tens of milliseconds, in which no session of this
    # process could say a word.
    from weft.state import pack  # not for a short session

    def pause() -> None:
        if gives_way():
            raise SnapshotPutOff

    data = await anyio.to_thread.run_sync(partial(pack, state, pause=pause))
    kept = Snapshot(seq=state.seq, version=FOLD_VERSION, data=data)
    await store.save_snapshot(state.session_id, kept)
