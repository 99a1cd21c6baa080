"""Settings: the values in force, where each came from, and what to say about a wrong one.

`~/.config/weft/config.toml` < `.weft/config.toml` in the project (safe keys only until the folder
is trusted) < environment `WEFT_*` < the caller.  `setting_keys` lists what can be set.

A project adds to the user's rules and hooks and takes none of them away: those keys are joined,
where others are replaced.

A mistake in the user's own file, or in that of a folder they trust, is an error that names the
line: they want it to count.  An untrusted folder cannot stop the program: what is right in its file
counts, and the first mistake is one of `problems`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from weft.config.setting_keys import KEYS, as_kind, known, wanted_value
from weft.errors import UsageError, did_you_mean
from weft.workspace import read_small_file, user_folder

PROJECT_SETTINGS: Final = ".weft/config.toml"
PROJECT_HOOKS: Final = ".weft/hooks.json"
LARGEST_FILE: Final = 1024 * 1024
"""Bytes of a settings file of the user's; a larger one is none."""
LARGEST_PROJECT_FILE: Final = 256 * 1024
"""Bytes of a settings file of a project, which is read before the user has seen it."""


class SettingValue(msgspec.Struct, frozen=True):
    """A setting's value, and where it came from."""

    value: Any
    source: str


class Config:
    """The settings in force."""

    def __init__(
        self,
        layers: Mapping[str, Sequence[SettingValue]],
        problems: Sequence[str] = (),
        replaced: Mapping[str, Sequence[SettingValue]] | None = None,
    ) -> None:
        """`replaced`: what counts where the value of an untrusted project is left out later."""
        self._layers = dict(layers)
        self._replaced = dict(replaced or {})
        self.revision = 0
        """Another one after every change, for those that keep what they found out here."""
        self.problems = tuple(problems)
        """What of the project's settings is left out because it is not right: a sentence each."""

    def get(self, name: str) -> Any:
        """The value of a setting.

        Raises:
            UsageError: there is no such setting.
        """
        # Asked several times in each round of a turn, so without the source.
        layers = self._layers.get(name)
        if not layers:
            return known(name).default
        return layers[0].value if len(layers) == 1 else self.lookup(name).value

    def lookup(self, name: str) -> SettingValue:
        """The value of a setting and its source.

        Of one that is joined, all values and all sources.
        """
        layers = self.layers(name)
        if len(layers) == 1:
            return layers[0]
        sources = ", ".join(layer.source for layer in layers)
        return SettingValue(_joined([layer.value for layer in layers]), sources)

    def layers(self, name: str) -> Sequence[SettingValue]:
        """What each source says that counts, weakest first; one unless the setting is joined."""
        key = known(name)
        return self._layers.get(name) or (SettingValue(key.default, "default"),)

    def joined_with(self, name: str, values: Sequence[Any]) -> Any:
        """What a setting is when these are added to it; only of one that is joined.

        Raises:
            UsageError: one is no value for it.
        """
        return _joined([self.get(name), *(_converted(name, value) for value in values)])

    def all(self) -> dict[str, SettingValue]:
        """Every setting."""
        return {name: self.lookup(name) for name in KEYS}

    def take_over(self, other: Config) -> None:
        """Be as another one from now on; for settings that were read again."""
        self.revision += 1
        self._layers = dict(other._layers)
        self._replaced = dict(other._replaced)
        self.problems = other.problems

    def leave_out(self, name: str, why: str) -> None:
        """Do without the value that an untrusted project has given a setting."""
        self.revision += 1
        self._layers[name] = self._replaced.pop(name)
        self.problems = (*self.problems, why)

    @property
    def untrusted(self) -> Mapping[str, SettingValue]:
        """The settings in force that an untrusted project has set."""
        return {name: self._layers[name][-1] for name in self._replaced if not KEYS[name].joins}


