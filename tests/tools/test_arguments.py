"""Schemas that every vendor takes, and arguments that models really send."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Annotated, Any, Literal

import jsonschema  # type: ignore[import-untyped]  # it has no stubs
import msgspec
import pytest
from msgspec import Meta

from weft.errors import BadArguments, UsageError
from weft.tools import ALL, CORE, INDEX_TOOLS, ToolArguments, builtin_tools, schema_of
from weft.tools.arguments import parse
from weft.tools.builtin.describe import describe
from weft.tools.builtin.registry import (
    MANIFEST,
    NAVIGATION_HOMES,
    NAVIGATION_MANIFEST,
    WEB_HOMES,
    WEB_MANIFEST,
)


class Inner(ToolArguments, frozen=True, kw_only=True):
    kind: Literal["a", "b"] = "a"
    title: str = ""


class Outer(ToolArguments, frozen=True, kw_only=True):
    """Not for the model."""

    path: Annotated[str, Meta(description="A path.")]
    level: Literal[1, 2] = 1
    items: list[Inner] = []
    maybe: int | None = 5


class Endless(msgspec.Struct):
    next: list[Endless] = []


def keys(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value) | set().union(*map(keys, value.values()))
    return set().union(*map(keys, value)) if isinstance(value, list) else set()


def test_a_schema_is_one_object_without_references() -> None:
    schema = schema_of(Outer)
    assert schema["type"] == "object"
    assert schema["required"] == ["path"]
    assert schema["additionalProperties"] is False
    assert not keys(schema) & {"$ref", "$defs", "discriminator"}
    assert "description" not in schema
    assert schema["properties"]["path"] == {"type": "string", "description": "A path."}
    assert schema["properties"]["level"] == {"type": "integer", "enum": [1, 2], "default": 1}
    inner = schema["properties"]["items"]["items"]
    assert inner["properties"]["kind"]["type"] == "string"
    assert "title" in inner["properties"]
    assert "title" not in inner


def test_a_type_that_contains_itself_is_refused() -> None:
    with pytest.raises(UsageError, match="contains itself"):
        schema_of(Endless)


def test_every_built_in_tool_has_a_valid_schema_and_a_description() -> None:
    tools = builtin_tools()
    assert set(tools) == ALL
    assert CORE < ALL
    for name, tool in tools.items():
        jsonschema.Draft202012Validator.check_schema(tool.schema)
        assert tool.name == name
        assert tool.schema["type"] == "object"
        assert not keys(tool.schema) & {"$ref", "$defs"}
        assert len(tool.description) > 20
        assert all("description" in each for each in tool.schema["properties"].values())
    pure = {name for name, tool in tools.items() if tool.effect == "pure"}
    looks = {"read", "list", "find", "grep", *INDEX_TOOLS}
    decisions = {"decision_log", "decision_query", "decision_update"}
    assert pure == {*looks, *decisions, "todo", "ask", "shell_output", "wait_for"}
    assert {name for name, tool in tools.items() if tool.effect == "checkable"} == {
        "write",
        "edit",
        "multi_edit",
        "apply_patch",
    }


def test_the_manifest_says_what_the_tools_say() -> None:
    """After a change to a tool: `python -m weft.tools.builtin.describe` writes it anew."""
    with open(MANIFEST, "rb") as file:
        assert file.read() == describe()
    with open(NAVIGATION_MANIFEST, "rb") as file:
        assert file.read() == describe(NAVIGATION_HOMES)
    with open(WEB_MANIFEST, "rb") as file:
        assert file.read() == describe(WEB_HOMES)


@pytest.mark.process
def test_reading_of_the_tools_loads_none_of_their_code() -> None:
    script = (
        "import sys, weft.tools; weft.tools.builtin_tools(); "
        "print([name for name in ('read', 'edit', 'grep', 'shell', 'todo') if "
        "f'weft.tools.{name}' in sys.modules])"
    )
    path = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, "-c", script], env={"PYTHONPATH": path}, capture_output=True, check=True
    )
    assert done.stdout == b"[]\n"


def test_a_null_for_what_may_be_left_out_counts_as_left_out() -> None:
    given = {"path": "x", "level": None, "items": [{"kind": None, "title": "t"}], "maybe": None}
    parsed = parse(Outer, given)
    assert parsed == Outer(path="x", items=[Inner(title="t")], maybe=None) or parsed.maybe == 5
    assert parse(Outer, {"path": "x", "maybe": None}).maybe is None


def test_numbers_and_truths_written_as_text_are_taken() -> None:
    assert parse(Outer, {"path": "x", "level": 2, "maybe": "7"}).maybe == 7


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({}, "missing required field `path`"),
        ({"path": None}, "`path`|null"),
        ({"path": 5}, "Expected `str`"),
        ({"path": "x", "paht": "y"}, "unknown field `paht`"),
        ({"path": "x", "items": [{"kind": "c"}]}, r"\$.items\[0\].kind"),
    ],
)
def test_what_is_wrong_is_said_with_what_would_be_right(args: dict[str, Any], words: str) -> None:
    with pytest.raises(BadArguments, match=words) as caught:
        parse(Outer, args)
    assert "The tool takes: path, [level], [items], [maybe]" in str(caught.value)
