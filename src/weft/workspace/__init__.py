"""Files and programs: the only access to the machine.

Opens paths beneath a root, writes atomically, runs programs in groups of their own.  Knows no tool
and no session. What few starts of the program need is loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from weft.workspace.base import (
    ChangedFile,
    ChangeReview,
    FileImage,
    FileState,
    ProcessCommand,
    ReviewedChanges,
    ReviewedFile,
    Runner,
    RunResult,
    Workspace,
)
from weft.workspace.process.environment import scrubbed, secret_values
from weft.workspace.safe_read import (
    SmallText,
    SourceFolder,
    is_there,
    list_folder,
    printable_path,
    project_folders,
    read_beneath,
    read_small_file,
    read_small_text,
    user_folder,
)
from weft.workspace.seen_versions import SeenVersions

if TYPE_CHECKING:
    from weft.workspace.bare_repositories import steers_git
    from weft.workspace.boundaries.lines import LineRange, lines_of
    from weft.workspace.boundaries.workspace import (
        BoundaryRange,
        BoundedWorkspace,
        SessionBoundaries,
    )
    from weft.workspace.git import SafeGit, open_safe_git
    from weft.workspace.git_changes import GitChanges, uncommitted_changes
    from weft.workspace.git_repository import (
        GitRepository,
        find_repository,
        read_pointer,
        read_small,
    )
    from weft.workspace.history.inotify import FolderWatches, InotifyEvent, InotifyWatcher
    from weft.workspace.history.made_commits import commits_since, head_record
    from weft.workspace.ignore import IgnoreFile, IgnoreRules, ignore_of, read_ignore_file
    from weft.workspace.ignore_traps import unless_trapped
    from weft.workspace.local import LocalWorkspace
    from weft.workspace.process.background_groups import BACKGROUND_GROUPS
    from weft.workspace.process.command_keeper import COMMAND_KEEPER
    from weft.workspace.process.piped import PipedProgram
    from weft.workspace.process.runner import LocalRunner, kill_orphans
    from weft.workspace.skipped_folders import SKIPPED_FOLDERS

__all__ = [
    "BACKGROUND_GROUPS",
    "COMMAND_KEEPER",
    "SKIPPED_FOLDERS",
    "BoundaryRange",
    "BoundedWorkspace",
    "ChangeReview",
    "ChangedFile",
    "FileImage",
    "FileState",
    "FolderWatches",
    "GitChanges",
    "GitRepository",
    "IgnoreFile",
    "IgnoreRules",
    "InotifyEvent",
    "InotifyWatcher",
    "LineRange",
    "LocalRunner",
    "LocalWorkspace",
    "PipedProgram",
    "ProcessCommand",
    "ReviewedChanges",
    "ReviewedFile",
    "RunResult",
    "Runner",
    "SafeGit",
    "SeenVersions",
    "SessionBoundaries",
    "SmallText",
    "SourceFolder",
    "Workspace",
    "commits_since",
    "find_repository",
    "head_record",
    "ignore_of",
    "is_there",
    "kill_orphans",
    "lines_of",
    "list_folder",
    "open_safe_git",
    "printable_path",
    "project_folders",
    "read_beneath",
    "read_ignore_file",
    "read_pointer",
    "read_small",
    "read_small_file",
    "read_small_text",
    "scrubbed",
    "secret_values",
    "steers_git",
    "uncommitted_changes",
    "unless_trapped",
    "user_folder",
]

_HOMES = {
    "BoundaryRange": "boundaries.workspace",
    "BoundedWorkspace": "boundaries.workspace",
    "SessionBoundaries": "boundaries.workspace",
    "LocalWorkspace": "local",
    "LineRange": "boundaries.lines",
    "lines_of": "boundaries.lines",
    "LocalRunner": "process.runner",
    "BACKGROUND_GROUPS": "process.background_groups",
    "COMMAND_KEEPER": "process.command_keeper",
    "PipedProgram": "process.piped",
    "kill_orphans": "process.runner",
    "GitChanges": "git_changes",
    "GitRepository": "git_repository",
    "SafeGit": "git",
    "commits_since": "history.made_commits",
    "find_repository": "git_repository",
    "head_record": "history.made_commits",
    "FolderWatches": "history.inotify",
    "IgnoreFile": "ignore",
    "IgnoreRules": "ignore",
    "InotifyEvent": "history.inotify",
    "InotifyWatcher": "history.inotify",
    "ignore_of": "ignore",
    "read_ignore_file": "ignore",
    "SKIPPED_FOLDERS": "skipped_folders",
    "open_safe_git": "git",
    "read_pointer": "git_repository",
    "read_small": "git_repository",
    "steers_git": "bare_repositories",
    "unless_trapped": "ignore_traps",
    "uncommitted_changes": "git_changes",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
