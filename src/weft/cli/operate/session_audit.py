"""`weft audit`: every effect of a session, with who allowed it and why."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import msgspec

from weft.app import App
from weft.cli.commands.table import print_table
from weft.cli.commands.with_app import with_app
from weft.cli.exit_codes import OK
from weft.cli.parse import ParsedArguments
from weft.cli.session_options import named_or_last
from weft.cli.stdio import tell, write_pretty

if TYPE_CHECKING:
    from weft.api.permissions.effect_log import AuditEntry

_LONGEST: Final = 60
_READS: Final = "read"


def run(arguments: ParsedArguments) -> int:
    """List the effects."""

    async def work(app: App) -> int:
        found = await app.permissions.audit(await named_or_last(app, arguments.words, "audit"))
        if arguments.flag("changes"):
            found = [each for each in found if each.effect != _READS]
        if arguments.flag("json"):
            write_pretty(msgspec.to_builtins(found))
        elif not found:
            tell("this session has had no effect")
        else:
            print_table(list(map(_row, found)), head=("time", "what", "result", "by", "because"))
        return OK

    return with_app(arguments, work)


def _row(entry: AuditEntry) -> tuple[str, ...]:
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry.at))
    changed = f" ({', '.join(entry.files)})" if entry.files else ""
    what = _shortened(f"{entry.what} {entry.target}".strip() + changed)
    return at, what, entry.outcome, entry.by, _shortened(entry.why)


def _shortened(text: str) -> str:
    line = " ⏎ ".join(text.splitlines())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
