"""What a session needs from the application around it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

import anyio
import msgspec

from weft.clock import Clock
from weft.events import Fact, TurnStarted, TurnWaiting, WaitSubject
from weft.ids import BlobId, CallUid, NodeId, SessionId, TurnId
from weft.loop import (
    Commit,
    ContextLine,
    LineEntry,
    PermissionGate,
    SessionWork,
    TurnJournal,
)
from weft.messages import Usage
from weft.permissions import Mode, PermissionRule
from weft.session.commands import Reserve, Settle
from weft.session.log.line import LineCacheBudget
from weft.session.permission_gate import GrantedPermissions
from weft.state import SessionState
from weft.store import SessionRow
from weft.thinking_levels import KnownLevels

if TYPE_CHECKING:  # loaded where something was left open
    from weft.loop import RecoveredCall


class FoundFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of the project, looked at for a command."""

    path: str
    """Its real name."""
    lines: int = 0
    data: bytes | None = None
    """None when there is no such file."""


class FileNow(msgspec.Struct, frozen=True, kw_only=True):
    """What is at a path now."""

    mode: int
    content: BlobId | None = None
    """None for a folder, and for what is too large to be kept."""
    data: bytes | None = None
    names: tuple[str, ...] = ()
    """What is in a folder."""


class FileRestorer(Protocol):
    """Access to the project's files for a rewind."""

    async def look(self, path: str) -> FileNow | None:
        """What is at a path; None where nothing is.

        Raises:
            ToolError: it cannot be looked at.
        """
        ...

    async def put_back(
        self, path: str, wanted: FileNow | None, *, expected: FileNow | None
    ) -> None:
        """Put something at a path (None: nothing), if what is there is still `expected`; durable on
        return.

        Raises:
            ToolError: it is not, or it cannot be done; nothing was touched.
        """
        ...

    async def left_out(self) -> Mapping[str, str]:
        """Paths that the history knows nothing of, with the reason; the first of them."""
        ...

    async def kill_orphans(self) -> None:
        """Kill what commands of dead processes left running."""
        ...

    async def interrupted(self, calls: Sequence[CallUid]) -> Commit:
        """What these calls changed, or may have, before they were interrupted: `FileTouched` facts,
        with the contents they name.

        Each is reported once.  A fact of no call is of one that was cancelled.
        """
        ...


class TurnFactory(Protocol):
    """Makes turns for a session: picks its model, tools and prompt."""

    async def prepare(self, state: SessionState, facts: Sequence[Fact] = ()) -> None:
        """Read what `opening`, which does not wait, needs from the store and from files.

        `facts` are those that start the turn.
        """

    def opening(
        self, state: SessionState, started: TurnStarted, facts: Sequence[Fact], line: ContextLine
    ) -> Commit:
        """The facts with which a turn's first model call begins, for the append that starts the
        turn; `facts` are those that come before them in it, `line` is the one before them.

        Raises:
            UsageError, ProviderError: no such model, or no key for it; the turn does not start.
        """
        ...

    def check(self, state: SessionState, options: Mapping[str, Any]) -> None:
        """Look at options or settings before they are accepted: model, tools, limits, thinking.

        Raises:
            UsageError: one of them cannot be.
        """
        ...

    def max_seconds(self, state: SessionState) -> float | None:
        """How long the open turn may work; None without a limit."""
        ...

    def levels(self, state: SessionState, model: str) -> KnownLevels:
        """The thinking levels of a model; of the session's own where none is named."""
        ...

    def turn(
        self, state: SessionState, turn_id: TurnId, journal: TurnJournal, gate: PermissionGate
    ) -> SessionWork:
        """A turn that is ready to run."""
        ...

    async def waited_for(
        self, on: WaitSubject, until: float | None, journal: TurnJournal, gate: PermissionGate
    ) -> TurnWaiting:
        """What a program waits for: what it looks like now, and until when at most.

        Raises:
            UsageError: there is no such thing, or a rule forbids to look at it.
        """
        ...

    def goal_check(
        self, state: SessionState, journal: TurnJournal, gate: PermissionGate
    ) -> SessionWork:
        """A check of the session's goal that is ready to run."""
        ...

    async def is_sandboxed(self) -> bool:
        """Whether commands of the session run in a sandbox."""
        ...

    def compaction(
        self, state: SessionState, focus: str, journal: TurnJournal, gate: PermissionGate
    ) -> SessionWork:
        """A compaction that is ready to run."""
        ...


class PriceList(Protocol):
    """What models cost."""

    def cost(self, model: str, usage: Usage) -> float | None:
        """What so much use of a model costs in US dollars; None when its price is unknown."""
        ...


