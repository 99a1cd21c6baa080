"""MCP servers that the files of other agents name, as entries of ours.

Each agent has words of its own for the same: they are translated, what does nothing here is said,
and what cannot mean the same is a problem of its entry.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec

from weft.errors import UsageError
from weft.mcp import ServerEntry, restricting_key, variables_in

FILES: Final = {
    "claude": ("~/.claude.json", ".mcp.json"),
    "codex": ("~/.codex/config.toml",),
    "opencode": (
        *("~/.config/opencode/opencode.json", "~/.config/opencode/opencode.jsonc"),
        *("opencode.json", "opencode.jsonc"),
    ),
    "vscode": (".vscode/mcp.json",),
}
"""Where other agents have their servers; relative to the project."""
AGENTS: Final = tuple(FILES)
LARGEST: Final = 64 * 1024 * 1024
"""Bytes of a file; some agents keep their history in the same one."""
_TABLES: Final = ("mcpServers", "mcp_servers", "mcp", "servers")
_OURS: Final = frozenset(field.encode_name for field in msgspec.structs.fields(ServerEntry))
_OPEN: Final = re.compile(r"\$\{[A-Za-z]+:(?!-)[^}]*\}|\{(?:env|file):[^}]*\}")
"""What another agent would fill in."""
_COMMENT: Final = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_LAST_COMMA: Final = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])')

_Kind = TypeVar("_Kind", str, list[Any], dict[str, Any])


class ForeignEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A server of another agent."""

    name: str
    entry: dict[str, Any]
    unused: tuple[str, ...] = ()
    """Keys that do nothing here."""
    problem: str = ""
    """Why it cannot be taken over; empty when it can."""

    @property
    def variables(self) -> tuple[str, ...]:
        """What it needs of the environment."""
        try:
            return variables_in(msgspec.convert(self.entry, ServerEntry))
        except msgspec.ValidationError:
            return ()

    @property
    def shown(self) -> str:
        """What it runs or reaches, in a line."""
        try:
            return msgspec.convert(self.entry, ServerEntry).shown
        except msgspec.ValidationError:
            return "what cannot be read"


def entries_in(path: str, project: str) -> list[ForeignEntry]:
    """The servers that a file names for a project, the nearest last.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        text = _plain_file(path).decode()
        whole = _toml(text) if path.endswith(".toml") else json.loads(plain_json(text))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"cannot read {path!r}: {error}") from error
    if not isinstance(whole, dict):
        return []
    own = whole.get("projects")
    local = own.get(project) if isinstance(own, dict) else None
    tables: list[Any] = [
        *map(whole.get, _TABLES),
        local.get("mcpServers") if isinstance(local, dict) else {},
    ]
    found = {
        name: _read(name, written)
        for table in tables
        if isinstance(table, dict)
        for name, written in table.items()
        if isinstance(written, dict)
    }
    return list(found.values())


def _plain_file(path: str) -> bytes:
    """What stands in a file, which a project may have brought: no pipe is waited for."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(handle, "rb") as file:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode) or about.st_size > LARGEST:
            raise ValueError(f"it is no plain file of at most {LARGEST // 1024**2} MB")
        return file.read(LARGEST)


def _toml(text: str) -> Any:
    import tomllib  # only for a file of that kind

    return tomllib.loads(text)


def plain_json(text: str) -> str:
    """JSON without comments and last commas, which editors allow."""
    without = _COMMENT.sub(lambda found: found[1] or "", text.removeprefix("\ufeff"))
    return _LAST_COMMA.sub(lambda found: found[1] or "", without)


def _read(name: str, written: dict[str, Any]) -> ForeignEntry:
    try:
        entry = _each_text(_translated(dict(written)), _filled)
    except (ValueError, OverflowError) as error:
        return ForeignEntry(name=name, entry={}, problem=f"its entry is not right: {error}")
    unused = tuple(key for key in entry if key not in _OURS and not restricting_key({key: 1}))
    kept = {key: value for key, value in entry.items() if key not in unused}
    left = _OPEN.search(json.dumps(kept))
    problem = f"{left[0]} has no meaning here" if left else ""
    return ForeignEntry(name=name, entry=kept, unused=unused, problem=problem)


def _translated(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry in our words."""
    command = entry.get("command")
    if isinstance(command, list):  # opencode
        entry["command"], entry["args"] = command[0] if command else "", command[1:]
    if "environment" in entry:
        entry["env"] = entry.pop("environment")
    if entry.pop("enabled", True) is False:
        entry["disabled"] = True
    for theirs, ours in (
        ("startup_timeout_sec", "startupTimeout"),
        ("tool_timeout_sec", "timeout"),
    ):
        if isinstance(seconds := entry.pop(theirs, None), int | float):
            entry[ours] = round(seconds * 1000)
    if "startup_timeout_ms" in entry:
        entry["startupTimeout"] = entry.pop("startup_timeout_ms")
    _add_lent(entry)
    return entry


def _add_lent(entry: dict[str, Any]) -> None:
    """What Codex takes out of the environment, which an entry of ours names."""
    own = entry.pop("http_headers", None) or entry.get("headers")
    headers = dict(_as(dict, own, "headers"))
    for name, variable in _as(dict, entry.pop("env_http_headers", None), "headers").items():
        headers[name] = f"${{{_as(str, variable, 'a variable')}}}"
    if token := _as(str, entry.pop("bearer_token_env_var", None), "bearer_token_env_var"):
        headers["Authorization"] = f"Bearer ${{{token}}}"
    names = _as(list, entry.pop("env_vars", None), "env_vars")
    lent = {name: f"${{{name}}}" for name in names if _as(str, name, "a variable")}
    if headers:
        entry["headers"] = headers
    if lent:
        entry["env"] = {**_as(dict, entry.get("env"), "env"), **lent}


def _as(kind: type[_Kind], value: Any, what: str) -> _Kind:
    """A value of this kind; an empty one where none is given.

    Raises:
        ValueError: it is of another kind.
    """
    if value is None:
        return kind()
    if not isinstance(value, kind):
        raise ValueError(f"{what} cannot be {json.dumps(value)[:40]}")
    return value


def _filled(text: str) -> str:
    """A text with the variables of other agents in our spelling."""
    text = re.sub(r"\$?\{env:([A-Za-z_][A-Za-z0-9_]*)\}", r"${\1}", text)
    text = text.replace("${workspaceFolder}", ".").replace("${workspaceRoot}", ".")
    # What VS Code asks for when it starts a server is a variable here.
    return re.sub(r"\$\{input:([^}]+)\}", lambda found: f"${{{_variable(found[1])}}}", text)


def _variable(name: str) -> str:
    made = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_").upper()
    return made if made[:1].isalpha() else f"INPUT_{made}"


def _each_text(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_each_text(each, change) for each in value]
    if isinstance(value, dict):
        return {key: _each_text(each, change) for key, each in value.items()}
    return value
