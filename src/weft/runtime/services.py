"""Services that the application shares with all its sessions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from weft.actors import Supervisor
from weft.clock import Clock
from weft.config.models import ModelRegistry
from weft.config.paths import WeftPaths
from weft.config.settings import Config
from weft.ids import SessionId
from weft.project.saved_rules import SavedRules
from weft.project.system_prompt import SystemPromptWriter
from weft.redact import Redactor
from weft.runtime.mcp.mcp_access import McpAccess
from weft.runtime.ports.local import HookProvider
from weft.runtime.stores import StoreRegistry
from weft.runtime.workspaces.workspace_factory import WorkspaceFactory

if TYPE_CHECKING:  # loaded where a project has decisions, or an index
    from weft.runtime.decisions.decision_book import DecisionBook
    from weft.runtime.index_access import IndexAccess


class ProjectIndexes(msgspec.Struct, frozen=True, kw_only=True):
    """The indexes of projects: which there are, and how they are reached."""

    exists: Callable[[str], bool]
    """Whether there is an index of a project that may be used."""
    may_make: Callable[[str], bool]
    """Whether one may be made without the user's asking; blocks for a look at the project."""
    access: Callable[[], IndexAccess]
    """Loaded with the first use."""


class DecisionGraphs(msgspec.Struct, frozen=True):
    """The decision graphs of projects, shared by all sessions on them."""

    kinds: dict[str, str] = msgspec.field(default_factory=dict)
    """Kinds of nodes that the program has registered, and what each is."""
    books: dict[tuple[int, str], DecisionBook] = msgspec.field(default_factory=dict)
    """By store and project."""


class Services(msgspec.Struct, frozen=True, kw_only=True):
    """What the application gives every session."""

    stores: StoreRegistry
    """Where sessions are stored."""
    supervisor: Supervisor
    config: Config
    models: ModelRegistry
    clock: Clock
    sleep: Callable[[float], Awaitable[None]]
    """Waits before a retry; a test hands in one that does not wait."""
    workspaces: WorkspaceFactory
    """Files, commands and the sandbox."""
    prompter: SystemPromptWriter
    redact: Redactor
    places: WeftPaths
    saved_rules: SavedRules
    """What the user allowed for good."""
    hooks: Callable[[SessionId, str], HookProvider | None]
    """The hooks of a session on a project; None where there are none."""
    is_trusted: Callable[[str], Awaitable[bool]]
    """Whether the user trusts a project as it is now."""
    indexes: ProjectIndexes
    mcp: McpAccess
    """MCP servers; nothing of them is loaded where none is configured."""
    project_path: str
    """The project of a session that names none."""
    seal: Callable[[Sequence[str]], str]
    """Signs what the user gives to rounds that begin with no user there."""
    decisions: DecisionGraphs = msgspec.field(default_factory=DecisionGraphs)
