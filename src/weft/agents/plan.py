"""The plan of architect mode as a typed value, what comes next in it, and the texts that planner,
editor and user read.  Pure.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta

from weft.errors import UsageError
from weft.permissions import EDITING_TOOLS
from weft.state import PlanState

MOST_STEPS: Final = 50
MOST_REPLANS: Final = 2
"""How often the rest may be planned anew before the same step has to pass."""
SHOWN: Final = 200
"""Characters of a step's result that the report shows."""
SHOWN_FAILURE: Final = 8_000
"""Characters of a failure that the planner is shown."""

PLANNER: Final = """\
You are the architect: you plan, and another model carries the plan out, one step at a time. It \
sees one step and nothing else of this \
conversation, so a step's details must be enough to do it without any other context: names, \
signatures, the exact change.
Look at the code with your tools first; you cannot change anything yourself. Then call submit with \
the plan:
- a step is about one file (create, edit, delete) or runs something (run);
- order the steps so that each can be done and checked when those before it are done;
- give a step a check, a shell command that fails when the step is not done right (a test, a type \
check), wherever there is one;
- give a boundary (first and last line, counted from 0: one less than `read` shows) where an edit \
must stay within some lines of the file.
When nothing has to be changed, submit a plan without steps whose summary is your answer."""

EDITOR: Final = """\
You carry out one step of a given plan. Do exactly what the step says, in the style of the code \
around it, and nothing \
else: other steps are done by others. Look at a file before you change it. If the step cannot be \
done as it is written, change nothing and \
say why. End with one or two sentences on what you did, and on anything you had to do \
differently."""

Action: TypeAlias = Literal["create", "edit", "delete", "run"]

CHANGING_TOOLS: Final = ("read", *EDITING_TOOLS, "list", "find", "grep")
RUNNING_TOOLS: Final = ("read", "list", "find", "grep", "shell")


