"""`weft config`: every setting, its value, and where it came from; and changing the user's own."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from typing import Any, Final

from weft.cli.commands.table import print_table
from weft.cli.exit_codes import OK
from weft.cli.parse import ParsedArguments
from weft.cli.session_options import make_app
from weft.cli.stdio import complain, write_line, write_pretty
from weft.config.api_keys import masked_setting
from weft.config.paths import places
from weft.config.setting_keys import KEYS, MODEL_KEYS, known
from weft.config.settings import SettingValue, load_config
from weft.errors import UsageError, did_you_mean

_VERBS: Final = ("list", "get", "set", "unset")


def run(arguments: ParsedArguments) -> int:
    """Show the settings in force, or change the user's own."""
    match arguments.verb.removeprefix("config "):
        case "set" | "unset" as verb:
            return _change(arguments, is_set=verb == "set")
        case "get":
            return _get(arguments)
        case _:
            return _list(arguments)


def _list(arguments: ParsedArguments) -> int:
    app = make_app(arguments)
    for problem in app.config.problems:
        complain(f"left out: {problem}")
    values = app.config.all()
    _check_names(arguments.words)
    chosen = {
        n: value for n, value in values.items() if not arguments.words or n in arguments.words
    }
    if arguments.flag("json"):
        write_pretty({name: _plain(name, value) for name, value in chosen.items()})
        return OK
    print_table(
        [(name, _shown(value.value), value.source) for name, value in chosen.items()],
        head=("setting", "value", "from"),
    )
    if arguments.words:
        for name in chosen:
            write_line(f"\n{name}: {KEYS[name].about}")
    else:
        write_line(
            f"\nfiles: {app.places.config / 'config.toml'}, then .weft/config.toml in the project"
        )
        write_line(f"data:  {app.places.home}")
    return OK


def _get(arguments: ParsedArguments) -> int:
    if len(arguments.words) != 1:
        raise UsageError("`weft config get` takes the name of one setting; `weft config` lists all")
    name = arguments.words[0]
    known(name)
    value = masked_setting(make_app(arguments).config.get(name))
    if arguments.flag("json") or isinstance(value, dict):
        write_pretty(value)
    elif isinstance(value, list):
        for each in value:
            write_line(str(each))
    else:
        write_line(str(value).lower() if isinstance(value, bool) else str(value))
    return OK


def _change(arguments: ParsedArguments, *, is_set: bool) -> int:
    """Change the user's file; not through the application, which refuses a file that is wrong."""
    from weft.config.settings_file import SettingsFile, setting_note

    name, value = _name_and_value(arguments, is_set=is_set)
    where = places(os.environ)
    file = SettingsFile(where.config)
    was_there = True
    if is_set:
        _check_model(name, value)
        file.change(name, value)
    else:
        was_there = file.unset(name)
    found = load_config(user=where.config, environ=os.environ).lookup(name)
    write_line(setting_note(found, name, file.path, was_there=was_there))
    return OK


def _check_names(words: Sequence[str]) -> None:
    if len(words) > 1 and words[0] in KEYS and words[1] not in KEYS:
        # As `git config` sets one.
        text = shlex.join([words[0], " ".join(words[1:])])
        raise UsageError(f"`weft config` shows settings; `weft config set {text}` sets it")
    for name in words:
        _check_name(name)


def _check_name(name: str) -> None:
    """Refuse what is no setting; the word may be a command that was mistyped, too."""
    if name not in KEYS and (hint := did_you_mean(name, _VERBS)):
        raise UsageError(f"`weft config` has no command {name!r}{hint}")
    known(name)


def _name_and_value(arguments: ParsedArguments, *, is_set: bool) -> tuple[str, str]:
    if arguments.text("profile") is not None:
        raise UsageError("`weft config set` changes no profile; write it into your config.toml")
    name, *rest = arguments.words or ("",)
    if is_set and rest:
        return name, " ".join(rest)
    if not is_set and name and not rest:
        return name, ""
    if name:
        known(name)
    usage = "a setting and its value" if is_set else "the name of one setting"
    raise UsageError(f"`weft config {'set' if is_set else 'unset'}` needs {usage}")


def _check_model(name: str, value: str) -> None:
    """Refuse a model that does not exist; with settings that are wrong elsewhere, only its shape is
    looked at.
    """
    if name not in MODEL_KEYS:
        return  # with no model to check, the vendors' modules need not be loaded
    from weft.config.models import environment_models

    try:
        models = environment_models()
    except UsageError:
        return
    models.check_setting(name, value)


def _plain(name: str, value: SettingValue) -> dict[str, Any]:
    return {"value": masked_setting(value.value), "source": value.source, "about": KEYS[name].about}


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(str(each) for each in value) or "(none)"
    return str(masked_setting(value))
