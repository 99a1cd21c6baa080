"""Garbage collection: off during start-up, and never again for what start-up has made."""

from __future__ import annotations

import gc


def wait_with_garbage() -> None:
    """Begin a start: nothing it makes is garbage, and looking for some takes a tenth of the time to
    the first request.
    """
    gc.disable()


def collect_garbage_again() -> None:
    """The start is over: from now on collect, but leave alone what is there for good."""
    gc.freeze()
    gc.enable()
