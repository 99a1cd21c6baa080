"""One text tree in memory: read without waiting, written through its session's actor.

A tree is the tree of a session.  Views change it by plain calls: what they write is seen at once by
every view of this process and handed to the actor, which makes it durable in order.  Until then it
stands in a fork of the tree (new nodes, texts) and in two small maps (marks, settings).
"""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_left
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count, islice
from typing import Any, Final, Protocol

import anyio
import anyio.lowlevel
import msgspec

from weft.errors import (
    AmbiguousId,
    NodeNotFound,
    SessionBusy,
    SessionStopped,
    UsageError,
    WeftError,
)
from weft.events import (
    ErrorRaised,
    Fact,
    FactBase,
    NewMessage,
    NodeEdited,
    NodeMarked,
    NodesJoined,
    NodeSplit,
    SettingChanged,
    SubtreeDeleted,
    SubtreeRestored,
)
from weft.ids import NodeId
from weft.loom.host import LoomHost
from weft.loom.node import (
    BOOKMARK,
    CONTEXT,
    LOGPROBS,
    LOOM,
    LoomNode,
    NodeKind,
    shown_metadata,
)
from weft.loom.trees.child_order import ChildOrder
from weft.loom.trees.line_texts import LineText, LineTexts
from weft.loom.trees.node_words import READ_WHOLE, NodeWords, folded_calls
from weft.loom.trees.stored_session import StoredSession
from weft.loop import Commit, branch_ends
from weft.session import SessionActor, SessionPort, Subscription
from weft.state import SessionState
from weft.tree import ConversationTree, LogPosition, NodeSkeleton

logger = logging.getLogger(__name__)

MOST_UNDO: Final = 200
"""Changes that can be taken back."""
MOST_MATCHES: Final = 20
PART: Final = 500
"""Nodes that are read before others get their turn."""

_NO_MARKS: Final[Mapping[str, Any]] = {}
_OF_LINES: Final = (NodeEdited, NodeSplit, NodesJoined, SubtreeDeleted, SubtreeRestored)
"""What changes lines that are there."""
UndoStep = Callable[[], Sequence[Fact]]
"""What takes a change back; made when it is asked for, because revisions count on meanwhile."""


class BranchWork(Protocol):
    """Branches that are generated, as those see them who close."""

    @property
    def ended(self) -> anyio.Event: ...

    def cancel(self, *, keep_partial: bool) -> None: ...


class _PendingWrite(msgspec.Struct):
    number: int
    facts: tuple[Fact, ...]
    """Each under a place that no log has."""


