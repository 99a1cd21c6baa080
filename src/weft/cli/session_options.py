"""Command-line arguments turned into an application and the options of a session."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from weft.api.manager import ExportFormat, SessionRow
from weft.app import App, open_app
from weft.cli.parse import ParsedArguments
from weft.errors import AmbiguousId, SessionNotFound, UsageError, did_you_mean
from weft.ids import SessionId
from weft.protocol.session_options import (
    PERMISSION_MODES,
    SessionOptions,
    model_and_effort,
    split_rules,
)
from weft.thinking_levels import level_note, thinking_level

if TYPE_CHECKING:  # loaded where a program drives us: it costs start-up time
    from weft.hooks.config import HookTable
    from weft.permissions import Mode
    from weft.project.agent_definitions import AgentDefinition

EXPORT_FORMATS: tuple[ExportFormat, ...] = ("md", "json", "jsonl", "html")


LISTEN_AFTER_SECONDS = 1.0
"""When other processes may begin to drive our session: not before the first request is on
its way.
"""


LOOKED_AT = 50
"""Sessions among which `--continue` looks for one that was answered."""


def project_folder(arguments: ParsedArguments) -> str:
    """The folder to work in.

    Raises:
        UsageError: it is none.
    """
    given = arguments.text("cd")
    try:
        # Fails when the folder was removed under the shell; that is the user's mistake and gets a
        # sentence.
        here = os.getcwd()
    except FileNotFoundError as error:
        raise UsageError("the folder you are in is gone; cd to another one") from error
    folder = os.path.join(here, os.path.expanduser(given)) if given is not None else here
    if not os.path.isdir(folder):
        why = "is not a folder" if os.path.exists(folder) else "does not exist"
        raise UsageError(f"cannot work in {given!r}: it {why}")
    return folder


def make_app(
    arguments: ParsedArguments,
    hooks: HookTable | None = None,
    *,
    wakes_due: bool = False,
    serves: bool = False,
    folder: str | None = None,
    lent: App | None = None,
) -> App:
    """The application, not yet open; `hooks` are those of a program that drives us, `folder` is
    another than the one of the command line, `lent` one whose store it has.

    Raises:
        UsageError: a folder or a setting is wrong.
    """
    folder = folder or project_folder(arguments)
    given, more = _brought(arguments)
    given |= dict(_setting(each) for each in arguments.many("set"))
    if (profile := arguments.text("profile")) is not None:
        given["profile"] = profile
    if (fallback := arguments.text("fallback_model")) is not None:
        if not fallback.strip(", "):
            raise UsageError("--fallback-model needs a value: --fallback-model MODELS")
        given["model.fallback"] = fallback
    if arguments.flag("no_sandbox"):
        given["sandbox.mode"] = "off"
    store: Any = "memory" if arguments.flag("ephemeral") else None
    store = store if lent is None else lent.store
    rules = {
        "permissions.allow": _rules(arguments, "allowedTools"),
        "permissions.deny": _rules(arguments, "disallowedTools"),
        "permissions.ask": _rules(arguments, "ask_rules"),
    }
    is_own = bool(arguments.values.get("without_user"))
    if is_own:
        # What the user allows elsewhere does not count here; what is forbidden stays so.
        given["permissions.allow"] = rules.pop("permissions.allow")
        given.setdefault("permissions.mode", "default")
    more += [(name, found) for name, found in rules.items() if found]
    given = _with_more(folder, store, given, more)
    added = [_added(each) for each in arguments.many("add_dir")]
    return open_app(
        folder,
        store,
        given,
        added=added,
        hooks=hooks,
        mcp_config=tuple(map(os.path.expanduser, arguments.many("mcp_config"))),
        only_mcp_config=arguments.flag("strict_mcp_config"),
        without_project=bool(arguments.values.get("without_project")),
        listen_after_seconds=LISTEN_AFTER_SECONDS,
        wakes_due=wakes_due,
        serves=serves,
    )


def _brought(arguments: ParsedArguments) -> tuple[dict[str, Any], list[tuple[str, Any]]]:
    """The settings of `--settings`, the last one on top, and those that are added to the
    configured ones.
    """
    texts = arguments.many("settings")
    if not texts:
        return {}, []
    from weft.config.given_settings import read_settings  # few runs bring settings along
    from weft.config.setting_keys import KEYS

    found = [each for text in texts for each in read_settings(text).items()]
    added = [(name, value) for name, value in found if name in KEYS and KEYS[name].joins]
    return {name: value for name, value in found if (name, value) not in added}, added


def _with_more(
    folder: str, store: Any, given: dict[str, Any], more: list[tuple[str, Any]]
) -> dict[str, Any]:
    """The settings, with the rules and hooks that this run adds to the configured ones."""
    if not more:
        return given
    # Opened once to read what is configured: a setting given on the command line replaces it, and
    # these are meant to be added.
    config = open_app(folder, store, given).config
    added: dict[str, list[Any]] = {}
    for name, value in more:
        added.setdefault(name, []).append(value)
    return given | {name: config.joined_with(name, values) for name, values in added.items()}


def _setting(text: str) -> tuple[str, str]:
    name, has_value, value = text.partition("=")
    if not has_value or not name.strip():
        raise UsageError(f"--set takes KEY=VALUE, not {text!r}")
    return name.strip(), value.strip()


def _added(path: str) -> str:
    folder = os.path.abspath(os.path.expanduser(path))
    if not os.path.isdir(folder):
        raise UsageError(f"--add-dir {path!r} is not a folder")
    return folder


def _rules(arguments: ParsedArguments, option: str) -> list[str]:
    """The rules of an option, as they are written.

    Raises:
        UsageError: one of them would cover nothing; left out in silence it would be a veto that is
            missing.
    """
    rules = [rule for text in arguments.many(option) for rule in split_rules(text)]
    if not rules:
        return []
    from weft.permissions import rule_problem  # not without rules

    if why := next(filter(None, map(rule_problem, rules)), ""):
        shown = "--settings: permissions.ask" if option == "ask_rules" else f"--{option}"
        raise UsageError(f"{shown}: {why}")
    return rules


def session_options_of(arguments: ParsedArguments, *, headless: bool) -> SessionOptions:
    """The options of the session, as the arguments give them.

    Raises:
        UsageError: two options contradict each other, or a file cannot be read.
    """
    mode = arguments.text("permission_mode")
    if arguments.flag("dangerously_skip_permissions"):
        mode = "bypass"
    if arguments.flag("plan"):
        # `--plan` with another mode is a mistake either way; guessing could allow what the user
        # meant to forbid.
        if mode not in (None, "plan"):
            raise UsageError(f"--plan and the permission mode {mode} contradict each other")
        mode = "plan"
    model, effort = model_and_effort(arguments.text("model"))
    limits = {
        "max_turns": arguments.whole("max_turns"),
        "max_seconds": _seconds(arguments.text("max_time")),
        "max_tool_calls": arguments.whole("max_tool_calls"),
        "max_budget_usd": arguments.number("max_budget_usd"),
        "max_tokens": arguments.whole("max_tokens"),
        "plan_model": arguments.text("plan_model"),
        "edit_model": arguments.text("edit_model"),
    }
    return SessionOptions(
        model=model,
        effort=arguments.text("effort") or effort,
        permission_mode=PERMISSION_MODES.get(mode, mode) if mode else None,
        asking="no" if headless or mode == "dontAsk" else "wait",
        tools=_tools(arguments),
        system_prompt=_text_or_file(arguments, "system_prompt"),
        append_system_prompt=_text_or_file(arguments, "append_system_prompt"),
        title=arguments.text("name"),
        # Naming one of its models switches architect mode on.
        architect=arguments.flag("architect") or bool(limits["plan_model"] or limits["edit_model"]),
        limits={name: limit for name, limit in limits.items() if limit is not None},
    )


def _seconds(given: str | None) -> float | None:
    """The length of time of `--max-time`."""
    if given is None:
        return None
    from weft.api.unattended.times import duration_of  # few runs are limited so

    return duration_of(given)


async def options_of_agent(
    app: App, options: SessionOptions, arguments: ParsedArguments
) -> SessionOptions:
    """The options, filled in from the agent's definition: what the command line names counts more.

    Raises:
        UsageError: there is no such agent, or the session is one that began as something else.
    """
    from msgspec.structs import replace  # few sessions are started as an agent

    # As with `--system-prompt`: the prompt is part of the prefix that a session has frozen.
    if arguments.flag("continue") or arguments.text("resume") is not None:
        raise UsageError("--agent can be given to a new session only; a resumed one stays as it is")
    definition = await _agent_definition(app, str(arguments.text("agent")))
    model, effort = model_and_effort(definition.model or None)
    limits = {} if definition.max_turns is None else {"max_turns": definition.max_turns}
    return replace(
        options,
        model=options.model or model,
        effort=options.effort or (None if options.model else effort),
        permission_mode=options.permission_mode or _mode_of_agent(app, definition),
        tools=_tools_of_agent(options, definition),
        system_prompt=options.system_prompt or definition.prompt.strip() or None,
        limits={**limits, **options.limits},
    )


async def _agent_definition(app: App, name: str) -> AgentDefinition:
    import anyio.to_thread  # as above

    prompter, project = app.host.services.prompter, app.project_path
    known = await anyio.to_thread.run_sync(lambda: prompter.agents(project, for_users=True))
    found = known.masked(prompter.redact).found
    if name in found:
        return found[name]
    why = next((f" ({problem})" for problem in known.problems if name and name in problem), "")
    hint = did_you_mean(name, found) or f"; there are {', '.join(found)}"
    raise UsageError(f"there is no agent {name!r}{why}{hint}")


def _mode_of_agent(app: App, definition: AgentDefinition) -> Mode | None:
    """The permission mode that it begins in; a project's definition cannot allow more than the
    user's own settings do.
    """
    wanted, own = definition.permission_mode, app.config.get("permissions.mode")
    if wanted is None or not definition.is_project:
        return wanted
    from weft.permissions import MODES  # as above

    return min(wanted, own, key=MODES.index)


def _tools_of_agent(options: SessionOptions, definition: AgentDefinition) -> list[str] | None:
    """The tools of the session; None for all of them."""
    if definition.tools is None and not definition.disallowed:
        return options.tools
    from weft.api.options import builtin_tool_names  # as above

    known = builtin_tool_names(has_skills=True, has_agents=True, has_servers=True)
    available = options.tools if options.tools is not None else [*known, "mcp__*"]
    return definition.choose_to_begin(available)


def note_of_level(
    app: App, options: SessionOptions, model: str, level: str, *, begins: bool
) -> str:
    """What to say of the level that a session begins with, or was just given; empty when it has it.

    The session's own note is written before the command line subscribes.  A configured level is
    meant for all models: of one that does not think it says nothing.
    """
    named = thinking_level(level)
    is_requested = options.effort is not None or options.model is not None
    if named is None or named == "default" or not (begins or is_requested):
        return ""
    levels = app.host.levels_of(model)
    return level_note(model, named, levels if levels or options.effort is not None else None)


def _tools(arguments: ParsedArguments) -> list[str] | None:
    """The tools that the model has; None for all of them."""
    given, refused = arguments.many("tools"), _rules(arguments, "disallowedTools")
    if not given and not refused:
        return None
    from weft.permissions import our_tool_name, taken_away  # not for all tools

    denied = {name for rule in refused for name in taken_away(rule)}
    if not given and not denied:
        return None
    if given:
        names = [our_tool_name(name) for text in given for name in split_rules(text)]
    else:
        from weft.api.options import builtin_tool_names  # only to take one away

        # With those, too, that there are only in some projects: one that is not there does no harm.
        names = [
            *builtin_tool_names(has_skills=True, has_agents=True, has_servers=True),
            "mcp__*",
        ]
    return [name for name in names if name not in denied]


def _text_or_file(arguments: ParsedArguments, key: str) -> str | None:
    text, path = arguments.text(key), arguments.text(f"{key}_file")
    if text is not None and path is not None:
        name = key.replace("_", "-")
        raise UsageError(f"give either --{name} or --{name}-file, not both")
    if path is None:
        return text
    return text_file(path, repr(path))


def text_file(path: str, named: str) -> str:
    """The text of a file that an option names.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        with open(os.path.expanduser(path), encoding="utf-8") as file:
            return file.read()
    except UnicodeDecodeError as error:
        raise UsageError(f"cannot read {named}: it is not UTF-8 text") from error
    except OSError as error:
        raise UsageError(f"cannot read {named}: {error.strerror}") from error


