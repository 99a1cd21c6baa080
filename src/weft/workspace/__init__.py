"""Files and programs: the only door to the machine.

Opens paths beneath a root, writes atomically, runs programs in groups of their own.  Knows no tool and no session.
"""

from weft.workspace.base import (
    Command,
    FileImage,
    FileState,
    Runner,
    RunResult,
    Touched,
    Workspace,
)
from weft.workspace.boundaries import LineRange, lines_of
from weft.workspace.boundaries_door import Bound, Boundaries, BoundedWorkspace
from weft.workspace.environment import scrubbed, secret_values
from weft.workspace.local import LocalWorkspace
from weft.workspace.overlay_versions import Versions
from weft.workspace.runner import LocalRunner, kill_orphans

__all__ = [
    "Bound",
    "Boundaries",
    "BoundedWorkspace",
    "Command",
    "FileImage",
    "FileState",
    "LineRange",
    "LocalRunner",
    "LocalWorkspace",
    "RunResult",
    "Runner",
    "Touched",
    "Versions",
    "Workspace",
    "kill_orphans",
    "lines_of",
    "scrubbed",
    "secret_values",
]
