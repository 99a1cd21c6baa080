"""`weft context`: who uses what of the model's window, in the last request of a session; with
`--diff`, what its last compaction changed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import msgspec

from weft.app import App
from weft.app.context_report import context_report
from weft.cli.chat.paint.context_rows import more_rows, zone_rows
from weft.cli.chat.paint.theme import ascii_text
from weft.cli.commands.compaction_diff import show_diff
from weft.cli.commands.table import print_table
from weft.cli.commands.with_app import with_app
from weft.cli.exit_codes import OK
from weft.cli.parse import ParsedArguments
from weft.cli.session_options import named_or_last
from weft.cli.stdio import tell, write_line, write_pretty


def run(arguments: ParsedArguments) -> int:
    """Show the zones of a session's context, or what its last compaction changed."""
    return with_app(arguments, lambda app: _show(app, arguments))


async def _show(app: App, arguments: ParsedArguments) -> int:
    session = await app.sessions.get(await named_or_last(app, arguments.words, "context"))
    if arguments.flag("diff"):
        return await show_diff(app, session, as_json=arguments.flag("json"))
    report = await context_report(session, app.host)
    if arguments.flag("json"):
        known = {} if report is None else msgspec.to_builtins(report)
        write_pretty({"session": session.id, **known})
        return OK
    if report is None:
        tell("nothing was sent to a model in this session yet")
        return OK
    print_table(_written(zone_rows(report)))
    write_line("")
    rows = more_rows(report, "`weft session compact ID`")
    print_table(_written((("model", report.model), *rows, ("session", session.id))))
    return OK


def _written(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """The rows as the output can show them."""
    is_unicode = sys.stdout is not None and (sys.stdout.encoding or "").lower().startswith("utf")
    return [[cell if is_unicode else ascii_text(cell) for cell in row] for row in rows]
