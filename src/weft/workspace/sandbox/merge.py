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


def merge_marked(
    base: bytes, ours: bytes, theirs: bytes, *, our_name: str, their_name: str
) -> bytes | None:
    """Both changes of `base` together, with both versions between conflict markers where they meet,
    theirs first, as git has it; None when it is no text.
    """
    if any(b"\0" in side for side in (base, ours, theirs)):
        return None
    old = lines_of(base)
    edits = [_edits(old, lines_of(side)) for side in (theirs, ours)]
    merged: list[bytes] = []
    done = 0
    for start, end in _regions(sorted(edits[0] | edits[1])):
        merged += old[done:start]
        sides = [_side(old, start, end, each) for each in edits]
        untouched = old[start:end]
        if sides[0] == sides[1] or sides[1] == untouched:
            merged += sides[0]
        elif sides[0] == untouched:
            merged += sides[1]
        else:
            merged += [f"<<<<<<< {their_name}\n".encode(), *_closed(sides[0])]
            merged += [b"=======\n", *_closed(sides[1]), f">>>>>>> {our_name}\n".encode()]
        done = end
    return b"".join(merged + old[done:])


def _regions(edits: list[_Edit]) -> list[tuple[int, int]]:
    """The pieces of the old text in which edits meet, or stand alone."""
    found: list[tuple[int, int]] = []
    for edit in edits:
        if found and edit.start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], edit.end))
        else:
            found.append((edit.start, edit.end))
    return found


def _side(old: list[bytes], start: int, end: int, edits: set[_Edit]) -> list[bytes]:
    """What one side has in the place of a piece."""
    lines: list[bytes] = []
    done = start
    for edit in sorted(each for each in edits if start <= each.start and each.end <= end):
        lines += [*old[done : edit.start], *edit.lines]
        done = edit.end
    return lines + old[done:end]


def _closed(lines: list[bytes]) -> list[bytes]:
    """Lines of which the last has an end, so that a marker stands on a line of its own."""
    if lines and not lines[-1].endswith(b"\n"):
        return [*lines[:-1], lines[-1] + b"\n"]
    return lines
