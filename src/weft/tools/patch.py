"""Text replacement: exact, once or everywhere, and what to say when one does not fit.

Pure.  A replacement fits when its old text occurs exactly once (or anywhere, with `replace_all`).
Nothing is ever matched "nearly": a near miss is shown to the model, with line numbers and what
differs, so that the next try fits.
"""

from __future__ import annotations

import re

import msgspec

from weft.errors import FinalToolError
from weft.tools.fuzzy_match import nearest
from weft.tools.text import in_lf, line_end

_MAX_PLACES = 10
_NUMBERED = re.compile(r" *\d+\t")
_CRLF = "\ud800"
"""Stands for `\\r\\n` while we work, so that both views have the same length.

No decoded text can hold it.
"""


class TextReplacement(msgspec.Struct, frozen=True, kw_only=True):
    """One replacement, in the model's line ends."""

    old: str
    new: str
    replace_all: bool = False


def apply(text: str, change: TextReplacement) -> tuple[str, int]:
    """The text after one change, and how often the old text was replaced; line ends stay the
    file's.

    Raises:
        FinalToolError: the old text is empty, not there, there more than once, or the same as the
            new.
    """
    old, new = in_lf(change.old), in_lf(change.new)
    if not old:
        raise FinalToolError("old_string is empty; give the exact text that is to be replaced")
    if old == new:
        raise FinalToolError("old_string and new_string are the same; there is nothing to change")
    view = in_lf(text)
    places = _places(view, old)
    if not places:
        raise FinalToolError(_miss(view, old))
    if len(places) > 1 and not change.replace_all:
        raise FinalToolError(_ambiguous(view, places))
    return _replace(text, view, old, new), view.count(old)


def _places(view: str, old: str) -> list[int]:
    """Where the old text occurs, the first few.

    Overlapping ones too, for `aa` in `aaa` is no less ambiguous.
    """
    places: list[int] = []
    position = view.find(old)
    while position >= 0 and len(places) <= _MAX_PLACES:
        places.append(position)
        position = view.find(old, position + 1)
    return places


def _replace(text: str, view: str, old: str, new: str) -> str:
    """Put `new` in the place of each `old` of the view, in the text that the view was made of."""
    # No CRLF in the file: view and text are the same, position for position.
    if len(view) == len(text):
        return text.replace(old, new)
    marked = text.replace("\r\n", _CRLF)
    mostly = line_end(text)
    pieces: list[str] = []
    done = 0
    position = view.find(old)
    while position >= 0:
        end = position + len(old)
        matched = marked[position:end].replace(_CRLF, "\r\n")
        # In a file with mixed line ends, what is put in takes the ends of what it replaces.
        ending = line_end(matched) if "\n" in matched else mostly
        pieces += [marked[done:position], new.replace("\n", ending)]
        done = end
        position = view.find(old, end)
    return "".join([*pieces, marked[done:]]).replace(_CRLF, "\r\n")


def _ambiguous(view: str, places: list[int]) -> str:
    lines = [str(view.count("\n", 0, place) + 1) for place in places[:_MAX_PLACES]]
    many = str(len(places)) if len(places) <= _MAX_PLACES else f"more than {_MAX_PLACES}"
    return (
        f"old_string occurs {many} times (at lines {', '.join(lines)}); nothing was changed.  "
        "Add lines around it until it is unique, or set replace_all"
    )


def _miss(view: str, old: str) -> str:
    lines = old.strip("\n").split("\n")
    bare = "\n".join(_NUMBERED.sub("", line, count=1) for line in lines)
    # A common mistake of models, and not repaired for them: a line that really begins with a number
    # and a tab would be changed into something else.
    if all(map(_NUMBERED.match, lines)) and bare in view:
        return (
            "old_string is not in the file; nothing was changed.  It begins its lines "
            "with the numbers that the read tool shows; they "
            "are not part of the file: leave them and the tab after them out"
        )
    near = nearest(view, old)
    advice = near or "Nothing in the file comes near it; read the file again"
    return f"old_string is not in the file; nothing was changed.  {advice}"
