"""`/goal`: what is worked for turn after turn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from weft.api import Goal, Session
from weft.api.unattended.goals import NO_SANDBOX
from weft.cli.chat.commands.command_group import CommandGroup, Handler
from weft.cli.chat.screens.screen import ChoiceQuestion, ChoiceRow
from weft.cli.unattended.goal_words import USAGE, check_lines, goal_rows, said_goal
from weft.errors import UsageError
from weft.view import TableBlock


class GoalCommands(CommandGroup):
    """Carries out the command."""

    @property
    def handlers(self) -> dict[str, Handler]:
        return {"/goal": self._goal}

    async def _goal(self, words: str) -> None:
        verb, _, rest = words.strip().partition(" ")
        match verb:
            case "" | "show":
                await self._show_goal()
            case "pause" if not rest:
                await self._session("pause the goal of").pause_goal()
                if self._chat.live.is_busy:
                    self._say("the present step ends first; Esc stops it")
            case "resume" if not rest:
                await self._with_sandbox(self._session("go on with the goal of"), {}, "resume")
            case "clear" if not rest:
                cleared = await self._session("clear the goal of").clear_goal()
                self._say("cleared" if cleared else "there is no goal here")
            case "edit":
                await self._edit(rest)
            case _:
                await self._set(words)

    async def _set(self, words: str) -> None:
        text, options = said_goal(words)
        if not text or not (options.get("check") or options.get("judge")):
            raise UsageError(f"a goal needs a text and a check: {USAGE}")
        session = await self._chat.begin_session()
        await self._with_sandbox(session, {"text": text, **options}, "set")

    async def _edit(self, words: str) -> None:
        text, options = said_goal(words)
        given = {**({"text": text} if text else {}), **options}
        goal = await self._with_sandbox(self._session("edit the goal of"), given, "edit")
        if goal is not None and goal.status == "paused":
            self._say("it is still paused: /goal resume goes on")

    async def _with_sandbox(
        self, session: Session, given: dict[str, Any], verb: str
    ) -> Goal | None:
        """Do it; where there is no sandbox, the user is asked once whether the check may run."""
        calls: dict[str, Callable[..., Awaitable[Goal]]]
        calls = {"set": session.set_goal, "edit": session.edit_goal, "resume": session.resume_goal}
        try:
            return await calls[verb](**given)
        except UsageError as error:
            if not str(error).startswith(NO_SANDBOX) or given.get("outside_sandbox"):
                raise
            check = str(given.get("check") or getattr(await session.goal(), "check", ""))
        chosen = await self._chat.screen.choose(
            ChoiceQuestion(
                title=f"There is no sandbox here. Run `{check[:60]}` after each round, with all "
                "your rights?",
                rows=(ChoiceRow("Yes, for this goal"), ChoiceRow("No")),
                hint="1 or 2, Esc goes back",
                is_own=True,
            )
        )
        if chosen != 0:
            self._say("no goal was set" if verb == "set" else "nothing was changed")
            return None
        return await calls[verb](**given, outside_sandbox=True)

    async def _show_goal(self) -> None:
        session = self._chat.conversation.session
        goal = await session.goal() if session is not None else None
        if goal is None:
            self._say(f"there is no goal here: {USAGE}")
            return
        self._show(TableBlock(title="Goal", rows=tuple(goal_rows(goal))))
        for line in check_lines(goal)[-5:]:
            self._say(line)
