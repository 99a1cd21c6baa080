"""The fold of facts into nodes, refs and a head.

The tree holds skeletons, never bodies: where a node stands, what hangs on it, and at which `seq` of
which log its words are kept.  A session of a hundred thousand facts therefore costs little memory,
and a reader of the words reads exactly the records that hold them.  The state changes in place;
`snapshot` and `restore` turn it to bytes and back, and laws compare those bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from weft.errors import UsageError
from weft.events import (
    AnyFact,
    AsideAnswered,
    BranchesStarted,
    Compacted,
    CompactionUndone,
    HeadMoved,
    MovedNode,
    NewMessage,
    NodeEdited,
    NodeMarked,
    NodesJoined,
    NodeSplit,
    RefDeleted,
    RefMoved,
    ResultsCleared,
    Rewound,
    SessionCreated,
    SubtreeDeleted,
    SubtreeRestored,
    SystemNote,
    ToolComplete,
)
from weft.ids import CallUid, NodeId
from weft.messages import ToolCall
from weft.tree.layered_map import LayeredMap
from weft.tree.skeleton import LogPosition, NodeSkeleton

if TYPE_CHECKING:  # loaded when it is first used
    from weft.tree.subtree_counts import SubtreeCounts


class Branch(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A named line of the conversation."""

    name: str
    node: NodeId | None
    """Where it ends."""
    is_current: bool = False
    length: int = 0
    """Messages on it, from the first one on."""
    left: NodeId | None = None
    """Of the answer to a change of branches: the end of the line that was left, where this one
    lacks messages of it; `summarize_branch(left)` brings over what was learned there."""


class TreeRef(msgspec.Struct, frozen=True):
    """A name for a node."""

    node: NodeId | None
    ref: Literal["branch", "checkpoint"]


class TreeAside(msgspec.Struct, frozen=True):
    """Where a side question is stored, and the node behind which it is shown."""

    at: LogPosition
    node: NodeId | None


class TreeCompaction(msgspec.Struct, frozen=True, omit_defaults=True):
    """A summary that stands for the line up to `upto`."""

    at: LogPosition
    upto: NodeId
    clears: bool = False
    """It is no summary: results of tools on this line were cleared."""


