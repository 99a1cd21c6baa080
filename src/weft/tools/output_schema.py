"""Output schema of structured results: a JSON Schema or a Python type, and how a value is checked
against it.

A type is checked by msgspec and gives a value of that type; a plain JSON Schema is checked by
`jsonschema`, which is imported only then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from weft.errors import BadArguments, UsageError
from weft.tools.arguments import schema_of

WRAPPED = "value"
"""The one field of the object that carries a value which is no object itself."""
_MAX_SHOWN = 300
_FENCED = r"(?s)```[\w-]*[ \t]*\n(.*?)\n[ \t]*```"


class OutputSchema:
    """A schema, and the check that goes with it.

    `schema` is what the answer must fit; `arguments` is the same as an object, because tools and
    vendors take nothing else at the top.
    """

    def __init__(self, wanted: Any) -> None:
        """Take a JSON Schema, or a type: a Struct, dataclass, TypedDict, `list[int]`, a pydantic
        model, …

        Raises:
            UsageError: it is no schema, or cannot be described to a model.
        """
        self._type: Any = None if isinstance(wanted, Mapping) else wanted
        self._validator: Any = None
        if isinstance(wanted, Mapping):
            self.schema = dict(wanted)
            self._validator = _validator(self.schema)
        else:
            self.schema = _schema_of_type(wanted)
        _check_references(self.schema, _definitions(self.schema), ())
        self._is_object = self.schema.get("type") == "object"
        self.arguments = self.schema if self._is_object else _wrapped(self.schema)

    @property
    def has_open_maps(self) -> bool:
        """True when it speaks of objects whose keys are free, which vendors' own structured output
        cannot say.
        """
        return _has_open_maps(self.schema)

    def check(self, value: Any) -> Any:
        """The value, of the type where one was given.

        Raises:
            BadArguments: it does not fit; the message says where.
        """
        if self._validator is not None:
            _validate(self._validator, value)
            return value
        try:
            if _is_pydantic(self._type):
                return self._type.model_validate(value)
            return msgspec.convert(value, self._type, strict=False)
        except ValueError as error:  # msgspec's and pydantic's own errors are both of this kind
            raise BadArguments(_bounded(str(error))) from error

    def plain(self, value: Any) -> Any:
        """A checked value as JSON has it."""
        if _is_pydantic(self._type):
            return value.model_dump(mode="json")
        return msgspec.to_builtins(value)

    def from_arguments(self, arguments: Mapping[str, Any]) -> Any:
        """`check` for the object form."""
        if self._is_object:
            return self.check(dict(arguments))
        if set(arguments) != {WRAPPED}:
            raise BadArguments(f"there must be exactly one field, {WRAPPED!r}")
        return self.check(arguments[WRAPPED])

    def read(self, text: str) -> Any:
        """`check` for the JSON that a text is, or holds in a code block; the object form counts
        too.

        Raises:
            BadArguments: there is no JSON, or none that fits.
        """
        problem = BadArguments("the answer is not JSON")
        for found in _json_in(text):
            try:
                return self.check(found)
            except BadArguments as error:
                problem = error
            if not self._is_object and isinstance(found, dict) and set(found) == {WRAPPED}:
                try:
                    return self.check(found[WRAPPED])
                except BadArguments as error:
                    problem = error
        raise problem


def _json_in(text: str) -> Iterator[Any]:
    """What the whole text is as JSON, then each code block, the last one first."""
    # The last block first: models draft, explain, and give the final form at the end.
    for candidate in (text, *reversed(re.findall(_FENCED, text))):
        try:
            yield msgspec.json.decode(candidate.strip())
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            continue


# --- types -------------------------------------------------------------------------------


def _is_pydantic(wanted: Any) -> bool:
    """True for pydantic models, known by their face: we do not depend on them."""
    return hasattr(wanted, "model_json_schema") and hasattr(wanted, "model_validate")


def _schema_of_type(wanted: Any) -> dict[str, Any]:
    if _is_pydantic(wanted):
        return dict(wanted.model_json_schema())
    try:
        schema = schema_of(wanted)
    except (TypeError, msgspec.MsgspecError) as error:
        raise UsageError(
            f"{wanted!r} is not a schema: give a JSON Schema, or a type ({error})"
        ) from error
    if schema.get("type") != "object" and not schema["properties"]:
        del schema["properties"]
    return schema


# --- JSON Schemas ------------------------------------------------------------------------


def _wrapped(schema: dict[str, Any]) -> dict[str, Any]:
    """An object with the schema as its one field.

    Definitions stay at the top, where references look for them.
    """
    top: dict[str, Any] = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
    inner = {key: item for key, item in schema.items() if key not in ("$schema", "$id", *top)}
    return {
        "type": "object",
        "properties": {WRAPPED: inner},
        "required": [WRAPPED],
        "additionalProperties": False,
        **top,
    }


def _validator(schema: dict[str, Any]) -> Any:
    # Imported here: it takes 80 ms, and only plain JSON Schemas need it.
    from jsonschema import validators  # type: ignore[import-untyped]  # it has no types
    from jsonschema.exceptions import SchemaError  # type: ignore[import-untyped]  # as above
    from referencing import Registry

    kind = validators.validator_for(schema, default=validators.Draft202012Validator)
    try:
        kind.check_schema(schema)
    except SchemaError as error:
        raise UsageError(f"the schema is not a JSON Schema: {_bounded(error.message)}") from error
    # An empty registry: the default one fetches a remote `$ref` over the network.
    return kind(schema, registry=Registry())


def _validate(validator: Any, value: Any) -> None:
    from jsonschema.exceptions import best_match

    error = best_match(validator.iter_errors(value))
    if error is not None:
        where = error.json_path.removeprefix("$").removeprefix(".")
        raise BadArguments(_bounded(f"{where}: {error.message}" if where else error.message))


def _definitions(schema: dict[str, Any]) -> dict[str, Any]:
    return {
        f"#/{place}/{name}": found
        for place in ("$defs", "definitions")
        for name, found in schema.get(place, {}).items()
    }


def _check_references(schema: Any, definitions: dict[str, Any], inside: tuple[str, ...]) -> None:
    """Models need a schema without loops, in which every reference leads somewhere."""
    if isinstance(schema, list):
        for each in schema:
            _check_references(each, definitions, inside)
    if not isinstance(schema, dict):
        return
    reference = schema.get("$ref")
    if isinstance(reference, str):
        if reference in inside:
            raise UsageError(
                f"the schema refers to itself at {reference!r}, which models cannot use"
            )
        if reference not in definitions:
            raise UsageError(f"the schema refers to {reference!r}, which it does not define")
        _check_references(definitions[reference], definitions, (*inside, reference))
    for key, each in schema.items():
        if key not in ("$ref", "$defs", "definitions", "enum", "const", "default", "examples"):
            _check_references(each, definitions, inside)


def _has_open_maps(schema: Any) -> bool:
    if isinstance(schema, list):
        return any(_has_open_maps(each) for each in schema)
    if not isinstance(schema, dict):
        return False
    more = schema.get("additionalProperties", False)
    if more is True or isinstance(more, dict) or "patternProperties" in schema:
        return True
    return any(_has_open_maps(each) for each in schema.values())


def _bounded(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "…"
