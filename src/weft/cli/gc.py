"""Garbage collection: off during start-up, and never again for what start-up has made."""

from __future__ import annotations

import gc


def wait_with_garbage() -> None:
    """Begin a start: hardly anything it makes is garbage, and looking for some takes a tenth of the
    time to the first request.
    """
    gc.disable()


def collect_early_garbage() -> None:
    """Collect the one piece of garbage that is worth it, before the modules that make up Weft.

    `datetime` defines its classes in Python and then puts those in C in their place: half a
    megabyte is left over.  It is found in half a millisecond while little else is there, and the
    next modules use its room.
    """
    import datetime  # noqa: F401  # everything but a help page loads it

    gc.collect()


def collect_garbage_again() -> None:
    """The start is over: from now on collect, but leave alone what is there for good."""
    import linecache  # `logging` has loaded it

    # anyio reads its own source to learn its names, and Python keeps the lines.
    linecache.clearcache()
    gc.freeze()
    gc.enable()
