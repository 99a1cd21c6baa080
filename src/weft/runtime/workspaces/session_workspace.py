"""The workspace of one session: the project's files and programs, within the session's boundaries.

Everything that a tool of a session does to the machine goes through here: the workspace that tools
write to, and the runner that commands go through.  What moved on the way is handed to the append
that records the result.  The sandbox is loaded with the first command.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

import msgspec

from weft.errors import ToolError, UsageError
from weft.events import BoundaryChanged, Fact
from weft.ids import BlobId, CallUid, NodeId, SessionId, TreeHash, TurnId
from weft.loop import Commit, PermissionGate, SnapshotTaker, touched_facts
from weft.messages import Usage
from weft.permissions import (
    PermissionRule,
    ToolAction,
    is_git_record,
    is_protected,
    protected_below,
)
from weft.runtime.workspaces.read_guard import SessionReadGuard
from weft.session import FileFinder, FoundFile, RecoveryProbe
from weft.state import SessionState
from weft.workspace import (
    BoundaryRange,
    BoundedWorkspace,
    ProcessCommand,
    Runner,
    RunResult,
    SeenVersions,
    SessionBoundaries,
    Workspace,
)
from weft.workspace.boundaries.workspace import MAX_BYTES
from weft.workspace.process.background_groups import BACKGROUND_GROUPS

if TYPE_CHECKING:  # loaded with the first command: it costs start-up time
    from weft.loop import RecoveredCall
    from weft.runtime.snapshots.project_snapshots import ProjectSnapshots
    from weft.runtime.snapshots.workspace_saver import WorkspaceSaver
    from weft.runtime.workspaces.sandbox import SandboxFactory
    from weft.workspace.egress.judge import EgressJudge


class SessionWorkspace(FileFinder, SnapshotTaker):
    """What one session goes through to the machine."""

    def __init__(
        self,
        workspace: Workspace,
        runner: Runner,
        load: Callable[[BlobId], Awaitable[bytes | None]],
        sandbox: Callable[[], SandboxFactory | None] = lambda: None,
        added: Sequence[str] = (),
        snapshots: Callable[[SessionReadGuard], ProjectSnapshots] | None = None,
        saver: Callable[[ProjectSnapshots], WorkspaceSaver] | None = None,
        *,
        is_confined: bool = False,
    ) -> None:
        """`sandbox` gives the one that commands run in; None where they run as they are.

        `added` names further folders that the session may work in; `snapshots` makes what takes
        those of its log, and is given what says which files may not be read; `saver` makes what
        saves them for other hosts.  `is_confined`: nothing that the runner runs reaches the
        project, so there is nothing to report of it.
        """
        self._is_confined = is_confined
        self._make_snapshots = snapshots
        self._make_saver = saver
        self._saver: WorkspaceSaver | None = None
        self._inner = workspace
        self._state: Callable[[], SessionState | None] = lambda: None
        self._gate: PermissionGate | None = None
        self._versions = SeenVersions()
        self._sandbox = sandbox
        self.boundaries = SessionBoundaries(self._in_force, load)
        self.workspace: Workspace = BoundedWorkspace(workspace, self.boundaries, self._versions.saw)
        self._runner = runner
        self.read_guard = SessionReadGuard(workspace.root, added)
        self.runner: Runner = _LateRunner(
            runner, self._reporting, self._sandboxed, self.read_guard.concealed, self._tree_hash
        )

    def follow(self, state: Callable[[], SessionState], gate: PermissionGate) -> None:
        """Hold to the boundaries of this state and to what this gate allows, from now on."""
        # Both come from outside and not with the constructor: the actor that has them is made after
        # its workspace, and a turn looks at the state through its journal.
        self._state = state
        self._gate = gate
        self.read_guard.follow(gate)

    @property
    def reads_lines(self) -> bool:
        """False when no word of a command could change what the gate decides."""
        return self._gate is None or self._gate.reads_lines

    def forbids(self, path: str) -> str:
        """Why a command may not change this path, as if it were written by a tool; empty when it
        may.

        Permission to run a command covers ordinary files.  It covers neither files that programs
        obey nor paths that a rule of the user names.
        """
        # `git commit` writes below `.git` all the time; objects and refs are records, not programs.
        return self._forbids(path, protected=is_protected(path) and not is_git_record(path))

    def forbids_record(self, path: str) -> str:
        return self._forbids(path, protected=False)

    def _forbids(self, path: str, *, protected: bool) -> str:
        if self._gate is None:
            return ""
        # A rule may name either tool, and the stricter one counts.
        for tool in ("write", "edit"):
            action = ToolAction(
                tool=tool, kind="edit", target=path, place=self._place(path), protected=protected
            )
            decision = self._gate.decide(action)
            if decision.verdict == "deny":
                return decision.reason
            # An ask that only comes from the mode was answered with the command; one that a rule
            # demands was not.
            if decision.verdict == "ask" and decision.is_firm:
                return f"{decision.reason}; the {tool} tool can ask for it"
        return ""

    def forbids_link(self, path: str) -> str:
        below = protected_below(path)
        return self.forbids(path) or (below and self.forbids(f"{path}/{below}"))

    @property
    def network_rules(self) -> Sequence[PermissionRule]:
        """The rules about hosts."""
        return () if self._gate is None else self._gate.network_rules

    def egress(self, command: ProcessCommand) -> EgressJudge | None:
        """What a command may reach; None where that is nothing."""
        # One that only reads runs unasked, and what it reads must not leave by what a repository
        # makes it run.
        if self._gate is None or (command.drops_changes and not command.hosts):
            return None
        rules = self._gate.network_rules
        if not command.hosts and not any(rule.verdict == "allow" for rule in rules):
            return None
        from weft.runtime.workspaces.session_egress import session_egress  # few commands may

        return session_egress(rules, command.hosts)

    def _place(self, path: str) -> str:
        return path if path.startswith("/") else f"{self._inner.root.rstrip('/')}/{path}"

    async def _tree_hash(self) -> TreeHash | None:
        if self._make_snapshots is None:
            return None
        return await self._snapshots.tree_hash(TREE_SECONDS)

    async def before_effect(self, state: SessionState) -> Commit:
        if self._make_snapshots is None:
            return _NO_FACTS
        return await self._snapshots.before_effect(state)

    async def at_end(
        self, state: SessionState, noted: Sequence[Fact], turn_id: TurnId, node: NodeId | None
    ) -> Commit:
        if self._make_snapshots is None:
            return _NO_FACTS
        return await self._snapshots.at_end(state, noted, turn_id, node)

    @property
    def saves(self) -> bool:
        return self._make_saver is not None and self._make_snapshots is not None

    async def saved(self, state: SessionState, noted: Sequence[Fact]) -> Commit:
        if self._make_saver is None or self._make_snapshots is None:
            return _NO_FACTS
        if self._saver is None:
            self._saver = self._make_saver(self._snapshots)
        return await self._saver.save(state, noted)

    @cached_property
    def _snapshots(self) -> ProjectSnapshots:
        # With the first effect: many sessions have none, and what takes them is not small.
        assert self._make_snapshots is not None
        return self._make_snapshots(self.read_guard)

    def beside(self) -> Commit:
        """The ranges that moved since the last time, as facts."""
        moved = self.boundaries.take()
        facts = [
            BoundaryChanged(
                path=each.path,
                first=each.bound.lines.first,
                last=each.bound.lines.last,
                base=each.bound.base,
                moves=each.bound.name,
            )
            for each in moved
        ]
        return Commit(facts=tuple(facts), blobs={each.bound.base: each.data for each in moved})

    async def find_file(self, path: str) -> FoundFile:
        try:
            real = await self._inner.resolve(path)
            if self._inner.is_outside(real):
                raise UsageError(f"{path!r} is outside the project; only files in it are bounded")
            found = await self._inner.peek(real, limit=MAX_BYTES)
        except ToolError as error:
            raise UsageError(str(error)) from error
        if found is None:
            return FoundFile(path=real)
        if found.truncated:
            raise UsageError(f"{real!r} is too large to be bounded ({found.size:,} bytes)")
        from weft.workspace import lines_of  # few sessions have boundaries

        return FoundFile(path=real, lines=len(lines_of(found.data)), data=found.data)

    async def recovered_calls(self, calls: Iterable[CallUid]) -> Mapping[CallUid, RecoveredCall]:
        """What a dead process left of these calls in the sandbox, finished as far as it can be."""
        sandbox = self._sandbox()
        if sandbox is None:
            return {}
        from weft.loop import RecoveredCall

        found: dict[CallUid, RecoveredCall] = {}
        for call in calls:
            if (left := await sandbox.recovered(call)) is not None:
                blobs: dict[BlobId, bytes] = {}
                facts = touched_facts(left.changes, call, blobs)
                found[call] = RecoveredCall(text=str(left), touched=tuple(facts), blobs=blobs)
        return found

    def _reporting(self) -> Runner:
        """Runs commands as they are, and reports what they changed beyond what they may."""
        if self._is_confined:
            return self._runner
        from weft.runtime.workspaces.violation_report import ViolationReportingRunner

        return ViolationReportingRunner(
            self._runner,
            forbids=self.forbids,
            boundaries=self.boundaries,
            peek=self._inner.peek,
            root=self._inner.root,
        )

    def _sandboxed(self, plain: Runner) -> Runner | None:
        """The sandbox, with `plain` for the commands that are let out of it."""
        sandbox = self._sandbox()
        if sandbox is None:
            return None
        return sandbox.runner(
            plain,
            root=self._inner.root,
            judge=self,
            boundaries=self.boundaries,
            base_of=self._versions.of,
            egress=self.egress,
        )

    def _in_force(self) -> Mapping[str, BoundaryRange]:
        state = self._state()
        if state is None or not state.boundaries.held:
            return _NONE
        from weft.workspace import LineRange  # as above

        return {
            path: BoundaryRange(
                lines=LineRange(boundary.first, boundary.last),
                base=boundary.base or BlobId(""),
                name=boundary.name,
            )
            for path, boundary in state.boundaries.held.items()
        }


class SessionRecoveryProbe(RecoveryProbe):
    """The probe of one session."""

    def __init__(
        self,
        files: Workspace,
        workspace: SessionWorkspace,
        usage_of: Callable[[SessionId], Awaitable[Mapping[str, Usage]]],
    ) -> None:
        """`files` are the project's without the session's boundaries: a hash changes nothing."""
        self._files = files
        self._workspace = workspace
        self._usage_of = usage_of

    async def file_hashes(self, paths: Iterable[str]) -> Mapping[str, str]:
        return {path: await self._hash(path) for path in paths}

    async def recovered_calls(self, calls: Iterable[CallUid]) -> Mapping[CallUid, RecoveredCall]:
        return await self._workspace.recovered_calls(calls)

    async def children_used(
        self, children: Iterable[SessionId]
    ) -> Mapping[SessionId, Mapping[str, Usage]]:
        return {child: await self._usage_of(child) for child in children}

    async def _hash(self, path: str) -> str:
        try:
            found = await self._files.peek(path)
        except ToolError:
            # Equal to no hash and to no absence, so that the effect counts as unknown.
            return "unreadable"
        return found.hash if found is not None else ""


TREE_SECONDS: Final = 0.25
"""How long the end of a command waits for the first look at a project's files."""
_NO_FACTS: Final = Commit(facts=())
_NONE: Mapping[str, BoundaryRange] = {}


