"""Gold lines: where real commits changed a tree, for `bench.ranking_table`.

A commit is later than the tree, and the lines before its first one have moved since.  So the lines
that it took away are followed back through the difference between the tree and the commit before
it; a line that is not in the tree counts nowhere.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from weft.repo.definitions import Definition

_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)


class _Hunk(NamedTuple):
    old: int
    old_count: int
    new: int
    new_count: int


class GoldLines:
    """The changed lines of cases, by the history of their repository."""

    def __init__(self, repository: Path, snapshot: str) -> None:
        """`repository` is a git directory; `snapshot` is the commit of the tree."""
        self._repository = repository
        self._snapshot = snapshot

    def of(self, case: dict[str, Any]) -> list[tuple[str, int]]:
        """File and line in the tree, for each line that a case's commit changed."""
        return [(file, line) for file in case["files"] for line in self._in(file, case)]

    def _in(self, file: str, case: dict[str, Any]) -> Iterator[int]:
        since = self._hunks(self._snapshot, case["parent"], file)
        for hunk in self._hunks(case["parent"], case["commit"], file):
            # What only adds lines changes the place behind the line before them.
            for line in range(hunk.old, hunk.old + max(1, hunk.old_count)):
                if (found := _before(line, since)) is not None:
                    yield found

    def _hunks(self, old: str, new: str, file: str) -> list[_Hunk]:
        git = (
            "git",
            "--git-dir",
            str(self._repository),
            "diff",
            "-U0",
            "--no-renames",
            "--no-color",
        )
        done = subprocess.run(
            [*git, "--no-ext-diff", old, new, "--", file], capture_output=True, check=True
        )
        text = done.stdout.decode("utf-8", "replace")
        return [
            _Hunk(int(old), int(old_count or 1), int(new), int(new_count or 1))
            for old, old_count, new, new_count in _HUNK.findall(text)
        ]


def _before(line: int, hunks: Sequence[_Hunk]) -> int | None:
    """Where a line was before some changes; None for one that they made."""
    moved = 0
    for hunk in hunks:
        # Of a side without lines, git names the line before it.
        new_end = hunk.new + hunk.new_count if hunk.new_count else hunk.new + 1
        old_end = hunk.old + hunk.old_count if hunk.old_count else hunk.old + 1
        if hunk.new_count and hunk.new <= line < new_end:
            return None
        if line < new_end:
            break
        moved = old_end - new_end
    return line + moved


def innermost(definitions: Sequence[Definition], line: int) -> str | None:
    """The name of the smallest definition that a line lies in."""
    around = [each for each in definitions if each.first <= line <= each.last]
    return min(around, key=lambda each: each.last - each.first).name if around else None
