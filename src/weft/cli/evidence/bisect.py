"""`weft bisect [SESSION] -- CMD`: the turn of a session at which a check began to fail.

Each check is told as it ends, on standard error; what was found is the output.  On a terminal Enter
branches there.
"""

from __future__ import annotations

import shlex
import sys

import anyio.to_thread
import msgspec

from weft.api import Session
from weft.app import App
from weft.cli.commands.confirmation import confirm
from weft.cli.commands.fan_table.live_table import TerminalKeys, is_interactive
from weft.cli.commands.table import print_table
from weft.cli.commands.with_app import with_app
from weft.cli.exit_codes import FAILED, OK
from weft.cli.parse import ParsedArguments
from weft.cli.sanitize import clean_line
from weft.cli.session_options import named_or_last
from weft.cli.stdio import tell, write_line, write_pretty
from weft.errors import UsageError
from weft.evidence import BisectCheck, Bisection
from weft.view import bisection_rows, changed_paths, check_line, file_rows, rewind_summary

_LONGEST_TITLE = 120


def run(arguments: ParsedArguments) -> int:
    """Find it."""
    check = check_of(arguments.literal)
    return with_app(arguments, lambda app: _bisected(app, arguments, check))


def check_of(words: tuple[str, ...]) -> str:
    """The shell command that the words behind `--` are.

    Raises:
        UsageError: there are none.
    """
    if not words or not "".join(words).strip():
        raise UsageError("`weft bisect` needs a check behind `--`: weft bisect -- make test")
    return words[0] if len(words) == 1 else shlex.join(words)


async def _bisected(app: App, arguments: ParsedArguments, check: str) -> int:
    named = arguments.words[: len(arguments.words) - len(arguments.literal)]
    session = await app.sessions.get(await named_or_last(app, named, "bisect"))
    is_json = arguments.flag("json")
    jobs, timeout = arguments.whole("jobs"), arguments.number("timeout")

    async def ask_copies(why: str) -> bool:
        if not arguments.flag("yes"):
            await anyio.to_thread.run_sync(_confirm_copies, why)
        return True

    def told(check: BisectCheck) -> None:
        if not is_json:
            tell(clean_line(check_line(check)))

    found = await session.bisect(
        check,
        end_of(arguments.text("good")),
        end_of(arguments.text("bad")),
        jobs=1 if jobs is None else jobs,
        timeout_seconds=600.0 if timeout is None else timeout,
        in_copies=ask_copies,
        on_check=told,
    )
    code = OK if found.outcome == "found" else FAILED
    if is_json:
        write_pretty({**msgspec.to_builtins(found), "can_branch": found.can_branch})
        return code
    write_line(clean_line(found.sentence))
    print_table([(name, clean_line(text)) for name, text in bisection_rows(found)])
    if arguments.flag("note"):
        await _note(app, session, found)
    elif is_interactive() and found.outcome in ("found", "range"):
        await _offer(app, session, found)
    return code


def end_of(given: str | None) -> str | int | None:
    """An end as it is given: a turn by its number, or a message by its id."""
    if given is None:
        return None
    return int(given) if given.isdecimal() and len(given) < 10 else given


def _confirm_copies(why: str) -> None:
    confirm(
        f"No overlay for the checks here ({why}). Run them in copies, outside the sandbox?",
        unasked=f"there is no overlay for the checks here ({why}); --yes runs them in copies of "
        "the project, outside the sandbox",
        refused="nothing was checked",
    )


# -- what to do with it


async def _offer(app: App, session: Session, found: Bisection) -> None:
    """Enter branches there, `o` puts it down as an observation."""
    ways = ["o notes it as an observation", "any other key leaves it"]
    if found.can_branch:
        ways.insert(0, "Enter branches there (what goes back is shown first)")
    tell("; ".join(ways))
    keys = TerminalKeys(sys.stdin.fileno())
    with keys.taken():
        key = await keys.read()
    if key == "o":
        await _note(app, session, found)
    elif key in ("\n", "\r") and found.can_branch:
        await _branch(session, found)


async def _branch(session: Session, found: Bisection) -> None:
    plan = await session.rewind(found.branch_at, preview=True)
    print_table(file_rows(plan))
    if changed_paths(plan):
        tell(rewind_summary(plan))
    assert found.bad is not None
    await anyio.to_thread.run_sync(_confirm_branch, found.bad.name)
    await session.rewind(found.branch_at)
    tell(f"`weft -r {session.id}` goes on there; `weft session undo {session.id}` takes it back")


def _confirm_branch(name: str) -> None:
    confirm(
        f"Go back to before {name}?", unasked="nothing was changed", refused="nothing was changed"
    )


async def _note(app: App, session: Session, found: Bisection) -> None:
    node = await app.decisions.log(
        found.sentence[:_LONGEST_TITLE],
        kind="observation",
        why=f"weft bisect -- {found.check}: {found.sentence}",
        scope=found.paths[:20],
        session=session.id,
    )
    tell(f"noted as {node.id}")
