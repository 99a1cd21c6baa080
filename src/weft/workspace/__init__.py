"""Files and programs: the only door to the machine.

Opens paths beneath a root, writes atomically, runs programs in groups of their own.  Knows no tool and no session.
"""

from weft.workspace.base import Command, FileState, Runner, RunResult, Touched, Workspace

__all__ = ["Command", "FileState", "RunResult", "Runner", "Touched", "Workspace"]
