"""The line of a turn: what has been said on it, and how the model is given it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from weft.context import (
    ComposedMessages,
    ContextTarget,
    LineEntry,
    MessageComposer,
    RequestDigests,
    notes_for_model,
    pictures_of,
    without_words,
)
from weft.events import Fact, InputPromoted, NewMessage, SystemNote, ToolComplete
from weft.ids import CallUid, NodeId
from weft.loop.base import ContextLine, ModelEnvironment, TurnJournal
from weft.messages import Message, Node, ToolResult
from weft.providers import ModelInfo
from weft.state import SessionState

_ComposedFor: TypeAlias = tuple[MessageComposer, int, tuple[NodeId, ...]]
PICTURES: Final = "pictures"
"""The mark of a node whose pictures are not shown."""
REFUSED: Final = "refused"


class TurnLine:
    """The nodes of the turn's line, oldest first, with the results of their calls."""

    def __init__(self, journal: TurnJournal, info: ModelInfo) -> None:
        self._journal = journal
        self._info = info
        self._composer = _composer(info)
        self._entries: list[LineEntry] = []
        self._context = ContextLine(entries=())
        """As it was read last; what it held then, `_entries` has grown beyond."""
        # Composing is linear in the line, and one round asks for it several times (room, budget,
        # request).  The key holds all that can change it: the composer, how many notes there are,
        # and what is excluded.
        self._composed: tuple[_ComposedFor, ComposedMessages] | None = None
        self._notes: tuple[int, dict[NodeId | None, tuple[str, ...]]] | None = None
        """What the system said to the model too, and how many notes there were then."""
        self._requests = RequestDigests()
        self._refused: set[NodeId] = set()
        """Nodes whose pictures a vendor has refused."""
        self._emptied: dict[NodeId, tuple[LineEntry, LineEntry]] = {}
        """Entries that were excluded, and what is sent in their place."""
        self._excluded: tuple[NodeId, ...] = ()
        """What was excluded when the line was read."""

    @property
    def entries(self) -> Sequence[LineEntry]:
        """The entries so far, those included that are noted and not yet committed."""
        return self._entries

    @property
    def last(self) -> Node:
        """The node at the end."""
        return self._entries[-1].node

    @property
    def context(self) -> ContextLine:
        """The line with what was compacted, as compaction wants it."""
        return ContextLine(
            entries=tuple(self._sent_entries()),
            summary=self._context.summary,
            upto=self._context.upto,
            pinned=self._context.pinned,
            unpinned=self._context.unpinned,
            compacted=self._context.compacted,
            cleared=self._context.cleared,
            rendered=self._context.rendered,
        )

    def find(self, node: NodeId) -> LineEntry | None:
        """The entry of a node; None when it is not on the line."""
        place = _place_of(node, self._entries)
        return None if place is None else self._entries[place]

    async def load(self) -> None:
        """Read the line from the session."""
        self._context = await self._journal.line()
        self._excluded = tuple(self._journal.state.tree.excluded)
        said = self._context.excluded
        self._entries = [said.get(entry.node.id, entry) for entry in self._context.entries]
        self._composed = self._notes = None
        self._composer.use(self._context.rendered)
        self._refused |= _refused_in(self._entries, self._journal.state)
        self._hide_refused()

    def add(self, node: Node) -> None:
        """A node was noted at the end of the line."""
        self._entries.append(LineEntry(node=node, results={}))
        self._composed = None

    async def take_promoted(self, stored: Sequence[Fact]) -> None:
        """Inputs that were promoted became part of the line."""
        # Read anew and not taken from the facts: the queue holds only the beginning of a long one.
        if any(isinstance(fact, InputPromoted) for fact in stored):
            await self.load()
        else:
            await self.take_excluded()

    async def take_excluded(self) -> None:
        """Read again what a summary carries, where messages were excluded or put back since.

        The entries stay: some may be noted and not yet stored.
        """
        excluded = tuple(self._journal.state.tree.excluded)
        if self._excluded == excluded or self._context.compacted is None:
            return
        now = await self._journal.line()
        if now.upto != self._context.upto:
            return
        self._excluded = excluded
        self._context = msgspec.structs.replace(
            self._context,
            summary=now.summary,
            pinned=now.pinned,
            unpinned=now.unpinned,
            compacted=now.compacted,
        )
        self._composed = None

    def take_results(self, node: Node, results: Mapping[CallUid, ToolResult]) -> None:
        """Calls of a node have come to an end."""
        place = _place_of(node.id, self._entries)
        assert place is not None
        merged = {**self._entries[place].results, **results}
        self._entries[place] = LineEntry(node=node, results=merged)
        self._composed = None

    def render_for(self, info: ModelInfo) -> None:
        """Compose for another model from now on: what only the one before may read is left out."""
        self._info = info
        self._composer = _composer(info)
        self._composer.use(self._context.rendered)
        self._hide_refused()

    def leave_out_newest_pictures(self) -> tuple[NodeId, list[str]] | None:
        """Show the pictures of the newest node that has some no more; its id and their names.

        None when there is none left.
        """
        for entry in reversed(self._entries):
            names = pictures_of(entry)
            if names and entry.node.id not in self._refused:
                self._refused.add(entry.node.id)
                self._hide_refused()
                return entry.node.id, names
        return None

    def _hide_refused(self) -> None:
        for node in self._refused:
            self._composer.leave_out_pictures(node)
        if self._refused:
            self._composed = None

    def compose(self) -> ComposedMessages:
        """What the model is given, as the line stands.

        Composed anew only when something came to it.
        """
        tree = self._journal.state.tree
        noted = len(tree.notes) + len(tree.environments)
        wanted = (self._composer, noted, tuple(tree.excluded))
        composed = self._composed
        if composed is None or composed[0] != wanted:
            messages = self._composer.compose(
                self._sent_entries(),
                summary=self._context.summary,
                upto=self._context.upto,
                notes=self._notes_now(noted),
            )
            composed = self._composed = (wanted, messages)
        return composed[1]

    def _sent_entries(self) -> Sequence[LineEntry]:
        """The entries, without the words of those that are excluded by now."""
        excluded = self._journal.state.tree.excluded
        if not excluded:
            return self._entries
        return [
            self._emptied_entry(entry) if entry.node.id in excluded else entry
            for entry in self._entries
        ]

    def _emptied_entry(self, entry: LineEntry) -> LineEntry:
        # The same object each time: by it the composer sees that what it has composed still holds.
        known = self._emptied.get(entry.node.id)
        if known is None or known[0] is not entry:
            known = self._emptied[entry.node.id] = (entry, without_words(entry))
        return known[1]

    def _notes_now(self, count: int) -> dict[NodeId | None, tuple[str, ...]]:
        # Only added to, so their number tells whether there are new ones.  The same mapping as long
        # as there are none: by it the composer sees that what it has composed still holds.
        if self._notes is None or self._notes[0] != count:
            self._notes = (count, notes_for_model(self._journal.state.tree))
        return self._notes[1]

    def digest(self, models: ModelEnvironment, facts: Sequence[Fact] = ()) -> str:
        """The digest of the next request, as it will be once these facts are in."""
        messages = self._digests_after(facts)
        return self._requests.digest(models.model_name, models.prefix.id, models.thinking, messages)

    def _digests_after(self, facts: Sequence[Fact]) -> bytes:
        if not any(self._is_news(fact) for fact in facts):
            return self._composer.digests(self.compose().messages)
        # By a composer of its own: this one goes on where it stood.
        return digests_at_opening(self.context, self._info, self._journal.state, facts)

    def _is_news(self, fact: Fact) -> bool:
        """Whether a fact adds to what the model is given; what is noted stands on the line."""
        if isinstance(fact, NewMessage):
            return fact.advance and _place_of(fact.node.id, self._entries) is None
        return isinstance(fact, SystemNote) and fact.to_model


