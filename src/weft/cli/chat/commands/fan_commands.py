"""`/fan`: several candidates for one task, from where the conversation stands."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from weft.cli.chat.commands.command_group import CommandGroup, Handler
from weft.cli.chat.screens.screen import ChoiceQuestion, ChoiceRow, rows_hint
from weft.errors import UsageError
from weft.view import NoteBlock

if TYPE_CHECKING:  # loaded with the first fan-out
    from weft.api.fan import Fan

_VERBS: Final = (
    *("diff", "compare", "keep", "prune", "restore", "resume", "stop", "open", "back", "lesson"),
)
_OPTION: Final = re.compile(
    r"(-n|-m|--verify|--stop-when|--judge)\s+(?:\"([^\"]+)\"|'([^']+)'|([^\s\"']\S*))(?:\s+|$)"
)
_HOW: Final = (
    "/fan [-n N] [-m MODEL] [--verify CMD] [--stop-when verified] [--judge MODEL] TASK begins one; "
    "then /fan shows it, and /fan diff N, compare N M, keep N, prune N, restore N, open N (back "
    "returns), lesson N, stop and resume go on from there"
)


class FanCommands(CommandGroup):
    """Carries out `/fan`."""

    @property
    def handlers(self) -> dict[str, Handler]:
        return {"/fan": self._command}

    async def _command(self, words: str) -> None:
        verb, _, rest = words.partition(" ")
        if not words.strip():
            await self._look()
        elif verb in _VERBS and all(word.isdecimal() for word in rest.split()):
            await self._carry_out(verb, [int(word) for word in rest.split()])
        else:
            await self._begin(words)

    async def _begin(self, words: str) -> None:
        from weft.cli.commands.fan_table.stop_rule import stop_rule  # as above

        self._must_be_idle("a fan-out")
        session = self._session("fan out from")
        options, task = _parsed(words)
        if not task:
            raise UsageError(_HOW)
        models = options.get("-m", [])
        stop, budget = stop_rule(next(iter(options.get("--stop-when", [])), None))
        count = next(iter(options.get("-n", [])), "4")
        if not count.isdecimal():
            raise UsageError(f"-n takes a number, not {count!r}")
        fan = await session.generate_branches(
            task,
            max(int(count), len(models)),
            models,
            next(iter(options.get("--verify", [])), None),
            stop=stop,
            budget_usd=budget,
            judge=next(iter(options.get("--judge", [])), None),
        )
        said = f"{fan.planned} candidates are at work ({fan.id}); /fan shows them"
        self._say("\n".join([said, *fan.notes]))

    async def _latest(self) -> Fan:
        session = self._session("show")
        app = self._chat.conversation.app
        found = [each for each in await app.fans() if each.session == session.id]
        if not found:
            raise UsageError(f"this conversation has no fan-out yet; {_HOW}")
        return await app.fan(found[0].id)

    async def _look(self) -> None:
        from weft.cli.commands.fan_table.rows import table_lines  # as above

        fan = await self._latest()
        lines = table_lines(fan.candidates())
        self._show(NoteBlock(text="\n".join([f"{fan.id}: {fan.prompt}", *lines])))

    async def _open(self, fan: Fan, number: int) -> None:
        """Go on with a candidate's conversation, in its overlay."""
        self._must_be_idle("a candidate's conversation")
        await self._chat.switch(await fan.open(number))
        self._say(f"this is candidate {number}, in its overlay; /fan back returns")

    async def _back(self) -> None:
        """Leave the conversation of a candidate for the one that it belongs to."""
        self._must_be_idle("another conversation")
        here = self._session("leave").id
        app = self._chat.conversation.app
        for run in app.host.fan_runs.values():
            if run.opened and run.record.candidates[run.opened].child == here:
                fan = await app.fan(run.record.fan_id)
                await self._chat.switch(fan.session_id)
                await fan.release(run.opened)
                await self._look()
                return
        raise UsageError("this is no candidate's conversation")

    async def _carry_out(self, verb: str, numbers: list[int]) -> None:
        if verb == "back":
            await self._back()
            return
        fan = await self._latest()
        wanted = {"compare": 2, "resume": 0, "stop": 0}.get(verb, 1)
        if len(numbers) < wanted:
            raise UsageError(f"/fan {verb} needs the number of a candidate; /fan shows them")
        match verb:
            case "diff":
                self._say(await fan.diff(numbers[0]) or "it changed nothing")
            case "compare":
                self._say(await fan.compare(numbers[0], numbers[1]) or "they are the same")
            case "keep":
                await self._keep(fan, numbers[0])
            case "lesson":
                self._chat.screen.notify("asking the model…")
                text = await fan.bring_lesson(numbers[0])
                self._chat.screen.notify("")
                self._say(f"added to the conversation:\n{text}")
            case "open":
                await self._open(fan, numbers[0])
            case "prune":
                for number in numbers:
                    await fan.prune(number)
                self._say("removed; /fan restore brings it back")
            case "restore":
                for number in numbers:
                    await fan.restore(number)
                self._say("it is there again, with what it had changed")
            case "resume":
                await fan.resume(numbers or None)
                self._say("they go on; /fan shows them")
            case _:
                await fan.stop()
                self._say("stopped; what they have done stays")

    async def _keep(self, fan: Fan, number: int) -> None:
        """Show what would happen, ask, and do it."""
        from weft.cli.commands.fan_table.rows import kept_lines  # as above

        self._must_be_idle("keeping a candidate")
        preview = await fan.keep(number, preview=True)
        self._say("\n".join(kept_lines(preview, is_preview=True)))
        rows = [ChoiceRow("Yes", "after the check passed on the result"), ChoiceRow("No")]
        if preview.plan.paths("conflict"):
            rows.append(
                ChoiceRow("Yes, with conflict markers", "where both changed the same lines")
            )
        chosen = await self._chat.screen.choose(
            ChoiceQuestion(
                title=f"Put candidate {number} into the project?",
                rows=tuple(rows),
                hint=rows_hint(len(rows)),
                is_own=True,
            )
        )
        if chosen not in (0, 2):
            return
        outcome = await fan.keep(number, conflicts="markers" if chosen == 2 else "mine")
        said = kept_lines(outcome, is_preview=False)
        end = ["kept; /rewind takes it back"] if outcome.is_kept else []
        if outcome.is_kept and len(fan.candidates()) > 1:
            end.append(
                "What spoke against the others is noted; /fan lesson N brings what one learned."
            )
        self._say("\n".join([*said, *end]))
        await self._chat.show_place()


def _parsed(words: str) -> tuple[dict[str, list[str]], str]:
    """The options at the beginning, and the task behind them as it was typed.

    Raises:
        UsageError: there is no such option, or it has no value.
    """
    options: dict[str, list[str]] = {}
    left = words.strip()
    while left.startswith("-"):
        found = _OPTION.match(left)
        if found is None:
            raise UsageError(_HOW)
        options.setdefault(found[1], []).append(found[2] or found[3] or found[4])
        left = left[found.end() :]
    return options, left
