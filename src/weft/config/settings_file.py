"""Changing the user's `config.toml`: one setting at a time, comments and order kept."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from weft.config.setting_keys import KEYS, known, typed_value
from weft.config.settings import LARGEST_FILE, SettingValue
from weft.config.toml_edit import toml_text, with_value, without_value
from weft.config.user_file import UserFile
from weft.errors import UsageError


class SettingsFile:
    """The user's own settings."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "config.toml"
        self._file = UserFile(self.path, LARGEST_FILE)

    def change(self, name: str, text: str) -> None:
        """Set a setting to what a user typed.

        Raises:
            UsageError: there is no such setting, it takes no such value, or the file cannot be
                changed.
        """
        check_settable(name, self.path)
        value = typed_value(name, text)
        if KEYS[name].are_rules:
            _check_tools(name, value)
        source = str(self.path)
        self._file.replace(lambda before: with_value(before, name, value, source=source))

    def edit_list(self, name: str, edit: Callable[[list[str]], list[str]]) -> None:
        """Set a setting that is a list to what `edit` makes of it; an empty one is taken out.

        The list is the one that the file has at this moment: others may have added to it.

        Raises:
            UsageError: it takes no such value, or the file cannot be changed.
        """
        check_settable(name, self.path)
        source = str(self.path)

        def edited(text: str) -> str | None:
            before = _list_in(text, name)
            after = edit(before)
            if after == before:
                return None
            if not after:
                return without_value(text, name, source=source)
            if KEYS[name].are_rules:
                _check_tools(name, after)
            return with_value(text, name, after, source=source)

        self._file.replace(edited)

    def unset(self, name: str) -> bool:
        """Take a setting out; False when the file did not have it.

        Raises:
            UsageError: as above.
        """
        check_settable(name, self.path)
        source = str(self.path)
        return self._file.replace(lambda before: without_value(before, name, source=source))


def _list_in(text: str, name: str) -> list[str]:
    """The list that a document sets; empty where it sets none, or something else."""
    try:
        value: Any = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return []  # what is wrong with it is said when it is changed
    for key in name.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _check_tools(name: str, rules: list[str]) -> None:
    # A program may bring tools of other names, but with a rule for one of those in the user's own
    # settings no session of the command line would start any more.
    from weft.permissions import rule_problem  # not without rules

    if why := next(filter(None, map(rule_problem, rules)), ""):
        raise UsageError(f"{name}: {why}")


def setting_note(value: SettingValue, name: str, path: Path, *, was_there: bool) -> str:
    """What to say of a setting after it was changed; `value` is the one that counts now."""
    shown = toml_text(value.value)
    if not was_there:
        return f"{name} is not set in {path}; it is {shown} ({value.source})"
    if value.source == str(path):
        return f"{name} = {shown} in {path}"
    if value.source == "default":
        return f"{name} is back at its default, {shown}"
    return f"{path} is changed, but {value.source} comes before it: {name} is still {shown}"


def check_settable(name: str, path: Path) -> None:
    """Refuse what cannot be set with one word or line.

    Raises:
        UsageError: there is no such setting, or it is a table.
    """
    known(name)
    if isinstance(KEYS[name].default, dict):
        raise UsageError(f"{name} is a table; write it into {path}")
