"""Replay: whether the living state of a session is what its log folds to."""

from __future__ import annotations

from weft.api.session import Session
from weft.app import App
from weft.events import SessionCreated, SessionRestarted, decode
from weft.ids import SessionId
from weft.state import GONE_ON_BY_USER, SessionState, snapshot
from weft.store import Store


async def unlike_its_log(session: Session, app: App) -> list[str]:
    """What differs between the living state and its log; nothing when all is well."""
    state = (await session._port()).state
    folded = SessionState(session_id=session.id)
    wrong = await _fold(folded, session.id, app.store)
    if snapshot(state) != snapshot(folded):
        wrong.append(f"the state is not the fold of the log, at {state.seq}")
    return wrong


async def _fold(
    state: SessionState, log: SessionId, store: Store, upto: int = 1 << 60
) -> list[str]:
    """Fold a log into the state, the log that it was forked from first."""
    records = [each for each in await store.read(log, limit=1 << 30) if each.seq <= upto]
    gaps = [each.seq for each in records] != list(range(1, len(records) + 1))
    wrong = [f"the log of {log} has a gap or a repeat"] if gaps else []
    stored = [decode(record.body) for record in records]
    wrong += [
        f"it crashed: {each.reason}"
        for each in stored
        if isinstance(each, SessionRestarted) and each.reason != GONE_ON_BY_USER
    ]
    first = stored[0]
    if isinstance(first, SessionCreated) and first.fork is not None:
        wrong += await _fold(state, first.fork.session_id, store, first.fork.seq)
    state.apply_all(stored)
    return wrong
