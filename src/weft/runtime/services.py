"""What the application gives every session."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from weft.actors import Supervisor
from weft.clock import Clock
from weft.config.models import ModelRegistry
from weft.config.settings import Config
from weft.ids import SessionId
from weft.project.saved_rules import SavedRules
from weft.project.system_prompt import SystemPromptWriter
from weft.redact import Redactor
from weft.runtime.file_history import FileHistoryRunner
from weft.runtime.port import HookProvider
from weft.runtime.stores import StoreRegistry
from weft.store import Store
from weft.workspace import Runner, Workspace

if TYPE_CHECKING:  # loaded where there is a sandbox: it costs start-up time
    from weft.runtime.sandbox import SandboxFactory


class Services(msgspec.Struct, frozen=True, kw_only=True):
    """What the application gives every session."""

    stores: StoreRegistry
    """Where sessions are kept."""
    supervisor: Supervisor
    config: Config
    models: ModelRegistry
    clock: Clock
    sleep: Callable[[float], Awaitable[None]]
    """How the waits before a retry are waited."""
    workspace: Callable[[str], Workspace]
    files: Callable[[str, Runner, Store], FileHistoryRunner]
    """What a session of a store needs to know what its commands changed, and to take it back."""
    runner: Runner
    confinement: Callable[[], SandboxFactory | None]
    """The sandbox that the commands of sessions run in; None where they run as they are."""
    prompter: SystemPromptWriter
    redact: Redactor
    handovers: Path
    """Where handover documents are kept."""
    hooks: Callable[[SessionId, str], HookProvider | None]
    """The hooks of a session on a project; None where there are none."""
    is_trusted: Callable[[str], Awaitable[bool]]
    """Whether the person trusts a project as it is now."""
    worktrees: Path
    """Where copies of projects for isolated agents are made."""
    saved_rules: SavedRules
    """What the person allowed for good."""
    home: str
    """The user's home folder."""
    project_path: str
    resolve_path: Callable[[str], str]
