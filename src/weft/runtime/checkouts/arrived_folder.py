"""What is told of the folder that a session works in at a server of several."""

from __future__ import annotations

from typing import Final

import msgspec


class ArrivedFolder(msgspec.Struct, frozen=True):
    """The folder that a session works in here."""

    identity: str = ""
    """What tells it from others of its path."""
    note: str = ""
    """What the model is told; empty where it was in the same folder before."""


NOT_ARRIVED: Final = ArrivedFolder()
"""Of a session that no server of several hosts."""
