"""What a session tells of itself: values, and how they are made of its state."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from weft.context import ZONE_SHARES, estimate_text, is_cut, load_prefix, zone_budget
from weft.events import PermissionRequest, Status
from weft.ids import BlobId, NodeId, SessionId
from weft.messages import Usage
from weft.runtime.session_host import SessionHost
from weft.session import SessionPort
from weft.state import ChildSession, PlanState, SessionState
from weft.state.ledger import LEAST_COUNTED, PLAUSIBLE
from weft.store import DraftCall, SessionRow
from weft.tree import NodeSkeleton
from weft.view.goal_line import goal_row
from weft.view.snapshot import CallInFlight, ChildInfo, ContextZone, EditorSnapshot, PlanProgress

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
    output: str = ""
    """The end of what a command has printed, at most 20,000 characters, masked; where it runs in
    another process, what it prints from now on comes as events only.
    """
    printed: int = 0
    """How many characters it has printed in all."""


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
        goal=goal_row(state.goal),
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


# --- the zones of a request --------------------------------------------------------------


async def prefix_zones(
    host: SessionHost, prefix_id: BlobId | None, model: str
) -> list[ContextZone]:
    """The zones of a prefix, unscaled, with what a model has room for; none without a prefix."""
    data = None if prefix_id is None else await host.stored_prefix(prefix_id)
    if data is None:
        return []
    prefix = load_prefix(data)
    named = prefix.zones if isinstance(prefix.zones, dict) else {}
    texts = {"instructions": prefix.instructions_text, **{n: prefix.zone_text(n) for n in named}}
    tokens = {name: estimate_text(len(text)) for name, text in texts.items()}
    tools = len(msgspec.json.encode(prefix.tools)) if prefix.tools else 0
    window = host.context_window(model)
    return [
        ContextZone(
            name="system", tokens=max(0, estimate_text(len(prefix.system)) - sum(tokens.values()))
        ),
        ContextZone(name="tools", tokens=estimate_text(tools)),
        *(
            ContextZone(
                name=name,
                tokens=tokens[name],
                budget=_budget(host, name, window),
                is_cut=is_cut(text),
            )
            for name, text in texts.items()
        ),
    ]


def last_answer(state: SessionState) -> NodeSkeleton | None:
    """The message that the newest counted call gave."""
    # Each answer is entered once, when it is paid for: the last entry is the newest.
    return state.tree.nodes.get(next(reversed(state.ledger.nodes), NodeId("")))


def may_be_outdated(state: SessionState) -> Literal["no", "yes", "undone"]:
    """Whether the next request goes on from the last one, as far as the state alone tells.

    `undone`: a compaction that the last call may have been made with no longer counts.
    """
    tree, last = state.tree, last_answer(state)
    if last is None:
        return "no"
    if next(reversed(state.ledger.nodes)) not in tree.walk_up(tree.head):
        return "yes"
    made = (tree.compaction_for(tree.head), tree.clearing_for(tree.head))
    if any(each and each.at.log == last.at.log and each.at.seq > last.at.seq for each in made):
        return "yes"
    return "no" if tree.undone is None else "undone"


def may_be_count(counted: int, estimated: int) -> bool:
    """Whether a report of a vendor can be a count of a request: some servers leave out what they
    had in a cache.
    """
    return estimated < LEAST_COUNTED or counted >= estimated * PLAUSIBLE[0]


class ZoneCounter:
    """Counts the zones of a session's last request, as one moment has it."""

    def __init__(self, host: SessionHost, state: SessionState) -> None:
        self._host = host
        # Taken now: the state goes on while the prefix is read.
        self._prefix = state.prefix
        self._model = state.settings.model
        self._ratio = state.ledger.ratio(self._model)

    async def count(self, used: int) -> tuple[ContextZone, ...]:
        """The zones, the conversation as one; costs the same however long that is."""
        found = await prefix_zones(self._host, self._prefix, self._model)
        zones = [scaled(zone, self._ratio) for zone in found]
        said = max(0, used - sum(zone.tokens for zone in zones))
        return (*zones, ContextZone(name="conversation", tokens=said))


def scaled(zone: ContextZone, scale: float) -> ContextZone:
    """A zone in the vendor's tokens."""
    # A small part beside large ones is little, and not none.
    tokens = max(round(zone.tokens * scale), min(zone.tokens, 1))
    return msgspec.structs.replace(zone, tokens=tokens)


def _budget(host: SessionHost, name: str, window: int) -> int:
    if name not in ZONE_SHARES:
        return 0
    return zone_budget(name, host.services.config.get(f"context.{name}"), window)
