"""`weft fan PROMPT`, and `weft fan list|show|diff|compare|keep|prune|resume|close`."""

from __future__ import annotations

import re
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec

from weft.api import Session
from weft.api.fan import Fan, FanSummary, KeepOutcome
from weft.app import App
from weft.cli.commands.fan_table.live_table import (
    LiveTable,
    TerminalKeys,
    columns,
    is_interactive,
    to_terminal,
)
from weft.cli.commands.fan_table.next_step import next_step
from weft.cli.commands.fan_table.rows import HEAD, kept_lines, row, taken_back
from weft.cli.commands.fan_table.stop_rule import stop_rule
from weft.cli.commands.table import print_table, when
from weft.cli.commands.with_app import with_app
from weft.cli.exit_codes import FAILED, NO_KEY, OK, CommandExit
from weft.cli.parse import ParsedArguments
from weft.cli.sanitize import clean_line
from weft.cli.session_options import find_id
from weft.cli.stdio import tell, write, write_line, write_pretty
from weft.errors import UsageError, WeftError
from weft.view import count_of

_SHOWN: Final = 60
_ID: Final = re.compile(r"fan_[0-9a-z]{26}")
_NEEDED: Final = ("ID", "N", "M")
_NUMBERS: Final = ("", " and the number of a candidate", " and the numbers of two candidates")


def run(arguments: ParsedArguments) -> int:
    """Carry out a `fan` command."""
    if arguments.verb == "fan open":
        return _open(arguments)
    work = _COMMANDS[arguments.verb.removeprefix("fan ")]
    try:
        return with_app(arguments, lambda app: work(app, arguments))
    except _OpenCandidate as wanted:
        from weft.cli.chat.start import run_chat  # not for a table
        from weft.cli.parse import parse

        return run_chat(parse([]), candidate=wanted.candidate)


def _open(arguments: ParsedArguments) -> int:
    """Go on with a candidate in the chat."""
    from weft.cli.chat.start import run_chat  # not for a table
    from weft.cli.parse import parse

    if len(arguments.words) != 2:
        raise UsageError("`weft fan open` takes the id of a fan-out and a candidate's number")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("a candidate is gone on with in the chat, and that needs a terminal")
    return run_chat(parse([]), candidate=(arguments.words[0], _number(arguments, 1)))


async def _run(app: App, arguments: ParsedArguments) -> int:
    prompt = " ".join(arguments.words).strip()
    if not prompt:
        raise UsageError('say what the candidates are to do: `weft fan "mend the parser" -n 3`')
    if len(arguments.words) > 1 and any(map(_ID.fullmatch, arguments.words)):
        # Else a command that is misspelled would begin a fan-out.
        named = ", ".join(name for name in _COMMANDS if name != "run")
        raise UsageError(
            f"there is no `weft fan {arguments.words[0]}`; there are {named}, open. A task that "
            "names a fan-out is put in quotes"
        )
    stop, budget = stop_rule(arguments.text("stop_when"))
    verify = arguments.text("verify")
    if verify is not None and not verify.strip():
        raise UsageError("--verify needs a command, as in --verify 'make test'")
    models = arguments.many("model")
    session = await _session(app, arguments, prompt)
    try:
        fan = await session.generate_branches(
            prompt,
            arguments.whole("candidates") or max(4, len(models)),
            models,
            verify,
            verify_runs=arguments.whole("verify_runs") or 1,
            base="head" if arguments.text("base") == "head" else "now",
            stop=stop,
            budget_usd=budget,
            judge=arguments.text("judge"),
        )
    except WeftError:
        if arguments.text("session") is None:
            # It was made for this alone.
            await app.sessions.delete_session(session.id)
        raise
    return await _followed(fan, arguments)


async def _session(app: App, arguments: ParsedArguments, prompt: str) -> Session:
    """The session that is named, or a new one."""
    if (given := arguments.text("session")) is not None:
        return await app.sessions.get(await find_id(app, given))
    named = next(iter(arguments.many("model")), None)
    if named is None and not app.host.has_default_model():
        from weft.cli.local_model import NO_KEY_LINES  # only for those who have no key

        raise CommandExit(NO_KEY, NO_KEY_LINES)
    if why := app.host.missing_key(named or app.host.default_model()):
        raise UsageError(why)
    return await app.sessions.start_session(model=named, title=prompt[:_SHOWN], asking="no")


