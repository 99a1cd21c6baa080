"""What programs have a session wait for: prepared and judged as the call of a model would be."""

from __future__ import annotations

import msgspec

from weft.errors import ToolError, UsageError
from weft.events import CallPermission, TurnWaiting, WaitSubject
from weft.ids import TurnId, WaitId
from weft.loop import (
    PermissionGate,
    bad_wait_time,
    end_of_wait,
    wait_has_ended,
    wait_subject,
    why_no_wait,
)
from weft.state import SessionState
from weft.tools import ToolContext, WaitRequest, prepared_wait


async def waited_for(
    on: WaitSubject,
    until: float | None,
    context: ToolContext,
    gate: PermissionGate,
    state: SessionState,
    now: float,
) -> TurnWaiting:
    """What is waited for, as it looks now.

    Raises:
        UsageError: there is no such thing, it has come already, or a rule forbids to look at it.
    """
    try:
        prepared = await prepared_wait(on, until, context)
    except ToolError as error:
        raise UsageError(str(error)) from error
    decision = gate.decide(prepared.action)
    # To ask is to ask the user, who is the one that wants this.
    if decision.verdict == "deny":
        raise UsageError(f"this may not be waited for: {decision.reason}")
    request = prepared.wait or WaitRequest()
    ends = until if until is not None else request.until
    request = msgspec.structs.replace(request, seconds=None, until=ends)
    if why := bad_wait_time(request, now) or why_no_wait(state, (), request):
        raise UsageError(why)
    if wait_has_ended(state, request) or (request.look and await _is_there(request)):
        raise UsageError("there is nothing to wait for: it has come already")
    kept = CallPermission(by="user") if request.keeps_permission else None
    return TurnWaiting(
        wait_id=WaitId(""),
        turn_id=TurnId(""),
        on=wait_subject(state, request),
        until=end_of_wait(request, now),
        permission=kept,
    )


async def _is_there(request: WaitRequest) -> bool:
    assert request.look is not None
    assert request.on is not None
    try:
        return await request.look(request.on)
    except ToolError as error:
        raise UsageError(str(error)) from error
