"""Megabytes are never masked in one go on the event loop: other sessions would stand still."""

from __future__ import annotations

import threading

import pytest

import weft
from tests.support.world import World, facts
from weft.events import ToolComplete
from weft.messages import File
from weft.project.masked_text import PIECE_CHARACTERS
from weft.providers.script import CallTool
from weft.providers.scripted import ScriptedModel
from weft.redact import Redactor

pytestmark = pytest.mark.anyio

TOKEN = "ghp_" + "a1B2" * 9
AT_ONCE = 4 * PIECE_CHARACTERS
"""What may be masked without a pause: a piece, and what was held back of those before."""
LINE = "nothing in here is a secret, and there is much of it\n"


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How long the texts are that the thread of the event loop masks in one go."""
    found: list[int] = []
    loop_thread, masks = threading.get_ident(), Redactor.__call__

    def watched(self: Redactor, text: str) -> str:
        if threading.get_ident() == loop_thread:
            found.append(len(text))
        return masks(self, text)

    monkeypatch.setattr(Redactor, "__call__", watched)
    return found


async def test_the_long_result_of_a_programs_tool(plain_world: World, at_once: list[int]) -> None:
    @weft.tool
    def much() -> str:
        """Say much."""
        return LINE * 40_000 + TOKEN

    model = ScriptedModel([CallTool(name="much"), "ok"])
    async with plain_world.open(model) as app:
        session = await app.sessions.start_session(tools=[much], auto_approve=True)
        await session.send_message("go")
        [done] = await facts(session, ToolComplete)
    assert TOKEN not in done.result.text
    assert max(at_once) <= AT_ONCE


async def test_a_large_file_that_a_message_names(plain_world: World, at_once: list[int]) -> None:
    plain_world.write("large.txt", LINE * 15_000 + TOKEN)
    async with plain_world.open(ScriptedModel(["ok"])) as app:
        [file] = await app.attach_files(["look at @large.txt"])
    assert isinstance(file, File)
    assert len(file.text) > 700_000
    assert TOKEN not in file.text
    assert max(at_once) <= AT_ONCE
