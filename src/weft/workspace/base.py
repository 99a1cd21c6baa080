"""The interfaces to the machine: files and programs as tools see them.

Tools never open a path or start a program themselves: they ask a `Workspace` and a `Runner`.  What
watches, limits or isolates (boundaries, sandbox, file history) wraps one of the two.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Literal, Protocol

import anyio
import msgspec

from weft.ids import BlobId, TreeHash


class FileState(msgspec.Struct, frozen=True, kw_only=True):
    """A regular file as it was read in one go."""

    path: str
    """Relative to the project with forward slashes; absolute when it lies outside."""
    data: bytes
    mode: int
    hash: BlobId
    """SHA-256 of `data`."""
    truncated: bool = False
    """Only the first bytes were read; then `hash` is of those and good for nothing but display."""
    size: int = 0


def unkept(kept_bytes: int) -> str:
    """Why what a file held is not kept where files of up to so many bytes are."""
    if not kept_bytes:
        return "nothing is kept, for history.quota or history.max_file is 0"
    return "too large"


KEPT_BYTES = 4 * 1024 * 1024
"""Content before and after a change is handed on up to this size."""


class ChangedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that a tool changed, with what was there before and after."""

    path: str
    action: Literal["created", "modified", "deleted"]
    before: BlobId | None = None
    after: BlobId | None = None
    data_before: bytes | None = None
    """Kept for the file history; None when there was no file, `missing`, or a folder."""
    data_after: bytes | None = None
    mode_before: int = 0
    """Kind and permissions as `lstat` has them, 0 where nothing was.

    Of a link, `before` is the hash of its target.
    """
    mode_after: int = 0
    missing: str = ""
    """Why what was there before cannot be had: too large, beyond the quota, …"""
    is_certain: bool = True
    """False when another program may have changed it: another command ran at the same time, or the
    program was interrupted.
    """
    folders: tuple[tuple[str, int], ...] = ()
    """Folders that were made on the way, the outermost first, each with its mode."""


class FileImage(msgspec.Struct, frozen=True, kw_only=True):
    """What is at a path: a file, a link or a folder."""

    mode: int
    """Kind and permissions as `lstat` has them.

    0 when only the content is known, of a regular file.
    """
    hash: BlobId | None = None
    """Of a file's content, of a link's target; None for a folder, and where it is not known."""
    data: bytes | None = None
    """The content; None when it was not asked for or is too large."""
    names: tuple[str, ...] = ()
    """What is in a folder."""


class ReviewedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A path that a command changed in the sandbox, before the change is the project's."""

    path: str
    """As the project shows it; of a folder, with a slash behind it."""
    action: Literal["created", "modified", "deleted"]
    is_ignored: bool = False
    """An ignore file leaves it out of the history."""
    data_before: bytes | None = None
    """None where nothing was, or where it was not read."""
    data_after: bytes | None = None


class ReviewedChanges(msgspec.Struct, frozen=True, kw_only=True):
    """What a command changed in the sandbox, judged and not yet carried over."""

    files: tuple[ReviewedFile, ...] = ()
    """What may reach the project."""
    remarks: tuple[str, ...] = ()
    """What may not, and why."""


ChangeReview = Callable[[ReviewedChanges], Awaitable[bool]]
"""Says whether changes are carried over."""


class ProcessCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A program to run: an argument vector, never a string for some shell to guess at."""

    argv: tuple[str, ...]
    cwd: str
    """Absolute."""
    env: Mapping[str, str] = {}
    """Added to the scrubbed environment."""
    timeout_seconds: float = 120.0
    stdin: bytes = b""
    only_reads: bool = False
    """We ourselves start it, and it changes nothing: what it changed need not be looked for."""
    drops_changes: bool = False
    """It was judged to only read: what it changes in the sandbox all the same, by a program that
    the project configures, does not reach the project."""
    review: ChangeReview | None = None
    """Asked before what it changed in the sandbox is carried over; where it says no, nothing is.
    Watchers of such a command get all that it prints."""
    is_unconfined: bool = False
    """Run it outside the sandbox: the user was asked, and allowed it."""
    hidden: tuple[str, ...] = ()
    """Absolute paths that it must not see, besides those that no command sees; only a sandbox can
    hide them.
    """
    hosts: tuple[str, ...] = ()
    """Hosts that it may reach from the sandbox (`pypi.org`, `localhost:8080`), for the user allowed
    them for this run; besides those that rules allow."""
    label: str = ""
    """The id of the call it runs for, by which what a crash left of it is found."""
    errors_apart: bool = False
    """Keep standard error by itself, in `RunResult.errors`; watchers do not see it then."""
    stop: anyio.Event | None = None
    """Ends it when set, as a time-out would.

    Such a command may go on for hours: watchers get all that it prints, and only head and tail are
    kept.
    """


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a program ended."""

    exit_code: int
    """Negative: ended by that signal."""
    output: str
    """Standard output and error in the order they came; head and tail where it was too long."""
    errors: str = ""
    """Standard error, where it was asked for apart; then it is not in `output`."""
    truncated: bool = False
    full_output: bytes | None = None
    """The whole of it up to a cap, where `output` was cut."""
    total_bytes: int = 0
    timed_out: bool = False
    duration_ms: int = 0
    changes: tuple[ChangedFile, ...] | None = None
    """What it changed in the project; None when this Runner cannot tell."""
    left_out: tuple[str, ...] = ()
    """What it changed besides and the file history does not hold, in sentences."""
    remarks: tuple[str, ...] = ()
    """What the model has to know besides the output: changes that did not reach the project, limits
    of the sandbox that it met.
    """
    notes: tuple[str, ...] = ()
    """What the user has to know besides, a sentence or two each."""
    is_declined: bool = False
    """Its changes were shown for a review, which said no: none reached the project."""
    is_held_back: bool = False
    """Some of what it changed did not reach the project."""
    has_violations: bool = False
    """Some of what it changed should not have reached the project, and did."""
    tree: TreeHash | None = None
    """The tree hash of the project at its end; None where it is not known."""


