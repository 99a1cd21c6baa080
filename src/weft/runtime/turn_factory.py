"""Turns for sessions: the model, the tools, the prompt and the limits that the settings name."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from weft.clock import Clock
from weft.config.models import ModelRegistry
from weft.config.settings import Config
from weft.context import PrefixTool, PromptPrefix, RenderedPrefix, render_prefix
from weft.errors import ToolError, UsageError, WeftError
from weft.events import (
    Fact,
    ModelCallStarted,
    PrefixFrozen,
    SystemNote,
    ToolOutput,
    TurnStarted,
)
from weft.ids import BlobId, CallUid, SessionId, TurnId, new_node_id
from weft.loop import (
    CallJournal,
    Commit,
    CompactionWork,
    PermissionGate,
    RecoveredCall,
    SessionWork,
    ToolCallEnvironment,
    Turn,
    TurnEnvironment,
    TurnHooks,
    TurnJournal,
    TurnLimits,
    touched_facts,
)
from weft.messages import ModelName, Usage
from weft.project.skills import SkillTool
from weft.project.system_prompt import SystemPromptWriter
from weft.redact import Redactor
from weft.runtime.agent_host import SessionAgentHost
from weft.runtime.output_types import OutputTypes
from weft.runtime.session_workspace import SessionWorkspace
from weft.runtime.tool_table import named_tools
from weft.session import FoundFile, TurnFactory
from weft.state import SessionState
from weft.thinking import THINKING_LEVELS, KnownLevels, level_note, thinking_level
from weft.tools import (
    COMPANIONS,
    ChangedFile,
    ReadLog,
    SubmitTool,
    Tool,
    ToolContext,
    ToolOutcome,
)
from weft.workspace import Runner, Workspace

if TYPE_CHECKING:
    from weft.runtime.background_commands import BackgroundShells
    from weft.runtime.sandbox import SandboxFactory


class SessionTurnFactory(TurnFactory):
    """Makes the turns of one session."""

    def __init__(
        self,
        *,
        config: Config,
        models: ModelRegistry,
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]],
        workspace: Workspace,
        runner: Runner,
        confinement: Callable[[], SandboxFactory | None],
        load: Callable[[BlobId], Awaitable[bytes | None]],
        tools: Mapping[str, Tool],
        lent: Mapping[str, Tool],
        prompter: SystemPromptWriter,
        shapes: OutputTypes,
        redact: Redactor,
        usage_of: Callable[[SessionId], Awaitable[Mapping[str, Usage]]],
        home: SessionAgentHost,
        hooks: TurnHooks | None = None,
        unclaimed: Callable[[], tuple[ChangedFile, ...]] = lambda: (),
    ) -> None:
        self._config = config
        self._models = models
        self._clock = clock
        self._sleep = sleep
        self._workspace = workspace
        self._door = SessionWorkspace(workspace, runner, load, confinement)
        self._tools = tools
        self._lent = lent
        """Tools that only messages that name them have."""
        self._prompter = prompter
        self._shapes = shapes
        self._redact = redact
        self._usage_of = usage_of
        self._hooks = hooks
        self._unclaimed = unclaimed
        self._home = home
        home.turns = self
        self._reads: ReadLog | None = None
        self._system: str | None = None
        self._rendered: dict[tuple[str, tuple[str, ...]], RenderedPrefix] = {}

    # -- what the settings name

    def model_name(self, state: SessionState, options: Mapping[str, Any]) -> str:
        """The model of a turn: its own option, the session's, or the configured default; the planner's, where a plan is made."""
        return self._model(state, options).name

    def _model(self, state: SessionState, options: Mapping[str, Any]) -> ModelName:
        """The model of a turn, and the effort with which it thinks."""
        if _is_planned(options):
            return self._role_model("plan_model", "model.architect", state, options)
        name = options.get("model") or state.settings.model or self._models.default()
        effort = thinking_level(options.get("thinking")) or state.settings.thinking
        return self._models.named(str(name))._replace(effort=effort)

    def _role_model(
        self, setting: str, key: str, state: SessionState, options: Mapping[str, Any]
    ) -> ModelName:
        """The model of the planner or of the editor, as message, session or config name it.

        Where none of them does, it is the session's own.  Without an effort of its own it thinks as
        hard as the session.
        """
        given = options.get(setting) or state.settings.get(setting) or self._config.get(key)
        own = self._model(state, {**options, "mode": "normal"})
        if not given:
            return own
        named = self._models.named(str(given))
        return named._replace(effort=named.effort or own.effort)

    def _tools_of(self, state: SessionState, options: Mapping[str, Any]) -> dict[str, Tool]:
        if not self._can_call_tools(state, options):
            return {}
        table = self._own_tools(state, options)
        if _is_planned(options):
            table = {name: tool for name, tool in table.items() if tool.effect == "pure"}
        if "shell" not in table:
            table = {name: tool for name, tool in table.items() if name not in COMPANIONS}
        if (submit := self._submit_tool(options)) is not None:
            table[submit.name] = submit
        return table

    def _own_tools(self, state: SessionState, options: Mapping[str, Any]) -> dict[str, Tool]:
        wanted = options.get("tools", state.settings.get("tools", "all"))
        if wanted == "all":
            table = dict(self._tools)
        else:
            plain = [name for name in wanted if name != "skill"] if "skill" in wanted else wanted
            table = named_tools(plain, {**self._tools, **self._lent})
            if "shell" in table:
                table |= {name: self._tools[name] for name in COMPANIONS if name in self._tools}
        skills = self._prompter.skills(state.about.project_path)
        if (wanted == "all" or "skill" in wanted) and skills.found:
            table["skill"] = SkillTool(skills)
        return table

    def _can_call_tools(self, state: SessionState, options: Mapping[str, Any]) -> bool:
        return self._models.resolve(self.model_name(state, options)).info.calls_tools

    def _submit_tool(self, options: Mapping[str, Any]) -> SubmitTool | None:
        """The tool that takes the result, where the message asks for a structured one."""
        name = "submit" if "submit" not in self._tools else "submit_result"
        if _is_planned(options):
            from weft.agents.submit_plan import SubmitPlan  # only there: it costs start-up time

            return SubmitPlan(name)
        if "schema" not in options:
            return None
        return SubmitTool(self._shapes.of(options["schema"]), name)

    # -- what agents ask

    def tool_names(self, state: SessionState) -> list[str]:
        """The tools of the turn that runs, as its agents may have them."""
        return list(self._own_tools(state, _options(state)))

    def model_now(self, state: SessionState) -> ModelName:
        """The model of the turn that runs, and the effort with which it thinks."""
        return self._model(state, {**_options(state), "mode": "normal"})

    def limits_now(self, state: SessionState) -> TurnLimits:
        """The limits of the turn that runs, or of the session."""
        return self._limits(state, _options(state))

    def prefix(self, state: SessionState, options: Mapping[str, Any]) -> RenderedPrefix:
        """System prompt and tools of a turn, rendered once for each different one."""
        tools = self._tools_of(state, options)
        if self._system is None:
            has_tools = self._can_call_tools(state, options)
            system = self._prompter.system(state, has_tools=has_tools)
            told = self._home.told(state) if "agent" in tools else ""
            self._system = f"{system}\n\n{told}".strip()
        if _is_planned(options):
            from weft.agents.plan import PLANNER  # as above

            return _rendered(f"{self._system}\n\n{PLANNER}", tools)
        if "schema" in options:
            return _rendered(self._system, tools)
        key = (self._system, tuple(tools))
        if key not in self._rendered:
            self._rendered = {key: _rendered(self._system, tools)}
        return self._rendered[key]

    # -- the contract

    def opening(self, state: SessionState, started: TurnStarted) -> Commit:
        if _is_planned(started.options) and started.continued and not self._plans_next(state):
            return Commit(facts=())  # a plan goes on, and no model is asked first
        model = self._model(state, started.options)
        name = model.name
        self._models.resolve(name)
        self._system = None  # instructions may have changed since the last turn
        rendered = self.prefix(state, started.options)
        call = ModelCallStarted(
            turn_id=started.turn_id,
            node=new_node_id(self._clock.now()),
            model=name,
            prefix=rendered.id,
        )
        told = self._told_of_level(model, state, started)
        if rendered.id == state.prefix:
            return Commit(facts=(*told, call))
        frozen = PrefixFrozen(prefix=rendered.id, reason="first call" if not state.prefix else "")
        return Commit(facts=(*told, frozen, call), blobs={rendered.id: rendered.data})

    def _told_of_level(
        self, model: ModelName, state: SessionState, started: TurnStarted
    ) -> tuple[Fact, ...]:
        """A note where the model of this one turn lacks the level that is asked for.

        Of the session's own model and level it was said when they were set.
        """
        settings = state.settings
        if (model.name, model.effort) == (settings.model, settings.thinking):
            return ()
        said = level_note(model.name, model.effort or "default", self._models.levels(model.name))
        return (SystemNote(text=said, node=started.node),) if said else ()

    def check(self, state: SessionState, wishes: Mapping[str, Any]) -> None:
        if not isinstance(wishes, Mapping):
            raise UsageError(f"a budget has max_budget_usd and max_tokens, and is no {wishes!r}")
        if "model" in wishes:
            self._models.check(self.model_name(state, wishes))
        if "tools" in wishes:
            self._tools_of(state, wishes)
        if wishes.get("thinking", "default") not in THINKING_LEVELS:
            known = ", ".join(THINKING_LEVELS)
            raise UsageError(f"no thinking level {wishes['thinking']!r}; there are {known}")
        self._limits(state, wishes)
        if _is_planned(wishes) and "schema" in wishes:
            raise UsageError("in architect mode the result is the plan; leave out the schema")

    def levels(self, state: SessionState, model: str) -> KnownLevels:
        return self._models.levels(self.model_name(state, {"model": model}))

    def turn(
        self, state: SessionState, turn_id: TurnId, journal: TurnJournal, gate: PermissionGate
    ) -> SessionWork:
        options = _options(state)
        environment = self._turn_environment(state, options, journal, gate)
        self._home.wake_background(state)
        if not _is_planned(options):
            return Turn(environment, turn_id)
        from weft.agents.architect import ArchitectRun, StepEditor  # as above

        editor = StepEditor(
            model=self._role_model("edit_model", "model.editor", state, options),
            max_turns=self._config.get("agents.step_turns"),
            tools=tuple(self._own_tools(state, options)),
        )
        # The planner's own tools change nothing, so its checks need the shell from the session's.
        own = self._own_tools(state, options)
        checks = msgspec.structs.replace(
            environment.calls, tools={name: own[name] for name in ("shell",) if name in own}
        )
        return ArchitectRun(environment, turn_id, self._home, editor, checks)

    def _plans_next(self, state: SessionState) -> bool:
        from weft.agents.plan import next_of  # as above

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
        model = self._model(state, options)
        tools = self._tools_of(state, options)
        limits = self._limits(state, options)
        return TurnEnvironment(
            journal=journal,
            calls=self._call_environment(
                journal, gate, tools, limits, lambda uid: self._tool_context(uid, journal)
            ),
            model=self._models.resolve(model.name),
            model_name=model.name,
            prefix=self.prefix(state, options),
            clock=self._clock,
            sleep=self._sleep,
            limits=limits,
            thinking=model.effort or "default",
            submit=_submit_in(tools),
            hooks=self._hooks,
            purse=self._home.family,
            renewed=lambda environment: self._renewed(environment, options),
        )

    def _call_environment(
        self,
        journal: CallJournal,
        gate: PermissionGate,
        tools: Mapping[str, Tool],
        limits: TurnLimits,
        tool_context: Callable[[CallUid], ToolContext],
    ) -> ToolCallEnvironment:
        self._door.follow(lambda: journal.state, gate)
        return ToolCallEnvironment(
            journal=journal,
            tools=tools,
            tool_context=tool_context,
            gate=gate,
            clock=self._clock,
            sleep=self._sleep,
            limits=limits,
            redact=self._redact,
            hooks=self._hooks,
            moved_ranges=self._door.beside,
            unreported_changes=self._unclaimed,
        )

    def _renewed(self, environment: TurnEnvironment, options: Mapping[str, Any]) -> TurnEnvironment:
        """A turn's environment with what was set while it ran; what was asked for this one message stays."""
        state = environment.journal.state
        named = self._model(state, options)
        name, thinking = named.name, named.effort or "default"
        limits = self._limits(state, options)
        if name == environment.model_name:
            if (thinking, limits) == (environment.thinking, environment.limits):
                return environment
            return msgspec.structs.replace(
                environment,
                thinking=thinking,
                limits=limits,
                calls=msgspec.structs.replace(environment.calls, limits=limits),
            )
        model = self._models.resolve(name)
        self._system = None  # what it says depends on what the model can do
        tools = self._tools_of(state, options)
        return msgspec.structs.replace(
            environment,
            model=model,
            model_name=name,
            prefix=self.prefix(state, options),
            calls=msgspec.structs.replace(environment.calls, tools=tools, limits=limits),
            submit=_submit_in(tools),
            thinking=thinking,
            limits=limits,
        )

    def _limits(self, state: SessionState, options: Mapping[str, Any]) -> TurnLimits:
        given = {
            "max_turns": state.settings.get("max_turns", self._config.get("session.max_turns")),
            "ask_seconds": self._config.get("permissions.ask_timeout") or None,
            **(state.settings.get("budget") or {}),
            **{key: options[key] for key in TurnLimits.__struct_fields__ if key in options},
        }
        try:
            return msgspec.convert(given, TurnLimits)
        except msgspec.ValidationError as error:
            raise UsageError(f"this cannot be a limit: {error}") from error

    def _tool_context(self, call_uid: CallUid, journal: TurnJournal) -> ToolContext:
        masked = self._redact.live()
        return ToolContext(
            workspace=self._door.workspace,
            runner=self._door.runner,
            reads=self._read_log(journal.state),
            call_uid=call_uid,
            emit=lambda chunk: journal.signal(
                ToolOutput(call_uid=call_uid, chunk=masked.feed(chunk))
            ),
            todos=journal.state.todos.items,
            background=self._shells,
        )

    def _shells(self) -> BackgroundShells:
        """The session's background commands."""
        if self._home.shells is None:
            from weft.runtime.background_commands import BackgroundShells  # only with the first one

            self._home.shells = BackgroundShells(self._home, self._redact, self.changed_beside)
        return self._home.shells

    # -- commands outside of turns

    def command_environment(
        self, journal: CallJournal, gate: PermissionGate, tools: Mapping[str, Tool]
    ) -> ToolCallEnvironment:
        """What a tool call passes that no turn makes: the workspace, hooks and limits of the turns."""

        def context(call_uid: CallUid) -> ToolContext:
            return ToolContext(
                workspace=self._door.workspace,
                runner=self._door.runner,
                reads=self._read_log(journal.state),
                call_uid=call_uid,
            )

        limits = self._limits(journal.state, {})
        return self._call_environment(journal, gate, tools, limits, context)

    def changed_beside(self, call_uid: CallUid, outcome: ToolOutcome | None) -> Commit:
        """What such a command has changed, for the log; None when it was stopped before it could tell."""
        blobs: dict[BlobId, bytes] = {}
        done = outcome or ToolOutcome(text="")
        facts: list[Fact] = [
            *touched_facts((*self._unclaimed(), *done.touched), call_uid, blobs),
            *(SystemNote(text=text, level="warning") for text in done.notes),
        ]
        beside = self._door.beside()
        return Commit(facts=(*facts, *beside.facts), blobs={**blobs, **beside.blobs})

    def compaction(
        self, state: SessionState, focus: str, journal: TurnJournal, gate: PermissionGate
    ) -> CompactionWork:
        return CompactionWork(self._turn_environment(state, {}, journal, gate), focus)

    def cost(self, model: str, usage: Usage) -> float | None:
        try:
            return self._models.resolve(model).info.cost(usage)
        except WeftError:
            return None

    def _read_log(self, state: SessionState) -> ReadLog:
        """What the model has seen; after a restart, what the log says of it."""
        if self._reads is None:
            self._reads = ReadLog()
            for path, digest in state.reads.seen.items():
                self._reads.saw(path, digest)
        return self._reads

    async def file_hashes(self, paths: Iterable[str]) -> Mapping[str, str]:
        return {path: await self._hash(path) for path in paths}

    async def remains(self, calls: Iterable[CallUid]) -> Mapping[CallUid, RecoveredCall]:
        return await self._door.remains(calls)

    async def find_file(self, path: str) -> FoundFile:
        return await self._door.find_file(path)

    async def children_used(
        self, children: Iterable[SessionId]
    ) -> Mapping[SessionId, Mapping[str, Usage]]:
        return {child: await self._usage_of(child) for child in children}

    async def _hash(self, path: str) -> str:
        try:
            found = await self._workspace.peek(path)
        except ToolError:
            return "unreadable"
        return found.hash if found is not None else ""


def _options(state: SessionState) -> Mapping[str, Any]:
    """The options of the open turn."""
    return state.turn.open.options if state.turn.open is not None else {}


def _submit_in(tools: Mapping[str, Tool]) -> SubmitTool | None:
    """The tool that takes the result, where there is one."""
    return next((tool for tool in tools.values() if isinstance(tool, SubmitTool)), None)


def _is_planned(options: Mapping[str, Any]) -> bool:
    """True for a turn in architect mode."""
    return options.get("mode") == "architect"


def _rendered(system: str, tools: Mapping[str, Tool]) -> RenderedPrefix:
    described = tuple(
        PrefixTool(name=tool.name, description=tool.description, schema=tool.schema)
        for tool in tools.values()
    )
    return render_prefix(PromptPrefix(system=system, tools=described))
