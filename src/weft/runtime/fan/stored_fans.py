"""Fan-outs as they are stored: read from their session's log, and what a crash left of them on disk
settled or swept.

Every start settles those that have a mark and no process (`fan_marks`): a candidate that was being
put into the project is in it whole afterwards, checks that were cut off leave nothing, and what no
log knows is removed.  Candidates that had not ended keep their overlays, to be resumed.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio.to_thread

from weft.errors import UsageError, WeftError
from weft.events import decode
from weft.ids import SessionId
from weft.runtime.fan.fan_host import FanHost, places_of
from weft.runtime.fan.fan_index import IN_MEMORY, FanEntry, FanIndex, store_name
from weft.runtime.fan.fan_marks import FanMark, marked
from weft.runtime.fan.fan_places import FanPlaces
from weft.runtime.fan.fan_record import FanLog, FanRecord

_PAGE: Final = 1000

logger = logging.getLogger(__name__)


async def read_fan(host: FanHost, entry: FanEntry) -> FanRecord:
    """What the session's log says of a fan-out.

    Raises:
        UsageError: it says nothing of it.
    """
    store = await host.registry.store_of(entry.session_id)
    log, after = FanLog(), 0
    while records := await store.read(entry.session_id, after=after, limit=_PAGE):
        for each in records:
            if b'"fan_' in each.body[:40]:
                log.apply(decode(each.body))
        after = records[-1].seq
    if entry.fan_id not in log.fans:
        raise UsageError(f"the session {entry.session_id} knows nothing of {entry.fan_id}")
    return log.fans[entry.fan_id]


# --- sweeping -------------------------------------------------------------------------------------


async def sweep_fans(host: FanHost, places: FanPlaces) -> list[str]:
    """Remove what is on disk of fan-outs that no session knows, or that are closed.

    One that another process has just begun is not on record yet, and held by a lock.  Those of
    other stores stay.
    """
    index = FanIndex(host.services.places.home)
    known = set(host.fan_runs)
    entries = {each.fan_id: each for each in await anyio.to_thread.run_sync(index.entries)}
    for fan_id in await anyio.to_thread.run_sync(places.present):
        entry = entries.get(fan_id)
        if entry is not None and await _is_open(host, entry):
            known.add(fan_id)
    return await anyio.to_thread.run_sync(places.sweep, known.__contains__)


async def _is_open(host: FanHost, entry: FanEntry) -> bool:
    if entry.is_closed:
        return False
    try:
        return not (await read_fan(host, entry)).is_closed
    except UsageError:
        # Only its own store can tell that nobody knows it.
        return not await _is_of_known_store(host, entry)
    except WeftError:
        return True  # it cannot be read now, which says nothing


async def _is_of_known_store(host: FanHost, entry: FanEntry) -> bool:
    name = store_name(await host.registry.store_of(entry.session_id))
    return entry.store in (IN_MEMORY, name) and bool(entry.store)


async def forget_fans(host: FanHost, session_id: SessionId) -> None:
    """Remove the fan-outs of a session that is deleted."""
    index, places = FanIndex(host.services.places.home), places_of(host)
    for entry in await anyio.to_thread.run_sync(index.entries):
        if entry.session_id == session_id:
            run = host.fan_runs.pop(entry.fan_id, None)
            if run is not None:
                run.let_go()
            await anyio.to_thread.run_sync(places.remove, entry.fan_id)
            await anyio.to_thread.run_sync(index.forget, entry.fan_id)


# --- the next start -------------------------------------------------------------------------------


async def settle_fans(host: FanHost) -> None:
    """Settle what processes that are gone left half done; what cannot be settled now keeps its
    mark.
    """
    folder = str(host.services.places.unsettled_fans)
    for mark in await anyio.to_thread.run_sync(marked, folder):
        if not await anyio.to_thread.run_sync(mark.take_from_dead):
            continue  # its process lives
        try:
            is_settled = await _settle(host, mark)
        except (WeftError, OSError):
            logger.exception("a fan-out could not be settled", extra={"fan": mark.fan_id})
            is_settled = False
        await anyio.to_thread.run_sync(mark.clear if is_settled else mark.leave)


async def _settle(host: FanHost, mark: FanMark) -> bool:
    index, places = FanIndex(host.services.places.home), places_of(host)
    entries = {each.fan_id: each for each in await anyio.to_thread.run_sync(index.entries)}
    entry = entries.get(mark.fan_id)
    if entry is None:
        return await anyio.to_thread.run_sync(places.remove, mark.fan_id)
    async with _opened_store(host, entry) as is_there:
        if not is_there:
            return False
        try:
            record = await read_fan(host, entry)
        except UsageError:
            if not await _is_of_known_store(host, entry):
                return False
            if not await anyio.to_thread.run_sync(places.remove, entry.fan_id):
                return False
            await anyio.to_thread.run_sync(index.forget, entry.fan_id)
            return True
        if record.is_closed:
            await anyio.to_thread.run_sync(index.close, entry.fan_id)
            return await anyio.to_thread.run_sync(places.remove, entry.fan_id)
        is_clear = await anyio.to_thread.run_sync(places.clear_checks, entry.fan_id)
        return await _finish_keeps(host, entry, record) and is_clear


@asynccontextmanager
async def _opened_store(host: FanHost, entry: FanEntry) -> AsyncIterator[bool]:
    """Have the store of a fan-out's session open, which may be another than the application's own;
    False where it is not there.
    """
    registry = host.registry
    if await _is_of_known_store(host, entry) or not entry.store:
        yield True
    elif not await anyio.Path(entry.store).exists():
        yield False
    else:
        store, session_id = Path(entry.store), entry.session_id
        async with registry.stores.entered(store, session_id, is_open=False):
            yield True
        if registry.running(session_id) is None:
            await registry.stores.release(session_id)


async def _finish_keeps(host: FanHost, entry: FanEntry, record: FanRecord) -> bool:
    """Finish what was being put into the project; the session is opened only where there is any."""
    from weft.runtime.fan.kept_candidate import has_leftover, recover_keeps

    folder = str(host.services.places.sandbox)
    if not await anyio.to_thread.run_sync(has_leftover, folder, record):
        return True
    was_open = host.registry.running(entry.session_id) is not None
    if not await recover_keeps(host, entry.session_id, record):
        return False
    if not was_open and entry.session_id in host.registry.ports:
        await host.registry.unload(entry.session_id)
    return True
