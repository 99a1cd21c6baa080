"""The past of a line on a terminal: the tree around its message, and a shell in a copy of the files
as they were then, which is removed with it.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from weft.api import Session
from weft.cli.sanitize import clean_line
from weft.errors import UsageError

AROUND: Final = 2
"""Messages of the tree that are shown before and after the one that wrote the line."""
_SHOWN: Final = 80
_NAMED: Final = 5
_PLACE: Final = re.compile(r"(.+):(\d{1,9})", re.DOTALL)


def place_of(given: str) -> tuple[str, int]:
    """A file and a line of it; the file may have a colon in its name.

    Raises:
        UsageError: there is no line.
    """
    place = _PLACE.fullmatch(given)
    if place is None:
        raise UsageError(
            f"{clean_line(given)[:200]!r} names no line; `weft blame` takes FILE:LINE, with the "
            "line as a number: weft blame src/app.py:12"
        )
    return place[1], int(place[2])


@asynccontextmanager
async def past_copy(session: Session, node: str) -> AsyncIterator[tuple[Path, list[str]]]:
    """The files as they were when a message was done, in a folder that is removed afterwards; and
    what is to be said of them.

    Raises:
        UsageError: they are not known.
    """
    with tempfile.TemporaryDirectory(prefix="weft-past-", ignore_cleanup_errors=True) as name:
        folder = Path(name) / "project"
        left = await session.write_files(folder, node)
        said = [f"not there: {clean_line(each.path)} ({each.why})" for each in left[:_NAMED]]
        if len(left) > _NAMED:
            said.append(f"and {len(left) - _NAMED} more")
        said.append("these are copies of the files as they were; `exit` removes them")
        yield folder, said


async def tree_rows(session: Session, node: str) -> list[str]:
    """The line of the tree around a message."""
    messages = await session.messages_with_ids()
    ids = [each for each, _ in messages]
    if node not in ids:
        return [f"the message is on another branch of {session.id}; /tree shows it there"]
    at = ids.index(node)
    rows = []
    for number in range(max(0, at - AROUND), min(len(ids), at + AROUND + 1)):
        message = messages[number][1]
        calls = ", ".join(str(call.get("name", "")) for call in message.tool_calls)
        text = clean_line(message.content or (f"[{calls}]" if calls else ""))[:_SHOWN]
        rows.append(f"{'▸' if number == at else ' '} {message.role}: {text}")
    return rows


def run_shell(folder: str) -> None:
    """The user's shell in a folder, to its end.  Blocks.

    Raises:
        UsageError: it cannot be started.
    """
    shell = os.environ.get("SHELL") or "/bin/sh"
    try:
        subprocess.run([shell], cwd=folder, env={**os.environ, "WEFT_PAST": folder}, check=False)
    except OSError as error:
        raise UsageError(f"the shell {shell!r} cannot be started: {error.strerror}") from error
