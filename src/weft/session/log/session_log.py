"""A session's facts: stamped, appended, and when they are durable applied and published.

There is no other order anywhere, so nothing is ever shown that a crash could take back.  Reads take
the state as it is and never wait for a commit.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from weft.actors import Supervisor
from weft.clock import Clock
from weft.errors import (
    Conflict,
    OutcomeUnknown,
    StoreError,
    StoreOutage,
    StoreUnavailable,
    WeftError,
)
from weft.events import CommandCause, Fact, NewMessage, Signal, ToolOutput
from weft.ids import CallUid, NodeId
from weft.loop import Commit, ContextLine, LineEntry
from weft.messages import DraftPart, Part
from weft.session.environment import CommitEnricher
from weft.session.log.answer_in_flight import ANSWER_DELTAS, AnswersInFlight
from weft.session.log.append import StampedFacts, project_append, stamp
from weft.session.log.line import LineCache, LineCacheBudget
from weft.session.log.running_output import RunningOutput
from weft.session.subscriptions.event_hub import EventHub
from weft.state import GOAL_TIMED, QueueEntry, SessionState
from weft.store import (
    Append,
    Draft,
    DraftChunk,
    Lease,
    SessionRow,
    Store,
    project_stream,
)

if TYPE_CHECKING:  # for screens: start-up time
    from weft.session.log.stored_line import CallRecord

logger = logging.getLogger(__name__)

HISTORY_SLACK = 16
"""The file history is held to its limit whenever a session has added this part of it."""


MOST_TRIES = 1_000
"""How often a batch is tried that others come before on a project's stream: each time one of them
has got its own in."""


class SessionLog:
    """The one writer of a session's log, and what is computed from it."""

    def __init__(
        self,
        state: SessionState,
        lease: Lease,
        *,
        store: Store,
        clock: Clock,
        supervisor: Supervisor,
        history_bytes: int,
        line_budget: LineCacheBudget,
        on_fact: Callable[[Fact], None],
        on_row: Callable[[SessionRow], None] = lambda row: None,
        enricher: CommitEnricher | None = None,
        first: Callable[[], tuple[Fact, ...]] | None = None,
    ) -> None:
        """`first` makes what comes before all else that this life writes to a session."""
        self._first = first
        self._enricher = enricher
        self.state = state
        self._goal_was_left = state.goal.since is not None
        """The time of the goal still counts from what a life before this one did last."""
        self.session_id = state.session_id
        self._lease = lease
        self._store = store
        self._clock = clock
        self._supervisor = supervisor
        self._on_fact = on_fact
        """Called with each fact between its being applied and its being published."""
        self._on_row = on_row
        """Called when what a list shows of the session was written."""
        self._answers = AnswersInFlight()
        self._outputs = RunningOutput()
        self.events = EventHub(
            state.session_id,
            store,
            applied=lambda: self.state.seq,
            drafts=lambda: self._answers.drafts,
        )
        self._line = LineCache(store, line_budget)
        if not state.tree.nodes:
            # A new session has an empty line; without this its first turn would read the log to
            # find that.
            self._line.start_empty()
        self._listed: SessionRow | None = None
        """The row that was written last, in this life of the session."""
        self._sent: Sequence[Append] = ()
        """The batch that was handed to the store last; the session's own append comes first."""
        self._unsure: tuple[StampedFacts, Commit, Sequence[Append]] | None = None
        """What may be stored or not: its answer was lost, and the store is out of reach."""
        self._history_bytes = history_bytes
        self._untrimmed = history_bytes
        """Bytes of file history since it was last trimmed.

        At first unknown, so that the first write trims.
        """

    # -- writing

    async def commit(self, commit: Commit, cause: CommandCause | None = None) -> Sequence[Fact]:
        """Append, then apply and publish; returns the facts as they are stored."""
        if not commit.facts:
            return ()
        # Of a new session the fact that makes it comes first.
        if self._first is not None and self.state.seq:
            await self.commit_first()
        if self._unsure is not None:
            raise StoreOutage("the store is out of reach; it is tried again with the next command")
        if (facts := self._outputs.with_ends(commit.facts)) is not commit.facts:
            commit = msgspec.structs.replace(commit, facts=facts)
        if self.state.goal.is_active:
            from weft.session.decide.goals import goal_facts  # few sessions have a goal

            facts = goal_facts(facts, self.state, was_left=self._goal_was_left)
            commit = msgspec.structs.replace(commit, facts=facts)
        if self._enricher is not None and self._enricher.wants(commit.facts, self.state):
            commit = await self._enricher.enriched(commit, self.state, self)
        stamped = stamp(commit, self.state, now=self._clock.now(), cause=cause)
        append = stamped.append(self.state, self._lease, commit, self._listed)
        # If this raises, nothing was applied or published: state and subscribers still agree with
        # the log.
        try:
            await self._append(append, commit)
        except OutcomeUnknown:
            # The batch as it was sent, with what it adds to projects: only the very same one can be
            # sent again without being stored twice.
            self._unsure = stamped, commit, self._sent
            raise
        self._take_in(stamped, append)
        if self._goal_was_left:
            self._goal_was_left = GOAL_TIMED.isdisjoint(map(type, stamped.facts))
        return stamped.facts

    async def commit_first(self) -> None:
        """Write what comes before all else of this life, if that was not done."""
        first, self._first = self._first, None
        if first is None:
            return
        try:
            await self.commit(Commit(facts=first()))
        except BaseException:
            self._first = first
            raise

    async def _append(self, append: Append, commit: Commit) -> None:
        """Append to the session's stream, and in the same batch to those of projects."""
        if not commit.projects:
            await self._append_batch([append])
            return
        streams = [project_stream(each.project_id) for each in commit.projects]
        ends = {stream: await self._store.last_seq(stream) for stream in streams}
        for _ in range(MOST_TRIES):
            try:
                await self._append_batch([append, *self._for_projects(commit, ends)])
            except Conflict as conflict:
                # Others add to a project's stream all the time: the batch follows on what they
                # added.  A conflict on the session's own stream is another matter: the state here
                # is not that of the log.
                if conflict.stream not in ends:
                    raise
                ends[conflict.stream] = conflict.actual
            else:
                return
        raise StoreUnavailable("a project's stream is written to without end; try again later")

    async def _append_batch(self, batch: Sequence[Append]) -> None:
        self._sent = batch
        try:
            await self._store.append(*batch)
        except OutcomeUnknown as lost:
            from weft.store import settle_append  # few answers are ever lost: start-up time

            await settle_append(self._store, batch, lost)

    def _for_projects(self, commit: Commit, ends: Mapping[str, int]) -> Iterator[Append]:
        now, after = self._clock.now(), dict(ends)
        for each in commit.projects:
            stream = project_stream(each.project_id)
            append = project_append(each, after[stream], session_id=self.session_id, now=now)
            after[stream] += len(append.records)
            yield append

    async def catch_up(self) -> None:
        """Take in an append whose answer was lost; where it is not stored, it is sent again.

        Before anything else is done: decisions on a state that is behind the log would conflict
        with it.

        Raises:
            OutcomeUnknown, StoreUnavailable: it still cannot be told.
            StoreError: it was refused, and is given up.
        """
        if self._unsure is None:
            return
        stamped, commit, batch = self._unsure
        try:
            await self._send_again(commit, batch)
        except (OutcomeUnknown, StoreUnavailable):
            self._unsure = stamped, commit, self._sent
            raise
        except WeftError:
            self._unsure = None
            raise
        self._unsure = None
        self._take_in(stamped, batch[0])

    async def _send_again(self, commit: Commit, batch: Sequence[Append]) -> None:
        from weft.store import settle_append  # as above

        # A look alone does not tell: the first try may still be under way, and what is decided on
        # the state without it would conflict with it.
        try:
            lost = OutcomeUnknown("the answer to an append was lost, and the store is out of reach")
            await settle_append(self._store, batch, lost)
        except Conflict as conflict:
            if conflict.stream == self.session_id:
                raise
            # Others have added to a project's stream, so the batch can no longer be stored as it
            # was sent: it follows on what they added.
            await self._append(batch[0], commit)

    def _take_in(self, stamped: StampedFacts, append: Append) -> None:
        for fact, record in zip(stamped.facts, append.records, strict=True):
            self._apply(fact, len(record.body))
        if append.row is not None:
            self._listed = append.row
            self._on_row(append.row)
        if history := {*append.history, *append.tree_contents}:
            self._hold_to_quota(sum(len(stamped.blobs[each]) for each in history))

    def _apply(self, fact: Fact, weight: int) -> None:
        self.state.apply(fact)
        self._line.apply(fact)
        self._answers.take_fact(fact)
        # After the state, before the subscribers: a caller that is woken by a fact must find gate,
        # waiters and status as they are after it.
        self._on_fact(fact)
        self.events.publish(fact, weight)

    def save_draft(
        self, node: NodeId, part: DraftPart, chunk: str, *, index: int, tool: str, restart: bool
    ) -> None:
        """Keep text in flight beside the log."""
        self._store.save_draft(
            DraftChunk(
                stream=self.session_id,
                fence=self._lease.fence,
                node=node,
                part=part,
                chunk=chunk,
                index=index,
                tool=tool,
                restart=restart,
            )
        )

    def signal(self, signal: Signal) -> None:
        """Show something that is not stored."""
        # First, and with the fewest calls: there are thousands of them.
        if isinstance(signal, ANSWER_DELTAS):
            self._answers.take_piece(signal)
            if not self.events.has_live_readers():
                return
        elif isinstance(signal, ToolOutput):
            self._outputs.take(signal)
        else:
            self._answers.take(signal)
        if self.events.wants(signal):
            stamped = msgspec.structs.replace(
                signal,
                session_id=self.session_id,
                after_seq=self.state.seq,
                at=self._clock.now(),
            )
            self.events.publish_signal(stamped, signal.weight)

    async def reload(self) -> None:
        """Build the state from the log again."""
        from weft.session.log.load import load_state  # few sessions crash: start-up time

        about = self.state.about
        self.state = await load_state(self.session_id, self._store)
        # Where the project is now: the log has the folder that it was begun in.
        self.state.about.project_path = about.project_path
        self.state.about.listed_path = about.listed_path
        self._unsure = None
        self._listed = None
        self._line.drop()

    def close(self) -> None:
        """End all readers, and hold nothing more of the line."""
        self._line.close()
        self.events.close()

    def _hold_to_quota(self, added: int) -> None:
        """Drop the project's oldest file history every now and then.

        A rewind names what is gone.
        """
        most = self._history_bytes
        self._untrimmed += added
        if most and self._untrimmed > most // HISTORY_SLACK:
            self._untrimmed = 0
            # In a task of its own: trimming may take long, and the mailbox would wait for it.
            self._supervisor.start(self._trim_history, f"history of {self.session_id}")

    async def _trim_history(self) -> None:
        most = self._history_bytes
        try:
            await self._store.trim_history(
                self.state.about.known_path, most - most // HISTORY_SLACK, self.state.files.tree
            )
        except StoreError:
            logger.exception("file history was not trimmed", extra={"session": self.session_id})

    # -- reading

    @property
    def drafts(self) -> tuple[Draft, ...]:
        """The answers in flight."""
        return self._answers.drafts

    async def line(self, tip: NodeId | None = None) -> list[LineEntry]:
        """The line that ends at `tip` (the head, when left out), with all words."""
        return await self._line.line(self.state.tree, tip or self.state.tree.head)

    async def nodes(self, nodes: Sequence[NodeId]) -> list[LineEntry]:
        """These nodes with all words."""
        return await self._line.nodes(self.state.tree, nodes)

    async def call_records(self, nodes: Sequence[NodeId]) -> dict[CallUid, CallRecord]:
        """How the settled calls of these nodes went."""
        from weft.session.log.stored_line import load_call_records  # for screens: start-up time

        return await load_call_records(self.state.tree, nodes, self._store)

    async def beginnings(self, nodes: Sequence[NodeId]) -> list[LineEntry]:
        """These nodes with the beginning of their words, and no results."""
        from weft.session.log.stored_line import load_beginnings  # for screens: start-up time

        return await load_beginnings(self.state.tree, nodes, self._store)

    async def in_full(self, entries: Iterable[QueueEntry]) -> tuple[QueueEntry, ...]:
        """Queued entries with all their words; the state holds only the beginning of a long one."""
        queued = tuple(entries)
        if not queued:
            return ()
        from weft.session.log.stored_line import unspill_entries  # as above

        return await unspill_entries(queued, self._store)

    async def context_line(self, tip: NodeId | None = None) -> ContextLine:
        """The line that ends at `tip` as the model is to see it."""
        return await self._line.context(self.state.tree, tip or self.state.tree.head)

    async def line_before(self, facts: Sequence[Fact], tip: NodeId | None) -> ContextLine:
        """The line that these facts, which are about to be appended, go on from; it ends at `tip`
        where they add no message.
        """
        added = (fact.node for fact in facts if isinstance(fact, NewMessage) and fact.advance)
        first = next(added, None)
        if first is not None and first.parent is None:
            return ContextLine(entries=())
        return await self.context_line(tip if first is None else first.parent)

    async def revisions(self, node: NodeId) -> list[tuple[Part, ...]]:
        """What a node said in each revision, oldest first."""
        from weft.session.log.stored_line import load_revisions  # for screens: start-up time

        return await load_revisions(self.state.tree, node, self._store)
