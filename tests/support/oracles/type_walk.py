"""A strict check of JSON values against types: typed dicts and models, as vendors publish them.

Stricter than the SDKs themselves, which let unknown fields pass and look into iterables only when
they are read: every field must be known, every required one be there, and nothing is converted.
"""

from __future__ import annotations

import base64
import collections.abc
import enum
import functools
import types
import typing
from typing import Any

import typing_extensions

_LISTS = (list, tuple, collections.abc.Iterable, collections.abc.Sequence)
_MAPS = (dict, collections.abc.Mapping)


def misfits(value: Any, expected: Any, place: str = "body") -> list[str]:
    """Where a value does not fit a type; empty when it does."""
    origin, inner = typing.get_origin(expected), typing.get_args(expected)
    if expected in (Any, object) or isinstance(expected, typing.TypeVar):
        return []
    if origin in (typing.Required, typing.NotRequired, typing.Annotated) or origin in (
        typing_extensions.Required,
        typing_extensions.NotRequired,
    ):
        return misfits(value, inner[0], place)
    if origin in (typing.Union, types.UnionType):
        return _of_union(value, inner, place)
    if origin in (typing.Literal, typing_extensions.Literal):
        is_one = any(value == word and type(value) is type(word) for word in inner)
        return [] if is_one else [f"{place}: {value!r} is none of {inner}"]
    if origin in _LISTS:
        return _of_list(value, inner[0] if inner else Any, place)
    if origin in _MAPS:
        return _of_map(value, inner[1] if len(inner) > 1 else Any, place)
    return _of_class(value, expected, place)


def _of_union(value: Any, members: tuple[Any, ...], place: str) -> list[str]:
    found = [misfits(value, member, place) for member in members]
    if any(not each for each in found):
        return []
    # The member that was meant is the one that fits furthest in.
    return max(found, key=lambda each: each[0].partition(":")[0].count(".") - len(each))


def _of_list(value: Any, item: Any, place: str) -> list[str]:
    if not isinstance(value, list):
        return [f"{place}: {type(value).__name__} instead of a list"]
    return [
        wrong
        for number, each in enumerate(value)
        for wrong in misfits(each, item, f"{place}[{number}]")
    ]


def _of_map(value: Any, item: Any, place: str) -> list[str]:
    if not isinstance(value, dict):
        return [f"{place}: {type(value).__name__} instead of an object"]
    return [w for name, each in value.items() for w in misfits(each, item, f"{place}.{name}")]


def _of_class(value: Any, expected: Any, place: str) -> list[str]:
    if expected is None or expected is type(None):
        return [] if value is None else [f"{place}: {value!r} instead of null"]
    if hasattr(expected, "__required_keys__"):
        hints, required = _typed_dict(expected)
        return _of_fields(value, hints, required, place)
    if hasattr(expected, "model_fields"):
        hints, required = _model(expected)
        # A wrapper (a picture of Ollama) goes over the wire as the bytes that it holds.
        if hints.keys() == {"value"}:
            return misfits(value, bytes, place)
        return _of_fields(value, hints, required, place)
    if isinstance(expected, type) and issubclass(expected, enum.Enum):
        words = {str(member.value).lower() for member in expected}
        return [] if str(value).lower() in words else [f"{place}: {value!r} is no {expected}"]
    if expected is bytes:
        return [] if _is_base64(value) else [f"{place}: no base64"]
    if expected is float:
        expected = (int, float)
    if isinstance(value, bool) and expected is not bool:
        return [f"{place}: a boolean instead of {expected}"]
    try:
        fits = isinstance(value, expected)
    except TypeError:
        fits = False  # a type that no JSON value has: files, paths
    return [] if fits else [f"{place}: {type(value).__name__} instead of {expected}"]


def _of_fields(
    value: Any, hints: dict[str, Any], required: frozenset[str], place: str
) -> list[str]:
    if not isinstance(value, dict):
        return [f"{place}: {type(value).__name__} instead of an object"]
    found = [f"{place}: no field {name!r}" for name in required - value.keys()]
    for name, each in value.items():
        if name in hints:
            found += misfits(each, hints[name], f"{place}.{name}")
        elif "*" not in hints:
            found.append(f"{place}: unknown field {name!r}")
    return found


def _origin(hint: Any) -> Any:
    return typing.get_origin(hint)


@functools.cache
def _typed_dict(cls: Any) -> tuple[dict[str, Any], frozenset[str]]:
    hints: dict[str, Any] = typing_extensions.get_type_hints(cls, include_extras=True)
    # Evaluated late (`from __future__ import annotations`), so the class itself does not know them.
    required = {
        name
        for name, hint in hints.items()
        if _origin(hint) in (typing.Required, typing_extensions.Required)
        or (cls.__total__ and name in cls.__required_keys__)
    }
    return hints, frozenset(required)


@functools.cache
def _model(cls: Any) -> tuple[dict[str, Any], frozenset[str]]:
    hints: dict[str, Any] = {}
    required = set()
    for name, field in cls.model_fields.items():
        wire = field.alias or name
        hints[wire] = field.annotation
        if field.is_required():
            required.add(wire)
    # The SDK of Ollama names a few keywords of JSON Schema; its server takes all.
    if cls.model_config.get("extra") == "allow" or cls.__name__ == "Property":
        hints["*"] = Any
    return hints, frozenset(required)


def _is_base64(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        # Of either alphabet, as protocol buffers read it.
        base64.b64decode(value.replace("-", "+").replace("_", "/"), validate=True)
    except ValueError:
        return False
    return True
