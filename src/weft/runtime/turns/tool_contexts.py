"""Tool contexts: what the tool calls of one session reach of the machine, in turns and outside
them.

All of them share one workspace, one log of what the model has read, and one set of background
commands: a file that a turn has read need not be read again by the next.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from weft.config.project_ids import ProjectIds
from weft.errors import StoreError, ToolError, UsageError
from weft.events import (
    ArchitectPlan,
    ArchitectStep,
    Fact,
    NewMessage,
    PlanDecided,
    PlanEdited,
    RefDeleted,
    Rewound,
    SystemNote,
    ToolComplete,
    ToolOutput,
)
from weft.ids import BlobId, CallUid
from weft.loop import (
    CallJournal,
    Commit,
    EditReporter,
    PermissionGate,
    TurnJournal,
    touched_facts,
)
from weft.project.masked_text import masked_in_pieces
from weft.redact import Redactor
from weft.runtime.agent_host import SessionAgentHost
from weft.runtime.workspaces.file_history import FileHistoryRunner
from weft.runtime.workspaces.session_workspace import SessionWorkspace
from weft.session import LineReader
from weft.state import SessionState
from weft.store import Store, project_stream
from weft.tools import ChangedFile, FormattedContent, ReadLog, ToolContext, ToolOutcome
from weft.workspace import Workspace
from weft.workspace.disk_threads import DiskThreads

if TYPE_CHECKING:
    from weft.lsp import CodeQueries, EditReports
    from weft.repo import ProjectIndex
    from weft.runtime.background_commands import BackgroundShells
    from weft.runtime.decisions.decision_source import DecisionSource
    from weft.runtime.decisions.session_decisions import SessionDecisions
    from weft.runtime.mcp.call_changes import CallChanges
    from weft.runtime.services import Services
    from weft.runtime.web.session_web import SessionWeb
    from weft.runtime.workspaces.formatters import SlowFormatters
    from weft.runtime.workspaces.language_servers import ProjectLanguages

logger = logging.getLogger(__name__)


class DecisionsOnDemand:
    """A session's way to the decision graph of its project.

    Nothing of it is loaded while the project has no decisions and nothing happens that could be
    one: every run has this object, and most need no more.
    """

    def __init__(
        self,
        services: Services,
        store: Store,
        workspace: Workspace,
        forbids: Callable[[str], str],
        *,
        only_reads: bool = False,
    ) -> None:
        """`forbids` says why a file may not be read; empty where it may be.

        `only_reads`: nothing of the session is noted, for it is one of several tries.
        """
        self._only_reads = only_reads
        self._services = services
        self._store = store
        self._workspace = workspace
        self._forbids = forbids
        # What was changed before may be in commits that nothing here has seen.
        self._since = services.clock.now()
        self._source: DecisionSource | None = None

    @property
    def is_on(self) -> bool:
        """Whether the user wants any of it."""
        return bool(self._services.config.get("decisions.enabled"))

    @property
    def found(self) -> SessionDecisions | None:
        """The graph, once there is one."""
        return self._source.found if self._source is not None and self.is_on else None

    async def look(self, state: SessionState) -> None:
        """Before a turn: see whether the project has decisions, and read on where it has."""
        if self.is_on and (self._source is not None or await self._has_some(state)):
            await self.load().begin_turn(state)

    async def _has_some(self, state: SessionState) -> bool:
        try:
            if await self._store.last_seq(project_stream(state.about.project_key)):
                return True
            return bool(await self._related_end(state.about.project_path))
        except StoreError:  # the turn's own appends say what is wrong with it
            return False

    async def _related_end(self, project_path: str) -> int:
        """The highest end of the streams of other projects in the repository."""
        if not self._store.is_lasting:
            return 0
        ids = ProjectIds(self._services.places.projects)
        if not ids.has_related:
            return 0
        related = await DiskThreads.of(project_path).run(lambda: ids.related(project_path))
        ends = [await self._store.last_seq(project_stream(each.id)) for each in related]
        return max(ends, default=0)

    def load(self) -> DecisionSource:
        """All of it, be the graph empty."""
        if self._source is None:
            from weft.runtime.decisions.decision_source import DecisionSource  # see the class

            self._source = DecisionSource(
                self._services, self._store, self._workspace, self._forbids, self._since
            )
        return self._source

    def tool_access(self, state: SessionState) -> Callable[[], SessionDecisions] | None:
        """The way of tools to it; None where it is switched off."""
        return (lambda: self.load().of(state)) if self.is_on else None

    def wants(self, facts: Sequence[Fact], state: SessionState) -> bool:
        """Whether a commit may come to a decision."""
        for fact in facts:
            if type(fact) in _NOTED and not _is_opening(fact):
                return self.is_on and not self._only_reads and self.load().wants(facts, state)
        return False

    async def enriched(self, commit: Commit, state: SessionState, line: LineReader) -> Commit:
        """The commit, with what it comes to as decisions."""
        return await self.load().enriched(commit, state, line)


_NOTED = frozenset(
    (
        *(ArchitectPlan, ArchitectStep, PlanDecided, PlanEdited, RefDeleted, Rewound),
        *(NewMessage, ToolComplete),
    )
)
"""What may go into the graph."""


def _is_opening(fact: Fact) -> bool:
    """Whether a fact is one of those that every run has: of the two kinds that are not always
    noted, only an answer of the user and a command that ended count.
    """
    if isinstance(fact, NewMessage):
        return fact.node.role != "user" or fact.node.parent is None
    return isinstance(fact, ToolComplete) and "exit_code" not in fact.result.data


class ToolContexts:
    """Makes the contexts of one session's tool calls."""

    def __init__(
        self,
        workspace: SessionWorkspace,
        files: FileHistoryRunner,
        host: SessionAgentHost,
        redact: Redactor,
        languages: SessionLanguages,
        *,
        index: Callable[[], Awaitable[ProjectIndex]] | None = None,
        decisions: DecisionsOnDemand,
        aside: Path,
    ) -> None:
        """`aside` is a folder for what a call changed and was not allowed to."""
        self._aside = aside
        self._changes: CallChanges | None = None
        self._web: SessionWeb | None = None
        self.languages = languages
        self._index = index
        self.decisions = decisions
        self.workspace = workspace
        self.files = files
        self._host = host
        self._redact = redact
        self._reads: ReadLog | None = None

    def in_turn(self, call_uid: CallUid, journal: TurnJournal) -> ToolContext:
        """What a call of a turn reaches; what it prints is sent to subscribers as it comes."""
        return ToolContext(
            workspace=self.workspace.workspace,
            runner=self.workspace.runner,
            reads=self._read_log(journal.state),
            call_uid=call_uid,
            emit=self._emitter(call_uid, journal),
            todos=journal.state.todos.items,
            background=self._shells,
            read_guard=self.workspace.read_guard,
            reads_lines=self.workspace.reads_lines,
            index=self._index,
            code=self.languages.queries,
            format=self.languages.formatter,
            decisions=self.decisions.tool_access(journal.state),
            masked=partial(masked_in_pieces, self._redact),
            web=self._web_access,
            watched=partial(self._watched, call_uid),
        )

    def _web_access(self) -> SessionWeb:
        if self._web is None:
            from weft.runtime.web.session_web import SessionWeb  # few sessions reach the web

            services = self.languages.services
            self._web = SessionWeb(
                services.config,
                services.workspaces.environ,
                services.clock,
                lambda: self.workspace.network_rules,
            )
        return self._web

    async def _watched(
        self, call_uid: CallUid, work: Callable[[], Awaitable[ToolOutcome]]
    ) -> ToolOutcome:
        """Run what may change files by itself, and report what it changed."""
        if self._changes is None:
            from weft.runtime.mcp.call_changes import CallChanges  # with the first such call

            self._changes = CallChanges(self.files, self.workspace, self._aside)
        return await self._changes.run(call_uid, work)

    def outside_turn(
        self, call_uid: CallUid, journal: CallJournal, gate: PermissionGate
    ) -> ToolContext:
        """What a command that no turn runs reaches: the same workspace, with the same
        boundaries.
        """
        self.workspace.follow(lambda: journal.state, gate)
        return ToolContext(
            workspace=self.workspace.workspace,
            runner=self.workspace.runner,
            reads=self._read_log(journal.state),
            call_uid=call_uid,
            emit=self._emitter(call_uid, journal),
            read_guard=self.workspace.read_guard,
            reads_lines=self.workspace.reads_lines,
            index=self._index,
            masked=partial(masked_in_pieces, self._redact),
        )

    def changes_of(self, call_uid: CallUid, outcome: ToolOutcome | None) -> Commit:
        """What a command outside a turn has changed, for the log.

        `outcome` is None when the command was stopped before it could report.
        """
        blobs: dict[BlobId, bytes] = {}
        done = outcome or ToolOutcome(text="")
        facts: list[Fact] = [
            *touched_facts((*self.files.unreported_changes(), *done.touched), call_uid, blobs),
            *(SystemNote(text=text, level="warning") for text in done.notes),
        ]
        beside = self.workspace.beside()
        return Commit(facts=(*facts, *beside.facts), blobs={**blobs, **beside.blobs})

    def _emitter(self, call_uid: CallUid, journal: CallJournal) -> Callable[[str], None]:
        # One masker for all chunks of the call: a secret may be cut in two by a chunk's end.
        masked = self._redact.live()
        return lambda chunk: journal.signal(ToolOutput(call_uid=call_uid, chunk=masked.feed(chunk)))

    def _shells(self) -> BackgroundShells:
        return self._host.background_shells(self._redact, self.changes_of)

    def _read_log(self, state: SessionState) -> ReadLog:
        """What the model has seen; after a restart, what the session's log says of it."""
        if self._reads is None:
            self._reads = ReadLog()
            for path, digest in state.reads.seen.items():
                self._reads.saw(path, digest)
        return self._reads


