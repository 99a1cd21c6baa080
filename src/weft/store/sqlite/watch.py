"""Seeing what other processes commit: a thread that looks at SQLite's `data_version` while somebody follows.

A look costs 5 µs.  It looks every few milliseconds after a change and slows down when nothing happens, so that an idle
screen does not keep a laptop awake; our own commits wake followers directly and need no look.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from pathlib import Path

import apsw

from weft.errors import StoreError
from weft.store.sqlite.connect import Patience, open_reader
from weft.store.sqlite.query import fetch

_QUICK_SECONDS = 0.004
_SLOW_SECONDS = 0.02
_SLOWER_BY = 1.02


class Watch:
    """Calls `on_change` on the loop when the file may have changed; starts with the first follower."""

    def __init__(self, path: Path, *, vfs: str | None, on_change: Callable[[], None]) -> None:
        self._path = path
        self._vfs = vfs
        self._on_change = on_change
        self._loop = asyncio.get_running_loop()
        self._is_wanted = threading.Event()
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="weft-watch", daemon=True)
        self._has_started = False
        self._ended: asyncio.Future[None] = self._loop.create_future()

    def want(self, is_wanted: bool) -> None:
        """Somebody follows, or nobody does any more."""
        if not is_wanted:
            self._is_wanted.clear()
            return
        self._is_wanted.set()
        if not self._has_started and not self._is_closing.is_set():
            self._has_started = True
            self._thread.start()

    async def close(self) -> None:
        """End the thread."""
        self._is_closing.set()
        self._is_wanted.set()
        if self._has_started:
            await asyncio.wait([self._ended])

    def _run(self) -> None:
        seen: int | None = None
        pause = _QUICK_SECONDS
        db: apsw.Connection | None = None
        while not self._is_closing.wait(pause):
            self._is_wanted.wait()
            try:
                db = db or open_reader(self._path, vfs=self._vfs, patience=Patience(0))
                now = int(fetch(db, "pragma data_version")[0][0])
            except (apsw.Error, StoreError):
                # Whoever reads next gets the error and says it; here there is nobody to tell.
                pause = _SLOW_SECONDS
                continue
            pause = min(pause * _SLOWER_BY, _SLOW_SECONDS)
            if now != seen:
                seen, pause = now, _QUICK_SECONDS
                self._call(self._on_change)
        if db is not None:
            db.close()
        self._call(self._end)

    def _end(self) -> None:
        if not self._ended.done():
            self._ended.set_result(None)

    def _call(self, what: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(what)
