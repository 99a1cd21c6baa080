"""Masking of long texts, in pieces: the event loop is not held up."""

from __future__ import annotations

from typing import Final

import anyio.lowlevel

from weft.redact import Redactor

PIECE_CHARACTERS: Final = 64 * 1024
"""Text that is masked in one go: some ten milliseconds of work."""


async def masked_in_pieces(redact: Redactor, text: str) -> str:
    """A long text without secrets; other tasks run between its pieces.

    On the loop and not in a thread, which would hold the interpreter's lock for as long.  A cancel
    waits until it is done: the outcome of a tool that has run must not get lost.
    """
    if len(text) <= PIECE_CHARACTERS:
        return redact(text)
    masked, live = [], redact.live()
    for start in range(0, len(text), PIECE_CHARACTERS):
        masked.append(live.feed(text[start : start + PIECE_CHARACTERS]))
        await anyio.lowlevel.cancel_shielded_checkpoint()
    return "".join((*masked, live.finish()))
