"""Schemas on their way to the vendors."""

from __future__ import annotations

from typing import Annotated, Literal

import jsonschema  # type: ignore[import-untyped]  # no stubs are shipped
import msgspec
import pytest

from weft.errors import UsageError
from weft.providers.schema import as_object, closed, for_gemini, remembered, strict, tidy


class Edit(msgspec.Struct):
    """One replacement."""

    old: Annotated[str, msgspec.Meta(min_length=1)]
    mode: Literal["all", "first"] = "first"


class Args(msgspec.Struct, forbid_unknown_fields=True):
    """Arguments."""

    title: str
    edits: list[Edit]
    limit: Annotated[int | None, msgspec.Meta(description="How many.")] = None


MADE = msgspec.json.schema(Args)


def test_a_schema_made_from_types_loses_references_titles_and_defaults_but_no_property() -> None:
    found = tidy(MADE)
    assert set(found["properties"]) == {"title", "edits", "limit"}
    edit = found["properties"]["edits"]["items"]
    assert edit["properties"]["mode"] == {"type": "string", "enum": ["all", "first"]}
    text = msgspec.json.encode(found)
    for gone in (b"$ref", b"$defs", b'"default"', b'"Args"'):
        assert gone not in text
    jsonschema.Draft202012Validator.check_schema(found)


def test_a_schema_that_refers_to_itself_is_refused() -> None:
    loop = {"$ref": "#/$defs/A", "$defs": {"A": {"properties": {"a": {"$ref": "#/$defs/A"}}}}}
    with pytest.raises(UsageError, match="refers to itself"):
        tidy(loop)
    with pytest.raises(UsageError, match="does not define"):
        tidy({"$ref": "#/$defs/B"})


def test_the_same_definition_may_be_used_twice_side_by_side() -> None:
    twice = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/E"}, "b": {"$ref": "#/$defs/E"}},
        "$defs": {"E": {"type": "string"}},
    }
    assert tidy(twice)["properties"] == {"a": {"type": "string"}, "b": {"type": "string"}}


def test_branches_at_the_top_become_one_object() -> None:
    union = {
        "anyOf": [
            {"type": "object", "properties": {"a": {}, "k": {}}, "required": ["a", "k"]},
            {"type": "object", "properties": {"b": {}, "k": {}}, "required": ["b", "k"]},
        ]
    }
    assert as_object(union) == {
        "type": "object",
        "properties": {"a": {}, "k": {}, "b": {}},
        "required": ["k"],
    }


def test_bounds_become_words_and_objects_are_closed() -> None:
    found = closed(MADE)
    edit = found["properties"]["edits"]["items"]
    assert edit["additionalProperties"] is False
    assert edit["properties"]["old"] == {"type": "string", "description": "(minLength 1)"}


def test_only_a_schema_whose_properties_are_all_required_is_strict() -> None:
    assert strict(MADE) is None
    tight = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    assert strict(tight) == {**tight, "additionalProperties": False}


def test_gemini_gets_its_subset() -> None:
    found = for_gemini(
        {
            "type": "object",
            "properties": {
                "a": {"type": ["string", "null"], "description": "A."},
                "b": {"const": 3},
                "c": {"type": "integer", "exclusiveMinimum": 0, "minimum": 1},
            },
            "additionalProperties": False,
        }
    )
    assert found == {
        "type": "object",
        "properties": {
            "a": {"description": "A.", "anyOf": [{"type": "string"}, {"type": "null"}]},
            "b": {"type": "integer", "enum": [3]},
            "c": {"type": "integer", "minimum": 1, "description": "(exclusiveMinimum 0)"},
        },
    }


def test_a_result_is_remembered_by_identity_and_only_a_few() -> None:
    seen: list[list[int]] = []

    @remembered
    def look(value: list[int]) -> int:
        seen.append(value)
        return len(seen)

    one = [1]
    assert look(one) == look(one) == 1
    for _ in range(256):
        look([1])
    assert look(one) == 258
