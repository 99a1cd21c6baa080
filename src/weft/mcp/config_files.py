"""The files that name MCP servers: the user's own, and the project's `.mcp.json`.

The user's file has the servers of every project and, apart, those of one project alone (the scope
`local`).  A project's file counts for nothing before the user has agreed to what it names
(`project_choices`).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from weft.errors import UsageError
from weft.mcp.private_file import locked, read_private, replace_private
from weft.mcp.server_config import (
    MOST_SERVERS,
    ConfiguredServer,
    Scope,
    merged,
    read_server,
)

PROJECT_FILE: Final = ".mcp.json"
USER_FILE: Final = "mcp.json"
LARGEST: Final = 1024 * 1024
_KEY: Final = "mcpServers"


class ConfiguredServers(msgspec.Struct, frozen=True, kw_only=True):
    """All servers that are configured for a project."""

    servers: dict[str, ConfiguredServer] = {}
    covered: dict[str, ConfiguredServer] = {}
    """The user's own servers whose names the project takes for others."""
    problems: tuple[str, ...] = ()
    """What could not be read, a sentence each."""


class GivenServers(msgspec.Struct, frozen=True, kw_only=True):
    """What a command line brings."""

    texts: tuple[str, ...] = ()
    """Each a file, or JSON."""
    is_strict: bool = False
    """Nothing else counts."""
    without_project: bool = False
    """The project's own file does not count."""
    by_program: Mapping[str, Any] = {}
    """Servers that a program which drives us has named since, by name."""


def has_any(config: Path, project: str, given: GivenServers | None = None) -> bool:
    """Whether anything may be configured; two looks at the disk."""
    if given is not None and (given.texts or given.is_strict):
        return bool(given.texts)
    return os.path.exists(f"{config}/{USER_FILE}") or os.path.lexists(f"{project}/{PROJECT_FILE}")


def configured_servers(
    config: Path, project: str, given: GivenServers | None = None
) -> ConfiguredServers:
    """The servers of a project, by name; the nearest scope counts.

    Raises:
        UsageError: what the command line brings cannot be read.
    """
    given = given or GivenServers()
    found = _servers(dict(given.by_program), "given", "the program that drives Weft", project)
    found += [server for text in given.texts for server in _given(text, project)]
    problems: list[str] = []
    if not given.is_strict:
        found += _of_user(config, project, problems)
        found += [] if given.without_project else _of_project(project, problems)
    servers = merged(found)
    own = merged(each for each in found if each.is_users)
    covered = {name: own[name] for name, each in servers.items() if own.get(name, each) != each}
    return ConfiguredServers(servers=servers, covered=covered, problems=tuple(problems))


def _given(text: str, project: str) -> list[ConfiguredServer]:
    source = "--mcp-config"
    if not text.lstrip().startswith("{"):
        source = text
        try:
            data = Path(text).read_bytes()
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise UsageError(f"cannot read {text!r}: {why}") from error
    else:
        data = text.encode()
    try:
        table = _table(data)
    except ValueError as error:
        raise UsageError(f"{source}: {error}") from error
    found = _servers(table, "given", source, project)
    if wrong := next((each for each in found if each.problem), None):
        raise UsageError(f"{source}: {wrong.name}: {wrong.problem}")
    return found


def _of_user(config: Path, project: str, problems: list[str]) -> list[ConfiguredServer]:
    file = UserServers(config)
    try:
        content = file.read()
    except (OSError, ValueError) as error:
        problems.append(f"{file.path}: no server in it counts: {error}")
        return []
    local = content.projects.get(project, {})
    return [
        *_servers(local, "local", str(file.path), project),
        *_servers(content.servers, "user", str(file.path), project),
    ]


def _of_project(project: str, problems: list[str]) -> list[ConfiguredServer]:
    path = f"{project}/{PROJECT_FILE}"
    try:
        data = _project_data(path)
        return [] if data is None else _servers(_table(data), "project", path, project)
    except (OSError, ValueError) as error:
        problems.append(f"{path}: no server in it counts: {error}")
        return []


