"""The configuration of MCP servers: what an entry says, what it is called, and its variables.

An entry is kept as it is written.  What it means on this machine (`expanded`) is found out when the
server is started, so that a value of the environment is neither stored nor hashed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias

import msgspec

from weft.errors import UsageError
from weft.sha256 import sha256

Scope: TypeAlias = Literal["given", "local", "project", "user"]
SCOPES: Final[tuple[Scope, ...]] = ("given", "local", "project", "user")
"""Where an entry may stand; the first that has a name counts."""
Transport: TypeAlias = Literal["stdio", "http", "sse", "sdk"]

START_SECONDS: Final = 30.0
"""How long a call waits for a server that starts; then the server is late."""
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
MOST_SERVERS: Final = 100
MOST_WORDS: Final = 200
_TRANSPORTS: Final[Mapping[str, Transport]] = {
    "stdio": "stdio",
    "local": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamableHttp": "http",
    "remote": "http",
    "sse": "sse",
    "sdk": "sdk",
}
_RESTRICTING: Final = frozenset(
    {
        *("tools", "allowedTools", "disallowedTools", "blockedTools", "toolPermissions"),
        *("enabledTools", "disabledTools", "enabled_tools", "disabled_tools"),
        *("includeTools", "excludeTools", "toolFilter", "permissions", "permission_policy"),
    }
)
"""Keys with which other agents keep tools of a server from being used, or have them ask."""
# As texts: they are compiled where they are used, and the first request needs none of them.
_HEADER: Final = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_PASSWORD: Final = r"://[^/?#\s]*@"
_SECRET_QUERY: Final = (
    r"(?i)([?&][^=&#]*(?:key|token|secret|auth|pass|sig|code)[^=&#]*=)(?!\$\{)[^&#]+"
)
_VARIABLE: Final = r"\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}"


class ServerEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One server, as it is written down."""

    type: str = ""
    """`stdio`, `http` or `sse`; without it, what `command` or `url` says.  `sdk` is a server inside
    the program that drives us."""
    name: str = ""
    """What such a program calls it; nothing is found by it."""
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str = ""
    """Relative to the project; empty: the project."""
    url: str = ""
    headers: dict[str, str] = {}
    timeout: float | None = None
    """Milliseconds that a call may be silent."""
    startup_timeout: float | None = msgspec.field(default=None, name="startupTimeout")
    """Milliseconds that it may take to start."""
    sandbox: bool | Literal["on", "off"] = "on"
    network: bool = True
    trust_hints: bool = msgspec.field(default=False, name="trustHints")
    """Tools that say that they only read are taken at their word; counts in the user's own scopes.
    """
    disabled: bool = False

    @property
    def transport(self) -> Transport:
        """How it is spoken to."""
        if self.type:
            return _TRANSPORTS[self.type]
        return "http" if self.url else "stdio"

    @property
    def is_sandboxed(self) -> bool:
        """Whether it runs in the sandbox."""
        return self.sandbox not in (False, "off")

    @property
    def shown(self) -> str:
        """What it runs (and in which folder) or reaches, in a line, as it is written; without
        passwords in an address."""
        if self.transport == "sdk":
            return "a server inside the program that drives Weft"
        if self.url:
            return re.sub(_SECRET_QUERY, r"\1…", re.sub(_PASSWORD, "://…@", self.url))
        where = f" (in {self.cwd})" if self.cwd else ""
        return f"{' '.join((self.command, *self.args))}{where}"


class ConfiguredServer(msgspec.Struct, frozen=True, kw_only=True):
    """A server that is configured, be it right or not."""

    name: str
    scope: Scope
    source: str
    """The file that it stands in."""
    entry: ServerEntry = ServerEntry()
    digest: str = ""
    """Of all that is written of it, and for which project."""
    problem: str = ""
    """Why it cannot be used; empty when it can."""

    @property
    def is_users(self) -> bool:
        """The user wrote it down, and not a project."""
        return self.scope != "project"

    @property
    def is_inside(self) -> bool:
        """It is inside the program that drives us."""
        return not self.problem and self.entry.transport == "sdk"


def canonical(value: Any) -> bytes:
    """A value as JSON that is the same for every order of keys."""
    return msgspec.json.encode(value, order="deterministic")


def read_server(
    name: str, written: Any, *, scope: Scope, source: str, project: str
) -> ConfiguredServer:
    """A server out of what is written; what is wrong with it is its `problem`."""
    place = project if scope in ("local", "project") else ""
    made = ConfiguredServer(name=name, scope=scope, source=source)
    try:
        entry = msgspec.convert(written, ServerEntry)
        # Two servers of a program may be written alike, and are still two.
        told_apart = [name] if entry.type == "sdk" else []
        digest = sha256(canonical([place, written, *told_apart])).hexdigest()
    except (msgspec.ValidationError, RecursionError, UnicodeEncodeError) as error:
        return msgspec.structs.replace(made, problem=f"its entry is not right: {error}")
    problem = name_problem(name) or _restricted(name, written) or _entry_problem(entry)
    if not problem and entry.transport == "sdk" and scope != "given":
        problem = "only a program that drives Weft has servers of the type sdk"
    return msgspec.structs.replace(made, entry=entry, digest=digest, problem=problem)


