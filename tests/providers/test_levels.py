"""Every model of the catalogue at every thinking level: it is told only words that it takes.

What a model takes is judged by `tests.support.legality.efforts`, which does not know our catalogue.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tests.support.example_count import cases
from tests.support.legality.efforts import accepted
from weft.messages import ChatMessage, Text
from weft.providers.anthropic.encode import encode as anthropic
from weft.providers.base import ModelInfo, ModelRequest, ToolSpec
from weft.providers.catalogue import CatalogueModel, CatalogueProvider, ModelCatalogue, shipped
from weft.providers.google.encode import encode as google
from weft.providers.ollama.encode import encode as ollama
from weft.providers.openai.encode import encode as openai
from weft.providers.openai_chat.encode import COMPATIBLE, OPENAI
from weft.providers.openai_chat.encode import encode as chat
from weft.providers.openai_chat.stream import DIALECTS
from weft.thinking_levels import THINKING_LEVELS, ThinkingLevel
from weft.transport.proxy import target

MODELS = cases(
    pytest.param(info, id=f"{info.provider}:{info.name}")
    for provider in shipped().providers
    for info in shipped().models(provider)
)
THINKING = [case for case in MODELS if case.values[0].thinks]  # type: ignore[union-attr]  # foreign
TOOL = ToolSpec(name="read", description="Reads.", schema={"type": "object"})
HAND_MADE: dict[str, Callable[[ModelRequest, ModelInfo], dict[str, Any]]] = {
    "anthropic": anthropic,
    "openai": openai,
    "google": google,
    "ollama": ollama,
}


def vendor_of(info: ModelInfo) -> tuple[str, str]:
    """Whose model it is, and its name there; a cloud passes on what the vendor takes."""
    if info.provider == "azure":
        return "openai", info.name
    if info.provider in ("bedrock", "vertex"):
        name = info.name.rpartition("anthropic.")[2]
        return ("anthropic" if name.startswith("claude") else "google"), name
    return info.provider, info.name


def body_of(info: ModelInfo, level: ThinkingLevel, *tools: ToolSpec) -> dict[str, Any]:
    """A request as the vendor's own server would get it."""
    said = (ChatMessage(role="user", parts=(Text(text="hi"),)),)
    request = ModelRequest(model=info.name, messages=said, thinking=level, tools=tools)
    encode = HAND_MADE.get(vendor_of(info)[0])
    if encode is not None:
        return encode(request, info)
    url = shipped().vendor(info.provider).url
    dialect = OPENAI if not url else DIALECTS.get(target(url).host, COMPATIBLE)
    return chat(request, info, dialect)


def words_in(info: ModelInfo, body: dict[str, Any]) -> dict[str, Any]:
    """All that a body says about how hard to think, by the vendor's own names."""
    config = body.get("generationConfig", {}).get("thinkingConfig", {})
    thinking = {k: v for k, v in body.get("thinking", {}).items() if k != "display"}
    said = {
        "effort": body.get("output_config", {}).get("effort")
        or body.get("reasoning", {}).get("effort")
        or body.get("reasoning_effort"),
        "thinking": thinking or None,
        "level": config.get("thinkingLevel"),
        "budget": config.get("thinkingBudget"),
        "think": body.get("think"),
    }
    return {name: value for name, value in said.items() if value is not None}


# One test for a model, not one for each of its levels: two thousand tests cost pytest four seconds.
@pytest.mark.parametrize("info", MODELS)
def test_a_model_is_told_only_what_it_takes(info: ModelInfo) -> None:
    for level in THINKING_LEVELS:
        check_words(info, level, words_in(info, body_of(info, level)))


