"""The user's config.toml is changed in one step, and stays theirs: mode, links, comments."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from weft.config.settings_file import SettingsFile
from weft.errors import UsageError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "weft").mkdir()
    return tmp_path / "weft"


def test_a_setting_is_written_and_taken_out_again(folder: Path) -> None:
    file = SettingsFile(folder)
    file.change("theme", "dark")
    file.change("notify", "off")
    file.change("permissions.ask", "shell, fetch")
    assert file.path.read_text() == (
        'theme = "dark"\nnotify = false\npermissions.ask = ["shell", "fetch"]\n'
    )
    assert file.unset("theme")
    assert not file.unset("theme")
    assert file.path.read_text() == 'notify = false\npermissions.ask = ["shell", "fetch"]\n'


def test_a_new_file_is_private_and_an_old_one_keeps_its_mode(folder: Path) -> None:
    file = SettingsFile(folder / "new")
    file.change("theme", "dark")
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    file.path.chmod(0o640)
    file.change("theme", "light")
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o640


def test_a_link_is_followed_and_stays_a_link(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    kept = tmp_path / "dotfiles" / "weft.toml"
    kept.write_text("# mine\n")
    file = SettingsFile(folder)
    file.path.symlink_to(kept)
    file.change("theme", "dark")
    assert file.path.is_symlink()
    assert kept.read_text() == '# mine\ntheme = "dark"\n'
    assert os.listdir(kept.parent) == ["weft.toml"]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("them", "dark", "there is no setting 'them'; did you mean 'theme'?"),
        ("theme", "blue", "theme: it takes one of auto, dark, light, none, not 'blue'"),
        ("notify", "maybe", "notify: it takes true or false, not 'maybe'"),
        (
            "session.max_turns",
            "0",
            "session.max_turns: it takes a whole number of at least 1, not '0'",
        ),
        ("session.max_turns", "many", "session.max_turns: it takes a whole number"),
        ("permissions.deny", "shell(", "permissions.deny: "),
        ("providers", "x", "providers is a table; write it into "),
    ],
)
def test_what_is_wrong_is_one_sentence_and_nothing_is_written(
    folder: Path, name: str, value: str, said: str
) -> None:
    file = SettingsFile(folder)
    file.path.write_text("# mine\n")
    with pytest.raises(UsageError) as refused:
        file.change(name, value)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
    assert file.path.read_text() == "# mine\n"


def test_what_another_program_writes_meanwhile_is_not_lost(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = SettingsFile(folder)
    file.path.write_text("# one\n")
    synced = os.fsync
    writes = iter(["# two\n"])

    def meanwhile(fd: int) -> None:
        synced(fd)
        if (text := next(writes, None)) is not None:
            file.path.write_text(text)

    monkeypatch.setattr(os, "fsync", meanwhile)
    file.change("theme", "dark")
    assert file.path.read_text() == '# two\ntheme = "dark"\n'
    assert os.listdir(folder) == ["config.toml"]


def test_a_file_that_cannot_be_written_is_a_sentence(folder: Path) -> None:
    file = SettingsFile(folder)
    file.path.mkdir()
    with pytest.raises(UsageError, match="not a regular file"):
        file.change("theme", "dark")
