"""Long output of tools: masked without holding up other sessions."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from weft.project.masked_text import PIECE_CHARACTERS, masked_in_pieces
from weft.redact import Redactor

pytestmark = pytest.mark.anyio

SECRET = "a-secret-that-we-hold-1234567890"


async def test_megabytes_are_masked_in_pieces_with_other_tasks_in_between() -> None:
    redact = Redactor([SECRET])
    # The secret lies across the end of the first piece.
    lead = "x" * 61 + "\n"
    before = lead * (PIECE_CHARACTERS // len(lead))
    text = before + "key " + SECRET + "\n" + lead * 20_000
    assert len(before) < PIECE_CHARACTERS < len(before) + len(SECRET)
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    async with anyio.create_task_group() as group:
        group.start_soon(others)
        masked = await masked_in_pieces(redact, text)
        group.cancel_scope.cancel()
    assert masked == redact(text)
    assert SECRET not in masked
    assert turns >= len(text) // PIECE_CHARACTERS


async def test_a_cancel_does_not_lose_what_is_being_masked() -> None:
    with anyio.CancelScope() as scope:
        scope.cancel()
        masked = await masked_in_pieces(Redactor(), "word\n" * 100_000)
    assert len(masked) == 500_000
