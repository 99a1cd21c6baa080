"""Provider table: which key and which address a provider is reached with."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.config.api_keys import KeyFile
from weft.config.paths import places
from weft.config.providers import default_providers
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
