"""Default models: which provider's model is taken, by the keys that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.source_code import SRC
from weft.config.api_keys import KeyFile, key_variables
from weft.config.models import ModelRegistry
from weft.config.paths import places
from weft.config.providers import NEVER_BY_KEY, default_providers
from weft.errors import UsageError
from weft.providers.catalogue import shipped


def registry(home: Path, **environ: str) -> ModelRegistry:
    return ModelRegistry(default_providers({"HOME": str(home), **environ}))


@pytest.mark.parametrize(
    ("variable", "model"),
    [
        ("ANTHROPIC_API_KEY", "anthropic:claude-sonnet-5-5"),
        ("ANTHROPIC_AUTH_TOKEN", "anthropic:claude-sonnet-5-5"),
        ("OPENAI_API_KEY", "openai:gpt-6.1-sol"),
        ("GEMINI_API_KEY", "google:gemini-3.8-flash"),
        ("GOOGLE_API_KEY", "google:gemini-3.8-flash"),
        ("OPENROUTER_API_KEY", "openrouter:anthropic/claude-sonnet-5.5"),
        ("DEEPSEEK_API_KEY", "deepseek:deepseek-v4-pro"),
        ("XAI_API_KEY", "xai:grok-4.7"),
        ("GROQ_API_KEY", "groq:openai/gpt-oss-120b"),
        ("MISTRAL_API_KEY", "mistral:mistral-medium-latest"),
        ("TOGETHER_API_KEY", "together:zai-org/GLM-5.3"),
        ("CEREBRAS_API_KEY", "cerebras:gpt-oss-120b"),
        ("FIREWORKS_API_KEY", "fireworks:accounts/fireworks/models/glm-5p3"),
        ("MOONSHOT_API_KEY", "moonshot:kimi-k3"),
        ("ZAI_API_KEY", "zai:glm-5.3"),
        ("MINIMAX_API_KEY", "minimax:MiniMax-M3"),
    ],
)
def test_one_key_picks_the_default_model_of_its_provider(
    tmp_path: Path, variable: str, model: str
) -> None:
    models = registry(tmp_path, **{variable: "k"})
    assert models.default() == model
    # The name leads to a model object that can be asked, with its address and its price.
    assert models.resolve(model).info.price_input is not None


def test_every_provider_with_a_key_variable_has_a_default(tmp_path: Path) -> None:
    for provider, variables in key_variables().items():
        if provider not in NEVER_BY_KEY:
            chosen = registry(tmp_path, **{variables[0]: "k"}).default()
            assert chosen == f"{provider}:{shipped().default(provider)}"


def test_a_saved_key_picks_its_provider_as_one_in_the_environment_does(tmp_path: Path) -> None:
    KeyFile(places({"HOME": str(tmp_path)}).config).keep("moonshot", "k")
    assert registry(tmp_path).default() == "moonshot:kimi-k3"


def test_with_several_keys_the_vendors_of_the_models_come_first(tmp_path: Path) -> None:
    models = registry(tmp_path, OPENROUTER_API_KEY="k", OPENAI_API_KEY="k", GROQ_API_KEY="k")
    assert models.default() == "openai:gpt-6.1-sol"


def test_without_any_key_it_is_the_embedded_model(tmp_path: Path) -> None:
    assert registry(tmp_path).default() == "local:smollm2"


# --- short names -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("sonnet", "anthropic:claude-sonnet-5-5"),
        ("opus", "anthropic:claude-opus-5-5"),
        ("haiku", "anthropic:claude-haiku-5-5"),
        ("gpt", "openai:gpt-6.1-sol"),
        ("flash", "google:gemini-3.8-flash"),
        ("grok", "xai:grok-4.7"),
        ("Sonnet", "anthropic:claude-sonnet-5-5"),
        ("anthropic:opus", "anthropic:claude-opus-5-5"),
        ("anthropic/sonnet", "anthropic:claude-sonnet-5-5"),
        ("claude-opus-4-8", "anthropic:claude-opus-4-8"),
        ("gpt-5.4-mini", "openai:gpt-5.4-mini"),
        ("claude-sonnet-4-5-20250929", "anthropic:claude-sonnet-4-5-20250929"),
        ("openai", "openai:gpt-6.1-sol"),
    ],
)
def test_bare_and_short_names_mean_a_model(tmp_path: Path, said: str, meant: str) -> None:
    assert registry(tmp_path, ANTHROPIC_API_KEY="k").normal(said) == meant


def test_an_effort_may_follow_a_short_name(tmp_path: Path) -> None:
    named = registry(tmp_path).named("opus:high")
    assert (named.name, named.effort) == ("anthropic:claude-opus-5-5", "high")


def test_a_short_name_means_the_provider_that_has_a_key(tmp_path: Path) -> None:
    models = registry(tmp_path, OPENROUTER_API_KEY="k")
    assert models.normal("sonnet") == "openrouter:anthropic/claude-sonnet-5.5"
    both = registry(tmp_path, OPENROUTER_API_KEY="k", ANTHROPIC_API_KEY="k")
    assert both.normal("sonnet") == "anthropic:claude-sonnet-5-5"


@pytest.mark.parametrize("said", ["sonet", "oppus", "claude-sonet-5-5"])
def test_an_unknown_bare_name_is_answered_with_the_nearest(tmp_path: Path, said: str) -> None:
    with pytest.raises(UsageError, match=f"unknown model '{said}'; did you mean") as caught:
        registry(tmp_path).named(said)
    assert "\n" not in str(caught.value)


def _version(name: str) -> tuple[int, ...]:
    found = re.search(r"\d+(?:[.-]\d{1,2})*", name)
    return tuple(int(part) for part in re.split("[.-]", found[0])) if found else ()


def test_short_names_mean_the_newest_listed_model_of_their_family() -> None:
    catalogue = shipped()
    for provider in catalogue.providers:
        for short, meant in catalogue.short(provider).items():
            names = [info.name for info in catalogue.models(provider) if short in info.name]
            newest = max(map(_version, names), default=())
            assert _version(meant) >= newest or short in ("claude", "gemini"), (short, meant)
            assert catalogue.knows(provider, meant)


def test_the_page_on_providers_lists_every_key_and_every_default() -> None:
    page = (SRC.parents[1] / "docs" / "providers.md").read_text()
    catalogue = shipped()
    for provider, variables in key_variables().items():
        if provider not in NEVER_BY_KEY:
            names = ", ".join(f"`{each}`" for each in variables)
            assert f"| `{provider}` | {names} | `{catalogue.default(provider)}` |" in page