class FileFinder(Protocol):
    """Finds files of the project for commands that name them."""

    async def find_file(self, path: str) -> FoundFile:
        """A file by the path that the caller wrote.

        Raises:
            UsageError: it is no path of the project, no text file, or too large to be bounded.
        """
        ...


class RecoveryProbe(Protocol):
    """Finds out, after a crash, what became of what the log left open."""

    async def file_hashes(self, paths: Iterable[str]) -> Mapping[str, str]:
        """The SHA-256 that each file has now, "" where there is none."""
        ...

    async def recovered_calls(self, calls: Iterable[CallUid]) -> Mapping[CallUid, RecoveredCall]:
        """What a dead process left of calls that ran in the sandbox, finished as far as it can be.

        It is handed out once: what is on the disk of it is gone afterwards.
        """
        ...

    async def children_used(
        self, children: Iterable[SessionId]
    ) -> Mapping[SessionId, Mapping[str, Usage]]:
        """What each of these sessions has used so far, by model."""
        ...


async def no_shared_budget(command: Reserve | Settle) -> str:
    """The answer of a session that shares its budget with none."""
    return ""


class LineReader(Protocol):
    """The words of a session's nodes."""

    async def nodes(self, nodes: Sequence[NodeId]) -> list[LineEntry]:
        """These nodes with all words."""
        ...


class CommitEnricher(Protocol):
    """Adds to a commit what its facts come to elsewhere."""

    def wants(self, facts: Sequence[Fact], state: SessionState) -> bool:
        """Whether something may be added; asked for every commit, so it looks at types only."""
        ...

    async def enriched(self, commit: Commit, state: SessionState, line: LineReader) -> Commit:
        """The commit with what is added; `state` is the one before it."""
        ...


class PermissionSources(msgspec.Struct, frozen=True, kw_only=True):
    """What decides about the calls of a session, besides its own log."""

    rules: tuple[PermissionRule, ...] = ()
    asking: Literal["wait", "yes", "no"] = "wait"
    """What an ask means here: wait for the user, yes to everything (`auto_approve`), or no."""
    ceiling: Callable[[], Mode] | None = None
    """Of a child: the mode of the session it works for, which it is never above."""
    inherited: Callable[[], tuple[PermissionRule, ...]] = lambda: ()
    """Of a child: the ask and deny rules of the session that it works for."""
    protects: Callable[[str], bool] = lambda place: False
    """Whether a file at this absolute path is one that sessions obey, whatever its name."""
    granted: GrantedPermissions = GrantedPermissions()
    """What was granted in this process before."""
    seal: Callable[[Sequence[str]], str] | None = None
    """Signs what the user gives to rounds that begin with no user there, with a key of this user's;
    None where nothing can be given."""
    keep_rule: Callable[[str], Awaitable[None]] | None = None
    """Saves what the user allows for good, `tool(target)`; None where that cannot be."""


class SessionEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a session is handed."""

    turns: TurnFactory
    probe: RecoveryProbe
    prices: PriceList
    finder: FileFinder
    clock: Clock
    permissions: PermissionSources = PermissionSources()
    host: str = ""
    """Where this server of several is reached, which hosts the session; empty for all others."""
    folder: str = ""
    """What tells the session's folder from others of its path, at such a server."""
    arrival: str = ""
    """What the model is told of a session whose files were brought here; empty for all others."""
    title: Callable[[SessionState], str] = lambda state: ""
    """A title for a session that has had its first turn; empty keeps the one it has."""
    share_budget: Callable[[Reserve | Settle], Awaitable[str]] = no_shared_budget
    """Answers a session that works for this one, in another process, about the budget that they
    share: why a model call may not be made, or nothing.
    """
    turn_ended: Callable[[], Awaitable[None]] | None = None
    """Of a child: called in the task of a turn when it is over."""
    listed: Callable[[SessionRow], None] = lambda row: None
    """Called with the session's row when it was written."""
    is_awaited: Callable[[], bool] = lambda: False
    """Whether another process waits for a turn of this session.  Looks at the disk."""
    stop_command: Callable[[str], None] = lambda name: None
    """Has a background command of this process end; does not wait for it."""
    enricher: CommitEnricher | None = None
    """Notes what happens in the project's decision graph; None where it does not."""
    files: FileRestorer | None = None
    """The way to the project's files for a rewind; None where it has none."""
    history_bytes: int = 0
    """File history that a project may have; 0 is no limit."""
    line_budget: LineCacheBudget = msgspec.field(default_factory=LineCacheBudget)
    """What the lines of all sessions that are open may hold in memory together."""
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    """How a session backs off from a store that is out of reach."""
    abort_seconds: float = 0.9
    """How long a turn may take to settle after an abort before it is settled for it."""
