"""The JSON Schema of a tool's arguments as models are told it: of a stranger, and made plain.

Vendors refuse a request, and with it the turn, for one schema that they do not understand.  So only
keywords with a value of their kind are kept, and every `$ref` is put in its place: one that leads
nowhere, to an address, or back into itself means anything.  A schema that would become too large is
cut where that happens; the server checks what it is given in any case.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from weft.mcp.server_config import canonical

Schema: TypeAlias = dict[str, Any]
MOST_DEPTH: Final = 24
MOST_REFERRED: Final = 64
"""References that lead to one place."""
MOST_BYTES: Final = 64 * 1024
"""Of the plain schema; a few references can stand for more than any memory holds."""
_FRAME: Final = 32
"""Bytes that a schema takes beside what stands in it."""
_KINDS: Final = ("object", "array", "string", "number", "integer", "boolean", "null")
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_MANY: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
_ONE: Final = ("not", "contains", "propertyNames", "if", "then", "else", "additionalProperties")


def plain_schema(schema: Mapping[str, Any]) -> Schema:
    """A schema of an object with properties: vendors refuse one that has none."""
    found = _PlainReader(schema).read(schema)
    found = {**found, "type": "object", "properties": found.get("properties", {})}
    _keep_known(found)
    return found


def has_plain_names(schema: Any) -> bool:
    """Whether every property has a name that all vendors take."""
    if isinstance(schema, list):
        return all(map(has_plain_names, schema))
    if not isinstance(schema, dict):
        return True
    named = schema.get("properties", {})
    inner = [*named.values(), *(schema[key] for key in ("items", *_MANY, *_ONE) if key in schema)]
    return all(map(_NAME.fullmatch, named)) and all(map(has_plain_names, inner))


class _PlainReader:
    """Reads one schema."""

    def __init__(self, whole: Mapping[str, Any]) -> None:
        self._whole = whole
        self._left = MOST_BYTES

    def read(self, schema: Any, depth: int = 0, inside: tuple[str, ...] = ()) -> Schema:
        """A part of it, made plain; `inside` are the references that lead here."""
        if not isinstance(schema, Mapping) or depth > MOST_DEPTH or self._left <= 0:
            return {}  # anything
        self._left -= _FRAME
        schema, inside = self._referred(schema, schema.get("$ref"), inside)
        out: Schema = {}
        for key, value in schema.items():
            if key in _LEAVES:
                if _LEAVES[key](value):
                    out[key] = value
                    self._left -= len(canonical(value))
            elif (made := self._part(key, value, depth + 1, inside)) is not None:
                out[key] = made
            self._left -= len(key)
        _keep_known(out)
        return out

    def _part(self, key: str, value: Any, depth: int, inside: tuple[str, ...]) -> Any:
        """The schemas below a keyword; None where it holds none."""
        if key == "properties" and isinstance(value, Mapping):
            made = {}
            for name, each in value.items():
                self._left -= len(name)
                made[name] = self.read(each, depth, inside)
            return made
        if key in _MANY and isinstance(value, list) and value:
            return [self.read(each, depth, inside) for each in value]
        if key == "items" and isinstance(value, list):
            # As it was written before 2020: one schema for each place.
            return {"anyOf": [self.read(each, depth, inside) for each in value]} if value else {}
        if key == "additionalProperties" and isinstance(value, bool):
            return value
        is_schema = key in ("items", *_ONE) and isinstance(value, Mapping)
        return self.read(value, depth, inside) if is_schema else None

    def _referred(
        self, schema: Mapping[str, Any], ref: Any, inside: tuple[str, ...]
    ) -> tuple[Mapping[str, Any], tuple[str, ...]]:
        """What a reference means, with the keywords beside it on top."""
        while isinstance(ref, str):
            # What is referred to is looked through at each step of a chain, for each of its uses.
            self._left -= _FRAME
            beside = {key: value for key, value in schema.items() if key != "$ref"}
            found = _pointed(self._whole, ref)
            is_known = isinstance(found, Mapping) and len(inside) < MOST_REFERRED
            if not is_known or self._left <= 0:
                return beside, inside
            self._left -= len(found)
            if ref in inside:
                # Of what is the same again the kind is still said.
                return {"type": found.get("type"), **beside}, inside
            inside = (*inside, ref)
            schema = {**found, **beside}
            ref = schema.get("$ref")
        return schema, inside


def _pointed(whole: Any, ref: str) -> Any:
    """What a pointer into the same schema means (RFC 6901); nothing is fetched."""
    if ref != "#" and not ref.startswith("#/"):
        return None
    for step in ref[1:].split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(whole, list) and name.isdecimal() and int(name) < len(whole):
            whole = whole[int(name)]
        elif isinstance(whole, Mapping):
            whole = whole.get(name)
        else:
            return None
    return whole


def _keep_known(out: Schema) -> None:
    """Leave out what is required and not described, where something is."""
    if "required" in out and "properties" in out:
        out["required"] = [name for name in out["required"] if name in out["properties"]]
    if out.get("required") == []:
        del out["required"]


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_kind(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(map(_is_text, value)) and set(value) <= {*_KINDS}
    return isinstance(value, str) and value in _KINDS


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value)) and len(set(value)) == len(value)


_LEAVES: Final[Mapping[str, Callable[[Any], bool]]] = {
    "type": _is_kind,
    "required": _is_names,
    "enum": lambda value: isinstance(value, list) and bool(value) and all(map(_is_plain, value)),
    "const": lambda value: True,
    "default": lambda value: True,
    "examples": lambda value: isinstance(value, list),
    "uniqueItems": lambda value: isinstance(value, bool),
    **dict.fromkeys(("description", "pattern", "format"), _is_text),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _is_number),
    "multipleOf": lambda value: _is_number(value) and value > 0,
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), _is_size),
    **dict.fromkeys(("minProperties", "maxProperties"), _is_size),
}
"""Keywords without schemas below them, and which values are theirs."""
