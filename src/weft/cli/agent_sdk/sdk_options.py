"""Command-line options of the Agent SDK, which only a program that drives us gives.

Each is carried over into what we have of our own, or said to do nothing.  One that restricts and
that we do not have is refused: a program that was started without its guard would not know.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from weft.cli.parse import ParsedArguments
from weft.errors import UsageError
from weft.protocol.session_options import PERMISSION_MODES

_NOT_DONE: Final = {
    "agent": "gives the session the limits of an agent",
    "agents": "defines agents, which `initialize` does",
    "channels": "lets servers send messages",
    "managed_settings": "restricts the session",
    "managed_settings_in_initialize": "restricts the session",
    "project_config_root": "keeps the files of the project from being its settings",
    "resume_drops_turn": "guards what a resumed session leaves out",
}
"""Options that are refused, and what a program would rely on."""
_SAID: Final = {
    "betas": "there are none to be switched on here",
    "include_hook_events": "hooks are not reported while they run",
    "session_mirror": "sessions are kept in Weft's own store alone",
}
"""Options that do nothing and restrict nothing; the user is told."""
SOURCES: Final = ("user", "project", "local")
_LEVELS: Final = ((0, "off"), (4_000, "low"), (16_000, "medium"))
"""The most tokens of thinking that each level stands for; above them it is high."""


def carry_over(arguments: ParsedArguments) -> list[str]:
    """Turn the options of the SDK into our own; returns what of them does nothing, in sentences.

    Raises:
        UsageError: one restricts the session in a way that we do not have, or cannot be read.
    """
    values = arguments.values
    for key, relied_on in _NOT_DONE.items():
        if key in values:
            raise UsageError(f"{_name(key)} is not supported: it {relied_on}")
    said = [f"{_name(key)} does nothing: {why}" for key, why in _SAID.items() if key in values]
    said += [_plugin(folder) for folder in arguments.many("plugin_dir")]
    if arguments.text("resume_session_at") is not None and not arguments.text("resume"):
        raise UsageError("--resume-session-at needs --resume ID")
    if (text := arguments.text("settings")) is not None:
        said += _Settings(arguments).take(text)
        # Taken as Claude Code has them: in our own words they would say something else.
        del values["settings"]
    if (sources := arguments.text("setting_sources")) is not None:
        _restrict_sources(arguments, sources)
    _set_effort(arguments)
    if (budget := arguments.text("task_budget")) is not None:
        values.setdefault("max_tokens", _number("--task-budget", budget, least=1))
    if arguments.text("permission_prompts") == "none":
        values.pop("permission_prompt_tool", None)
    if arguments.many("tools") == ("default",):
        del values["tools"]
    return said


def _name(key: str) -> str:
    return f"--{key.replace('_', '-')}"


def _number(name: str, text: str, *, least: int) -> int:
    if not text.isdecimal() or int(text) < least:
        raise UsageError(f"{name} needs a whole number of {least} or more, not {text!r}")
    return int(text)


def _plugin(folder: str) -> str:
    """What to say of a plugin.

    Raises:
        UsageError: it has hooks, which may be guards.
    """
    manifest: Any = {}
    try:
        manifest = json.loads((Path(folder) / ".claude-plugin" / "plugin.json").read_bytes())
    except (OSError, ValueError):
        manifest = {} if os.path.isdir(folder) else None
    if manifest is None:
        raise UsageError(f"--plugin-dir {folder!r} is not a folder")
    if (isinstance(manifest, dict) and "hooks" in manifest) or os.path.lexists(f"{folder}/hooks"):
        raise UsageError(f"--plugin-dir {folder!r} has hooks, and plugins are not supported")
    return f"--plugin-dir {folder} does nothing: plugins are not supported"


def _restrict_sources(arguments: ParsedArguments, text: str) -> None:
    sources = [each.strip() for each in text.split(",") if each.strip()]
    if wrong := next((each for each in sources if each not in SOURCES), None):
        raise UsageError(f"--setting-sources takes {', '.join(SOURCES)}, not {wrong!r}")
    values = arguments.values
    values["without_user"] = "user" not in sources
    values["without_project"] = not {"project", "local"} & set(sources)
    if not sources:
        # Not the user's instructions either, and nothing that was remembered.
        nothing = ["context.instructions=0", "context.memory=0"]
        values["set"] = [*nothing, *arguments.many("set")]


def _set_effort(arguments: ParsedArguments) -> None:
    level = {"disabled": "off", "adaptive": "default"}.get(arguments.text("thinking") or "")
    if (most := arguments.text("max_thinking_tokens")) is not None:
        level = level_of(_number("--max-thinking-tokens", most, least=0))
    if level is not None:
        arguments.values.setdefault("effort", level)


def level_of(tokens: int) -> str:
    """The thinking level that a number of tokens stands for."""
    return next((level for most, level in _LEVELS if tokens <= most), "high")


class _Settings:
    """The settings of `--settings`, as Claude Code has them."""

    def __init__(self, arguments: ParsedArguments) -> None:
        self._arguments = arguments
        self._values = arguments.values
        self._said: list[str] = []

    def take(self, text: str) -> list[str]:
        """Take a file or JSON; returns what of it does nothing."""
        for key, value in _table(text).items():
            if key in _COMFORT:
                self._said.append(f"--settings: {key} does nothing here")
            elif value in (None, False, "", [], {}):
                continue
            elif (taker := self._takers().get(key)) is not None:
                taker(value)
            else:
                raise UsageError(f"--settings: {key!r} is not supported; leave it out")
        return self._said

    def _takers(self) -> Mapping[str, Callable[[Any], None]]:
        return {
            "permissions": self._permissions,
            "model": lambda value: self._values.setdefault("model", str(value)),
            "env": self._environment,
            "sandbox": self._sandbox,
        }

    def _permissions(self, table: Any) -> None:
        keys = {"allow": "allowedTools", "deny": "disallowedTools", "ask": "ask_rules"}
        for key, value in _object(table, "permissions").items():
            if key in keys:
                self._add(keys[key], _texts(value, f"permissions.{key}"))
            elif key == "additionalDirectories":
                self._add("add_dir", _texts(value, f"permissions.{key}"))
            elif key == "defaultMode":
                self._mode(value)
            elif value:
                raise UsageError(f"--settings: permissions.{key} is not supported; leave it out")

    def _mode(self, mode: Any) -> None:
        known = ("default", "plan", *PERMISSION_MODES)
        if mode not in known:
            raise UsageError(f"--settings: there is no permission mode {mode!r}")
        self._values.setdefault("permission_mode", mode)

    def _add(self, key: str, texts: list[str]) -> None:
        self._values[key] = [*self._arguments.many(key), *texts]

    def _environment(self, table: Any) -> None:
        for name, value in _object(table, "env").items():
            try:
                os.environ[name] = str(value)
            except ValueError as error:
                raise UsageError(f"--settings: env: {name!r} cannot be set: {error}") from error

    def _sandbox(self, table: Any) -> None:
        for key, value in _object(table, "sandbox").items():
            if key == "enabled" and value is True:
                # The program relies on it: where there is none, no command runs.  Theirs lets some
                # addresses through at most, ours all or none.
                self._add("set", ["sandbox.mode=on", "sandbox.network=false"])
            elif key not in _WIDENS and not (key == "allowUnsandboxedCommands" and value is True):
                raise UsageError(f"--settings: sandbox.{key} is not supported; leave it out")


_WIDENS: Final = frozenset(
    {
        *("enabled", "autoAllowBashIfSandboxed", "excludedCommands", "network"),
        *("ignoreViolations", "enableWeakerNestedSandbox", "bwrapPath", "socatPath"),
    }
)
"""Keys of the sandbox that only make it wider than ours, which has no network then, ever is."""
_COMFORT: Final = frozenset(
    {
        *("$schema", "alwaysThinkingEnabled", "apiKeyHelper", "attribution", "autoUpdatesChannel"),
        *("cleanupPeriodDays", "companyAnnouncements", "effortLevel", "fastMode", "feedbackSurvey"),
        *("fileSuggestion", "forceLoginMethod", "includeCoAuthoredBy", "includeGitInstructions"),
        *("language", "otelHeadersHelper", "outputStyle", "plansDirectory", "prefersReducedMotion"),
        *("respectGitignore", "showThinkingSummaries", "showTurnDuration", "spinnerTipsEnabled"),
        *("spinnerVerbs", "statusLine", "theme", "viewMode", "voiceEnabled"),
    }
)
"""Keys that restrict nothing."""


def _table(text: str) -> dict[str, Any]:
    if not text.lstrip().startswith("{"):
        try:
            text = Path(os.path.expanduser(text)).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise UsageError(f"--settings: cannot read {text!r}: {error}") from error
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--settings is not JSON: {error}") from error
    return _object(found, "it")


def _object(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"--settings: {name} is an object")
    return value


def _texts(value: Any, name: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise UsageError(f"--settings: {name} is a list of texts")
    return value