# --- which session ---------------------------------------------------------------------


async def chosen_id(app: App, arguments: ParsedArguments) -> SessionId | None:
    """The stored session that the arguments name; None for a new one.

    Raises:
        UsageError: there is none in this folder, or options contradict each other.
        SessionNotFound, AmbiguousId: no session, or several, have this id or title.
    """
    resume = arguments.text("resume")
    if arguments.flag("ephemeral") and (resume is not None or arguments.flag("continue")):
        raise UsageError(
            "--ephemeral keeps no sessions, so there is none to resume; leave out one of the two"
        )
    if arguments.flag("continue") and resume:
        raise UsageError("give either --continue or --resume ID, not both")
    if arguments.text("session_id") is not None and (resume or arguments.flag("continue")):
        raise UsageError("--session-id names a new session; leave it out to resume another one")
    if resume:
        return await find_id(app, resume)
    if arguments.flag("continue"):
        return await newest_id(app)
    if arguments.flag("fork"):
        raise UsageError("--fork needs a session to start from: add --continue or --resume ID")
    return None


async def newest_id(app: App) -> SessionId:
    """The newest session of this folder.

    Raises:
        UsageError: there is none.
    """
    rows = await _conversations(app)
    if not rows:
        raise UsageError(
            "there is no session in this folder to resume; `weft session list --all` "
            "shows the others"
        )
    return next(filter(was_answered, rows), rows[0]).id


