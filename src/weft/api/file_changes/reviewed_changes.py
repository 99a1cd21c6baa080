"""What a command changed in the sandbox, before it is the project's."""

from __future__ import annotations

from weft.tools.diff import unified
from weft.workspace import ReviewedChanges, ReviewedFile, RunResult

__all__ = ["ReviewedChanges", "ReviewedFile", "RunResult", "changed_lines"]


def changed_lines(file: ReviewedFile) -> list[str] | None:
    """The lines of the diff below its head; None where the contents are not at hand."""
    before = b"" if file.action == "created" else file.data_before
    after = b"" if file.action == "deleted" else file.data_after
    if before is None or after is None or b"\0" in before or b"\0" in after:
        return None
    old, new = before.decode(errors="replace"), after.decode(errors="replace")
    return unified(old, new, file.path).split("\n")[2:]
