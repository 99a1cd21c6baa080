"""A session that works for a goal: section *Goals* of the API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.api.handle import SessionBase
from weft.errors import UsageError
from weft.messages import Usage
from weft.session import ClearGoal, EditGoal, PauseGoal, ResumeGoal, SetGoal

if TYPE_CHECKING:  # few sessions have a goal
    from weft.api.unattended.goals import Goal


class GoalCalls(SessionBase):
    """What is worked for turn after turn."""

    async def goal(self) -> Goal | None:
        """The goal of the session, also one that is paused or has ended; None without one."""
        from weft.api.unattended.goals import goal_of  # as above

        return goal_of((await self._port()).state, self._host)

    async def set_goal(
        self,
        text: str,
        check: str | None = None,
        judge: str | None = None,
        max_budget_usd: float | None = None,
        max_seconds: float | None = None,
        *,
        max_rounds: int | None = None,
        outside_sandbox: bool = False,
        input_id: str | None = None,
    ) -> Goal:
        """Work turn after turn until `check`, a command line, ends with 0, or `judge`, a model,
        says that the goal is reached; with both, the judge is asked where the command passes.

        The first round begins at once, or behind the turn that runs.  Its rounds have the
        permission mode and the grants of the session as they are now, in other processes too;
        `bypass` becomes `default`.  The check is allowed word for word, in the sandbox; where there
        is none, only with `outside_sandbox`.  It ends when two rounds bring no progress, after
        `max_rounds` (25), and at the limits of money and of time that is worked.

        Raises:
            UsageError: there is a goal already, neither check nor judge, or no such model.
        """
        await self._check_models(judge, max_budget_usd)
        await self._call(
            SetGoal(
                text=text,
                check=check or "",
                judge=judge or "",
                max_budget_usd=max_budget_usd,
                max_seconds=max_seconds,
                max_rounds=max_rounds,
                outside_sandbox=outside_sandbox,
                **self._by(input_id),
            )
        )
        return await self._present_goal()

    async def edit_goal(
        self,
        text: str | None = None,
        check: str | None = None,
        judge: str | None = None,
        max_budget_usd: float | None = None,
        max_seconds: float | None = None,
        *,
        max_rounds: int | None = None,
        outside_sandbox: bool = False,
        input_id: str | None = None,
    ) -> Goal:
        """Change the goal from the next round on; what is None stays, and an empty check or judge
        is taken away.  What was given to it is kept, and what the session may do now is added.

        Raises:
            UsageError: there is no goal, or nothing is changed.
        """
        await self._check_models(judge, max_budget_usd)
        await self._call(
            EditGoal(
                text=text,
                check=check,
                judge=judge,
                max_budget_usd=max_budget_usd,
                max_seconds=max_seconds,
                max_rounds=max_rounds,
                outside_sandbox=outside_sandbox,
                **self._by(input_id),
            )
        )
        return await self._present_goal()

    async def pause_goal(self, *, input_id: str | None = None) -> Goal:
        """Begin nothing more for the goal.  A round that runs ends before its next model call; the
        files are as it left them.

        Raises:
            UsageError: there is no goal.
        """
        await self._call(PauseGoal(**self._by(input_id)))
        return await self._present_goal()

    async def resume_goal(
        self, *, outside_sandbox: bool = False, input_id: str | None = None
    ) -> Goal:
        """Go on with a goal that is paused, or that no process works for.

        Raises:
            UsageError: there is no goal.
        """
        await self._call(ResumeGoal(outside_sandbox=outside_sandbox, **self._by(input_id)))
        return await self._present_goal()

    async def clear_goal(self, *, input_id: str | None = None) -> bool:
        """End the goal; True when there was one.  A turn that runs goes on."""
        return await self._call(ClearGoal(**self._by(input_id)))

    # -- inner

    async def _present_goal(self) -> Goal:
        goal = await self.goal()
        if goal is None:
            raise UsageError("the goal of this session is not known here")
        return goal

    async def _check_models(self, judge: str | None, max_budget_usd: float | None) -> None:
        """Refuse now what could never be asked, or never be counted."""
        names = [judge] if judge else []
        if max_budget_usd is not None:
            names.append((await self._port()).state.settings.model)
        models = self._host.services.models
        for name in names:
            found = models.resolve(self._host.model_named(name).name)
            if max_budget_usd is not None and found.info.cost(Usage()) is None:
                raise UsageError(
                    f"the price of {name} is unknown, so a limit of money cannot be kept; set its "
                    "price in the config, or name no --max-budget-usd"
                )
