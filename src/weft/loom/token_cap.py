"""A limit on the tokens of a branch that is held here, whatever the vendor sends.

Vendors count reasoning into their own limit, and some servers have none.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import TypeAlias

TokenCounter: TypeAlias = Callable[[str], int]
"""Tokens of a text; more text never has fewer."""

_TAIL = 256
"""Characters that are counted again with each piece: a token may span the seam between two."""


class TokenCap:
    """Cuts a stream of text where it reaches `limit` tokens.

    What was counted long ago is not counted again: the work does not grow with the text.
    """

    def __init__(self, limit: int, count: TokenCounter) -> None:
        self.is_reached = False
        self._left = limit
        self._count = count
        self._tail = ""

    def clip(self, piece: str) -> str:
        """As much of the piece as the limit leaves room for."""
        if self.is_reached or not piece:
            return ""
        kept = piece
        if self._count(self._tail + piece) > self._left:
            self.is_reached = True
            kept = piece[: self._fitting(piece)]
        self._tail += kept
        self._settle()
        return kept

    def _fitting(self, piece: str) -> int:
        """How many characters of the piece still fit."""
        low, high = 0, len(piece)
        while low < high:
            middle = (low + high + 1) // 2
            if self._count(self._tail + piece[:middle]) <= self._left:
                low = middle
            else:
                high = middle - 1
        # An accent belongs to the letter before it.
        while 0 < low < len(piece) and unicodedata.combining(piece[low]):
            low -= 1
        return low

    def _settle(self) -> None:
        if len(self._tail) <= 2 * _TAIL:
            return
        # At a space: tokens of all the usual vocabularies begin there, so both halves are counted
        # as they would be together.
        cut = self._tail.rfind(" ", 0, len(self._tail) - _TAIL)
        cut = cut if cut > 0 else len(self._tail) - _TAIL
        self._left -= self._count(self._tail[:cut])
        self._tail = self._tail[cut:]
