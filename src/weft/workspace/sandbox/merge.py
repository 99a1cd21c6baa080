"""Three-way merge of a file that a command and another program changed.

Line by line, against a version that both came from.  Where both sides changed the same lines in the
same way, that is one change; where they changed the same or neighbouring lines otherwise, there is
no answer, and none is guessed.
"""

from __future__ import annotations

import msgspec

from weft.workspace.boundaries.lines import hunks, lines_of


class _Edit(msgspec.Struct, frozen=True, order=True):
    """Lines of the old text, and what stands in their place."""

    start: int
    end: int
    lines: tuple[bytes, ...]


def merge(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Both changes of `base` together; None when they meet, or when it is no text."""
    if any(b"\0" in side for side in (base, ours, theirs)):
        return None
    old = lines_of(base)
    merged: list[bytes] = []
    done = -1
    for edit in sorted(_edits(old, lines_of(ours)) | _edits(old, lines_of(theirs))):
        if edit.start <= done:  # not one line that neither touched lies between them
            return None
        merged += old[max(done, 0) : edit.start]
        merged += edit.lines
        done = edit.end
    return b"".join(merged + old[max(done, 0) :])


def _edits(old: list[bytes], new: list[bytes]) -> set[_Edit]:
    return {
        _Edit(hunk.old_start, hunk.old_end, tuple(new[hunk.new_start : hunk.new_end]))
        for hunk in hunks(old, new)
    }