def load_config(
    *,
    user: Path,
    project: str = "",
    environ: Mapping[str, str],
    given: Mapping[str, Any] | None = None,
    files: Mapping[str, bytes] | None = None,
    is_trusted: bool = False,
) -> Config:
    """Read all sources, weakest first.

    `files` holds the project's settings and hooks by name, as they were when they were compared
    with what the user trusts (`is_trusted`); of an untrusted project only the safe keys count.

    Raises:
        UsageError: the user's own settings, or those of a trusted project, are not right.
    """
    layers: dict[str, list[SettingValue]] = {}
    problems: list[str] = []
    _add(layers, _from_user(user))
    _add(layers, _hooks_beside(user))
    if profile := _chosen_profile(layers, environ, given or {}):
        _add_profile(layers, profile, str(user / "config.toml"))
    if is_trusted:
        _add(layers, _from_trusted(files or {}, project))
        unsure: dict[str, SettingValue] = {}
    else:
        unsure = _from_untrusted(files or {}, project, problems)
    # Remembered before the project's values go in, so that one that proves wrong later (a model
    # that does not exist) can be taken out again.
    replaced = {name: [*layers.get(name, ())] for name in unsure}
    _add(layers, unsure)
    # These replace also what is joined: the user who starts the program has the last word.
    for found in (_from_environment(environ), _from_caller(given or {})):
        layers.update({name: [value] for name, value in found.items()})
        for name in found:
            replaced.pop(name, None)
    return Config(layers, problems, replaced)


def _chosen_profile(
    layers: Mapping[str, Sequence[SettingValue]],
    environ: Mapping[str, str],
    given: Mapping[str, Any],
) -> str:
    """The profile that counts; empty for none."""
    # Before the other sources are read: they replace what the profile sets.
    configured = layers["profile"][-1].value if "profile" in layers else ""
    return str(given.get("profile") or environ.get("WEFT_PROFILE") or configured)


def _add_profile(layers: dict[str, list[SettingValue]], name: str, file: str) -> None:
    """Put a profile's settings over the user's.

    Raises:
        UsageError: there is no such profile, or something in it is not right.
    """
    known_profiles = layers["profiles"][-1].value if "profiles" in layers else {}
    if name not in known_profiles:
        hint = did_you_mean(name, known_profiles) or f"; [profiles.{name}] in {file} makes one"
        raise UsageError(f"there is no profile {name!r}{hint}")
    source = f"{file} [profiles.{name}]"
    found: dict[str, SettingValue] = {}
    for setting, value in flattened(known_profiles[name]):
        if setting in ("profile", "profiles"):
            raise UsageError(f"{source}: a profile names no other profile")
        taken = _value(setting, value, source, b"", lambda name, value: True)
        assert taken is not None
        if setting in ("providers", "models") and setting in layers:
            # A profile mostly adds a key to a provider that is described above.
            taken = SettingValue(_over(layers[setting][-1].value, taken.value), source)
        found[setting] = taken
    _add(layers, found)


def _over(base: Mapping[str, Any], top: Mapping[str, Any]) -> dict[str, Any]:
    """Tables of tables, field by field."""
    return {**base, **{name: {**base.get(name, {}), **fields} for name, fields in top.items()}}


def _add(layers: dict[str, list[SettingValue]], found: Mapping[str, SettingValue]) -> None:
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
    """May a project set this before it is trusted?

    A "model" that is a file of the project would be the project speaking, and which weights run on
    this machine is the user's choice.
    """
    is_file = name.startswith("model.") and any(map(_is_file_model, _words(value)))
    return known(name).safe and not is_file


def _is_file_model(model: str) -> bool:
    """True for a model that is played, or loaded, from a file of this machine."""
    provider = re.split("[:/]", model.strip(), maxsplit=1)[0]
    return provider in ("scripted", "replay") or has_local_weights(model)


def has_local_weights(model: str) -> bool:
    """True for a model whose weights are loaded on this machine."""
    return re.split("[:/]", model.strip(), maxsplit=1)[0].lower() == "local"


