"""What MCP servers of an application are started with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from weft.actors import Supervisor
from weft.clock import Clock
from weft.config.paths import WeftPaths
from weft.config.settings import Config
from weft.redact import Redactor

if TYPE_CHECKING:  # loaded where a program drives us
    from weft.runtime.mcp.program_servers import ProgramServers


class McpTerms(msgspec.Struct, frozen=True, kw_only=True):
    """The same for all projects."""

    config: Config
    environ: Mapping[str, str]
    places: WeftPaths
    hidden: list[Path]
    """Files and folders that servers must not see; it may grow."""
    redact: Redactor
    supervisor: Supervisor
    clock: Clock
    given: tuple[str, ...] = ()
    """What the command line brings, each a file or JSON."""
    is_strict: bool = False
    """Nothing else counts."""
    without_project: bool = False
    """The project's own file does not count."""
    is_sandboxed: bool = True
    """False where programs run as they are."""
    program_servers: Any = None
    """`ProgramServers` where a program drives us: those that it has inside itself, and names."""

    @property
    def program(self) -> ProgramServers | None:
        """The servers of the program that drives us."""
        found: ProgramServers | None = self.program_servers
        return found
