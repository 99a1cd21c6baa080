"""`weft ps`: every session at a glance, those that need the user first."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Final, Literal

import anyio
import msgspec

from weft.api import SessionRow
from weft.app import App
from weft.cli.commands.table import money, print_table, when
from weft.cli.commands.with_app import with_app
from weft.cli.exit_codes import OK
from weft.cli.parse import ParsedArguments
from weft.cli.stdio import tell, write, write_pretty
from weft.errors import WeftError
from weft.ids import SessionId

State = Literal["needs you", "interrupted", "error", "working", "waiting", "idle"]
ORDER: Final[tuple[State, ...]] = (
    "needs you",
    "error",
    "interrupted",
    "working",
    "waiting",
    "idle",
)
_STATES: Final[dict[str, State]] = {
    "awaiting_permission": "needs you",
    "interrupted": "interrupted",
    "error": "error",
    "thinking": "working",
    "executing_tool": "working",
    "waiting": "waiting",
    "idle": "idle",
}
LISTED: Final = 20
"""Sessions that are looked at, unless another number is given."""
LOOK_AGAIN_SECONDS: Final = 2.0
"""What another process does without a change of the list is seen so late, while one watches."""
CLEAR: Final = "\x1b[H\x1b[2J"


class SessionLine(msgspec.Struct, frozen=True, kw_only=True):
    """One session, as the overview has it."""

    id: SessionId
    state: State
    title: str
    project_path: str
    model: str
    last_active: float
    cost_usd: float | None
    asks: str = ""
    """What it asks for, where it needs the user."""


def run(arguments: ParsedArguments) -> int:
    """Show the sessions, once or until the user leaves."""
    return with_app(arguments, lambda app: _show(app, arguments))


async def _show(app: App, arguments: ParsedArguments) -> int:
    limit = arguments.whole("limit") or LISTED
    if not arguments.flag("watch"):
        _print(await overview(app, limit), as_json=arguments.flag("json"))
        return OK
    changes = await app.subscribe("sessions")
    while True:
        lines = await overview(app, limit)
        if sys.stdout.isatty():
            write(CLEAR)
        _print(lines, as_json=arguments.flag("json"))
        with anyio.move_on_after(LOOK_AGAIN_SECONDS):
            await anext(changes)


async def overview(app: App, limit: int) -> list[SessionLine]:
    """The sessions that were active last, those that need the user first.

    What no process works on is only read; what one does is asked of it.
    """
    rows = await app.sessions.list_saved(limit=limit)
    lines = [await _line(app, row, row.id in rows.working) for row in rows]
    return in_order(lines)


def in_order(lines: Iterable[SessionLine]) -> list[SessionLine]:
    """Those that need the user first, then the last active first."""
    return sorted(lines, key=lambda line: (ORDER.index(line.state), -line.last_active))


async def _line(app: App, row: SessionRow, is_working: bool) -> SessionLine:
    state, asks = await _state(app, row, is_working)
    return SessionLine(
        id=row.id,
        state=state,
        title=row.title or row.first_prompt,
        project_path=row.project_path,
        model=row.model,
        last_active=row.last_active,
        cost_usd=row.cost_usd,
        asks=asks,
    )


async def _state(app: App, row: SessionRow, is_working: bool) -> tuple[State, str]:
    if row.waits:
        return "waiting", ""
    if not is_working:
        return ("interrupted" if row.turn_open else "idle"), ""
    try:
        snapshot = await (await app.sessions.get(row.id)).editor_snapshot()
    except WeftError:
        return "working", ""  # its process does not answer now
    asked = [getattr(each, "tool_name", "") or "a question" for each in snapshot.requests]
    return _STATES.get(snapshot.status, "working"), ", ".join(asked)


def _print(lines: list[SessionLine], *, as_json: bool) -> None:
    if as_json:
        write_pretty([msgspec.to_builtins(line) for line in lines])
        return
    if not lines:
        tell("no sessions yet")
        return
    table = [
        (
            line.id,
            f"{line.state}: {line.asks}" if line.asks else line.state,
            when(line.last_active),
            money(line.cost_usd),
            os.path.basename(line.project_path),
            line.title,
        )
        for line in lines
    ]
    print_table(table, head=("id", "state", "last active", "cost", "project", "title"))
