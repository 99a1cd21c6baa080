"""A question before what cannot be undone."""

from __future__ import annotations

import sys

from weft.errors import UsageError


def confirm(question: str, *, unasked: str, refused: str) -> None:
    """Ask on the terminal.

    Raises:
        UsageError: `unasked` where there is no terminal, `refused` where the answer is no.
    """
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError(unasked)
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UsageError(refused)
