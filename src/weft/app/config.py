"""Settings: what can be set, where a value came from, and what to say about a wrong one.

`~/.config/weft/config.toml` < `.weft/config.toml` in the project (safe keys only) < environment `WEFT_*` < the caller.  Every key is
listed here with its type, its default and a sentence; a name that is not is refused with the nearest one that is.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from weft.errors import UsageError, did_you_mean


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """One setting."""

    kind: Any
    default: Any
    about: str
    safe: bool = False
    """A project may set it before the person has trusted the folder: it can neither widen leave nor start programs."""


KEYS: dict[str, Key] = {
    "model.default": Key(
        kind=str,
        default="",
        about="The model of new sessions, as provider:model; empty takes the provider whose key is there, else local.",
        safe=True,
    ),
    "model.rotation": Key(
        kind=list[str],
        default=[],
        about="Models that cycle_model goes through, as provider:model or provider:model:thinking.",
        safe=True,
    ),
    "session.idle_unload": Key(
        kind=float,
        default=1800.0,
        about="Seconds after which an idle session that nobody watches is unloaded.",
    ),
    "session.max_turns": Key(
        kind=int, default=100, about="Answers of the model in one turn.", safe=True
    ),
    "permissions.mode": Key(
        kind=str,
        default="default",
        about="Permission mode of new sessions: plan, default, accept_edits, auto or bypass.",
    ),
    "permissions.allow": Key(
        kind=list[str], default=[], about="Rules, Tool or Tool(pattern), that are allowed."
    ),
    "permissions.ask": Key(kind=list[str], default=[], about="Rules that always ask.", safe=True),
    "permissions.deny": Key(
        kind=list[str], default=[], about="Rules that are never allowed.", safe=True
    ),
    "providers": Key(
        kind=dict[str, dict[str, Any]],
        default={},
        about="Providers by name: base_url, key_env and headers of [providers.NAME].",
    ),
}


class Value(msgspec.Struct, frozen=True):
    """A setting's value, and where it came from."""

    value: Any
    source: str


class Config:
    """The settings in force."""

    def __init__(self, values: Mapping[str, Value]) -> None:
        self._values = dict(values)

    def get(self, name: str) -> Any:
        """The value of a setting.

        Raises:
            UsageError: there is no such setting.
        """
        return self.lookup(name).value

    def lookup(self, name: str) -> Value:
        """The value of a setting and its source."""
        key = known(name)
        return self._values.get(name, Value(key.default, "default"))

    def all(self) -> dict[str, Value]:
        """Every setting."""
        return {name: self.lookup(name) for name in KEYS}


def known(name: str) -> Key:
    """The key called `name`.

    Raises:
        UsageError: there is none; the message names the nearest.
    """
    if name in KEYS:
        return KEYS[name]
    raise UsageError(f"there is no setting {name!r}{did_you_mean(name, KEYS)}")


def load_config(
    *,
    user: Path,
    project: Path,
    environ: Mapping[str, str],
    given: Mapping[str, Any] | None = None,
) -> Config:
    """Read all sources, weakest first."""
    values: dict[str, Value] = {}
    values.update(_from_file(user / "config.toml", safe_only=False))
    values.update(_from_file(project / ".weft" / "config.toml", safe_only=True))
    values.update(_from_environment(environ))
    for name, value in (given or {}).items():
        values[name] = Value(_converted(name, value, "the caller"), "caller")
    return Config(values)


def _from_file(path: Path, *, safe_only: bool) -> dict[str, Value]:
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the settings in {path}: {error}") from error
    import tomllib  # only where there is a file: it costs start-up time

    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} is not valid TOML: {error}") from error
    found = {
        name: Value(_converted(name, value, str(path)), str(path))
        for name, value in _flattened(tables)
    }
    return {name: value for name, value in found.items() if KEYS[name].safe or not safe_only}


def _from_environment(environ: Mapping[str, str]) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for name in KEYS:
        variable = "WEFT_" + name.upper().replace(".", "_")
        if variable in environ:
            value = _converted(name, environ[variable], variable)
            found[name] = Value(value, variable)
    return found


def _flattened(tables: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    flat: list[tuple[str, Any]] = []
    for name, value in tables.items():
        if isinstance(value, dict) and prefix + name not in KEYS:
            flat += _flattened(value, f"{prefix}{name}.")
        else:
            flat.append((prefix + name, value))
    return flat


def _converted(name: str, value: Any, source: str) -> Any:
    key = known(name)
    if key.kind == list[str] and isinstance(value, str):
        value = [part.strip() for part in value.split(",") if part.strip()]
    try:
        return msgspec.convert(value, key.kind, strict=False)
    except msgspec.ValidationError as error:
        raise UsageError(f"{name} in {source} is not right: {error}") from error
