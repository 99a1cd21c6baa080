"""Settings: what can be set, where a value came from, and what to say about a wrong one.

`~/.config/weft/config.toml` < `.weft/config.toml` in the project (safe keys only until the folder is trusted) < environment `WEFT_*` < the
caller.  Every key is listed here with its type, its default and a sentence; a name that is not is refused with the nearest one that is.

A project adds to the person's rules and hooks and takes none of them away: those keys are joined, where others are replaced.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

import msgspec

from weft.errors import UsageError, did_you_mean
from weft.thinking import ThinkingLevel

PROJECT_SETTINGS: Final = ".weft/config.toml"
PROJECT_HOOKS: Final = ".weft/hooks.json"
LARGEST_FILE: Final = 1024 * 1024
"""Bytes of a settings file; a larger one is none."""


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """One setting."""

    kind: Any
    default: Any
    about: str
    safe: bool = False
    """A project may set it before the person has trusted the folder: it can neither widen leave nor start programs."""
    personal: bool = False
    """No project may set it, trusted or not."""
    joins: bool = False
    """What a project sets is added to what the person has set."""


KEYS: dict[str, Key] = {
    "model.default": Key(
        kind=str,
        default="",
        about="The model of new sessions, as provider:model[:effort]; "
        "empty takes the provider whose key is there, else local.",
        safe=True,
    ),
    "model.effort": Key(
        kind=ThinkingLevel,
        default="default",
        about="How hard new sessions think: default (the vendor's own), off, minimal, low, medium, "
        "high, xhigh or max; an effort named with a model goes before it.",
        safe=True,
    ),
    "model.rotation": Key(
        kind=list[str],
        default=[],
        about="Models that cycle_model goes through, as provider:model[:effort].",
        safe=True,
    ),
    "model.architect": Key(
        kind=str,
        default="",
        about="The model that plans in architect mode; empty for the session's own.",
        safe=True,
    ),
    "model.editor": Key(
        kind=str,
        default="",
        about="The model that carries out the steps in architect mode; empty for the session's own.",
        safe=True,
    ),
    "agents.max_depth": Key(
        kind=int,
        default=2,
        about="How deep agents may have agents of their own; 0 for none at all.",
    ),
    "agents.max_parallel": Key(
        kind=int, default=8, about="Agents of one session, and of its agents, that work at once."
    ),
    "agents.max_total": Key(
        kind=int, default=50, about="Agents that one turn may start, those of its agents included."
    ),
    "agents.step_turns": Key(
        kind=int, default=30, about="Answers of the model for one step of a plan in architect mode."
    ),
    "history.quota": Key(
        kind=int,
        default=1024 * 1024 * 1024,
        about="Bytes of file history that a project may have; the oldest goes first. 0 keeps none of what commands change.",
    ),
    "history.max_file": Key(
        kind=int,
        default=4 * 1024 * 1024,
        about="Bytes of a file beyond which the file history does not keep its content.",
    ),
    "sandbox.mode": Key(
        kind=Literal["auto", "on", "off"],
        default="auto",
        about="Commands run in a sandbox: auto where this machine has one, on never without, off never in one.",
    ),
    "sandbox.network": Key(
        kind=bool, default=False, about="Whether commands in the sandbox have the network."
    ),
    "sandbox.unix_sockets": Key(
        kind=bool,
        default=False,
        about="Whether commands in the sandbox may use unix sockets, which reach servers outside it.",
    ),
    "sandbox.show": Key(
        kind=list[str],
        default=[],
        about="Files and folders with secrets that commands in the sandbox may read all the same, by path or by name.",
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
        kind=list[str],
        default=[],
        about="Rules, Tool or Tool(pattern), that are allowed.",
        joins=True,
    ),
    "permissions.ask": Key(
        kind=list[str], default=[], about="Rules that always ask.", safe=True, joins=True
    ),
    "permissions.deny": Key(
        kind=list[str], default=[], about="Rules that are never allowed.", safe=True, joins=True
    ),
    "permissions.ask_timeout": Key(
        kind=float,
        default=0.0,
        about="Seconds after which a request for leave that nobody answered counts as denied; 0 waits for ever.",
    ),
    "hooks": Key(
        kind=dict[str, list[dict[str, Any]]],
        default={},
        about="Programs that are run at certain moments: matcher, command and timeout of each [[hooks.EVENT]].",
        joins=True,
    ),
    "providers": Key(
        kind=dict[str, dict[str, Any]],
        default={},
        about="Providers by name: base_url, key_env and headers of [providers.NAME].",
        # A project that says where a key is sent could have it sent to itself.
        personal=True,
    ),
}


class Value(msgspec.Struct, frozen=True):
    """A setting's value, and where it came from."""

    value: Any
    source: str


