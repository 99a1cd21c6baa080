"""Session start: what a caller asks for, checked, before the runtime makes or finds the session.

Everything that can be wrong with a request is found before anything happens: a session that is on
record but cannot work would have to be deleted by hand.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

import msgspec

from weft.api.options import SessionDefaults, StartOptions, ToolSelection, refuse_unknown
from weft.config.paths import absolute
from weft.errors import UsageError
from weft.events import CallOrigin, Fact, SessionCreated, SystemNote
from weft.ids import SessionId, new_session_id
from weft.messages import ModelName, clean_text, clean_value
from weft.permissions import MODES
from weft.providers import Model
from weft.runtime.session_host import CheckedStart, SessionHost
from weft.runtime.tool_table import tool_table
from weft.session import SessionPort
from weft.session.decide.prompts import RESUME_CHOICES
from weft.store.location import StoreArgument
from weft.thinking_levels import level_note, thinking_level
from weft.tools import Tool
from weft.view.snapshot import HistoryMessage


class StartRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A session as a caller wants it; `SessionManager.start_session` says what each means."""

    session_id: str | None = None
    model: str | Model | None = None
    project_path: str | os.PathLike[str] | None = None
    title: str | None = None
    tools: ToolSelection = "all"
    auto_approve: bool = False
    system_prompt: str | None = None
    permission_mode: str | None = None
    store: StoreArgument | None = None
    messages: Sequence[Mapping[str, Any] | HistoryMessage] | None = None
    resume: Literal["ask", "auto", "never"] | None = None
    parent: CallOrigin | None = None
    asking: Literal["wait", "no"] = "wait"


async def start(host: SessionHost, request: StartRequest, defaults: SessionDefaults) -> SessionPort:
    """Start a new session, resume a stored one, or find the running one.

    Raises:
        UsageError: a setting, a tool, the store or the model's name is wrong.
        StoreUnavailable: another process owns it and cannot be reached.
    """
    return await host.start(_checked(host, request, defaults))


def _checked(host: SessionHost, request: StartRequest, defaults: SessionDefaults) -> CheckedStart:
    if request.permission_mode is not None and request.permission_mode not in MODES:
        raise UsageError(
            f"no permission mode {request.permission_mode!r}; there are {', '.join(MODES)}"
        )
    if request.resume not in (None, *RESUME_CHOICES):
        raise UsageError(
            f"no way to resume {request.resume!r:.60}; there are {', '.join(RESUME_CHOICES)}"
        )
    refuse_unknown(defaults, StartOptions, "start_session")
    table, tool_names = tool_table(request.tools)
    named = host.model_named(request.model) if request.model is not None else None
    session_id = SessionId(request.session_id or new_session_id(host.now()))
    _check_id(session_id)
    path = absolute(str(request.project_path or host.services.project_path))
    settings: dict[str, Any] = clean_value(defaults)
    _check_settings(host, settings, path, table, named)
    return CheckedStart(
        session_id=session_id,
        may_exist=request.session_id is not None,
        facts=_first_facts(
            host,
            request,
            path=path,
            model=named or host.default_named(),
            settings=settings,
            tools=tool_names,
        ),
        tools=table,
        store=request.store,
        asking="yes" if request.auto_approve else request.asking,
        model=named,
        permission_mode=request.permission_mode,
        resume=request.resume,
    )


def _first_facts(
    host: SessionHost,
    request: StartRequest,
    *,
    path: str,
    model: ModelName,
    settings: Mapping[str, Any],
    tools: str | list[str],
) -> tuple[Fact, ...]:
    """What a new session begins with."""
    config = host.services.config
    level = settings.get("thinking") or model.effort
    created = SessionCreated(
        project_path=path,
        title=_title(request.title, host.now()),
        model=model.name,
        settings=_stored_settings(
            {**settings, "thinking": level or config.get("model.effort")},
            tools=tools,
            system_prompt=clean_text(request.system_prompt) if request.system_prompt else None,
            permission_mode=request.permission_mode or config.get("permissions.mode"),
            resume=_resume(request.resume or config.get("session.resume")),
            auto_title=request.title is None,
        ),
        parent=request.parent,
    )
    return (
        created,
        *_seeded(host, request),
        *_level_notes(host, created, is_named=bool(level)),
    )


def _check_settings(
    host: SessionHost,
    settings: Mapping[str, Any],
    path: str,
    table: Mapping[str, Tool],
    model: ModelName | None,
) -> None:
    """Refuse settings that no turn could work with."""
    budget = settings.get("budget") or {}
    if not isinstance(budget, Mapping):
        raise UsageError(f"a budget has max_budget_usd and max_tokens, not {budget!r}")
    options = {**settings, **budget}
    if model is not None:
        options["model"] = model.name
    host.registry.check(path, table, options)


def _level_notes(
    host: SessionHost, created: SessionCreated, *, is_named: bool
) -> tuple[SystemNote, ...]:
    """A note where the model lacks the thinking level that the session starts with."""
    level = thinking_level(created.settings.get("thinking")) or "default"
    if level == "default":
        return ()
    levels = host.levels_of(created.model)
    # A configured level is meant for all models: of one that does not think it says nothing.
    text = level_note(created.model, level, levels if levels or is_named else None)
    return (SystemNote(text=text),) if text else ()


def _stored_settings(given: Mapping[str, Any], **named: Any) -> dict[str, Any]:
    """Settings as the log stores them: only what was set."""
    kept = {**given, **named}
    if kept.get("tools") == "all":
        del kept["tools"]
    if kept.get("thinking") == "default":
        del kept["thinking"]
    return {name: value for name, value in kept.items() if value not in (None, "", False)}


def _resume(choice: str) -> str | None:
    return None if choice == "ask" else choice


def _title(given: str | None, now: float) -> str:
    return clean_text(given or "") or f"Session {datetime.fromtimestamp(now):%Y-%m-%d %H:%M}"


def _check_id(session_id: str) -> None:
    # Ids become file names in a JSONL store, and words of a command line.
    fine = all(c.isalnum() or c in "-_." for c in session_id) and len(session_id) <= 128
    if not fine or session_id.startswith("."):
        raise UsageError(
            f"{session_id!r} cannot be a session id: use up to 128 letters, digits, '-', '_', '.'"
        )


def _seeded(host: SessionHost, request: StartRequest) -> Sequence[Fact]:
    """The conversation that a new session begins with."""
    if not request.messages:
        return ()
    from weft.api.seed_messages import seed_facts  # only where there are some

    return seed_facts(request.messages, host.now())
