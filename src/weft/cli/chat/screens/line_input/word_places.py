"""Words in a line: where they begin and end, for the keys of a shell and for those of vi.

A combining mark or a joiner is what its letter is, so that Hindi and Persian words stay whole and
no place is inside of a joined emoji.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

CharacterKind: TypeAlias = Literal["space", "word", "mark"]
FIRST_TOKEN = 0xF0000
"""The first of the private characters that stand for a folded paste: each is a word."""
_JOINERS = "\u200c\u200d"


def is_letter(text: str, at: int) -> bool:
    """Whether a character belongs to a word of a shell: letters and digits."""
    character = text[at]
    if character.isascii():
        return character.isalnum()
    base = _base(text, at)
    return text[base].isalnum() or ord(text[base]) >= FIRST_TOKEN


def is_dark(text: str, at: int) -> bool:
    """Whether a character is none of the spaces."""
    return not text[at].isspace()


def kind(text: str, at: int, *, is_big: bool = False) -> CharacterKind:
    """What a character is to vi; to its capital motions everything but spaces is one kind."""
    if not 0 <= at < len(text) or text[at].isspace():
        return "space"
    return "word" if is_big or is_letter(text, at) or text[_base(text, at)] == "_" else "mark"


def _base(text: str, at: int) -> int:
    """The character that a mark or a joiner belongs to."""
    if text[at].isascii():
        return at
    import unicodedata  # not for plain English

    while at > 0 and (text[at] in _JOINERS or unicodedata.category(text[at]).startswith("M")):
        at -= 1
    return at
