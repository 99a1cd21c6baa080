"""`/permissions`: the rules that count here, added, removed, tried and explained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from weft.cli.chat.commands.command_group import CommandGroup, Handler
from weft.cli.options import MODE_WORDS
from weft.cli.sanitize import clean_line
from weft.errors import UsageError
from weft.view import TableBlock, count_of

if TYPE_CHECKING:  # loaded when somebody looks at rules
    from weft.api.permissions.standing_rules import AppPermissions
    from weft.permissions import Mode, Verdict

_VERDICTS: Final = ("allow", "ask", "deny")
_MOST_SHOWN: Final = 12
_HOW: Final = "/permissions add deny shell(git push *) adds a rule, remove takes one out"


class PermissionCommands(CommandGroup):
    """Carries out the command on rules."""

    @property
    def handlers(self) -> dict[str, Handler]:
        return {"/permissions": self._command}

    @property
    def _rules(self) -> AppPermissions:
        return self._chat.conversation.app.permissions

    async def _command(self, words: str) -> None:
        verb, _, rest = words.partition(" ")
        match verb:
            case "" | "list":
                self._look()
            case "add":
                added = await self._rules.add(*_rule(rest))
                self._say(f"from now on: {added.verdict} {clean_line(added.rule)}")
            case "remove" | "rm":
                verdict, rule = _rule(rest)
                await self._rules.remove(verdict, rule)
                self._say(f"removed: {verdict} {clean_line(rule)}")
            case "explain":
                await self._explain(rest)
            case "simulate":
                await self._simulate(rest)
            case _:
                raise UsageError(
                    f"/permissions knows add, remove, explain and simulate, not {verb!r}; "
                    "/mode changes the permission mode"
                )

    def _look(self) -> None:
        mode = self._chat.live.mode
        rows = [(each.verdict, clean_line(each.rule), each.source) for each in self._rules.list()]
        title = f"Permission rules (mode: {MODE_WORDS.get(mode, mode)})"
        if rows:
            self._show(TableBlock(title=title, rows=tuple(rows)))
            self._say(_HOW)
        else:
            self._say(f"there are no rules; {_HOW}")

    async def _explain(self, line: str) -> None:
        if not line.strip():
            raise UsageError("/permissions explain takes a command")
        found = await self._rules.explain(line, mode=cast("Mode", self._chat.live.mode))
        rows = [(each.decision, clean_line(each.text), each.reason) for each in found.parts]
        self._show(TableBlock(title=f"{found.decision}: {found.why}", rows=tuple(rows)))

    async def _simulate(self, rest: str) -> None:
        verdict, rule = _rule(rest if rest.split(" ")[0] in _VERDICTS else f"allow {rest}")
        found = await self._rules.simulate(verdict, rule)
        changed = sum(each.times for each in found.changed)
        calls = count_of(found.calls, "past call")
        self._say(f"it means {found.covered} of {calls}, and decides {changed} otherwise")
        rows = [
            (f"{each.before} → {each.after}", f"{each.times} ×", clean_line(each.text))
            for each in found.changed[:_MOST_SHOWN]
        ]
        if rows:
            self._show(TableBlock(title="Decided otherwise", rows=tuple(rows)))


def _rule(words: str) -> tuple[Verdict, str]:
    verdict, _, rule = words.strip().partition(" ")
    if verdict not in _VERDICTS or not rule.strip():
        raise UsageError("a rule stands behind allow, ask or deny: deny shell(git push *)")
    return cast("Verdict", verdict), rule.strip()
