"""Arguments of tools: their JSON Schema for the model, and what the model sent as a checked value.

Arguments are `msgspec.Struct`s.  The schema that goes out is one object that every vendor can take:
no references, no titles, a `type` wherever there is one to tell.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeVar

import msgspec

from weft.errors import BadArguments, UsageError

T = TypeVar("T", bound=msgspec.Struct)

_REF = "#/$defs/"
_DROPPED = frozenset({"title", "discriminator"})
_MAX_SHOWN = 200


class ToolArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the arguments of our own tools: a field that is not known is an error, not
    silence.
    """


class LateSchema:
    """The schema of a tool's arguments, made when it is first read.

    What a model reads comes from the manifest, so that a call of a tool needs no schema; making
    one loads a module that describes types.
    """

    def __init__(self, kind: type[msgspec.Struct]) -> None:
        self._kind = kind
        self._made: dict[str, Any] | None = None

    def __get__(self, tool: object, owner: type) -> dict[str, Any]:
        if self._made is None:
            self._made = schema_of(self._kind)
        return self._made


def late_schema(kind: type[msgspec.Struct]) -> Any:
    """`schema` of a tool, for its class body; `Any`, because reading it gives a `dict`."""
    return LateSchema(kind)


def schema_of(kind: Any) -> dict[str, Any]:
    """JSON Schema of a Struct: one object, every reference written out.

    Raises:
        UsageError: the type contains itself, so that it cannot be written out.
    """
    (root,), components = msgspec.json.schema_components([kind], ref_template=_REF + "{name}")
    schema: dict[str, Any] = _inline(root, components, ())
    schema.pop("description", None)  # the docstring of the Struct; the tool has its own description
    schema.setdefault("properties", {})
    return schema


def _inline(value: Any, components: dict[str, Any], inside: tuple[str, ...]) -> Any:
    if isinstance(value, list):
        return [_inline(item, components, inside) for item in value]
    if not isinstance(value, dict):
        return value
    reference = value.get("$ref")
    if isinstance(reference, str):
        name = reference.removeprefix(_REF)
        # A reference may be used many times; only one that leads back into itself has no end.
        if name in inside:
            raise UsageError(f"{name!r} contains itself; tool arguments cannot be recursive")
        target = _inline(components[name], components, (*inside, name))
        return {
            **target,
            **_inline({k: v for k, v in value.items() if k != "$ref"}, components, inside),
        }
    inlined = {
        key: _properties(item, components, inside)
        if key == "properties"
        else _inline(item, components, inside)
        for key, item in value.items()
        if key not in _DROPPED
    }
    return _typed(inlined)


def _properties(value: dict[str, Any], components: dict[str, Any], inside: tuple[str, ...]) -> Any:
    """Properties by name: here `title` is a field of the caller's, not a keyword."""
    return {name: _inline(item, components, inside) for name, item in value.items()}


def _typed(schema: dict[str, Any]) -> dict[str, Any]:
    """Say the type of a closed set of values, which msgspec leaves to be guessed."""
    values = schema.get("enum")
    if values and "type" not in schema:
        if all(isinstance(item, str) for item in values):
            return {"type": "string", **schema}
        if all(isinstance(item, int) and not isinstance(item, bool) for item in values):
            return {"type": "integer", **schema}
    return schema


def parse(kind: type[T], args: dict[str, Any]) -> T:
    """Turn what the model sent into a checked value.

    Numbers and booleans written as text are taken; a null for something optional counts as left
    out, since strict modes of vendors send one for everything.

    Raises:
        BadArguments: with a sentence that says what is wrong and what the tool takes.
    """
    try:
        return msgspec.convert(args, kind, strict=False)
    except msgspec.ValidationError:
        # Tried again without the nulls: they are rare, and a null may also be a value.
        given = _without_nulls(args, _cached_schema(kind))
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        raise BadArguments(_sentence(kind, str(error))) from error


def _without_nulls(value: Any, schema: dict[str, Any]) -> Any:
    """The value without nulls for what may be left out and cannot be null."""
    if isinstance(value, list):
        return [_without_nulls(item, schema.get("items", {})) for item in value]
    if not isinstance(value, dict) or "properties" not in schema:
        return value
    known = schema["properties"]
    return {
        name: _without_nulls(item, known.get(name, {}))
        for name, item in value.items()
        # An unknown name keeps its null, so that it is still refused as unknown; a required field
        # keeps it, because null is a wrong value and not a missing one.
        if item is not None or name not in known or name in schema.get("required", ())
    }


@lru_cache(maxsize=256)
def _cached_schema(kind: Any) -> dict[str, Any]:
    return schema_of(kind)


def _sentence(kind: Any, problem: str) -> str:
    takes = ", ".join(
        field.encode_name if field.required else f"[{field.encode_name}]"
        for field in msgspec.structs.fields(kind)
    )
    return f"wrong arguments: {problem[:_MAX_SHOWN]}.  The tool takes: {takes or 'nothing'}"
