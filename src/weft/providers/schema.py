"""JSON Schemas as each vendor accepts them.

Pure.  A schema comes from a tool or a caller, may hold `$ref`s, titles and defaults, and comes out
without what the vendor refuses.  What is taken out as a keyword and still says something (bounds,
patterns) goes to the description.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from weft.errors import UsageError

Schema: TypeAlias = dict[str, Any]

# Generators write these for documentation and for OpenAPI. Gemini refuses some of them, and all of
# them cost tokens in every request.
_DROPPED = {
    "title",
    "default",
    "discriminator",
    "$schema",
    "$id",
    "$defs",
    "definitions",
    "examples",
}
_BRANCHES = ("anyOf", "oneOf", "allOf", "prefixItems")
# Vendors that hold an answer to its schema compile it to a grammar; these have no form there.
_FANCY = frozenset(
    {
        *("oneOf", "allOf", "not", "if", "then", "else", "prefixItems", "contains"),
        *("patternProperties", "propertyNames", "dependentRequired", "dependentSchemas"),
        *("unevaluatedProperties", "unevaluatedItems", "additionalItems"),
    }
)
_BOUNDS = (
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
)
_NAMES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


def tidy(schema: Schema) -> Schema:
    """The schema with every `$ref` put in its place, without titles and defaults, each enum with
    its type.

    Raises:
        UsageError: it refers to itself, or to nothing.
    """
    definitions = {
        f"#/{place}/{name}": found
        for place in ("$defs", "definitions")
        for name, found in schema.get(place, {}).items()
    }
    found: Schema = _tidy(schema, definitions, ())
    return found


def _tidy(schema: Any, definitions: dict[str, Schema], inside: tuple[str, ...]) -> Any:
    if not isinstance(schema, dict):
        return schema  # `true` and `false` are schemas too
    if "$ref" in schema:
        schema, inside = _resolved(schema, definitions, inside)
    out: Schema = {}
    for key, value in schema.items():
        if key in _DROPPED:
            continue
        # Its keys are names, not keywords: a property may be called `title` or `default`.
        if key == "properties":
            out[key] = {name: _tidy(v, definitions, inside) for name, v in value.items()}
        elif key in _BRANCHES:
            out[key] = [_tidy(v, definitions, inside) for v in value]
        elif key in ("items", "additionalProperties", "not"):
            out[key] = _tidy(value, definitions, inside)
        else:
            out[key] = value
    if "type" not in out:
        _add_type(out)
    return out


def _resolved(
    schema: Schema, definitions: dict[str, Schema], inside: tuple[str, ...]
) -> tuple[Schema, tuple[str, ...]]:
    """What the reference points to, with the keywords beside the reference on top."""
    ref = schema["$ref"]
    if ref in inside:
        raise UsageError(
            f"the schema refers to itself at {ref!r}; models need a schema without loops"
        )
    if ref not in definitions:
        raise UsageError(f"the schema refers to {ref!r}, which it does not define")
    # Since draft 2019-09 keywords beside a `$ref` count; before, they were ignored.
    beside = {key: value for key, value in schema.items() if key != "$ref"}
    target, inside = definitions[ref], (*inside, ref)
    if "$ref" in target:
        target, inside = _resolved(target, definitions, inside)
    return {**target, **beside}, inside


def _add_type(schema: Schema) -> None:
    values = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
    kinds = {_NAMES.get(type(value)) for value in values}
    if len(kinds) == 1 and None not in kinds:
        schema["type"] = kinds.pop()
    elif "properties" in schema:
        schema["type"] = "object"


def as_object(schema: Schema) -> Schema:
    """The tidied schema with an object at the top and no branches there.

    Branches are joined to one object.
    """
    top = tidy(schema)
    # Anthropic refuses these three at the top of a tool's schema, OpenAI anything but an object.
    branches: list[Schema] = [b for key in ("anyOf", "oneOf", "allOf") for b in top.pop(key, [])]
    all_of = bool(schema.get("allOf"))
    out: Schema = {**top, "type": "object"}
    properties = dict(out.get("properties", {}))
    required = set(out.get("required", []))
    asked = [set(branch.get("required", [])) for branch in branches]
    for branch in branches:
        for name, found in branch.get("properties", {}).items():
            properties.setdefault(name, found)
    if asked:
        # What only some alternatives require cannot be required of all; the tool checks the rest.
        required |= set.union(*asked) if all_of else set.intersection(*asked)
    out["properties"] = properties
    if required:
        out["required"] = sorted(required)
    return out


def closed(schema: Schema) -> Schema:
    """For structured output: every object forbids further properties, bounds are words in the
    description.
    """
    found: Schema = _map(as_object(schema), _close)
    return found


def _close(schema: Schema) -> Schema:
    schema = _bounds_to_words(schema)
    if "oneOf" in schema and "anyOf" not in schema:
        # "Exactly one" is a word that vendors do not take where they hold an answer to its schema.
        schema = {("anyOf" if key == "oneOf" else key): value for key, value in schema.items()}
    if schema.get("type") == "object":
        # Wanted of every object by the structured output of OpenAI and Anthropic.
        schema = {**schema, "additionalProperties": False}
        schema.setdefault("properties", {})
    return schema


def strict(schema: Schema) -> Schema | None:
    """The closed schema, if every property is required already; None where strictness would change
    what comes back, and where the schema says what cannot be said strictly.
    """
    found = closed(schema)
    # OpenAI's strict mode wants every property required. An optional one would have to become
    # nullable, and tools would get null where they expect nothing.
    return found if is_plain(found) and _all_required(found) else None


def is_plain(schema: Any) -> bool:
    """True when a schema has none of the keywords that vendors refuse where they hold an answer to
    it.
    """
    if not isinstance(schema, dict):
        return True
    if not _FANCY.isdisjoint(schema):
        return False
    below = [*schema.get("properties", {}).values(), schema.get("items")]
    below += [branch for key in _BRANCHES for branch in schema.get(key, [])]
    return all(map(is_plain, below))


def _all_required(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return True
    properties = schema.get("properties", {})
    if set(schema.get("required", [])) != set(properties):
        return False
    below = [*properties.values(), schema.get("items")]
    below += [branch for key in _BRANCHES for branch in schema.get(key, [])]
    return all(_all_required(each) for each in below)


def for_gemini(schema: Schema) -> Schema:
    """The subset that Gemini takes as JSON Schema."""
    found: Schema = _map(as_object(schema), _to_gemini)
    return found


def _to_gemini(schema: Schema) -> Schema:
    schema = _bounds_to_words(schema, keep=("minimum", "maximum", "minItems", "maxItems"))
    out = {
        key: value for key, value in schema.items() if key not in ("additionalProperties", "not")
    }
    # Gemini's schema grew out of OpenAPI 3.0: no `const`, and `type` is one word, not a list.
    if "const" in out:
        out["enum"] = [out.pop("const")]
    if isinstance(out.get("type"), list):
        kinds = out.pop("type")
        rest = {key: value for key, value in out.items() if key != "description"}
        words = {"description": out["description"]} if "description" in out else {}
        return {**words, "anyOf": [_of_kind(rest, kind) for kind in kinds]}
    return out


def _of_kind(schema: Schema, kind: str) -> Schema:
    return {"type": "null"} if kind == "null" else {**schema, "type": kind}


def _bounds_to_words(schema: Schema, keep: tuple[str, ...] = ()) -> Schema:
    said = [f"{key} {schema[key]}" for key in _BOUNDS if key in schema and key not in keep]
    if not said:
        return schema
    out = {key: value for key, value in schema.items() if key not in _BOUNDS or key in keep}
    words = f"({', '.join(said)})"
    out["description"] = f"{out['description']} {words}" if out.get("description") else words
    return out


def _map(schema: Any, change: Callable[[Schema], Schema]) -> Any:
    """Apply `change` to the schema and to every schema inside it."""
    if not isinstance(schema, dict):
        return schema
    out = dict(schema)
    for key in ("items", "additionalProperties", "not"):
        if key in out:
            out[key] = _map(out[key], change)
    for key in _BRANCHES:
        if key in out:
            out[key] = [_map(branch, change) for branch in out[key]]
    if "properties" in out:
        out["properties"] = {name: _map(v, change) for name, v in out["properties"].items()}
    return change(out)


_In = TypeVar("_In")
_Out = TypeVar("_Out")


_REMEMBERED = 256
"""How many results each function keeps: many sessions at once each have their own tools."""


def remembered(function: Callable[[_In], _Out]) -> Callable[[_In], _Out]:
    """Remember results by the identity of the argument, the newest ones: the tools of a session
    stay the same object.
    """
    known: dict[int, tuple[_In, _Out]] = {}

    def lookup(argument: _In) -> _Out:
        found = known.get(id(argument))
        if found is None:
            # The argument is kept too, so that its id cannot be given to another object.
            found = known[id(argument)] = (argument, function(argument))
            if len(known) > _REMEMBERED:
                # The oldest goes. Sessions that are in use add theirs again at the next request.
                del known[next(iter(known))]
        return found[1]

    return lookup
