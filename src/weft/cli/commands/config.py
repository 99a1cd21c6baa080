"""`weft config`: every setting, its value, and where it came from."""

from __future__ import annotations

from typing import Any

from weft.cli.commands.table import print_table
from weft.cli.exit_codes import OK
from weft.cli.parse import ParsedArguments
from weft.cli.session_options import make_app
from weft.cli.stdio import complain, write_line, write_pretty
from weft.config.api_keys import is_secret_field
from weft.config.settings import KEYS, SettingValue, known


def run(arguments: ParsedArguments) -> int:
    """Show the settings in force."""
    app = make_app(arguments)
    for problem in app.config.problems:
        complain(f"left out: {problem}")
    values = app.config.all()
    for name in arguments.words:
        known(name)
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


def _plain(name: str, value: SettingValue) -> dict[str, Any]:
    return {"value": masked(value.value), "source": value.source, "about": KEYS[name].about}


def masked(value: Any, name: str = "") -> Any:
    """A setting without the keys that stand in it."""
    if isinstance(value, dict):
        return {inner: masked(each, inner) for inner, each in value.items()}
    return "…" if value and isinstance(value, str) and is_secret_field(name) else value


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(str(each) for each in value) or "(none)"
    return str(masked(value))
