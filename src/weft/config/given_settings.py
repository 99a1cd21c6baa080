"""Settings for one run, as `--settings` takes them: a file in TOML or JSON, or JSON itself."""

from __future__ import annotations

import os
from typing import Any, Final

from weft.config.documents import read_json, read_toml
from weft.config.settings import LARGEST_FILE, flattened
from weft.errors import UsageError

OPTION: Final = "--settings"
_FOREIGN_NAMES: Final = {"model": "model.default", "permissions.defaultMode": "permissions.mode"}
"""What Claude Code calls a setting, and what it is called here."""
_FOREIGN_MODES: Final = {"acceptEdits": "accept_edits", "bypassPermissions": "bypass"}


def read_settings(given: str) -> dict[str, Any]:
    """The settings by name, as they are written; whether they are right is seen when they are
    put in force.

    Raises:
        UsageError: the file cannot be read, or it is neither TOML nor JSON.
    """
    found: dict[str, Any] = {}
    for name, value in flattened(_document(given)):
        if not isinstance(value, dict):
            name = _FOREIGN_NAMES.get(name, name)
        is_mode = name == "permissions.mode" and isinstance(value, str)
        found[name] = _FOREIGN_MODES.get(value, value) if is_mode else value
    return found


def _document(given: str) -> dict[str, Any]:
    if given.lstrip().startswith("{"):
        return read_json(given.encode(), OPTION)
    data = _file(given)
    is_json = given.endswith(".json") or data.lstrip().startswith(b"{")
    return read_json(data, given) if is_json else read_toml(data, given)


def _file(path: str) -> bytes:
    try:
        with open(os.path.expanduser(path), "rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise UsageError(f"{OPTION}: cannot read {path!r}: {error.strerror}") from error
    if len(data) > LARGEST_FILE:
        raise UsageError(f"{OPTION}: {path!r} is larger than {LARGEST_FILE // 1024} KB")
    return data
