"""Arguments of a call that are repeated as headers, as servers of 2026-07-28 may ask for.

A property of a tool's schema may carry `x-mcp-header`: over HTTP its value then travels as
`Mcp-Param-NAME` too, so that machines on the way can tell calls apart without reading them.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

ArgumentPath: TypeAlias = tuple[str, ...]
PREFIX: Final = "Mcp-Param-"
MOST_DEPTH: Final = 40
_KEY: Final = "x-mcp-header"
_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,80}")
_KINDS: Final = ("string", "integer", "boolean")
_WRAPPED: Final = re.compile(r"=\?base64\?.*\?=", re.DOTALL)


def declared_headers(schema: Mapping[str, Any]) -> dict[ArgumentPath, str]:
    """Which arguments are repeated, and in which header.

    Raises:
        ValueError: the schema asks for what cannot be done; such a tool is not offered over HTTP.
    """
    found: dict[ArgumentPath, str] = {}
    _search(schema, (), found, is_reachable=True, depth=0)
    names = [name.lower() for name in found.values()]
    if len(set(names)) != len(names):
        raise ValueError("two of its arguments would be the same header")
    return found


def _search(
    schema: Any,
    path: ArgumentPath,
    found: dict[ArgumentPath, str],
    *,
    is_reachable: bool,
    depth: int,
) -> None:
    """`is_reachable`: by the names of properties alone, so that one call has one value for it."""
    if depth > MOST_DEPTH:
        return
    if isinstance(schema, list):
        for each in schema:
            _search(each, path, found, is_reachable=False, depth=depth + 1)
        return
    if not isinstance(schema, Mapping):
        return
    if _KEY in schema:
        if not is_reachable or not path:
            raise ValueError("an argument that may be there many times would be one header")
        found[path] = _checked(schema)
    for key, value in schema.items():
        if key == "properties" and isinstance(value, Mapping):
            for name, inner in value.items():
                further = (*path, str(name))
                _search(inner, further, found, is_reachable=is_reachable, depth=depth + 1)
        elif key not in ("default", "const", "enum", "examples", _KEY):
            _search(value, path, found, is_reachable=False, depth=depth + 1)


def _checked(schema: Mapping[str, Any]) -> str:
    name = schema[_KEY]
    if not isinstance(name, str) or _TOKEN.fullmatch(name) is None:
        raise ValueError("the header for one of its arguments has no name that a header can have")
    if schema.get("type") not in _KINDS:
        raise ValueError(f"the argument for the header {name} is no plain value")
    return name


def argument_headers(
    declared: Mapping[ArgumentPath, str], args: Mapping[str, Any]
) -> tuple[tuple[str, str], ...]:
    """The headers of one call; arguments that are not given have none."""
    found = []
    for path, name in declared.items():
        value: Any = args
        for step in path:
            value = value.get(step) if isinstance(value, Mapping) else None
        text = _text_of(value)
        if text is not None:
            found.append((f"{PREFIX}{name}", header_value(text)))
    return tuple(found)


def _text_of(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))  # where an integer is asked for
    return str(value) if isinstance(value, (str, int)) else None


def header_value(text: str) -> str:
    """A text as it may stand in a header: as it is, or wrapped where that would change it."""
    is_plain = text.isascii() and text.isprintable() and text == text.strip() and text
    if is_plain and _WRAPPED.fullmatch(text) is None:
        return text
    packed = base64.b64encode(text.encode("utf-8", "surrogatepass")).decode()
    return f"=?base64?{packed}?="
