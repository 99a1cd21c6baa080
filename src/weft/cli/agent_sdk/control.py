"""Control requests of the program that drives a session: carried out whole, or refused with a
sentence.

None is passed over, and no part of one: a request that is answered with success while some of it
was ignored lets its sender believe in a guard or a limit that is not there.  What is known to ask
for nothing but more output may be ignored, and is named here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from weft.api.model_settings import begin_with
from weft.api.session import Session
from weft.app import App
from weft.cli.agent_sdk import server_requests
from weft.cli.agent_sdk.hook_channel import HookChannel
from weft.cli.agent_sdk.message_ids import message_id
from weft.cli.agent_sdk.sdk_options import level_of
from weft.cli.agent_sdk.server_requests import ServerRequests, check_configs
from weft.cli.agent_sdk.session_reports import context_usage, initialize_answer
from weft.errors import SessionNotFound, UsageError, WeftError
from weft.hooks.config import HookTable
from weft.project.agent_definitions import AgentDefinition, brought_definition
from weft.protocol.agent_sdk_dialect import ToolDialect
from weft.view import changed_paths

TAKES: Final[Mapping[str, tuple[str, ...]]] = {
    "initialize": (
        *("hooks", "systemPrompt", "appendSystemPrompt", "jsonSchema", "title"),
        *("sdkMcpServers", "sdkMcpServerConfigs", "agents", "skills"),
    ),
    "interrupt": ("cancel_queued",),
    "set_model": ("model",),
    "set_permission_mode": ("mode",),
    "rewind_files": ("user_message_id", "dry_run"),
    "stop_task": ("task_id",),
    "get_context_usage": (),
    "set_max_thinking_tokens": ("max_thinking_tokens",),
    **server_requests.TAKES,
}
"""Every request that there is, and the fields that count."""

IGNORED: Final[Mapping[str, tuple[str, ...]]] = {
    "initialize": (
        "agentProgressSummaries",
        "excludeDynamicSections",
        "forwardNestedSubagentToolCalls",
        "forwardSubagentText",
        "perTaskStopAffordance",
        "promptSuggestions",
        "rapidFollowupPreempt",
        "sdkMcpServerManifests",
        "supportedDialogKinds",
        "systemPromptSnapshot",
    ),
}
"""Fields that restrict nothing and promise nothing: what they ask for is more to be shown, or
sooner."""


class ControlRequests:
    """Carries out what the program on the other side asks for."""

    def __init__(
        self,
        app: App,
        session: Session,
        options: dict[str, Any],
        *,
        hooks: HookTable,
        channel: HookChannel,
        servers: ServerRequests,
        dialect: ToolDialect,
        set_mode: Callable[[str], Awaitable[None]],
        drop_waiting: Callable[[], None],
        named: Callable[[str], str],
    ) -> None:
        """`options` go along with each message; `drop_waiting` forgets the messages that wait for
        their turn; `named` finds ours for an id that the program gave a message."""
        self._app = app
        self._session = session
        self._options = options
        self._hooks = hooks
        self._channel = channel
        self._servers = servers
        self._dialect = dialect
        self._set_mode = set_mode
        self._drop_waiting = drop_waiting
        self._named = named
        self._is_initialized = False
        self.refusal = ""
        """Why `initialize` was refused, as long as no other one was answered well: without it no
        message may be sent."""

    async def carry_out(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Do what is asked; returns the answer.

        Raises:
            WeftError: it is refused, with this sentence; nothing of it has happened.
        """
        session, subtype = self._session, str(request.get("subtype", ""))
        if subtype not in TAKES:
            raise UsageError(f"there is no control request {subtype!r}")
        # `initialize` checks its own fields, so that a refusal is remembered there.
        if subtype != "initialize":
            _check_fields(request)
        if subtype in server_requests.TAKES:
            return await self._servers.carry_out(request)
        match subtype:
            case "initialize":
                return await self._initialize(request)
            case "interrupt":
                # The queue first: the abort lets the next waiting message start.
                if request.get("cancel_queued"):
                    self._drop_waiting()
                await session.abort("interrupted by the program that drives the session")
            case "set_model":
                await session.update_model(_model(request, self._app))
            case "set_permission_mode":
                await self._set_mode(str(request.get("mode", "")))
            case "rewind_files":
                return await self._rewind_files(request)
            case "stop_task":
                await session.kill_background(str(request.get("task_id", "")))
            case "get_context_usage":
                return await context_usage(self._app, session)
            case "set_max_thinking_tokens":
                await session.set_thinking_level(_level(request.get("max_thinking_tokens")))
        return {}

    # -- initialize

    async def _initialize(self, request: Mapping[str, Any]) -> dict[str, Any]:
        if self._is_initialized:
            raise UsageError("initialize was answered already; a session is initialized once")
        try:
            answer = await self._initialized(request)
        except WeftError as error:
            # A program that goes on after a refused `initialize` believes in guards that are not
            # there; until it is answered well, no message is sent.
            self.refusal = str(error)
            raise
        self._is_initialized, self.refusal = True, ""
        return answer

    async def _initialized(self, request: Mapping[str, Any]) -> dict[str, Any]:
        _check_fields(request)
        hooks = await self._handed_over(request.get("hooks"))
        schema = _object(request, "jsonSchema")
        if schema is not None:
            self._app.host.output_schema(schema)  # says what is wrong with it
        begins = {
            "system_prompt": _text(request, "systemPrompt"),
            "append_system_prompt": _text(request, "appendSystemPrompt"),
            "title": _text(request, "title"),
        }
        agents, skills = _agents(request), _skills(request)
        check_configs(request.get("sdkMcpServerConfigs"))
        self._servers.name_own(request.get("sdkMcpServers"))
        # Nothing can be refused from here on.
        self._hooks.add(hooks)
        self._app.host.services.prompter.bring(agents, skills)
        await begin_with(self._session, **begins)
        if schema is not None:
            self._options["schema"] = schema
        answer = await initialize_answer(self._app, self._session, self._dialect)
        # Two promises that the other side waits for before it relies on its hooks.
        applied = {"hooks_applied": True} if request.get("hooks") else {}
        return {**answer, **applied, "hook_on_failure_supported": True}

    async def _handed_over(self, table: Any) -> list[Any]:
        if not table:
            return []
        if not isinstance(table, Mapping):
            raise UsageError("initialize: hooks are an object, from events to lists of matchers")
        try:
            # Hooks are called in the process that owns the session.
            await self._app.host.local_port(self._session.id)
        except SessionNotFound as error:
            raise UsageError(
                "initialize: hooks are not supported here: another process has this session, "
                "and would not call them"
            ) from error
        return self._channel.handed_over(table)

    # -- files

    async def _rewind_files(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Files go back to what they were when a message was said; with `dry_run` nothing
        changes."""
        given = str(request.get("user_message_id", ""))
        plan = await self._session.rewind(
            self._named(given) or await message_id(self._session, given),
            conversation=False,
            preview=bool(request.get("dry_run")),
        )
        return {
            "canRewind": True,
            "filesChanged": changed_paths(plan),
            "conflicts": list(plan.conflicts),
        }


def _check_fields(request: Mapping[str, Any]) -> None:
    """Refuse a request with a field that is set and that we have no use for."""
    subtype = request["subtype"]
    known = {"subtype", *TAKES[subtype], *IGNORED.get(subtype, ())}
    for name, value in request.items():
        # A field that is empty or false asks for nothing, and SDKs may send such fields.
        if value and name not in known:
            raise UsageError(f"{subtype}: {name!r} is not supported here; leave it out")


def _level(tokens: Any) -> str:
    """The thinking level for a number of tokens; None is the model's own."""
    if tokens is None:
        return "default"
    if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 0:
        raise UsageError("set_max_thinking_tokens: max_thinking_tokens is a whole number, or null")
    return level_of(tokens)


def _agents(request: Mapping[str, Any]) -> dict[str, AgentDefinition]:
    given = request.get("agents") or {}
    if not isinstance(given, Mapping):
        raise UsageError("initialize: agents are an object, from names to definitions")
    return {str(name): brought_definition(str(name), each) for name, each in given.items()}


def _skills(request: Mapping[str, Any]) -> list[str] | None:
    given = request.get("skills")
    if given is None:
        return None
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise UsageError("initialize: skills are a list of names")
    return given


def _model(request: Mapping[str, Any], app: App) -> str:
    given = request.get("model")
    return app.host.default_model() if given in (None, "default") else str(given)


def _text(request: Mapping[str, Any], name: str) -> str:
    """A text, which may come in several pieces; empty when there is none."""
    given = request.get(name) or ""
    pieces = [given] if isinstance(given, str) else given
    if not isinstance(pieces, list) or not all(isinstance(each, str) for each in pieces):
        raise UsageError(f"initialize: {name} is a text, or a list of texts")
    return "\n\n".join(each for each in pieces if each.strip())


def _object(request: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    given = request.get(name)
    if given is not None and not isinstance(given, dict):
        raise UsageError(f"initialize: {name} is an object")
    return given
