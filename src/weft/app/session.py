"""The session as programs hold it.

A handle is an id and the way to wherever the session lives; it may be kept for as long as one likes.  If the session was unloaded it
comes back with the next call, and if another process owns it, that process is asked.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from weft.app.asking import Answer
from weft.app.port import UNLOADED, LocalPort, Port
from weft.app.replies import HistoryMessage, Reply, TurnTally
from weft.app.skills import Skill, Skills
from weft.app.summaries import branch_summary, handover
from weft.errors import (
    SessionBusy,
    SessionError,
    SessionInterrupted,
    SessionStopped,
    UsageError,
)
from weft.events import (
    Compacted,
    ErrorRaised,
    Event,
    FactBase,
    PermissionAction,
    PermissionRequest,
    Purpose,
    Replaced,
    SessionRestarted,
    SessionStatus,
    Status,
    Todo,
    Unknown,
)
from weft.ids import EntryId, InputId, NodeId, RequestId, SessionId, new_id
from weft.loop import Entry as LineEntry
from weft.loop import Limits, refusal
from weft.messages import Content, Node, Text, Usage, as_parts
from weft.providers import Model, ModelInfo
from weft.session import (
    Abort,
    AbortReceipt,
    Accepted,
    AddNote,
    AnswerQuestion,
    Attach,
    Branch,
    BranchAt,
    ChangeSetting,
    ClearBoundary,
    Command,
    Compact,
    ContinueTurn,
    DecidePlan,
    DeleteBranch,
    DequeueSteering,
    Detach,
    EditNode,
    EditPlan,
    EditQueued,
    MarkNode,
    Queued,
    RecallQueues,
    RecordUsage,
    RemoveQueued,
    RenameBranch,
    ReorderQueue,
    RespondToPermission,
    Rewind,
    RewindPlan,
    Say,
    SetBoundary,
    SetCheckpoint,
    SetMode,
    Subscription,
    SwitchBranch,
    SwitchSkill,
    ToggleCollapse,
    UndoCompaction,
    UndoRewind,
    branches,
    node_at,
)
from weft.state import (
    Boundary,
    Child,
    Entry,
    PlanState,
    Request,
    SessionState,
    TouchedFile,
    combine_queue_entries_to_text,
)
from weft.store import SessionRow
from weft.tools import Shape

if TYPE_CHECKING:  # loaded when somebody uses commands: it costs start-up time
    from weft.app.command_shell import Ask
    from weft.app.commands_md import Expanded, MarkdownCommand, MarkdownCommands
if TYPE_CHECKING:  # loaded when somebody looks at the tree, or at the agents
    from weft.agents import Definition, Definitions
    from weft.app.treeview import TreeView


class Host(Protocol):
    """What a handle needs of the manager it came from."""

    async def port(self, session_id: SessionId) -> Port:
        """The way to the session; starts a stored one, without calling a model."""
        ...

    async def stop_session(self, session_id: str) -> None: ...

    async def available_models(self) -> list[ModelInfo]: ...

    def command_names(self) -> list[str]: ...

    async def commands(self, project_path: str) -> MarkdownCommands: ...

    async def agents(self, project_path: str) -> Definitions: ...

    async def expand_command(
        self, session_id: SessionId, text: str, ask: Ask | None, client: str = ""
    ) -> Expanded: ...

    def now(self) -> float: ...

    def normal_model(self, model: Any) -> str: ...

    def model(self, name: str) -> Model: ...

    def rotation(self) -> list[str]: ...

    def skills(self, project_path: str) -> Skills: ...

    async def keep_handover(self, session_id: SessionId, text: str) -> str: ...

    async def start_session(self, **settings: Any) -> Session: ...

    async def get(self, session_id: str) -> Session: ...

    async def find_session(self, session_id: str) -> Session | None: ...

    async def row(self, session_id: SessionId) -> SessionRow | None: ...

    async def stop_child(self, session_id: SessionId, child: SessionId) -> None: ...

    def shape(self, wanted: Any) -> Shape: ...

    def lend_tools(self, session_id: SessionId, wanted: Any) -> Any: ...


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
    """The empty name holds what belongs to no turn: compactions and summaries that were asked for."""
    branch: Usage
    """What made the present line."""
    by_branch: dict[str, Usage] = {}
    """What made the line of each branch; what two share counts in both."""
    by_purpose: dict[str, Usage] = {}
    """What it was for: `turn`, `compaction`, `summary`, …; `child` is what sessions used that worked for this one."""


class CompactionReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a compaction did."""

    summary: str
    upto: NodeId
    """The last message that the summary stands for."""
    tokens_before: int
    tokens_after: int


class ChildInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A session that works for another, at a glance."""

    id: SessionId
    name: str
    """The kind of agent, or which step."""
    purpose: str
    """agent, candidate or step."""
    background: bool = False
    reason: str | None = None
    """How it ended; None while it is at work."""
    call_uid: str | None = None
    """The call that it works for."""
    node: NodeId | None = None
    """The message that called it."""
    title: str = ""
    model: str = ""
    cost_usd: float | None = 0.0
    status: Status = "idle"


class BackgroundWork(msgspec.Struct, frozen=True, kw_only=True):
    """Something that goes on beside the turns; `kill_background` takes its id."""

    id: str
    kind: str
    title: str
    status: Status


class PlanProgress(msgspec.Struct, frozen=True, kw_only=True):
    """A plan of architect mode, and how far it has come."""

    plan: dict[str, Any]
    approved: bool | None
    """None: it waits for somebody's word."""
    steps: dict[int, str] = {}
    """How each step that was begun stands: started, passed, failed, skipped or replanned."""


class EditorSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """All that a screen needs to draw itself; events after `seq` bring it on from there."""

    seq: int
    status: Status
    model: str
    mode: str
    permission_mode: str
    thinking: str
    draft_node: NodeId | None
    draft: str
    queue: tuple[Entry, ...]
    steering_length: int
    follow_up_length: int
    requests: tuple[Request, ...]
    pending_approval: PermissionRequest | None
    pending_plan: dict[str, Any] | None
    """The plan that waits for approval, in architect mode."""
    plan: PlanProgress | None = None
    """The newest plan of the present task and how far it has come, in architect mode."""
    error: str
    context_used: int
    cost_usd: float | None
    title: str


class Session:
    """One session.  Every changing call is durable before it returns; cancelling a call undoes nothing."""

    def __init__(self, session_id: SessionId, host: Host, port: Port | None = None) -> None:
        self.id = session_id
        self._host = host
        self._port_now = port
        self._client = ""
        self._role: Literal["viewer", "driver"] = "viewer"
        # Weak, so that leaving a loop is enough to end its subscription: nobody else holds it.
        self._subscriptions: list[weakref.ref[Subscription]] = []

    def __repr__(self) -> str:
        return f"Session({self.id!r})"

    def session_id(self) -> SessionId:
        """The stable id."""
        return self.id

    async def wait(self) -> str:
        """Wait until the session stops; returns why.  One that has stopped already is not started again for this."""
        last = self._port_now
        return await (last if last is not None else await self._port()).ended()

    # -- talking

    async def send_message(
        self,
        content: Content,
        *,
        queue: bool = True,
        input_id: str | None = None,
        **options: Any,
    ) -> Reply:
        """Send a message and wait for the end of its turn.  `options` (model, tools, max_turns, schema, …) hold for this message.

        `schema` (a JSON Schema or a type) asks for a structured result: `Reply.deliverable`, checked, with at most two repairs.  A busy session queues it as a follow-up.  A cancel ends the wait, not the turn.

        Raises:
            SessionBusy: a turn runs and `queue` is False.
        """
        port = await self._port()
        command = Say(
            parts=as_parts(content),
            when_busy="follow_up" if queue else "refuse",
            options=self._options(options),
            waits=True,
            input_id=_input_id(input_id),
            client=self._client,
        )
        accepted = _accepted(await port.call(command))
        return self._typed(await self._reply(port, accepted), options.get("schema"))

    def _typed(self, reply: Reply, wanted: Any) -> Reply:
        """The reply with its result in the type that was asked for."""
        if wanted is None or reply.finish_reason != "submitted":
            return reply
        value = self._host.shape(wanted).check(reply.deliverable)
        return msgspec.structs.replace(reply, deliverable=value)

    async def send_prompt(
        self, content: Content, *, input_id: str | None = None, **options: Any
    ) -> Accepted:
        """Start a turn, or steer the one that runs; returns as soon as the prompt is durable."""
        return await self._say(content, "steering", input_id, options)

    async def queue_steering(self, content: Content, *, input_id: str | None = None) -> Accepted:
        """Say something that reaches the model before its next call; idle, the same as `send_prompt`."""
        return await self._say(content, "steering", input_id, {})

    async def queue_follow_up(
        self, content: Content, *, input_id: str | None = None, **options: Any
    ) -> Accepted:
        """Say something that is sent when the turn ends; idle, the same as `send_prompt`."""
        return await self._say(content, "follow_up", input_id, options)

    async def _say(
        self,
        content: Content,
        when_busy: Literal["steering", "follow_up"],
        input_id: str | None,
        options: dict[str, Any],
    ) -> Accepted:
        answer = await self._call(
            Say(
                parts=as_parts(content),
                when_busy=when_busy,
                options=self._options(options),
                input_id=_input_id(input_id),
                client=self._client,
            )
        )
        return _accepted(answer)

    async def get_queued_messages(self) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
        """Both queues (steering, follow-up), only to look at."""
        port = await self._port()
        queue = port.state.queue
        steering, follow_up = queue.waiting("steering"), queue.waiting("follow_up")
        return await port.in_full(steering), await port.in_full(follow_up)

    async def recall_queues(
        self, *, input_id: str | None = None
    ) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
        """Both queues, emptied."""
        queued = msgspec.convert(await self._call(RecallQueues(**self._by(input_id))), Queued)
        return queued.steering, queued.follow_up

    async def clear_queues(self, *, input_id: str | None = None) -> None:
        """Empty both queues."""
        await self.recall_queues(input_id=input_id)

    async def dequeue_steering(self, *, input_id: str | None = None) -> Entry | None:
        """Take back the next steering message; None when there is none."""
        answer = await self._call(DequeueSteering(**self._by(input_id)))
        return None if answer is None else msgspec.convert(answer, Entry)

    @staticmethod
    def combine_queue_entries_to_text(entries: Sequence[Entry]) -> str:
        """One string for showing entries or putting them back into an input box."""
        return combine_queue_entries_to_text(entries)

    async def edit_queued(
        self, entry_id: str, content: Content, *, input_id: str | None = None
    ) -> None:
        """Change what a queued message says."""
        parts = as_parts(content)
        await self._call(EditQueued(entry_id=EntryId(entry_id), parts=parts, **self._by(input_id)))

    async def remove_queued(self, entry_id: str, *, input_id: str | None = None) -> None:
        """Take a message out of the queue."""
        await self._call(RemoveQueued(entry_id=EntryId(entry_id), **self._by(input_id)))

    async def reorder_queue(self, ids: Sequence[str], *, input_id: str | None = None) -> None:
        """Put the named messages first, in this order."""
        entries = tuple(EntryId(each) for each in ids)
        await self._call(ReorderQueue(entries=entries, **self._by(input_id)))

    async def abort(self, reason: str = "", *, input_id: str | None = None) -> AbortReceipt:
        """Stop the turn, if one runs; returns when everything is settled (within a second)."""
        receipt = await (await self._port()).abort(Abort(reason=reason, **self._by(input_id)))
        return msgspec.convert(receipt, AbortReceipt)

    async def continue_turn(self, *, input_id: str | None = None, **options: Any) -> Accepted:
        """Go on from exactly what is stored, after an interruption, an abort or a limit."""
        command = ContinueTurn(options=self._options(options), **self._by(input_id))
        return _accepted(await self._call(command))

    async def continue_and_wait(self, *, input_id: str | None = None, **options: Any) -> Reply:
        """`continue_turn`, and wait for the turn's end."""
        port = await self._port()
        command = ContinueTurn(options=self._options(options), **self._by(input_id))
        return await self._reply(port, _accepted(await port.call(command)), continued=True)

    async def attach(self, role: Literal["viewer", "driver"] = "viewer") -> str:
        """Come as one of several clients; a viewer's changing calls are refused.  Returns the client's id."""
        client = self._client or new_id("cli", self._host.now())
        await self._call(Attach(role=role, client=client))
        self._client, self._role = client, role
        return client

    async def detach(self) -> None:
        """Go."""
        if self._client:
            await self._call(Detach(client=self._client))
            self._client = ""

    async def claim_driver(self) -> None:
        """Drive from now on; who drove before watches."""
        await self.attach("driver")

    async def approve_plan(self) -> None:
        """Approve the plan that waits; it is carried out.

        Raises:
            NoPendingRequest: no plan waits.
        """
        await self._call(DecidePlan(approved=True, client=self._client))

    async def edit_plan(self, plan: Any) -> None:
        """Put another plan (a `weft.agents.Plan`, or a map like it) in the place of the one that waits; it still waits.

        Raises:
            UsageError: it is no plan.
            NoPendingRequest: no plan waits.
        """
        from weft.agents import as_plan, plain  # only here: it costs start-up time

        await self._call(EditPlan(plan=plain(as_plan(plan)), client=self._client))

    async def reject_plan(self, reason: str = "") -> None:
        """Turn the plan that waits down; the turn ends, and the model will know the reason.

        Raises:
            NoPendingRequest: no plan waits.
        """
        await self._call(DecidePlan(approved=False, reason=reason, client=self._client))

    async def background_commands(self) -> list[BackgroundWork]:
        """What goes on beside the turns: background agents."""
        return [
            BackgroundWork(id=child.id, kind="agent", title=child.title, status=child.status)
            for child in await self.children()
            if child.background and child.reason is None
        ]

    async def kill_background(self, background_id: str) -> None:
        """Stop something that goes on beside the turns.

        Raises:
            UsageError: nothing of this id does.
        """
        child = SessionId(background_id)
        if child not in (await self._port()).state.children.at_work(background=True):
            raise UsageError(f"nothing runs in the background as {background_id!r}")
        await self._host.stop_child(self.id, child)

    async def children(self) -> list[ChildInfo]:
        """The sessions that work, or worked, for this one: sub-agents and steps of plans, oldest first."""
        known = (await self._port()).state.children.known
        return [await self._child(child, about) for child, about in known.items()]

    async def list_agents(self) -> list[Definition]:
        """The kinds of agents that this session may use, those of the project and of the person."""
        project = (await self._port()).state.about.project_path
        return list((await self._host.agents(project)).found.values())

    @property
    def _elsewhere(self) -> Status:
        """What a child with an open turn does that is not open here: it works where its parent is, or nowhere."""
        return "interrupted" if isinstance(self._port_now, LocalPort) else "thinking"

    async def _child(self, child: SessionId, about: Child) -> ChildInfo:
        info = ChildInfo(
            id=child,
            name=about.name,
            purpose=about.purpose,
            background=about.background,
            reason=about.reason,
            call_uid=about.call_uid,
            node=about.node,
        )
        row = await self._host.row(child)
        if row is None:
            return info
        status: Status = "idle"
        if row.turn_open:
            running = await self._host.find_session(child)
            status = await running.get_status() if running is not None else self._elsewhere
        return msgspec.structs.replace(
            info, title=row.title, model=row.model, cost_usd=row.cost_usd, status=status
        )

    async def set_budget(
        self, usd: float | None = None, tokens: int | None = None, *, input_id: str | None = None
    ) -> None:
        """Limit what the session may spend; no limit where None."""
        for limit in (usd, tokens):
            if limit is not None and not isinstance(limit, int | float):
                raise UsageError(f"a budget is a number, not {limit!r}")
            if limit is not None and limit <= 0:
                raise UsageError("a budget must be more than nothing")
        budget = {"max_budget_usd": usd, "max_tokens": tokens}
        value = {name: limit for name, limit in budget.items() if limit is not None}
        await self._set("budget", value or None, input_id)

    async def pin(self, message_id: str, *, input_id: str | None = None) -> None:
        """Keep a message in the model's context whatever is compacted."""
        command = MarkNode(node=NodeId(message_id), mark="pin", **self._by(input_id))
        await self._call(command)

    async def todos(self) -> tuple[Todo, ...]:
        """The task list that the model keeps."""
        return (await self._port()).state.todos.items

    async def add_system_message(
        self,
        text: str,
        level: Literal["info", "warning", "error"] = "info",
        *,
        to_model: bool = False,
        input_id: str | None = None,
    ) -> None:
        """Say something as the system: shown and kept; with `to_model`, in the model's context too."""
        await self._call(AddNote(text=text, level=level, to_model=to_model, **self._by(input_id)))

    async def respond_to_permission(
        self,
        action: PermissionAction,
        *,
        request_id: str | None = None,
        meta: dict[str, Any] | None = None,
        input_id: str | None = None,
    ) -> None:
        """Answer a request for leave.  `meta` may carry a `reason` for the model.

        Raises:
            NoPendingRequest: it is not open (any more); nothing was approved.
            UsageError: several are open and none was named.
        """
        if action not in ("allow_once", "allow_turn", "allow_always", "deny"):
            raise UsageError(
                f"no answer {action!r}; there are allow_once, allow_turn, allow_always and deny"
            )
        await self._call(
            RespondToPermission(
                action=action,
                request_id=RequestId(request_id) if request_id else None,
                reason=str((meta or {}).get("reason", "")),
                save=bool((meta or {}).get("save", False)),
                **self._by(input_id),
            )
        )

    async def respond_to_approval(
        self,
        decision: Literal["approve", "reject", "approve_all"],
        *,
        request_id: str | None = None,
        input_id: str | None = None,
    ) -> None:
        """The other spelling of `respond_to_permission`."""
        actions: dict[str, PermissionAction] = {
            "approve": "allow_once",
            "reject": "deny",
            "approve_all": "allow_always",
        }
        if decision not in actions:
            raise UsageError(f"no decision {decision!r}; there are {', '.join(actions)}")
        await self.respond_to_permission(
            actions[decision], request_id=request_id, input_id=input_id
        )

    async def answer_question(
        self, request_id: str, answer: str, *, input_id: str | None = None
    ) -> None:
        """Answer what the model asked."""
        await self._call(
            AnswerQuestion(request_id=RequestId(request_id), answer=answer, **self._by(input_id))
        )

    # -- reading

    async def messages(self) -> list[HistoryMessage]:
        """The whole present line, oldest first."""
        return [message for _, message in await self.messages_with_ids()]

    get_history = messages

    async def messages_with_ids(self) -> list[tuple[str, HistoryMessage]]:
        """The same, each with its stable id."""
        port = await self._port()
        return history(await port.line(), port.state)

    async def get_status(self) -> Status:
        """idle, thinking, executing_tool, awaiting_permission, interrupted or error."""
        return (await self._port()).status

    async def editor_snapshot(self) -> EditorSnapshot:
        """What a screen needs to draw itself."""
        port = await self._port()
        state = port.state
        node, text = port.draft or (None, "")
        requests = tuple(state.turn.requests.values())
        used = [row.usage for row in state.ledger.rows if row.purpose == "turn"][-1:]
        snapshot = EditorSnapshot(
            seq=state.seq,
            status=port.status,
            model=state.settings.model,
            mode=state.settings.mode,
            permission_mode=port.permission_mode,
            thinking=state.settings.thinking,
            draft_node=node,
            draft=text,
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
            context_used=used[0].total_tokens if used else 0,
            cost_usd=state.ledger.total.cost_usd,
            title=state.settings.title,
        )
        return msgspec.structs.replace(snapshot, queue=await port.in_full(snapshot.queue))

    async def metadata(self) -> SessionMetadata:
        """Title, model, counts, cost and status."""
        port = await self._port()
        state, about = port.state, port.state.about
        origin = about.parent or about.fork
        return SessionMetadata(
            id=self.id,
            title=state.settings.title,
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

    async def usage(self) -> UsageReport:
        """Tokens and money: in all, per model, per turn, per branch and per purpose."""
        state = (await self._port()).state
        return UsageReport(
            total=state.ledger.total,
            by_model=state.ledger.by_model(),
            by_turn={str(turn or ""): used for turn, used in state.ledger.by_turn().items()},
            branch=state.ledger.on_line(state.tree.line(state.tree.head)),
            by_branch={
                branch.name: state.ledger.on_line(state.tree.line(branch.node))
                for branch in branches(state)
            },
            by_purpose={
                purpose or "child": used for purpose, used in state.ledger.by_purpose().items()
            },
        )

    async def touched_files(self) -> list[TouchedFile]:
        """The files that tools changed, newest first."""
        return (await self._port()).state.files.newest_first()

    async def subscribe(self, *, after: int | None = None, live: bool = True) -> Subscription:
        """Events: those after the cursor, then new ones; no gap, no repeat.  `live=False` leaves signals out."""
        subscription = (await self._port()).subscribe(after=after, live=live)
        self._subscriptions = [weakref.ref(each) for each in (*self._readers(), subscription)]
        return subscription

    def _readers(self) -> list[Subscription]:
        """The subscriptions of this handle that somebody still reads, the newest last."""
        held = [each() for each in self._subscriptions]
        return [each for each in held if each is not None and each.is_open]

    async def unsubscribe(self) -> None:
        """End the newest subscription of this handle."""
        for subscription in self._readers()[-1:]:
            subscription.close()

    async def get_provider(self) -> str:
        """The provider of the session's model."""
        return (await self._port()).state.settings.model.partition(":")[0]

    async def get_available_models(self) -> list[ModelInfo]:
        """Every model that could be used."""
        return await self._host.available_models()

    async def get_commands(self) -> list[str]:
        """The slash commands that screens offer: those that are built in, and those from Markdown files."""
        found = [f"/{command.name}" for command in await self.list_commands()]
        return [*self._host.command_names(), *found]

    async def list_commands(self) -> list[MarkdownCommand]:
        """The slash commands from Markdown files, of the project and of the person."""
        project = (await self._port()).state.about.project_path
        return list((await self._host.commands(project)).found.values())

    async def expand_command(self, text: str, *, ask: Ask | None = None) -> Expanded:
        """What a line `/name arguments` stands for, for a command from a Markdown file: send its `content` with its `options`.

        `ask` is called for each shell command in it that needs leave, and says whether there is; without it such a command is
        refused.  What is run is put on record first.  A cancel ends what runs.

        Raises:
            UsageError: there is no such command, or a shell command in it may not be run; nothing was sent.
        """
        return await self._host.expand_command(self.id, text, ask, self._client)

    # -- steering the model

    async def update_model(self, model: Any, *, input_id: str | None = None) -> None:
        """Use another model from the next call on; history stays."""
        await self._set("model", self._host.normal_model(model), input_id)

    set_model = update_model

    async def set_thinking_level(self, level: str, *, input_id: str | None = None) -> None:
        """How hard the model thinks: off, low, medium, high or max."""
        await self._set("thinking", level, input_id)

    async def set_mode(self, mode: str, *, input_id: str | None = None) -> None:
        """Work as `normal` or as `architect` (a strong model plans, a fast one carries out) from the next turn on."""
        await self._call(SetMode(mode=mode, **self._by(input_id)))

    async def get_mode(self) -> str:
        """`normal` or `architect`."""
        return (await self._port()).state.settings.mode

    async def set_permission_mode(self, mode: str, *, input_id: str | None = None) -> None:
        """plan, default, accept_edits, auto or bypass."""
        await self._set("permission_mode", mode, input_id)

    async def cycle_model(self) -> str:
        """Go on with the next model of the configured rotation; returns its name.

        Raises:
            UsageError: no rotation is configured.
        """
        rotation = self._host.rotation()
        if not rotation:
            raise UsageError("no rotation is configured; set model.rotation to a list of models")
        settings = (await self._port()).state.settings
        present = [settings.model, f"{settings.model}:{settings.thinking}"]
        place = next((i for i, each in enumerate(rotation) if each in present), -1)
        name, thinking = _split_thinking(rotation[(place + 1) % len(rotation)])
        await self.update_model(name)
        if thinking:
            await self.set_thinking_level(thinking)
        return self._host.normal_model(name)

    async def cycle_thinking_level(self) -> str:
        """Think one level harder, and after the hardest not at all; returns the level."""
        level = (await self._port()).state.settings.thinking
        place = THINKING_LEVELS.index(level) if level in THINKING_LEVELS else -1
        chosen = THINKING_LEVELS[(place + 1) % len(THINKING_LEVELS)]
        await self.set_thinking_level(chosen)
        return chosen

    async def summarize(self) -> tuple[str, str]:
        """Write a handover document for a later session; returns its text and where it is kept."""
        port = await self._port()
        line = await port.line()
        if not line:
            raise UsageError("there is nothing to summarise: the session is empty")
        self._check_budget(port.state)
        answer = await handover(line, port.state, self._host.model(port.state.settings.model))
        await self._record(answer, "summary")
        return answer.text, await self._host.keep_handover(self.id, answer.text)

    async def summarize_branch(self, node: str) -> str:
        """Bring what was learned on the line that ends at `node` to the present one, where the model sees it."""
        port = await self._port()
        state = port.state
        state.tree.require(NodeId(node))
        shared = set(state.tree.line(state.tree.head))
        left = [entry for entry in await port.line(NodeId(node)) if entry.node.id not in shared]
        if not left:
            raise UsageError("that message is on the present line; there is nothing to bring over")
        self._check_budget(state)
        answer = await branch_summary(left, self._host.model(state.settings.model))
        await self._record(answer, "branch")
        note = f"[What was learned on another branch of this conversation:]\n{answer.text}"
        await self.add_system_message(note, to_model=True)
        return answer.text

    def _check_budget(self, state: SessionState) -> None:
        """A summary is a model call like any other.

        Raises:
            SessionError: the budget is used up, or cannot be kept.
        """
        name = state.settings.model
        is_priced = self._host.model(name).info.cost(Usage()) is not None
        limits = msgspec.convert(state.settings.get("budget") or {}, Limits)
        why = refusal(limits, state.ledger.total, model=name, is_priced=is_priced)
        if why is not None:
            raise SessionError(f"the model was not asked: {why}")

    async def _record(self, answer: Answer, purpose: Purpose) -> None:
        usage = msgspec.structs.replace(answer.usage, cost_usd=answer.cost_usd)
        await self._call(RecordUsage(usage=usage, model=answer.model, purpose=purpose))

    async def list_skills(self) -> tuple[list[Skill], list[str]]:
        """Every skill of the project, and the names of those that are switched on."""
        state = (await self._port()).state
        known = self._host.skills(state.about.project_path).found
        return list(known.values()), list(state.skills.names)

    async def activate_skill(self, name: str, *, input_id: str | None = None) -> None:
        """Put a skill into the prompt in full.

        Raises:
            UsageError: there is no such skill.
        """
        known, _ = await self.list_skills()
        if name not in [skill.name for skill in known]:
            raise UsageError(
                f"no skill {name!r}; there are {', '.join(skill.name for skill in known) or 'none'}"
            )
        await self._call(SwitchSkill(name=name, **self._by(input_id)))

    async def deactivate_skill(self, name: str, *, input_id: str | None = None) -> None:
        """Take a skill out of the prompt again."""
        _, active = await self.list_skills()
        if name not in active:
            raise UsageError(f"the skill {name!r} is not switched on")
        await self._call(SwitchSkill(name=name, active=False, **self._by(input_id)))

    async def set_boundary(
        self, path: str, first: int, last: int, *, input_id: str | None = None
    ) -> None:
        """Hold edits of a file to a range of lines (from 0, both included), whoever of the session makes them and by whatever tool.

        The range follows: it grows and shrinks with edits inside, and shifts with what others change above it.  A `last` beyond the
        end of the file means its last line.  Setting one anew replaces it.

        Raises:
            UsageError: there is no such file in the project, or no such lines in it.
        """
        await self._call(SetBoundary(path=path, first=first, last=last, **self._by(input_id)))

    async def boundary_for(self, path: str) -> Boundary | None:
        """The lines of a file that may be edited, as they were after the last edit; None when all may."""
        state = (await self._port()).state
        return state.boundaries.held.get(_name_in(state.about.project_path, path))

    async def clear_boundary(self, path: str, *, input_id: str | None = None) -> None:
        """Lift the boundary of a file, if it has one."""
        await self._call(ClearBoundary(path=path, **self._by(input_id)))

    async def clear_all_boundaries(self, *, input_id: str | None = None) -> None:
        """Lift every boundary of the session."""
        await self._call(ClearBoundary(**self._by(input_id)))

    async def new_session(self, **settings: Any) -> Session:
        """Another session like this one; this one stays, and can be resumed."""
        state = (await self._port()).state
        wanted = {"model": state.settings.model, "project_path": state.about.project_path}
        return await self._replaced_by(await self._host.start_session(**{**wanted, **settings}))

    async def load_session(self, session_id: str) -> Session:
        """Go over to a stored session; this one stays, and can be resumed."""
        return await self._replaced_by(await self._host.get(session_id))

    async def _replaced_by(self, other: Session) -> Session:
        """Readers of this handle are told where to go on, and end."""
        for subscription in self._readers():
            subscription.end_with(Replaced(session_id=self.id, by=other.id))
        self._subscriptions = []
        return other

    async def compact(
        self, focus: str | None = None, *, queue: bool = False, input_id: str | None = None
    ) -> CompactionReport:
        """Tell the model the older part of the conversation as a summary from now on; the log is untouched.

        With `queue` it waits until no turn runs, and cancelling the wait gives it up.

        Raises:
            SessionBusy: a turn runs, and `queue` is False.
            SessionError: the model could not write the summary; nothing has changed.
        """
        port = await self._port()
        command = Compact(focus=focus or "", **self._by(input_id))
        after = await (self._when_idle(port, command) if queue else port.call(command))
        async with port.subscribe(after=int(after), live="status") as events:
            async for event in events:
                match event:
                    case Compacted():
                        return CompactionReport(
                            summary=event.summary,
                            upto=event.upto,
                            tokens_before=event.tokens_before,
                            tokens_after=event.tokens_after,
                        )
                    case ErrorRaised(where="compaction", message=message):
                        raise SessionError(f"the session was not compacted: {message}")
                    case SessionRestarted(reason=reason):
                        raise SessionError(f"the session was not compacted: {reason}")
                    case SessionStatus(status="error"):
                        raise SessionError(f"the session was not compacted: {port.error}")
                    case _:
                        pass
        raise SessionStopped(self.id, await port.ended())

    async def _when_idle(self, port: Port, command: Command) -> Any:
        """Have a command carried out as soon as no turn runs."""
        async with port.subscribe(live="status") as events:
            while True:
                try:
                    return await port.call(command)
                except SessionBusy:
                    await _until_free(events)

    async def undo_compaction(self, *, input_id: str | None = None) -> None:
        """Let the newest compaction of the present line no longer count."""
        await self._call(UndoCompaction(**self._by(input_id)))

    # -- the tree

    async def tree(self) -> TreeView:
        """Every message of every branch, the names, and where the conversation stands."""
        from weft.app.treeview import tree_view  # only for those who look: it costs start-up time

        return await tree_view(await self._port())

    async def branch_at(
        self, node_or_index: str | int, name: str | None = None, *, input_id: str | None = None
    ) -> Branch:
        """Let the line end at a message (its id, or its index in `get_history()`) and go on from there; nothing is lost.

        Raises:
            SessionBusy: a turn runs.
            UsageError: there is no such message, or the name is taken.
        """
        node = await self._node(node_or_index)
        command = BranchAt(node=node, name=name or "", **self._by(input_id))
        return msgspec.convert(await self._call(command), Branch)

    async def list_branches(self) -> list[Branch]:
        """Every branch; the present one ends at the head."""
        return branches((await self._port()).state)

    async def switch_branch(
        self, name_or_index: str | int, *, input_id: str | None = None
    ) -> Branch:
        """Go on with another branch; the line that is left keeps its place."""
        name = await self._branch_name(name_or_index)
        answer = await self._call(SwitchBranch(name=name, **self._by(input_id)))
        return msgspec.convert(answer, Branch)

    async def rename_branch(
        self, name_or_index: str | int, new_name: str, *, input_id: str | None = None
    ) -> None:
        """Give a branch another name."""
        name = await self._branch_name(name_or_index)
        await self._call(RenameBranch(name=name, new_name=new_name, **self._by(input_id)))

    async def delete_branch(self, name_or_index: str | int, *, input_id: str | None = None) -> None:
        """Forget a branch's name; its messages stay in the tree."""
        name = await self._branch_name(name_or_index)
        await self._call(DeleteBranch(name=name, **self._by(input_id)))

    async def checkpoint(self, label: str | None = None, *, input_id: str | None = None) -> str:
        """Name the place where the conversation stands; returns the name."""
        answer = await self._call(SetCheckpoint(label=label or "", **self._by(input_id)))
        return str(answer)

    async def rewind(
        self,
        to: str | int | None,
        files: bool = True,
        conversation: bool = True,
        preview: bool = False,
        *,
        overwrite: Sequence[str] = (),
        input_id: str | None = None,
    ) -> RewindPlan:
        """Let files, the conversation or both go back to what they were at a message: its id, its index in `get_history()`, the label
        of a checkpoint, or None for before the first one.

        Each path that the session changed since goes back to what it was, by tools and commands alike, if it still is what the session
        left; all others are named, and those in `overwrite` go back all the same.  `preview` only says what would happen.  What is left
        of the line keeps a name, and `undo_rewind` takes it all back.  A cancel ends the wait; the rewind is carried out all the same.

        Raises:
            SessionBusy: a turn runs.
            UsageError: there is no such message, or `overwrite` names a path that is not in the plan.
        """
        node, checkpoint = await self._place(to)
        command = Rewind(
            to=node,
            checkpoint=checkpoint,
            files=files,
            conversation=conversation,
            preview=preview,
            overwrite=tuple(overwrite),
            input_id=_input_id(input_id),
            client=self._client,
        )
        return msgspec.convert(await self._call(command), RewindPlan)

    async def undo_rewind(
        self, preview: bool = False, *, overwrite: Sequence[str] = (), input_id: str | None = None
    ) -> RewindPlan:
        """Take the last rewind back: its files, if nobody has changed them since, and the place in the conversation.

        Raises:
            SessionBusy: a turn runs.
            UsageError: there is none.
        """
        command = UndoRewind(preview=preview, overwrite=tuple(overwrite), **self._by(input_id))
        return msgspec.convert(await self._call(command), RewindPlan)

    async def _place(self, to: str | int | None) -> tuple[NodeId | None, str]:
        """The node that is meant, and the checkpoint, where it is meant by that."""
        if to is None:
            return None, ""
        ref = (await self._port()).state.tree.refs.get(to) if isinstance(to, str) else None
        if ref is not None and ref.ref == "checkpoint":
            return ref.node, str(to)
        return await self._node(to), ""

    async def revisions(self, node: str) -> list[str]:
        """The texts of a message, oldest first; the last one is in force."""
        port = await self._port()
        return [
            "".join(part.text for part in parts if isinstance(part, Text))
            for parts in await port.revisions(NodeId(node))
        ]

    async def restore_revision(self, node: str, n: int, *, input_id: str | None = None) -> None:
        """Put an earlier text of a message in force again, as a new revision."""
        port = await self._port()
        found = await port.revisions(NodeId(node))
        if not 0 <= n < len(found):
            raise UsageError(f"no revision {n}; the message has {len(found)}")
        await port.call(EditNode(node=NodeId(node), parts=found[n], **self._by(input_id)))

    async def toggle_tool_collapse(self, message_id: str, *, input_id: str | None = None) -> bool:
        """Fold or unfold the tool calls of a message; returns whether they are folded now."""
        node = await self._node(message_id)
        if node is None:
            raise UsageError(f"the message {message_id!r} has no tool calls to fold")
        return not await self._call(ToggleCollapse(node=node, **self._by(input_id)))

    async def toggle_all_tool_collapses(self, *, input_id: str | None = None) -> bool:
        """Unfold everything if anything is folded, else fold everything; returns whether all is folded now."""
        return not await self._call(ToggleCollapse(**self._by(input_id)))

    async def _node(self, given: str | int) -> NodeId | None:
        """The node that a message id or an index in the history means."""
        return node_at((await self._port()).state, given)

    async def _branch_name(self, given: str | int) -> str:
        if isinstance(given, str):
            return given
        known = await self.list_branches()
        if not -len(known) <= given < len(known):
            raise UsageError(f"no branch {given}; there are {len(known)}")
        return known[given].name

    # -- ending

    async def stop(self) -> None:
        """End the session's life in this process; its record stays."""
        await self._host.stop_session(self.id)

    # -- the way

    async def _set(self, name: str, value: Any, input_id: str | None = None) -> None:
        await self._call(ChangeSetting(name=name, value=value, **self._by(input_id)))

    def _by(self, input_id: str | None) -> dict[str, Any]:
        """Who sends a command, and under which id; one that comes again under its id is carried out once."""
        return {"client": self._client, "input_id": _input_id(input_id)}

    async def _port(self) -> Port:
        if self._port_now is None or not self._port_now.is_open:
            port = await self._host.port(self.id)
            if self._client:
                # The session has come back without its clients: who watched before, watches again.
                await port.call(Attach(role=self._role, client=self._client))
            self._port_now = port
        return self._port_now

    async def _call(self, command: Command) -> Any:
        port = await self._port()
        try:
            return await port.call(command)
        except SessionStopped:
            # A session that is unloaded just now has not taken the command, and comes back for it.
            if port.is_open or await port.ended() != UNLOADED:
                raise
        return await (await self._port()).call(command)

    def _options(self, options: dict[str, Any]) -> dict[str, Any]:
        """Options as the log keeps them."""
        kept = {name: value for name, value in options.items() if value is not None}
        for name in kept.keys() & {"model", "plan_model", "edit_model"}:
            kept[name] = self._host.normal_model(kept[name])
        if "tools" in kept:
            kept["tools"] = self._host.lend_tools(self.id, kept["tools"])
        if "schema" in kept:
            kept["schema"] = self._host.shape(kept["schema"]).schema
        unknown = sorted(set(kept) - MESSAGE_OPTIONS)
        if unknown:
            raise UsageError(
                f"no option {unknown[0]!r}; a message takes {', '.join(sorted(MESSAGE_OPTIONS))}"
            )
        return kept

    async def _reply(self, port: Port, accepted: Accepted, *, continued: bool = False) -> Reply:
        tally = TurnTally(self.id, turn_id=accepted.turn_id, entry_id=accepted.entry_id)
        if continued:
            tally.go_on(self._host.now())
        async with port.subscribe(after=accepted.seq, live="status") as events:
            self._refuse_if_stuck(port, port.status, accepted)
            async for event in events:
                if isinstance(event, SessionStatus):
                    self._refuse_if_stuck(port, event.status, accepted)
                    continue
                reply = _take(tally, event)
                if reply is not None:
                    said = tuple(await self.messages())
                    return msgspec.structs.replace(
                        reply, messages=said, text=_whole(reply.text, said)
                    )
                if tally.taken_back:
                    raise UsageError("the queued message was taken back before it was sent")
        raise SessionStopped(self.id, await port.ended())

    def _refuse_if_stuck(self, port: Port, status: Status, accepted: Accepted) -> None:
        """Do not wait for a turn that nobody is working on."""
        if status not in ("interrupted", "error"):
            return
        turn = port.state.turn.open
        if accepted.entry_id or (turn is not None and turn.turn_id == accepted.turn_id):
            raise SessionInterrupted(self.id, port.error)


THINKING_LEVELS = ("off", "low", "medium", "high", "max")
MESSAGE_OPTIONS = frozenset(
    {
        "max_budget_usd",
        "max_tokens",
        "edit_model",
        "max_turns",
        "mode",
        "model",
        "plan_model",
        "retries",
        "schema",
        "thinking",
        "tools",
    }
)
"""What may be set for one message."""


def history(line: Sequence[LineEntry], state: SessionState) -> list[tuple[str, HistoryMessage]]:
    """A line as programs read it: answers, each call's result behind its answer, and the system's notes."""
    notes: dict[NodeId | None, list[tuple[str, HistoryMessage]]] = {}
    for note in state.tree.notes:
        message = HistoryMessage(role="system", content=note.text, is_error=note.level == "error")
        notes.setdefault(note.node, []).append((f"note_{note.seq}", message))
    found = notes.get(None, [])
    for entry in line:
        found += _rows(entry)
        found += notes.get(entry.node.id, [])
    return found


def _shown(node: Node) -> str:
    """What a message says, with pictures and files named."""
    entry = Entry(entry_id=EntryId(""), delivery="steering", parts=node.parts)
    return combine_queue_entries_to_text([entry])


def _rows(entry: LineEntry) -> list[tuple[str, HistoryMessage]]:
    node = entry.node
    rows = [
        (
            str(node.id),
            HistoryMessage(
                role=node.role,
                content=_shown(node),
                tool_calls=tuple(
                    {"id": call.call_uid, "name": call.name, "args": call.args}
                    for call in node.calls
                ),
                is_partial=node.is_partial,
            ),
        )
    ]
    for call in node.calls:
        result = entry.results.get(call.call_uid)
        if result is not None:
            message = HistoryMessage(
                role="tool",
                content=result.text,
                tool_call_id=call.call_uid,
                is_error=result.is_error,
            )
            rows.append((str(call.call_uid), message))
    return rows


async def _until_free(events: Subscription) -> None:
    """Read on until no turn runs, or the session has ended."""
    async for event in events:
        if isinstance(event, SessionStatus) and event.status in ("idle", "interrupted", "error"):
            return


def _take(tally: TurnTally, event: Event) -> Reply | None:
    return tally.take(event) if isinstance(event, FactBase | Unknown) else None


def _split_thinking(name: str) -> tuple[str, str]:
    """`provider:model:thinking` as model and thinking level; the level is empty when none is named."""
    model, _, level = name.rpartition(":")
    return (model, level) if level in THINKING_LEVELS and ":" in model else (name, "")


def _name_in(project: str, path: str) -> str:
    """How the log names a file that somebody wrote as `path`."""
    root = os.path.realpath(project)
    real = os.path.realpath(os.path.join(root, path))
    return os.path.relpath(real, root) if real.startswith(root.rstrip("/") + "/") else real


def _whole(text: str, said: Sequence[HistoryMessage]) -> str:
    """The model's last words in full: events carry only the beginning of very long ones."""
    last = next((each.content for each in reversed(said) if each.role == "assistant"), "")
    return last if last.startswith(text) else text


def _progress(plan: PlanState) -> PlanProgress | None:
    if not plan.plan_id:
        return None
    steps = {index: step.status for index, step in plan.steps.items()}
    return PlanProgress(plan=plan.plan, approved=plan.approved, steps={**steps})


def _input_id(given: str | None) -> InputId | None:
    return InputId(given) if given else None


def _accepted(answer: Any) -> Accepted:
    return msgspec.convert(answer, Accepted)
