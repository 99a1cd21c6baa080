"""`provider:model[:effort]`: one parser for every place where a model is named."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.messages import ModelName, parse_model_name
from weft.thinking_levels import THINKING_LEVELS, ThinkingLevel

pieces = st.sampled_from(["a", "m", "8b", "free", "high", "off", "default", "max", "v1", "0", ""])
texts = st.lists(st.tuples(pieces, st.sampled_from(":/")), max_size=6).map(
    lambda found: "".join(word + mark for word, mark in found)
)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("anthropic:claude-sonnet-5-5", ModelName("anthropic", "claude-sonnet-5-5")),
        ("anthropic/claude-sonnet-5-5", ModelName("anthropic", "claude-sonnet-5-5")),
        ("anthropic:claude-sonnet-5-5:high", ModelName("anthropic", "claude-sonnet-5-5", "high")),
        ("anthropic/claude-sonnet-5-5:off", ModelName("anthropic", "claude-sonnet-5-5", "off")),
        ("openai:gpt-5:default", ModelName("openai", "gpt-5", "default")),
        ("ollama:qwen3:8b", ModelName("ollama", "qwen3:8b")),
        ("ollama:qwen3:8b:max", ModelName("ollama", "qwen3:8b", "max")),
        ("openrouter:qwen/qwen3:free", ModelName("openrouter", "qwen/qwen3:free")),
        ("openrouter/qwen/qwen3:free:low", ModelName("openrouter", "qwen/qwen3:free", "low")),
        ("bedrock:anthropic.claude-v1:0", ModelName("bedrock", "anthropic.claude-v1:0")),
        ("bedrock:claude-v1:0:xhigh", ModelName("bedrock", "claude-v1:0", "xhigh")),
        ("local:/models/x.gguf", ModelName("local", "/models/x.gguf")),
        ("anthropic:claude:High", ModelName("anthropic", "claude:High")),
        ("openai:gpt-5/high", ModelName("openai", "gpt-5/high")),
        # A level needs a model that it is of.
        ("anthropic:high", ModelName("anthropic", "high")),
        ("high", ModelName("high", "")),
        ("anthropic", ModelName("anthropic", "")),
        ("", ModelName("", "")),
        (":m", ModelName(":m", "")),
        ("a:m:low:high", ModelName("a", "m", "high")),
    ],
)
def test_the_last_part_is_an_effort_only_if_it_is_a_level(text: str, name: ModelName) -> None:
    assert parse_model_name(text) == name


@given(text=texts)
def test_a_name_that_is_written_and_read_again_is_the_same(text: str) -> None:
    name = parse_model_name(text)
    if name.model:
        assert parse_model_name(str(name)) == name
        assert parse_model_name(name.name) == msgspec.structs.replace(name, effort=None)


@given(text=texts, level=st.sampled_from(THINKING_LEVELS))
def test_an_effort_behind_a_name_changes_nothing_else(text: str, level: ThinkingLevel) -> None:
    name = parse_model_name(text)
    if name.model:
        assert parse_model_name(f"{name.name}:{level}") == msgspec.structs.replace(
            name, effort=level
        )