class Runner(Protocol):
    """Command in, result and change set out."""

    async def run(
        self, command: ProcessCommand, on_output: Callable[[str], None] | None = None
    ) -> RunResult:
        """Run to the end of the process; the end is its exit, never the end of its pipes.

        Cancelling kills the whole process group and reaps it before the cancellation goes on.

        Raises:
            ToolError: it could not be started.
        """
        ...

    async def is_sandboxed(self) -> bool:
        """True when commands run where they can change nothing that is not judged first."""
        return False

    async def why_unconfined(self) -> str:
        """Why commands do not run in the sandbox although they should.

        Empty when they do, or when the sandbox is off.
        """
        return ""

    def which(self, program: str, *, not_below: str = "") -> str | None:
        """Absolute path of a program on the search path, None where there is none.

        Folders below `not_below` are passed over: what we start by ourselves must not come from the
        project.
        """
        ...

    def knows_changes(self, command: ProcessCommand) -> bool:
        """True when the result of this command will say what it changed, so that no other part has
        to find out.
        """
        return False


class Workspace(Protocol):
    """Files below the project (and the folders added to it)."""

    root: str
    """Absolute path of the project."""

    def relative(self, path: str) -> str:
        """How `path` is shown: relative to the project with forward slashes, or absolute when
        outside.
        """
        ...

    def is_outside(self, path: str) -> bool:
        """True when `path`, as written, does not lie in the project or an added folder."""
        ...

    async def resolve(self, path: str) -> str:
        """The real name of `path`, every symbolic link on the way followed; shown as by `relative`.

        This is the name to judge: `read` and `write` of it follow no link, so they reach that file
        or fail.  Where nothing is, the name it would have.

        Raises:
            FinalToolError: no path, or a link leads out of the project.
        """
        ...

    async def read(self, path: str, *, limit: int | None = None) -> FileState:
        """Read a regular file, at most `limit` bytes.

        Raises:
            FinalToolError: no such file, no regular file, not allowed, or it leads outside.
        """
        ...

    async def peek(self, path: str, *, limit: int | None = None) -> FileState | None:
        """Like `read`, None where there is no file."""
        ...

    async def vet(self, path: str, before: FileState | None, data: bytes) -> None:
        """Say now what a `write` of `data` over `before` would be refused for, before the user is
        asked about it.

        Raises:
            FinalToolError: a boundary forbids it.
        """
        ...

    def missing_folders(self, path: str) -> tuple[str, ...]:
        """The folders that a `write` of this path would have to make, the outermost first."""
        return ()

    async def write(self, path: str, data: bytes, *, expected: BlobId | None) -> ChangedFile:
        """Replace (or create) a file in one atomic step that keeps its mode; durable on return.

        `expected` is the hash the file must still have; None means that there must be no file.

        Raises:
            RetryableToolError: the file is not as expected any more; nothing was written.
            FinalToolError: it cannot be written, or the path leads outside.
        """
        ...

    async def remove(self, path: str, *, expected: BlobId) -> ChangedFile:
        """Remove a file, if it still has this content; its folder stays.

        Raises:
            RetryableToolError: it has another content by now, or is gone.
            FinalToolError: it may not be removed.
        """
        ...

    async def list(self, path: str) -> list[tuple[str, Literal["file", "dir", "link", "other"]]]:
        """Names in a folder, sorted, each with its kind."""
        ...