async def _followed(fan: Fan, arguments: ParsedArguments) -> int:
    """Show a fan-out at work until it is settled; on a terminal until the user quits."""
    is_json = arguments.flag("json")
    if not is_json and is_interactive():
        return await _live(fan)
    if not is_json:
        tell(f"{fan.id}: {count_of(fan.planned, 'candidate')}; Ctrl-C {_pauses(fan)}")
        for note in fan.notes:
            tell(note)
    await fan.wait()
    _show_fan(fan, is_json=is_json)
    if not is_json and (hint := await next_step(fan)):
        tell(hint)
    return _code(fan)


def _pauses(fan: Fan) -> str:
    what = "it" if fan.planned == 1 else "them"
    return f"pauses {what}, `weft fan resume {fan.id}` goes on"


def _code(fan: Fan) -> int:
    return OK if any(each.is_best or each.state == "kept" for each in fan.candidates()) else FAILED


async def _live(fan: Fan) -> int:
    """The table with keys; what runs when the user quits is suspended, to be resumed."""
    count = count_of(fan.planned, "candidate")
    tell(f"{fan.id}: {count}; q {_pauses(fan)}")
    keys = TerminalKeys(sys.stdin.fileno())
    table = LiveTable(fan, read_key=keys.read, write=to_terminal, width=columns)
    with keys.taken():
        await table.run()
    _show_fan(fan, is_json=False)
    if table.opens:
        raise _OpenCandidate(fan.id, table.opens)
    if hint := await next_step(fan):
        tell(hint)
    return _code(fan)


class _OpenCandidate(CommandExit):
    """The user wants to go on with a candidate in the chat."""

    def __init__(self, fan_id: str, number: int) -> None:
        super().__init__(OK)
        self.candidate = (fan_id, number)


def _show_fan(fan: Fan, *, is_json: bool) -> None:
    candidates = fan.candidates()
    if is_json:
        write_pretty(
            {
                "fan": fan.id,
                "session": fan.session_id,
                "prompt": fan.prompt,
                "verify": fan.verify_command,
                "notes": list(fan.notes),
                "verdict": fan.verdict,
                "candidates": [msgspec.to_builtins(each) for each in candidates],
            }
        )
        return
    print_table([row(each) for each in candidates], head=HEAD)
    if fan.verdict:
        write_line(f"the judge, of those that stand equal: {clean_line(fan.verdict)}")
    for each in candidates:
        if each.state == "failed" and (why := each.detail or each.text):
            write_line(f"{each.index}: {clean_line(' '.join(why.split()))[:300]}")


async def _list(app: App, arguments: ParsedArguments) -> int:
    found = await app.fans()
    if arguments.flag("json"):
        write_pretty([msgspec.to_builtins(each) for each in found])
        return OK
    if not found:
        tell('no fan-outs yet; `weft fan "PROMPT" -n 3 --verify CMD` begins one')
        return OK
    rows = [
        (
            each.id,
            when(each.at),
            f"{each.ended} of {each.planned}",
            str(each.passed) if each.passed else "",
            ", ".join(map(str, each.kept)) or ("closed" if each.is_closed else ""),
            _task(each)[:_SHOWN],
        )
        for each in found
    ]
    print_table(rows, head=("id", "begun", "ended", "passed", "kept", "task"))
    return OK


def _task(summary: FanSummary) -> str:
    task = clean_line(" ".join(summary.prompt.split()))
    return f"agent {clean_line(summary.agent)}: {task}" if summary.agent else task


async def _show(app: App, arguments: ParsedArguments) -> int:
    fan = await _fan(app, arguments, 1)
    if arguments.flag("live") and is_interactive():
        return await _live(fan)
    if not arguments.flag("json"):
        write_line(f"{fan.id}: {clean_line(' '.join(fan.prompt.split()))}")
        if fan.verify_command:
            write_line(f"verify: {clean_line(fan.verify_command)}")
        for note in fan.notes:
            write_line(note)
    _show_fan(fan, is_json=arguments.flag("json"))
    if not arguments.flag("json") and fan.is_settled and (hint := await next_step(fan)):
        tell(hint)
    return OK