class TreeNote(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of the system's, said after `node`."""

    node: NodeId | None
    text: str
    level: str = "info"
    to_model: bool = False
    seq: int = 0
    environment: dict[str, str] = {}
    """What the model knows of its environment from here on, by subject."""
    order: int = 0
    """Its place among all notes."""
    at: float = 0.0


class NoteIndex:
    """The notes of a tree by the node that they were said after, as far as models get them."""

    def __init__(self) -> None:
        self.sent: dict[NodeId | None, tuple[str, ...]] = {}
        """What the model is told there, in the order in which it came."""
        self.environments: dict[NodeId | None, dict[str, str]] = {}
        """What the model knows of its environment from there on."""
        self._taken = (0, 0)

    def take(self, notes: list[TreeNote], environments: list[TreeNote]) -> None:
        """Take in what is new: both are only added to, and a turn must not cost more the longer
        the session is.
        """
        taken, self._taken = self._taken, (len(notes), len(environments))
        new = [*notes[taken[0] :], *environments[taken[1] :]]
        # In the order in which they came: what was sent stays as it is in all later requests.
        for note in sorted(new, key=lambda note: note.order):
            if note.to_model:
                self.sent[note.node] = (*self.sent.get(note.node, ()), note.text)
            if note.environment:
                self.environments[note.node] = note.environment


_OF_TEXT: Final = ("context", "role")
"""Marks that belong to what a line of text shows."""
CUTS_READER: Final = 2
"""The first `READER_VERSION` that knows nodes which are cut, joined, carried or being generated.

An older one skips these facts: it would show text twice, number revisions anew, and never settle
the branches.
"""
EXCLUDED: Final = "excluded"
"""The mark of a message that models are not sent any more."""
EXCLUDED_READER: Final = 4
"""The first `READER_VERSION` that leaves out messages with that mark.

An older one would send them without a word, so it may not open a session that has some.
"""
_TABLES: Final = (dict, LayeredMap)
"""What holds the nodes of a tree."""


class ConversationTree(msgspec.Struct, kw_only=True, dict=True):
    """Nodes, head and refs of one session."""

    # A dict until the session is forked, and then layers: reading a dict is faster.
    nodes: Mapping[NodeId, NodeSkeleton] = {}
    roots: list[NodeId] = []
    head: NodeId | None = None
    refs: dict[str, TreeRef] = {}
    deleted: dict[NodeId, bool] = {}
    """Tops of hidden subtrees (a map, because its order is kept)."""
    compactions: list[TreeCompaction] = []
    undone: TreeCompaction | None = None
    """The one that was undone, where none was made since."""
    asides: list[TreeAside] = []
    """Side questions: no model is sent them."""
    notes: list[TreeNote] = []
    environments: list[TreeNote] = []
    """The notes on the environment: said to the model alone, and no part of the history."""
    pins: dict[NodeId, bool] = {}
    """The pinned nodes.

    They are marked too, but to look for the marks is to look at every node.
    """
    bookmarks: dict[NodeId, bool] = {}
    """The nodes with a bookmark."""
    excluded: dict[NodeId, bool] = {}
    """The nodes that no request has any more."""
    min_reader: int = 1
    """The least `READER_VERSION` that reads these facts right."""

    # Beside the fields, so that it is neither stored nor compared.
    @cached_property
    def counts(self) -> SubtreeCounts:
        """How many messages are below each node."""
        from weft.tree.subtree_counts import SubtreeCounts  # few sessions are ever asked for it

        return SubtreeCounts()

    @property
    def edits(self) -> int:
        """How often the text of nodes has changed since the tree was loaded; it is not stored."""
        return int(self.__dict__.get("edits", 0))

    @cached_property
    def _note_index(self) -> NoteIndex:
        return NoteIndex()

    @property
    def notes_by_node(self) -> NoteIndex:
        """The notes, by the nodes that they were said after."""
        self._note_index.take(self.notes, self.environments)
        return self._note_index

    def asked_counts(self) -> SubtreeCounts | None:
        """The counts, when they were asked for."""
        return self.__dict__.get("counts")

    # -- taking facts in

    def apply(self, fact: AnyFact) -> None:
        """Take one more fact in.  No I/O, no clock: replaying and living through it agree."""
        match fact:
            case NewMessage():
                self._add(fact)
            case ToolComplete(node=node, call_uid=call_uid):
                # A fold never raises: a log that was stored has to open, even when it speaks of a
                # node that it does not hold.
                if (holder := self._own(node)) is not None:
                    holder.take_result(call_uid, _place(fact))
            case NodeEdited(node=node, revision=revision):
                self._revise(node, revision, _place(fact))
                self.min_reader = max(self.min_reader, reader_for(fact))
                for child in fact.carries:
                    if (holder := self._own(child)) is not None and holder.parent == node:
                        holder.parent_revision = revision
            case NodeSplit(node=node, revision=revision):
                self.min_reader = max(self.min_reader, reader_for(fact))
                if node in self.nodes:
                    self._revise(node, revision, _place(fact))
                    self._add_tail(fact)
                    self._move(fact.moves, fact.tail.id)
                    if self.nodes[fact.tail.id].parent == node:
                        self._move_ends(node, fact.tail.id)
            case NodesJoined(node=node, revision=revision, child=child):
                self.min_reader = max(self.min_reader, reader_for(fact))
                if node in self.nodes:
                    self._revise(node, revision, _place(fact))
                    self._move(fact.moves, node)
                    self._move_ends(child, node)
                    self.deleted[child] = True
                    self._hide(child)
            case BranchesStarted():
                self.min_reader = max(self.min_reader, reader_for(fact))
            case NodeMarked(node=node, mark=mark, value=value):
                if (holder := self._own(node)) is not None:
                    holder.set_mark(mark, value)
                    self._pin(node, holder)
                if mark in _OF_TEXT:
                    self.__dict__["edits"] = self.edits + 1
            case SubtreeDeleted(node=node):
                # Hidden, not cut off: a fold that forgot the subtree could not restore it.
                self.deleted[node] = True
                self._hide(node)
            case SubtreeRestored(node=node):
                self.deleted.pop(node, None)
                self._show(node)
            case HeadMoved(node=node):
                self.head = node
            case Rewound(to=to, conversation=True):
                self.head = to
            case RefMoved(name=name, node=node, ref=ref):
                self.refs[name] = TreeRef(node, ref)
            case RefDeleted(name=name):
                self.refs.pop(name, None)
            case Compacted(upto=upto):
                self.compactions.append(TreeCompaction(_place(fact), upto))
                self.undone = None
            case ResultsCleared(upto=upto):
                self.compactions.append(TreeCompaction(_place(fact), upto, clears=True))
                self.undone = None
            case CompactionUndone(compaction=seq, log=log):
                # A `seq` alone is ambiguous in a fork, whose own log counts from 1 again.
                self._undo(LogPosition(log or fact.session_id, seq))
            case SystemNote():
                self._add_note(fact)
            case AsideAnswered(node=node):
                self.asides.append(TreeAside(_place(fact), node))
            case SessionCreated(fork=fork) if fork is not None:
                self.head = fork.node
            case _:
                pass

    def _undo(self, place: LogPosition) -> None:
        self.undone = next((c for c in self.compactions if c.at == place), self.undone)
        self.compactions = [c for c in self.compactions if c.at != place]

    def _add(self, fact: NewMessage) -> None:
        node = fact.node
        # An id names one node for ever; a second fact of it is a repeat.
        if node.id in self.nodes:
            return
        above = self._own(node.parent) if node.parent is not None else None
        metadata = node.metadata
        holder = NodeSkeleton(
            parent=None if above is None else self._shared(node.parent),
            role=node.role,
            at=_place(fact),
            parent_revision=node.parent_revision,
            calls=tuple([part.call_uid for part in node.parts if type(part) is ToolCall]),
            marked=dict(metadata) if metadata else None,
            partial=bool(metadata) and node.is_partial,
            depth=1 if above is None else above.depth + 1,
            hidden=node.id in self.deleted or (above is not None and above.hidden),
        )
        nodes = self.nodes
        assert isinstance(nodes, _TABLES)
        nodes[node.id] = holder
        if holder.marked is not None:
            self._pin(node.id, holder)
        # A message whose parent is not in the log becomes a root: better than one that cannot be
        # found, or whose line cannot be walked.
        if above is None:
            self.roots.append(node.id)
        else:
            above.add_child(node.id)
        if (counts := self.asked_counts()) is not None:
            counts.add(node.id, holder.parent, hidden=holder.hidden)
        if fact.advance:
            self.head = node.id

    def _revise(self, node: NodeId, revision: int, place: LogPosition) -> None:
        self.__dict__["edits"] = self.edits + 1
        if (holder := self._own(node)) is not None:
            holder.earlier += (holder.at,)
            holder.at = place
            holder.revision = revision

    def _add_tail(self, fact: NodeSplit) -> None:
        """The second half of a node that was split: a new one, or one that was joined before."""
        tail = fact.tail
        if tail.id not in self.nodes:
            place = msgspec.structs.replace(tail, parent=fact.node, parent_revision=fact.revision)
            added = NewMessage(
                node=place, advance=False, session_id=fact.session_id, seq=fact.seq, at=fact.at
            )
            self._add(added)
            return
        self.deleted.pop(tail.id, None)
        self._show(tail.id)

    def _move(self, moves: tuple[MovedNode, ...], to: NodeId) -> None:
        """Hang nodes on another one."""
        target = self._own(to)
        for moved in moves if target is not None else ():
            held = self._own(node := moved.node)
            above = None if held is None or held.parent is None else self._own(held.parent)
            # A fold never raises, and never makes a circle of a tree.
            if held is None or above is None or target is None or node in self.walk_up(to):
                continue
            old = held.parent
            above.children = tuple(each for each in above.children if each != node)
            target.add_child(node)
            held.parent, held.parent_revision = to, moved.revision
            if old is not None and (counts := self.asked_counts()) is not None:
                counts.move(node, old, to, self.nodes)
            self._deepen(node, target.depth + 1 - held.depth)
            # What was deleted with the one may be seen below the other.
            if target.hidden:
                self._hide(node)
            else:
                self._show(node)

    def _move_ends(self, old: NodeId, new: NodeId) -> None:
        """What stood at the end of a text stands where that end has gone to."""
        if self.head == old:
            self.head = new
        for name, ref in self.refs.items():
            if ref.node == old:
                self.refs[name] = TreeRef(new, ref.ref)
        for at, aside in enumerate(self.asides):
            if aside.node == old:
                self.asides[at] = TreeAside(aside.at, new)
        for notes in (self.notes, self.environments):
            for at, note in enumerate(notes):
                if note.node == old:
                    notes[at] = msgspec.structs.replace(note, node=new)
                    self.__dict__.pop("_note_index", None)

    def _deepen(self, top: NodeId, by: int) -> None:
        ahead = [top] if by else []
        while ahead:
            held = self._own(ahead.pop())
            if held is not None:
                held.depth += by
                ahead += held.children

    def _shared(self, parent: NodeId | None) -> NodeId | None:
        # The same string as the head, where it is the same id: there is one for every node.
        return self.head if parent == self.head else parent

    def _own(self, node: NodeId) -> NodeSkeleton | None:
        """The skeleton of a node, to be changed: never one that another tree shares."""
        nodes = self.nodes
        return (
            nodes.own(node, NodeSkeleton.copied) if type(nodes) is LayeredMap else nodes.get(node)
        )

    def _hide(self, top: NodeId) -> None:
        # Down the subtree once, and not up the line for every node of every listing. Where a node
        # is hidden already, so is all that is below it.
        ahead, gone = [top], 0
        while ahead:
            node = ahead.pop()
            held = self.nodes.get(node)
            if held is not None and not held.hidden:
                self._set_hidden(node, hidden=True)
                ahead += held.children
                gone += 1
        if gone and (counts := self.asked_counts()) is not None:
            counts.change(self.nodes[top].parent, -gone)

    def _show(self, top: NodeId) -> None:
        holder = self.nodes.get(top)
        if holder is None or (holder.parent is not None and self.is_hidden(holder.parent)):
            return
        ahead, shown = [top], list[NodeId]()
        while ahead:
            node = ahead.pop()
            held = self.nodes.get(node)
            # A subtree that was deleted by itself stays so.
            if held is not None and held.hidden and node not in self.deleted:
                self._set_hidden(node, hidden=False)
                shown.append(node)
                ahead += held.children
        if (counts := self.asked_counts()) is not None:
            counts.show(shown, self.nodes)

    def _set_hidden(self, node: NodeId, *, hidden: bool) -> None:
        holder = self._own(node)
        assert holder is not None
        holder.hidden = hidden

    def _pin(self, node: NodeId, holder: NodeSkeleton) -> None:
        tables = (("pin", self.pins), ("bookmark", self.bookmarks), (EXCLUDED, self.excluded))
        for mark, table in tables:
            if holder.marks.get(mark):
                table[node] = True
            else:
                table.pop(node, None)

    def _add_note(self, fact: SystemNote) -> None:
        note = TreeNote(
            node=fact.node,
            text=fact.text,
            level=fact.level,
            to_model=fact.to_model,
            seq=fact.seq,
            environment=fact.environment,
            order=len(self.notes) + len(self.environments),
            at=fact.at,
        )
        (self.environments if note.environment else self.notes).append(note)

    def fork(self) -> ConversationTree:
        """An equal tree that goes its own way from here on.

        The nodes are shared: each of the two copies the few that it changes.
        """
        if not isinstance(self.nodes, LayeredMap):
            self.nodes = LayeredMap.over(self.nodes)
        return ConversationTree(
            nodes=LayeredMap.over(self.nodes),
            roots=self.roots.copy(),
            head=self.head,
            refs=self.refs.copy(),
            deleted=self.deleted.copy(),
            compactions=self.compactions.copy(),
            undone=self.undone,
            asides=self.asides.copy(),
            notes=self.notes.copy(),
            environments=self.environments.copy(),
            pins=self.pins.copy(),
            bookmarks=self.bookmarks.copy(),
            excluded=self.excluded.copy(),
            min_reader=self.min_reader,
        )

    # -- reading

    def line(self, tip: NodeId | None, after: NodeId | None = None) -> list[NodeId]:
        """The ancestors of `tip` and itself, oldest first; only those below `after`, if given."""
        found: list[NodeId] = []
        # A head, or the parent in an older snapshot, may name a node that the log does not hold.
        while tip is not None and tip != after and (holder := self.nodes.get(tip)) is not None:
            found.append(tip)
            tip = holder.parent
        found.reverse()
        return found

    def ancestors(self, node: NodeId | None) -> Iterator[NodeId]:
        """`node` and its ancestors, nearest first."""
        while node is not None and (holder := self.nodes.get(node)) is not None:
            yield node
            node = holder.parent

    def is_hidden(self, node: NodeId) -> bool:
        """True when the node or one above it was deleted."""
        holder = self.nodes.get(node)
        return holder is not None and holder.hidden

    def descendant_count(self, node: NodeId) -> int:
        """How many messages are below a node, without deleted ones.

        The first call looks at all nodes; later ones only at the lines that have changed since.

        Raises:
            UsageError: there is no such node.
        """
        self.require(node)
        return self.counts.below(node, self.nodes)

    def children(self, node: NodeId | None) -> tuple[NodeId, ...]:
        """The visible children, oldest first; of None, the roots."""
        below = self.roots if node is None else self.nodes[node].children
        return tuple(each for each in below if each not in self.deleted)

    def unsettled(self, node: NodeId) -> tuple[CallUid, ...]:
        """The calls of a node that have no result yet."""
        holder = self.nodes[node]
        return tuple(uid for uid in holder.calls if uid not in holder.results)

    def compaction_for(self, tip: NodeId | None) -> TreeCompaction | None:
        """The newest summary that speaks of an ancestor of `tip`."""
        return self._newest_on(tip, [c for c in self.compactions if not c.clears])

    def clearing_for(self, tip: NodeId | None) -> TreeCompaction | None:
        """The newest clearing of results on the line that ends at `tip`, behind its summary."""
        clearings = [c for c in self.compactions if c.clears and c.upto in self.nodes]
        if not clearings:
            return None
        # Not beyond the summary: what was cleared there is no longer read, and to walk so far up
        # would make each turn of a long session dearer than the one before.
        summary = self.compaction_for(tip)
        least = 0 if summary is None else self.nodes[summary.upto].depth
        return self._newest_on(tip, [c for c in clearings if self.nodes[c.upto].depth > least])

    def undoable_for(self, tip: NodeId | None) -> TreeCompaction | None:
        """What an undo takes back: the newest of the two."""
        found = (self.compaction_for(tip), self.clearing_for(tip))
        return next((c for c in reversed(self.compactions) if c in found), None)

    def _newest_on(
        self, tip: NodeId | None, compactions: Sequence[TreeCompaction]
    ) -> TreeCompaction | None:
        if not compactions:
            return None
        # Newest first, and only on this line: a summary of another branch says nothing of this one.
        above = self.walk_up(tip)
        return next((c for c in reversed(compactions) if c.upto in above), None)

    def walk_up(self, tip: NodeId | None) -> LineWalk:
        """The line that ends at `tip`, to be asked which nodes are on it."""
        return LineWalk(self.nodes, tip)

    def pinned_on(self, tip: NodeId | None) -> list[NodeId]:
        """The pinned nodes of the line that ends at `tip`, oldest first."""
        above = self.walk_up(tip)
        pins = (pin for pin in self.pins if pin in above and pin not in self.excluded)
        return sorted(pins, key=lambda pin: self.nodes[pin].depth)

    def require(self, node: NodeId) -> NodeSkeleton:
        """The skeleton of a node that a caller named.

        Raises:
            UsageError: there is no such node.
        """
        if (holder := self.nodes.get(node)) is None:
            raise UsageError(f"there is no message {node!r} in this session")
        return holder


class LineWalk:
    """A line that is walked upward only as far as the nodes lie that it is asked about.

    The end of a long line is asked about at every turn, and to walk all of it would make each turn
    dearer than the one before.
    """

    def __init__(self, nodes: Mapping[NodeId, NodeSkeleton], tip: NodeId | None) -> None:
        self._nodes = nodes
        holder = nodes.get(tip) if tip is not None else None
        self._walked = [] if tip is None or holder is None else [tip]
        self._depth = 0 if holder is None else holder.depth

    def __contains__(self, node: NodeId) -> bool:
        holder = self._nodes.get(node)
        if holder is None or holder.depth > self._depth:
            return False
        steps = self._depth - holder.depth
        while len(self._walked) <= steps:
            above = self._nodes[self._walked[-1]].parent
            assert above is not None, "a node that is not a root has a parent"
            self._walked.append(above)
        return self._walked[steps] == node


def reader_for(fact: AnyFact) -> int:
    """The least `READER_VERSION` that reads a fact right, or may skip it."""
    match fact:
        case NodeSplit() | NodesJoined() | BranchesStarted():
            return CUTS_READER
        case NodeEdited(carries=carries) if carries:
            return CUTS_READER
        case NodeMarked(mark="excluded", value=value) if value:
            return EXCLUDED_READER
        case _:
            return 1


def _place(fact: AnyFact) -> LogPosition:
    return LogPosition(fact.session_id, fact.seq)