def _words(value: Any) -> list[str]:
    """The texts of a value; one text may hold several, with commas, where a list is wanted."""
    if isinstance(value, str):
        return value.split(",")
    return [str(each) for each in value] if isinstance(value, list) else []


def _is_for_projects(name: str, value: Any) -> bool:
    return not known(name).personal


def withheld(data: bytes, source: str) -> dict[str, Any]:
    """The settings of a project's file that count only once it is trusted, with their values.

    Raises:
        UsageError: it is no TOML.
    """
    return {
        name: value
        for name, value in _from_toml(data, source)
        if name in KEYS and _is_for_projects(name, value) and not _is_harmless(name, value)
    }


def check_project(files: Mapping[str, bytes], project: str) -> None:
    """Check all settings and hooks of a project, before the user trusts it.

    Raises:
        UsageError: something in them is not right.
    """
    _from_trusted(files, project)


def _from_trusted(files: Mapping[str, bytes], project: str) -> dict[str, SettingValue]:
    found: dict[str, SettingValue] = {}
    if (settings := files.get(PROJECT_SETTINGS)) is not None:
        found.update(_values(settings, f"{project}/{PROJECT_SETTINGS}", _is_for_projects))
    if (hooks := files.get(PROJECT_HOOKS)) is not None:
        source = f"{project}/{PROJECT_HOOKS}"
        more = hooks_of_json(hooks, source)
        # Joined, not replaced: with hooks in both files, neither may switch the other's veto off.
        both = [found["hooks"].value, more] if "hooks" in found else [more]
        found["hooks"] = SettingValue(_converted("hooks", _joined(both), source), source)
    return found


def _from_untrusted(
    files: Mapping[str, bytes], project: str, problems: list[str]
) -> dict[str, SettingValue]:
    """The safe settings of a project, each by itself.

    A mistake in one leaves the others in force, above all a `deny`.
    """
    found: dict[str, SettingValue] = {}
    data = files.get(PROJECT_SETTINGS)
    if data is None:
        return found
    source = f"{project}/{PROJECT_SETTINGS}"
    try:
        flat = _from_toml(data, source)
    except UsageError as error:
        problems.append(str(error))
        return found
    before = len(problems)
    for name, value in flat:
        if name not in KEYS and len(problems) > before:
            continue  # one sentence for one file, however much of it is wrong
        value, why = _sound_rules(name, value)
        if why and len(problems) == before:
            problems.append(f"{source}{_line_of(name, data)}: {why}")
        try:
            setting = _value(name, value, source, data, _is_harmless)
        except UsageError as error:
            if len(problems) == before:
                problems.append(str(error))
            continue
        if setting is not None:
            found[name] = setting
    return found


def _sound_rules(name: str, value: Any) -> tuple[Any, str]:
    """The rules of an untrusted project that can be taken, and what is wrong with the first that
    cannot; any other value stays as it is.
    """
    if name not in KEYS or not KEYS[name].are_rules or not isinstance(value, list):
        return value, ""
    from weft.permissions import rule_problem  # not without rules

    # No tools of a program: a folder that came from elsewhere knows none of them.
    wrong = {each: why for each in value if isinstance(each, str) and (why := rule_problem(each))}
    sound = [each for each in value if not isinstance(each, str) or each not in wrong]
    return sound, next(iter(wrong.values()), "")


def _from_user(folder: Path) -> dict[str, SettingValue]:
    """The user's `config.toml`."""
    found = read_small_file(user_folder(folder), "config.toml", LARGEST_FILE)
    if found is None:
        return {}
    source = str(folder / "config.toml")
    values = _values(found.data, source, lambda name, value: True)
    # Those of all profiles, not only of the one that counts: a typo is found when it is made.
    for profile, settings in values["profiles"].value.items() if "profiles" in values else ():
        for name, value in flattened(settings):
            _value(name, value, f"{source} [profiles.{profile}]", b"", lambda name, value: True)
    return values


