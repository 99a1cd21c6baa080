"""Facts that wait for the next append.

A step of a turn ends in one append.  What is known before that is noted here, and goes along.  A
commit takes the notes over inside the actor, at the instant it is carried out: cancelling the wait
can therefore neither lose them nor write them twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from weft.events import Fact, SystemNote
from weft.faults import FailPointPair
from weft.ids import BlobId
from weft.loop.base import CallJournal, Commit, ProjectFacts, TreeBlobs
from weft.loop.turn_facts import tip_after
from weft.state import SessionState

More: TypeAlias = Callable[[SessionState, Sequence[Fact]], Sequence[Fact]]
"""Makes further facts from the state and the notes."""


class PendingFacts:
    """What a turn has to say and has not committed yet."""

    def __init__(self, journal: CallJournal) -> None:
        self._journal = journal
        self._facts: list[Fact] = []
        self._blobs: dict[BlobId, bytes] = {}
        self._trees = TreeBlobs()
        self._results: list[Commit] = []
        self._projects: tuple[ProjectFacts, ...] = ()

    @property
    def facts(self) -> Sequence[Fact]:
        """The notes so far."""
        return tuple(self._facts)

    @property
    def has_facts(self) -> bool:
        """True when something is noted."""
        return bool(self._facts)

    def note(self, *facts: Fact, blobs: Mapping[BlobId, bytes] | None = None) -> None:
        """Let these facts go along with the next commit."""
        self._facts += facts
        self._blobs.update(blobs or {})

    def note_result(self, result: Commit) -> None:
        """Note what a tool call came to: it is not lost where the next commit cannot be stored."""
        self.note_commit(result)
        self._results.append(result)

    def note_commit(self, commit: Commit) -> None:
        """Let what was made for an append of its own go along with the next commit."""
        self.note(*commit.facts, blobs=commit.blobs)
        self._trees |= commit.trees
        self._projects += commit.projects

    def nudge(self, text: str) -> None:
        """Note something that the model reads behind the last node, with its next request."""
        node = tip_after(self._journal.state, self._facts)
        self.note(SystemNote(text=text, to_model=True, node=node))

    async def commit(
        self,
        boundary: FailPointPair,
        more: More | None = None,
        *,
        drop_draft: bool = False,
        ends_work: bool = False,
    ) -> Sequence[Fact]:
        """Append the notes, and what `more` makes of the state and the notes.

        One append, or none when there is nothing.  `ends_work` is `Commit`'s.
        """

        boundary.before.hit()
        # The notes are taken when the actor carries the commit out, not when it is queued: what is
        # noted while this waits in the mailbox goes along and stays in order.
        stored = await self._journal.commit(
            lambda state: self.take(state, more, drop_draft=drop_draft, ends_work=ends_work)
        )
        boundary.after.hit()
        return stored

    def take(
        self,
        state: SessionState,
        more: More | None = None,
        *,
        drop_draft: bool,
        ends_work: bool = False,
    ) -> Commit:
        """Hand the notes over, with what `more` makes of the state and the notes.

        For the actor, when it carries a commit out.  `drop_draft` ends the draft of the turn's open
        call; other answers of the session may be in flight beside it.
        """
        call = state.turn.open.call if state.turn.open is not None else None
        ended = (call.node,) if drop_draft and call is not None else ()
        extra = more(state, self.facts) if more is not None else ()
        facts, self._facts = self._facts, []  # those included that `more` has noted
        blobs, self._blobs = self._blobs, {}
        trees, self._trees = self._trees, TreeBlobs()
        results, self._results = self._results, []
        projects, self._projects = self._projects, ()
        return Commit(
            facts=(*facts, *extra),
            blobs=blobs,
            ends_drafts=ended,
            trees=trees,
            projects=projects,
            ends_work=ends_work,
            results=tuple(results),
        )