class LoomTree:
    """The tree of one session, as loom views read and write it."""

    def __init__(self, port: SessionPort | StoredSession, host: LoomHost, live: set[str]) -> None:
        """`live` are the generations that run in this process; any other that is open was left by
        a dead one, or runs where the session is.
        """
        self.port = port
        self._actor: SessionActor | None = None
        """None where it is only read: this process has no lease of the session."""
        self.host = host
        self.live_generations = live
        self.words = NodeWords(host.store)
        self._ahead: ConversationTree | None = None
        """The tree with what is not durable yet; None while everything is."""
        self._ahead_of = 0
        """The last fact that it was made from."""
        self._lost: tuple[Fact, ...] = ()
        """What a dead process left of its branches: stored by the next that has the session."""
        self._marks: dict[NodeId, dict[str, tuple[int, Any]]] = {}
        self._settings: dict[str, tuple[int, Any]] = {}
        self._pending: list[_PendingWrite] = []
        self._waiters: list[tuple[int, asyncio.Future[None]]] = []
        self._forks = 0
        self._mark_edits = 0
        """Marks that change what a line shows, written here."""
        self.orders = ChildOrder()
        self._lines = LineTexts(self.words, self._marks_of)
        self._numbers = count(1)
        self._written = 0
        """The number of the last write."""
        self._places = count(1)
        self._is_writing = False
        self._undo: list[UndoStep] = []
        self._sorted: list[NodeId] = []
        self._events: Subscription | None = None
        self._is_held = False
        self.works: set[BranchWork] = set()
        """What is generated here."""
        self.views = 0
        """How many views are open on it."""

    # -- opening

    async def load(self) -> None:
        """Have the words of a small tree at hand, and of any whose store is far away; of a large
        one they are read when they are asked for.
        """
        tree = self.tree
        if len(tree.nodes) <= READ_WHOLE or not self.words.can_look:
            await self.words.load(tree.nodes.items())

    async def load_all(self) -> None:
        """Have all nodes and words at hand; others get their turn meanwhile."""
        await self.load_words(list(self.tree.nodes))

    async def load_words(self, nodes: Sequence[NodeId]) -> None:
        """Have the words of these nodes at hand."""
        # By their ids: nodes may be added and deleted while this waits.
        async for part in in_parts(nodes):
            known = self.tree.nodes
            await self.words.load([(node, known[node]) for node in part if node in known])

    async def load_nodes(self, nodes: Sequence[NodeId] | None = None) -> list[LoomNode]:
        """These nodes, or all in the order in which they came, without those that are deleted;
        others get their turn meanwhile.
        """
        await self.load_words(list(self.tree.nodes) if nodes is None else nodes)
        found: list[LoomNode] = []
        async for part in in_parts(list(self.tree.nodes) if nodes is None else nodes):
            found += [self.node(each) for each in part if self.find(each) is not None]
        return found

    def attach(self, port: SessionPort, actor: SessionActor | None) -> None:
        """Go on with the session itself, where it was only read; all views stay as they are."""
        was_held = self._is_held
        self.release()
        self.port, self._actor = port, actor
        self._ahead, self._lost = None, ()
        # Another state counts its edits from its own beginning.
        self._forks += 1
        self._mark_edits += 1
        if was_held:
            self.hold()

    def hold(self) -> None:
        """A view is open: the session stays loaded, and what others add to it is taken in."""
        if self._is_held:
            return
        self._is_held = True
        name = f"view of {self.port.session_id}"
        if isinstance(self.port, StoredSession):
            port = self.port
            self.host.start(lambda: port.follow(self.words.take), name)
        else:
            self._events = self.port.subscribe(after=self.state.seq, live="status")
            self.host.start(self._follow, name)

    async def _follow(self) -> None:
        events = self._events
        if events is not None:
            async for event in events:
                if isinstance(event, FactBase):
                    self.words.take(event)

    def release(self) -> None:
        """No view is open any more."""
        events, self._events = self._events, None
        was_held, self._is_held = self._is_held, False
        name = f"view of {self.port.session_id}"
        if events is not None:
            self.host.start(events.aclose, name)
        elif was_held and isinstance(self.port, StoredSession):
            self.host.start(self.port.unfollow, name)

    async def refresh(self) -> None:
        """Have what others have stored meanwhile, where it is only read."""
        if isinstance(self.port, StoredSession):
            await self.port.refresh()
            await self.settle_lost()

    async def settle_lost(self) -> None:
        """Make partial nodes of what generations of a dead process left; those who only read see
        them, and store nothing.
        """
        open_ones = self.state.generations.started.keys() - self.live_generations
        if not open_ones:
            return
        store, session_id = self.host.store, self.port.session_id
        # They may be on their way, in the process that has the session.
        if self._actor is None and await store.lease_of(session_id) is not None:
            return
        found = await store.load_drafts(session_id)
        drafts = {draft.node: draft.text for draft in found}
        if self._actor is not None:
            await self._actor.append(
                lambda state: branch_ends(state, open_ones, drafts, self.host.cost)
            )
            return
        ends = branch_ends(self.state, open_ones, drafts, self.host.cost).facts
        self._lost = tuple(self._placed(fact) for fact in ends if isinstance(fact, NewMessage))
        self._ahead = None
        for fact in self._lost:
            self.words.take(fact)
        if self._lost:
            self._ahead_tree()

    # -- state

    @property
    def shows_model_names(self) -> bool:
        """Whether views show who wrote what, where the tree does not say."""
        return self.host.shows_model_names

    @property
    def state(self) -> SessionState:
        """The session's state as far as it is durable."""
        return self.port.state

    @property
    def tree(self) -> ConversationTree:
        """Nodes as this process sees them, with what is not durable yet."""
        if self._ahead is None:
            return self.port.state.tree
        # What was stored since, by generations or others, must be seen too.
        if self._ahead_of != self.port.state.seq:
            self._ahead = None
            return self._ahead_tree()
        return self._ahead

    @property
    def is_open(self) -> bool:
        """False once its session has stopped."""
        return self.port.is_open

    @property
    def is_writable(self) -> bool:
        """Whether this process has the session."""
        return self._actor is not None

    @property
    def is_saved(self) -> bool:
        """Whether all that was written is durable."""
        return not self._pending

    @property
    def actor(self) -> SessionActor:
        """The session itself.

        Raises:
            UsageError: another process has it.
        """
        self.check_writable()
        assert self._actor is not None
        return self._actor

    def check_writable(self) -> None:
        """Refuse a view that wants to write where this process cannot.

        Raises:
            UsageError: another process has the session.
        """
        if self._actor is None:
            raise UsageError(
                f"another process has the tree {self.tree_id!r}: until that is done with it, it "
                "can be read (read_only=True) and not changed"
            )

    @property
    def name(self) -> str:
        """What lists call the tree: the name that it was given, or its first words."""
        given = "" if self.setting("auto_title") else str(self.setting("title", ""))
        return given or self.state.title

    @property
    def root_id(self) -> NodeId:
        """The first node.

        Raises:
            NodeNotFound: the session is empty.
        """
        tree = self.tree
        if not tree.roots:
            raise NodeNotFound(self.port.session_id)
        # A text that was written anew from its first word on has a second root beside the first.
        named = self.setting("loom_root")
        if named is not None and self.find(named) is not None:
            return NodeId(named)
        return next((root for root in tree.roots if not tree.is_hidden(root)), tree.roots[0])

    @property
    def tree_id(self) -> NodeId:
        """What lists call the tree by, and what opens it: the id of its root.  A fork shares that
        with the tree that it came from, and has its session's.
        """
        is_fork = self.state.about.fork is not None
        return NodeId(self.port.session_id) if is_fork else self.root_id

    def is_home_of(self, node: NodeId) -> bool:
        """Whether a node was written in this tree, and not in one that this is a fork of."""
        held = self.tree.nodes.get(node)
        if held is None:
            return False
        return (held.earlier[0] if held.earlier else held.at).log == self.port.session_id

    def shown_id(self, node: NodeId) -> NodeId:
        """The id of a node for programs and screens: the root is called as the tree is."""
        return self.tree_id if node == self.root_id else node

    @property
    def edition(self) -> tuple[int, int, int]:
        """Another one after every change."""
        return self.state.seq, self._written, len(self._lost)

    def setting(self, name: str, default: Any = None) -> Any:
        """A setting of the tree."""
        if name in self._settings:
            value = self._settings[name][1]
            return default if value is None else value
        return self.state.settings.get(name, default)

    def marks(self, node: NodeId) -> Mapping[str, Any]:
        """The marks of a node by name."""
        return self._marks_of(node, self.tree.nodes[node])

    def _marks_of(self, node: NodeId, held: NodeSkeleton) -> Mapping[str, Any]:
        marks = held.marked or _NO_MARKS
        ahead = self._marks.get(node)
        if not ahead:
            return marks
        merged = {**marks, **{name: value for name, (_, value) in ahead.items()}}
        return {name: value for name, value in merged.items() if value is not None}

    # -- nodes

    def find(self, node: str) -> NodeSkeleton | None:
        """A node that is there and not deleted."""
        held = self.tree.nodes.get(NodeId(node))
        return None if held is None or held.hidden else held

    def require(self, node: str) -> NodeSkeleton:
        """The same.

        Raises:
            NodeNotFound: it is not.
        """
        held = self.find(node)
        if held is None:
            raise NodeNotFound(node)
        return held

    def resolve(self, reference: str) -> NodeId:
        """The node that an id or the beginning of one means.

        Raises:
            NodeNotFound: none; an empty reference means none.
            AmbiguousId: several, the newest first.
        """
        if reference == self.port.session_id:
            return self.root_id
        if reference and self.find(reference) is not None:
            return NodeId(reference)
        matches = self.with_prefix(reference) if reference else []
        if not matches:
            raise NodeNotFound(reference)
        if len(matches) > 1:
            raise AmbiguousId(reference, tuple(matches))
        return matches[0]

    def with_prefix(self, prefix: str) -> list[NodeId]:
        """The nodes whose ids begin so, taken literally, the newest first."""
        nodes = self.tree.nodes
        if len(self._sorted) != len(nodes):
            self._sorted = sorted(nodes)
        found: list[NodeId] = []
        for node in self._sorted[bisect_left(self._sorted, prefix) :]:
            if not node.startswith(prefix) or len(found) == MOST_MATCHES:
                break
            if not nodes[node].hidden:
                found.append(node)
        return sorted(found, key=self.age_of, reverse=True)

    def unstored(self) -> list[NodeId]:
        """The nodes that are not durable yet, in the order in which they came."""
        pending = [fact for batch in self._pending for fact in batch.facts]
        return [
            fact.node.id if isinstance(fact, NewMessage) else fact.tail.id
            for fact in (*self._lost, *pending)
            if isinstance(fact, NewMessage | NodeSplit)
        ]

    def age_of(self, node: NodeId) -> tuple[float, int]:
        """By this, nodes are in the order in which they came."""
        held = self.tree.nodes[node]
        first = held.earlier[0] if held.earlier else held.at
        # What is not stored yet has a negative place, and is the newest.
        return (first.seq if first.seq > 0 else 1e15 - first.seq), first.seq

    def children(self, node: NodeId) -> tuple[NodeId, ...]:
        """The children that are not deleted, oldest first; those of one generation by its plan."""
        return tuple(child for child, _, _ in self.orders.of(node, self.tree))

    def parent(self, node: NodeId) -> NodeId | None:
        """The node above."""
        return self.tree.nodes[node].parent

    def text(self, node: NodeId, revision: int | None = None) -> str:
        """This segment alone."""
        return self.words.text(node, self.tree.nodes[node], revision)

    def look(self, nodes: Iterable[NodeId]) -> None:
        """Have the words of these nodes at hand, read in one go."""
        held = self.tree.nodes
        self.words.look((node, held[node], None) for node in nodes)

    def line(self, node: NodeId) -> list[NodeId]:
        """The nodes from the root down to this one."""
        return self.tree.line(node)

    def shown_line(self, node: NodeId) -> LineText:
        """The line down to a node as a view shows it: of each node the revision that the next one
        grew from, and of the last the newest.
        """
        tree = self.tree
        # A fork counts its edits from its own beginning.
        edition = (self._forks if self._ahead is not None else 0, tree.edits, self._mark_edits)
        return self._lines.line(node, tree.nodes, edition)

    def line_texts(self, node: NodeId) -> list[tuple[NodeId, str]]:
        """What each node of a line says there."""
        return [(each.node_id, each.text) for each in self.shown_line(node).segments]

    def full_text(self, node: NodeId) -> str:
        """All text from the root down to this node."""
        return self.shown_line(node).text

    def sent_text(self, node: NodeId) -> str:
        """The same as models are sent it: without what is excluded."""
        excluded = self.tree.excluded
        if not excluded:
            return self.full_text(node)
        return "".join(text for each, text in self.line_texts(node) if each not in excluded)

    def descendant_count(self, node: NodeId) -> int:
        """How many nodes are below."""
        return self.tree.descendant_count(node)

    def subtree(self, top: NodeId) -> Iterator[NodeId]:
        """A node and all below it that is not deleted, each after its parent."""
        ahead = [top]
        while ahead:
            node = ahead.pop()
            yield node
            ahead += reversed(self.children(node))

    def all_nodes(self) -> list[NodeId]:
        """All nodes that are not deleted, in the order in which they came."""
        return [node for node, held in self.tree.nodes.items() if not held.hidden]

    def newest(self, limit: int) -> list[NodeId]:
        """The nodes that came last, the last one first."""
        seen = (node for node in reversed(list(self.tree.nodes)) if self.find(node) is not None)
        return list(islice(seen, limit))

    def bookmarks(self) -> list[NodeId]:
        """The marked nodes in the order in which they came."""
        ahead = {node for node, marks in self._marks.items() if BOOKMARK in marks}
        marked = [
            node
            for node in {*self.tree.bookmarks, *ahead}
            if self.find(node) is not None and self.marks(node).get(BOOKMARK)
        ]
        return sorted(marked, key=self.age_of)

    def context_of(self, node: NodeId) -> str:
        """What models are told beside the text: the nearest above counts, an empty one too."""
        return self.shown_line(node).context or ""

    # -- the checked-out line

    def checked_out_child(self, node: NodeId) -> NodeId | None:
        """The child that was selected last; None where none was, or it is gone."""
        child = self.marks(node).get("checked_out")
        held = self.find(child) if isinstance(child, str) else None
        return NodeId(str(child)) if held is not None and held.parent == node else None

    def active_node(self) -> NodeId:
        """Where the tree was left; the nearest node above it that is not deleted."""
        at: NodeId | None = NodeId(str(self.setting("loom_active", "")))
        nodes = self.tree.nodes
        while at is not None and (held := nodes.get(at)) is not None:
            if not held.hidden:
                return at
            at = held.parent
        return self.root_id

    # -- as programs see them

    def line_nodes(self, node: NodeId) -> list[LoomNode]:
        """The nodes from the root down to this one, each with the text that it has on this line."""
        line = self.line(node)
        read = [self.tree.nodes[child].parent_revision for child in line[1:]]
        return [self.node(each, at) for each, at in zip(line, (*read, None), strict=True)]

    def node(self, node: NodeId, revision: int | None = None) -> LoomNode:
        """A node with its text, in its newest revision or in an earlier one."""
        held = self.tree.nodes[node]
        head, marks = self.words.head(node, held), self.marks(node)
        made = marks.get(LOOM)
        loom: Mapping[str, Any] = made if isinstance(made, Mapping) else {}
        is_text = isinstance(made, Mapping)
        metadata = shown_metadata(marks)
        if head.calls:
            metadata["calls"] = folded_calls(head, held, self.words)
        rating = marks.get("rating")
        scores = self.words.scores(marks.get(LOGPROBS))
        return LoomNode(
            id=self.shown_id(node),
            parent_id=None if held.parent is None else self.shown_id(held.parent),
            root_id=self.tree_id,
            text=self.words.text(node, held, revision),
            revision=held.revision if revision is None else min(revision, held.revision),
            parent_revision=held.parent_revision,
            kind=_kind(held, is_text=is_text),
            role=metadata.get("role") if is_text else held.role,
            model=head.model or None,
            strategy=loom.get("strategy"),
            max_tokens=loom.get("max_tokens"),
            temperature=loom.get("temperature"),
            created_at=head.at,
            partial=held.partial,
            bookmarked=bool(marks.get(BOOKMARK)),
            hidden=bool(marks.get("hidden")),
            rating=rating if isinstance(rating, int) else None,
            usage=head.usage,
            cost_usd=head.usage.cost_usd if head.usage is not None else None,
            metadata=metadata,
            tokens=None if scores is None else scores.tokens,
        )

    # -- writing

    def write(self, facts: Sequence[Fact], undo: UndoStep | None = None) -> None:
        """Take facts in at once, and hand them to the session.

        Raises:
            UsageError: another process has the session.
            SessionBusy: a turn runs, and they change lines.
            SessionStopped: it was stopped.
        """
        actor = self.actor
        if not self.is_open:
            raise SessionStopped(self.port.session_id, actor.stopped_because)
        if not facts:
            return
        is_busy = actor.is_busy or self.state.turn.open is not None
        if is_busy and any(isinstance(fact, _OF_LINES) for fact in facts):
            raise SessionBusy(self.port.session_id, "change its text")
        number = self._written = next(self._numbers)
        batch = _PendingWrite(number, tuple(self._placed(fact) for fact in facts))
        self._apply(batch)
        self._pending.append(batch)
        if undo is not None:
            self._undo.append(undo)
            del self._undo[:-MOST_UNDO]
        if not self._is_writing:
            self._is_writing = True
            self.host.start(self._store_pending, f"loom of {self.port.session_id}")

    def _placed(self, fact: Fact) -> Fact:
        return msgspec.structs.replace(
            fact,
            session_id=self.port.session_id,
            seq=-next(self._places),
            at=fact.at or self.host.now(),
        )

    def _apply(self, batch: _PendingWrite) -> None:
        for fact in batch.facts:
            match fact:
                case NodeMarked(node=node, mark=mark, value=value):
                    self._mark_edits += mark in (CONTEXT, "role")
                    self._marks.setdefault(node, {})[mark] = (batch.number, value)
                case SettingChanged(name=name, value=value):
                    self._settings[name] = (batch.number, value)
                case _:
                    self.words.take(fact)
                    # By the property, so that it stands on all that is stored by now.
                    self._ahead_tree()
                    self.tree.apply(fact)

    def _ahead_tree(self) -> ConversationTree:
        if self._ahead is None:
            self._forks += 1
            self._ahead = _counted_fork(self.port.state.tree)
            self._ahead_of = self.port.state.seq
            pending = [fact for batch in self._pending for fact in batch.facts]
            for fact in (*self._lost, *pending):
                if not (isinstance(fact, NodeMarked | SettingChanged) or self._is_in(fact)):
                    self._ahead.apply(fact)
        return self._ahead

    def _is_in(self, fact: Fact) -> bool:
        """Whether the session's own state has a change of a text by now: stored, and not yet known
        to be.  Any other fact may be applied twice.
        """
        if not isinstance(fact, NodeEdited | NodeSplit | NodesJoined):
            return False
        held = self.port.state.tree.nodes.get(fact.node)
        return held is not None and held.revision >= fact.revision

    async def _store_pending(self) -> None:
        try:
            while self._pending:
                await self._store_batches(list(self._pending))
        finally:
            self._is_writing = False

    async def _store_batches(self, batches: Sequence[_PendingWrite]) -> None:
        facts = _newest_only([fact for batch in batches for fact in batch.facts])
        plain = tuple(
            msgspec.structs.replace(fact, session_id=type(fact.session_id)(""), seq=0)
            for fact in facts
        )
        try:
            stored = await self.actor.append(lambda state: Commit(facts=plain))
        except WeftError as error:
            await self._give_up(error)
            return
        for before, after in zip(facts, stored, strict=False):
            self.words.moved(LogPosition(before.session_id, before.seq), after)
        del self._pending[: len(batches)]
        self._forget(batches[-1].number)
        self._answer(batches[-1].number, None)

    def _forget(self, number: int) -> None:
        """What was written up to here is in the session's own state now."""
        for node, marks in list(self._marks.items()):
            kept = {name: held for name, held in marks.items() if held[0] > number}
            if kept:
                self._marks[node] = kept
            else:
                del self._marks[node]
        self._settings = {name: held for name, held in self._settings.items() if held[0] > number}
        self._ahead = None
        if any(
            not isinstance(f, NodeMarked | SettingChanged) for b in self._pending for f in b.facts
        ):
            self._ahead_tree()

    async def _give_up(self, error: WeftError) -> None:
        """Nothing that was handed in is kept: what came later may build on what failed."""
        last = self._pending[-1].number if self._pending else 0
        self._pending.clear()
        self._forget(last)
        self._undo.clear()
        logger.error("a change of a tree was not stored: %s", error)
        raised = ErrorRaised(message=str(error), where="loom", error=type(error).__name__)
        try:
            await self.actor.append(lambda state: Commit(facts=(raised,)))
        except WeftError:
            logger.exception("nor was it noted", extra={"session": self.port.session_id})
        self._answer(last, error)

    def _answer(self, number: int, error: WeftError | None) -> None:
        waiting, self._waiters = self._waiters, []
        for upto, future in waiting:
            if upto > number:
                self._waiters.append((upto, future))
            elif not future.done():
                if error is None:
                    future.set_result(None)
                else:
                    future.set_exception(error)

    def saved(self) -> asyncio.Future[None]:
        """Done when all that was written before this call is durable.  It need not be awaited: a
        failure is on the session's record too.
        """
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if not self._pending:
            future.set_result(None)
            return future
        # Looked at here, so that the loop does not complain of a failure that nobody awaits.
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._waiters.append((self._pending[-1].number, future))
        return future

    async def finish(self) -> None:
        """Stop what is generated here, and wait until all that was written is durable, or its
        failure on record.
        """
        for work in list(self.works):
            work.cancel(keep_partial=True)
            await work.ended.wait()
        with suppress(WeftError):
            await self.saved()

    # -- taking back

    @property
    def can_undo(self) -> bool:
        """Whether a change can be taken back."""
        return bool(self._undo)

    def push_undo(self, undo: UndoStep) -> None:
        """A change that was stored on another way can be taken back so."""
        self._undo.append(undo)
        del self._undo[:-MOST_UNDO]

    def undo(self) -> bool:
        """Take the last change back; False where there is none."""
        if not self._undo:
            return False
        self.write(self._undo[-1]())
        self._undo.pop()
        return True


