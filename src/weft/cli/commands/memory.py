"""`weft memory`: what is remembered for this project and for every one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import msgspec

from weft.cli.commands.table import print_table
from weft.cli.exit_codes import OK
from weft.cli.parse import ParsedArguments
from weft.cli.session_options import make_app
from weft.cli.stdio import complain, tell, write_line, write_pretty
from weft.errors import UsageError

if TYPE_CHECKING:
    from weft.app.memory import AppMemory
    from weft.project.memory import MemoryScope


def run(arguments: ParsedArguments) -> int:
    """List, add, edit or forget."""
    memory = make_app(arguments).memory
    scope: MemoryScope = "user" if arguments.flag("user") else "project"
    match arguments.verb.removeprefix("memory").strip():
        case "add":
            anyio.run(_add, memory, " ".join(arguments.words), scope)
        case "edit":
            anyio.run(_edit, memory, scope)
        case "forget":
            anyio.run(_forget, memory, arguments.words)
        case _:
            anyio.run(_list, memory, arguments.flag("json"))
    return OK


async def _list(memory: AppMemory, as_json: bool) -> None:
    for problem in (await memory.text()).problems:
        complain(f"left out: {problem}")
    notes = await memory.list()
    if as_json:
        write_pretty(msgspec.to_builtins(notes))
        return
    if not notes:
        tell("nothing is remembered here; `weft memory add TEXT` remembers something")
        return
    rows = [(each.id, each.scope, each.text.replace("\n", " ")) for each in notes]
    print_table(rows, head=("id", "scope", "text"))
    write_line("\nfiles: " + ", ".join(dict.fromkeys(each.path for each in notes)))


async def _add(memory: AppMemory, text: str, scope: MemoryScope) -> None:
    note = await memory.add(text, scope)
    write_line(f"{note.id}  {note.path}")


async def _edit(memory: AppMemory, scope: MemoryScope) -> None:
    from weft.cli.chat.screens.external_editor import edited

    before = await memory.source(scope)
    after = await anyio.to_thread.run_sync(edited, before, ".md")
    tell(await memory.rewrite(scope, before, after) or "nothing was changed")


async def _forget(memory: AppMemory, ids: tuple[str, ...]) -> None:
    if not ids:
        raise UsageError("`weft memory forget` needs an id; `weft memory` lists them")
    for note_id in ids:
        note = await memory.remove(note_id)
        write_line(f"forgotten: {note.text}")
