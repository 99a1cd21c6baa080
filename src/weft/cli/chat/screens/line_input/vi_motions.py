"""Motions and text objects of vi: places in a text, without an editor and without a mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from weft.cli.chat.paint.text_cells import next_grapheme, previous_grapheme
from weft.cli.chat.screens.line_input.word_places import kind

_PAIRS = {"(": ")", "[": "]", "{": "}", "<": ">"}
_BRACKETS = "()[]{}"
_OBJECT_NAMES = {"b": "(", "B": "{", ")": "(", "]": "[", "}": "{", ">": "<"}


class MotionTarget(NamedTuple):
    """Where a motion leads."""

    place: int
    is_inclusive: bool = False
    """The character there belongs to what an operator takes."""


class FindRequest(NamedTuple):
    """What `f`, `F`, `t` or `T` looks for; `;` and `,` look for it again."""

    key: str
    character: str


class TextSpan(NamedTuple):
    """Part of a text, from one place to just before another."""

    first: int
    last: int


def line_start(text: str, at: int) -> int:
    """Where the line of a place begins."""
    return text.rfind("\n", 0, at) + 1


def line_end(text: str, at: int) -> int:
    """Where the line of a place ends, before its line break."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def first_dark(text: str, at: int) -> int:
    """The first character of the line that is no space."""
    place, end = line_start(text, at), line_end(text, at)
    return place + len(text[place:end]) - len(text[place:end].lstrip(" \t"))


def run_end(text: str, at: int, *, is_big: bool = False) -> int:
    """Behind the word, the marks or the spaces that a place is in."""
    here = kind(text, at, is_big=is_big)
    while at < len(text) and kind(text, at, is_big=is_big) == here:
        at += 1
    return at


def _run_start(text: str, at: int, *, is_big: bool) -> int:
    here = kind(text, at, is_big=is_big)
    while at > 0 and kind(text, at - 1, is_big=is_big) == here:
        at -= 1
    return at


def next_word(text: str, at: int, *, is_big: bool = False) -> int:
    """The beginning of the next word."""
    if kind(text, at) != "space":
        at = run_end(text, at, is_big=is_big)
    return run_end(text, at) if kind(text, at) == "space" else at


def word_before(text: str, at: int, *, is_big: bool = False) -> int:
    """The beginning of this word, or of the one before."""
    while at > 0 and kind(text, at - 1) == "space":
        at -= 1
    return _run_start(text, at - 1, is_big=is_big) if at > 0 else 0


def word_end(text: str, at: int, *, is_big: bool = False) -> int:
    """The last character of this word, or of the next one."""
    at = next_grapheme(text, at)
    if kind(text, at) == "space":
        at = run_end(text, at)
    return previous_grapheme(text, run_end(text, at, is_big=is_big))


def _end_before(text: str, at: int, *, is_big: bool = False) -> int:
    at = _run_start(text, at, is_big=is_big) if kind(text, at) != "space" else at
    while at > 0 and kind(text, at - 1) == "space":
        at -= 1
    return previous_grapheme(text, at)


def _left(text: str, at: int) -> int:
    return max(line_start(text, at), previous_grapheme(text, at))


def _right(text: str, at: int) -> int:
    return min(line_end(text, at), next_grapheme(text, at))


_STEPS: dict[str, Callable[[str, int], int]] = {
    "h": _left,
    "l": _right,
    "w": next_word,
    "W": lambda text, at: next_word(text, at, is_big=True),
    "b": word_before,
    "B": lambda text, at: word_before(text, at, is_big=True),
    "e": word_end,
    "E": lambda text, at: word_end(text, at, is_big=True),
    "ge": _end_before,
    "gE": lambda text, at: _end_before(text, at, is_big=True),
}
_PLACES: dict[str, Callable[[str, int], int]] = {
    "0": line_start,
    "^": first_dark,
    "$": line_end,
    "G": lambda text, at: len(text),
    "gg": lambda text, at: 0,
}
_INCLUSIVE = frozenset({"e", "E", "ge", "gE", "%"})


