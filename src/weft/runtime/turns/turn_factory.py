"""Turns for sessions: the model, the tools, the prompt and the limits that the settings name."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from weft.context import estimate, estimate_text, request_digest
from weft.errors import UsageError
from weft.events import (
    Fact,
    NewMessage,
    PrefixFrozen,
    SystemNote,
    TurnStarted,
    TurnWaiting,
    WaitSubject,
)
from weft.ids import CallUid, TurnId
from weft.loop import (
    CallJournal,
    Commit,
    ContextLine,
    ModelEnvironment,
    PermissionGate,
    SessionWork,
    ToolCallEnvironment,
    Turn,
    TurnEnvironment,
    TurnHooks,
    TurnJournal,
    TurnLimits,
    call_started,
    digests_at_opening,
)
from weft.messages import ChatMessage, ModelName
from weft.project.masked_text import masked_in_pieces
from weft.providers import ModelInfo
from weft.request_sign import do_nothing
from weft.runtime.agent_host import SessionAgentHost
from weft.runtime.services import Services
from weft.runtime.turns.session_prompt import SessionPrompt
from weft.runtime.turns.tool_contexts import ToolContexts
from weft.runtime.turns.turn_settings import SUBMIT_NAMES, is_planned, open_options
from weft.session import TurnFactory
from weft.state import SessionState
from weft.thinking_levels import KnownLevels, level_note
from weft.tools import Tool, ToolContext

if TYPE_CHECKING:  # loaded where there are such: they cost start-up time
    from weft.loop import CompactionWork
    from weft.runtime.turns.fallback_models import FallbackModels
    from weft.runtime.workspaces.session_workspace import SessionWorkspace
    from weft.tools import SubmitTool


class SessionTurnFactory(TurnFactory):
    """Makes the turns of one session."""

    def __init__(
        self,
        services: Services,
        host: SessionAgentHost,
        contexts: ToolContexts,
        prompt: SessionPrompt,
        hooks: TurnHooks | None = None,
        reach_rules: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.reach_rules = reach_rules
        """Waits until the rules of the session that this one works for are known."""
        self._services = services
        self._settings = host.settings
        self._host = host
        self._contexts = contexts
        self.hooks = hooks
        """What the next turn asks; None where there are no hooks."""
        self._prompt = prompt
        self._is_planning = False
        """The environment that was made last is one of plan mode."""

    async def prepare(self, state: SessionState, facts: Sequence[Fact] = ()) -> None:
        await self._prompt.load(state, facts)

    def opening(
        self, state: SessionState, started: TurnStarted, facts: Sequence[Fact], line: ContextLine
    ) -> Commit:
        if is_planned(started.options) and started.continued and not self._plans_next(state):
            return Commit(facts=())  # a plan goes on, and no model is asked first
        model = self._settings.model(state, started.options)
        name = model.name
        # Before anything is on record: a model that cannot be had fails the command, and no turn is
        # begun.
        info = self._services.models.resolve(name).info
        rendered = self._prompt.prefix(state, started.options)
        prefix, ratio = estimate_text(len(rendered.data)), state.ledger.ratio(name)
        if started in facts:
            _check_fits(facts, prefix, info, ratio)
        notes = (
            *self._level_notes(model, state, started),
            *(_prefix_notes(prefix * ratio, info, started) if rendered.id != state.prefix else ()),
            *self._prompt.opening_notes(state, facts, rendered.prefix),
        )
        digest = request_digest(
            model=name,
            prefix=rendered.id,
            thinking=model.effort or "default",
            messages=digests_at_opening(line, info, state, (*facts, *notes)),
        )
        now = self._services.clock.now()
        call = call_started(started.turn_id, name, rendered.id, now, digest=digest)
        # A prefix is stored once, by its hash; a turn with the same one only names it.
        if rendered.id == state.prefix:
            return Commit(facts=(*notes, call))
        frozen = PrefixFrozen(prefix=rendered.id, reason="first call" if not state.prefix else "")
        return Commit(facts=(*notes, frozen, call), blobs={rendered.id: rendered.data})

    def _level_notes(
        self, model: ModelName, state: SessionState, started: TurnStarted
    ) -> tuple[Fact, ...]:
        """A note where the model of this one turn lacks the level that is asked for.

        Of the session's own model and level it was said when they were set.
        """
        settings = state.settings
        if (model.name, model.effort) == (settings.model, settings.thinking):
            return ()
        said = level_note(
            model.name, model.effort or "default", self._services.models.levels(model.name)
        )
        return (SystemNote(text=said, node=started.node),) if said else ()

    def check(self, state: SessionState, options: Mapping[str, Any]) -> None:
        self._settings.check(state, options)

    def max_seconds(self, state: SessionState) -> float | None:
        return self._settings.limits_now(state).max_seconds

    def levels(self, state: SessionState, model: str) -> KnownLevels:
        return self._settings.levels(state, model)

    def turn(
        self, state: SessionState, turn_id: TurnId, journal: TurnJournal, gate: PermissionGate
    ) -> SessionWork:
        options = open_options(state)
        environment = self._turn_environment(state, options, journal, gate)
        self._host.wake_background(state)
        if (servers := self._settings.mcp_servers(state)) is not None:
            servers.guard = self._contexts.workspace.read_guard
        if not is_planned(options):
            return Turn(environment, turn_id)
        from weft.agents.architect import ArchitectRun, StepEditor  # as above

        editor = StepEditor(
            model=self._settings.role_model("edit_model", "model.editor", state, options),
            max_turns=self._services.config.get("agents.step_turns"),
            tools=tuple(self._settings.own_tools(state, options)),
        )
        # The planner's own tools change nothing, so its checks need the shell from the session's.
        own = self._settings.own_tools(state, options)
        checks = msgspec.structs.replace(
            environment.calls, tools={name: own[name] for name in ("shell",) if name in own}
        )
        return ArchitectRun(environment, turn_id, self._host, editor, checks)

    def _plans_next(self, state: SessionState) -> bool:
        from weft.agents.plan import next_of  # as above

        # On a copy: the state changes only by facts that are on record.
        after = copy.deepcopy(state.plan)
        after.apply(TurnStarted(turn_id=TurnId(""), continued=True))
        return next_of(after).do == "plan"

    def _turn_environment(
        self,
        state: SessionState,
        options: Mapping[str, Any],
        journal: TurnJournal,
        gate: PermissionGate,
    ) -> TurnEnvironment:
        model = self._settings.model(state, options)
        tools = self._settings.tools_of(state, options)
        limits = self._settings.limits(state, options)
        fallback = self._fallback(options)
        servers = self._settings.mcp_servers(state)
        models = ModelEnvironment(
            journal=journal,
            model=self._services.models.resolve(model.name),
            model_name=model.name,
            prefix=self._prompt.prefix(state, options),
            clock=self._services.clock,
            sleep=self._services.sleep,
            limits=limits,
            thinking=model.effort or "default",
            shared_budget=self._host.shared_budget,
            hooks=self.hooks,
            fallback=fallback,
            request_sent=do_nothing if servers is None else servers.warm_up,
        )
        self._is_planning = self._prompt.is_planning(state)
        return TurnEnvironment(
            models=models,
            calls=self._call_environment(
                journal, gate, tools, limits, lambda uid: self._contexts.in_turn(uid, journal)
            ),
            submit=_submit_in(tools),
            renewed=lambda environment: self._renewed(
                environment, options if fallback is None else fallback.options
            ),
            notes=lambda noted, prefix: self._prompt.notes_since(journal.state, noted, prefix),
        )

    def _fallback(self, options: Mapping[str, Any]) -> FallbackModels | None:
        """The models that answer where the turn's own cannot be reached; a plan has only its
        planner's.
        """
        names = self._services.config.get("model.fallback")
        if not names or is_planned(options):
            return None
        from weft.runtime.turns.fallback_models import FallbackModels  # only where some are set

        return FallbackModels(options, names, self._services.models)

    def _call_environment(
        self,
        journal: CallJournal,
        gate: PermissionGate,
        tools: Mapping[str, Tool],
        limits: TurnLimits,
        tool_context: Callable[[CallUid], ToolContext],
    ) -> ToolCallEnvironment:
        # The workspace holds every caller to the boundaries and rules of the session as they are at
        # the moment, not as they were when the turn began.
        self._contexts.workspace.follow(lambda: journal.state, gate)
        decisions = self._contexts.decisions.found
        return ToolCallEnvironment(
            journal=journal,
            tools=tools,
            tool_context=tool_context,
            gate=gate,
            clock=self._services.clock,
            sleep=self._services.sleep,
            limits=limits,
            redact=self._services.redact,
            redact_long=partial(masked_in_pieces, self._services.redact),
            hooks=self.hooks,
            moved_ranges=self._contexts.workspace.beside,
            unreported_changes=self._contexts.files.unreported_changes,
            snapshots=self._contexts.workspace,
            reach_rules=self.reach_rules,
            edit_reports=self._contexts.languages,
            result_note=None if decisions is None else decisions.result_note,
        )

    def _renewed(self, environment: TurnEnvironment, options: Mapping[str, Any]) -> TurnEnvironment:
        """A turn's environment with what was set while it ran.

        What was asked for this one message stays.
        """
        state, models = environment.journal.state, environment.models
        named = self._settings.model(state, options)
        thinking, limits = named.effort or "default", self._settings.limits(state, options)
        is_planning = self._prompt.is_planning(state)
        set_now = (named.name, thinking, limits, is_planning)
        if set_now == (models.model_name, models.thinking, models.limits, self._is_planning):
            return environment
        replace = msgspec.structs.replace
        models = replace(models, thinking=thinking, limits=limits)
        calls = replace(environment.calls, limits=limits)
        if (named.name, is_planning) == (models.model_name, self._is_planning):
            return replace(environment, models=models, calls=calls)
        model = self._services.models.resolve(named.name)
        tools = self._settings.tools_of(state, options)
        prefix = self._prompt.prefix(state, options)
        self._is_planning = is_planning
        return replace(
            environment,
            models=replace(models, model=model, model_name=named.name, prefix=prefix),
            calls=replace(calls, tools=tools),
            submit=_submit_in(tools),
        )

    # -- outside of turns

    def followed(self, state: Callable[[], SessionState], gate: PermissionGate) -> SessionWorkspace:
        """The session's workspace, held to its boundaries and rules as they are at the moment."""
        self._contexts.workspace.follow(state, gate)
        return self._contexts.workspace

    def command_environment(
        self, journal: CallJournal, gate: PermissionGate, tools: Mapping[str, Tool]
    ) -> ToolCallEnvironment:
        """What a tool call passes that no turn makes: the workspace, hooks and limits of
        the turns.
        """

        def context(call_uid: CallUid) -> ToolContext:
            return self._contexts.outside_turn(call_uid, journal, gate)

        limits = self._settings.limits(journal.state, {})
        return self._call_environment(journal, gate, tools, limits, context)

    async def waited_for(
        self, on: WaitSubject, until: float | None, journal: TurnJournal, gate: PermissionGate
    ) -> TurnWaiting:
        from weft.runtime.turns.program_waits import waited_for  # programs wait seldom

        context = self._contexts.in_turn(CallUid("wait"), journal)
        self._contexts.workspace.follow(lambda: journal.state, gate)
        now = self._services.clock.now()
        return await waited_for(on, until, context, gate, journal.state, now)

    def goal_check(
        self, state: SessionState, journal: TurnJournal, gate: PermissionGate
    ) -> SessionWork:
        from weft.runtime.turns.goal_checks import goal_check  # few sessions have a goal

        own = self._settings.own_tools(state, {})
        shell = {"shell": own["shell"]} if "shell" in own else {}
        models = self._turn_environment(state, {}, journal, gate).models
        return goal_check(
            journal,
            gate,
            lambda checked: self.command_environment(journal, checked, shell),
            models,
            self._services.models,
        )

    async def is_sandboxed(self) -> bool:
        return await self._contexts.workspace.runner.is_sandboxed()

    def compaction(
        self, state: SessionState, focus: str, journal: TurnJournal, gate: PermissionGate
    ) -> CompactionWork:
        from weft.loop import CompactionWork  # few sessions are compacted

        return CompactionWork(self._turn_environment(state, {}, journal, gate).models, focus)


