"""A wait that a program began, and no call: the turn begins asleep, and the model is asked when the
wait is over.
"""

from __future__ import annotations

from weft.errors import WeftError
from weft.events import PrefixFrozen, SystemNote, TurnWaiting
from weft.ids import CallUid
from weft.loop.base import TurnEnvironment
from weft.loop.pending_facts import PendingFacts
from weft.loop.waits.wait_sleep import WaitSleep
from weft.loop.waits.wait_text import outcome_text
from weft.tools import WaitRequest, prepared_wait


async def sleep_out(environment: TurnEnvironment, pending: PendingFacts) -> None:
    """Sleep where the turn does so without a call, and note how that ended."""
    calls, state = environment.calls, environment.journal.state
    wait = state.turn.wait
    if wait is None or wait.call_uid is not None:
        return
    if state.turn.woken is None:
        request = await _request(environment, wait)
        await WaitSleep(calls, pending, request).until_woken(wait)
    state = environment.journal.state
    by = state.turn.woken.by if state.turn.woken is not None else ""
    said = outcome_text(state, wait, by, calls.clock.now())
    pending.note(SystemNote(text=said, to_model=True))
    # The turn began without a model call, which would have brought its prefix along.
    prefix = environment.models.prefix
    if prefix.id != state.prefix:
        reason = "first call" if not state.prefix else ""
        frozen = PrefixFrozen(prefix=prefix.id, reason=reason)
        pending.note(frozen, blobs={prefix.id: prefix.data})


async def _request(environment: TurnEnvironment, wait: TurnWaiting) -> WaitRequest:
    """How it is looked for; where that cannot be (the file is out of reach by now, what allowed the
    looks was given on another machine), the time or the user ends the wait.
    """
    calls = environment.calls
    given, said = wait.unattended, wait.on.place
    if wait.on.kind == "ci" and not calls.gate.is_sealed(wait.wait_id, given, said):
        return WaitRequest()
    context = calls.tool_context(CallUid(wait.wait_id))
    try:
        prepared = await prepared_wait(wait.on, wait.until, context)
    except WeftError:
        return WaitRequest()
    return prepared.wait or WaitRequest()
