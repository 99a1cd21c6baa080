"""Turn settings: the model, the tools and the limits that options, session and config name.

A message's own options come first, then what the session has set, then the configuration.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from weft.context import CHARACTERS_PER_TOKEN, zone_budget
from weft.errors import UsageError, WeftError
from weft.loop import TurnLimits
from weft.messages import ModelName
from weft.runtime.services import Services
from weft.runtime.tool_table import (
    MADE_WHERE_NEEDED,
    NAVIGATION,
    WEB,
    is_mcp_name,
    named_tools,
)
from weft.runtime.turns.output_types import OutputTypes
from weft.runtime.turns.prompt_files import PromptFiles
from weft.state import SessionState
from weft.thinking_levels import THINKING_LEVELS, KnownLevels, ThinkingLevel, thinking_level
from weft.tools import COMPANIONS, Tool, navigation_tools

if TYPE_CHECKING:  # loaded with the first structured result, or server: it costs start-up time
    from weft.runtime.mcp.session_servers import SessionServers
    from weft.tools import SubmitTool

SUBMIT_NAMES: Final = ("submit", "submit_result")
"""What the tool is called that takes a structured result."""

_LIMITS: Final = frozenset(TurnLimits.__struct_fields__)


class TurnSettings:
    """What the turns of one session work with."""

    def __init__(
        self,
        services: Services,
        *,
        files: PromptFiles,
        tools: Mapping[str, Tool],
        lent: Mapping[str, Tool],
        output_types: OutputTypes,
    ) -> None:
        """`lent` are tools that only messages that name them have."""
        self._config = services.config
        self._has_servers = services.workspaces.has_servers
        self._mcp = services.mcp
        self._mcp_servers: SessionServers | None = None
        self._models = services.models
        self._files = files
        self._tools = tools
        self._lent = lent
        self._output_types = output_types
        self._shown: tuple[tuple[Any, ...], int] | None = None
        """How much of a result is shown, and by what that was found."""
        self._limits: tuple[tuple[Any, ...], TurnLimits] | None = None
        """The limits that were found last, and by what."""
        self._named: tuple[tuple[int, object, ThinkingLevel], ModelName] | None = None
        """The same of the model."""

    # -- models and tools

    def model_name(self, state: SessionState, options: Mapping[str, Any]) -> str:
        """The model of a turn: its own option, the session's, or the configured default.

        The planner's, where a plan is made.
        """
        return self.model(state, options).name

    def model(self, state: SessionState, options: Mapping[str, Any]) -> ModelName:
        """The model of a turn, and the effort with which it thinks."""
        if is_planned(options):
            return self.role_model("plan_model", "model.architect", state, options)
        name = options.get("model") or state.settings.model or self._models.default()
        effort = thinking_level(options.get("thinking")) or state.settings.thinking
        # Kept, as the limits are.
        asked = (self._config.revision, name, effort)
        if self._named is None or self._named[0] != asked:
            named = msgspec.structs.replace(self._models.named(str(name)), effort=effort)
            self._named = (asked, named)
        return self._named[1]

    def role_model(
        self, setting: str, key: str, state: SessionState, options: Mapping[str, Any]
    ) -> ModelName:
        """The model of the planner or of the editor, as message, session or config name it.

        Where none of them does, it is the session's own.  Without an effort of its own it thinks as
        hard as the session.
        """
        given = options.get(setting) or state.settings.get(setting) or self._config.get(key)
        own = self.model(state, {**options, "mode": "normal"})
        if not given:
            return own
        named = self._models.named(str(given))
        return msgspec.structs.replace(named, effort=named.effort or own.effort)

    def tools_of(self, state: SessionState, options: Mapping[str, Any]) -> dict[str, Tool]:
        if not self.can_call_tools(state, options):
            return {}
        table = self.own_tools(state, options)
        # The planner must not be able to change anything before its plan is approved.
        if is_planned(options):
            pure = {name: tool for name, tool in table.items() if tool.effect == "pure"}
            # Its plan is put down by itself, when it is approved.
            unused = ("wait_for", "decision_log", "decision_update")
            table = {name: tool for name, tool in pure.items() if name not in unused}
        # Its companions read and stop background commands, which only the shell starts.
        if "shell" not in table:
            table = {name: tool for name, tool in table.items() if name not in COMPANIONS}
        if (submit := self._submit_tool(options)) is not None:
            table[submit.name] = submit
        return table

    def own_tools(self, state: SessionState, options: Mapping[str, Any]) -> dict[str, Tool]:
        wanted = options.get("tools", state.settings.get("tools", "all"))
        if wanted == "all":
            table = dict(self._tools)
        else:
            made_here = (*MADE_WHERE_NEEDED, *filter(is_mcp_name, wanted))
            plain = [name for name in wanted if name not in made_here]
            table = named_tools(plain, {**self._tools, **self._lent})
            # How some models edit: offered with what it stands in for.
            if "edit" in table and "apply_patch" in self._tools:
                table.setdefault("apply_patch", self._tools["apply_patch"])
            if "shell" in table:
                table |= {name: self._tools[name] for name in COMPANIONS if name in self._tools}
        skills = self._files.skills(state)
        if (wanted == "all" or "skill" in wanted) and skills.found:
            from weft.project.skill_tool import SkillTool  # only where there are skills

            table["skill"] = SkillTool(skills)
        if (wanted == "all" or not NAVIGATION.isdisjoint(wanted)) and self._has_servers():
            table |= {
                name: tool
                for name, tool in navigation_tools().items()
                if wanted == "all" or name in wanted
            }
        table |= self._web_tools(wanted)
        if wanted == "all" or any(map(is_mcp_name, wanted)):
            servers = self.mcp_servers(state)
            if servers is not None:
                # What it has of its own is never shadowed.
                found = servers.tools(wanted, self.window(state, options))
                table |= {name: tool for name, tool in found.items() if name not in table}
        return table

    def _web_tools(self, wanted: str | Collection[str]) -> dict[str, Tool]:
        """Those that reach the web: what describes them goes with no request of a user who has
        not asked for it."""
        if wanted == "all":
            named = WEB if self._config.get("web.tools") else frozenset[str]()
        else:
            named = WEB.intersection(wanted)
        if not named:
            return {}
        from weft.tools.builtin.registry import web_tools  # as above

        return {name: tool for name, tool in web_tools().items() if name in named}

    def mcp_servers(self, state: SessionState) -> SessionServers | None:
        """The MCP servers of the session; None where it has none."""
        # They work on the project, and a candidate of a fan-out must not.
        path = state.about.project_path
        if self._mcp_servers is None and path and not state.settings.get("place"):
            project = self._mcp.of(path)
            if project is not None:
                from weft.runtime.mcp.session_servers import SessionServers  # only where some are

                self._mcp_servers = SessionServers(project)
        return self._mcp_servers

    def can_call_tools(self, state: SessionState, options: Mapping[str, Any]) -> bool:
        return self._models.resolve(self.model_name(state, options)).info.calls_tools

    def window(self, state: SessionState, options: Mapping[str, Any]) -> int:
        """How many tokens the model of a turn can take in."""
        return self._models.resolve(self.model_name(state, options)).info.context_window

    def edits_by_patch(self, state: SessionState, options: Mapping[str, Any]) -> bool:
        """Whether the model of a turn is given `apply_patch` instead of exact replacements."""
        return self._models.resolve(self.model_name(state, options)).info.edits_by_patch

    def _submit_tool(self, options: Mapping[str, Any]) -> SubmitTool | None:
        """The tool that takes the result, where the message asks for a structured one."""
        # A program may have brought a tool of that name.
        usual, other = SUBMIT_NAMES
        name = usual if usual not in self._tools else other
        if is_planned(options):
            from weft.agents.submit_plan import SubmitPlan  # only there: it costs start-up time

            return SubmitPlan(name)
        if "schema" not in options:
            return None
        from weft.tools import SubmitTool  # as above

        return SubmitTool(self._output_types.of(options["schema"]), name)

    # -- what agents ask

    def tool_names(self, state: SessionState) -> list[str]:
        """The tools of the turn that runs, as its agents may have them."""
        return list(self.own_tools(state, open_options(state)))

    def model_now(self, state: SessionState) -> ModelName:
        """The model of the turn that runs, and the effort with which it thinks."""
        # Agents work as the session itself would, not as the planner of an architect's turn.
        return self.model(state, {**open_options(state), "mode": "normal"})

    def limits_now(self, state: SessionState) -> TurnLimits:
        """The limits of the turn that runs, or of the session."""
        return self.limits(state, open_options(state))

    def check(self, state: SessionState, options: Mapping[str, Any]) -> None:
        if not isinstance(options, Mapping):
            raise UsageError(f"a budget has max_budget_usd and max_tokens, not {options!r}")
        if "model" in options:
            self._models.check(self.model_name(state, options))
        if "tools" in options:
            self.tools_of(state, options)
        if options.get("thinking", "default") not in THINKING_LEVELS:
            known = ", ".join(THINKING_LEVELS)
            raise UsageError(f"no thinking level {options['thinking']!r}; there are {known}")
        self.limits(state, options)
        if is_planned(options) and "schema" in options:
            raise UsageError("in architect mode the result is the plan; leave out the schema")

    def levels(self, state: SessionState, model: str) -> KnownLevels:
        return self._models.levels(self.model_name(state, {"model": model}))

    def limits(self, state: SessionState, options: Mapping[str, Any]) -> TurnLimits:
        """How long a turn may work, and what it may use.

        Raises:
            UsageError: something that is set can be no limit.
        """
        # Kept: every round of a turn asks three times, and hardly ever has anything been set.
        values = state.settings.values
        if self._limits is not None and self._limits[0] == (self._config.revision, options, values):
            return self._limits[1]
        found = self._limits_of(state, options)
        # A copy: the values of a session are changed in place.
        self._limits = ((self._config.revision, options, dict(values)), found)
        return found

    def _limits_of(self, state: SessionState, options: Mapping[str, Any]) -> TurnLimits:
        # Later ones win: config, session, budget of the session, then the options of this message.
        given = {
            "result_characters": self._result_characters(state, options),
            "max_turns": self._limit("max_turns", state),
            "max_seconds": self._limit("max_seconds", state) or None,
            "max_tool_calls": self._limit("max_tool_calls", state) or None,
            "ask_seconds": self._config.get("permissions.ask_timeout") or None,
            "soft_share": self._config.get("compaction.soft"),
            "hard_share": self._config.get("compaction.hard"),
            "summary_seconds": self._config.get("compaction.timeout"),
            **(state.settings.get("budget") or {}),
            **{key: options[key] for key in options if key in _LIMITS},
        }
        try:
            return msgspec.convert(given, TurnLimits)
        except msgspec.ValidationError as error:
            raise UsageError(f"this cannot be a limit: {error}") from error

    def _limit(self, name: str, state: SessionState) -> Any:
        return state.settings.get(name, self._config.get(f"session.{name}"))

    def _result_characters(self, state: SessionState, options: Mapping[str, Any]) -> int:
        """What the model sees of one result: in a small window, one must leave room for others."""
        if is_planned(options):
            return self._characters_for(state, options)
        # Kept: it is asked for before every model call, and to find a model takes ten times as long
        # as all the other limits.
        key = (options.get("model"), state.settings.model, self._config.get("context.results"))
        if self._shown is None or self._shown[0] != key:
            self._shown = (key, self._characters_for(state, options))
        return self._shown[1]

    def _characters_for(self, state: SessionState, options: Mapping[str, Any]) -> int:
        try:
            window = self._models.resolve(self.model_name(state, options)).info.context_window
        except WeftError:  # its key is gone; the call itself will say so
            window = 0
        tokens = zone_budget("results", self._config.get("context.results"), window)
        return max(1, tokens) * CHARACTERS_PER_TOKEN


def open_options(state: SessionState) -> Mapping[str, Any]:
    """The options of the open turn."""
    return state.turn.open.options if state.turn.open is not None else {}


def is_planned(options: Mapping[str, Any]) -> bool:
    """True for a turn in architect mode."""
    return options.get("mode") == "architect"
