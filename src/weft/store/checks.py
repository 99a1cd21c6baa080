"""What every store checks of an append before it looks at the disk: faults of the caller, not of
the log.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.errors import Conflict, Fenced, Owned, TooNew, UsageError
from weft.store.base import READER_VERSION, Append, Owner, SessionRow, needs_lease


def check_appends(appends: Sequence[Append]) -> None:
    """Refuse what can never be appended.

    Raises:
        UsageError: the records do not follow on `expected_seq`, or the row is another session's.
        Fenced: a session's stream without a fence.
    """
    for append in appends:
        if not append.stream:
            raise UsageError("a stream needs a name")
        for number, record in enumerate(append.records, append.expected_seq + 1):
            if record.seq != number:
                raise UsageError(
                    f"record {record.seq} of {append.stream!r} should be {number}: "
                    "the records of an append follow on its expected_seq, one by one"
                )
        if append.row is not None and append.row.id != append.stream:
            raise UsageError(f"the row of {append.row.id!r} cannot go with {append.stream!r}")
        if needs_lease(append.stream) and append.fence is None:
            raise Fenced(append.stream, 0, 0)


def check_place(append: Append, *, last_seq: int, fence: int, is_held: bool) -> None:
    """Refuse an append that does not fit the stream as it is now; the fence comes first.

    Raises:
        Fenced: the lease is old, or was given back.
        Conflict: the stream is not at `expected_seq`.
    """
    # The fence before the position: a process that lost its lease must learn that, not retry on a
    # conflict with the new owner.
    if needs_lease(append.stream) and not (is_held and append.fence == fence):
        raise Fenced(append.stream, append.fence or 0, fence)
    if append.expected_seq != last_seq:
        raise Conflict(append.stream, append.expected_seq, last_seq)


def check_leasable(stream: str) -> None:
    """Refuse a lease on a stream that takes appends from any process."""
    if not stream or not needs_lease(stream):
        raise UsageError(f"{stream!r} needs no lease: its appends are guarded by expected_seq")


def check_overwritable(stream: str) -> None:
    """Refuse to change records of a session: it is deleted as a whole."""
    if not stream or needs_lease(stream):
        raise UsageError(f"the records of {stream!r} stay as they are; a session can be deleted")


def check_reader(row: SessionRow | None) -> None:
    """Refuse to write to a session that only a newer program understands.

    Raises:
        TooNew: with a sentence for the user.
    """
    if row is not None and row.min_reader > READER_VERSION:
        raise TooNew(
            f"session {row.id!r} was written by a newer Weft (it needs reader {row.min_reader}, "
            f"this one is {READER_VERSION}); update Weft to open it"
        )


def owned_error(stream: str, owner: Owner | None, since: float) -> Owned:
    """The refusal of a stream that a living process holds; its row may be gone."""
    return Owned(
        stream,
        pid=owner.pid if owner else 0,
        host=owner.host if owner else "",
        address=owner.address if owner else "",
        since=since,
    )
