"""What MCP servers of an application are started with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from weft.actors import Supervisor
from weft.clock import Clock
from weft.config.paths import WeftPaths
from weft.config.settings import Config
from weft.redact import Redactor


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
    is_sandboxed: bool = True
    """False where programs run as they are."""
