"""Which blobs of an append are file history, and nothing else.

Only those may be dropped when a project has more history than it may.  The same content can be a long message, a tool's whole output
or a boundary's version of a file, and those are for ever.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from weft.events import (
    BoundaryChanged,
    Fact,
    FileTouched,
    PrefixFrozen,
    Rewound,
    ToolComplete,
    ToolExecuting,
)
from weft.ids import BlobId


def history_blobs(
    facts: Iterable[Fact], handed_in: Collection[BlobId], spilled: Collection[BlobId]
) -> tuple[BlobId, ...]:
    """Those of the blobs that are handed in with these facts; `spilled` are parts of messages."""
    history: set[BlobId | str | None] = set()
    others: set[BlobId | None] = set(spilled)
    for fact in facts:
        match fact:
            case FileTouched(before=before, after=after):
                history |= {before, after}
            case Rewound(files=files):
                history |= {each for change in files for each in (change.before, change.after)}
            case ToolExecuting(pre_hashes=before_it, post_hashes=after_it):
                history |= {*before_it.values(), *after_it.values()}
            case ToolComplete(result=result):
                others.add(result.full_text)
            case PrefixFrozen(prefix=prefix):
                others.add(prefix)
            case BoundaryChanged(base=base):
                others.add(base)
            case _:
                pass
    return tuple(each for each in handed_in if each in history and each not in others)
