"""The parts of a turn, each used alone by a driver that is no turn and has no session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest

from tests.support.turn_scenes import TurnScene
from weft.clock import ManualClock
from weft.events import (
    Effect,
    Fact,
    PermissionResolved,
    QuestionAnswered,
    Signal,
    Status,
    ToolComplete,
    ToolExecuting,
)
from weft.ids import CallUid, NodeId, RequestId
from weft.loop import (
    Build,
    CallJournal,
    DriverCall,
    EditReporter,
    ModelAnswer,
    PendingFacts,
    PermissionAnswer,
    PermissionApprover,
    PermissionGate,
    ReadyCall,
    ToolCallEnd,
    ToolCallEnvironment,
    run_one,
)
from weft.loop.structured_output import StructuredOutput
from weft.messages import Node, Text, ToolCall, ToolResult
from weft.permissions import PolicyDecision, ToolAction, Verdict
from weft.state import SessionState
from weft.tools import (
    OutputSchema,
    PreparedCall,
    ReadLog,
    SubmitTool,
    Tool,
    ToolContext,
    ToolOutcome,
)
from weft.workspace import ChangedFile, LocalRunner, LocalWorkspace

CALL = CallUid("cal_1")


class PlainJournal(CallJournal):
    """A log in memory, for one call."""

    def __init__(self) -> None:
        self._scene = TurnScene()
        self.facts: list[Fact] = []

    @property
    def state(self) -> SessionState:
        return self._scene.state

    async def commit(self, build: Build) -> Sequence[Fact]:
        facts = build(self.state).facts
        self._scene.take(facts)
        self.facts += facts
        return facts

    def signal(self, signal: Signal) -> None: ...

    def status(self, status: Status) -> None: ...

    async def resolution(self, request_id: RequestId) -> PermissionResolved | QuestionAnswered:
        raise AssertionError("the driver asks in a way of its own")

    async def until(self, holds: Callable[[SessionState], bool]) -> None:
        raise AssertionError("a driver's call does not wait")


class Gate(PermissionGate):
    """Says the same to everything."""

    def __init__(self, verdict: Verdict) -> None:
        self._verdict = verdict

    def decide(self, action: ToolAction) -> PolicyDecision:
        return PolicyDecision(self._verdict, "it is a test")

    @property
    def when_asking(self) -> Literal["wait", "yes", "no"]:
        return "wait"


class Counter(Tool):
    """A tool with an effect: it counts."""

    name = "count"
    description = "Counts."
    schema: dict[str, Any] = {"type": "object"}
    effect: Effect = "unknown"
    timeout_seconds = 5.0

    def __init__(self) -> None:
        self.counted = 0

    async def prepare(self, args: dict[str, Any], context: ToolContext) -> PreparedCall:
        async def run() -> ToolOutcome:
            self.counted += 1
            return ToolOutcome(text=f"counted {self.counted}")

        return PreparedCall(action=ToolAction(tool="count", kind="other"), run=run)


class Answers(PermissionApprover):
    """A user who answers the driver itself."""

    def __init__(self, answer: PermissionAnswer) -> None:
        self._answer = answer

    async def ask(self, ready: ReadyCall, decision: PolicyDecision) -> PermissionAnswer:
        return self._answer


async def count(
    journal: PlainJournal,
    tool: Tool,
    verdict: Verdict,
    folder: Path,
    approver: PermissionApprover,
    reports: EditReporter | None = None,
) -> ToolCallEnd:
    def context(call_uid: CallUid) -> ToolContext:
        return ToolContext(
            workspace=LocalWorkspace(str(folder)),
            runner=LocalRunner(environ={}),
            reads=ReadLog(),
            call_uid=call_uid,
        )

    environment = ToolCallEnvironment(
        journal=journal,
        tools={"count": tool},
        tool_context=context,
        gate=Gate(verdict),
        clock=ManualClock(),
        sleep=anyio.sleep,
        edit_reports=reports,
    )
    pending = PendingFacts(journal)
    call = ToolCall(call_uid=CALL, name="count", args={})
    end = await run_one(environment, call, None, DriverCall(approver=approver), pending)
    await journal.commit(lambda state: pending.take(state, drop_draft=False))
    return end


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("verdict", "allowed", "counted"),
    [("allow", False, 1), ("ask", True, 1), ("ask", False, 0), ("deny", True, 0)],
)
async def test_a_driver_runs_one_call_without_a_turn(
    tmp_path: Path, verdict: Verdict, allowed: bool, counted: int
) -> None:
    journal, tool = PlainJournal(), Counter()
    approver = Answers(PermissionAnswer(allowed=allowed, text="Denied by the test."))
    end = await count(journal, tool, verdict, tmp_path, approver)
    assert (tool.counted, end.has_run) == (counted, bool(counted))
    assert end.result.status == ("done" if counted else "denied")
    kinds = [type(fact) for fact in journal.facts]
    assert kinds == ([ToolExecuting] if counted else []) + [ToolComplete]
    assert journal.state.turn.intents == {}, "what was intended is settled"


class LateReports(EditReporter):
    """Has something to say, once."""

    def __init__(self) -> None:
        self.waiting = "Diagnostics that came later: one"

    def after_change(self, touched: Sequence[ChangedFile], *, waits: bool) -> None:
        return None

    def late(self) -> str:
        said, self.waiting = self.waiting, ""
        return said


@pytest.mark.anyio
async def test_what_servers_say_later_is_not_put_into_the_result_of_a_driver(
    tmp_path: Path,
) -> None:
    """A driver judges it, or shows it to the user; the model would never read it."""
    reports, approver = LateReports(), Answers(PermissionAnswer(allowed=True, text=""))
    end = await count(PlainJournal(), Counter(), "allow", tmp_path, approver, reports)
    assert "Diagnostics" not in end.result.text
    assert reports.waiting, "it is kept for a result that the model reads"


# --- structured output ---------------------------------------------------------------------

SUBMIT = SubmitTool(OutputSchema({"type": "object", "properties": {"n": {"type": "integer"}}}))


def answer(text: str, stop: Literal["stop", "refusal"] = "stop") -> ModelAnswer:
    return ModelAnswer(parts=(Text(text=text),), usage=None, stop=stop)


def test_a_text_that_is_the_result_fits() -> None:
    verdict = StructuredOutput().of_text(SUBMIT, answer('{"n": 1}'), repairs=2)
    assert (verdict.fits, verdict.value) == (True, {"n": 1})


def test_results_that_do_not_fit_come_to_an_end() -> None:
    output = StructuredOutput()
    tries = [output.of_text(SUBMIT, answer("no"), repairs=2) for _ in range(3)]
    assert [each.is_last for each in tries] == [False, False, True]


def test_a_refusal_is_not_asked_for_again() -> None:
    assert StructuredOutput().of_text(SUBMIT, answer("no", "refusal"), repairs=2).is_last


def test_a_call_that_was_refused_counts_and_one_that_fits_decides() -> None:
    output = StructuredOutput()
    call = ToolCall(call_uid=CALL, name=SUBMIT.name, args={"n": 2})
    node = Node(id=NodeId("nod_1"), role="assistant", parts=(call,))
    failed = {CALL: ToolResult(call_uid=CALL, text="n is missing", is_error=True)}
    assert output.of_calls(SUBMIT, node, failed, repairs=1) is None
    last = output.of_calls(SUBMIT, node, failed, repairs=1)
    assert last is not None
    assert (last.fits, last.is_last, last.problem) == (False, True, "n is missing")
    fits = output.of_calls(SUBMIT, node, {CALL: ToolResult(call_uid=CALL, text="ok")}, repairs=1)
    assert fits is not None
    assert fits.value == {"n": 2}
