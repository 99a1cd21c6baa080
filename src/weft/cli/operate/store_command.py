"""`weft store`: copy a store that is in use, check all of it, give back the room that it does not
need; move it to Postgres or back.
"""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import msgspec

from weft.app import App
from weft.app.store_care import (
    backup,
    checked,
    copy_store,
    is_postgres,
    migrate_postgres,
    vacuum,
)
from weft.cli.commands.table import print_table
from weft.cli.commands.with_app import with_app
from weft.cli.exit_codes import FAILED, OK
from weft.cli.parse import ParsedArguments
from weft.cli.session_options import make_app
from weft.cli.stdio import tell, write_line, write_pretty
from weft.errors import UsageError
from weft.view import count_of, next_rows, size_text, store_lines


def run(arguments: ParsedArguments) -> int:
    """Carry out a `store` command."""
    app = make_app(arguments)
    own, address = app.places.database, str(app.config.get("store.address"))
    if arguments.verb == "store copy":
        return _copy(arguments)
    if arguments.verb == "store migrate":
        return _migrate(address, arguments)
    if arguments.verb in ("store", "store show"):
        if own.is_file() and not is_postgres(address):
            tell(f"{size_text(own.stat().st_size)} in {own}, of all projects")
        return with_app(arguments, lambda app: _show(app, as_json=arguments.flag("json")))
    if is_postgres(address) and not arguments.words:
        raise UsageError(
            "sessions are kept in Postgres: back it up with pg_dump, shrink it with vacuum"
        )
    match arguments.verb:
        case "store backup":
            return _backup(own, arguments)
        case "store vacuum":
            return _vacuum(own, arguments)
        case "store path":
            write_line(str(own))
            return OK
        case _:
            return _verify(own, arguments)


async def _show(app: App, *, as_json: bool) -> int:
    found = await app.kept_contents()
    if as_json:
        write_pretty(msgspec.to_builtins(found))
        return OK
    for line in store_lines(found):
        tell(line)
    if rows := next_rows(found):
        print_table(rows, head=("file", "size", "lost to", "message", "session"))
    return OK


def _backup(own: Path, arguments: ParsedArguments) -> int:
    if len(arguments.words) != 1 or not arguments.words[0]:
        raise UsageError("weft store backup takes the file to write")
    target = _path(arguments.words[0])
    if target.is_dir():
        target = target / own.name
    size = backup(_there(own), target)
    if arguments.flag("json"):
        write_pretty({"path": str(target), "bytes": size})
    else:
        tell(f"{size_text(size)} in {target}; `weft store verify {target}` checks it")
    return OK


def _vacuum(own: Path, arguments: ParsedArguments) -> int:
    report = vacuum(_there(own))
    if arguments.flag("json"):
        write_pretty({**msgspec.to_builtins(report), "freed": report.freed})
        return OK
    tell(
        f"freed {size_text(report.freed)}: {size_text(report.bytes_before)} before, "
        f"{size_text(report.bytes_after)} now; contents that no session names: "
        f"{size_text(report.unnamed_bytes)}"
    )
    return OK


def _verify(own: Path, arguments: ParsedArguments) -> int:
    if len(arguments.words) > 1:
        raise UsageError("weft store verify takes one file")
    path = _there(_path(arguments.words[0]) if arguments.words else own)
    found = anyio.run(checked, path)
    if arguments.flag("json"):
        write_pretty(msgspec.to_builtins(found))
    else:
        for problem in found.problems:
            write_line(problem)
        tell(
            f"{path}: {count_of(found.logs, 'log')} with {count_of(found.facts, 'fact')} "
            f"and {count_of(found.blobs, 'blob')}; "
            + (count_of(len(found.problems), "problem") if found.problems else "all is well")
        )
    return FAILED if found.problems else OK


def _migrate(address: str, arguments: ParsedArguments) -> int:
    if len(arguments.words) > 1:
        raise UsageError("weft store migrate takes one address")
    given = arguments.words[0] if arguments.words else address
    if not is_postgres(given):
        raise UsageError("weft store migrate takes an address, postgres://USER@HOST/DATABASE")
    tell(f"the schema is at version {anyio.run(migrate_postgres, given)}")
    return OK


def _copy(arguments: ParsedArguments) -> int:
    if len(arguments.words) != 2:
        raise UsageError("weft store copy takes what to copy, and where to: FROM TO")
    source, target = arguments.words
    if is_postgres(source) == is_postgres(target):
        raise UsageError("one of both is a SQLite file, the other postgres://USER@HOST/DATABASE")
    report = anyio.run(copy_store, _named(source), _named(target))
    if arguments.flag("json"):
        write_pretty(msgspec.to_builtins(report))
    else:
        tell(
            f"copied {count_of(report.rows['sessions'], 'session')} with "
            f"{count_of(report.rows['facts'], 'fact')} and "
            f"{count_of(report.rows['blobs'], 'blob')}; both are alike"
        )
    return OK


def _named(given: str) -> str:
    return given if is_postgres(given) else str(_path(given))


def _path(given: str) -> Path:
    return Path(os.path.abspath(Path(given).expanduser()))  # without the dots that were typed


def _there(path: Path) -> Path:
    if not path.is_file():
        raise UsageError(f"there is no store at {path}")
    return path
