"""TOML and JSON documents from anywhere: plain data of a bounded depth, or one sentence.

A document that is nested without end breaks the code that walks it, and of a duplicate name one
value is lost; both are refused.  The parsers' errors are translated here, with the line where they
know it.
"""

from __future__ import annotations

import re
from typing import Any, Final

from weft.errors import UsageError

DEEPEST: Final = 32
"""Lists and tables within each other."""

_SIMPLE: Final = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')"""
_DOTTED: Final = rf"(?<![\w-]){_SIMPLE}(?:[ \t]*+\.[ \t]*+{_SIMPLE}){{{DEEPEST},}}"
"""A key of very many parts, `a.a.a.a…`, for which the parser takes quadratic time."""


def read_toml(data: bytes, name: str) -> dict[str, Any]:
    """The tables of a TOML document; `name` says which file it is.

    Raises:
        UsageError: it is none, or not one that is taken.
    """
    import tomllib  # only where there is a file: it costs start-up time

    text = _text(data, name)
    if re.search(_DOTTED, text):
        raise _too_deep(name)
    try:
        found = tomllib.loads(text)
    except RecursionError as error:
        raise _too_deep(name) from error
    except ValueError as error:  # numbers without end are one, and no TOMLDecodeError
        raise UsageError(f"{name} is not valid TOML: {error}") from error
    _check_depth(found, name)
    return found


def read_json(data: bytes, name: str) -> dict[str, Any]:
    """The members of a JSON object; `name` says which file it is.

    Raises:
        UsageError: it is none, or not one that is taken.
    """
    import json  # as above; msgspec does not tell of a name that is there twice

    try:
        found = json.loads(_text(data, name), object_pairs_hook=_each_once)
    except RecursionError as error:
        raise _too_deep(name) from error
    except ValueError as error:
        raise UsageError(f"{name} is not valid JSON: {error}") from error
    if not isinstance(found, dict):
        raise UsageError(f"{name} is not a JSON object")
    _check_depth(found, name)
    return found


def _text(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{name} is not UTF-8 text: line {line}") from error


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{name[:40]!r} is there twice")
        found[name] = value
    return found


def _too_deep(name: str) -> UsageError:
    return UsageError(f"{name} is nested deeper than {DEEPEST} levels")


def _check_depth(found: Any, name: str) -> None:
    # Level by level and not by recursion, which is what a deep document would break.
    level = [found]
    for _ in range(DEEPEST):
        inner = [each.values() if isinstance(each, dict) else each for each in level]
        level = [each for values in inner for each in values if isinstance(each, dict | list)]
    if level:
        raise _too_deep(name)
