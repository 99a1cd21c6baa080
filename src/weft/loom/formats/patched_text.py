"""Text that is stored as changes to its parent's: the patches of diff-match-patch, applied.

A patch is a list of hunks, a hunk a list of pairs: 0 keeps, 1 puts in, -1 takes out.  Places count
UTF-16 units, as JavaScript does, so the text is held in those.
"""

from __future__ import annotations

from typing import Any, Final

from weft.errors import UsageError
from weft.messages import clean_text

_CODE: Final = "utf-16-le"
_UNIT: Final = 2


def encoded(text: str) -> bytes:
    """Text in UTF-16 units."""
    return text.encode(_CODE, "surrogatepass")


def decoded_text(units: bytes) -> str:
    """Units as text; half an emoji, where a patch cut one in two, becomes U+FFFD."""
    return clean_text(units.decode(_CODE, "replace"))


def patched(units: bytes, patch: Any, where: str) -> bytes:
    """The text after a patch; without one, as it was.

    A hunk whose place does not fit is looked for; one that fits nowhere only adds what it puts in.

    Raises:
        UsageError: it is no patch.
    """
    if patch in (None, "", []):
        return units
    if not isinstance(patch, list):
        raise UsageError(f"the patch of {where} should be a list of hunks")
    for hunk in patch:
        units = _with_hunk(units, hunk, where)
    return units


def _with_hunk(units: bytes, hunk: Any, where: str) -> bytes:
    pairs = _pairs(hunk, where)
    before = b"".join(encoded(text) for op, text in pairs if op != 1)
    after = b"".join(encoded(text) for op, text in pairs if op != -1)
    place = _place(units, before, hunk.get("start2"))
    if place is None:
        return units + b"".join(encoded(text) for op, text in pairs if op == 1)
    return units[:place] + after + units[place + len(before) :]


def _pairs(hunk: Any, where: str) -> list[tuple[int, str]]:
    said = hunk.get("diffs") if isinstance(hunk, dict) else None
    if not isinstance(said, list):
        raise UsageError(f"a hunk of {where} has no list of diffs")
    pairs: list[tuple[int, str]] = []
    for each in said:
        # Later versions write their own class, which JSON makes an object of.
        pair = [each.get("0"), each.get("1")] if isinstance(each, dict) else each
        if not (isinstance(pair, list) and len(pair) == 2 and pair[0] in (-1, 0, 1)):
            raise UsageError(f"a diff of {where} is no pair of -1, 0 or 1 and text")
        if not isinstance(pair[1], str):
            raise UsageError(f"a diff of {where} is no pair of -1, 0 or 1 and text")
        pairs.append((pair[0], pair[1]))
    return pairs


def _place(units: bytes, before: bytes, start: Any) -> int | None:
    if isinstance(start, int) and start >= 0:
        at = start * _UNIT
        if at <= len(units) and units.startswith(before, at):
            return at
    if not before:
        return len(units)
    # Only whole units: the bytes of two neighbours may look like one.
    at = units.rfind(before)
    while at > 0 and at % _UNIT:
        at = units.rfind(before, 0, at + len(before) - 1)
    return at if at >= 0 else None
