"""A rewind, carried out: its intent is durable before a file is touched, so that one that is
interrupted is finished later.
"""

from __future__ import annotations

from weft.errors import UsageError
from weft.events import CommandCause, Rewound
from weft.faults import FailPointPair
from weft.session.answers import RewindPlan
from weft.session.commands import RewindTo, UndoRewind
from weft.session.log.session_log import SessionLog
from weft.session.rewind.files import FileRestorer, FileRewinder
from weft.store import Store

_REWIND = FailPointPair("session.rewind")
_REWOUND = FailPointPair("session.rewound")


class RewindWork:
    """Carries rewinds out, in the mailbox's order: nothing else is carried out meanwhile."""

    def __init__(self, log: SessionLog, store: Store, files: FileRestorer | None) -> None:
        self._log = log
        self._store = store
        self._files = files

    async def preview(self, command: RewindTo | UndoRewind) -> RewindPlan:
        """What it would do."""
        return (await self._rewinder().draft(command, self._log.state)).plan

    async def carry_out(self, command: RewindTo | UndoRewind, asked: str) -> RewindPlan:
        """Do it; `asked` is the digest of the command, by which it is known when it comes again."""
        rewinder = self._rewinder()
        draft = await rewinder.draft(command, self._log.state)
        cause = None
        if command.input_id:
            # With the intent, and with the answer of full success: after a crash the rewind is
            # finished, and a repeat must not begin a second one.
            cause = CommandCause(input_id=command.input_id, digest=asked, answer=draft.done())
        commit = await rewinder.intent(draft, self._log.state)
        _REWIND.before.hit()
        stored = await self._log.commit(commit, cause)
        _REWIND.after.hit()
        intent = next(fact for fact in stored if isinstance(fact, Rewound))
        if not intent.files:
            return draft.done()
        failed = await rewinder.carry_out(draft.steps)
        head = self._log.state.tree.head
        settled = await rewinder.settled(intent, failed, draft.steps, head)
        _REWOUND.before.hit()
        await self._log.commit(settled)
        _REWOUND.after.hit()
        return draft.done(failed)

    async def finish(self) -> None:
        """Do what is left of a rewind that was interrupted after its intent was durable."""
        state = self._log.state
        place = state.files.unsettled
        # An intent in the log of an ancestor is that session's to finish.
        if place is None or place.log != state.session_id or self._files is None:
            return
        settled = await self._rewinder().finish(place, state.tree.head)
        _REWOUND.before.hit()
        await self._log.commit(settled)
        _REWOUND.after.hit()

    def _rewinder(self) -> FileRewinder:
        if self._files is None:
            raise UsageError("this session has no files that could be put back")
        return FileRewinder(self._store, self._files)
