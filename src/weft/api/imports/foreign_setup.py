"""Set-up of other agents, beside the user's own: what would be new here, and what is left out.

Only the user's own files are looked at.  Nothing of ours is replaced, and nothing that runs by
itself or is a secret is taken: hooks and keys are named, so that nothing is missed in silence.
"""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec
from anyio.to_thread import run_sync

from weft.api.imports.foreign_places import ForeignPlaces
from weft.api.imports.opencode_denials import OPENCODE_SETTINGS, opencode_denials
from weft.api.imports.text_copies import TextCopies
from weft.api.mcp.foreign_entries import FILES, plain_json
from weft.api.permissions.rule_import import ImportedRule
from weft.config.paths import WeftPaths
from weft.errors import UsageError
from weft.export.agents.foreign_tree import one_line, table
from weft.permissions import our_tool_name
from weft.permissions.tool_names import CLAUDE_NAMES
from weft.workspace import read_small_text, user_folder

if TYPE_CHECKING:
    from weft.api.mcp.mcp_servers import AppMcp
    from weft.api.permissions.standing_rules import AppPermissions

SetupKind: TypeAlias = Literal[
    "model", "instructions", "skill", "command", "server", "rule", "hook", "key"
]
_LARGEST: Final = 4 * 1024 * 1024
_FOREIGN_HOOKS: Final = "hooks are never taken: they run by themselves; `weft hooks` is on ours"
_FOREIGN_KEYS: Final = "keys are never taken; `weft auth login` saves one"


class SetupItem(msgspec.Struct, frozen=True, kw_only=True):
    """A part of another agent's set-up."""

    kind: SetupKind
    name: str
    state: Literal["new", "made", "there", "left out"] = "new"
    why: str = ""
    """Where it comes from, or why it is left out."""


class SetupTerms(msgspec.Struct, frozen=True):
    """What an import of a set-up changes, and asks."""

    model: str
    """The default model."""
    check_model: Callable[[str], None]
    change_setting: Callable[[str, str | None], Awaitable[str]]
    permissions: AppPermissions
    servers: AppMcp
    places: WeftPaths
    environ: Mapping[str, str]


