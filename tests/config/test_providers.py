"""Provider table: which key and which address a provider is reached with."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.config.api_keys import KeyFile, known_secrets
from weft.config.paths import places
from weft.config.providers import ProviderTable, default_providers
from weft.config.settings import load_config
from weft.errors import UsageError
from weft.transport import HttpTimeouts

SETTINGS = '[providers.anthropic]\nkey_env = "WORK_KEY"\n'


@pytest.mark.parametrize(
    ("environ", "settings", "key"),
    [
        ({}, "", "saved"),
        ({"ANTHROPIC_API_KEY": "from-env"}, "", "from-env"),
        ({"ANTHROPIC_API_KEY": " "}, "", "saved"),
        ({"ANTHROPIC_API_KEY": "from-env", "WORK_KEY": "work"}, SETTINGS, "work"),
        ({"ANTHROPIC_API_KEY": "from-env"}, SETTINGS, "from-env"),
    ],
)
def test_a_saved_key_counts_only_where_settings_and_environment_have_none(
    tmp_path: Path, environ: dict[str, str], settings: str, key: str
) -> None:
    """As `weft auth` says: a key in the environment is for this run, and comes first."""
    environ = {"HOME": str(tmp_path), **environ}
    where = places(environ)
    KeyFile(where.config).keep("anthropic", "saved")
    (where.config / "config.toml").write_text(settings)
    config = load_config(user=where.config, environ=environ)
    assert default_providers(environ, config).access("anthropic").key == key


@pytest.mark.parametrize(
    ("environ", "settings", "before"),
    [
        ({}, "", ""),
        ({"ANTHROPIC_API_KEY": "from-env"}, "", "ANTHROPIC_API_KEY"),
        ({"ANTHROPIC_AUTH_TOKEN": "from-env"}, "", "ANTHROPIC_AUTH_TOKEN"),
        ({"WORK_KEY": "work"}, SETTINGS, "WORK_KEY"),
    ],
)
def test_a_key_that_is_given_now_is_used_whatever_else_has_one(
    tmp_path: Path, environ: dict[str, str], settings: str, before: str
) -> None:
    environ = {"HOME": str(tmp_path), **environ}
    where = places(environ)
    where.config.mkdir(parents=True)
    (where.config / "config.toml").write_text(settings)
    table = default_providers(environ, load_config(user=where.config, environ=environ))
    assert table.key_before_saved("anthropic") == before
    table.learn_key("anthropic", "given-now")
    access = table.access("anthropic")
    assert (access.key, access.is_bearer) == ("given-now", False)
    assert "saved keys" in access.key_source
    assert table.key_before_saved("anthropic") == before, "at the next start it comes first again"


def test_a_provider_has_the_limits_that_the_settings_give_it(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}
    where = places(environ)
    where.config.mkdir(parents=True)
    settings = "[providers.openai]\nfirst_byte_timeout = 900\nidle_timeout = 30.5\n"
    (where.config / "config.toml").write_text(settings)
    table = default_providers(environ, load_config(user=where.config, environ=environ))
    assert table.access("openai").timeouts == HttpTimeouts(first_byte=900.0, idle=30.5)
    assert table.access("anthropic").timeouts == HttpTimeouts(first_byte=300.0, idle=60.0)


@pytest.mark.parametrize("wrong", ["0", "-1", "'soon'"])
def test_a_limit_that_is_none_is_refused_in_a_sentence(tmp_path: Path, wrong: str) -> None:
    environ = {"HOME": str(tmp_path)}
    where = places(environ)
    where.config.mkdir(parents=True)
    settings = f"[providers.openai]\nidle_timeout = {wrong}\n"
    (where.config / "config.toml").write_text(settings)
    with pytest.raises(UsageError, match="idle_timeout"):
        default_providers(environ, load_config(user=where.config, environ=environ))


def _table(home: Path, settings: str, **environ: str) -> ProviderTable:
    where = places({"HOME": str(home)})
    where.config.mkdir(parents=True, exist_ok=True)
    (where.config / "config.toml").write_text(settings)
    return default_providers({"HOME": str(home), **environ})


def test_a_provider_table_says_protocol_address_query_headers_key_and_limits(
    tmp_path: Path,
) -> None:
    table = _table(
        tmp_path,
        """
        [providers.work]
        protocol = "anthropic"
        base_url = "https://gateway.example/llm"
        key = "sk-work"
        headers = {x-team = "blue"}
        query = {region = "eu"}
        connect_timeout = 3
        default_model = "claude-opus-5-5"
        """,
    )
    access = table.access("work")
    assert (access.protocol, access.base_url, access.key) == (
        "anthropic",
        "https://gateway.example/llm",
        "sk-work",
    )
    assert (access.headers, access.query) == ((("x-team", "blue"),), (("region", "eu"),))
    assert access.timeouts.connect == 3
    # It speaks the vendor's protocol, so it has that vendor's models, and a default of its own.
    info = table["work"].model("").info
    assert (info.name, info.context_window) == ("claude-opus-5-5", 1_000_000)
    assert table.default_model() == "work:claude-opus-5-5"


def test_settings_correct_and_add_models(tmp_path: Path) -> None:
    table = _table(
        tmp_path,
        """
        [providers.mine]
        base_url = "http://127.0.0.1:9/v1"
        [models."mine:big"]
        window = 64000
        output = 4000
        price_input = 1.5
        price_output = 3
        vision = true
        tools = false
        levels = ["low", "high"]
        default_level = "low"
        [models."anthropic:claude-opus-5-5"]
        price_output = 21
        """,
    )
    info = table["mine"].model("big").info
    assert (info.context_window, info.max_output_tokens) == (64_000, 4_000)
    assert (info.price_input, info.price_output, info.price_cache_read) == (1.5, 3, None)
    assert (info.sees_images, info.calls_tools) == (True, False)
    assert (info.levels, info.default_level) == (("low", "high"), "low")
    opus = table.catalogue.info("anthropic", "claude-opus-5-5")
    assert (opus.price_input, opus.price_output, opus.context_window) == (4, 21, 1_000_000)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ('[providers.x]\nbase_ur = "http://a"', "has no field 'base_ur'; did you mean 'base_url'?"),
        ('[providers.x]\nprotocol = "antropic"', "protocol 'antropic'; did you mean 'anthropic'?"),
        ('[providers.x]\nbase_url = "localhost:1"', "base_url 'localhost:1' should look like"),
        ('[models."x:y"]\nwindw = 5', "has no field 'windw'; did you mean 'window'?"),
        ('[models."x:y"]\nwindow = "big"', "window: Expected `int`, got `str`"),
        ('[models."x:y"]\nlevels = ["hi"]', "there are: default, off"),
        ("[models.sonnet]\nwindow = 5", "should name provider:model"),
        ('[model]\ndefalt = "x"', "there is no setting 'model.defalt'; did you mean"),
        ('[provider.x]\nbase_url = "http://a"', "did you mean 'providers'?"),
    ],
)
def test_a_typo_is_one_sentence_with_the_file_and_the_nearest_name(
    tmp_path: Path, settings: str, said: str
) -> None:
    with pytest.raises(UsageError) as caught:
        _table(tmp_path, settings)
    assert said in str(caught.value)
    assert "config.toml" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_protocol_without_an_address_does_not_send_the_key_to_another_vendor(
    tmp_path: Path,
) -> None:
    table = _table(tmp_path, '[providers.work]\nprotocol = "responses"\nkey = "k"\n')
    with pytest.raises(UsageError, match="set its base_url"):
        table["work"]


def test_keys_in_the_settings_are_secrets(tmp_path: Path) -> None:
    settings = {"work": {"key": "sk-work-1", "headers": {"X-Api-Key": "h-2", "x-team": "blue"}}}
    found = known_secrets({}, tmp_path, settings)
    assert found == ("sk-work-1", "h-2")
