"""Recovery of a session: what a dead process, or a crash, left open is looked at and closed.

Opening a session only reads; what was left is settled here by the first command that goes on.
`weft.loop.recovery` says what the evidence means, this gathers it and puts it on record.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import TYPE_CHECKING

import msgspec

from weft.errors import ToolError
from weft.events import (
    ErrorRaised,
    FileTouched,
    FinishReason,
    ToolComplete,
    ToolExecuting,
    TurnStarted,
)
from weft.faults import FailPointPair
from weft.ids import CallUid, NodeId
from weft.loop import Commit, promote, tip_after, with_wake
from weft.session.environment import SessionEnvironment
from weft.session.log.session_log import SessionLog
from weft.store import Store

if TYPE_CHECKING:  # what it judges by is loaded where something was left open
    from weft.loop import RecoveryEvidence

_RECOVER = FailPointPair("session.recover")
_END = FailPointPair("session.end")
_DOWN = FailPointPair("session.down")


class SessionRecovery:
    """Closes what was left open."""

    def __init__(self, log: SessionLog, store: Store, environment: SessionEnvironment) -> None:
        self._log = log
        self._store = store
        self._env = environment
        self._lost: set[NodeId] = set(log.state.ledger.asides)
        """Model calls outside of turns whose process is gone; at first, all that are open."""

        self._lost_branches = frozenset(log.state.generations.started)
        """Generations of branches whose process is gone."""
        self._left = dict(log.state.background.running)
        """Commands in the background that no process runs any more, whatever the log says."""
        self._by_outage = False
        """What is in doubt was not left by a program that has ended."""
        self._results: list[Commit] = []
        """What tool calls came to that could not be stored."""
        self._not_begun: set[CallUid] = set()
        self._lost_calls = frozenset(
            uid for uid, intent in log.state.turn.intents.items() if not intent.node
        )
        """Tool calls outside of a turn that a dead process left.

        Those of a turn are settled with it.
        """

    def mark_outage(self) -> None:
        """A turn was stopped because its store is out of reach; the program goes on."""
        self._by_outage = True

    def keep_results(self, unstored: Commit) -> None:
        """A commit could not be stored: what it says of calls that have run is true all the same,
        and the calls that it was to begin have not begun.
        """
        self._results += unstored.results
        intents = (fact for fact in unstored.facts if isinstance(fact, ToolExecuting))
        self._not_begun |= {intent.call_uid for intent in intents}

    async def store_results(self) -> None:
        """Put on record what is known of calls whose results could not be stored."""
        state = self._log.state
        found: dict[CallUid, Commit] = {}
        for each in self._results:
            done = next((fact for fact in each.facts if isinstance(fact, ToolComplete)), None)
            # Its append may have been taken in after all, or the turn settled without it.
            if done is not None and done.call_uid in state.turn.intents:
                found.setdefault(done.call_uid, each)
        if found:
            facts = tuple(fact for each in found.values() for fact in each.facts)
            blobs = {key: data for each in found.values() for key, data in each.blobs.items()}
            _RECOVER.before.hit()
            projects = tuple(more for each in found.values() for more in each.projects)
            await self._log.commit(Commit(facts=facts, blobs=blobs, projects=projects))
            _RECOVER.after.hit()
        # Only now: while the store is down they are all that is known.
        self._results = []

    def mark_work_lost(self) -> None:
        """The work that ran here is gone.

        A summary that the user asked for outside of it is not.
        """
        asides = self._log.state.ledger.asides.items()
        self._lost |= {node for node, aside in asides if aside.purpose == "compaction"}

    async def count_lost(self) -> None:
        """Put on record what lost model calls have used: the vendor bills them all the same."""
        lost, self._lost = self._lost, set()
        if not lost:
            return
        from weft.loop import count_lost

        facts = count_lost(self._log.state, lost, self._env.prices.cost)
        if not facts:
            return
        _RECOVER.before.hit()
        await self._log.commit(Commit(facts=tuple(facts)))
        _RECOVER.after.hit()

    async def settle_branches(self) -> None:
        """Make partial nodes of the branches that a dead process was generating: what comes next
        may end all drafts of the session.
        """
        lost, self._lost_branches = self._lost_branches, frozenset()
        if not lost & self._log.state.generations.started.keys():
            return
        from weft.loop import branch_ends

        found = await self._store.load_drafts(self._log.session_id)
        drafts = {draft.node: draft.text for draft in found}
        _RECOVER.before.hit()
        await self._log.commit(branch_ends(self._log.state, lost, drafts, self._env.prices.cost))
        _RECOVER.after.hit()

    async def settle_lost_calls(self) -> None:
        """Put on record what became of tool calls that a dead process made outside of a turn."""
        await self.store_results()
        lost, self._lost_calls = self._lost_calls, frozenset()
        if not lost:
            return
        from weft.loop import settle_interrupted

        found = await self._evidence(lost)
        facts = settle_interrupted(self._log.state, found, lost)
        _RECOVER.before.hit()
        await self._log.commit(Commit(facts=tuple(facts), blobs=found.blobs))
        _RECOVER.after.hit()

    async def end_lost_commands(self) -> None:
        """Put on record that background commands ended with the program that ran them.

        What is left of them is killed first.
        """
        left, self._left = self._left, {}
        if not left:
            return
        from weft.loop import command_ends

        touched, files = Commit(facts=()), self._env.files
        if files is not None:
            # A command that outlived its program would go on changing files after its end is on
            # record.
            await files.kill_orphans()
            touched = await files.interrupted([each.call_uid for each in left.values()])
        facts = command_ends(self._log.state, left, self._env.clock.now())
        _RECOVER.before.hit()
        ended = msgspec.structs.replace(touched, facts=(*touched.facts, *facts))
        await self._log.commit(with_wake(self._log.state, ended))
        _RECOVER.after.hit()

    async def settle(self) -> None:
        """Close what a dead process left in doubt, so that its turn can go on."""
        from weft.loop import settle_interrupted

        await self.store_results()
        await self._env.turns.prepare(self._log.state)
        state = self._log.state
        found = await self._evidence()
        facts = settle_interrupted(state, found)
        started = state.turn.open
        if started is not None and started.call is not None:
            # The lost call is asked again, under a new name and with today's prompt: the model, the
            # tools or the key may have changed since.
            facts += promote(state, facts, self._env.clock.now())
            again = TurnStarted(turn_id=started.turn_id, options=started.options)
            line = await self._log.line_before(facts, tip_after(state, ()))
            opening = self._env.turns.opening(state, again, facts, line)
            commit = msgspec.structs.replace(
                opening,
                facts=(*facts, *opening.facts),
                blobs={**found.blobs, **opening.blobs},
                drop_draft=True,
            )
        else:
            commit = Commit(facts=tuple(facts), blobs=found.blobs, drop_draft=True)
        _RECOVER.before.hit()
        await self._log.commit(commit)
        self._by_outage = False
        self._not_begun.clear()
        _RECOVER.after.hit()

    async def end(self, why: str, reason: FinishReason = "halted") -> None:
        """End the turn that was left open, because something else comes next or it was to stop
        anyway.
        """
        from weft.loop import end_interrupted

        await self.store_results()
        found = await self._evidence()
        facts = end_interrupted(self._log.state, found, why, reason)
        _END.before.hit()
        await self._log.commit(Commit(facts=tuple(facts), blobs=found.blobs, drop_draft=True))
        self._by_outage = False
        self._not_begun.clear()
        _END.after.hit()

    async def end_after_crashes(self, raised: ErrorRaised, reason: str) -> None:
        """End the turn of a session that has crashed too often."""
        from weft.loop import end_interrupted

        found = await self._evidence()
        ending = end_interrupted(self._log.state, found, f"it crashed too often: {reason}")
        _DOWN.before.hit()
        await self._log.commit(Commit(facts=(raised, *ending), blobs=found.blobs, drop_draft=True))
        _DOWN.after.hit()

    async def _evidence(self, only: Container[CallUid] | None = None) -> RecoveryEvidence:
        from weft.loop import PartialDraft, RecoveryEvidence, hashes_needed, unsettled_children

        state = self._log.state
        call = state.turn.open.call if state.turn.open is not None else None
        drafts = await self._store.load_drafts(state.session_id) if call is not None else []
        draft = next((each for each in drafts if call and each.node == call.node), None)
        files = self._env.files
        touched = Commit(facts=())
        intents = state.turn.intents.values()
        calls = [
            each.call_uid
            for each in intents
            if each.effect == "unknown"
            and (bool(each.node) if only is None else each.call_uid in only)
        ]
        if files is not None:
            # Before anything is judged: a command that still runs would go on changing what was
            # looked at.
            await files.kill_orphans()
            if calls:
                touched = await files.interrupted(calls)
        # Finishing what the sandbox left changes files, so that it comes before their hashes are
        # taken.
        remains = await self._env.probe.recovered_calls(calls) if calls else {}
        wanted = hashes_needed(state)
        found = tuple(fact for fact in touched.facts if isinstance(fact, FileTouched))
        blobs = dict(touched.blobs)
        for each in remains.values():
            found += each.touched
            blobs |= each.blobs
        return RecoveryEvidence(
            draft=PartialDraft(node=draft.node, text=draft.text) if draft is not None else None,
            hashes=await self._env.probe.file_hashes(wanted),
            cost=self._env.prices.cost,
            children=await self._env.probe.children_used(unsettled_children(state)),
            modes=await self._modes(wanted),
            touched=found,
            blobs=blobs,
            remains={call: each.text for call, each in remains.items()},
            by_outage=self._by_outage and only is None,
            not_begun=self._not_begun,
        )

    async def _modes(self, paths: Iterable[str]) -> dict[str, int]:
        """The mode that each file has now, as far as it can be read."""
        files = self._env.files
        found: dict[str, int] = {}
        for path in paths if files is not None else ():
            try:
                now = await files.look(path) if files is not None else None
            except ToolError:
                continue
            found[path] = 0 if now is None else now.mode
        return found