async def _diff(app: App, arguments: ParsedArguments) -> int:
    fan = await _fan(app, arguments, 2)
    number = _number(arguments, 1)
    found = await fan.diff(number)
    write(found)
    if not found:
        tell(f"candidate {number} changed nothing")
    return OK


async def _compare(app: App, arguments: ParsedArguments) -> int:
    fan = await _fan(app, arguments, 3)
    first, second = _number(arguments, 1), _number(arguments, 2)
    found = await fan.compare(first, second)
    write(found)
    if not found:
        tell(f"candidates {first} and {second} changed the same")
    return OK


async def _keep(app: App, arguments: ParsedArguments) -> int:
    fan = await _fan(app, arguments, 2)
    is_preview = arguments.flag("dry_run")
    outcome = await fan.keep(
        _number(arguments, 1),
        preview=is_preview,
        force=arguments.flag("force"),
        conflicts="markers" if arguments.text("conflicts") == "markers" else "mine",
    )
    if arguments.flag("json"):
        write_pretty(_kept_as_data(outcome))
    else:
        for line in kept_lines(outcome, is_preview=is_preview):
            write_line(line)
        if outcome.is_kept:
            write_line(taken_back(fan.session_id))
        elif outcome.plan.paths("conflict"):
            write_line("--conflicts markers puts both versions there, between markers")
    return OK if is_preview or outcome.is_kept else FAILED


def _kept_as_data(outcome: KeepOutcome) -> dict[str, Any]:
    files = outcome.plan.files
    return {
        "kept": outcome.is_kept,
        "files": [{"path": f.path, "action": f.action, "why": f.why} for f in files],
        "left_out": list(outcome.plan.left_out),
        "verified": None if outcome.verified is None else outcome.verified.passed,
        "aside": outcome.aside,
        "left": list(outcome.left),
        "remarks": list(outcome.remarks),
    }


async def _prune(app: App, arguments: ParsedArguments) -> int:
    fan = await _fan(app, arguments, 2)
    for place in range(1, len(arguments.words)):
        number = _number(arguments, place)
        was = {each.index: each.state for each in fan.candidates()}.get(number)
        await fan.prune(number, force=arguments.flag("force"))
        if was == "pruned":
            tell(f"candidate {number} was pruned already")
        else:
            tell(f"candidate {number} is pruned; `weft fan restore {fan.id} {number}` undoes it")
    return OK


async def _restore(app: App, arguments: ParsedArguments) -> int:
    fan = await _fan(app, arguments, 2)
    for place in range(1, len(arguments.words)):
        number = _number(arguments, place)
        await fan.restore(number)
        tell(f"candidate {number} is there again, with what it had changed")
    return OK


async def _resume(app: App, arguments: ParsedArguments) -> int:
    fan = await _fan(app, arguments, 1)
    numbers = [_number(arguments, place) for place in range(1, len(arguments.words))]
    await fan.resume(numbers or None)
    return await _followed(fan, arguments)


async def _close(app: App, arguments: ParsedArguments) -> int:
    fan = await _fan(app, arguments, 1)
    if fan.is_closed:
        tell(f"{fan.id} was closed already")
        return OK
    await fan.close()
    tell(f"{fan.id} is closed: nothing of it is left on disk but its record, with all diffs")
    return OK


async def _fan(app: App, arguments: ParsedArguments, words: int) -> Fan:
    if len(arguments.words) < words:
        needed = " ".join(_NEEDED[:words])
        raise UsageError(
            f"write `weft {arguments.verb} {needed}`: the id of a fan-out (`weft fan list` shows "
            f"them){_NUMBERS[words - 1]}"
        )
    return await app.fan(arguments.words[0])


def _number(arguments: ParsedArguments, place: int) -> int:
    word = arguments.words[place]
    if not word.isdecimal():
        raise UsageError(f"a candidate is named by its number, not {word!r}")
    return int(word)


_COMMANDS: Mapping[str, Callable[[App, ParsedArguments], Awaitable[int]]] = {
    "run": _run,
    "list": _list,
    "show": _show,
    "diff": _diff,
    "compare": _compare,
    "keep": _keep,
    "prune": _prune,
    "restore": _restore,
    "resume": _resume,
    "close": _close,
}
