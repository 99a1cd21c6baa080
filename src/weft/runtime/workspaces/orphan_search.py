"""The search for orphans: what commands of a dead process of ours left running is killed as soon as
a store finds that it is dead, whether or not its sessions are gone on with.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

_logger = logging.getLogger(__name__)


class OrphanSearch:
    """Searches in a thread, one search at a time."""

    def __init__(self, kill: Callable[[], int]) -> None:
        self._kill = kill
        self._guard = threading.Lock()
        self._is_wanted = False
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Search, or once more where a search is under way; not waited for."""
        with self._guard:
            self._is_wanted = True
            if self._thread is None:
                # A daemon: a process that ends meanwhile need not wait, the next one searches too.
                self._thread = threading.Thread(
                    target=self._search, name="weft-orphans", daemon=True
                )
                self._thread.start()

    def wait(self) -> None:
        """Wait until none is under way."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def _search(self) -> None:
        while True:
            with self._guard:
                if not self._is_wanted:
                    self._thread = None
                    return
                self._is_wanted = False
            try:
                killed = self._kill()
            except Exception:
                # Not the end of the thread: the next death would never be searched for.
                _logger.exception("the search for what a dead process left running failed")
                continue
            if killed:
                _logger.info("killed %d processes that a dead process had left running", killed)


def _kill_orphans() -> int:
    from weft.workspace import kill_orphans  # where a process has died

    return kill_orphans()


ORPHAN_SEARCH: Final = OrphanSearch(_kill_orphans)
"""One for the process: orphans are the machine's, not a store's."""