class ForeignSetup:
    """The set-up of the agents of one user."""

    def __init__(self, places: ForeignPlaces, terms: SetupTerms) -> None:
        self._home = terms.places.user
        self._places = places
        self._terms = terms
        self._copies = TextCopies(terms.places.config)

    async def take(self, agent: str, write: bool) -> list[SetupItem]:
        """What there is, written where it is new and `write` is true."""
        found = [*await self._model(agent, write)]
        found += await run_sync(self._texts, agent, write)
        found += self._servers(agent, write)
        found += await self._rules(agent, write)
        found += await run_sync(lambda: list(self._not_taken(agent)))
        return found

    # -- its settings

    def _settings(self, agent: str) -> Mapping[str, Any]:
        """The user's own settings of an agent; empty where they cannot be read."""
        names = {"codex": ("config.toml",), "opencode": OPENCODE_SETTINGS}
        found: dict[str, Any] = {}
        for name in names.get(agent, ("settings.json",)):
            found |= self._read(agent, name) or {}
        return found

    def _read(self, agent: str, name: str) -> Mapping[str, Any] | None:
        """One file of settings; None where it cannot be read."""
        folder = {
            "claude": self._places.claude,
            "codex": self._places.codex,
            "pi": self._places.pi,
            "opencode": self._home / ".config" / "opencode",
        }[agent]
        try:
            file = read_small_text(user_folder(folder), name, _LARGEST)
            text = file.text if file is not None else "{}"
            if name.endswith(".toml"):
                import tomllib  # only for a file of that kind

                return tomllib.loads(text) if file is not None else {}
            return table(json.loads(plain_json(text)))
        except (UsageError, ValueError, RecursionError):
            return None

    async def _model(self, agent: str, write: bool) -> list[SetupItem]:
        settings = await run_sync(self._settings, agent)
        name = one_line(_model_of(agent, settings), 120)
        if not name:
            return []
        if name == self._terms.model:
            return [SetupItem(kind="model", name=name, state="there")]
        try:
            self._terms.check_model(name)
            if write:
                await self._terms.change_setting("model.default", name)
        except UsageError as error:
            return [SetupItem(kind="model", name=name, state="left out", why=str(error))]
        why = f"in the place of {self._terms.model}" if self._terms.model else ""
        return [SetupItem(kind="model", name=name, state="made" if write else "new", why=why)]

    # -- instructions, skills, commands

    def _texts(self, agent: str, write: bool) -> list[SetupItem]:
        folder = {
            "claude": self._places.claude,
            "codex": self._places.codex,
            "pi": self._places.pi,
            "opencode": self._home / ".config" / "opencode",
        }[agent]
        found: list[SetupItem] = []
        name = "CLAUDE.md" if agent == "claude" else "AGENTS.md"
        if copied := self._copies.file(folder / name, "AGENTS.md", write):
            found.append(_copied("instructions", copied.name, copied))
        commands = {"claude": ["commands"], "codex": ["prompts"], "pi": ["prompts"]}
        for inner in commands.get(agent, ["command", "commands"]):
            copies = self._copies.texts(folder / inner, "commands", write)
            found += [_copied("command", f"/{Path(each.name).stem}", each) for each in copies]
        # Claude Code's are read where they are.
        for inner in [] if agent == "claude" else ["skills", "skill"]:
            copies = self._copies.folders(folder / inner, "skills", "SKILL.md", write)
            found += [_copied("skill", each.name, each) for each in copies]
        return found

    # -- servers and rules

    def _servers(self, agent: str, write: bool) -> list[SetupItem]:
        servers, found = self._terms.servers, list[SetupItem]()
        try:
            files = servers.import_files(agent) if agent != "pi" else ()
        except UsageError:
            return []
        # Only the user's: a project may lie below the home folder, and name what it likes.
        known = {row.name for row in servers.status() if row.scope != "project"}
        places = {
            str(self._home / each[2:]) for each in FILES.get(agent, ()) if each.startswith("~/")
        }
        own = [path for path in files if path in places]
        for entry in (each for path in own for each in _importable(servers, path)):
            if entry.name in known:
                found.append(SetupItem(kind="server", name=entry.name, state="there"))
                continue
            try:
                if entry.problem:
                    raise UsageError(entry.problem)
                if write:
                    servers.add(entry.name, entry.entry, "user")
            except UsageError as error:
                why = one_line(str(error), 300)
                item = SetupItem(kind="server", name=entry.name, state="left out", why=why)
            else:
                state: Literal["made", "new"] = "made" if write else "new"
                given = ", ".join(map(str, table(entry.entry.get("env"))))
                why = one_line(f"{entry.shown}{' with ' if given else ''}{given}", 300)
                item = SetupItem(kind="server", name=entry.name, state=state, why=why)
            known.add(entry.name)
            found.append(item)
        return found

    async def _rules(self, agent: str, write: bool) -> list[SetupItem]:
        files = {
            "claude": [self._places.claude / each for each in _CLAUDE_SETTINGS],
            "codex": sorted((self._places.codex / "rules").glob("*.rules")),
        }.get(agent, [])
        found = [] if agent != "opencode" else await self._denials(write)
        for path in (each for each in files if each.is_file()):
            try:
                rules = await self._terms.permissions.import_rules([str(path)], keep=write)
            except UsageError as error:
                why = one_line(str(error), 300)
                found.append(SetupItem(kind="rule", name=path.name, state="left out", why=why))
                continue
            for rule in rules:
                found.append(await self._rule(rule, write))
        return found

    async def _rule(self, rule: ImportedRule, write: bool) -> SetupItem:
        name = f"{rule.verdict} {one_line(rule.rule, 200)}"
        if rule.state != "left out":
            made = "made" if write and rule.state == "new" else rule.state
            return SetupItem(kind="rule", name=name, state=made)
        whole = _whole_tool(rule)
        if not whole:
            return SetupItem(kind="rule", name=name, state="left out", why=one_line(rule.why, 300))
        return await self._deny(whole, f"for {name}, which our rules cannot say", write)

    async def _denials(self, write: bool) -> list[SetupItem]:
        """What opencode's settings deny.  What they allow is not taken."""
        found: list[SetupItem] = []
        for name in OPENCODE_SETTINGS:
            settings = self._read("opencode", name)
            if settings is None:
                why = "it cannot be read, and what it denies is not denied here"
                found.append(SetupItem(kind="rule", name=name, state="left out", why=why))
                continue
            for said in opencode_denials(settings):
                if not said.rules:
                    item = SetupItem(kind="rule", name=said.name, state="left out", why=said.why)
                    found.append(item)
                found += [await self._deny(rule, said.why, write) for rule in said.rules]
        return found

    async def _deny(self, tool: str, why: str, write: bool) -> SetupItem:
        """Deny a whole tool: a denial is never dropped."""
        permissions = self._terms.permissions
        is_there = any(each.verdict == "deny" and each.rule == tool for each in permissions.list())
        if write and not is_there:
            await permissions.add("deny", tool)
        state: Literal["there", "made", "new"] = "there" if is_there else "made" if write else "new"
        return SetupItem(kind="rule", name=f"deny {tool}", state=state, why=why)

    # -- what is never taken

    def _not_taken(self, agent: str) -> Iterator[SetupItem]:
        settings = self._settings(agent)
        hooks = settings.get("hooks") or settings.get("notify") or settings.get("plugin")
        if hooks:
            names = ", ".join(map(str, hooks)) if isinstance(hooks, dict) else "programs"
            yield SetupItem(
                kind="hook", name=one_line(names, 120), state="left out", why=_FOREIGN_HOOKS
            )
        keys = {
            "claude": self._places.claude / ".credentials.json",
            "codex": self._places.codex / "auth.json",
            "pi": self._places.pi / "auth.json",
            "opencode": self._places.opencode / "auth.json",
        }[agent]
        if os.path.lexists(keys):
            yield SetupItem(kind="key", name=keys.name, state="left out", why=_FOREIGN_KEYS)