def name_problem(name: str) -> str:
    """Why a server cannot be called so; empty when it can."""
    if NAME.fullmatch(name) is None:
        return f"{name!r} is no name of a server: use up to 40 letters, digits, - and _"
    # `mcp__a__b` must name one tool of one server, and a rule for `a` must not mean one of `a_`.
    if "__" in name or name.endswith("_"):
        return f"{name!r} is no name of a server: it holds two _ in a row, or ends with one"
    return ""


def restricting_key(written: Mapping[str, Any]) -> str:
    """The key of an entry that restricts it in another agent; empty where there is none."""
    found = (key for key, value in written.items() if value and value != ["*"])
    return next((key for key in found if key in _RESTRICTING), "")


def _restricted(name: str, written: Mapping[str, Any]) -> str:
    """What is written to restrict a server and would not: its author believes in it."""
    if not (key := restricting_key(written)):
        return ""
    return (
        f"its key {key!r} is not supported here: leave it out, and restrict its tools by rules "
        f"like mcp__{name}__TOOL in permissions.deny"
    )


def _entry_problem(entry: ServerEntry) -> str:
    if entry.type and entry.type not in _TRANSPORTS:
        return f"there is no transport {entry.type!r}: stdio, http and sse are known"
    if len(entry.args) > MOST_WORDS or len(entry.env) > MOST_WORDS:
        return f"it has more than {MOST_WORDS} arguments or variables"
    texts = [*_texts(entry), *entry.env]
    if any("\0" in text for text in texts):
        return "it holds a NUL"
    if wrong := [name for name in entry.env if not name or "=" in name]:
        return f"{wrong[0]!r} is no name of a variable"
    if entry.transport == "sdk":
        return "it has a command or an address" if entry.command or entry.url else ""
    if entry.transport == "stdio":
        return "" if entry.command.strip() else "it has no command"
    if not re.match(r"https?://[^/\s]", entry.url) and not entry.url.startswith("${"):
        return f"{entry.url!r} is no address: write http://… or https://…"
    if len(entry.headers) > MOST_WORDS:
        return f"it has more than {MOST_WORDS} headers"
    for name, value in entry.headers.items():
        if re.fullmatch(_HEADER, name) is None or "\n" in value or "\r" in value:
            return f"{name!r} is no header that can be sent"
    return ""


def checked_entry(name: str, written: Any) -> ServerEntry:
    """An entry that the user wants to add.

    Raises:
        UsageError: it is not right.
    """
    found = read_server(name, written, scope="user", source="", project="")
    if found.problem:
        raise UsageError(found.problem)
    return found.entry


# --- variables -----------------------------------------------------------------------------


def _texts(entry: ServerEntry) -> list[str]:
    return [
        *(entry.command, *entry.args, entry.url, entry.cwd),
        *entry.env.values(),
        *entry.headers.values(),
    ]


def variables_in(entry: ServerEntry) -> tuple[str, ...]:
    """The variables of the environment that an entry asks for, each once."""
    found = (match[1] for text in _texts(entry) for match in re.finditer(_VARIABLE, text))
    return tuple(dict.fromkeys(found))


def expanded(entry: ServerEntry, environ: Mapping[str, str]) -> ServerEntry:
    """The entry with the values of its variables.

    Raises:
        UsageError: one is not set, and has no default.
    """
    missing: list[str] = []

    def value(match: re.Match[str]) -> str:
        found = environ.get(match[1])
        # As a shell has it: an empty one counts as not set where there is a default.
        if match[2] and not found:
            return match[3]
        if found is None:
            missing.append(match[1])
        return found or ""

    def filled(text: str) -> str:
        return re.sub(_VARIABLE, value, text)

    made = _each_text(entry, filled)
    if missing:
        names = ", ".join(dict.fromkeys(missing))
        raise UsageError(f"it needs variables that are not set: {names}")
    return made


def _each_text(entry: ServerEntry, change: Callable[[str], str]) -> ServerEntry:
    return msgspec.structs.replace(
        entry,
        command=change(entry.command),
        args=tuple(map(change, entry.args)),
        env={name: change(text) for name, text in entry.env.items()},
        cwd=change(entry.cwd),
        url=change(entry.url),
        headers={name: change(text) for name, text in entry.headers.items()},
    )


def merged(found: Iterable[ConfiguredServer]) -> dict[str, ConfiguredServer]:
    """One server for each name: that of the first scope that has it, sorted by name."""
    kept: dict[str, ConfiguredServer] = {}
    for each in sorted(found, key=lambda server: SCOPES.index(server.scope)):
        kept.setdefault(each.name, each)
    return dict(sorted(kept.items()))