class StepBoundary(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The lines of the file that an edit must stay in, counted from 0, both included."""

    first: Annotated[int, Meta(ge=0)]
    last: Annotated[int, Meta(ge=0)]


class PlanStep(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One step of a plan."""

    action: Action
    description: Annotated[str, Meta(min_length=1, description="The step in one sentence.")]
    details: Annotated[
        str, Meta(description="Everything that is needed to do it, without any other context.")
    ]
    file: Annotated[
        str, Meta(description="The file it is about, relative to the project; empty for run.")
    ] = ""
    boundary: StepBoundary | None = None
    check: Annotated[
        str, Meta(description="A shell command that fails when the step is not done right.")
    ] = ""

    @property
    def title(self) -> str:
        """The step in one line."""
        place = f" {self.file}" if self.file else ""
        return f"{self.action}{place}: {self.description}"

    @property
    def tools(self) -> tuple[str, ...]:
        """What the editor of the step may use, as far as the session has it."""
        return CHANGING_TOOLS if self.action in ("create", "edit") else RUNNING_TOOLS


class WorkPlan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is to be done, in order."""

    summary: Annotated[str, Meta(min_length=1, description="What the plan comes to.")]
    steps: Annotated[tuple[PlanStep, ...], Meta(max_length=MOST_STEPS)] = ()


def as_plan(given: Any) -> WorkPlan:
    """A plan from what the user or the log has.

    Raises:
        UsageError: it is none; the message says where.
    """
    if isinstance(given, WorkPlan):
        return given
    try:
        plan = msgspec.convert(given, WorkPlan)
    except msgspec.ValidationError as error:
        raise UsageError(f"invalid plan: {error}") from error
    # JSON Schema, as vendors take it, cannot say that only `run` does without a file.
    for number, step in enumerate(plan.steps, start=1):
        if step.action != "run" and not step.file:
            raise UsageError(f"invalid plan: step {number} names no file")
        if step.boundary is not None and step.boundary.last < step.boundary.first:
            raise UsageError(f"invalid plan: the boundary of step {number} ends before it begins")
    return plan


def plain(plan: WorkPlan) -> dict[str, Any]:
    """A plan as the log has it."""
    built: dict[str, Any] = msgspec.to_builtins(plan)
    return built


# --- what comes next -------------------------------------------------------------------


class NextAction(msgspec.Struct, frozen=True):
    """What there is to do: plan, wait for approval, do a step, or end."""

    do: Literal["plan", "wait", "step", "end"]
    index: int = 0


def next_of(state: PlanState) -> NextAction:
    """What comes next; a function of the log, so that it is the same after a crash."""
    # First: a step that was sent back makes the plan void, though it was approved.
    if not state.plan_id or any(step.status == "replanned" for step in state.steps.values()):
        return NextAction("plan")
    if state.approved is None:
        return NextAction("wait")
    if not state.approved or any(step.status == "failed" for step in state.steps.values()):
        return NextAction("end")
    planned = state.plan.get("steps")
    for index in range(len(planned) if isinstance(planned, list | tuple) else 0):
        step = state.steps.get(index)
        if step is None or step.status == "started":
            return NextAction("step", index)
    return NextAction("end")


# --- texts -----------------------------------------------------------------------------


def step_prompt(plan: WorkPlan, index: int) -> str:
    """The prompt of the editor."""
    step = plan.steps[index]
    lines = [f"The plan: {plan.summary}", "", f"Your step: {step.title}"]
    if step.file:
        lines.append(f"File: {step.file}")
    if step.boundary is not None:
        lines.append(
            f"Change only the lines {step.boundary.first + 1} to {step.boundary.last + 1} of it."
        )
    lines += ["", step.details]
    if step.check:
        lines += ["", f"Afterwards this must succeed: {step.check}"]
    return "\n".join(lines)


def failure_report(plan: WorkPlan, index: int, why: str) -> str:
    """The message to the planner after a step has failed."""
    done = [f"{number + 1}. {step.title}" for number, step in enumerate(plan.steps[:index])]
    return "\n".join(
        [
            f"[Step {index + 1} of the plan failed: {plan.steps[index].title}]",
            "",
            _cut(why, SHOWN_FAILURE),
            "",
            "Done so far, and it stays done:" if done else "No step was done before it.",
            *done,
            "",
            "Find out what is wrong and submit a new plan for what is left, this step in "
            "its better form included. "
            "Steps that are done must not be in it.",
        ]
    )


def report(state: PlanState, plan: WorkPlan) -> str:
    """What was done, for the user and for the model's next turn."""
    if not plan.steps and not state.done:
        return plan.summary
    rows = [f"{'✓'} {_title(done.step)}" + _shown(done.detail) for done in state.done]
    for index, step in enumerate(plan.steps):
        known = state.steps.get(index)
        mark = {"passed": "✓", "failed": "✗", "skipped": "-"}.get(
            known.status if known else "", "·"
        )
        rows.append(f"{mark} {step.title}" + _shown(known.detail if known else ""))
    count = sum(row.startswith("✓") for row in rows)
    numbered = [f"{number}. {row}" for number, row in enumerate(rows, start=1)]
    return "\n".join([plan.summary, "", *numbered, "", f"{count} of {len(rows)} steps done."])


def shown(plan: WorkPlan) -> str:
    """The plan as Markdown, for the user."""
    lines = ["## Plan", "", plan.summary, ""]
    for number, step in enumerate(plan.steps, start=1):
        lines.append(
            f"{number}. **{step.action}** `{step.file}` {step.description}".replace(" `` ", " ")
        )
        if step.check:
            lines.append(f"   check: `{step.check}`")
    return "\n".join(lines)


def _title(step: dict[str, Any]) -> str:
    try:
        return msgspec.convert(step, PlanStep).title
    except msgspec.ValidationError:
        return "(a step)"


def _shown(detail: str) -> str:
    words = " ".join(detail.split())
    return f" — {_cut(words, SHOWN)}" if words else ""


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