def _hooks_beside(folder: Path) -> dict[str, SettingValue]:
    """The user's `hooks.json`."""
    found = read_small_file(user_folder(folder), "hooks.json", LARGEST_FILE)
    if found is None:
        return {}
    source = str(folder / "hooks.json")
    return {
        "hooks": SettingValue(
            _converted("hooks", hooks_of_json(found.data, source), source), source
        )
    }


def hooks_of_json(data: bytes, name: str) -> dict[str, Any]:
    """The hooks of a `hooks.json`: the table itself, or an object that holds it as `hooks`.

    Raises:
        UsageError: it is not a JSON object.
    """
    from weft.config.documents import read_json  # as for TOML

    table = read_json(data, name)
    inner = table.get("hooks", table)
    if not isinstance(inner, dict):
        raise UsageError(f"{name}: hooks must be an object")
    return inner


def _values(
    data: bytes, source: str, may_set: Callable[[str, Any], bool]
) -> dict[str, SettingValue]:
    return {
        name: setting
        for name, value in _from_toml(data, source)
        if (setting := _value(name, value, source, data, may_set)) is not None
    }


def _value(
    name: str, value: Any, source: str, data: bytes, may_set: Callable[[str, Any], bool]
) -> SettingValue | None:
    """A setting of a file; None where that file may not set it.

    Raises:
        UsageError: there is no such setting, or its value is not right; the sentence has the line.
    """
    try:
        if may_set(name, value):
            return SettingValue(as_kind(known(name), value), source)
    except msgspec.ValidationError as error:
        why = f"{name} in {source}{_line_of(name, data)} is not right: {wanted_value(name, value)}"
        raise UsageError(why) from error
    except UsageError as error:
        raise UsageError(f"{source}{_line_of(name, data)}: {error}") from error
    return None


def _line_of(name: str, data: bytes) -> str:
    """The line that sets a name, as the end of a phrase; empty where several could."""
    last = re.escape(name.rpartition(".")[2].encode())
    found = [*re.finditer(rb"(?m)^[^#\n=]*\b" + last + rb"\b[\"']?[ \t]*(?:=|\])", data)]
    if len(found) != 1:
        return ""
    return f", line {data.count(bytes([10]), 0, found[0].end()) + 1}"


def _from_caller(given: Mapping[str, Any]) -> dict[str, SettingValue]:
    return {name: SettingValue(_converted(name, value), "caller") for name, value in given.items()}


def _from_environment(environ: Mapping[str, str]) -> dict[str, SettingValue]:
    found: dict[str, SettingValue] = {}
    for name in KEYS:
        variable = "WEFT_" + name.upper().replace(".", "_")
        if variable in environ:
            value = _converted(name, environ[variable], variable)
            found[name] = SettingValue(value, variable)
    return found


def _from_toml(data: bytes, source: str) -> list[tuple[str, Any]]:
    from weft.config.documents import read_toml  # only where there is a file: start-up time

    return flattened(read_toml(data, source))


def flattened(tables: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """The settings of nested tables, each by its full name."""
    flat: list[tuple[str, Any]] = []
    for name, value in tables.items():
        if isinstance(value, dict) and prefix + name not in KEYS:
            flat += flattened(value, f"{prefix}{name}.")
        else:
            flat.append((prefix + name, value))
    return flat


def _converted(name: str, value: Any, source: str = "") -> Any:
    """The value as its setting has it; without a source it is what the caller has just given.

    Raises:
        UsageError: there is no such setting, or that is no value for it.
    """
    where = f"{name} in {source}" if source else name
    try:
        return as_kind(known(name), value)
    except msgspec.ValidationError as error:
        raise UsageError(f"{where} is not right: {wanted_value(name, value)}") from error
    except UsageError as error:
        raise UsageError(f"{where}: {error}" if name in KEYS else str(error)) from error