def check_words(info: ModelInfo, level: ThinkingLevel, words: dict[str, Any]) -> None:
    takes = accepted(*vendor_of(info))
    for name in ("effort", "level"):
        assert words.get(name) in (None, *takes), level
    budgets = {"gemini-2.5-pro": (128, 32_768), "gemini-2.5-flash-lite": (512, 24_576)}
    if words.get("budget"):
        least, most = budgets.get(info.name, (1, 24_576))
        assert least <= words["budget"] <= most, level
    if isinstance(words.get("think"), str):
        assert words["think"] in takes, level
    if level != "off" and info.thinks:
        assert words.get("thinking", {}).get("type") not in ("disabled", "between_tools"), level
        assert "none" not in words.values(), level


@pytest.mark.parametrize("info", THINKING)
def test_each_level_of_a_model_is_told_and_differs_from_the_others(info: ModelInfo) -> None:
    """Except that a model before Claude 5 is told not to think by being told nothing."""
    told = [str(words_in(info, body_of(info, level))) for level in info.levels]
    silent = "{}" if vendor_of(info)[0] == "anthropic" and info.default_level == "off" else None
    assert len(set(told)) == len(told)
    assert [level for level, words in zip(info.levels, told, strict=True) if words == "{}"] == (
        ["off"] if silent else []
    )


@pytest.mark.parametrize("info", MODELS)
def test_the_vendors_default_is_asked_for_by_saying_nothing(info: ModelInfo) -> None:
    """Claude's `adaptive` is the same as saying nothing; in it thoughts are asked to be shown."""
    words = words_in(info, body_of(info, "default"))
    assert words in ({}, {"thinking": {"type": "adaptive"}})
    assert info.default_level in (None, *info.levels)


@pytest.mark.parametrize("info", MODELS)
def test_a_model_that_cannot_be_switched_off_thinks_least(info: ModelInfo) -> None:
    off = words_in(info, body_of(info, "off"))
    if info.levels and "off" not in info.levels:
        assert off == words_in(info, body_of(info, info.levels[0]))
        assert off


# Foreign.
@pytest.mark.parametrize("info", [case for case in MODELS if case.values[0].calls_tools])  # type: ignore[union-attr]
def test_beside_tools_too(info: ModelInfo) -> None:
    takes = accepted(*vendor_of(info))
    for level in THINKING_LEVELS:
        words = words_in(info, body_of(info, level, TOOL))
        assert words.get("effort") in (None, *takes), level


def test_levels_stand_in_the_one_order() -> None:
    for provider in shipped().providers:
        for info in shipped().models(provider):
            assert list(info.levels) == sorted(info.levels, key=THINKING_LEVELS.index)
            assert "default" not in info.levels


@pytest.mark.parametrize(
    ("provider", "name", "levels"),
    [
        ("openai", "gpt-5.2-pro", ("medium", "high")),
        ("openai", "gpt-9", ("medium", "high")),
        ("google", "gemini-3-pro-preview", ("low", "high")),
        ("anthropic", "claude-haiku-6", ("low", "medium", "high")),
        (
            "anthropic",
            "claude-sonnet-4-5-20250929",
            shipped().info("anthropic", "claude-sonnet-4-5").levels,
        ),
        ("ollama", "qwen3-vl:8b", ()),
        ("openai-chat", "gpt-6-sol", ("off", "low", "medium", "high", "xhigh")),
        ("openai-chat", "a-name-of-ones-own", ()),
    ],
)
def test_of_a_model_that_is_not_listed_only_common_levels_are_assumed(
    provider: str, name: str, levels: tuple[ThinkingLevel, ...]
) -> None:
    info = shipped().info(provider, name)
    assert (info.levels, info.thinks) == (levels, bool(levels))


def test_what_the_user_knows_of_a_model_counts_as_it_stands() -> None:
    own = ModelCatalogue(
        {"acme": CatalogueProvider(models=msgspec.Raw(b'{"a":{"levels":["low"]}}'))},
        {"acme": {"a": CatalogueModel(levels=("off", "max"))}},
    )
    assert own.info("acme", "a").levels == ("off", "max")
