"""What the model has read still counts after a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

import weft
from weft.providers import ScriptedModel
from weft.providers.script import CallTool, SayText

pytestmark = pytest.mark.anyio


def edit(old: str, new: str) -> CallTool:
    return CallTool(name="edit", args={"path": "a.txt", "old_string": old, "new_string": new})


async def test_a_file_that_was_read_before_a_restart_may_be_edited_after_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    model = ScriptedModel(
        [
            [CallTool(name="read", args={"path": "a.txt"})],
            [SayText(text="read")],
            [edit("one", "two")],
            [SayText(text="edited")],
            [edit("two", "three")],
            [SayText(text="edited again")],
        ]
    )
    store = tmp_path / "weft.db"
    session_id = ""
    for prompt in ("read it", "edit it", "again"):
        async with weft.open(tmp_path, store=store) as app:
            session = await app.sessions.start_session(
                session_id=session_id or None, model=model, permission_mode="accept_edits"
            )
            session_id = session.id
            await session.send_message(prompt)
    assert (tmp_path / "a.txt").read_text() == "three\n"
