"""Conversation with a session: messages, queues, turns, permission requests, plans, background
work.

Section *Talking* of the API.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Unpack

import anyio
import msgspec

from weft.api.handle import SessionBase, input_id_of, resumed
from weft.api.options import MessageOptions
from weft.api.reports import BackgroundWork, child_info
from weft.api.results import Reply
from weft.api.turn_waiter import reply_to, send_abort
from weft.errors import SessionInterrupted, SessionStopped, UsageError, WeftError
from weft.events import PermissionAction, Status, Todo
from weft.evidence import may_claim
from weft.ids import EntryId, NodeId, RequestId, SessionId, client_id, new_id
from weft.messages import Content, Image, Part, as_parts
from weft.runtime.session_host import SessionHost
from weft.session import (
    AbortReceipt,
    AbortTurn,
    Accepted,
    AddNote,
    AnswerQuestion,
    AttachClient,
    ContinueTurn,
    DecidePlan,
    DequeueSteering,
    DetachClient,
    EditPlan,
    EditQueued,
    ExcludeNode,
    MarkNode,
    RecallQueues,
    RemoveQueued,
    ReorderQueue,
    RespondToPermission,
    SendPrompt,
    SessionPort,
    StopAfterStep,
    StopBackground,
)
from weft.state import BackgroundCommand, QueueEntry, combine_queue_entries_to_text
from weft.view.snapshot import ChildInfo

if TYPE_CHECKING:  # loaded with the first look at the agents: it costs start-up time
    from weft.api.evidence.exclusions import MessageExclusion
    from weft.project.agent_definitions import AgentDefinition


OWNER_ENDS_SECONDS = 5.0
"""How long an owner whose turn was interrupted may take until it is gone; otherwise it lives on."""
KILL_SECONDS = 15.0
"""How long the end of a command that is killed is waited for."""


async def _accepted(port: SessionPort, command: SendPrompt | ContinueTurn) -> Accepted:
    return await port.call(command)


async def _ends(port: SessionPort) -> bool:
    """Whether the owner of a session gives it up within a while."""
    with anyio.move_on_after(OWNER_ENDS_SECONDS):
        await port.ended()
    return not port.is_open


class ConversationCalls(SessionBase):
    """What is said to a session, and answered."""

    async def send_message(
        self,
        content: Content,
        *,
        queue: bool = True,
        input_id: str | None = None,
        **options: Unpack[MessageOptions],
    ) -> Reply:
        """Send a message and wait for the end of its turn.  `options` (model, tools, max_turns,
        schema, …) hold for this message.

        `schema` (a JSON Schema or a type) asks for a structured result: `Reply.deliverable`,
        checked, with at most two repairs.  A busy session queues it as a follow-up.  A cancel ends
        the wait, not the turn.

        Raises:
            SessionBusy: a turn runs and `queue` is False.
        """
        command = SendPrompt(
            parts=await _fitted(content, self._host),
            when_busy="follow_up" if queue else "refuse",
            options=self._options(options),
            waits=True,
            input_id=input_id_of(input_id),
            client=self._client,
        )
        return self._typed(await self._reply(command), options.get("schema"))

    async def _reply(
        self, command: SendPrompt | ContinueTurn, continued_at: float | None = None
    ) -> Reply:
        """Have a command carried out that starts a turn, and wait for the turn's end, also when the
        process that has the session is gone before that.

        Raises:
            SessionInterrupted: it was accepted, and no process works on it.
        """
        # The port first: only it shows whether the session is another process's.
        await self._port()
        async with self._host.waiting(self.id):
            return await self._reply_of_any(command, continued_at)

    async def _reply_of_any(
        self, command: SendPrompt | ContinueTurn, continued_at: float | None
    ) -> Reply:
        was_accepted = False
        while True:
            try:
                carried = await self._carry(command, _accepted)
            except WeftError as error:
                if not was_accepted:
                    raise
                raise SessionInterrupted(self.id, str(error)) from error
            port, command = carried.port, carried.command
            try:
                return await self._with_receipts(
                    await reply_to(port, carried.answer, continued_at), port
                )
            except (SessionStopped, SessionInterrupted):
                # The turns of an owner that closes are interrupted before it is gone.
                if port.lives_here or not await _ends(port):
                    raise
            # Its owner is gone.  The same message under the same id is accepted once; the next
            # owner, which may be this process, goes on with it.
            command, was_accepted = resumed(command), True

    async def _with_receipts(self, reply: Reply, port: SessionPort) -> Reply:
        if not may_claim(reply.text):
            return reply
        from weft.api.evidence import reply_receipts  # few answers claim anything

        return msgspec.structs.replace(reply, receipts=await reply_receipts(self, port))

    def _typed(self, reply: Reply, wanted: Any) -> Reply:
        """The reply with its result in the type that was asked for."""
        if wanted is None or reply.finish_reason != "submitted":
            return reply
        # Checked once before, in the session; here it becomes an object of the caller's own type,
        # which the log cannot hold.
        value = self._host.output_schema(wanted).check(reply.deliverable)
        return msgspec.structs.replace(reply, deliverable=value)

    async def send_prompt(
        self, content: Content, *, input_id: str | None = None, **options: Unpack[MessageOptions]
    ) -> Accepted:
        """Start a turn, or steer the one that runs; returns as soon as the prompt is durable."""
        return await self._say(content, "steering", input_id, options)

    async def queue_steering(self, content: Content, *, input_id: str | None = None) -> Accepted:
        """Queue a message for the model's next call; idle, the same as `send_prompt`."""
        return await self._say(content, "steering", input_id, {})

    async def queue_follow_up(
        self, content: Content, *, input_id: str | None = None, **options: Unpack[MessageOptions]
    ) -> Accepted:
        """Queue a message that is sent when the turn ends; idle, the same as `send_prompt`."""
        return await self._say(content, "follow_up", input_id, options)

    async def _say(
        self,
        content: Content,
        when_busy: Literal["steering", "follow_up"],
        input_id: str | None,
        options: MessageOptions,
    ) -> Accepted:
        return await self._call(
            SendPrompt(
                parts=await _fitted(content, self._host),
                when_busy=when_busy,
                options=self._options(options),
                input_id=input_id_of(input_id),
                client=self._client,
            )
        )

    async def get_queued_messages(self) -> tuple[tuple[QueueEntry, ...], tuple[QueueEntry, ...]]:
        """Both queues (steering, follow-up), only to look at."""
        port = await self._port()
        queue = port.state.queue
        steering, follow_up = queue.waiting("steering"), queue.waiting("follow_up")
        return await port.in_full(steering), await port.in_full(follow_up)

    async def recall_queues(
        self, *, input_id: str | None = None
    ) -> tuple[tuple[QueueEntry, ...], tuple[QueueEntry, ...]]:
        """Both queues, emptied."""
        queued = await self._call(RecallQueues(**self._by(input_id)))
        return queued.steering, queued.follow_up

    async def clear_queues(self, *, input_id: str | None = None) -> None:
        """Empty both queues."""
        await self.recall_queues(input_id=input_id)

    async def dequeue_steering(self, *, input_id: str | None = None) -> tuple[QueueEntry, ...]:
        """Take back all steering messages that wait."""
        return await self._call(DequeueSteering(**self._by(input_id)))

    @staticmethod
    def combine_queue_entries_to_text(entries: Sequence[QueueEntry]) -> str:
        """One string for showing entries or putting them back into an input box."""
        return combine_queue_entries_to_text(entries)

    async def edit_queued(
        self, entry_id: str, content: Content, *, input_id: str | None = None
    ) -> None:
        """Change what a queued message says."""
        parts = await _fitted(content, self._host)
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
        command = AbortTurn(reason=reason, **self._by(input_id))
        return (await self._carry(command, send_abort)).answer

    async def stop_after_step(self, is_wanted: bool = True, *, input_id: str | None = None) -> bool:
        """Let the turn that runs end after its present step: an answer and its tool calls, or a
        step of a plan.  `continue_turn` goes on from there.  False takes it back.

        Returns whether there is a turn that will.
        """
        return await self._call(StopAfterStep(is_wanted=is_wanted, **self._by(input_id)))

    async def continue_turn(
        self, *, input_id: str | None = None, **options: Unpack[MessageOptions]
    ) -> Accepted:
        """Continue from exactly what is stored, after an interruption, an abort or a limit."""
        return await self._call(ContinueTurn(options=self._options(options), **self._by(input_id)))

    async def continue_and_wait(
        self, *, input_id: str | None = None, **options: Unpack[MessageOptions]
    ) -> Reply:
        """`continue_turn`, and wait for the turn's end."""
        command = ContinueTurn(options=self._options(options), **self._by(input_id))
        return await self._reply(command, self._host.now())

    async def attach(self, role: Literal["viewer", "driver"] = "viewer", name: str = "") -> str:
        """Attach as one of several clients.

        A viewer's changing calls are refused.  Others see the `name`.  Returns the client's id,
        which ends with the name.
        """
        client = self._client or client_id(name, new_id("cli", self._host.now()))
        # An owner of an earlier version does not say who drives.
        drives: str | None = await self._call(AttachClient(role=role, client=client))
        self.driver = drives or ""
        self._client, self._role = client, role
        return client

    async def detach(self) -> None:
        """Detach this client; without one, nothing happens."""
        if self._client:
            await self._call(DetachClient(client=self._client))
            self._client = ""

    async def claim_driver(self) -> None:
        """Drive from now on; the driver before becomes a viewer."""
        await self.attach("driver")

    async def approve_plan(self, *, input_id: str | None = None) -> None:
        """Approve the plan that waits; it is carried out.

        Raises:
            NoPendingRequest: no plan waits.
        """
        await self._call(DecidePlan(approved=True, **self._by(input_id)))

    async def edit_plan(self, plan: Any, *, input_id: str | None = None) -> None:
        """Put another plan (a `weft.agents.Plan`, or a map like it) in the place of the one that
        waits; it still waits.

        Raises:
            UsageError: it is no plan.
            NoPendingRequest: no plan waits.
        """
        from weft.agents import as_plan, plain  # only here: it costs start-up time

        await self._call(EditPlan(plan=plain(as_plan(plan)), **self._by(input_id)))

    async def reject_plan(self, reason: str = "", *, input_id: str | None = None) -> None:
        """Reject the plan that waits; the turn ends, and the model will know the reason.

        Raises:
            NoPendingRequest: no plan waits.
        """
        await self._call(DecidePlan(approved=False, reason=reason, **self._by(input_id)))

    async def background_commands(self) -> list[BackgroundWork]:
        """Background agents, and background commands, those that have ended too (the last of them).

        None of it ends with a turn, or by `abort()`; all of it ends with the session.
        """
        agents = [
            BackgroundWork(id=child.id, kind="agent", title=child.title, status=child.status)
            for child in await self.children()
            if child.background and child.reason is None
        ]
        port = await self._port()
        commands = port.state.background.known.items()
        return [*agents, *(self._command(port, name, about) for name, about in commands)]

    def _command(self, port: SessionPort, name: str, about: BackgroundCommand) -> BackgroundWork:
        status: Literal["running", "exited", "interrupted"] = "running"
        if about.end is not None:
            status = "exited"
        # Only the owner knows what runs in its process; of a remote session the log has to be
        # believed.
        elif port.lives_here and not self._host.runs_command(self.id, name):
            status = "interrupted"
        code = None if about.end is None else about.end.exit_code
        output, printed = self._host.command_output(self.id, name)
        return BackgroundWork(
            id=name,
            kind="shell",
            title=about.command,
            status=status,
            exit_code=code,
            output=output,
            printed=printed,
        )

    async def kill_background(self, background_id: str, *, input_id: str | None = None) -> None:
        """Stop a background agent or command, with all that it started; returns when its end is on
        record.

        Raises:
            UsageError: nothing of this id does.
        """
        await self._call(StopBackground(child=background_id, **self._by(input_id)))
        # A command ends in the process that runs it, which `StopBackground` has asked to stop it;
        # an agent is a session of its own, and is stopped as such.
        if background_id in (await self._port()).state.background.known:
            await self._until_over(background_id)
        else:
            await self._host.stop_child(self.id, SessionId(background_id))

    async def _until_over(self, name: str) -> None:
        """Wait, for a while, until the end of a background command is on record."""
        port = await self._port()
        with anyio.move_on_after(KILL_SECONDS):
            # Subscribed before the state is looked at: the end may come in between.
            async with port.subscribe(after=port.state.seq, live="status") as events:
                if name not in port.state.background.running:
                    return
                async for _ in events:
                    if name not in port.state.background.running:
                        return

    async def children(self) -> list[ChildInfo]:
        """The sessions that work, or worked, for this one: sub-agents and steps of plans, oldest
        first.
        """
        port = await self._port()
        # A child with an open turn that is not open here works where its parent is, or nowhere.
        elsewhere: Status = "interrupted" if port.lives_here else "thinking"
        return [
            child_info(
                child, about, await self._host.row(child), running=self._status(child, elsewhere)
            )
            for child, about in port.state.children.known.items()
        ]

    def _status(self, child: SessionId, elsewhere: Status) -> Status:
        port = self._host.running(child)
        return port.status if port is not None else elsewhere

    async def list_agents(self) -> list[AgentDefinition]:
        """The kinds of agents that this session may use, those of the project and of the user."""
        project = (await self._port()).state.about.project_path
        return list((await self._host.agents(project)).found.values())

    async def set_budget(
        self, usd: float | None = None, tokens: int | None = None, *, input_id: str | None = None
    ) -> None:
        """Limit what the session may spend; no limit where None."""
        for limit in (usd, tokens):
            if limit is not None and not isinstance(limit, int | float):
                raise UsageError(f"a budget is a number, not {limit!r}")
            if limit is not None and limit <= 0:
                raise UsageError("a budget must be more than 0")
        budget = {"max_budget_usd": usd, "max_tokens": tokens}
        value = {name: limit for name, limit in budget.items() if limit is not None}
        await self._set("budget", value or None, input_id)

    async def pin(self, message_id: str, *, input_id: str | None = None) -> None:
        """Keep a message in the model's context whatever is compacted."""
        command = MarkNode(node=NodeId(message_id), mark="pin", **self._by(input_id))
        await self._call(command)

    async def unpin(self, message_id: str, *, input_id: str | None = None) -> None:
        """Let a pinned message go with the next compaction; the rules in it are kept, as those of
        every message of the user.
        """
        by = self._by(input_id)
        await self._call(MarkNode(node=NodeId(message_id), mark="pin", value=None, **by))

    async def exclude(self, message_id: str, *, input_id: str | None = None) -> MessageExclusion:
        """Send a message to no model any more, from the next call on; it stays in the history.

        The results of its calls go with it. `include` takes it back, and the requests are as
        before, byte for byte.

        Raises:
            UsageError: there is no such message, or its calls still run.
        """
        from weft.api.evidence.exclusions import exclusion_of  # few messages are excluded

        node = NodeId(message_id)
        await self._call(ExcludeNode(node=node, **self._by(input_id)))
        return await exclusion_of(await self._port(), node)

    async def include(self, message_id: str, *, input_id: str | None = None) -> None:
        """Send a message again that was excluded.

        Raises:
            UsageError: there is no such message.
        """
        by = self._by(input_id)
        await self._call(ExcludeNode(node=NodeId(message_id), is_excluded=False, **by))

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
        """Say something as the system: shown and kept.

        With `to_model`, in the model's context too.
        """
        await self._call(AddNote(text=text, level=level, to_model=to_model, **self._by(input_id)))

    async def respond_to_permission(
        self,
        action: PermissionAction,
        *,
        request_id: str | None = None,
        meta: dict[str, Any] | None = None,
        input_id: str | None = None,
    ) -> None:
        """Answer a request for permission.  `meta` may carry more:

        - `reason`: shown to the model.
        - `save`: what is allowed always is kept as a rule.  It covers exactly what was shown, in
          this project, for every session that is opened from then on.
        - `input`, with `allow_once`: the call runs with this input in the place of the one that was
          shown, if it passes rules, hooks and boundaries as well.
        - `rules`: `PermissionRule`s that hold in this session from now on, as long as the process
          lives; each is read like a rule of the settings, unless it is exact.
        - `interrupt`, with `deny`: the turn ends.

        Raises:
            NoPendingRequest: it is not open (any more); nothing was approved.
            UsageError: several are open and none was named, a rule cannot be kept or would cover
                nothing, or the answer contradicts itself; nothing was approved.
        """
        more = meta or {}
        rules = self._host.registry.session_rules(more.get("rules", ()))
        if action not in ("allow_once", "allow_turn", "allow_always", "deny"):
            raise UsageError(
                f"no answer {action!r}; there are allow_once, allow_turn, allow_always and deny"
            )
        given = more.get("input")
        if given is not None and action != "allow_once":
            raise UsageError(f"a changed input is allowed once, not with {action!r}")
        await self._call(
            RespondToPermission(
                # What was shown is not allowed: one who knows nothing of other inputs must not run
                # it.
                action=action if given is None else "deny",
                request_id=RequestId(request_id) if request_id else None,
                reason=str(more.get("reason", "")),
                save=bool(more.get("save", False)),
                instead=given,
                rules=rules,
                interrupt=bool(more.get("interrupt", False)),
                **self._by(input_id),
            )
        )

    async def answer_question(
        self, request_id: str, answer: str, *, input_id: str | None = None
    ) -> None:
        """Answer what the model asked."""
        await self._call(
            AnswerQuestion(request_id=RequestId(request_id), answer=answer, **self._by(input_id))
        )


async def _fitted(content: Content, host: SessionHost) -> tuple[Part, ...]:
    """The parts of a message: every content that they name there, every picture of them one that
    models take.

    Raises:
        UsageError: a content is named that is not stored, or may not be read.
    """
    parts = as_parts(content)
    if any(getattr(part, "blob", None) is not None for part in parts):
        from weft.runtime.named_contents import with_contents  # few messages name one

        parts = await with_contents(parts, host)
    if not any(isinstance(part, Image) for part in parts):
        return tuple(parts)
    from weft.tools.pictures import fitted_parts  # with the first picture: start-up time

    return await fitted_parts(parts)
