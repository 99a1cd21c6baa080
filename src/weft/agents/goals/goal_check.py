"""The check of a goal, between two rounds: a command, a judge, or one after the other.

It runs where a turn would, and its one append at the end says whether the goal is reached.  The
command is run like a tool call of the model, under the same hooks, rules, limits and records; one
that a kill cut short is settled by recovery, and run again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, Literal

import anyio
import msgspec

from weft.agents.goals.obeyed_files import is_obeyed
from weft.events import Fact, FinishReason, GoalChecked, GoalPaused, GoalSet
from weft.evidence import signal_of, verdict_digest
from weft.faults import FailPointPair
from weft.ids import CallUid, TurnId, new_id
from weft.loop import (
    Commit,
    DriverCall,
    PendingFacts,
    PermissionGate,
    SessionWork,
    ToolCallEnd,
    ToolCallEnvironment,
    TurnJournal,
    run_one,
    stopped,
    tip_after,
)
from weft.messages import ToolCall
from weft.permissions import PermissionRule, PolicyDecision, ToolAction
from weft.session import ends_after, paused_fact, time_is_over
from weft.state import SessionState

NAME: Final = "check"
SHELL: Final = "shell"
SECONDS: Final = 600.0
"""How long a check may take."""
SHOWN_CHARACTERS: Final = 4_000
"""Of what the check printed, the end, which the next round begins with."""
NO_VERDICTS: Final = {126: "it cannot be run", 127: "there is no such command"}
"""Exit codes of a shell that has not run the command."""
_CHECKED = FailPointPair("goal.checked")


class JudgeVerdict(msgspec.Struct, frozen=True):
    """What a judge says."""

    done: bool
    why: str


Judge = Callable[[PendingFacts, str], Awaitable[JudgeVerdict | str]]
"""Asks the judge, given what the command printed; a sentence where it gave no verdict."""


class CheckGate(PermissionGate):
    """The session's policy, for the one command that the user wrote into the goal."""

    def __init__(self, gate: PermissionGate, goal: GoalSet, *, is_granted: bool) -> None:
        """`is_granted`: the user has allowed this very command, and the goal's seal holds it."""
        self._gate = gate
        self._goal = goal
        self._is_granted = is_granted

    def decide(self, action: ToolAction) -> PolicyDecision:
        decision = self._gate.decide(action)
        is_it = action.target == self._goal.check and not action.is_delicate
        # Having written it answers what the mode asks, and no rule of the user's own that asks:
        # that one is answered by a grant alone.
        is_open = action.sandboxed and not decision.is_firm
        if decision.verdict == "ask" and is_it and (is_open or self._is_granted):
            return PolicyDecision("allow", "it is the goal's check", by="goal")
        return decision

    @property
    def read_rules(self) -> tuple[PermissionRule, ...]:
        return self._gate.read_rules

    @property
    def network_rules(self) -> tuple[PermissionRule, ...]:
        return self._gate.network_rules

    @property
    def reads_lines(self) -> bool:
        return self._gate.reads_lines

    @property
    def when_asking(self) -> Literal["wait", "yes", "no"]:
        return "no"


