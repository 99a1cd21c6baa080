"""`agent`: hand a task to a session of its own.

The call names its child in the append that intends it, so that a crash leaves either both or none.
Called again for the same call, after a crash, the tool finds that child and goes on with it;
nothing is started twice.  A background agent's call ends at once: its end comes to the session as a
message of its own, whenever that is.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from weft.agents.child_run import ChildRun, finished
from weft.agents.host import AgentHost, ChildEnd, ChildRequest, IsolatedPlace
from weft.errors import FinalToolError, UsageError, WeftError
from weft.events import CallOrigin, ChildStarted, Effect, Fact
from weft.ids import SessionId, new_session_id
from weft.messages import ModelName, Text
from weft.permissions import MODES, ToolAction
from weft.project import GENERAL, AgentDefinition
from weft.state import SessionState
from weft.tools import (
    DelegateTool,
    PreparedCall,
    ToolArguments,
    ToolContext,
    ToolOutcome,
    parse,
    schema_of,
)

NAME: Final = "agent"
LONGEST_TITLE: Final = 60

ABOUT_CHILDREN: Final = """\
You work for another agent, which gave you the task below and sees nothing of your work but your \
last message. Do the task and nothing \
else. End with a message that holds what was asked for, complete and by itself: results, files you \
changed, and what you could not do."""


class AgentArguments(ToolArguments, frozen=True, kw_only=True):
    """What `agent` takes."""

    prompt: Annotated[
        str,
        Meta(
            min_length=1,
            description="The task, with everything that is needed to do it: the agent sees nothing "
            "of this conversation.",
        ),
    ] = ""
    description: Annotated[
        str, Meta(max_length=200, description="The task in three to five words, for the user.")
    ] = ""
    agent: Annotated[str, Meta(description="The kind of agent; the system prompt lists them.")] = (
        GENERAL
    )
    background: Annotated[
        bool,
        Meta(
            description="Return at once; you are told when the agent has ended. Only for work you "
            "need not wait for."
        ),
    ] = False
    model: Annotated[
        str, Meta(description="Another model than the agent's own, as provider:model.")
    ] = ""
    keep: Annotated[
        str,
        Meta(
            description="In place of a task: the id of changes that an isolated agent made, to put "
            "them into the project."
        ),
    ] = ""


class AgentTool(DelegateTool):
    """Starts sub-agents of one session."""

    name = NAME
    description = (
        "Hand a task to an agent that works in a conversation of its own and comes back "
        "with one message. For work whose details need not "
        "stay in this conversation: searching widely, trying something out, reviewing. "
        "Several calls in one answer run at the same time."
    )
    schema = schema_of(AgentArguments)
    effect: Effect = "unknown"
    timeout_seconds = math.inf
    """The agent has limits of its own."""

    def __init__(self, host: AgentHost) -> None:
        self._host = host

    async def prepare(self, args: dict[str, Any], context: ToolContext) -> PreparedCall:
        given = parse(AgentArguments, args)
        if given.keep:
            return await self._host.prepare_keep(given.keep, context)
        if not given.prompt:
            raise FinalToolError("`prompt` is missing: the task for the agent")
        definition = self._definition(given.agent)
        # Called again after a crash, the call finds the child that its intent has named.
        child = self._host.state.children.for_call(context.call_uid)
        facts: tuple[Fact, ...] = ()
        if child is None:
            child = self._new_child(context)
            facts = (
                ChildStarted(
                    child=child,
                    call_uid=context.call_uid,
                    node=context.node,
                    name=definition.name,
                    background=given.background or definition.background,
                ),
            )
        wanted = self._wanted(child, given, definition, context)

        async def run() -> ToolOutcome:
            return await self._run(wanted, given.prompt, definition, context)

        return PreparedCall(
            # What the agent does is judged call by call, at the gate of its own session.
            action=ToolAction(
                tool=self.name, kind="other", target=definition.name, has_effect=False
            ),
            run=run,
            preview=f"{definition.name}: {given.prompt}",
            facts=facts,
        )

    # -- what is asked for

    def _definition(self, name: str) -> AgentDefinition:
        known = self._host.definitions()
        if name in known.found:
            return known.found[name]
        why = "".join(f" ({problem})" for problem in known.problems if name in problem)
        raise FinalToolError(f"there is no agent {name!r}{why}; there are {', '.join(known.found)}")

    def _new_child(self, context: ToolContext) -> SessionId:
        host = self._host
        why = host.agent_tree.why_no_agent(
            host.session_id, depth_of(host.state), context.node, context.call_uid
        )
        if why is not None:
            raise FinalToolError(why)
        return new_session_id(host.now())

    def _wanted(
        self,
        child: SessionId,
        given: AgentArguments,
        definition: AgentDefinition,
        context: ToolContext,
    ) -> ChildRequest:
        host = self._host
        return ChildRequest(
            child=child,
            origin=CallOrigin(
                session_id=host.session_id, node=context.node, call_uid=context.call_uid
            ),
            title=given.description or _title(given.prompt),
            model=self._model(given.model, definition),
            tools=definition.choose(host.tools),
            # Never more than the session itself has, whatever the definition asks for.
            permission_mode=min(
                definition.permission_mode or host.mode, host.mode, key=MODES.index
            ),
            depth=depth_of(host.state) + 1,
            system_prompt=definition.prompt or None,
            append_system_prompt=ABOUT_CHILDREN,
            max_turns=definition.max_turns,
            facts=host.inherited(),
        )

    def _model(self, given: str, definition: AgentDefinition) -> ModelName:
        """The named model; without an effort of its own it thinks as hard as the turn that asks."""
        own = self._host.model
        named = given or definition.model
        if not named:
            return own
        try:
            found = self._host.model_named(named)
        except UsageError as error:
            raise FinalToolError(str(error)) from error
        return msgspec.structs.replace(found, effort=found.effort or own.effort)

    # -- running

    async def _run(
        self, wanted: ChildRequest, prompt: str, definition: AgentDefinition, context: ToolContext
    ) -> ToolOutcome:
        host, child = self._host, wanted.child
        about = host.state.children.known.get(child)
        in_background = about is not None and about.background
        # A call that is run again after a crash may find its agent resumed.
        if in_background and host.agent_tree.is_at_work(child):
            return _in_background(child)
        emit = context.emit if not in_background else lambda chunk: None
        try:
            place = await self._placed(wanted, definition, prompt)
        except WeftError as error:
            return self._outcome(child, ChildEnd(reason="halted", detail=str(error)))
        wanted = wanted if place is None else place.wanted
        child_run = ChildRun(
            host, wanted, _text_parts(prompt), outlives_turn=in_background, emit=emit
        )
        if in_background:
            return await self._start_in_background(child_run, wanted, place)
        end, said = await _followed(child_run, place)
        return self._outcome(child, end, said)

    def _outcome(self, child: SessionId, end: ChildEnd, said: str = "") -> ToolOutcome:
        return ToolOutcome(
            text=_end_text(end, said),
            is_error=end.reason != "stop",
            data={"child": child, "reason": end.reason},
            facts=finished(self._host.state, child, end),
        )

    async def _placed(
        self, wanted: ChildRequest, definition: AgentDefinition, prompt: str
    ) -> IsolatedPlace | None:
        """The overlay that an isolated agent works in; none where nothing may be changed anyway.

        Trust comes before everything that reads the repository: git's settings are of a kind with
        hooks, and a definition of the project could have it called without the user's knowing.
        """
        host = self._host
        if definition.isolation != "worktree" or host.mode == "plan":
            return None
        if not await host.is_trusted():
            raise FinalToolError(
                f"the agent {definition.name!r} works isolated, and no agent does in a folder that "
                "the user does not trust; they can say so with /trust in the chat"
            )
        # What it does stays in its overlay, so it need not be asked for.
        free = max(host.mode, "auto", key=MODES.index)
        mode = min(definition.permission_mode or free, free, key=MODES.index)
        isolated = msgspec.structs.replace(wanted, permission_mode=mode)
        return await host.open_isolated(isolated, definition.name, prompt)

    # -- in the background

    async def _start_in_background(
        self, child_run: ChildRun, wanted: ChildRequest, place: IsolatedPlace | None
    ) -> ToolOutcome:
        """Have a background agent at work and return; its task is on its own record by then."""
        child = wanted.child
        try:
            await child_run.begin()
        except WeftError as error:
            if place is not None:
                await place.leave()
            return self._outcome(child, ChildEnd(reason="halted", detail=str(error)))
        self._host.start(lambda: self._see_to_end(child_run, wanted, place), f"agent {child}")
        return _in_background(child)

    async def _see_to_end(
        self, child_run: ChildRun, wanted: ChildRequest, place: IsolatedPlace | None
    ) -> None:
        """Follow a background agent, and put its end on the record of the session."""
        host, child = self._host, wanted.child
        end, changes = await _followed(child_run, place)
        if host.is_closing:
            # Not its end: it was suspended with the program, and the next process goes on with it,
            # in the same overlay.
            return
        text = _end_text(end, changes)

        said = _text_parts(f"[The background agent {child} ({wanted.title}) has ended.]\n{text}")
        # What the user has stopped starts no turn.
        report = msgspec.structs.replace(
            end.report(child), message=said, wake=end.reason != "aborted"
        )
        await host.tell(report)

    def resume(self, child: SessionId) -> None:
        """Go on with a background agent that another process left at work."""
        host = self._host
        host.agent_tree.enter(host.session_id, None, child)
        host.start(lambda: self._continue_child(child), f"agent {child}")

    async def _continue_child(self, child: SessionId) -> None:
        host = self._host
        about = host.state.children.known[child]
        definition = host.definitions().found.get(about.name) or AgentDefinition(name=about.name)
        wanted = ChildRequest(
            child=child,
            origin=CallOrigin(session_id=host.session_id, node=about.node, call_uid=about.call_uid),
            title=about.name,
            model=host.model,
            tools=definition.choose(host.tools),
            permission_mode=host.mode,
            depth=depth_of(host.state) + 1,
        )
        place = None
        # Where its overlay cannot be found any more, it will say so itself.
        with suppress(WeftError):
            place = await self._placed(wanted, definition, "")
        wanted = wanted if place is None else place.wanted
        await self._see_to_end(ChildRun(host, wanted, (), outlives_turn=True), wanted, place)


def depth_of(state: SessionState) -> int:
    """How far below its root a session is."""
    depth = state.settings.get("depth", 0)
    return depth if isinstance(depth, int) else 0


def _text_parts(text: str) -> tuple[Text, ...]:
    return (Text(text=text),)


def _title(prompt: str) -> str:
    words = " ".join(prompt.split())
    return words if len(words) <= LONGEST_TITLE else words[: LONGEST_TITLE - 1] + "…"


async def _followed(child_run: ChildRun, place: IsolatedPlace | None) -> tuple[ChildEnd, str]:
    """See a child to its end; returns that, and what is said of what it changed elsewhere."""
    if place is None:
        return await child_run.run(), ""
    return await place.follow(child_run.run)


def _in_background(child: SessionId) -> ToolOutcome:
    return ToolOutcome(
        text=f"Started in the background as {child}. You will be told when it has ended; "
        "go on meanwhile.",
        data={"child": child},
    )


def _end_text(end: ChildEnd, changes: str) -> str:
    """What the model reads of an agent's end."""
    text = end.text.strip()
    if end.reason == "stop":
        said = text or "(The agent ended without a message.)"
    else:
        why = f": {end.detail}" if end.detail else ""
        said = f"The agent did not finish ({end.reason}{why})."
        said += f" Its last message:\n{text}" if text else ""
    return f"{said}\n\n{changes}" if changes else said
