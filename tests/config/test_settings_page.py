"""The page of all settings says what the table says, and its examples are right."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts.settings_page import EXAMPLES, PAGE, page

from weft.config.setting_keys import KEYS
from weft.config.settings import load_config


def test_the_page_is_what_the_table_gives() -> None:
    """Else run `python -m scripts.settings_page`."""
    assert PAGE.read_text("utf-8") == page()


def test_every_setting_has_an_example() -> None:
    assert list(EXAMPLES) == list(KEYS)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_sets_its_setting_to_something_else(tmp_path: Path, name: str) -> None:
    profiles = EXAMPLES["profiles"] if name == "profile" else ""
    (tmp_path / "config.toml").write_text(f"{EXAMPLES[name]}\n{profiles}\n")
    found = load_config(user=tmp_path, environ={}).lookup(name)
    assert found.value != KEYS[name].default
    assert found.source != "default"