class _LateRunner(Runner):
    """The session's runner, made when the first command is to run."""

    def __init__(
        self,
        machine: Runner,
        reporting: Callable[[], Runner],
        sandboxed: Callable[[Runner], Runner | None],
        concealed: Callable[[], Awaitable[tuple[str, ...]]],
        tree_hash: Callable[[], Awaitable[TreeHash | None]],
    ) -> None:
        """`machine` is only asked for programs; `reporting` and `sandboxed` make what runs them;
        `tree_hash` says on which files one ended.
        """
        self._tree_hash = tree_hash
        self._machine = machine
        self._reporting = reporting
        self._sandboxed = sandboxed
        self._concealed = concealed
        self._plain: Runner | None = None
        self._made: Runner | None = None

    def which(self, program: str, *, not_below: str = "") -> str | None:
        return self._machine.which(program, not_below=not_below)

    async def is_sandboxed(self) -> bool:
        return await self._now().is_sandboxed()

    async def why_unconfined(self) -> str:
        return await self._now().why_unconfined()

    async def run(
        self, command: ProcessCommand, on_output: Callable[[str], None] | None = None
    ) -> RunResult:
        # What only reads needs no sandbox, and starting one takes longer than most such commands.
        if command.only_reads:
            return await self._outside().run(command, on_output)
        # Now and not when the call was prepared: the user may have taken an hour to answer.
        if hidden := await self._concealed():
            command = msgspec.structs.replace(command, hidden=hidden)
        with BACKGROUND_GROUPS.standing_still():
            result = await self._now().run(command, on_output)
            tree = await self._tree_hash()
        return result if tree is None else msgspec.structs.replace(result, tree=tree)

    def _now(self) -> Runner:
        if self._made is None:
            self._made = self._sandboxed(self._outside()) or self._outside()
        return self._made

    def _outside(self) -> Runner:
        if self._plain is None:
            self._plain = self._reporting()
        return self._plain
