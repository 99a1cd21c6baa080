"""Summaries of a session, asked beside it: one question to its model, counted in its ledger.

Loaded with the first summary that a user asks for.
"""

from __future__ import annotations

from typing import Final

import anyio
import msgspec

from weft.api.handle import SessionBase
from weft.api.model_query import Answer, CountedUsage, ask
from weft.api.summaries.questions import SummaryQuestion, branch_summary, handover
from weft.errors import OwnerLost, SessionError, UsageError, WeftError
from weft.events import Purpose
from weft.ids import NodeId
from weft.loop import TurnLimits, refusal
from weft.messages import Usage
from weft.session import BeginCall, BringOver, RecordUsage, digest
from weft.state import SessionState

RECORD_SECONDS = 5.0
"""How long a summary that was given up may take to be counted."""
_BUDGETS: Final = ("max_budget_usd", "max_tokens")
"""What the message of the turn at work may set for the session."""


async def write_handover(session: SessionBase) -> tuple[str, str]:
    """`Session.summarize`."""
    if (made := await _summary_of_owner(session)) is not None:
        return made
    port = await session._port()
    excluded = port.state.tree.excluded
    line = [entry for entry in await port.line() if entry.node.id not in excluded]
    if not line:
        raise UsageError("there is nothing to summarise: the session is empty")
    model = session._host.model(port.state.settings.model)
    answer = await ask_beside(session, port.state, handover(line, port.state, model))
    return answer.text, await session._host.save_handover(session.id, answer.text)


async def bring_over(session: SessionBase, node: str, input_id: str | None) -> str:
    """`Session.summarize_branch`."""
    if (made := await _summary_of_owner(session, NodeId(node), input_id)) is not None:
        return made[0]
    port = await session._port()
    state = port.state
    wanted = BringOver(node=NodeId(node), **session._by(input_id))
    # Before the model is asked: a repeat must not pay for a second summary.
    was_done, text = state.inputs.earlier_answer(wanted.input_id, digest(wanted))
    if was_done:
        return str(text)
    state.tree.require(NodeId(node))
    shared = set(state.tree.line(state.tree.head))
    unsent = shared.union(state.tree.excluded)
    left = [entry for entry in await port.line(NodeId(node)) if entry.node.id not in unsent]
    if not left:
        raise UsageError("that message is on this branch; there is nothing to bring over")
    model = session._host.model(state.settings.model)
    answer = await ask_beside(session, state, branch_summary(left, model))
    return await session._call(msgspec.structs.replace(wanted, text=answer.text))


async def _summary_of_owner(
    session: SessionBase, node: NodeId | None = None, input_id: str | None = None
) -> tuple[str, str] | None:
    """A summary by the process that has the session; None when that is this one."""
    while not (port := await session._port()).lives_here:
        # Loaded with the first session of another process.
        from weft.runtime.ports.remote import RemotePort
        from weft.runtime.ports.socket_protocol import SummaryRequest

        assert isinstance(port, RemotePort)
        try:
            return await port.summarize(SummaryRequest(node=node, input_id=input_id))
        except OwnerLost:
            # The next one makes it, and that may be this process.
            if port.is_open:
                raise
    return None


async def ask_beside(
    session: SessionBase, state: SessionState, question: SummaryQuestion, *, model: str = ""
) -> Answer:
    """Ask the session's model, or another, outside of a turn.

    What it used is counted whatever becomes of it.
    """
    name, purpose = model or state.settings.model, question.purpose
    check_budget(session, state, name)
    begun = BeginCall(
        model=name,
        purpose=purpose,
        input_tokens=question.tokens,
        digest=question.digest(name),
    )
    # On record before it is made, so that what it costs is known even if this process dies.
    call = await session._call(begun)
    counted = CountedUsage()
    try:
        answer = await ask(
            question.text, model=session._host.model(name), system=question.system, counted=counted
        )
    except BaseException:
        await _record_at_last(session, _used(name, purpose, call, counted))
        raise
    await session._call(_used(name, purpose, call, counted))
    return answer


async def _record_at_last(session: SessionBase, used: RecordUsage) -> None:
    """Count a call that was given up.

    Where even that fails, the next to open the session counts it.
    """
    with anyio.CancelScope(shield=True), anyio.move_on_after(RECORD_SECONDS):
        try:
            await session._call(used)
        except WeftError:
            return


def check_budget(session: SessionBase, state: SessionState, name: str) -> None:
    """A summary is a model call like any other.

    Raises:
        SessionError: the budget is used up, or cannot be kept.
    """
    is_priced = session._host.model(name).info.cost(Usage()) is not None
    turn = state.turn.open.options if state.turn.open is not None else {}
    own = {name: turn[name] for name in _BUDGETS if turn.get(name) is not None}
    limits = msgspec.convert({**(state.settings.get("budget") or {}), **own}, TurnLimits)
    why = refusal(limits, state.ledger.total, model=name, is_priced=is_priced)
    if why is not None:
        raise SessionError(f"the model was not asked: {why}")


def _used(model: str, purpose: Purpose, call: NodeId, counted: CountedUsage) -> RecordUsage:
    return RecordUsage(
        usage=counted.usage,
        model=model,
        purpose=purpose,
        call=call,
        estimated=counted.is_estimated,
    )
