"""What a session tells of itself: values, and how they are made of its state."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from weft.events import PermissionRequest, Status
from weft.ids import NodeId, SessionId
from weft.messages import Usage
from weft.session import SessionPort
from weft.state import ChildSession, PlanState, SessionState
from weft.store import DraftCall, SessionRow
from weft.view.snapshot import CallInFlight, ChildInfo, EditorSnapshot, PlanProgress

AT_REST: Final[tuple[Status, ...]] = ("idle", "interrupted", "error")


class SessionMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to say about a session in one line."""

    id: SessionId
    title: str
    model: str
    provider: str
    created: float
    last_message: float
    message_count: int
    turn_count: int
    first_prompt: str
    cost_usd: float | None
    status: Status
    project_path: str
    parent_id: SessionId | None = None


class UsageReport(msgspec.Struct, frozen=True, kw_only=True):
    """What the session used: in all, and cut in several ways."""

    total: Usage
    by_model: dict[str, Usage]
    by_turn: dict[str, Usage]
    """The empty name holds what belongs to no turn: compactions and summaries that were
    asked for.
    """
    branch: Usage
    """What made the present line."""
    by_branch: dict[str, Usage] = {}
    """What made the line of each branch; what two share counts in both."""
    by_purpose: dict[str, Usage] = {}
    """What it was for: `turn`, `compaction`, `summary`, ….

    `child` is what sessions used that worked for this one.
    """


class CompactionReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a compaction did."""

    summary: str
    upto: NodeId
    """The last message that the summary stands for."""
    tokens_before: int
    tokens_after: int


class BackgroundWork(msgspec.Struct, frozen=True, kw_only=True):
    """A background agent or command; `kill_background` takes its id."""

    id: str
    kind: Literal["agent", "shell"]
    title: str
    """What the agent is to do, or the command."""
    status: Status | Literal["running", "exited"]
    """Of a command: `running`, `exited`, or `interrupted` when it died with its program and the
    session was not used since.
    """
    exit_code: int | None = None
    """Of a command that has ended; negative: by that signal, None: its end was not seen."""


async def snapshot_of(port: SessionPort, context_window: int) -> EditorSnapshot:
    """What a screen needs to draw itself."""
    state = port.state
    draft = next(iter(reversed(port.drafts)), None)
    requests = tuple(state.turn.requests.values())
    # The last call of a turn had the whole context in it; summaries and agents have contexts of
    # their own.
    last = state.ledger.last_call
    snapshot = EditorSnapshot(
        seq=state.seq,
        status=port.status,
        model=state.settings.model,
        mode=state.settings.mode,
        permission_mode=port.permission_mode,
        thinking=state.settings.thinking,
        draft_node=None if draft is None else draft.node,
        draft="" if draft is None else draft.text,
        draft_thinking="" if draft is None else draft.thinking,
        draft_calls=() if draft is None else tuple(map(_call_in_flight, draft.calls)),
        # An interrupted turn is open too, with the intents that a crash has left: nothing runs.
        running=() if port.status in AT_REST else tuple(state.turn.intents.values()),
        queue=tuple(state.queue.entries.values()),
        steering_length=len(state.queue.waiting("steering")),
        follow_up_length=len(state.queue.waiting("follow_up")),
        requests=requests,
        pending_approval=next(
            (each for each in requests if isinstance(each, PermissionRequest)), None
        ),
        pending_plan=state.plan.plan if state.plan.is_waiting else None,
        plan=_progress(state.plan),
        error=port.error,
        wait=state.turn.asleep,
        context_used=last.total_tokens if last is not None else 0,
        context_window=context_window,
        cost_usd=state.ledger.total.cost_usd,
        title=state.title,
    )
    # Everything else is taken before the first wait: a snapshot must be of one moment, the one that
    # its `seq` names.
    return msgspec.structs.replace(snapshot, queue=await port.in_full(snapshot.queue))


def _call_in_flight(call: DraftCall) -> CallInFlight:
    return CallInFlight(index=call.index, tool=call.tool, arguments=call.arguments)


def _progress(plan: PlanState) -> PlanProgress | None:
    if not plan.plan_id:
        return None
    steps = {index: step.status for index, step in plan.steps.items()}
    return PlanProgress(plan=plan.plan, approved=plan.approved, steps={**steps})


def metadata_of(port: SessionPort) -> SessionMetadata:
    """What there is to say about a session in one line."""
    state, about = port.state, port.state.about
    origin = about.parent or about.fork
    return SessionMetadata(
        id=port.session_id,
        title=state.title,
        model=state.settings.model,
        provider=state.settings.model.partition(":")[0],
        created=about.created,
        last_message=about.last_message,
        message_count=about.message_count,
        turn_count=about.turn_count,
        first_prompt=about.first_prompt,
        cost_usd=state.ledger.total.cost_usd,
        status=port.status,
        project_path=about.project_path,
        parent_id=origin.session_id if origin is not None else None,
    )


def usage_of(state: SessionState) -> UsageReport:
    """Tokens and cost, cut in several ways."""
    from weft.session import branches  # only for those who ask: it costs start-up time

    ledger, tree = state.ledger, state.tree
    return UsageReport(
        total=ledger.total,
        by_model=dict(ledger.models),
        by_turn=dict(ledger.turns),
        branch=ledger.on_line(tree.head, tree),
        by_branch={each.name: ledger.on_line(each.node, tree) for each in branches(state)},
        by_purpose={purpose or "child": used for purpose, used in ledger.purposes.items()},
    )


def child_info(
    child: SessionId, about: ChildSession, row: SessionRow | None, *, running: Status
) -> ChildInfo:
    """A child at a glance; `running` is what it does if it is in a turn."""
    info = ChildInfo(
        id=child,
        name=about.name,
        purpose=about.purpose,
        background=about.background,
        reason=about.reason,
        call_uid=about.call_uid,
        node=about.node,
    )
    if row is None:
        return info
    status: Status = running if row.turn_open else "idle"
    return msgspec.structs.replace(
        info, title=row.title, model=row.model, cost_usd=row.cost_usd, status=status
    )
