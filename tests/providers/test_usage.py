"""Token usage: one reader for all vendors, and one factory for their providers."""

from __future__ import annotations

import ast
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.source_code import SRC, files_with, nodes
from weft.messages import Usage
from weft.providers.usage import (
    ANTHROPIC_USAGE,
    CHAT_USAGE,
    GEMINI_USAGE,
    MOST_TOKENS,
    OLLAMA_USAGE,
    RESPONSES_USAGE,
    UsageFields,
    read_usage,
)

PROTOCOLS = (ANTHROPIC_USAGE, RESPONSES_USAGE, CHAT_USAGE, GEMINI_USAGE, OLLAMA_USAGE)

REPORTS: list[tuple[UsageFields, dict[str, Any], Usage]] = [
    (
        ANTHROPIC_USAGE,
        {
            "input_tokens": 10,
            "output_tokens": 5,
            "cache_read_input_tokens": 100,
            "cache_creation_input_tokens": 20,
        },
        Usage(input_tokens=10, output_tokens=5, cache_read_tokens=100, cache_write_tokens=20),
    ),
    (
        RESPONSES_USAGE,
        {
            "input_tokens": 130,
            "output_tokens": 9,
            "input_tokens_details": {"cached_tokens": 100, "cache_write_tokens": 20},
            "output_tokens_details": {"reasoning_tokens": 4},
        },
        Usage(
            input_tokens=10,
            output_tokens=9,
            cache_read_tokens=100,
            cache_write_tokens=20,
            reasoning_tokens=4,
        ),
    ),
    (
        CHAT_USAGE,
        {"prompt_tokens": 110, "completion_tokens": 5, "prompt_cache_hit_tokens": 100},
        Usage(input_tokens=10, output_tokens=5, cache_read_tokens=100),
    ),
    (
        CHAT_USAGE,
        {
            "prompt_tokens": 110,
            "completion_tokens": 5,
            "prompt_tokens_details": {"cached_tokens": 60},
            "prompt_cache_hit_tokens": 60,
            "completion_tokens_details": {"reasoning_tokens": 2},
        },
        Usage(input_tokens=50, output_tokens=5, cache_read_tokens=60, reasoning_tokens=2),
    ),
    (
        GEMINI_USAGE,
        {
            "promptTokenCount": 110,
            "candidatesTokenCount": 5,
            "thoughtsTokenCount": 30,
            "cachedContentTokenCount": 100,
        },
        Usage(input_tokens=10, output_tokens=35, cache_read_tokens=100, reasoning_tokens=30),
    ),
    (
        OLLAMA_USAGE,
        {"prompt_eval_count": 10, "eval_count": 5},
        Usage(input_tokens=10, output_tokens=5),
    ),
]


@pytest.mark.parametrize(("fields", "report", "usage"), REPORTS)
def test_each_vendors_report_is_read(
    fields: UsageFields, report: dict[str, Any], usage: Usage
) -> None:
    assert read_usage(report, fields) == usage


@pytest.mark.parametrize(
    "odd", [None, True, "12", -1, 1.5e300, float("inf"), float("nan"), 2**70, [], {"a": 1}]
)
@pytest.mark.parametrize("fields", PROTOCOLS)
def test_a_count_that_is_no_count_is_taken_as_left_out(fields: UsageFields, odd: object) -> None:
    """A wrong report must not end an answer that was paid for."""
    assert read_usage({fields.input: odd, fields.output[0]: 3}, fields) == Usage(output_tokens=3)


def test_more_cached_tokens_than_prompt_tokens_are_no_debt() -> None:
    report = {"prompt_tokens": 5, "prompt_cache_hit_tokens": 9}
    assert read_usage(report, CHAT_USAGE) == Usage(cache_read_tokens=9)


names = st.sampled_from(
    [
        *(name for _, report, _ in REPORTS for name in report),
        *("cached_tokens", "cache_write_tokens", "reasoning_tokens"),
    ]
)
counts = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
reports = st.dictionaries(names, st.recursive(counts, lambda inner: st.dictionaries(names, inner)))


@given(report=reports, fields=st.sampled_from(PROTOCOLS))
def test_any_report_gives_counts_that_can_be_stored(
    report: dict[str, Any], fields: UsageFields
) -> None:
    usage = read_usage(report, fields)
    assert msgspec.json.decode(msgspec.json.encode(usage), type=Usage) == usage
    assert 0 <= usage.total_tokens <= 6 * MOST_TOKENS


def made_in_providers(name: str) -> set[str]:
    """The files below `providers/` that call something of this name."""
    folder = SRC / "providers"
    return {
        str(file.relative_to(folder))
        for file in files_with(f"{name}(", below=folder)
        for node in nodes(file)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
    }


def test_there_is_one_reader_and_one_factory() -> None:
    assert made_in_providers("Usage") == {"usage.py", "scripted.py"}, "a script's usage is made up"
    assert made_in_providers("HttpProvider") == {"vendors.py"}
