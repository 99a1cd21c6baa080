"""Agents as Markdown files: settings at the top, the system prompt below.

A definition only describes.  Whatever it asks for is cut down to what the session has that uses it:
its tools are taken from that session's, its permission mode is never above that session's (nor
above the user's, where a session is started as an agent).  So a project may bring definitions of
its own without being trusted. Names of tools and modes are also understood as other agents write
them.  A file that cannot be read is left out and named.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from weft.errors import UsageError
from weft.permissions import EDITING_TOOLS, MODES, Mode, our_tool_name
from weft.project.agent_list import listing_of
from weft.project.frontmatter import (
    brief,
    refuse_local_weights,
    setting_text,
    split_front_matter,
)
from weft.workspace import SourceFolder, list_folder, read_small_text

LARGEST_FILE: Final = 256 * 1024
LONGEST_DESCRIPTION: Final = 1024
MOST_AGENTS: Final = 500
"""Files that are tried of a project, and as many of the user's own."""
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
ALL_TOOLS: Final = "*"
_OF_SERVERS: Final = "mcp__"
_EVERY: Final = "mcp__*"

GENERAL: Final = "general"
_FOREIGN_MODES: Final[dict[str, Mode]] = {
    "acceptEdits": "accept_edits",
    "bypassPermissions": "bypass",
    # Elsewhere the mode that denies instead of asking; the nearest one here asks.
    "dontAsk": "default",
}


class AgentDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of agent."""

    name: str
    description: str = ""
    prompt: str = ""
    """Its system prompt; empty for the usual one."""
    tools: tuple[str, ...] | None = None
    """None: all that the session has."""
    disallowed: tuple[str, ...] = ()
    model: str = ""
    """Empty: the model of the session that uses it."""
    permission_mode: Mode | None = None
    max_turns: int | None = None
    isolation: Literal["", "worktree"] = ""
    background: bool = False
    path: str = ""
    is_project: bool = False
    """The project brings it, not the user."""

    def choose(self, available: Iterable[str]) -> tuple[str, ...]:
        """Of the tools that are there, those that it wants."""
        return tuple(
            name
            for name in available
            if (self.tools is None or name in self.tools) and name not in self.disallowed
        )

    def choose_to_begin(self, available: Iterable[str]) -> list[str]:
        """The same for a session that begins as this agent: of the tools of servers, which are
        known once those run, there are only names and patterns yet.

        A pattern that covers what the agent may not have is left out whole.
        """
        there = list(available)
        own = [name for name in self.choose(there) if not name.startswith(_OF_SERVERS)]
        given = [name for name in there if name.startswith(_OF_SERVERS)]
        wanted = [_EVERY] if self.tools is None else self.tools
        both = [name for name in given if any(_covers(each, name) for each in wanted)]
        both += [name for name in wanted if any(_covers(each, name) for each in given)]
        refused = [name for name in self.disallowed if name.startswith(_OF_SERVERS)]
        kept = [
            name
            for name in both
            if not any(_covers(each, name) or _covers(name, each) for each in refused)
        ]
        return list(dict.fromkeys([*own, *kept]))


def _covers(pattern: str, name: str) -> bool:
    """Whether a pattern of tools of servers means a name; `mcp__server` means all of that one."""
    from fnmatch import fnmatchcase  # few agents name such tools

    is_one = pattern.startswith(_OF_SERVERS)
    return is_one and (fnmatchcase(name, pattern) or fnmatchcase(name, f"{pattern}__*"))


class AgentDefinitions(msgspec.Struct, frozen=True, kw_only=True):
    """All agents of a project, and what is wrong with those that are left out."""

    found: dict[str, AgentDefinition] = {}
    problems: tuple[str, ...] = ()

    def listing(self) -> str:
        """Each with its description, a line each, for the model."""
        return listing_of(self.found.values())

    def masked(self, redact: Callable[[str], str]) -> AgentDefinitions:
        """The same without secrets in what a model reads."""
        found = {
            name: msgspec.structs.replace(
                each, prompt=redact(each.prompt), description=redact(each.description)
            )
            for name, each in self.found.items()
        }
        return msgspec.structs.replace(self, found=found)


GENERAL_AGENT: Final = AgentDefinition(
    name=GENERAL, description="Handles any task, with the tools of this session."
)


def find_definitions(
    folders: Iterable[SourceFolder], *, for_users: bool = False
) -> AgentDefinitions:
    """The agents in these folders, nearest folder first: the first of a name counts.  `for_users`:
    those as well that only users talk to.

    What is built in only the user can replace: a project that could would decide what a plain
    `agent` call, which names no kind, is asked to do.
    """
    found: dict[str, AgentDefinition] = {}
    problems: list[str] = []
    # Counted apart, so that a project with very many files does not keep the user's from being
    # read.
    tried = {True: 0, False: 0}
    for folder, name in _files(folders, problems):
        tried[folder.is_project] += 1
        if tried[folder.is_project] > MOST_AGENTS:
            if tried[folder.is_project] == MOST_AGENTS + 1:
                problems.append(f"{folder.path}: there are more than {MOST_AGENTS} agents")
            continue
        try:
            definition = _checked(read_definition(folder, name, for_users=for_users), folder, name)
        except UsageError as error:
            problems.append(str(error))
            continue
        if definition is not None:
            found.setdefault(definition.name, definition)
    found.setdefault(GENERAL, GENERAL_AGENT)
    return AgentDefinitions(
        found=dict(sorted(found.items())), problems=tuple(dict.fromkeys(problems))
    )


def _files(
    folders: Iterable[SourceFolder], problems: list[str]
) -> Iterator[tuple[SourceFolder, str]]:
    for folder in folders:
        try:
            listing = list_folder(folder)
        except UsageError as error:
            problems.append(str(error))
            continue
        problems += listing.problems
        yield from ((folder, each.name) for each in listing.entries if each.name.endswith(".md"))


def _checked(
    definition: AgentDefinition | None, folder: SourceFolder, name: str
) -> AgentDefinition | None:
    if definition is not None and folder.is_project:
        refuse_local_weights(definition.model, f"{folder.path}/{name}")
    if definition is not None and folder.is_project and definition.name == GENERAL:
        raise UsageError(
            f"{folder.path}/{name}: {GENERAL!r} is built in, and a project cannot replace it; "
            "give the agent another name"
        )
    return definition


def read_definition(
    folder: SourceFolder, name: str, *, for_users: bool = False
) -> AgentDefinition | None:
    """The agent in one file; None when it is not for use by other agents, unless `for_users`.

    Raises:
        UsageError: it is not what a definition must be.
    """
    file = read_small_text(folder, name, LARGEST_FILE)
    found = None if file is None else parse_definition(file.text, file.path, for_users=for_users)
    return found and msgspec.structs.replace(found, is_project=folder.is_project)


def parse_definition(text: str, path: str, *, for_users: bool = False) -> AgentDefinition | None:
    """`read_definition`, from text that was read already."""
    settings, body = split_front_matter(text, path)
    # OpenCode's word for an agent that users talk to; it is no helper for other agents.
    if settings.get("mode") == "primary" and not for_users:
        return None
    name = setting_text(settings, "name", path) or Path(path).stem
    if not NAME.fullmatch(name):
        raise UsageError(f"{path}: {brief(name)} cannot be the name of an agent")
    tools, refused = _tools(settings, path)
    return AgentDefinition(
        name=name,
        description=setting_text(settings, "description", path)[:LONGEST_DESCRIPTION],
        prompt=body,
        tools=tools,
        disallowed=(*refused, *_names(settings.get("disallowedTools", ()), path)),
        model=_model(setting_text(settings, "model", path)),
        permission_mode=_mode(settings.get("permissionMode"), path),
        max_turns=_count(settings.get("maxTurns"), path),
        isolation=_isolation(settings.get("isolation"), path),
        background=settings.get("background") is True,
        path=path,
    )


def brought_definition(name: str, written: Any) -> AgentDefinition:
    """An agent that a program brings, as the Agent SDK describes one.

    Raises:
        UsageError: it is not right, or cannot be had whole.
    """
    where = f"the agent {name!r}"
    if not isinstance(written, dict) or not NAME.fullmatch(name):
        raise UsageError(f"{where} is no name with an object")
    for key, value in written.items():
        if key not in _BROUGHT and value:
            raise UsageError(f"{where}: {key!r} is not supported here; leave it out")
    prompt = written.get("prompt") or ""
    if not isinstance(prompt, str):
        raise UsageError(f"{where}: its prompt is no text")
    tools, refused = _tools(written, where)
    return AgentDefinition(
        name=name,
        description=setting_text(written, "description", where)[:LONGEST_DESCRIPTION],
        prompt=prompt,
        tools=tools,
        disallowed=(*refused, *_names(written.get("disallowedTools") or (), where)),
        model=_model(setting_text(written, "model", where)),
        permission_mode=_mode(written.get("permissionMode"), where),
        max_turns=_count(written.get("maxTurns"), where),
        background=written.get("background") is True,
    )


_BROUGHT: Final = frozenset(
    {
        *("description", "prompt", "tools", "disallowedTools", "model", "permissionMode"),
        *("maxTurns", "background"),
        # These restrict nothing: how hard it thinks, and when its conversation is summarized.
        *("effort", "autoCompactWindow"),
    }
)


def _tools(settings: dict[str, Any], path: str) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """The tools that are wanted (None: all), and those that are not."""
    given = settings.get("tools")
    denied = _denied(settings.get("permission"))
    if isinstance(given, dict):  # name → true or false
        return None, (*denied, *(_tool(name) for name, use in given.items() if use is False))
    if given is None or given in (ALL_TOOLS, [ALL_TOOLS], "all"):
        return None, denied
    return _names(given, path), denied


def _denied(permission: Any) -> tuple[str, ...]:
    """What a map of permissions rules out; the rest of it is the user's decision."""
    if not isinstance(permission, dict):
        return ()
    denied = [_tool(name) for name, verdict in permission.items() if verdict == "deny"]
    # There, `edit` stands for everything that changes files; here these are tools of their own.
    return tuple(dict.fromkeys((*denied, *(EDITING_TOOLS if "edit" in denied else ()))))


