"""Patterns of rules about the arguments of a server's tool: of one by its name, or all of them as
JSON.

What an argument means is the server's affair, so a rule that restricts is read widely and one that
allows narrowly.  Names count for the first in any case of their letters: servers in Go read them
so.  A path is also compared in its shortest form, as the disk has it.
"""

from __future__ import annotations

import posixpath
from fnmatch import fnmatchcase
from urllib.parse import unquote

import msgspec


def arguments_fit(arguments: str, pattern: str, *, restricts: bool) -> bool:
    """Whether a pattern covers arguments, which are JSON with sorted keys: all of them, or with
    `key:pattern` those of one name.

    A rule that restricts counts for a name at every depth, and for each text in a list.  One that
    allows counts for a name at the top with one plain value, and for no path that leads up where
    the rule has none: `src/*` does not mean `src/../..`.
    """
    key, has_key, wanted = pattern.partition(":")
    if not has_key or not key.replace("_", "a").replace("-", "a").replace(".", "a").isalnum():
        return _fits(arguments, pattern)
    given = msgspec.json.decode(arguments)
    return _restricted(key, wanted, given) if restricts else _allowed(key, wanted, given)


def _restricted(key: str, wanted: str, given: object) -> bool:
    found = [text for value in _values_of(key.casefold(), given) for text in _texts_in(value)]
    plain = wanted.removeprefix("./")
    return any(_fits(text, wanted) or _fits(_shortest(text), plain) for text in found)


def _allowed(key: str, wanted: str, given: dict[str, object]) -> bool:
    alike = [name for name in given if name.casefold() == key.casefold()]
    value = given.get(key)
    # Of two names that differ in case alone a server may take either.
    if alike != [key] or not (value is None or isinstance(value, str | int | float)):
        return False
    text = _plain_text(value)
    return _fits(text, wanted) and _leads_up(text) <= _leads_up(wanted)


def _leads_up(path: str) -> bool:
    """Whether a path has a part `..`, also one that is written as in an address."""
    return ".." in unquote(path).replace("\\", "/").split("/")


def _shortest(path: str) -> str:
    """A path as the disk has it: without `.`, `..` and doubled slashes."""
    plain = unquote(path).removeprefix("file://").replace("\\", "/")
    # Two slashes in front mean the same as one.
    return posixpath.normpath(plain.replace("//", "/")) if plain else plain


def _plain_text(value: object) -> str:
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value, order="deterministic").decode()


def _values_of(key: str, value: object) -> list[object]:
    """The values of a name, at every depth."""
    if isinstance(value, list):
        return [each for item in value for each in _values_of(key, item)]
    if not isinstance(value, dict):
        return []
    own = [each for name, each in value.items() if name.casefold() == key]
    return [*own, *(each for item in value.values() for each in _values_of(key, item))]


def _texts_in(value: object) -> list[str]:
    """A value as text, and each value in it."""
    if isinstance(value, dict):
        parts = [text for item in value.values() for text in _texts_in(item)]
    elif isinstance(value, list):
        parts = [text for item in value for text in _texts_in(item)]
    else:
        parts = []
    return [_plain_text(value), *parts]


def _fits(text: str, pattern: str) -> bool:
    # Equal first: a folder may be called `[id]`, which a pattern takes for one letter.
    return text == pattern or fnmatchcase(text, pattern)
