"""The prefix of a request: when two are the same without a look at their bytes."""

from __future__ import annotations

import msgspec
import pytest

from weft.context import PrefixTool, PromptPrefix, is_same_prefix, render_prefix

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}


def prefix(**more: object) -> PromptPrefix:
    tools = (PrefixTool(name="read", description="Reads.", schema=SCHEMA),)
    plain = PromptPrefix(system="You are Weft.", tools=tools, zones={"memory": (0, 3)})
    return msgspec.structs.replace(plain, **more)


def test_equal_prefixes_with_the_very_schemas_are_the_same() -> None:
    assert is_same_prefix(prefix(), prefix())
    assert render_prefix(prefix()).id == render_prefix(prefix()).id


@pytest.mark.parametrize(
    "more",
    [
        {"system": "You are another."},
        {"tools": ()},
        {"tools": (PrefixTool(name="read", description="Reads all.", schema=SCHEMA),)},
        {"tools": (PrefixTool(name="look", description="Reads.", schema=SCHEMA),)},
        {"instructions": (0, 3)},
        {"zones": {"memory": (0, 4)}},
        {"zones": msgspec.UNSET},
    ],
)
def test_what_differs_is_another_prefix(more: dict[str, object]) -> None:
    assert not is_same_prefix(prefix(), prefix(**more))
    assert render_prefix(prefix()).id != render_prefix(prefix(**more)).id


def test_of_schemas_that_are_only_equal_the_bytes_have_to_tell() -> None:
    turned = {"properties": {"path": {"type": "string"}}, "type": "object"}
    tools = (PrefixTool(name="read", description="Reads.", schema=turned),)
    assert turned == SCHEMA
    assert not is_same_prefix(prefix(), prefix(tools=tools))
    assert render_prefix(prefix()).id != render_prefix(prefix(tools=tools)).id