async def in_parts(nodes: Sequence[NodeId]) -> AsyncIterator[Sequence[NodeId]]:
    """Some of these at a time, with a turn for others in between."""
    for start in range(0, len(nodes), PART):
        yield nodes[start : start + PART]
        await anyio.lowlevel.checkpoint()


def _kind(held: NodeSkeleton, *, is_text: bool) -> NodeKind:
    if not is_text:
        return "message"
    return "root" if held.parent is None else "text"


def _counted_fork(tree: ConversationTree) -> ConversationTree:
    """A fork that need not count again what the tree has counted."""
    fork = tree.fork()
    if (counts := tree.asked_counts()) is not None:
        fork.__dict__["counts"] = counts.copied()
    return fork


def _newest_only(facts: Sequence[Fact]) -> list[Fact]:
    """The facts without marks and settings that later ones replace: of a walk through a tree only
    its end is stored.
    """
    seen: set[tuple[str, str]] = set()
    kept: list[Fact] = []
    for fact in reversed(facts):
        key: tuple[str, str] | None = None
        if isinstance(fact, NodeMarked):
            key = (fact.node, fact.mark)
        elif isinstance(fact, SettingChanged):
            key = ("", fact.name)
        if key is None or key not in seen:
            kept.append(fact)
        if key is not None:
            seen.add(key)
    kept.reverse()
    return kept
