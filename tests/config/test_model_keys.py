"""Settings that name models: one list, and one check of what is typed for them."""

from __future__ import annotations

import pytest

from weft.config.models import ModelRegistry
from weft.config.providers import default_providers
from weft.config.setting_keys import KEYS, MODEL_KEYS
from weft.errors import UsageError
from weft.providers.base import ModelInfo
from weft.providers.scripted import ScriptedModel, ScriptedProvider


def test_every_setting_of_models_that_takes_free_words_names_models() -> None:
    free = {name for name, key in KEYS.items() if key.kind in (str, list[str])}
    named = {name for name in free if name.startswith("model.") or name == "loom.model"}
    assert named == MODEL_KEYS


@pytest.mark.parametrize("name", sorted(MODEL_KEYS))
def test_what_could_be_no_model_is_refused_for_each_of_them(name: str) -> None:
    models = ModelRegistry(default_providers({}))
    with pytest.raises(UsageError, match="no provider"):
        models.check_setting(name, "anthropic:claude-sonnet-5-5, nowhere:model")
    models.check_setting(name, "anthropic:claude-sonnet-5-5, ")
    models.check_setting(name, "")


def test_other_settings_may_say_anything() -> None:
    ModelRegistry(default_providers({})).check_setting("model.style", "nowhere:model")


def test_a_model_that_weaves_files_is_none_of_a_provider() -> None:
    info = ModelInfo(provider="weft", name="weave_1")
    other, own = ScriptedModel(["Hello."], info=info), ScriptedModel(["Done."], info=info)
    models = ModelRegistry({"weft": ScriptedProvider({"weave_1": other, "mine": other})})
    for refused in (models.resolve, models.check):
        with pytest.raises(UsageError, match="call weave_files again"):
            refused("weft:weave_1")
    assert models.resolve("weft:mine") is other
    assert models.resolve(models.register(own)) is own
