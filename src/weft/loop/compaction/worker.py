"""Work on a long line beside the event loop.

What making room computes of a line is pure and reads every word of it: half a second for a million
tokens, in which no other session would get on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeVar

import anyio.to_thread

from weft.context import LineEntry

SHORT_LINE: Final = 80_000
"""Characters of a line that is worked on at once, in some milliseconds."""
ENTRY: Final = 400
"""Characters that an entry counts besides those it has."""

Found = TypeVar("Found")


async def work_on(line: Sequence[LineEntry], work: Callable[..., Found], *given: object) -> Found:
    """What `work` makes of the line and what is given with it; in a thread where it is long.

    None of it may change meanwhile: entries never do, and of a state only copies are given.
    """
    if _is_short(line):
        return work(*given)
    # Abandoned: a turn that is stopped does not wait for it, and it changes nothing.
    return await anyio.to_thread.run_sync(partial(work, *given), abandon_on_cancel=True)


def _is_short(line: Sequence[LineEntry]) -> bool:
    if len(line) * ENTRY > SHORT_LINE:
        return False
    left = SHORT_LINE - len(line) * ENTRY
    for entry in line:
        left -= len(entry.node.text) + sum(len(each.text) for each in entry.results.values())
        if left < 0:
            return False
    return True
