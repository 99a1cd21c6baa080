"""Setting keys: everything that can be set, with its type, its default and a sentence.

A name that is not here is refused with the nearest one that is.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, get_args, get_origin

import msgspec
from msgspec import Meta

from weft.errors import UsageError, did_you_mean
from weft.thinking_levels import ThinkingLevel

_LONGEST_NAME: Final = 60
_SWITCHES: Final = {"on": True, "off": False, "yes": True, "no": False}
"""What users write for a switch, besides true and false."""


class SettingKey(msgspec.Struct, frozen=True, kw_only=True):
    """One setting."""

    kind: Any
    default: Any
    about: str
    safe: bool = False
    """A project may set it before the user has trusted the folder: it can neither widen permissions
    nor start programs.
    """
    personal: bool = False
    """No project may set it, trusted or not."""
    joins: bool = False
    """What a project sets is added to what the user has set."""
    are_rules: bool = False
    """Permission rules: one that could cover nothing is a mistake."""


MODEL_KEYS: Final = frozenset(
    {
        "model.default",
        "model.rotation",
        "model.fallback",
        "model.architect",
        "model.editor",
        "loom.model",
    }
)
"""Settings whose values are names of models."""

KEYS: dict[str, SettingKey] = {
    "model.default": SettingKey(
        kind=str,
        default="",
        about="The model of new sessions, as provider:model[:effort]; "
        "if empty, of the provider that has a key.",
        safe=True,
    ),
    "model.effort": SettingKey(
        kind=ThinkingLevel,
        default="default",
        about="How hard new sessions think: default (the vendor's own), off, minimal, low, medium, "
        "high, xhigh or max; an effort named with a model takes precedence.",
        safe=True,
    ),
    "model.rotation": SettingKey(
        kind=list[str],
        default=[],
        about="Models that cycle_model goes through, as provider:model[:effort].",
        safe=True,
    ),
    "model.fallback": SettingKey(
        kind=list[str],
        default=[],
        about="Models that answer, in this order, for the rest of a turn whose model cannot be "
        "reached, as provider:model[:effort].",
        safe=True,
    ),
    "model.architect": SettingKey(
        kind=str,
        default="",
        about="The model that plans in architect mode; empty for the session's own.",
        safe=True,
    ),
    "model.editor": SettingKey(
        kind=str,
        default="",
        about="The model that carries out the steps in architect mode; empty for the "
        "session's own.",
        safe=True,
    ),
    "model.style": SettingKey(
        kind=Literal["concise", "detailed", "explanatory"],
        default="concise",
        about="How models answer: concise, detailed (what was considered and checked) or "
        "explanatory (teaches the code on the way).",
        safe=True,
    ),
    "agents.max_depth": SettingKey(
        kind=int,
        default=2,
        about="How deep agents may have agents of their own; 0 for none at all.",
    ),
    "agents.max_parallel": SettingKey(
        kind=int, default=8, about="Agents of one session, and of its agents, that work at once."
    ),
    "agents.max_total": SettingKey(
        kind=int, default=50, about="Agents that one turn may start, those of its agents included."
    ),
    "agents.step_turns": SettingKey(
        kind=int,
        default=30,
        about="Maximum number of model answers for one step of a plan in architect mode.",
    ),
    "fan.at_once": SettingKey(
        kind=Annotated[int, Meta(ge=1)],
        default=4,
        about="Candidates of a fan-out that work at the same time.",
    ),
    "fan.isolation": SettingKey(
        kind=Literal["auto", "overlay"],
        default="auto",
        about="What keeps the candidates of a fan-out apart: auto (overlays, and where there are "
        "none, copies of the project), overlay (else the fan-out is refused).",
    ),
    "fan.setup": SettingKey(
        kind=str,
        default="",
        about="Command that makes a candidate's copy of the project fit for work, such as one that "
        "installs dependencies. Overlays need none: they show yours.",
    ),
    "fan.pin_ignored": SettingKey(
        kind=bool,
        default=True,
        about="Link ignored files (dependencies, build products) when a fan-out begins, so that "
        "candidates do not see a reinstall. Off, they are shared as they are.",
    ),
    "fan.max_disk": SettingKey(
        kind=int, default=2 * 1024**3, about="Bytes that one candidate may write."
    ),
    "fan.verify_seconds": SettingKey(
        kind=int, default=600, about="How long one run of a fan-out's verify command may take."
    ),
    "loom.model": SettingKey(
        kind=str,
        default="",
        about="The model of new text trees, as provider:model; if empty, that of new sessions.",
        safe=True,
    ),
    "loom.n_branches": SettingKey(
        kind=int,
        default=1,
        about="How many branches of a text tree one model writes at once, up to 64.",
    ),
    "loom.max_tokens": SettingKey(
        kind=int, default=200, about="The longest branch of a text tree, 10 to 8000 tokens."
    ),
    "loom.temperature": SettingKey(
        kind=float, default=0.9, about="The temperature of branches of text trees, 0 to 2."
    ),
    "loom.show_model_names": SettingKey(
        kind=bool,
        default=True,
        about="Show which model wrote each branch of a text tree.",
        safe=True,
    ),
    "loom.models": SettingKey(
        kind=dict[str, dict[str, Any]],
        default={},
        about="What text trees use for a model instead: n_branches, max_tokens, temperature and "
        'strategy of [loom.models."provider:name"].',
    ),
    "history.quota": SettingKey(
        kind=int,
        default=1024 * 1024 * 1024,
        about="Bytes of file history that a project may have; the oldest goes first. 0 keeps "
        "none of what commands change.",
    ),
    "history.max_file": SettingKey(
        kind=int,
        default=4 * 1024 * 1024,
        about="Bytes of a file beyond which the file history does not keep its content.",
    ),
    "decisions.enabled": SettingKey(
        kind=bool,
        default=True,
        about="Whether models are told of the project's decisions and can log some, and whether "
        "corrections, plans and results of tests are noted as decisions.",
        safe=True,
    ),
    "animation": SettingKey(
        kind=bool,
        default=True,
        about="Whether the chat shows a spinner while it works; without one, seconds only.",
        personal=True,
    ),
    "keys": SettingKey(
        kind=Literal["emacs", "vi"],
        default="emacs",
        about="Keys of the chat's input line: those of a shell (emacs), or vi with a normal mode.",
        personal=True,
    ),
    "chat.keys": SettingKey(
        kind=dict[str, str],
        default={},
        about="Keys of the chat: actions of [chat.keys], each with its keys (`ctrl+x`, `alt+x`, "
        "`shift+tab`, `f2`), several with spaces between; what is not named keeps its keys. The "
        "actions are new_line, send_later, take_back, next_mode, search, editor, unfold, todo, "
        "model, keep, effort, picture and stash.",
        personal=True,
    ),
    "loom.keys": SettingKey(
        kind=dict[str, str],
        default={},
        about="Keys of `weft loom view`: actions of [loom.keys], each with its keys (`x`, `space`, "
        "`ctrl+x`, `shift+tab`), several with spaces between; what is not named keeps its keys. "
        "docs/loom-view.md lists the actions.",
        personal=True,
    ),
    "notify": SettingKey(
        kind=bool,
        default=True,
        about="Whether the terminal calls you, when it has lost the focus and the chat asks or a "
        "turn of 20 seconds ends.",
        personal=True,
    ),
    "statusline": SettingKey(
        kind=str,
        default="",
        about="A command whose first line of output is the chat's status line; it gets the state "
        "as JSON on its standard input, at most once a second.",
        # A project could have a program of its own run by that.
        personal=True,
    ),
    "theme": SettingKey(
        kind=Literal["auto", "dark", "light", "none"],
        default="auto",
        about="Colours of the chat: auto follows the terminal's background, dark and light name "
        "it, none uses no colours.",
        personal=True,
    ),
    "sandbox.mode": SettingKey(
        kind=Literal["auto", "on", "off"],
        default="auto",
        about="Sandbox for commands: auto uses it where this machine has one, on refuses commands "
        "where it has none, off never uses it.",
    ),
    "sandbox.network": SettingKey(
        kind=bool, default=False, about="Whether commands in the sandbox have the network."
    ),
    "sandbox.unix_sockets": SettingKey(
        kind=bool,
        default=False,
        about="Whether commands in the sandbox may use unix sockets, which reach servers "
        "outside it.",
    ),
    "sandbox.show": SettingKey(
        kind=list[str],
        default=[],
        about="Files and folders with secrets that commands in the sandbox may read all the "
        "same, by path or by name.",
    ),
    "environment.pass": SettingKey(
        kind=list[str],
        default=[],
        about="Names of variables that commands get although they look like secrets.",
        # A project could have the user's keys handed to the commands that its text asks for.
        personal=True,
    ),
    "repo.index": SettingKey(
        kind=bool,
        default=True,
        about="Whether the source files of projects are indexed in the background, for maps, "
        "symbols and the hints that go with each message.",
        safe=True,
    ),
    "repo.map_tokens": SettingKey(
        kind=Annotated[int, Meta(ge=0)],
        default=1024,
        about="How many tokens the map of the project may have that new sessions begin with; fewer "
        "for models with small windows. 0 for none.",
        safe=True,
    ),
    "repo.watch": SettingKey(
        kind=bool,
        default=True,
        about="Whether the index of a project is kept current by watching its folders, in chats "
        "and other programs that run for more than a few seconds.",
        safe=True,
    ),
    "web.tools": SettingKey(
        kind=bool,
        default=False,
        about="Whether models have the tools fetch and web_search; each use is asked about, or "
        "allowed by rules such as fetch(domain:example.org).",
    ),
    "web.search": SettingKey(
        kind=Literal["none", "brave", "tavily", "exa", "searxng"],
        default="none",
        about="The service that web_search asks; its key is in BRAVE_API_KEY, TAVILY_API_KEY or "
        "EXA_API_KEY.",
        personal=True,
    ),
    "web.search_url": SettingKey(
        kind=str,
        default="",
        about="The address of your SearXNG server, for web.search = searxng.",
        personal=True,
    ),
    "lsp.enabled": SettingKey(
        kind=bool,
        default=True,
        about="Whether language servers that are on PATH, or configured, look at files that were "
        "edited.",
    ),
    "lsp.servers": SettingKey(
        kind=dict[str, dict[str, Any]],
        default={},
        about="Language servers by name: command, suffixes, language, enabled, beside (runs beside "
        "another one), settings and options of [lsp.servers.NAME]; a known name changes a known "
        "server.",
        joins=True,
    ),
    "serve.autostart": SettingKey(
        kind=bool,
        default=False,
        about="Start a server in the background, on a unix socket, where a prompt is scheduled and "
        "none runs.",
    ),
    "lsp.wait": SettingKey(
        kind=float,
        default=3.0,
        about="Seconds that the result of an edit waits for language servers at most.",
    ),
    "lsp.idle_stop": SettingKey(
        kind=float,
        default=600.0,
        about="Seconds after which a language server that is not used is stopped.",
    ),
    "lsp.max_memory": SettingKey(
        kind=int,
        default=2 * 1024 * 1024 * 1024,
        about="Bytes of memory of a language server and its children beyond which it is ended.",
    ),
    "formatters": SettingKey(
        kind=dict[str, dict[str, Any]],
        default={},
        about="Programs that format what models write to files, before it is shown and written: "
        "command (reads the file from its input, prints the result; {path} is its path), suffixes "
        "and enabled of [formatters.NAME].",
        joins=True,
    ),
    "context.instructions": SettingKey(
        kind=Annotated[int, Meta(ge=0)],
        default=8192,
        about="Tokens of AGENTS.md files that a request may have at most, and never more than an "
        "eighth of the model's window; the rest is cut off.",
    ),
    "context.memory": SettingKey(
        kind=Annotated[int, Meta(ge=0)],
        default=2048,
        about="The same of what you asked to be remembered; never more than a sixteenth of the "
        "window.",
    ),
    "context.skills": SettingKey(
        kind=Annotated[int, Meta(ge=0)],
        default=16384,
        about="The same of skills: those that are switched on in full, of the others their names "
        "and descriptions; never more than an eighth of the window.",
    ),
    "context.agents": SettingKey(
        kind=Annotated[int, Meta(ge=0)],
        default=8192,
        about="The same of the names and descriptions of agents; never more than a sixteenth of "
        "the window.",
    ),
    "context.results": SettingKey(
        kind=Annotated[int, Meta(ge=100)],
        default=8000,
        about="Tokens that the model sees of each result of a tool; never more than an eighth of "
        "the window. The whole text is kept.",
    ),
    "store.address": SettingKey(
        kind=str,
        default="",
        about="Where sessions are kept: empty for the SQLite file of this user, or "
        "postgres://USER@HOST/DATABASE for a database that several machines share (extra "
        "`postgres`; a password belongs into ~/.pgpass).",
        personal=True,
    ),
    "session.idle_unload": SettingKey(
        kind=float,
        default=1800.0,
        about="Seconds after which an idle session without subscribers is unloaded.",
    ),
    "session.max_turns": SettingKey(
        kind=Annotated[int, Meta(ge=1)],
        default=100,
        about="Maximum number of model answers in one turn.",
        safe=True,
    ),
    "session.max_seconds": SettingKey(
        kind=Annotated[float, Meta(ge=0)],
        default=0.0,
        about="Maximum seconds of work in one turn, also in the middle of a command; 0 is no "
        "limit. While it waits, or a question to you is open, no time is counted.",
        safe=True,
    ),
    "session.max_tool_calls": SettingKey(
        kind=Annotated[int, Meta(ge=0)],
        default=0,
        about="Maximum number of tool calls in one turn; 0 is no limit. A call beyond it is not "
        "run, and ends the turn.",
        safe=True,
    ),
    "session.resume": SettingKey(
        kind=Literal["ask", "auto", "never"],
        default="ask",
        about="What happens to a turn of a new session that a crash cuts off: it waits for your "
        "yes (ask), goes on by itself, three times within an hour at most (auto), or is given up "
        "(never).",
    ),
    "compaction.soft": SettingKey(
        kind=Annotated[float, Meta(gt=0, le=1)],
        default=0.7,
        about="How full the context window gets before older messages are summarized at the next "
        "good moment: when a turn begins or a task is finished.",
        safe=True,
    ),
    "compaction.hard": SettingKey(
        kind=Annotated[float, Meta(gt=0, le=1)],
        default=0.9,
        about="How full it gets before older messages are summarized at once.",
        safe=True,
    ),
    "compaction.timeout": SettingKey(
        kind=Annotated[float, Meta(gt=0)],
        default=300.0,
        about="Seconds that a summary may take. Then the steps are listed in its place.",
        safe=True,
    ),
    "permissions.mode": SettingKey(
        kind=Literal["default", "plan", "accept_edits", "auto", "bypass"],
        default="default",
        about="Permission mode of new sessions: default (asks first), accept_edits (edits allowed, "
        "asks before commands), plan (plan only, changes nothing), auto (auto in sandbox: commands "
        "in it run without asking), bypass (asks nothing).",
    ),
    "permissions.allow": SettingKey(
        kind=list[str],
        default=[],
        about="Rules, Tool or Tool(pattern), that are allowed.",
        joins=True,
        are_rules=True,
    ),
    "permissions.ask": SettingKey(
        kind=list[str],
        default=[],
        about="Rules that always ask.",
        safe=True,
        joins=True,
        are_rules=True,
    ),
    "permissions.deny": SettingKey(
        kind=list[str],
        default=[],
        about="Rules that are never allowed.",
        safe=True,
        joins=True,
        are_rules=True,
    ),
    "permissions.examples": SettingKey(
        kind=dict[str, dict[str, list[str]]],
        default={},
        about="Examples of rules, checked whenever a session starts: match and not_match of "
        '[permissions.examples."deny shell(rm *)"] list what a rule has to cover and what it must '
        "not.",
        joins=True,
    ),
    "permissions.ask_timeout": SettingKey(
        kind=float,
        default=0.0,
        about="Seconds after which an unanswered permission request counts as denied; 0 "
        "waits forever.",
    ),
    "hooks": SettingKey(
        kind=dict[str, list[dict[str, Any]]],
        default={},
        about="Programs that are run at certain moments: matcher, command and timeout of each "
        "[[hooks.EVENT]].",
        joins=True,
    ),
    "providers": SettingKey(
        kind=dict[str, dict[str, Any]],
        default={},
        about="Providers by name: protocol (anthropic, responses, chat, google, ollama, azure, "
        "bedrock or vertex), base_url, key or key_env, headers, query, default_model, region and "
        "project (of clouds), connect_timeout (10 seconds), "
        "first_byte_timeout (seconds until an answer begins; 300) and idle_timeout (between its "
        "parts; 60) of [providers.NAME].",
        # A project that says where a key is sent could have it sent to itself.
        personal=True,
    ),
    "models": SettingKey(
        kind=dict[str, dict[str, Any]],
        default={},
        about="What is known of models: window, output, price_input, price_output, "
        "price_cache_read, price_cache_write (US dollars for a million tokens), vision, pdf, "
        'tools, patch, levels and default_level of [models."provider:name"].',
        # Prices decide when a budget is spent, and a window when messages are summarized.
        personal=True,
    ),
    "profile": SettingKey(
        kind=str,
        default="",
        about="The profile that counts: its settings, providers and saved keys come before the "
        "others; also --profile NAME.",
        personal=True,
    ),
    "profiles": SettingKey(
        kind=dict[str, dict[str, Any]],
        default={},
        about="Profiles by name: [profiles.NAME] takes every setting that a config.toml takes.",
        personal=True,
    ),
}


def choices_of(name: str) -> tuple[str, ...]:
    """The values that a setting can have, where they can be counted; empty for any other."""
    kind = KEYS[name].kind
    return get_args(kind) if get_origin(kind) is Literal else ()


def known(name: str) -> SettingKey:
    """The key called `name`.

    Raises:
        UsageError: there is none; the message names the nearest.
    """
    if name in KEYS:
        return KEYS[name]
    shown = name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…"
    tables = {key.partition(".")[0] for key in KEYS}
    # A table that was given a value: its first setting is what is usually meant.
    inside = next((key for key in KEYS if key.startswith(f"{name}.")), "")
    near = did_you_mean(name, KEYS) or did_you_mean(name.partition(".")[0], tables)
    hint = f"; did you mean {inside!r}?" if inside else near
    raise UsageError(f"there is no setting {shown!r}{hint}")


def wanted_value(name: str, value: Any) -> str:
    """What a setting takes, and what it was given."""
    wanted = kind_name(known(name).kind).replace("`", "")
    article = "a " if wanted.startswith(("whole", "number", "list")) else ""
    given = repr(value)
    shown = given if len(given) <= _LONGEST_NAME else f"{given[:_LONGEST_NAME]}…"
    return f"it takes {article}{wanted}, not {shown}"


def typed_value(name: str, text: str) -> Any:
    """The value that a user typed for a setting.

    Raises:
        UsageError: there is no such setting, or it takes no such value.
    """
    key = known(name)
    try:
        return as_kind(key, text)
    except msgspec.ValidationError as error:
        raise UsageError(f"{name}: {wanted_value(name, text)}") from error
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from error


def kind_name(kind: Any) -> str:
    """The type of a setting in words, as Markdown."""
    if get_origin(kind) is Annotated:
        inner, *bounds = get_args(kind)
        least = [f" of at least {bound.ge}" for bound in bounds if bound.ge is not None]
        return kind_name(inner) + "".join(least)
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(f"`{word}`" for word in get_args(kind))
    if get_origin(kind) is list:
        return "list of texts"
    if get_origin(kind) is dict:
        return "tables by name"
    return {str: "text", int: "whole number", float: "number", bool: "`true` or `false`"}[kind]


def as_kind(key: SettingKey, value: Any) -> Any:
    """A value in the type of its setting; texts for switches, numbers and lists are read.

    Raises:
        msgspec.ValidationError: it is of another type.
        UsageError: it has a rule that could cover nothing.
    """
    if key.kind is bool and isinstance(value, str):
        value = _SWITCHES.get(value.casefold(), value)
    if key.kind == list[str] and isinstance(value, str):
        value = [part.strip() for part in value.split(",") if part.strip()]
    fitted = msgspec.convert(value, key.kind, strict=False)
    # Names of tools are looked at when a session starts: a program brings tools of its own.
    if key.are_rules and (why := next(filter(None, map(_rule_shape, fitted)), "")):
        raise UsageError(why)
    return fitted


def _rule_shape(text: str) -> str:
    from weft.permissions import rule_problem  # not without rules

    return rule_problem(text, tools=None)
