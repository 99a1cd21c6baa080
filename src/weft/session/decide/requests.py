"""Decisions that answer an open request: a permission, a question, the plan of the architect."""

from __future__ import annotations

from typing import TypeVar, assert_never

from weft.errors import NoPendingRequest, UsageError
from weft.events import (
    PermissionRequest,
    PermissionResolved,
    PlanDecided,
    PlanEdited,
    QuestionAnswered,
    QuestionAsked,
)
from weft.ids import RequestId
from weft.messages import clean_text
from weft.session.commands import (
    UNNAMED_CLIENT,
    AnswerQuestion,
    DecidePlan,
    EditPlan,
    RespondToPermission,
)
from weft.session.decide.base import (
    DecidedCommand,
    DecisionContext,
    RequestCommand,
)
from weft.state import SessionState

RequestT = TypeVar("RequestT", PermissionRequest, QuestionAsked)


def decide_request(
    command: RequestCommand, state: SessionState, context: DecisionContext
) -> DecidedCommand:
    """What an answer does."""
    match command:
        case RespondToPermission():
            return _respond(command, state)
        case AnswerQuestion():
            return _answer_question(command, state)
        case DecidePlan() | EditPlan():
            return _decide_plan(command, state)
        case _:
            assert_never(command)


def _respond(command: RespondToPermission, state: SessionState) -> DecidedCommand:
    request = _open_request(command.request_id, PermissionRequest, state)
    _check_answer(command, request)
    # A grant for a child is remembered there: grants are not inherited, in neither direction.
    grants = command.action in ("allow_turn", "allow_always") and request.child is None
    resolved = PermissionResolved(
        request_id=request.request_id,
        action=command.action,
        by=command.client or UNNAMED_CLIENT,
        reason=clean_text(command.reason),
        pattern=request.always_pattern if grants else "",
        saved=command.save,
        instead=command.instead,
        rules=command.rules,
    )
    return DecidedCommand(facts=(resolved,), rule=request.always_pattern if command.save else "")


def _check_answer(command: RespondToPermission, request: PermissionRequest) -> None:
    """Refuse an answer that contradicts itself: it would be read as more than was meant."""
    if command.save and (command.action != "allow_always" or not request.always_pattern):
        raise UsageError("only what is allowed always can be saved as a rule")
    if command.instead is not None and (command.action != "deny" or command.interrupt):
        raise UsageError("a changed input can only be allowed once")
    if command.interrupt and command.action != "deny":
        raise UsageError("only a denial can end the turn")


def _answer_question(command: AnswerQuestion, state: SessionState) -> DecidedCommand:
    request = _open_request(command.request_id, QuestionAsked, state)
    answered = QuestionAnswered(
        request_id=request.request_id,
        answer=clean_text(command.answer),
        by=command.client or UNNAMED_CLIENT,
    )
    return DecidedCommand(facts=(answered,))


def _open_request(
    request_id: RequestId | None, kind: type[RequestT], state: SessionState
) -> RequestT:
    """The open request that is meant; None means the only one."""
    waiting = [request for request in state.turn.requests.values() if isinstance(request, kind)]
    if request_id is not None:
        waiting = [request for request in waiting if request.request_id == request_id]
        if not waiting:
            raise NoPendingRequest(
                f"no open request {request_id!r}: it was answered, withdrawn or never made"
            )
    if not waiting:
        raise NoPendingRequest("nothing waits for an answer")
    if len(waiting) > 1:
        # Guessing would approve a call that the user has not looked at.
        ids = ", ".join(request.request_id for request in waiting)
        raise UsageError(f"several requests are open; say which one is meant: {ids}")
    return waiting[0]


def _decide_plan(command: DecidePlan | EditPlan, state: SessionState) -> DecidedCommand:
    if state.turn.open is None or not state.plan.is_waiting:
        raise NoPendingRequest("no plan waits for approval")
    plan_id = state.plan.plan_id
    if isinstance(command, EditPlan):
        return DecidedCommand(facts=(PlanEdited(plan_id=plan_id, plan=command.plan),))
    decided = PlanDecided(
        plan_id=plan_id,
        approved=command.approved,
        reason=clean_text(command.reason),
        by=command.client or UNNAMED_CLIENT,
    )
    return DecidedCommand(facts=(decided,))
