"""The changes of a session as cards: each file as it was before the first of them, and as it is."""

from __future__ import annotations

import difflib
import os
import stat
from typing import Any

import anyio.to_thread

from weft.api.inspection import original_files
from weft.api.session import Session
from weft.app import App
from weft.ids import CallUid
from weft.messages import ToolResult
from weft.view import AnyBlock, NoteBlock, ToolCard

MOST_COMPARED = 1_000_000
"""Bytes of a file; comparing two larger ones would take minutes."""


async def diff_blocks(session: Session, app: App) -> list[AnyBlock]:
    """One block for each file that differs, by name."""
    blocks: list[AnyBlock] = []
    for path, original in sorted((await original_files(session)).items()):
        blob = original.content
        before = await app.store.blob(blob) if blob is not None else None
        is_known = before is not None or not original.exists
        old = (before or b"") if is_known else None
        where = os.path.join(app.project_path, path)
        blocks += await anyio.to_thread.run_sync(_compared, path, where, old, original.exists)
    return blocks


def _compared(path: str, where: str, old: bytes | None, existed: bool) -> list[AnyBlock]:
    try:
        new = _content(where)
    except FileNotFoundError:
        return [_card("delete", {"path": path})] if existed else []
    except OSError:
        new = None
    if old is None or new is None or b"\0" in old + new:
        return [NoteBlock(text=f"{path}: changed; too large to compare, or no text")]
    if old == new and existed:
        return []
    if not existed:
        content = new.decode("utf-8", "replace")
        return [_card("write", {"path": path, "content": content}, text="wrote it")]
    return [_card("edit", {"path": path}, diff=_unified(path, old, new))]


def _content(where: str) -> bytes | None:
    """What is in a file now; None for one that is too large, or no file."""
    # A link is not followed, and a pipe that took the file's place is not waited for.
    fd = os.open(where, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        data = file.read(MOST_COMPARED + 1)
    return data if len(data) <= MOST_COMPARED else None


def _unified(path: str, old: bytes, new: bytes) -> str:
    before, after = (data.decode("utf-8", "replace").splitlines() for data in (old, new))
    return "\n".join(difflib.unified_diff(before, after, path, path, lineterm=""))


def _card(name: str, args: dict[str, Any], *, text: str = "", diff: str = "") -> ToolCard:
    data = {"diff": diff} if diff else {}
    return ToolCard(
        name=name, args=args, result=ToolResult(call_uid=CallUid(""), text=text, data=data)
    )