class Config:
    """The settings in force."""

    def __init__(self, layers: Mapping[str, Sequence[Value]]) -> None:
        self._layers = dict(layers)

    def get(self, name: str) -> Any:
        """The value of a setting.

        Raises:
            UsageError: there is no such setting.
        """
        return self.lookup(name).value

    def lookup(self, name: str) -> Value:
        """The value of a setting and its source; of one that is joined, all values and all sources."""
        layers = self.layers(name)
        if len(layers) == 1:
            return layers[0]
        sources = ", ".join(layer.source for layer in layers)
        return Value(_joined([layer.value for layer in layers]), sources)

    def layers(self, name: str) -> Sequence[Value]:
        """What each source says that counts, weakest first; one unless the setting is joined."""
        key = known(name)
        return self._layers.get(name) or (Value(key.default, "default"),)

    def all(self) -> dict[str, Value]:
        """Every setting."""
        return {name: self.lookup(name) for name in KEYS}

    def take_over(self, other: Config) -> None:
        """Be as another one from now on; for settings that were read again."""
        self._layers = dict(other._layers)


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
    trusted: Mapping[str, bytes] | None = None,
) -> Config:
    """Read all sources, weakest first.

    `trusted` holds the project's files, by their names in it, as they were when they were found to be what the person trusts; without it
    only the safe keys of a project count.
    """
    layers: dict[str, list[Value]] = {}
    _add(layers, _from_file(user / "config.toml"))
    _add(layers, _hooks_beside(user / "hooks.json"))
    if trusted is not None:
        _add(layers, _from_trusted(trusted, project))
    else:
        _add(layers, _from_file(project / ".weft" / "config.toml", may_set=_is_harmless))
    for found in (_from_environment(environ), _from_caller(given or {})):
        layers.update({name: [value] for name, value in found.items()})
    return Config(layers)


def _add(layers: dict[str, list[Value]], found: Mapping[str, Value]) -> None:
    for name, value in found.items():
        if KEYS[name].joins:
            layers.setdefault(name, []).append(value)
        else:
            layers[name] = [value]


def _joined(values: Sequence[Any]) -> Any:
    """Lists behind each other, each member once; tables of lists key by key."""
    if isinstance(values[0], dict):
        names = dict.fromkeys(name for value in values for name in value)
        return {name: [each for value in values for each in value.get(name, ())] for name in names}
    return list(dict.fromkeys(each for value in values for each in value))


def _is_harmless(name: str, value: Any) -> bool:
    """May a project set this before it is trusted?  A "model" that plays a file of the project would be the project speaking."""
    models = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    plays = name.startswith("model.") and any(
        str(each).replace("/", ":").split(":")[0] in ("scripted", "replay") for each in models
    )
    return known(name).safe and not plays


def _is_for_projects(name: str, value: Any) -> bool:
    return not known(name).personal


def withheld(data: bytes, source: str) -> list[str]:
    """The settings of a project's file that count only once it is trusted.

    Raises:
        UsageError: it is no TOML, or holds a name that is no setting.
    """
    return [
        name
        for name, value in _flattened(_tables(data, source))
        if _is_for_projects(name, value) and not _is_harmless(name, value)
    ]


def _from_trusted(files: Mapping[str, bytes], project: Path) -> dict[str, Value]:
    found: dict[str, Value] = {}
    if (settings := files.get(PROJECT_SETTINGS)) is not None:
        found.update(_values(settings, str(project / PROJECT_SETTINGS), _is_for_projects))
    if (hooks := files.get(PROJECT_HOOKS)) is not None:
        source = str(project / PROJECT_HOOKS)
        more = hooks_of_json(hooks, source)
        both = [found["hooks"].value, more] if "hooks" in found else [more]
        found["hooks"] = Value(_converted("hooks", _joined(both), source), source)
    return found


def _hooks_beside(path: Path) -> dict[str, Value]:
    """The person's `hooks.json`."""
    data = _read(path)
    if data is None:
        return {}
    table = hooks_of_json(data, str(path))
    return {"hooks": Value(_converted("hooks", table, str(path)), str(path))}


def hooks_of_json(data: bytes, name: str) -> dict[str, Any]:
    """The hooks of a `hooks.json`: the table itself, or an object that holds it as `hooks`.

    Raises:
        UsageError: it is no JSON object.
    """
    try:
        table = msgspec.json.decode(data, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise UsageError(f"{name} is no JSON object: {error}") from error
    inner = table.get("hooks", table)
    if not isinstance(inner, dict):
        raise UsageError(f"{name}: hooks must be an object")
    return inner


def _from_file(
    path: Path, may_set: Callable[[str, Any], bool] = lambda name, value: True
) -> dict[str, Value]:
    data = _read(path)
    return {} if data is None else _values(data, str(path), may_set)


def _read(path: Path) -> bytes | None:
    """A settings file; None where there is none.  A pipe or a device is none: nobody knows when it would answer."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UsageError(f"cannot read the settings in {path}: {error.strerror}") from error
    try:
        about = os.fstat(handle)  # first: a folder cannot even be made a file object
        if not stat.S_ISREG(about.st_mode) or about.st_size > LARGEST_FILE:
            raise UsageError(f"{path} is no settings file: it is no plain file, or too large")
        with os.fdopen(handle, "rb", closefd=False) as file:
            return file.read(LARGEST_FILE)
    finally:
        os.close(handle)


def _values(data: bytes, source: str, may_set: Callable[[str, Any], bool]) -> dict[str, Value]:
    return {
        name: Value(_converted(name, value, source), source)
        for name, value in _flattened(_tables(data, source))
        if may_set(name, value)
    }


def _tables(data: bytes, source: str) -> dict[str, Any]:
    import tomllib  # only where there is a file: it costs start-up time

    try:
        return tomllib.loads(data.decode())
    except UnicodeDecodeError as error:
        raise UsageError(f"cannot read the settings in {source}: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{source} is not valid TOML: {error}") from error


def _from_caller(given: Mapping[str, Any]) -> dict[str, Value]:
    return {
        name: Value(_converted(name, value, "the caller"), "caller")
        for name, value in given.items()
    }


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
        words = get_args(key.kind) if get_origin(key.kind) is Literal else ()
        known_words = f"; there are {', '.join(words)}" if words else ""
        raise UsageError(f"{name} in {source} is not right: {error}{known_words}") from error
