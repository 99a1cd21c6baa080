"""What the stores that write in the background have in common: drafts that no caller waits for,
followers, an end; and of those in files, the lock that shows that their owner lives.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Self

import msgspec

from weft.clock import Clock
from weft.errors import StoreUnavailable
from weft.ids import NodeId, new_id
from weft.store.address import check_address
from weft.store.base import DraftChunk, Owner, Store
from weft.store.follower import FollowerBell, RecordFollower
from weft.store.liveness import ProcessLiveness, this_process

MOST_DRAFT_BYTES = 16 << 20
"""Draft text that may wait to be written.

What comes beyond is dropped, for a draft is only a courtesy.
"""
_CHUNK_BYTES = 64
"""What a chunk weighs besides its text, so that many small ones are bounded too."""

logger = logging.getLogger(__name__)


class QueuedStore(Store):
    """A `Store` that hands its writes to something else; a subclass answers the questions."""

    def __init__(self, owner: Owner, clock: Clock) -> None:
        self.owner = owner
        self._clock = clock
        self._pid = os.getpid()
        self._bell: FollowerBell
        self._draft_bytes = 0
        self._clipped: set[tuple[str, NodeId]] = set()
        """Drafts that stay a beginning, because the store was too slow for them."""
        self._is_closed = False

    # -- the core

    def follow(self, stream: str, *, after: int = 0) -> RecordFollower:
        return RecordFollower(self.read, self._bell, stream, after)

    async def register_address(self, address: str, *, accepting: bool = True) -> None:
        check_address(address)
        self.owner = msgspec.structs.replace(self.owner, address=address, accepting=accepting)
        await self._publish_owner()

    async def _publish_owner(self) -> None:
        """Write down who this process is."""
        raise NotImplementedError

    # -- drafts

    def save_draft(self, chunk: DraftChunk) -> None:
        from weft.store.text import storable_draft  # with the first draft: start-up time

        chunk = storable_draft(chunk)
        draft = (chunk.stream, chunk.node)
        if self._is_closed or (draft in self._clipped and not chunk.restart):
            return
        weight = len(chunk.chunk) + _CHUNK_BYTES
        if self._draft_bytes + weight > MOST_DRAFT_BYTES:
            # From here on this draft stays a beginning: with a hole in it, it would be a lie.
            self._clipped.add(draft)
            logger.warning("the store is too slow for the draft of %s: cut short", chunk.stream)
            return
        self._clipped.discard(draft)
        self._draft_bytes += weight
        self._hand_in_draft(chunk, weight)

    def _hand_in_draft(self, chunk: DraftChunk, weight: int) -> None:
        """Keep a chunk behind all that was handed in before; then take its weight off
        `_draft_bytes`.
        """
        raise NotImplementedError

    # -- life

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreUnavailable("the store is closed")
        if os.getpid() != self._pid:
            raise StoreUnavailable("the store was opened before a fork; open it again here")


class DiskStore(QueuedStore):
    """A `Store` in files; a subclass answers the questions."""

    def __init__(self, run_folder: Path, clock: Clock) -> None:
        now = clock.now()
        super().__init__(this_process(new_id("prc", now), started=now), clock)
        self.is_shared = True
        self.meeting_folder = run_folder
        self._presence = ProcessLiveness(run_folder, self.owner.process_id)