def motion(text: str, at: int, key: str, count: int) -> MotionTarget | None:
    """Where a motion leads; None for a key that is none, and where it leads nowhere."""
    if key in _STEPS:
        for _ in range(count):
            at = _STEPS[key](text, at)
        return MotionTarget(at, key in _INCLUSIVE)
    if key in _PLACES:
        return MotionTarget(_PLACES[key](text, at))
    if key == "|":
        return MotionTarget(min(line_start(text, at) + count - 1, line_end(text, at)))
    if key == "%":
        place = _matching(text, at)
        return None if place is None else MotionTarget(place, is_inclusive=True)
    return None


def find(text: str, at: int, wanted: FindRequest, count: int) -> MotionTarget | None:
    """Where `f`, `F`, `t` or `T` leads, in this line; None without such a character."""
    is_forward, is_short = wanted.key in "ft", wanted.key in "tT"
    place = at
    for _ in range(count):
        if is_forward:
            place = text.find(wanted.character, place + 1, line_end(text, at))
        else:
            place = text.rfind(wanted.character, line_start(text, at), place)
        if place < 0:
            return None
    if is_short:
        place += -1 if is_forward else 1
    return MotionTarget(place, is_forward)


def _matching(text: str, at: int) -> int | None:
    """The bracket that belongs to the next one in the line."""
    end = line_end(text, at)
    at = next((n for n in range(at, end) if text[n] in _BRACKETS), -1)
    if at < 0:
        return None
    number = _BRACKETS.index(text[at])
    other, step = _BRACKETS[number ^ 1], -1 if number % 2 else 1
    depth = 0
    for place in range(at, len(text) if step > 0 else -1, step):
        depth += (text[place] == text[at]) - (text[place] == other)
        if depth == 0:
            return place
    return None


def text_object(text: str, at: int, name: str, *, is_around: bool) -> TextSpan | None:
    """A word, what is in quotes or in brackets: by itself, or with what is around it."""
    if name in ("w", "W"):
        return _word_object(text, at, is_big=name == "W", is_around=is_around)
    if name in ("'", '"', "`"):
        return _quoted(text, at, name, is_around=is_around)
    opening = _OBJECT_NAMES.get(name, name)
    return _bracketed(text, at, opening, is_around=is_around) if opening in _PAIRS else None


def _word_object(text: str, at: int, *, is_big: bool, is_around: bool) -> TextSpan:
    first, last = _run_start(text, at, is_big=is_big), run_end(text, at, is_big=is_big)
    if is_around and kind(text, last) == "space" and last < len(text):
        last = run_end(text, last)
    elif is_around:
        first -= len(text[:first]) - len(text[:first].rstrip(" \t"))
    return TextSpan(first, last)


def _quoted(text: str, at: int, quote: str, *, is_around: bool) -> TextSpan | None:
    start, end = line_start(text, at), line_end(text, at)
    marks = [place for place in range(start, end) if text[place] == quote]
    for first, last in zip(marks[::2], marks[1::2], strict=False):
        if at <= last:
            return TextSpan(first, last + 1) if is_around else TextSpan(first + 1, last)
    return None


def _bracketed(text: str, at: int, opening: str, *, is_around: bool) -> TextSpan | None:
    closing, depth = _PAIRS[opening], 0
    for first in range(min(at, len(text) - 1), -1, -1):
        if text[first] == opening and depth == 0:
            break
        depth += (text[first] == closing and first != at) - (text[first] == opening)
    else:
        return None
    depth = 0
    for last in range(first, len(text)):
        depth += (text[last] == opening) - (text[last] == closing)
        if depth == 0:
            return TextSpan(first, last + 1) if is_around else TextSpan(first + 1, last)
    return None
