"""What the four judges share: plain checks of plain data."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Container, Iterable
from functools import cache
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # no stubs are shipped

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
PICTURES = {"image/png", "image/jpeg", "image/gif", "image/webp"}
PDF = "application/pdf"


class Report:
    """Collects what is wrong."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def say(self, place: str, what: str) -> None:
        self.found.append(f"{place}: {what}")

    def need(self, holds: object, place: str, what: str) -> bool:
        """Note `what` unless it holds; says whether it does."""
        if not holds:
            self.say(place, what)
        return bool(holds)

    def known_keys(self, value: dict[str, Any], known: Iterable[str], place: str) -> None:
        for key in sorted(set(value) - set(known)):
            self.say(place, f"unknown field {key!r}")

    def unique(self, values: list[Any], place: str, what: str) -> None:
        for value in sorted({str(v) for v in values if values.count(v) > 1}):
            self.say(place, f"{what} {value!r} is used twice")


def is_blank(text: object) -> bool:
    """Not a string, or one without a visible character."""
    return not isinstance(text, str) or not text.strip()


def is_base64(data: object) -> bool:
    if not isinstance(data, str) or not data:
        return False
    try:
        base64.b64decode(data, validate=True)
    except ValueError:
        return False
    return True


def is_object_text(text: object) -> bool:
    """A string that holds one JSON object."""
    if not isinstance(text, str):
        return False
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def is_data_url(address: object, types: Container[str] = PICTURES) -> bool:
    if not isinstance(address, str):
        return False
    found = re.fullmatch(r"data:([a-z]+/[a-z0-9.+-]+);base64,(.*)", address, re.DOTALL)
    return bool(found) and found is not None and found[1] in types and is_base64(found[2])


def check_file(report: Report, part: dict[str, Any], place: str) -> None:
    """A PDF as OpenAI takes it: its content as an address, and a name."""
    report.need(is_data_url(part.get("file_data"), (PDF,)), place, "bad file_data")
    report.need(not is_blank(part.get("filename")), place, "filename is missing")


def check_schema(report: Report, schema: object, place: str) -> None:
    """A valid JSON Schema whose top is an object, without references."""
    if not isinstance(schema, dict):
        report.say(place, "the schema is no object")
        return
    text = json.dumps(schema)
    for wrong in _schema_errors(text):
        report.say(place, wrong)
    report.need(schema.get("type") == "object", place, "the top must have type object")
    report.need('"$ref"' not in text, place, "references are not resolved")


# Thousands of requests carry the same few tools, and one validation takes milliseconds.
@cache
def _schema_errors(text: str) -> tuple[str, ...]:
    try:
        jsonschema.Draft202012Validator.check_schema(json.loads(text))
    except jsonschema.SchemaError as error:
        return (f"not a valid JSON Schema: {error.message}",)
    return ()


def objects_in(schema: Any) -> Iterable[dict[str, Any]]:
    """Every schema inside a schema that describes an object."""
    if not isinstance(schema, dict):
        return
    if schema.get("type") == "object" or "properties" in schema:
        yield schema
    for value in schema.get("properties", {}).values():
        yield from objects_in(value)
    for key in ("items", "additionalProperties", "not"):
        yield from objects_in(schema.get(key))
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        for branch in schema.get(key, []):
            yield from objects_in(branch)


_NOT_PLAIN = ("oneOf", "allOf", "not", "if", "patternProperties", "prefixItems")


def check_plain(report: Report, schema: Any, place: str) -> None:
    """What vendors demand of a schema that an answer is held to."""
    if not isinstance(schema, dict):
        return
    for word in _NOT_PLAIN:
        report.need(word not in schema, place, f"{word} is not permitted")
    for value in (*schema.get("properties", {}).values(), schema.get("items")):
        check_plain(report, value, place)
    for branch in schema.get("anyOf", []):
        check_plain(report, branch, place)


def check_strict(report: Report, schema: Any, place: str) -> None:
    """What OpenAI demands of a schema that claims to be strict."""
    check_plain(report, schema, place)
    for found in objects_in(schema):
        report.need(
            found.get("additionalProperties") is False,
            place,
            "strict: additionalProperties is open",
        )
        report.need(
            set(found.get("required", [])) == set(found.get("properties", {})),
            place,
            "strict: every property must be required",
        )
    report.need('"default"' not in json.dumps(schema), place, "strict: no defaults")
