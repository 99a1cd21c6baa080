"""After a compaction, wherever it cut, every vendor's protocol accepts what is sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.compaction import compactions
from tests.support.vendor_models import VENDOR_PROFILES, VendorModel, illegal_anywhere
from tests.support.vendor_session import open_app, start
from weft.providers.script import SayText

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("name", VENDOR_PROFILES)
async def test_a_turn_that_makes_room_in_its_midst_stays_legal(tmp_path: Path, name: str) -> None:
    """Many rounds with reasoning in a narrow window: the kept part begins with the model's own
    words, again and again.
    """
    model = VendorModel(name, window=3_000)
    model.laid_out = [
        [
            model.thinks(f"round {number}"),
            SayText(text="x" * 200),
            model.calls("look", {"where": f"{number} " + "y" * 300}, {"where": "up"}),
        ]
        for number in range(30)
    ]
    async with open_app(tmp_path) as app:
        session = await start(app, {name: model}, system_prompt="Help.", thinking="high")
        reply = await session.send_message("look everywhere")
        assert (reply.finish_reason, reply.iterations) == ("stop", 31)
        assert len(await compactions(session)) >= 3
        assert await illegal_anywhere(session) == []
    assert model.wrong == []


@pytest.mark.parametrize("name", VENDOR_PROFILES)
async def test_a_compacted_conversation_is_legal_for_every_vendor(
    tmp_path: Path, name: str
) -> None:
    """With all of it compacted, with part of it, going on without a prompt, and with the compaction
    undone.
    """
    model = VendorModel(name, window=3_000)
    async with open_app(tmp_path) as app:
        session = await start(app, {name: model}, system_prompt="Help.", thinking="high")
        for number in range(3):
            model.laid_out = [
                [model.thinks("a"), model.calls("look", {"where": "z" * 600})],
                [model.thinks("b"), SayText(text=f"done {number}")],
            ]
            await session.send_message("look")
        await session.compact()
        assert await illegal_anywhere(session) == []
        await session.compact()
        assert await illegal_anywhere(session) == []
        assert (await session.continue_and_wait()).finish_reason == "stop"
        assert await illegal_anywhere(session) == []
        await session.undo_compaction()
        await session.undo_compaction()
        assert await illegal_anywhere(session) == []
        await session.send_message("go on")
    assert model.wrong == []
