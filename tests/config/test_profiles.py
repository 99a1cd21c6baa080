"""Profiles: keys, models and settings under a name, chosen for a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.weft_program import WeftProgram
from weft.config.api_keys import KeyFile
from weft.config.paths import places
from weft.config.providers import default_providers
from weft.config.settings import Config, load_config
from weft.errors import UsageError

SETTINGS = """
[model]
default = "openai:gpt-6.1-sol"
effort = "low"
[permissions]
deny = ["write(a.txt)"]
[providers.gateway]
base_url = "https://all.example/v1"
headers = {x-team = "blue"}

[profiles.work]
model.default = "gateway:big"
[profiles.work.permissions]
deny = ["write(b.txt)"]
[profiles.work.providers.gateway]
key_env = "WORK_KEY"
[profiles.work.providers.other]
base_url = "https://other.example/v1"
[profiles.work.models."gateway:big"]
window = 50000

[profiles.home]
"""


def loaded(home: Path, settings: str = SETTINGS, **environ: str) -> Config:
    where = places({"HOME": str(home)})
    where.config.mkdir(parents=True, exist_ok=True)
    (where.config / "config.toml").write_text(settings)
    given: dict[str, Any] = {}
    if "given" in environ:
        given["profile"] = environ.pop("given")
    return load_config(user=where.config, environ=environ, given=given)


def test_without_a_profile_none_counts(tmp_path: Path) -> None:
    config = loaded(tmp_path)
    assert config.get("model.default") == "openai:gpt-6.1-sol"
    assert config.get("permissions.deny") == ["write(a.txt)"]
    assert list(config.get("providers")) == ["gateway"]


@pytest.mark.parametrize("chosen", [{"given": "work"}, {"WEFT_PROFILE": "work"}])
def test_a_profile_adds_to_the_settings_and_replaces_what_it_names(
    tmp_path: Path, chosen: dict[str, str]
) -> None:
    config = loaded(tmp_path, **chosen)
    assert config.get("model.default") == "gateway:big"
    assert config.get("model.effort") == "low"
    # Rules are joined, whoever has set them.
    assert config.get("permissions.deny") == ["write(a.txt)", "write(b.txt)"]
    assert config.get("providers")["gateway"] == {
        "base_url": "https://all.example/v1",
        "headers": {"x-team": "blue"},
        "key_env": "WORK_KEY",
    }
    assert "other" in config.get("providers")
    assert "[profiles.work]" in config.lookup("model.default").source


def test_a_profile_can_be_the_usual_one_and_the_command_line_has_the_last_word(
    tmp_path: Path,
) -> None:
    settings = 'profile = "work"\n' + SETTINGS
    assert loaded(tmp_path, settings).get("model.default") == "gateway:big"
    other = loaded(tmp_path, settings, WEFT_PROFILE="work", given="home")
    assert other.get("model.default") == "openai:gpt-6.1-sol"


def test_an_unknown_profile_is_answered_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no profile 'wrok'; did you mean 'work'"):
        loaded(tmp_path, given="wrok")
    with pytest.raises(UsageError, match=r"no profile 'x'; \[profiles.x\] in .* makes one"):
        loaded(tmp_path, "", given="x")


@pytest.mark.parametrize(
    ("profile", "said"),
    [
        ('[profiles.work]\nmodel.defalt = "x"', r"profiles.work\].*model.defalt.*did you mean"),
        ("[profiles.work]\nmodel.effort = 5", "model.effort"),
        ('[profiles.work]\nprofile = "home"', "a profile names no other profile"),
        ("profiles = 5", "profiles"),
        ("[profiles]\nwork = 5", "profiles"),
    ],
)
def test_a_mistake_in_a_profile_is_one_sentence(tmp_path: Path, profile: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        loaded(tmp_path, profile, given="work")
    assert "\n" not in str(caught.value)


def test_a_project_can_neither_choose_a_profile_nor_make_one(tmp_path: Path) -> None:
    files = {".weft/config.toml": b'profile = "work"\n[profiles.work]\nmodel.default = "x:y"\n'}
    where = places({"HOME": str(tmp_path)})
    config = load_config(user=where.config, environ={}, project="/p", files=files, is_trusted=True)
    assert (config.get("profile"), config.get("model.default")) == ("", "")


def test_a_profile_has_keys_of_its_own(tmp_path: Path) -> None:
    where = places({"HOME": str(tmp_path)})
    KeyFile(where.config).keep("anthropic", "mine")
    KeyFile(where.config, "work").keep("anthropic", "theirs")
    KeyFile(where.config, "work").keep("xai", "theirs-too")
    environ = {"HOME": str(tmp_path)}
    plain = default_providers(environ, loaded(tmp_path))
    assert (plain.access("anthropic").key, plain.access("xai").key) == ("mine", "")
    work = default_providers(environ, loaded(tmp_path, given="work"))
    assert (work.access("anthropic").key, work.access("xai").key) == ("theirs", "theirs-too")
    home = default_providers(environ, loaded(tmp_path, given="home"))
    assert home.access("anthropic").key == "mine"
    assert KeyFile(where.config, "work").forget("anthropic")
    assert KeyFile(where.config, "work").keys()["anthropic"] == "mine"


def test_the_command_line_takes_a_profile(tmp_path: Path) -> None:
    weft = WeftProgram(tmp_path)
    weft.config.mkdir(parents=True)
    model, other = weft.script("from work"), weft.script("from all")
    (weft.config / "config.toml").write_text(
        f'[model]\ndefault = "{other}"\n[profiles.work]\nmodel.default = "{model}"\n'
    )
    assert weft.call("-p", "hi").stdout == "from all\n"
    assert weft.call("--profile", "work", "-p", "hi").stdout == "from work\n"
    assert weft.call("-p", "hi", env={"WEFT_PROFILE": "work"}).stdout == "from work\n"
    assert weft.call("config", "--profile", "work", "--json", "profile").returncode == 0
    done = weft.call("auth", "login", "xai", "--profile", "work", stdin=b"k-123456\n")
    assert (done.returncode, "for xai in the profile work" in done.stderr) == (0, True)
    assert "xai" not in weft.call("auth", "list").stdout
    assert "xai" in weft.call("auth", "list", "--profile", "work").stdout
    wrong = weft.call("auth", "list", "--profile", "wrok")
    assert (wrong.returncode, "did you mean 'work'" in wrong.stderr) == (2, True)
    weft.close()
