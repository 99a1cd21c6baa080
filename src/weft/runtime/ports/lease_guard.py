"""The guard of leases that run out by time: it stops what runs here before another host may begin
the same work.

The fence keeps a process that was cut off from its database from writing to a log.  It does not
keep its commands from writing to the disk, or to the world: that is up to this.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import anyio

from weft.store import Store

MARGIN_SECONDS = 2.0
"""Before the end of the time: what it takes to end the processes of a turn, with room."""
LONGEST_LOOK_SECONDS = 1.0

logger = logging.getLogger(__name__)


async def guard_leases(store: Store, suspend_all: Callable[[], Awaitable[None]]) -> None:
    """Call `suspend_all` whenever the leases of `store` are about to be lost; never returns where
    they can be.
    """
    is_suspended = False
    while (left := store.lease_seconds_left()) is not None:
        if left > MARGIN_SECONDS:
            is_suspended = False
        elif not is_suspended:
            is_suspended = True
            logger.error("the store has not answered for long: all turns here are suspended")
            await suspend_all()
            continue
        await anyio.sleep(min(max(left - MARGIN_SECONDS, 0.05), LONGEST_LOOK_SECONDS))
