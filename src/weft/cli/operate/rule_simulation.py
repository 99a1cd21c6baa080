"""`weft permissions simulate`: what a rule would have changed in the sessions of the past."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import msgspec

from weft.app import App
from weft.cli.commands.table import print_table
from weft.cli.commands.with_app import with_app
from weft.cli.exit_codes import OK
from weft.cli.parse import ParsedArguments
from weft.cli.stdio import tell, write_line, write_pretty
from weft.errors import UsageError
from weft.view import count_of

if TYPE_CHECKING:
    from weft.api.permissions.rule_simulation import RuleSimulation
    from weft.permissions import Mode, Verdict

_MOST_SHOWN: Final = 40
_LONGEST: Final = 70


def simulate(arguments: ParsedArguments) -> int:
    """Simulate a rule."""
    verdict, rule = _rule(arguments.words)
    mode = cast("Mode", arguments.text("mode") or "default")

    async def work(app: App) -> int:
        found = await app.permissions.simulate(
            verdict, rule, mode=mode, everywhere=arguments.flag("all")
        )
        if arguments.flag("json"):
            write_pretty(msgspec.to_builtins(found))
        else:
            _show(found)
        return OK

    return with_app(arguments, work)


def _rule(words: tuple[str, ...]) -> tuple[Verdict, str]:
    """A rule alone is one that allows."""
    if len(words) == 1:
        return "allow", words[0]
    if len(words) != 2:
        raise UsageError("it takes a rule such as 'shell(git diff *)', after allow, ask or deny")
    return cast("Verdict", words[0]), words[1]


def _show(found: RuleSimulation) -> None:
    calls = count_of(found.calls, "call")
    write_line(
        f"{found.verdict} {found.rule}: it means {found.covered} of {calls} in "
        f"{count_of(found.sessions, 'session')}, and changes what is decided of "
        f"{sum(each.times for each in found.changed)}"
    )
    if not found.calls:
        tell("there is no session with a call that a rule could mean")
        return
    before, after = found.before, found.after
    rows = [
        (name, str(getattr(before, name)), str(getattr(after, name)))
        for name in ("allow", "ask", "deny")
    ]
    print_table(rows, head=("verdict", "now", "with it"))
    shown = [
        (each.before, each.after, str(each.times), each.tool, _on_one_line(each.text))
        for each in found.changed[:_MOST_SHOWN]
    ]
    if shown:
        write_line("")
        print_table(shown, head=("now", "with it", "times", "tool", "call"))
    if len(found.changed) > _MOST_SHOWN:
        tell(f"and {len(found.changed) - _MOST_SHOWN} more; --json has all")


def _on_one_line(text: str) -> str:
    line = " ⏎ ".join(text.splitlines())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
