"""A cache of what is made from texts, bounded by what the texts weigh together."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class TextCache(Generic[T]):
    """A function of a text that remembers its last values.

    A count alone would not bound it: texts come from files of a project, as long as it likes.  It
    may be called from any thread.
    """

    def __init__(self, make: Callable[[str], T], most_bytes: int) -> None:
        self._make = make
        self._most = most_bytes
        self._lock = threading.Lock()
        self._values: dict[str, T] = {}
        """The one used last is last."""
        self.held_bytes = 0

    def __call__(self, text: str) -> T:
        """The value for a text, made when it is not known."""
        with self._lock:
            if text in self._values:
                value = self._values[text] = self._values.pop(text)
                return value
        # Outside the lock: another thread that wants the same makes it too, and the first stays,
        # so that the same text gives the same object.
        made = self._make(text)
        with self._lock:
            return self._keep(text, made)

    def _keep(self, text: str, made: T) -> T:
        if text in self._values:
            return self._values[text]
        weight = sys.getsizeof(text)
        if weight > self._most:
            return made
        self._values[text] = made
        self.held_bytes += weight
        while self.held_bytes > self._most:
            oldest = next(iter(self._values))
            del self._values[oldest]
            self.held_bytes -= sys.getsizeof(oldest)
        return made
