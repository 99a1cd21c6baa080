"""Polling for what other processes commit: a thread that takes a cheap look at the data while a
stream is followed.

It looks every few milliseconds after a change and slows down when nothing happens, so that an idle
screen does not keep a laptop awake.  Our own commits wake followers directly and need no look.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from weft.store.threads import call

_QUICK_SECONDS = 0.004
_SLOW_SECONDS = 0.02
_SLOWER_BY = 1.02


class ChangeWatch:
    """Calls `on_change` on the loop when `look` gives another answer than before.

    `look` and `on_close` run in the thread; a look that fails is taken as a change, so that the
    followers read, and get the error themselves.
    """

    def __init__(
        self,
        look: Callable[[], object],
        *,
        on_change: Callable[[], None],
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        self._look = look
        self._on_close = on_close
        self._on_change = on_change
        self._loop = asyncio.get_running_loop()
        self._is_wanted = threading.Event()
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="weft-watch", daemon=True)
        self._has_started = False

    def want(self, is_wanted: bool) -> None:
        """Switch polling on while there are followers; the first one starts the thread."""
        if not is_wanted:
            self._is_wanted.clear()
            return
        self._is_wanted.set()
        if not self._has_started and not self._is_closing.is_set():
            self._has_started = True
            self._thread.start()

    def end(self) -> None:
        """End the thread; not waited for."""
        self._is_closing.set()
        self._is_wanted.set()

    def join(self) -> None:
        """Wait, in another thread, until this one has ended."""
        if self._has_started:
            self._thread.join()

    def _run(self) -> None:
        seen: object = None
        pause = _QUICK_SECONDS
        while not self._is_closing.wait(pause):
            # Without a follower the thread sleeps here, at no cost.  `end` sets the event too, so
            # that it wakes up to close.
            self._is_wanted.wait()
            try:
                now = self._look()
            # The text of the error is the answer: the same error again is no change, and wakes no
            # follower.
            except Exception as error:
                now = str(error)
            pause = min(pause * _SLOWER_BY, _SLOW_SECONDS)
            if now != seen:
                seen, pause = now, _QUICK_SECONDS
                call(self._loop, self._on_change)
        self._on_close()