def digests_at_opening(
    line: ContextLine, info: ModelInfo, state: SessionState, facts: Sequence[Fact]
) -> bytes:
    """The digests of what a turn's first call will send, from the line before the facts that start
    it.
    """
    composer = _composer(info)
    composer.use(line.rendered)
    for node in _refused_in(line.entries, state):
        composer.leave_out_pictures(node)
    return _digests(composer, line, state, facts)


def messages_of(
    line: ContextLine, target: ContextTarget, state: SessionState
) -> tuple[Message, ...]:
    """The messages that a model is sent for a line, as the state has it."""
    composer = MessageComposer(target, line.rendered)
    for node in _refused_in(line.entries, state):
        composer.leave_out_pictures(node)
    notes = notes_for_model(state.tree)
    composed = composer.compose(line.entries, summary=line.summary, upto=line.upto, notes=notes)
    return composed.messages


def _digests(
    composer: MessageComposer, line: ContextLine, state: SessionState, facts: Sequence[Fact]
) -> bytes:
    notes = notes_for_model(state.tree)
    for fact in facts:
        if isinstance(fact, SystemNote) and fact.to_model:
            notes[fact.node] = (*notes.get(fact.node, ()), fact.text)
    entries = _entries_after(line.entries, facts)
    composed = composer.compose(entries, summary=line.summary, upto=line.upto, notes=notes)
    return composer.digests(composed.messages)


def _entries_after(entries: Sequence[LineEntry], facts: Sequence[Fact]) -> list[LineEntry]:
    """The line with what these facts add to it; what is noted already stands on it."""
    after = list(entries)
    for fact in facts:
        match fact:
            case NewMessage(node=node, advance=True) if _place_of(node.id, after) is None:
                after.append(LineEntry(node=node))
            case ToolComplete(node=node_id, call_uid=uid, result=result):
                place = _place_of(node_id, after)
                if place is not None and uid not in after[place].results:
                    entry = after[place]
                    results = {**entry.results, uid: result}
                    after[place] = LineEntry(node=entry.node, results=results)
            case _:
                pass
    return after


def _place_of(node: NodeId, entries: Sequence[LineEntry]) -> int | None:
    # From the end: what is looked for is nearly always the last answer of a long line.
    for place in range(len(entries) - 1, -1, -1):
        if entries[place].node.id == node:
            return place
    return None


def _refused_in(entries: Sequence[LineEntry], state: SessionState) -> set[NodeId]:
    """The nodes on record whose pictures a vendor has refused."""
    holders = ((entry.node.id, state.tree.nodes.get(entry.node.id)) for entry in entries)
    return {
        node
        for node, holder in holders
        if holder is not None and holder.marks.get(PICTURES) == REFUSED
    }


def _composer(info: ModelInfo) -> MessageComposer:
    return MessageComposer(ContextTarget(info.provider, info.name))
