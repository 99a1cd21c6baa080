"""Schemas of strangers: every vendor's own form is made of them without an error, and what they say
of arguments stays."""

from __future__ import annotations

import json
from typing import Any

import pytest

from weft.mcp.tool_pins import read_tool
from weft.mcp.tool_schema import MOST_BYTES, has_plain_names, plain_schema
from weft.providers.schema import as_object, for_gemini, strict

TEXT = {"type": "string"}
LOOP = {"$ref": "#/$defs/loop"}
NODE = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}


def properties(**found: Any) -> dict[str, Any]:
    return {"type": "object", "properties": found}


def nested(levels: int) -> dict[str, Any]:
    found: dict[str, Any] = dict(TEXT)
    for _ in range(levels):
        found = properties(x=found)
    return found


def doubled(levels: int) -> dict[str, Any]:
    """A few lines that stand for more schemas than there is memory."""
    steps = [f"#/$defs/{number + 1}" for number in range(levels)]
    found: dict[str, Any] = {
        str(number): properties(left={"$ref": step}, right={"$ref": step})
        for number, step in enumerate(steps)
    }
    return {**properties(a={"$ref": "#/$defs/0"}), "$defs": {**found, str(levels): TEXT}}


HOSTILE: dict[str, dict[str, Any]] = {
    "properties that are a list": {"type": "object", "properties": ["a"]},
    "properties that are a text": {"type": "object", "properties": "a"},
    "a property that is a text": properties(a="string"),
    "a property that is nothing": properties(a=None),
    "a text that is required": {**properties(a={}), "required": "a"},
    "objects that are required": {**properties(a={}), "required": [1, {}]},
    "what it requires and has not": {**properties(a={}), "required": ["b"]},
    "what it requires and has no properties": {"type": "object", "required": ["b"]},
    "a schema inside of itself": {**properties(a=NODE), "$defs": {"node": NODE}},
    "the whole inside of itself": properties(a={"$ref": "#"}),
    "a reference to itself": {**properties(a=LOOP), "$defs": {"loop": LOOP}},
    "an address": properties(a={"$ref": "http://evil.example/schema.json"}),
    "a file": properties(a={"$ref": "file:///etc/passwd"}),
    "a reference to nothing": properties(a={"$ref": "#/$defs/nothing"}),
    "a reference to a text": {**properties(a={"$ref": "#/$defs/a"}), "$defs": {"a": "x"}},
    "a reference that is a number": properties(a={"$ref": 7}),
    "a reference that is a list": properties(a={"$ref": []}),
    "an anchor": properties(a={"$ref": "#a"}),
    "definitions that are a list": {**properties(), "$defs": [1]},
    "branches that are an object": {**properties(), "anyOf": {"a": 1}},
    "branches that are texts": {**properties(), "anyOf": ["x"]},
    "branches that are a number": properties(a={"anyOf": 7}),
    "no branches": properties(a={"anyOf": []}),
    "choices that are a text": properties(a={"enum": "abc"}),
    "choices that are objects": properties(a={"enum": [{}, []]}),
    "no choices": properties(a={"type": "string", "enum": []}),
    "a type that is none": properties(a={"type": "strng"}),
    "a type that is a number": properties(a={"type": 7}),
    "no types": properties(a={"type": []}),
    "a description that is a number": properties(a={"description": 7, "minLength": 1}),
    "bounds that are texts": properties(a={"type": "string", "minLength": "1", "maximum": True}),
    "deeper than anyone needs": nested(400),
    "more than any memory holds": doubled(40),
}  # fmt: skip


@pytest.mark.parametrize("attack", HOSTILE)
def test_every_vendor_takes_what_is_made_of_a_schema(attack: str) -> None:
    made = read_tool({"name": "t", "inputSchema": HOSTILE[attack]}).schema
    for change in (as_object, for_gemini, strict):
        change(made)
    assert isinstance(made["properties"], dict)
    assert set(made.get("required", ())) <= made["properties"].keys()
    written = json.dumps(made)
    assert "$ref" not in written
    assert "evil.example" not in written
    assert len(written) <= MOST_BYTES


def test_a_chain_of_references_that_all_arguments_take_is_not_followed_for_each() -> None:
    long = 800
    chain = {f"d{each}": {"$ref": f"#/$defs/d{each + 1}"} for each in range(long)}
    uses = {f"a{each}": {"$ref": "#/$defs/d0"} for each in range(long)}
    looks = 0

    class Counted(dict[str, Any]):
        def get(self, key: str, default: Any = None) -> Any:
            nonlocal looks
            looks += 1
            return super().get(key, default)

    plain_schema({**properties(**uses), "$defs": Counted(chain)})
    assert looks < 5 * long


def test_what_a_schema_says_is_kept() -> None:
    said = {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "what", "minLength": 1, "default": "x"},
            "many": {"type": "array", "items": {"type": ["string", "null"], "enum": ["a", None]}},
            "one": {"oneOf": [{"type": "integer", "minimum": 0}, {"const": "all"}]},
            "map": {"type": "object", "additionalProperties": TEXT},
        },
        "required": ["text"],
        "additionalProperties": False,
    }
    assert plain_schema(said) == said


def test_a_reference_is_put_in_its_place_and_ends_where_it_comes_again() -> None:
    said = {
        **properties(
            tree={"$ref": "#/$defs/node", "description": "the first"},
            same={"$ref": "#/properties/text"},
            text=TEXT,
        ),
        "$defs": {"node": NODE},
    }
    again = {"type": "object"}
    assert plain_schema(said) == properties(
        tree={"type": "object", "description": "the first", "properties": {"next": again}},
        same=TEXT,
        text=TEXT,
    )


def test_places_of_a_list_as_they_were_written_before_are_branches() -> None:
    said = properties(pair={"type": "array", "items": [TEXT, {"type": "number"}]})
    made = plain_schema(said)["properties"]["pair"]
    assert made == {"type": "array", "items": {"anyOf": [TEXT, {"type": "number"}]}}


@pytest.mark.parametrize(
    ("schema", "plain"),
    [
        (properties(a_b=TEXT, **{"c.d-e": TEXT}), True),
        (properties(**{"$filter": TEXT}), False),
        (properties(**{"a b": TEXT}), False),
        (properties(**{"": TEXT}), False),
        (properties(**{"a" * 65: TEXT}), False),
        (properties(a=properties(**{"@type": TEXT})), False),
        (properties(a={"items": properties(**{"x/y": TEXT})}), False),
        ({**properties(), "anyOf": [properties(**{"x y": TEXT})]}, False),
    ],
)
def test_names_that_a_vendor_refuses_are_known(schema: dict[str, Any], plain: bool) -> None:
    assert has_plain_names(plain_schema(schema)) is plain