def _project_data(path: str) -> bytes | None:
    """The file, which a stranger may have made: no link is followed and no pipe waited for."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    with os.fdopen(handle, "rb") as file:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode) or about.st_size > LARGEST:
            raise ValueError("it is no plain file of at most 1 MB")
        return file.read(LARGEST)


def _table(data: bytes) -> dict[str, Any]:
    try:
        whole = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ValueError(f"it is not JSON ({error})") from error
    table = whole.get(_KEY) if isinstance(whole, dict) else None
    if not isinstance(table, dict):
        raise ValueError(f'it has no object "{_KEY}"')
    return table


def _servers(
    table: dict[str, Any], scope: Scope, source: str, project: str
) -> list[ConfiguredServer]:
    return [
        read_server(name, written, scope=scope, source=source, project=project)
        for name, written in list(table.items())[:MOST_SERVERS]
    ]


class _Content(msgspec.Struct, kw_only=True):
    servers: dict[str, Any] = msgspec.field(default_factory=dict, name=_KEY)
    projects: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict)
    """By project, servers of the scope `local`."""


class UserServers:
    """The user's own file, `~/.config/weft/mcp.json`."""

    def __init__(self, config: Path) -> None:
        self.path = config / USER_FILE

    def read(self) -> _Content:
        """What stands in it.

        Raises:
            ValueError: it is not JSON of this shape.
            OSError: it cannot be read, or others could have written it.
        """
        data = read_private(self.path)
        try:
            return _Content() if data is None else msgspec.json.decode(data, type=_Content)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            raise ValueError(str(error)) from error

    def names(self) -> set[str]:
        """All servers in it, of whatever project; none where it cannot be read."""
        try:
            content = self.read()
        except (OSError, ValueError):
            return set()
        return set(content.servers).union(*content.projects.values())

    def put(self, name: str, entry: Any, project: str = "") -> None:
        """Write a server down, for one project or (empty) for all.

        Raises:
            UsageError: the file cannot be read or written.
        """
        self._change(lambda content: _table_of(content, project).update({name: entry}))

    def remove(self, name: str, project: str = "") -> bool:
        """Take a server out; False when it was not there.

        Raises:
            UsageError: the file cannot be read or written.
        """
        found: list[Any] = []

        def take(content: _Content) -> None:
            found.append(_table_of(content, project).pop(name, None))

        self._change(take)
        return found[0] is not None

    def _change(self, change: Any) -> None:
        try:
            with locked(self.path):
                content = self.read()
                change(content)
                content.projects = {key: table for key, table in content.projects.items() if table}
                data = msgspec.json.format(msgspec.json.encode(content)) + b"\n"
                replace_private(self.path, data)
        except (OSError, ValueError) as error:
            raise UsageError(f"{self.path} cannot be changed: {error}") from error


def _table_of(content: _Content, project: str) -> dict[str, Any]:
    return content.projects.setdefault(project, {}) if project else content.servers


class ProjectServers:
    """A project's `.mcp.json`, for the user who writes it on the command line."""

    def __init__(self, project: str) -> None:
        self.path = Path(project) / PROJECT_FILE

    def put(self, name: str, entry: Any) -> None:
        """Write a server down; what else stands in the file stays.

        Raises:
            UsageError: the file cannot be read or written.
        """
        self._change(lambda table: table.update({name: entry}))

    def remove(self, name: str) -> bool:
        """Take a server out; False when it was not there.

        Raises:
            UsageError: the file cannot be read or written.
        """
        found: list[Any] = []
        self._change(lambda table: found.append(table.pop(name, None)))
        return found[0] is not None

    def _change(self, change: Any) -> None:
        try:
            data = _project_data(str(self.path))
            whole = {} if data is None else msgspec.json.decode(data, type=dict[str, Any])
            table = whole.setdefault(_KEY, {})
            if not isinstance(table, dict):
                raise ValueError(f'"{_KEY}" is no object')
            change(table)
            written = msgspec.json.format(msgspec.json.encode(whole)) + b"\n"
            mode = self.path.stat().st_mode & 0o777 if data is not None else 0o644
            replace_private(self.path, written)
            # The file is the project's, and others of the team may read it.
            self.path.chmod(mode)
        except (OSError, ValueError, msgspec.MsgspecError) as error:
            raise UsageError(f"{self.path} cannot be changed: {error}") from error


def shown_words(words: Sequence[str]) -> str:
    """A command line as a shell would take it."""
    import shlex  # only to show one

    return shlex.join(words)