class SessionLanguages(EditReporter):
    """What language servers say of one session's edits, and the way to ask them.

    Nothing of them is loaded before a file is changed for whose language one is there.
    """

    def __init__(self, services: Services, workspace: SessionWorkspace) -> None:
        self.services = services
        self._workspace = workspace
        self._reports: EditReports | None = None
        self._slow: SlowFormatters | None = None

    def after_change(self, touched: Sequence[ChangedFile], *, waits: bool) -> Awaitable[str] | None:
        workspaces, root = self.services.workspaces, self._workspace.workspace.root
        paths = [
            each.path
            for each in touched
            if not each.path.startswith("/") and workspaces.may_be_served(each.path, root)
        ]
        return self._contained(paths, waits=waits) if paths else None

    async def _contained(self, paths: Sequence[str], *, waits: bool) -> str:
        try:
            return await self._report(paths, waits=waits)
        except Exception as error:
            # The edit is done, whatever fails in what looks at it afterwards.
            logger.exception("language servers could not be asked")
            return f"(language servers could not be asked: {error})"

    async def _report(self, paths: Sequence[str], *, waits: bool) -> str:
        project = await self._project()
        if self._reports is None or self._reports.pool is not project.pool:
            self._reports = project.reports(self._workspace.read_guard)
        return await self._reports.after_change(paths, waits=waits)

    async def _project(self) -> ProjectLanguages:
        workspaces = self.services.workspaces
        plain = workspaces.workspace(self._workspace.workspace.root)
        registry = workspaces.languages(
            self.services.supervisor, self.services.clock, self.services.is_trusted
        )
        return await registry.project(plain, self._workspace.read_guard)

    @property
    def formatter(self) -> Callable[[str, bytes], Awaitable[FormattedContent]] | None:
        """What new contents go through; None where no formatter is configured."""
        return self._format if self.services.config.get("formatters") else None

    async def _format(self, path: str, data: bytes) -> FormattedContent:
        from weft.runtime.workspaces.formatters import (
            ProjectFormatters,
            SlowFormatters,
            formatters_of,
        )

        try:
            settings = formatters_of(self.services.config.get("formatters"))
            launcher = (await self._project()).launcher
        except (UsageError, ToolError) as error:
            return FormattedContent(data=data, note=f"not formatted: {error}")
        self._slow = self._slow or SlowFormatters(self.services.clock)
        return await ProjectFormatters(settings, launcher, self._slow).format(path, data)

    async def queries(self) -> CodeQueries:
        """The way to ask them.

        Raises:
            UsageError: the settings are not right.
        """
        return (await self._project()).queries(self._workspace.read_guard)

    def late(self) -> str:
        if self._reports is None:
            return ""
        try:
            return self._reports.late()
        except Exception:
            # The result that it would be put into must go on record all the same.
            logger.exception("language servers could not be asked")
            return ""
