"""What is known of models."""

from __future__ import annotations

import pytest

from weft.errors import UsageError
from weft.messages import Usage
from weft.providers.catalogue import Catalogue, Entry, Vendor, shipped, split
from weft.providers.vendors import ADAPTERS


def test_every_provider_has_a_default_that_can_be_used() -> None:
    catalogue = shipped()
    for provider in (*ADAPTERS, "local"):
        info = catalogue.resolve(provider)
        assert info.context_window >= 4_096
        assert 0 < info.max_output_tokens < info.context_window
        assert info.name == catalogue.default(provider)


def test_the_defaults_are_the_promised_ones() -> None:
    catalogue = shipped()
    assert catalogue.default("anthropic") == "claude-sonnet-4-6"
    assert catalogue.default("openai") == "gpt-5"
    assert catalogue.default("google") == "gemini-2.5-flash"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("anthropic:claude-sonnet-4-6", ("anthropic", "claude-sonnet-4-6")),
        ("anthropic/claude-sonnet-4-6", ("anthropic", "claude-sonnet-4-6")),
        ("ollama:qwen3:8b", ("ollama", "qwen3:8b")),
        ("openrouter:anthropic/claude-opus-4.6", ("openrouter", "anthropic/claude-opus-4.6")),
        ("local:/models/x.gguf", ("local", "/models/x.gguf")),
        ("anthropic", ("anthropic", "")),
    ],
)
def test_a_name_is_cut_at_its_first_mark(name: str, expected: tuple[str, str]) -> None:
    assert split(name) == expected


def test_a_dated_name_has_the_price_and_an_unknown_relative_has_none() -> None:
    catalogue = shipped()
    dated = catalogue.info("anthropic", "claude-sonnet-4-5-20250929")
    assert (dated.price_input, dated.price_output) == (3, 15)
    assert (dated.price_cache_read, dated.price_cache_write) == (0.3, 3.75)
    relative = catalogue.info("openai", "gpt-5-superduper")
    assert relative.price_input is None
    assert relative.thinks
    assert relative.cost(Usage(input_tokens=1)) is None


def test_the_longest_known_name_wins() -> None:
    info = shipped().info("openai", "gpt-5-mini-2025-08-07")
    assert info.price_input == 0.25


def test_what_runs_at_home_costs_nothing() -> None:
    for name in ("ollama:whatever", "local:/x.gguf", "ollama:qwen2.5-coder:7b"):
        assert shipped().resolve(name).cost(Usage(input_tokens=5, output_tokens=5)) == 0.0


def test_config_adds_and_corrects() -> None:
    own = Entry(window=1_000, output=100, price=(1.0, 2.0))
    catalogue = Catalogue(
        {"acme": Vendor(default="a", models={"a": Entry(window=5_000)})},
        {"acme": {"a": own, "b": own}},
    )
    assert catalogue.info("acme", "a").context_window == 1_000
    assert [info.name for info in catalogue.models("acme")] == ["a", "b"]
    assert catalogue.info("acme", "b").price_cache_read is None


def test_an_unknown_provider_has_no_default_but_can_be_used() -> None:
    with pytest.raises(UsageError, match="name a model of 'nobody'"):
        shipped().resolve("nobody")
    assert shipped().resolve("nobody:x").price_input is None


def test_chat_completions_knows_the_models_of_openai() -> None:
    assert shipped().info("openai-chat", "gpt-4.1").context_window == 1_000_000
