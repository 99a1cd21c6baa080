"""A file with three functions, and the calls that read and change it, for tests of boundaries."""

from __future__ import annotations

from weft.api.session import Session
from weft.providers.script import CallTool

CODE = "def a():\n    return 1\n\n\ndef b():\n    return 2\n\n\ndef c():\n    return 3\n"
"""Lines 4 and 5 (from 0) are `b`."""


def read(path: str = "code.py") -> CallTool:
    return CallTool(name="read", args={"path": path})


def edit(old: str, new: str, path: str = "code.py") -> CallTool:
    return CallTool(name="edit", args={"path": path, "old_string": old, "new_string": new})


def write(path: str, content: str) -> CallTool:
    return CallTool(name="write", args={"path": path, "content": content})


async def lines(session: Session, path: str = "code.py") -> tuple[int, int] | None:
    """The boundary of a file, as first and last line."""
    found = await session.boundary_for(path)
    return None if found is None else (found.first, found.last)