_CLAUDE_SETTINGS: Final = ("settings.json", "settings.local.json")
_CLAUDE_ALIASES: Final = frozenset({"opus", "sonnet", "haiku", "opusplan", "default", "best"})


def _model_of(agent: str, settings: Mapping[str, Any]) -> str:
    """The model that an agent's settings name, as we name it."""
    given = settings.get("model")
    name = given if isinstance(given, str) else ""
    match agent:
        case "claude":
            is_alias = name.partition("[")[0] in _CLAUDE_ALIASES
            return f"anthropic:{name}" if name and not is_alias else ""
        case "codex":
            provider = settings.get("model_provider", "openai")
            return f"{provider}:{name}" if name else ""
        case "pi":
            provider, model = settings.get("defaultProvider"), settings.get("defaultModel")
            return f"{provider}:{model}" if provider and model else ""
        case _:
            provider, _, model = name.partition("/")
            return f"{provider}:{model}" if model else ""


def _whole_tool(rule: ImportedRule) -> str:
    """The tool that is denied as a whole, because a denial of it cannot be said here."""
    tool = our_tool_name(rule.rule.partition("(")[0])
    if rule.verdict == "deny" and tool in CLAUDE_NAMES:
        return tool
    # A statement that was not understood: it may forbid a command.
    return "shell" if rule.verdict == "ask" and "forbidden" in rule.rule else ""


def _importable(servers: AppMcp, path: str) -> list[Any]:
    try:
        return list(servers.importable(path))
    except UsageError:
        return []


def _copied(kind: SetupKind, name: str, copied: Any) -> SetupItem:
    return SetupItem(kind=kind, name=name, state=copied.state, why=copied.why)