def _names(given: Any, path: str) -> tuple[str, ...]:
    if isinstance(given, str):
        given = _split(given)
    if not isinstance(given, list | tuple) or not all(isinstance(each, str) for each in given):
        raise UsageError(f"{path}: tools are a list of names")
    return tuple(_tool(each) for each in given if each.strip())


def _split(names: str) -> list[str]:
    """Cut at commas outside of brackets: `Bash(git diff, git log), Read` names two tools."""
    found, depth = [""], 0
    for letter in names:
        depth += (letter == "(") - (letter == ")" and depth > 0)
        if letter == "," and not depth:
            found.append("")
        else:
            found[-1] += letter
    return found


def _tool(name: Any) -> str:
    """Our name for a tool.

    `Bash(git *)` is the tool alone, because rules about it are the user's.
    """
    plain = str(name).partition("(")[0].strip()
    # Names of MCP tools come from servers, whose case counts; ours are written in many ways.
    return plain if plain.startswith("mcp__") else our_tool_name(plain.lower())


def _model(name: str) -> str:
    """A model as `provider:model`.

    Other agents' short names mean nothing here, and the session's own model is used.
    """
    return name if ":" in name or "/" in name else ""


def _mode(given: Any, path: str) -> Mode | None:
    if given is None:
        return None
    mode = _FOREIGN_MODES.get(str(given), str(given))
    found = next((each for each in MODES if each == mode), None)
    if found is None:
        raise UsageError(f"{path}: no permission mode {brief(given)}; there are {', '.join(MODES)}")
    return found


def _count(given: Any, path: str) -> int | None:
    if given is None:
        return None
    # In Python `True` is an int, and `maxTurns: yes` would mean one turn.
    if not isinstance(given, int) or isinstance(given, bool) or given < 1:
        raise UsageError(f"{path}: maxTurns must be a number above zero")
    return given


def _isolation(given: Any, path: str) -> Literal["", "worktree"]:
    if given in (None, "", "none"):
        return ""
    if given != "worktree":
        raise UsageError(f"{path}: unknown isolation {brief(given)}; there is only worktree")
    return "worktree"
