"""Signs of processes that wait for a turn of a session which another process has.

A prompt that comes to a session whose owner died ends the turn that was left open: the user who
sends it has seen how far that came.  Not so where another process still waits for the turn; and
nothing in the log tells of that.  So a process that waits for an owner holds a lock beside its
store, which the kernel drops when the process ends, however that is (`store/liveness.py`).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from weft.clock import Clock
from weft.ids import SessionId, new_id
from weft.sha256 import sha256
from weft.store.liveness import ProcessLiveness, is_alive


class WaitSigns:
    """The signs of one application, and the look at those of others."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._own: set[str] = set()

    @asynccontextmanager
    async def shown(self, session_id: SessionId, folder: Path | None) -> AsyncGenerator[None]:
        """Show meanwhile that this process waits; `folder` is where the store's processes meet."""
        if folder is None:
            yield
            return
        name = _prefix(session_id) + new_id("wai", self._clock.now())
        sign = ProcessLiveness(folder, name)
        self._own.add(name)
        try:
            await anyio.to_thread.run_sync(sign.show)
            yield
        finally:
            self._own.discard(name)
            # Not in a thread, which a cancelled task could not wait for: one file is removed.
            sign.end()

    def others_wait(self, session_id: SessionId, folder: Path | None) -> bool:
        """True while another process waits for this session.  Looks at the disk."""
        if folder is None:
            return False
        found = (file.stem for file in folder.glob(f"{_prefix(session_id)}*.lock"))
        return any(is_alive(folder, name) for name in found if name not in self._own)


def _prefix(session_id: SessionId) -> str:
    # A digest, because an id may have any form and a file name may not.
    return f"wait-{sha256(session_id.encode()).hexdigest()[:16]}-"
