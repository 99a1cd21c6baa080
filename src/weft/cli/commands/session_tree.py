"""`weft session …`, where a session is moved in or shortened: tree, branch, switch, checkpoint,
rewind, undo, differences, compact, summarize.

What puts files back is shown first and needs a yes: from the user at the terminal, or as `--yes`.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from weft.api import RewindPlan
from weft.api.session import Session
from weft.app import App
from weft.cli.commands.table import print_table
from weft.cli.exit_codes import OK
from weft.cli.parse import ParsedArguments
from weft.cli.sanitize import clean_line
from weft.cli.session_options import find_id, newest_id
from weft.cli.stdio import tell, write, write_line, write_pretty
from weft.errors import UsageError
from weft.view import (
    changed_paths,
    compaction_sentence,
    difference_rows,
    difference_summary,
    file_rows,
    rewind_summary,
)

START = "start"
"""What `--to` means the very beginning by."""


async def tree(app: App, arguments: ParsedArguments) -> int:
    """Print every turn of every branch."""
    from weft.view import outline_rows  # only here

    session, _ = await _opened(app, arguments, "ID", most=1)
    view = await session.tree()
    if arguments.flag("json"):
        children = await session.children()
        write_pretty({**msgspec.to_builtins(view), "children": msgspec.to_builtins(children)})
        return OK
    shown = outline_rows(view, await session.children())
    if not shown:
        tell("this session has no messages")
    widest = max((len(place.child or place.node or "") for place in shown), default=0)
    for place in shown:
        detail = f"  ({place.detail})" if place.detail else ""
        name = place.child or place.node or ""
        write_line(f"{name:{widest}}  {place.margin}{clean_line(place.label)}{detail}")
    return OK


async def branch(app: App, arguments: ParsedArguments) -> int:
    """Begin a branch; prints its name."""
    session, _ = await _opened(app, arguments, "ID", most=1)
    at = _place(arguments.text("at"))
    if at is None:
        at = (await session.tree()).head
    if at is None:
        raise UsageError("this session has no messages; there is nothing to branch from")
    made = await session.branch_at(at, arguments.text("name"))
    write_line(made.name)
    return OK


async def switch(app: App, arguments: ParsedArguments) -> int:
    """Make another branch the present one."""
    session, words = await _opened(app, arguments, "ID BRANCH", least=2)
    await session.switch_branch(" ".join(words))
    return OK


async def checkpoint(app: App, arguments: ParsedArguments) -> int:
    """Name the place where the session stands; prints the name."""
    session, words = await _opened(app, arguments, "ID [NAME]")
    write_line(await session.checkpoint(" ".join(words) or None))
    return OK


async def rewind(app: App, arguments: ParsedArguments) -> int:
    """Let a session and its files go back."""
    session, _ = await _opened(app, arguments, "ID", most=1)
    given = arguments.text("to")
    if given is None:
        raise UsageError(
            "`weft session rewind` needs --to: a message, a checkpoint, or start; `weft "
            "session tree` shows them"
        )
    if arguments.flag("files_only") and arguments.flag("conversation_only"):
        raise UsageError("give either --files-only or --conversation-only, not both")
    to = None if given == START else _place(given)
    files, conversation = (
        not arguments.flag("conversation_only"),
        not arguments.flag("files_only"),
    )
    overwrite = arguments.many("overwrite")

    async def go(preview: bool) -> RewindPlan:
        return await session.rewind(
            to, files=files, conversation=conversation, preview=preview, overwrite=overwrite
        )

    return await _rewound(arguments, go)


async def differences(app: App, arguments: ParsedArguments) -> int:
    """List the files that are not what the log tells of."""
    if len(arguments.words) > 1:
        raise UsageError(f"`weft {arguments.verb}` takes [ID]")
    session_id = await (find_id(app, arguments.words[0]) if arguments.words else newest_id(app))
    found = await (await app.sessions.get(session_id)).differences()
    if arguments.flag("json"):
        write_pretty(msgspec.to_builtins(found))
        return OK
    print_table(difference_rows(found))
    tell(difference_summary(found))
    return OK


async def undo(app: App, arguments: ParsedArguments) -> int:
    """Take the last rewind, or the last compaction, back."""
    session, words = await _opened(app, arguments, "ID [rewind or compaction]", most=2)
    what = words[0] if words else "rewind"
    if what == "compaction":
        await session.undo_compaction()
        return OK
    if what != "rewind":
        raise UsageError(f"`weft session undo` undoes a rewind or a compaction, not {what!r}")
    overwrite = arguments.many("overwrite")

    async def go(preview: bool) -> RewindPlan:
        return await session.undo_rewind(preview=preview, overwrite=overwrite)

    return await _rewound(arguments, go)


async def compact(app: App, arguments: ParsedArguments) -> int:
    """Summarize older messages from now on."""
    session, words = await _opened(app, arguments, "ID [focus]")
    report = await session.compact(" ".join(words) or None)
    tell(compaction_sentence(report.tokens_before, report.tokens_after))
    return OK


async def summarize(app: App, arguments: ParsedArguments) -> int:
    """Print a handover document."""
    session, _ = await _opened(app, arguments, "ID", most=1)
    text, path = await session.summarize()
    write(text if text.endswith("\n") else f"{text}\n")
    tell(f"saved in {path}")
    return OK


async def archive(app: App, arguments: ParsedArguments) -> int:
    """Take sessions out of the list, or put them back."""
    if not arguments.words:
        raise UsageError("`weft session archive` needs at least one id")
    ids = [await find_id(app, given) for given in arguments.words]
    for session_id in ids:
        await app.sessions.archive_session(session_id, not arguments.flag("undo"))
    return OK


# --- what they share ---------------------------------------------------------------------


async def _opened(
    app: App, arguments: ParsedArguments, what: str, *, least: int = 1, most: int = sys.maxsize
) -> tuple[Session, Sequence[str]]:
    """The session that the first word names, and the other words."""
    words = arguments.words
    if not least <= len(words) <= most:
        raise UsageError(f"`weft {arguments.verb}` takes {what}")
    return await app.sessions.get(await find_id(app, words[0])), words[1:]


def _place(given: str | None) -> str | int | None:
    """A message by its number, or as it was given."""
    if given is not None and given.removeprefix("-").isdecimal():
        return int(given)
    return given


async def _rewound(arguments: ParsedArguments, go: Callable[[bool], Awaitable[RewindPlan]]) -> int:
    """Show what would happen; do it if the user confirms."""
    plan = await go(True)
    if arguments.flag("json"):
        if not arguments.flag("preview"):
            _must_be_sure(arguments)
            plan = await go(False)
        write_pretty(msgspec.to_builtins(plan))
        return OK
    print_table(file_rows(plan))
    if arguments.flag("preview"):
        tell(f"preview: {rewind_summary(plan)}")
        return OK
    if changed_paths(plan) or plan.conflicts:
        _must_be_sure(arguments)
    done = await go(False)
    tell(rewind_summary(done))
    return OK


def _must_be_sure(arguments: ParsedArguments) -> None:
    if arguments.flag("yes"):
        return
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError("this changes files; add --yes to do it, or --preview to only look")
    sys.stderr.write("Proceed? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UsageError("nothing was changed")
