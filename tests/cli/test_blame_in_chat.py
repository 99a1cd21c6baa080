"""`/blame` in the chat: what wrote a line, and a shell in the files as they were then."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.chat_driver import driven_chat
from tests.support.weft_program import call
from weft.app import App
from weft.view import TableBlock

pytestmark = [pytest.mark.anyio, pytest.mark.process]


async def test_a_line_is_explained_and_its_past_opened(app: App) -> None:
    folder = Path(app.project_path)
    answers = [
        [call("write", path="a.txt", content="one\ntwo\n")],
        "done",
        [call("write", path="later.txt", content="x\n")],
        "done",
    ]
    async with driven_chat(app, *answers, flags=("--permission-mode", "auto")) as talk:
        await talk.say("write two lines")
        await talk.say("another file")
        assert (folder / "later.txt").exists()
        talk.screen.typed("/blame a.txt:2")
        await talk.screen.pick("Open it as it was")
        await talk.screen.until(lambda: talk.screen.shells)
        [shown] = talk.screen.shells
        assert "a.txt" in shown
        assert "later.txt" not in shown
        [table] = talk.screen.of(TableBlock)
        rows = {row[0]: row[1] for row in table.rows}
        assert rows["message"] == "“write two lines”"
        assert rows["first check"] == "none was run after it"
        await talk.screen.noted("`write a.txt` wrote it, asked for with “write two lines”")
        for typed, says in (
            ("/blame", "/blame needs a file and a line of it"),
            ("/blame a.txt", "FILE:LINE"),
            ("/blame a.txt:9", "a.txt has no line 9, it has 2 lines"),
        ):
            talk.screen.typed(typed)
            await talk.screen.noted(says)
