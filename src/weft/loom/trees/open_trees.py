"""The trees that are in memory, and the way from an id to one of them.

Reading takes no lease: a tree that no process works on is folded from its log, one that another
process has is read beside it, and only what is to be written is opened as a session.

A node belongs to the tree in whose log it was written.  A fork has it too, and is meant only where
it is named: by its session's id, or by `SESSION/NODE`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

import anyio

from weft.errors import (
    AmbiguousId,
    Corrupt,
    NodeNotFound,
    SessionNotFound,
    TooNew,
    UsageError,
    WeftError,
)
from weft.ids import NodeId, SessionId, derived_id, is_node_id
from weft.loom.host import LoomHost
from weft.loom.trees.loom_tree import LoomTree
from weft.loom.trees.stored_session import StoredSession
from weft.store import NodePlace, RowPlace, SessionRow

logger = logging.getLogger(__name__)

MOST_MATCHES: Final = 20
MOST_TREES: Final = 64
"""Trees without a view that are kept in memory."""
PAGE: Final = 500


class OpenTrees:
    """All trees of an application that are in use."""

    def __init__(self, host: LoomHost) -> None:
        self._host = host
        self._trees: dict[SessionId, LoomTree] = {}
        self._locks: dict[SessionId, anyio.Lock] = {}
        self._live: set[str] = set()
        """Generations that run in this process."""

    def __iter__(self) -> Iterator[LoomTree]:
        return iter([tree for tree in self._trees.values() if tree.is_open])

    # -- by session

    async def reading(self, session_id: SessionId) -> LoomTree:
        """The tree of a session as it is now, to be looked at.

        Raises:
            SessionNotFound: there is none.
        """
        async with self._alone(session_id):
            return await self._kept(session_id, await self._current(session_id))

    async def _current(self, session_id: SessionId) -> LoomTree:
        known = self._known(session_id)
        if known is None:
            return await self._looked_at(session_id)
        if not known.is_writable:
            await self._check_there(session_id)
            await known.refresh()
        return known

    async def _having(self, session_id: SessionId, node: str) -> LoomTree | None:
        """The tree of a session if it has this node; any other is not kept in memory."""
        async with self._alone(session_id):
            tree = await self._current(session_id)
            return None if tree.find(node) is None else await self._kept(session_id, tree)

    async def readable(self, session_id: SessionId) -> LoomTree | None:
        """The same for lists, which one tree must not break; None where it is gone, damaged, or of
        a newer program.
        """
        try:
            return await self.reading(session_id)
        except SessionNotFound:
            return None
        except (Corrupt, TooNew) as error:
            logger.info("a list leaves out the tree of %s: %s", session_id, error)
            return None

    async def writing(self, session_id: SessionId) -> LoomTree:
        """The tree of a session, which this process has from now on.

        Raises:
            SessionNotFound: there is none.
            UsageError: another process has it.
        """
        async with self._alone(session_id):
            known = self._known(session_id)
            if known is None or not known.is_writable:
                await self._check_free(session_id)
                port = await self._host.port(session_id)
                if known is None:
                    known = LoomTree(port, self._host, self._live)
                known.attach(port, self._host.actor(session_id))
                known.check_writable()
                await known.settle_lost()
            return await self._kept(session_id, known)

    def _known(self, session_id: SessionId) -> LoomTree | None:
        known = self._trees.get(session_id)
        return known if known is not None and known.is_open else None

    async def _looked_at(self, session_id: SessionId) -> LoomTree:
        actor = self._host.actor(session_id)
        if actor is not None:
            # It is open here: a coding session that is looked at as a tree.
            port = await self._host.port(session_id)
            tree = LoomTree(port, self._host, self._live)
            tree.attach(port, actor)
        else:
            await self._check_there(session_id)
            stored = await StoredSession.load(session_id, self._host.store)
            tree = LoomTree(stored, self._host, self._live)
            if stored.state.generations.started:
                await self._settle_free(session_id)
                await stored.refresh()
        await tree.settle_lost()
        return tree

    async def _check_there(self, session_id: SessionId) -> None:
        # By the row: the log of a deleted session may be there still, as the past of forks.
        if await self._host.store.row(session_id) is None:
            self.forget(session_id)
            raise SessionNotFound(session_id)

    async def _settle_free(self, session_id: SessionId) -> None:
        """Store what a dead process left of its branches, and give the session back.

        Where another process has it they may be on their way, and where nothing can be stored they
        are shown all the same.
        """
        try:
            await self._check_free(session_id)
            port = await self._host.port(session_id)
            actor = self._host.actor(session_id)
            if actor is not None:
                tree = LoomTree(port, self._host, self._live)
                tree.attach(port, actor)
                await tree.settle_lost()
        except WeftError:
            logger.warning("branches of %s were not settled", session_id, exc_info=True)
        finally:
            await self._host.unload(session_id)

    async def _check_free(self, session_id: SessionId) -> None:
        """Refuse what another process has, without a word to that process."""
        if self._host.actor(session_id) is not None:
            return
        store = self._host.store
        lease = await store.lease_of(session_id)
        if lease is not None and lease.owner.process_id != store.owner.process_id:
            raise UsageError(
                f"another process has the tree of {session_id!r}: until that is done with it, it "
                "can be read (read_only=True) and not changed"
            )

    async def _kept(self, session_id: SessionId, tree: LoomTree) -> LoomTree:
        # The one used last is last; those that no view needs go first.
        self._trees.pop(session_id, None)
        self._trees[session_id] = tree
        spare = [
            key
            for key, each in self._trees.items()
            if not each.views and each.is_saved and each is not tree
        ]
        for key in spare[: max(0, len(self._trees) - MOST_TREES)]:
            del self._trees[key]
        await tree.load()
        return tree

    def _alone(self, session_id: SessionId) -> anyio.Lock:
        """Held while a tree is opened: there is one of each session."""
        for key in [key for key, lock in self._locks.items() if not lock.statistics().locked]:
            if key != session_id:
                del self._locks[key]
        return self._locks.setdefault(session_id, anyio.Lock())

    def forget(self, session_id: SessionId) -> None:
        """Let go of a tree."""
        tree = self._trees.pop(session_id, None)
        if tree is not None:
            tree.release()

    async def aclose(self) -> None:
        """Stop what is generated, have everything durable, and let go of all trees.

        What cannot be stored is logged, and on the record of its session if that can be written.
        """
        for tree in self:
            await tree.finish()
            self.forget(tree.port.session_id)

    # -- by node

    async def find(
        self, reference: str, *, deleted: bool = False, writes: bool = False
    ) -> tuple[LoomTree, NodeId]:
        """The tree of a node, loaded; with `writes` this process has it then.

        Raises:
            NodeNotFound: there is no such node.
            AmbiguousId: several ids begin so.
            UsageError: another process has the tree that is to be written.
        """
        found = await self._taken(reference, deleted=deleted) if writes else None
        tree, node = found or await self._found(reference, deleted=deleted)
        if writes and not tree.is_writable:
            tree = await self.writing(tree.port.session_id)
        return tree, node

    async def find_exact(self, references: Sequence[str]) -> dict[NodeId, tuple[LoomTree, NodeId]]:
        """Nodes of exactly these ids, each with its tree; those that are not there are left out."""
        places: dict[str, list[NodePlace]] = {}
        for place in await self._host.store.nodes_named([NodeId(each) for each in references]):
            places.setdefault(place.node, []).append(place)
        trees: dict[SessionId, LoomTree | None] = {}
        found: dict[NodeId, tuple[LoomTree, NodeId]] = {}
        for each in map(NodeId, references):
            for place in places.get(each, ()):
                if place.session_id not in trees:
                    trees[place.session_id] = await self.readable(place.session_id)
                tree = trees[place.session_id]
                if tree is not None and tree.find(each) is not None and tree.is_home_of(each):
                    found[each] = tree, each
            if each not in places:
                with suppress(NodeNotFound, AmbiguousId):
                    tree, node = await self._found(each, deleted=False)
                    if each in (node, tree.shown_id(node)):
                        found[each] = tree, node
        return found

    async def _taken(self, reference: str, *, deleted: bool) -> tuple[LoomTree, NodeId] | None:
        """A tree that is written, where its one place is plain: what is to be looked at first is
        loaded twice.
        """
        store, session_id = self._host.store, SessionId(reference)
        if await store.row(session_id) is not None:
            tree = await self.writing(session_id)
            return tree, tree.root_id
        places = await store.nodes_named([NodeId(reference)])
        if len(places) != 1 or await store.row(places[0].session_id) is None:
            return None
        tree, node = await self.writing(places[0].session_id), places[0].node
        is_seen = node in tree.tree.nodes if deleted else tree.find(node) is not None
        return (tree, node) if is_seen else None

    async def _found(self, reference: str, *, deleted: bool) -> tuple[LoomTree, NodeId]:
        if not reference:
            raise NodeNotFound(reference)
        for tree in self:
            if tree.find(reference) is None or not tree.is_home_of(NodeId(reference)):
                continue
            # Another process may have deleted it meanwhile, all of it or this node.
            with suppress(SessionNotFound):
                tree = await self.reading(tree.port.session_id)
                if tree.find(reference) is not None:
                    return tree, NodeId(reference)
        exact = await self._host.store.nodes_named([NodeId(reference)])
        for place in exact:
            tree_of = await self._home(place, deleted=deleted)
            if tree_of is not None:
                return tree_of, place.node
        found: dict[NodeId, LoomTree] = {}
        for place in await self._places(reference):
            tree_of = await self._home(place, deleted=deleted)
            if tree_of is None:
                continue
            if place.node == reference or place.session_id == reference:
                return tree_of, place.node
            found.setdefault(place.node, tree_of)
        if len(found) > 1:
            raise AmbiguousId(reference, tuple(found))
        for node, tree_of in found.items():
            return tree_of, node
        return await self._in_fork(reference)

    async def _in_fork(self, reference: str) -> tuple[LoomTree, NodeId]:
        """`SESSION/NODE`: a node as one session has it, which may be a fork; or a node whose tree
        was deleted, by its whole id, in the oldest fork that has it.
        """
        session_id, slash, node = reference.partition("/")
        if slash and await self._host.store.row(SessionId(session_id)) is not None:
            tree = await self.reading(SessionId(session_id))
            return tree, tree.resolve(node)
        # Deleted with its words: no index has it any more. Every such fork is loaded for it, which
        # a word that was mistyped is not worth.
        for row in await self._orphans() if is_node_id(reference) else ():
            with suppress(WeftError):
                found = await self._having(row.id, reference)
                if found is not None:
                    return found, NodeId(reference)
        raise NodeNotFound(reference)

    async def _orphans(self) -> list[SessionRow]:
        """Forks of sessions that were deleted, the oldest first."""
        rows = await self.rows(any_mode=True)
        listed = {row.id for row in rows}
        forks = [row for row in rows if row.parent_id is not None and not row.is_child]
        lost = [row for row in forks if row.parent_id not in listed]
        return sorted(lost, key=lambda row: (row.created, row.id))

    async def _home(self, place: NodePlace, *, deleted: bool) -> LoomTree | None:
        """The tree that a node is meant of, the one that it was written in; None where it is gone,
        or this is another.
        """
        try:
            tree = await self.reading(place.session_id)
        except SessionNotFound:
            return None
        if place.node not in tree.tree.nodes or (not deleted and tree.find(place.node) is None):
            return None
        if not tree.is_home_of(place.node) and place.node != tree.root_id:
            held = tree.tree.nodes[place.node]
            home = (held.earlier[0] if held.earlier else held.at).log
            if await self._host.store.row(home) is not None:
                return None
        return tree

    async def taken(self, nodes: Sequence[NodeId]) -> set[str]:
        """Those of these ids that nodes have already."""
        found: set[str] = {place.node for place in await self._host.store.nodes_named(nodes)}
        for tree in self:
            found.update(node for node in nodes if node in tree.tree.nodes)
        return found

    async def places(self, reference: str) -> list[tuple[NodeId, LoomTree]]:
        """Nodes whose ids begin so, each with its tree, the newest first."""
        found: dict[NodeId, LoomTree] = {}
        for place in await self._places(reference):
            with suppress(Corrupt, TooNew):
                tree = await self._home(place, deleted=False)
                if tree is not None:
                    found.setdefault(place.node, tree)
        return list(found.items())

    async def _places(self, reference: str) -> list[NodePlace]:
        """Where nodes are whose ids begin so, the newest first."""
        store = self._host.store
        found = dict.fromkeys(await store.nodes_with_prefix(reference, limit=MOST_MATCHES))
        for tree in self:
            # What is not stored yet is the newest, and in no index.
            ahead = [node for node in tree.unstored() if node.startswith(reference)]
            fresh = [NodePlace(node, tree.port.session_id) for node in reversed(ahead)]
            found = dict.fromkeys([each for each in fresh if each not in found]) | found
        for session_id in (
            *await store.ids_with_prefix(_session_of(reference), limit=MOST_MATCHES),
            *await store.ids_with_prefix(reference, limit=1),
            imported_session(reference),
        ):
            root = await self._root_in(session_id, reference)
            if root is not None:
                found.setdefault(NodePlace(root, session_id))
        return list(found)

    async def _root_in(self, session_id: SessionId, reference: str) -> NodeId | None:
        """The root that a reference means in this session: the id of any session stands for the
        root of its tree, and a root without a word may be in no index.
        """
        row = await self._host.store.row(session_id)
        is_named = session_id == reference
        if row is None or row.damaged or not (is_named or row.mode.startswith("loom")):
            return None
        try:
            tree = await self.reading(session_id)
            root = tree.root_id
        except WeftError:
            return None
        is_own = tree.is_home_of(root) and root.startswith(reference)
        return root if is_named or is_own else None

    # -- in memory

    def loaded(self, reference: str) -> tuple[LoomTree, NodeId]:
        """A node of the trees that are in memory.

        Raises:
            NodeNotFound, AmbiguousId: as by `find`.
        """
        matches: list[tuple[LoomTree, NodeId]] = []
        for tree in self if reference else ():
            if reference == tree.port.session_id:
                return tree, tree.root_id
            if tree.find(reference) is not None and tree.is_home_of(NodeId(reference)):
                return tree, NodeId(reference)
            matches += [(tree, node) for node in tree.with_prefix(reference)]
        if len({node for _, node in matches}) > 1:
            raise AmbiguousId(reference, tuple(node for _, node in matches))
        if not matches:
            raise NodeNotFound(reference)
        return next((one for one in matches if one[0].is_home_of(one[1])), matches[0])

    # -- lists

    async def rows(
        self,
        *,
        query: str | None = None,
        archived: bool = True,
        limit: int | None = None,
        any_mode: bool = False,
    ) -> list[SessionRow]:
        """The rows of all trees, last active first."""
        found: list[SessionRow] = []
        place: RowPlace | None = None
        while limit is None or len(found) < limit:
            page = await self._host.store.rows(
                query=query, limit=PAGE, archived=archived, after=place
            )
            found += [row for row in page if (any_mode or row.mode == "loom") and not row.damaged]
            if len(page) < PAGE:
                break
            place = page[-1].last_active, page[-1].id
        return found[:limit]

    async def last_used(self, most: int) -> list[LoomTree]:
        """The trees that were used last, of those that can be read."""
        found: list[LoomTree] = []
        # Few rows first: to go through all of them is for the case that some cannot be read.
        for limit in (most, None):
            rows = await self.rows(limit=limit)
            found.clear()
            for row in rows:
                tree = await self.readable(row.id) if len(found) < most else None
                if tree is not None:
                    found.append(tree)
            if len(found) == most or len(rows) < most:
                break
        return found

    async def tree_id(self, row: SessionRow) -> NodeId:
        """What opens the tree of a row, without its being loaded."""
        if row.parent_id is not None and not row.is_child:
            return NodeId(row.id)
        if row.root:
            return NodeId(row.root)
        # Rows of programs that did not know the field.
        tree = await self.readable(row.id)
        return NodeId(row.id) if tree is None else tree.tree_id


def root_of(session_id: SessionId) -> NodeId:
    """The id of the root of a new tree."""
    return NodeId(f"nod_{session_id.removeprefix('ses_')}")


def _session_of(reference: str) -> str:
    """What the id of a session begins with whose root's id begins so."""
    return f"ses_{reference.removeprefix('nod_')}" if reference.startswith("nod_") else reference


def imported_session(root: str, number: int = 0) -> SessionId:
    """The session of a root that another program named: always the same, so that an import finds
    what an earlier one made; by number where several trees have roots of one id.
    """
    return SessionId(derived_id("ses", "loom", root, *([str(number)] if number else [])))
