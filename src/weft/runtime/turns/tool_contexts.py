"""Tool contexts: what the tool calls of one session reach of the machine, in turns and outside
them.

All of them share one workspace, one log of what the model has read, and one set of background
commands: a file that a turn has read need not be read again by the next.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

from weft.events import Fact, SystemNote, ToolOutput
from weft.ids import BlobId, CallUid
from weft.loop import CallJournal, Commit, PermissionGate, TurnJournal, touched_facts
from weft.project.masked_text import masked_in_pieces
from weft.redact import Redactor
from weft.runtime.agent_host import SessionAgentHost
from weft.runtime.workspaces.file_history import FileHistoryRunner
from weft.runtime.workspaces.session_workspace import SessionWorkspace
from weft.state import SessionState
from weft.tools import ReadLog, ToolContext, ToolOutcome

if TYPE_CHECKING:
    from weft.repo import ProjectIndex
    from weft.runtime.background_commands import BackgroundShells


class ToolContexts:
    """Makes the contexts of one session's tool calls."""

    def __init__(
        self,
        workspace: SessionWorkspace,
        files: FileHistoryRunner,
        host: SessionAgentHost,
        redact: Redactor,
        index: Callable[[], Awaitable[ProjectIndex]] | None = None,
    ) -> None:
        self._index = index
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
            index=self._index,
            masked=partial(masked_in_pieces, self._redact),
        )

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