def _check_fits(facts: Sequence[Fact], prefix: int, info: ModelInfo, ratio: float) -> None:
    """Refuse a message that no compaction could make room for; nothing of it is on record.

    Raises:
        UsageError: it is longer than all that the model can take.
    """
    said = [fact.node.parts for fact in facts if isinstance(fact, NewMessage)]
    tokens = estimate(ChatMessage(role="user", parts=parts) for parts in said)
    window = int(info.context_window / ratio)
    left = window - prefix
    # Only what is sure not to fit: an estimate may be too high by a quarter. Where the prefix alone
    # would not fit the message is not to blame, and the vendor decides.
    if left > 0 and prefix + tokens > window * 1.25:
        raise UsageError(
            f"the message is too long for {info.name}: about {round(tokens * ratio):,} tokens, "
            f"with room for {round(left * ratio):,}; send less of it, or name files without the "
            "@, and the model reads the parts that it needs"
        )


def _prefix_notes(tokens: float, info: ModelInfo, started: TurnStarted) -> tuple[Fact, ...]:
    """A note where a new prefix alone is more than a model takes: some servers cut what comes first
    without a word.
    """
    if tokens <= info.context_window:
        return ()
    said = (
        f"the system prompt and the tools alone take about {round(tokens):,} tokens, and the "
        f"window of {info.name} has {info.context_window:,}: take a model with a larger "
        "window, or fewer tools"
    )
    return (SystemNote(text=said, level="warning", node=started.node),)


def _submit_in(tools: Mapping[str, Tool]) -> SubmitTool | None:
    """The tool that takes the result, where there is one."""
    named = [tools[name] for name in SUBMIT_NAMES if name in tools]
    if not named:
        return None
    from weft.tools import SubmitTool  # as above

    # A program may have brought a tool of that name.
    return next((tool for tool in named if isinstance(tool, SubmitTool)), None)