class GoalCheck(SessionWork):
    """One check of a goal."""

    def __init__(
        self, environment: ToolCallEnvironment, journal: TurnJournal, judge: Judge | None
    ) -> None:
        """`environment.tools` has the session's shell, if it has one."""
        self._env = environment
        self._journal = journal
        self._judge = judge
        self._pending = PendingFacts(journal)
        now = environment.clock.now()
        self.turn_id = TurnId(new_id("chk", now))
        self._stands = journal.state.goal
        assert self._stands.goal is not None
        self._goal = self._stands.goal
        # Another name each time: one that was cut off is on record under its own.
        self._uid = CallUid(f"{self._goal.goal_id}.{self._stands.rounds}.{self.turn_id[-6:]}")
        self.scope = anyio.CancelScope()
        self.abort_reason = ""
        self.ends_as: FinishReason = "aborted"
        self.is_suspended = False
        self.is_compaction = True  # like one, it has no turn that is open
        self.stops_after_step = False

    async def run(self) -> None:
        """Check, and put on record what it came to."""
        facts: tuple[Fact, ...] = ()
        with self.scope:
            facts = await self._checked()
        if self.scope.cancelled_caught:
            await self._journal.commit(self.settled)
            return

        def verdict(state: SessionState, noted: Sequence[Fact]) -> Sequence[Fact]:
            return facts if self._is_asked_for(state) else ()

        await self._pending.commit(_CHECKED, verdict, ends_work=True)

    def _is_asked_for(self, state: SessionState) -> bool:
        """Whether the goal is still what was checked; one that was edited is checked anew."""
        now, checked = state.goal.goal, self._goal
        if now is None or not state.goal.is_open or now.goal_id != checked.goal_id:
            return False
        return (now.text, now.check, now.judge) == (checked.text, checked.check, checked.judge)

    def settled(self, state: SessionState) -> Commit:
        """What is known of a check that was stopped; one that the user stopped pauses the goal."""
        more = stopped(self._env, self._pending, lambda uid: uid == self._uid)

        def ending(state: SessionState, noted: Sequence[Fact]) -> list[Fact]:
            return [*more(state, noted), *self._after_stop(state)]

        return self._pending.take(state, ending, drop_draft=False, ends_work=True)

    def _after_stop(self, state: SessionState) -> tuple[Fact, ...]:
        goal = state.goal.goal  # it may be another one by now
        if goal is None or not state.goal.is_active or self.is_suspended:
            return ()
        end = time_is_over(goal, state.goal, self._env.clock.now())
        return (end or paused_fact(goal, "stopped", self.abort_reason),)

    # -- the command

    async def _checked(self) -> tuple[Fact, ...]:
        if not self._goal.check:
            return await self._judged("")
        end = await self._ran()
        if why := _no_verdict(end):
            return (self._failed(f"`{self._goal.check}`: {why}"),)
        code = int(end.result.data["exit_code"])
        if code == 0 and self._judge is not None:
            return await self._judged(end.result.text, self._tree(end))
        return self._with_end(self._verdict(code, end))

    async def _ran(self) -> ToolCallEnd:
        args = {"command": self._goal.check, "timeout_seconds": SECONDS}
        call = ToolCall(call_uid=self._uid, name=SHELL, args=args)
        tip = tip_after(self._journal.state, ())
        driver = DriverCall(record_as=NAME, notes_at=tip)
        return await run_one(self._env, call, None, driver, self._pending)

    def _verdict(self, code: int, end: ToolCallEnd) -> GoalChecked:
        text, tree = end.result.text, self._tree(end)
        verdict = verdict_digest(code, text)
        is_new = self._stands.has_other_verdict(verdict)
        return GoalChecked(
            goal_id=self._goal.goal_id,
            round=self._stands.rounds,
            turn_id=self._stands.last_turn,
            done=code == 0,
            exit_code=code,
            tree=tree,
            verdict=verdict,
            progress=is_new and self._files_changed(tree),
            call_uid=self._uid,
            detail=_printed(text, code),
        )

    def _tree(self, end: ToolCallEnd) -> str | None:
        tree = end.result.data.get("tree")
        return tree if isinstance(tree, str) else None

    def _files_changed(self, tree: str | None) -> bool:
        """Whether files are others than behind the check of the round before."""
        last = self._stands.checked[-1] if self._stands.checked else None
        if last is not None and last.tree and tree:
            return last.tree != tree
        # Without a sandbox there is no hash: what tools and commands have reported counts.
        since = self._stands.began if last is None else last.at
        return any(each.at >= since for each in self._touched())

    def _touched(self) -> Iterable[_Touched]:
        for path, each in self._journal.state.files.touched.items():
            yield _Touched(path, each.at)

    # -- the judge

    async def _judged(self, printed: str, tree: str | None = None) -> tuple[Fact, ...]:
        if self._judge is None:
            return (self._failed("it has neither a check nor a judge that can be asked"),)
        answer = await self._judge(self._pending, printed)
        if isinstance(answer, str):
            return (self._failed(f"the judge gave no verdict: {answer}"),)
        checked = GoalChecked(
            goal_id=self._goal.goal_id,
            round=self._stands.rounds,
            turn_id=self._stands.last_turn,
            by="judge",
            done=answer.done,
            exit_code=0 if self._goal.check else None,
            tree=tree,
            verdict=verdict_digest(0, answer.why),
            # A judge never says the same twice, so that its words show no progress.
            progress=self._files_changed(tree),
            call_uid=self._uid if self._goal.check else None,
            detail=answer.why,
        )
        return self._with_end(checked)

    # -- what comes of it

    def _with_end(self, checked: GoalChecked) -> tuple[Fact, ...]:
        return (checked, *ends_after(self._stands, checked, self._warning()))

    def _failed(self, detail: str) -> GoalPaused:
        return paused_fact(self._goal, "failed", detail)

    def _warning(self) -> str:
        """Which files that the check goes by were changed for the goal."""
        changed = [each.path for each in self._touched() if each.at >= self._stands.began]
        named = sorted(path for path in changed if is_obeyed(path, self._goal.check))
        if not named:
            return ""
        shown = ", ".join(named[:5]) + (" and others" if len(named) > 5 else "")
        were = "was" if len(named) == 1 else "were"
        return f"{shown}, which the check goes by, {were} changed on the way"


class _Touched(msgspec.Struct, frozen=True):
    path: str
    at: float


def _no_verdict(end: ToolCallEnd) -> str:
    """Why a run says nothing about the goal; empty when it does."""
    data = end.result.data
    code = data.get("exit_code")
    if not end.has_run or not isinstance(code, int):
        return end.halted or end.result.text.strip() or "it was not run"
    if data.get("timed_out"):
        return "it took too long, and was stopped"
    if signal := signal_of(code):
        return f"it was killed by signal {signal}"
    if code in NO_VERDICTS:
        return f"{NO_VERDICTS[code]} (exit code {code}): {_last_line(end.result.text)}"
    return ""


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip() and "(exit code" not in line]
    return lines[-1].strip() if lines else ""


def _printed(text: str, code: int) -> str:
    said = text.removesuffix(f"(exit code {code})").strip()
    said = "" if said == "(no output)" else said
    return said if len(said) <= SHOWN_CHARACTERS else f"…{said[-SHOWN_CHARACTERS:]}"
