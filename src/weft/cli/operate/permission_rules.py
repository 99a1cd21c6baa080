"""`weft permissions`: the standing rules, and what they say of a command."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import anyio
import msgspec

from weft.cli.commands.table import print_table
from weft.cli.exit_codes import OK
from weft.cli.parse import ParsedArguments
from weft.cli.session_options import make_app
from weft.cli.stdio import tell, write_line, write_pretty
from weft.errors import UsageError
from weft.view import count_of

if TYPE_CHECKING:
    from weft.api.permissions.standing_rules import AppPermissions, PermissionExplanation
    from weft.permissions import Mode, Verdict


def run(arguments: ParsedArguments) -> int:
    """List, add, import, remove, explain or simulate."""
    if arguments.verb.endswith("simulate"):
        from weft.cli.operate.rule_simulation import simulate  # it reads sessions

        return simulate(arguments)
    permissions = make_app(arguments).permissions
    match arguments.verb.removeprefix("permissions").strip():
        case "add":
            anyio.run(_add, permissions, arguments)
        case "import":
            anyio.run(_import, permissions, arguments)
        case "remove":
            anyio.run(_remove, permissions, arguments.words)
        case "explain":
            anyio.run(_explain, permissions, arguments)
        case _:
            _list(permissions, as_json=arguments.flag("json"))
    return OK


def _list(permissions: AppPermissions, *, as_json: bool) -> None:
    rules = permissions.list()
    if as_json:
        write_pretty(msgspec.to_builtins(rules))
    elif not rules:
        tell("there are no rules; `weft permissions add deny 'shell(git push *)'` adds one")
    else:
        rows = [(each.verdict, each.rule, each.source) for each in rules]
        print_table(rows, head=("verdict", "rule", "from"))


def _rule(words: tuple[str, ...]) -> tuple[Verdict, str]:
    if len(words) != 2:
        raise UsageError("a rule stands behind allow, ask or deny: deny 'shell(git push *)'")
    return cast("Verdict", words[0]), words[1]


async def _add(permissions: AppPermissions, arguments: ParsedArguments) -> None:
    verdict, rule = _rule(arguments.words)
    match, not_match = arguments.many("match"), arguments.many("not_match")
    added = await permissions.add(verdict, rule, match=match, not_match=not_match)
    write_line(f"{added.verdict} {added.rule}  {added.source}")


async def _import(permissions: AppPermissions, arguments: ParsedArguments) -> None:
    is_dry = arguments.flag("dry_run")
    found = await permissions.import_rules(arguments.words, keep=not is_dry)
    if arguments.flag("json"):
        write_pretty(msgspec.to_builtins(found))
        return
    rows = [(each.state, each.verdict, each.rule, each.why or each.source) for each in found]
    if rows:
        print_table(rows, head=("", "verdict", "rule", "from, or why not"))
    new = sum(each.state == "new" for each in found)
    rules = count_of(new, "new rule")
    tell(f"{rules}; nothing is kept" if is_dry else f"{rules} kept in your settings")


async def _remove(permissions: AppPermissions, words: tuple[str, ...]) -> None:
    verdict, rule = _rule(words)
    await permissions.remove(verdict, rule)
    write_line(f"removed: {verdict} {rule}")


async def _explain(permissions: AppPermissions, arguments: ParsedArguments) -> None:
    words = arguments.words
    if not words:
        raise UsageError("`weft permissions explain` takes a command, behind --")
    # One word is a line for the shell; several are the words of a command.
    if len(words) > 1:
        import shlex  # only here

        text = shlex.join(words)
    else:
        text = words[0]
    found = await permissions.explain(
        text,
        tool=arguments.text("tool") or "shell",
        mode=cast("Mode", arguments.text("mode") or "default"),
    )
    if arguments.flag("json"):
        shown = {"decision": found.decision, "parts": found.parts, "rule": found.rule}
        write_pretty(msgspec.to_builtins(shown))
    else:
        _show(found)


def _show(found: PermissionExplanation) -> None:
    why = f": {found.why}" if found.why else ""
    write_line(f"{found.decision}{why}")
    if found.parts:
        rows = [(part.decision, part.text.replace("\n", " "), part.reason) for part in found.parts]
        print_table(rows, head=("decision", "command", "because"))
    if not found.sandboxed:
        tell("without a sandbox: commands that only read ask, too")
