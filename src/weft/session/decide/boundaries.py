"""Decisions about edit boundaries: the range of lines that a file's edits are held to."""

from __future__ import annotations

from typing import assert_never

from weft.errors import UsageError
from weft.events import BoundaryChanged
from weft.ids import BlobId
from weft.session.commands import ClearBoundary, SetBoundary
from weft.session.decide.base import (
    BoundaryCommand,
    DecidedCommand,
    DecisionContext,
)
from weft.session.environment import FoundFile
from weft.sha256 import sha256
from weft.state import SessionState


def decide_boundary(
    command: BoundaryCommand, state: SessionState, context: DecisionContext
) -> DecidedCommand:
    """What a command about a boundary does."""
    match command:
        case SetBoundary(first=first, last=last):
            return _set(first, last, context.file)
        case ClearBoundary():
            return _clear(context.file, state)
        case _:
            assert_never(command)


def _set(first: int, last: int, file: FoundFile | None) -> DecidedCommand:
    if file is None or file.data is None:
        raise UsageError(f"there is no file {'' if file is None else file.path!r} to bound")
    if not 0 <= first <= last:
        raise UsageError(
            f"no range of lines: {first} to {last}; lines count from 0, the first one first"
        )
    if first >= max(file.lines, 1):
        raise UsageError(
            f"{file.path!r} has only {file.lines} lines; line {first} is beyond its end"
        )
    last = min(last, file.lines - 1)
    # The whole text is stored: later edits are compared with it to let the range follow them.
    base = BlobId(sha256(file.data).hexdigest())
    fact = BoundaryChanged(path=file.path, first=first, last=last, base=base)
    return DecidedCommand(facts=(fact,), blobs={base: file.data})


def _clear(file: FoundFile | None, state: SessionState) -> DecidedCommand:
    """Lift the boundary of the file, or all of them; one that is not there need not be lifted."""
    paths = tuple(state.boundaries.held) if file is None else (file.path,)
    lifted = (path for path in paths if path in state.boundaries.held)
    return DecidedCommand(facts=tuple(BoundaryChanged(path=path) for path in lifted))
