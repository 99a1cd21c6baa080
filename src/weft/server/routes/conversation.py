"""Operations of the conversation: messages, queues, turns, requests, clients, plans."""

from __future__ import annotations

from typing import Any

from weft.api import AbortReceipt, Accepted, Reply
from weft.errors import UsageError
from weft.server.bodies import (
    AbortBody,
    AnswerBody,
    AttachedClient,
    BudgetBody,
    ClientBody,
    ContentBody,
    MessageBody,
    NoteBody,
    OrderBody,
    PlanBody,
    PromptBody,
    QueuedPair,
    ReasonBody,
    StopAfterStepBody,
    TurnOptions,
)
from weft.server.errors import RequestRefusal
from weft.server.operation import LARGE_BODY, ApiCall, ApiOperation, session_call
from weft.state import QueueEntry

MARKS = ("pin",)


async def _recall(call: ApiCall) -> QueuedPair:
    session = await call.session()
    steering, follow_up = await session.recall_queues(input_id=call.body.input_id)
    return QueuedPair(steering=steering, follow_up=follow_up)


async def _answer(call: ApiCall) -> None:
    body: AnswerBody = call.body
    session, request = await call.session(), call.path["request"]
    named = [each for each in (body.action, body.decision, body.answer) if each is not None]
    if len(named) != 1:
        raise UsageError("give one of action, decision and answer")
    if body.answer is not None:
        await session.answer_question(request, body.answer, input_id=body.input_id)
    elif body.decision is not None:
        await session.respond_to_approval(body.decision, request_id=request, input_id=body.input_id)
    else:
        assert body.action is not None
        meta: dict[str, Any] = {"save": True} if body.save else {}
        if body.reason is not None:
            meta["reason"] = body.reason
        await session.respond_to_permission(
            body.action, request_id=request, meta=meta or None, input_id=body.input_id
        )


async def _attach(call: ApiCall) -> AttachedClient:
    body: ClientBody = call.body
    session = await call.session()
    client = await session.attach(body.role, body.name)
    call.parts.clients.keep(client, session)
    return AttachedClient(client=client, role=body.role, driver=session.driver)


async def _detach(call: ApiCall) -> None:
    held = _client(call)
    await held.detach()
    call.parts.clients.drop(call.path["client"])


async def _drive(call: ApiCall) -> AttachedClient:
    client = call.path["client"]
    await _client(call).claim_driver()
    return AttachedClient(client=client, role="driver", driver=client)


def _client(call: ApiCall) -> Any:
    held = call.parts.clients.get(call.path["client"])
    if held is None or not held.id.startswith(call.path["id"]):
        raise RequestRefusal(404, "client", f"no client {call.path['client']!r:.80} is attached")
    return held


async def _mark(call: ApiCall) -> None:
    session, node = await call.session(), call.path["node"]
    if call.path["mark"] not in MARKS:
        raise UsageError(f"no mark {call.path['mark']!r:.80}; there is {', '.join(MARKS)}")
    if call.operation.method == "PUT":
        await session.pin(node, input_id=call.body.input_id)
    else:
        await session.unpin(node, input_id=call.body.input_id)


