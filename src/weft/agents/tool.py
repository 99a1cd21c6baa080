"""`agent`: hand a task to a session of its own.

The call names its child in the append that intends it, so that a crash leaves either both or none.  Called again for the same call, after a
crash, the tool finds that child and goes on with it; nothing is started twice.  A background agent's call ends at once: its end comes to
the session as a message of its own, whenever that is.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from weft.agents.base import Household, Wanted
from weft.agents.definitions import GENERAL, Definition
from weft.agents.errand import ChildEnd, Errand, finished
from weft.agents.worktree import Worktree, add_worktree, remove_if_unchanged
from weft.errors import FinalToolError, UsageError, WeftError
from weft.events import ChildStarted, Effect, Fact, InputQueued, Origin
from weft.ids import EntryId, SessionId, new_id, new_session_id
from weft.loop import Commit
from weft.messages import Text
from weft.permissions import MODES, Action
from weft.state import SessionState
from weft.tools import Arguments, Delegate, Outcome, Prepared, ToolContext, parse, schema_of

NAME: Final = "agent"
LONGEST_TITLE: Final = 60

ABOUT_CHILDREN: Final = """\
You work for another agent, which gave you the task below and sees nothing of your work but your last message. Do the task and nothing \
else. End with a message that holds what was asked for, complete and by itself: results, files you changed, and what you could not do."""


class AgentArguments(Arguments, frozen=True, kw_only=True):
    """What `agent` takes."""

    prompt: Annotated[
        str,
        Meta(
            min_length=1,
            description="The task, with everything that is needed to do it: the agent sees nothing of this conversation.",
        ),
    ]
    description: Annotated[
        str, Meta(max_length=200, description="The task in three to five words, for the person.")
    ] = ""
    agent: Annotated[str, Meta(description="The kind of agent; the system prompt lists them.")] = (
        GENERAL
    )
    background: Annotated[
        bool,
        Meta(
            description="Return at once; you are told when the agent has ended. Only for work you need not wait for."
        ),
    ] = False
    model: Annotated[
        str, Meta(description="Another model than the agent's own, as provider:model.")
    ] = ""


class AgentTool(Delegate):
    """Starts sub-agents of one session."""

    name = NAME
    description = (
        "Hand a task to an agent that works in a conversation of its own and comes back with one message. For work whose details need not "
        "stay in this conversation: searching widely, trying something out, reviewing. Several calls in one answer run at the same time."
    )
    schema = schema_of(AgentArguments)
    effect: Effect = "unknown"
    timeout_seconds = math.inf
    """The agent has limits of its own."""

    def __init__(self, home: Household) -> None:
        self._home = home

    async def prepare(self, args: dict[str, Any], context: ToolContext) -> Prepared:
        given = parse(AgentArguments, args)
        definition = self._definition(given.agent)
        child = self._home.state.children.for_call(context.call_uid)
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

        async def run() -> Outcome:
            return await self._run(wanted, given.prompt, definition, context)

        return Prepared(
            # What the agent does is judged call by call, at the gate of its own session.
            action=Action(tool=self.name, kind="other", target=definition.name, has_effect=False),
            run=run,
            preview=f"{definition.name}: {given.prompt}",
            facts=facts,
        )

    # -- what is asked for

    def _definition(self, name: str) -> Definition:
        known = self._home.definitions()
        if name in known.found:
            return known.found[name]
        why = "".join(f" ({problem})" for problem in known.problems if name in problem)
        raise FinalToolError(f"there is no agent {name!r}{why}; there are {', '.join(known.found)}")

    def _new_child(self, context: ToolContext) -> SessionId:
        home = self._home
        why = home.family.refuses_place(
            home.session_id, depth_of(home.state), context.node, context.call_uid
        )
        if why is not None:
            raise FinalToolError(why)
        return new_session_id(home.now())

    def _wanted(
        self, child: SessionId, given: AgentArguments, definition: Definition, context: ToolContext
    ) -> Wanted:
        home = self._home
        return Wanted(
            child=child,
            origin=Origin(session_id=home.session_id, node=context.node, call_uid=context.call_uid),
            title=given.description or _title(given.prompt),
            model=self._model(given.model, definition),
            tools=definition.choose(home.tools),
            permission_mode=min(
                definition.permission_mode or home.mode, home.mode, key=MODES.index
            ),
            depth=depth_of(home.state) + 1,
            system_prompt=definition.prompt or None,
            append_system_prompt=ABOUT_CHILDREN,
            max_turns=definition.max_turns,
            facts=home.inherited(),
        )

    def _model(self, given: str, definition: Definition) -> str:
        try:
            return self._home.normal_model(given or definition.model or self._home.model)
        except UsageError as error:
            raise FinalToolError(str(error)) from error

    # -- running

    async def _run(
        self, wanted: Wanted, prompt: str, definition: Definition, context: ToolContext
    ) -> Outcome:
        home, child = self._home, wanted.child
        about = home.state.children.known.get(child)
        if about is not None and about.background:
            home.start(lambda: self.work_beside(wanted, prompt, definition), f"agent {child}")
            return Outcome(
                text=f"Started in the background as {child}. You will be told when it has ended; go on meanwhile.",
                data={"child": child},
            )
        end, place = await self._work(wanted, prompt, definition, context)
        return Outcome(
            text=_told(end, place),
            is_error=end.reason != "stop",
            data={"child": child, "reason": end.reason},
            facts=finished(home.state, child, end),
        )

    async def _work(
        self,
        wanted: Wanted,
        prompt: str,
        definition: Definition,
        context: ToolContext | None = None,
    ) -> tuple[ChildEnd, Worktree | None]:
        home = self._home
        place: Worktree | None = None
        if definition.isolation == "worktree" and home.mode != "plan":
            try:
                project = home.state.about.project_path
                place = await add_worktree(home.runner, project, home.worktrees / wanted.child)
            except WeftError as error:
                return ChildEnd(reason="halted", detail=str(error)), None
            wanted = msgspec.structs.replace(wanted, project_path=place.project)
        errand = Errand(
            home,
            wanted,
            (Text(text=prompt),),
            outlives_turn=context is None,
            emit=context.emit if context is not None else lambda chunk: None,
        )
        end = await errand.run()
        if place is not None and await remove_if_unchanged(home.runner, place):
            place = None
        return end, place

    async def work_beside(self, wanted: Wanted, prompt: str, definition: Definition) -> None:
        """See a background agent to its end, and tell the session."""
        home, child = self._home, wanted.child
        end, place = await self._work(wanted, prompt, definition)
        told = f"[The background agent {child} ({wanted.title}) has ended.]\n{_told(end, place)}"

        def build(state: SessionState) -> Commit:
            facts = finished(state, child, end)
            if not facts:
                return Commit(facts=())
            note = InputQueued(
                entry_id=EntryId(new_id("ent", home.now())),
                delivery="steering",
                parts=(Text(text=told),),
            )
            return Commit(facts=(*facts, note))

        await home.append(build, wake=end.reason != "aborted")

    def resume(self, child: SessionId) -> None:
        """Go on with a background agent that another process left at work."""
        home = self._home
        about = home.state.children.known[child]
        definition = home.definitions().found.get(about.name) or Definition(name=about.name)
        wanted = Wanted(
            child=child,
            origin=Origin(session_id=home.session_id, node=about.node, call_uid=about.call_uid),
            title=about.name,
            model=home.model,
            tools=definition.choose(home.tools),
            permission_mode=home.mode,
            depth=depth_of(home.state) + 1,
        )
        home.start(lambda: self.work_beside(wanted, "", definition), f"agent {child}")


def depth_of(state: SessionState) -> int:
    """How far below its root a session is."""
    depth = state.settings.get("depth", 0)
    return depth if isinstance(depth, int) else 0


def _title(prompt: str) -> str:
    words = " ".join(prompt.split())
    return words if len(words) <= LONGEST_TITLE else words[: LONGEST_TITLE - 1] + "…"


def _told(end: ChildEnd, place: Worktree | None) -> str:
    """What the model reads of an agent's end."""
    text = end.text.strip()
    if end.reason == "stop":
        said = text or "(The agent ended without a word.)"
    else:
        why = f": {end.detail}" if end.detail else ""
        said = f"The agent did not finish ({end.reason}{why})."
        said += f" Its last words:\n{text}" if text else ""
    if place is not None:
        said += f"\n\nIts changes are in a copy of the project, {place.project}; nothing was changed here."
    return said
