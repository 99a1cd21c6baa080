"""Adding to logs: everything is checked, then blobs, then the lines, then what can be made again
from them.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.errors import UsageError
from weft.store.base import Append
from weft.store.checks import check_place
from weft.store.jsonl import files, journal
from weft.store.jsonl import session_list as listing
from weft.store.jsonl.draft_file import forget_drafts
from weft.store.jsonl.folder import JsonlFolder
from weft.store.jsonl.journal import JournalEntry
from weft.store.jsonl.leases import holding
from weft.store.jsonl.log_file import encoded


def append(folder: JsonlFolder, appends: Sequence[Append], process_id: str) -> None:
    """Add all of it, durably.

    Raises:
        Conflict, Fenced, UsageError, Corrupt: nothing was added.
        OSError: the disk refused; nothing was added.
    """
    _check_places(folder, appends, process_id)
    _check_blobs(folder, appends)
    lines: dict[str, list[bytes]] = {}
    for one in appends:
        lines.setdefault(one.stream, []).append(encoded(one))
    for one in appends:
        for blob in one.blobs:
            path = folder.places.blob(blob.id)
            # Blobs before lines: a line that names a blob must never be durable without it.  A blob
            # that no line names is swept.
            if not path.exists():
                files.replace(path, blob.data, durable=True, written_ns=folder.next_stamp())
        # Before the lines, too: a wait that is not marked would never be found due.  A mark without
        # a wait is found out by the row.
        if one.row is not None and one.row.wake_at is not None:
            listing.mark_wait(folder, one.stream)
    # From here on the append has happened, or, where this raises, has not.
    journal.write(
        folder.places,
        [
            JournalEntry(stream, folder.log(stream).size, b"".join(added).decode())
            for stream, added in lines.items()
        ],
    )
    for stream, added in lines.items():
        folder.added(stream, added)
    for one in appends:
        _follow_up(folder, one)


def _check_places(folder: JsonlFolder, appends: Sequence[Append], process_id: str) -> None:
    ends: dict[str, int] = {}
    for one in appends:
        held = holding(folder, one.stream)
        end = ends.get(one.stream)
        check_place(
            one,
            last_seq=folder.log(one.stream).last_seq if end is None else end,
            fence=held.fence,
            is_held=held.process_id == process_id,
        )
        ends[one.stream] = one.expected_seq + len(one.records)


def _check_blobs(folder: JsonlFolder, appends: Sequence[Append]) -> None:
    handed_in = {blob.id for one in appends for blob in one.blobs}
    for one in appends:
        for blob_id in one.names_blobs:
            if blob_id not in handed_in and not folder.places.blob(blob_id).exists():
                raise UsageError(f"blob {blob_id!r} is not stored; hand its content in")


def _follow_up(folder: JsonlFolder, one: Append) -> None:
    """Side files; a crash before them costs nothing, for the lines say the same."""
    if one.row is not None:
        files.remove(folder.places.hiding(one.stream))
        if one.row.wake_at is None:
            files.remove(folder.places.wait(one.stream))
    listing.keep_row(folder, one.stream, one.row)
    if one.drop_draft:
        files.remove(folder.places.draft(one.stream))
    elif one.ends_drafts:
        forget_drafts(folder, one.stream, one.ends_drafts)