async def _conversations(app: App) -> list[SessionRow]:
    """The newest sessions of this folder, without the trees of text: a prompt is not meant for
    those.
    """
    found: list[SessionRow] = []
    place: str | None = None
    while not found:
        page = await app.sessions.list_saved(
            project_path=app.project_path, limit=LOOKED_AT, after=place
        )
        found = [row for row in page if not row.mode.startswith("loom")]
        place = page.next
        if place is None:
            break
    return found


def was_answered(row: SessionRow) -> bool:
    """Whether a session has more than messages of the user's, or is being worked on; a run that
    failed at once has nothing to go on with.
    """
    return row.message_count > row.turn_count or row.turn_open


async def find_id(app: App, given: str) -> SessionId:
    """The session with this id, the beginning of it, or this title.

    Raises:
        SessionNotFound, AmbiguousId: no session, or several, have it.
    """
    try:
        return await app.sessions.resolve_id(given)
    except SessionNotFound:
        matches = await _titled(app, given)
        if len(matches) > 1:
            raise AmbiguousId(given, tuple(matches)) from None
        if not matches:
            raise
        return matches[0]


async def named_or_last(app: App, words: tuple[str, ...], command: str) -> SessionId:
    """The session that is named behind a command, or the newest one of this folder.

    Raises:
        UsageError: there is none, or several are named.
        SessionNotFound, AmbiguousId: no session, or several, have the id.
    """
    if len(words) > 1:
        raise UsageError(f"`weft {command}` takes the id of one session")
    if words:
        return await find_id(app, words[0])
    rows = await app.sessions.list_saved(project_path=app.project_path, limit=1)
    if not rows:
        raise UsageError("there is no session in this folder; `weft session list --all` shows all")
    return rows[0].id


async def _titled(app: App, given: str) -> list[SessionId]:
    """Sessions with this title; in this folder, else anywhere."""
    title = given.casefold()
    for folder in (app.project_path, None):
        rows = await app.sessions.list_saved(project_path=folder, limit=1000)
        found = [row.id for row in rows if row.title.casefold() == title]
        if found:
            return found
    return []


def format_of(path: str | None, given: str | None) -> ExportFormat:
    """The export format that was given, that the file's name says, or Markdown."""
    ending = os.path.splitext(path or "")[1].removeprefix(".").lower()
    name = given or ending
    if not given and ending not in ("", "txt", "markdown", *EXPORT_FORMATS):
        raise UsageError(f"an export is a .md, .html, .json or .jsonl file, not .{ending}")
    return next((each for each in EXPORT_FORMATS if each == name), "md")