CONVERSATION: tuple[ApiOperation, ...] = (
    session_call(
        "POST",
        "/message",
        "send_message",
        "Send a message and wait for the end of its turn.",
        body=MessageBody,
        answer=Reply,
        most_bytes=LARGE_BODY,
    ),
    session_call(
        "POST",
        "/prompt",
        "send_prompt",
        "Send a message; the answer comes as soon as it is durable.",
        body=PromptBody,
        answer=Accepted,
        status=202,
        most_bytes=LARGE_BODY,
    ),
    session_call(
        "POST",
        "/steer",
        "queue_steering",
        "Send a message that the turn which runs takes up after its tool calls.",
        body=ContentBody,
        answer=Accepted,
        status=202,
        most_bytes=LARGE_BODY,
    ),
    session_call(
        "POST",
        "/follow-up",
        "queue_follow_up",
        "Send a message for when the turn which runs has ended.",
        body=PromptBody,
        answer=Accepted,
        status=202,
        most_bytes=LARGE_BODY,
    ),
    ApiOperation(
        method="POST",
        path="/sessions/{id}/queue/recall",
        name="recall_queues",
        says="Take all queued messages back.",
        run=_recall,
        answer=QueuedPair,
        calls=("session.recall_queues",),
    ),
    session_call(
        "POST",
        "/queue/dequeue",
        "dequeue_steering",
        "Take the steering messages back.",
        answer=tuple[QueueEntry, ...],
    ),
    session_call(
        "POST", "/queue/order", "reorder_queue", "Put queued messages in order.", body=OrderBody
    ),
    session_call(
        "PUT",
        "/queue/{entry}",
        "edit_queued",
        "Put other words in the place of a queued message.",
        body=ContentBody,
        path_as={"entry": "entry_id"},
        most_bytes=LARGE_BODY,
    ),
    session_call(
        "DELETE",
        "/queue/{entry}",
        "remove_queued",
        "Take a queued message out.",
        path_as={"entry": "entry_id"},
    ),
    session_call("DELETE", "/queue", "clear_queues", "Empty both queues."),
    session_call(
        "POST",
        "/abort",
        "abort",
        "Stop the turn that runs.",
        body=AbortBody,
        answer=AbortReceipt,
    ),
    session_call(
        "POST",
        "/stop-after-step",
        "stop_after_step",
        "Let the turn end after its present step; true when there is one that will.",
        body=StopAfterStepBody,
        answer=bool,
    ),
    session_call(
        "POST",
        "/continue",
        "continue_turn",
        "Continue a turn from exactly what is stored.",
        body=TurnOptions,
        answer=Accepted,
        status=202,
    ),
    ApiOperation(
        method="POST",
        path="/sessions/{id}/clients",
        name="attach",
        says="Attach as one of several clients; a viewer's changing calls are refused.",
        run=_attach,
        body=ClientBody,
        answer=AttachedClient,
        status=201,
        calls=("session.attach",),
        remembers=False,
    ),
    ApiOperation(
        method="DELETE",
        path="/sessions/{id}/clients/{client}",
        name="detach",
        says="Detach a client.",
        run=_detach,
        calls=("session.detach",),
        remembers=False,
    ),
    ApiOperation(
        method="POST",
        path="/sessions/{id}/clients/{client}/drive",
        name="claim_driver",
        says="Let a client drive; the driver before becomes a viewer.",
        run=_drive,
        answer=AttachedClient,
        calls=("session.claim_driver",),
        remembers=False,
    ),
    ApiOperation(
        method="POST",
        path="/sessions/{id}/requests/{request}",
        name="respond",
        says="Answer a permission request or a question; a second answer is refused.",
        run=_answer,
        body=AnswerBody,
        calls=(
            "session.respond_to_permission",
            "session.respond_to_approval",
            "session.answer_question",
        ),
    ),
    session_call("POST", "/plan/approve", "approve_plan", "Approve the plan that waits."),
    session_call(
        "POST", "/plan/reject", "reject_plan", "Reject the plan that waits.", body=ReasonBody
    ),
    session_call(
        "PUT", "/plan", "edit_plan", "Put another plan in its place; it waits.", body=PlanBody
    ),
    session_call(
        "POST",
        "/notes",
        "add_system_message",
        "Add a note that is shown and kept.",
        body=NoteBody,
    ),
    session_call(
        "DELETE",
        "/background/{background}",
        "kill_background",
        "Stop a background agent or command.",
        path_as={"background": "background_id"},
    ),
    session_call("PUT", "/budget", "set_budget", "Set what the session may cost.", body=BudgetBody),
    ApiOperation(
        method="PUT",
        path="/sessions/{id}/nodes/{node}/marks/{mark}",
        name="mark",
        says="Pin a message: it is kept through compactions.",
        run=_mark,
        calls=("session.pin",),
    ),
    ApiOperation(
        method="DELETE",
        path="/sessions/{id}/nodes/{node}/marks/{mark}",
        name="unmark",
        says="Unpin a message.",
        run=_mark,
        calls=("session.unpin",),
    ),
)
