"""When garbage is looked for: not while we start, and never again in what a start has made."""

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
