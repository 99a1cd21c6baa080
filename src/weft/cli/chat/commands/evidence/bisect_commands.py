"""`/bisect`: the turn at which a check began to fail, and the way back to before it."""

from __future__ import annotations

from typing import Final

import anyio

from weft.cli.chat.commands.command_group import CommandChat, CommandGroup, Handler
from weft.cli.chat.commands.rewind_list import NAMED, RewindQuestion
from weft.cli.chat.paint.text_cells import fit
from weft.cli.chat.screens.screen import ChoiceQuestion, ChoiceRow
from weft.cli.sanitize import clean_line
from weft.errors import UsageError
from weft.evidence import BisectCheck, Bisection
from weft.view import TableBlock, bisection_rows, check_line

STOP: Final = "stop"
_LONGEST_TITLE: Final = 120


class BisectCommands(CommandGroup):
    """Carries out the command."""

    def __init__(self, chat: CommandChat) -> None:
        super().__init__(chat)
        self._scope: anyio.CancelScope | None = None
        """Of the one that runs."""

    @property
    def handlers(self) -> dict[str, Handler]:
        return {"/bisect": self._bisect}

    async def _bisect(self, words: str) -> None:
        check = words.strip()
        if check == STOP:
            self._stop()
            return
        if not check:
            raise UsageError("/bisect needs a check: /bisect make test; /bisect stop ends it")
        if self._scope is not None:
            raise UsageError("a bisection runs; /bisect stop ends it")
        session = self._session("bisect")
        self._say(f"checking `{clean_line(check)}` on earlier files; /bisect stop ends it")
        found: Bisection | None = None
        with anyio.CancelScope() as self._scope:
            try:
                found = await session.bisect(check, in_copies=self._ask_copies, on_check=self._tell)
            finally:
                self._scope = None
        if found is None:
            self._say("the bisection was stopped; nothing of it is left")
            return
        self._show(
            TableBlock(
                title="Bisection",
                rows=tuple((name, clean_line(text)) for name, text in bisection_rows(found)),
            )
        )
        self._say(clean_line(found.sentence))
        await self._offer(found)

    def _stop(self) -> None:
        if self._scope is None:
            raise UsageError("no bisection runs")
        self._scope.cancel()

    def _tell(self, check: BisectCheck) -> None:
        self._chat.screen.notify(clean_line(check_line(check)))

    async def _ask_copies(self, why: str) -> bool:
        chosen = await self._chat.screen.choose(
            ChoiceQuestion(
                title=f"No overlay for the checks here: {clean_line(why)}",
                rows=(
                    ChoiceRow("Run them in copies", "outside the sandbox"),
                    ChoiceRow("Check nothing"),
                ),
                hint="1-2, Esc checks nothing",
                picked=1,
                is_own=True,
            )
        )
        return chosen == 0

    async def _offer(self, found: Bisection) -> None:
        """Go back to before it, or put it down."""
        if found.outcome not in ("found", "range"):
            return
        ways = [
            ChoiceRow("Note it", "as an observation, among the decisions"),
            ChoiceRow("Leave it"),
        ]
        if found.can_branch:
            ways.insert(0, ChoiceRow("Branch before it", "what goes back is shown first"))
        chosen = await self._chat.screen.choose(
            ChoiceQuestion(
                title=fit(clean_line(found.sentence), 70),
                rows=tuple(ways),
                hint=f"1-{len(ways)}, Esc leaves it",
                is_own=True,
            )
        )
        if chosen is None or chosen == len(ways) - 1:
            return
        if ways[chosen].label == "Note it":
            await self._note(found)
            return
        assert found.bad is not None
        title = f"→ Before “{fit(found.bad.name, NAMED)}” (found by a bisection)"
        session = self._session("go back in")
        await RewindQuestion(self._chat, session, found.branch_at, title).ask("")

    async def _note(self, found: Bisection) -> None:
        session = self._session("note something of")
        node = await self._chat.conversation.app.decisions.log(
            found.sentence[:_LONGEST_TITLE],
            kind="observation",
            why=f"/bisect {found.check}: {found.sentence}",
            scope=found.paths[:20],
            session=session.id,
        )
        self._say(f"noted as {node.id}")
