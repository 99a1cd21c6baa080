"""Unified diff: what the user sees of a change, bounded in time, and for the record in size."""

from __future__ import annotations

MAX_LINES = 400
MAX_CHARACTERS = 32_000
_CONTEXT = 3
_EXACT_LINES = 2_000
"""Above this many changed lines the middle is shown as one block: comparing it line by line may
take for ever.
"""


def unified(old: str, new: str, path: str) -> str:
    """The change from `old` to `new` with every line of it, empty when there is none."""
    before, after = old.split("\n"), new.split("\n")
    if _ends_whole(old) and _ends_whole(new):
        # What stands behind the last newline is no line: a new file would seem to have had one.
        before, after = before[:-1], after[:-1]
    # Nor is a file that is not there one empty line, whatever the other ends with.
    before, after = before if old else [], after if new else []
    # Equal ends are cut off before anything is compared: most edits touch a few lines of a long
    # file, and the comparison is quadratic in what is left.
    head = _same_start(before, after)
    tail = _same_start(before[head:][::-1], after[head:][::-1])
    if head == len(before) == len(after):
        return ""
    first, last = max(0, head - _CONTEXT), max(0, tail - _CONTEXT)
    cut_before, cut_after = before[first : len(before) - last], after[first : len(after) - last]
    around = head - first, tail - last
    lines = _one_hunk(cut_before, cut_after, around, first) or _hunks(cut_before, cut_after, first)
    return "\n".join((f"--- {path}", f"+++ {path}", *lines))


def _ends_whole(text: str) -> bool:
    return not text or text.endswith("\n")


def _range(start: int, count: int) -> str:
    # A range of no lines is named by the line before it: diff(1) writes `-0,0` for a new file.
    return f"{start + 1 if count else start},{count}"


def _same_start(one: list[str], other: list[str]) -> int:
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count


def _one_hunk(
    before: list[str], after: list[str], around: tuple[int, int], offset: int
) -> list[str]:
    """The hunk of a change between so many equal lines at the start and at the end.

    Empty when some lines between are equal, too, and have to be found.  Most edits, and all new
    files, need no more, and `difflib` costs milliseconds and 200 KB.
    """
    head, tail = around
    removed, added = before[head : len(before) - tail], after[head : len(after) - tail]
    if not set(removed).isdisjoint(added):
        return []
    end = len(before) - tail
    return [
        f"@@ -{_range(offset, len(before))} +{_range(offset, len(after))} @@",
        *(f" {line}" for line in before[:head]),
        *(f"-{line}" for line in removed),
        *(f"+{line}" for line in added),
        *(f" {line}" for line in before[end:]),
    ]


def _hunks(before: list[str], after: list[str], offset: int) -> list[str]:
    if len(before) + len(after) > _EXACT_LINES:
        head = f"@@ -{_range(offset, len(before))} +{_range(offset, len(after))} @@"
        return [head, *(f"-{line}" for line in before), *(f"+{line}" for line in after)]
    import difflib  # only when there is something to show

    lines: list[str] = []
    # Without autojunk: it takes lines that are frequent (`}`, blank ones) for noise, and the diff
    # then shows far more than was changed.
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        lines += _hunk(group, before, after, offset)
    return lines


def _hunk(
    group: list[tuple[str, int, int, int, int]], before: list[str], after: list[str], offset: int
) -> list[str]:
    _, old_start, _, new_start, _ = group[0]
    _, _, old_end, _, new_end = group[-1]
    old_range = _range(offset + old_start, old_end - old_start)
    new_range = _range(offset + new_start, new_end - new_start)
    lines = [f"@@ -{old_range} +{new_range} @@"]
    for tag, i1, i2, j1, j2 in group:
        if tag == "equal":
            lines += [f" {line}" for line in before[i1:i2]]
            continue
        lines += [f"-{line}" for line in before[i1:i2]]
        lines += [f"+{line}" for line in after[j1:j2]]
    return lines


def bounded(diff: str) -> str:
    """The beginning of a diff, as much as a record keeps of it."""
    lines = diff.split("\n")
    shown = "\n".join(lines[:MAX_LINES])
    left = len(lines) - MAX_LINES
    if len(shown) > MAX_CHARACTERS:
        shown = shown[:MAX_CHARACTERS]
        left = len(lines) - shown.count("\n") - 1
    return shown if left <= 0 else f"{shown}\n(… {left} more lines)"
