"""The store of all text trees of an application: `app.loom`.

A tree is a session's: `create_root` makes one, and any node of any session can be opened as a view.
Reads and writes go through the session's actor; where another process has it, a tree can be read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import msgspec

from weft.errors import AmbiguousId, NodeNotFound, UsageError, WeftError
from weft.events import Fact, NewMessage, NodeEdited, NodeMarked, SessionCreated, SettingChanged
from weft.ids import NodeId, SessionId, new_session_id, new_text_id
from weft.loom.host import LoomHost
from weft.loom.loom_state import TreeSettings
from weft.loom.model_plan import ModelPlanEntry, checked_plan, stored_plan
from weft.loom.node import CHECKED_OUT, CONTEXT, LoomNode, stored_marks
from weft.loom.trees import tree_edits
from weft.loom.trees.loom_tree import LoomTree, in_parts
from weft.loom.trees.open_trees import OpenTrees, imported_session, root_of
from weft.loom.trees.tree_catalogue import (
    CatalogueEntry,
    CatalogueSort,
    TreeCatalogue,
    catalogue_page,
    detailed,
    needs_details,
)
from weft.loom.trees.tree_settings import settings_of, stored_settings
from weft.messages import clean_text
from weft.providers import Model, ModelInfo
from weft.store import SessionRow

if TYPE_CHECKING:
    from weft.loom.node_record import TreeRecord
    from weft.loom.search_rank import LoomQuery, RankedTree
    from weft.loom.tree_search import LoomHit, SearchSources
    from weft.loom.trees.imported_nodes import ImportedNode
    from weft.loom.trees.tree_import import ImportBeside, TreeImport
    from weft.loom.trees.tree_shape import TreeShape, TreeStats

MOST_FOUND: Final = 5_000
"""Places of a search that are looked at, where most of them do not fit."""
MOST_NAMED: Final = 500
"""Trees whose names a search looks at; the most recently used ones."""
DEFAULT_SECONDS: Final = 2.0
"""How long the default model is remembered."""
_SETTINGS: Final = ("name", "model_plan", "show_model_names", "logprobs")
"""Metadata of a new root that are settings of its tree."""


class TreeStore:
    """All text trees: what is read of them, and what is written to them."""

    def __init__(self, host: LoomHost) -> None:
        self.host = host
        self.trees = OpenTrees(host)
        self._default = (ModelPlanEntry(), float("-inf"))
        """The default model with its settings, and when it was looked for."""
        self.closes: Callable[[], Awaitable[None]] | None = None
        """What is closed with it, where it was opened by itself."""

    # -- opening

    def loaded(self, reference: str) -> tuple[LoomTree, NodeId]:
        """A node of the trees that are loaded.

        Raises:
            NodeNotFound: there is no such node among them.
            AmbiguousId: several ids begin so.
        """
        return self.trees.loaded(reference)

    def is_elsewhere(self, reference: str, tree: LoomTree) -> bool:
        """Whether another tree that is loaded has this node."""
        return any(other is not tree and other.find(reference) is not None for other in self.trees)

    def now(self) -> float:
        """Wall-clock time."""
        return self.host.now()

    def default_model(self) -> str:
        """The model of a tree that names none."""
        return self.default_entry().model

    def default_entry(self) -> ModelPlanEntry:
        """The plan of a tree that has none: the model, and how settings say that it is used."""
        # Every state of a view asks, and to look for keys and settings takes longer than the rest
        # of it.
        now = self.now()
        if not 0 <= now - self._default[1] < DEFAULT_SECONDS:
            self._default = self.host.plan_entry(self.host.default_model()), now
        return self._default[0]

    def checked_plan(self, plan: Any) -> tuple[ModelPlanEntry, ...]:
        """A plan as a program gave it; what it leaves out is as settings have it for the model.

        Raises:
            InvalidPlan: fields of it are wrong; it names all of them.
        """
        found = checked_plan(plan)
        # Checked again: settings may say more branches than one generation can have.
        return checked_plan(
            [
                each if isinstance(given, ModelPlanEntry) else self._completed(each, given)
                for each, given in zip(found, plan, strict=True)
            ]
        )

    def _completed(self, entry: ModelPlanEntry, given: Mapping[str, Any]) -> ModelPlanEntry:
        configured = msgspec.to_builtins(self.host.plan_entry(entry.model))
        return msgspec.convert({**configured, **given}, ModelPlanEntry)

    def model_name(self, model: str | Model) -> str:
        """The full name of a model, by which a plan names it.

        A name that is not known is kept as it is; the generation that uses it says so.
        """
        try:
            return self.host.model_name(model)
        except WeftError:
            if not isinstance(model, str):
                raise
            return model

    def model_info(self, name: str) -> ModelInfo:
        """What is known of a model; of an unknown one, what holds of most."""
        try:
            return self.host.model(name).info
        except WeftError:
            provider, _, model = name.partition(":")
            return ModelInfo(provider=provider, name=model)

    async def session_of(self, node_id: str) -> SessionId:
        """The session whose tree has a node; `app.sessions.fork_session(it, at=node)` begins a
        coding session there.
        """
        tree, _ = await self.trees.find(node_id)
        return tree.port.session_id

    async def aclose(self) -> None:
        """Have everything durable, and let go of all trees; what cannot be stored is on record."""
        await self.trees.aclose()
        closes, self.closes = self.closes, None
        if closes is not None:
            await closes()

    # -- reading

    async def get(self, node_id: str) -> LoomNode:
        """A node.

        Raises:
            NodeNotFound, AmbiguousId: as by `open`.
        """
        tree, node = await self.trees.find(node_id)
        return tree.node(node)

    async def resolve_node_id(self, reference: str) -> NodeId:
        """The id that a unique beginning of it means, by which every call finds the node in the
        same tree: a node that a fork shares with its source is `FORK/NODE` there; the same errors.
        """
        tree, node = await self.trees.find(reference)
        shown = tree.shown_id(node)
        if "/" in reference and (await self.trees.find(shown))[0] is not tree:
            return NodeId(f"{tree.tree_id}/{node}")
        return shown

    async def root(self, node_id: str) -> LoomNode:
        """The root of a node's tree."""
        tree, _ = await self.trees.find(node_id)
        return tree.node(tree.root_id)

    async def children(self, node_id: str) -> list[LoomNode]:
        """The children of a node, oldest first; those of one generation in the order of its
        plan.
        """
        tree, node = await self.trees.find(node_id)
        return await tree.load_nodes(tree.children(node))

    async def tree(self, node_id: str) -> list[LoomNode]:
        """All nodes of a node's tree, in the order in which they came."""
        tree, _ = await self.trees.find(node_id)
        return await tree.load_nodes()

    async def lineage(self, node_id: str) -> list[LoomNode]:
        """The nodes from the root down to a node, each with the text that it has on this line."""
        tree, node = await self.trees.find(node_id)
        return tree.line_nodes(node)

    async def full_text(self, node_id: str) -> str:
        """All text from the root down to a node; of each node above, the revision that the next
        one grew from.
        """
        tree, node = await self.trees.find(node_id)
        return tree.full_text(node)

    async def descendant_counts(self, node_ids: str | Sequence[str]) -> dict[NodeId, int]:
        """How many nodes are below each of these."""
        counts: dict[NodeId, int] = {}
        tree: LoomTree | None = None
        for each in map(NodeId, [node_ids] if isinstance(node_ids, str) else node_ids):
            node = each
            # Mostly of one tree: it is looked for once.
            if tree is None or tree.find(each) is None or not tree.is_home_of(each):
                tree, node = await self.trees.find(each)
            counts[tree.shown_id(node)] = tree.descendant_count(node)
        return counts

    async def nodes_by_ids(self, node_ids: Iterable[str]) -> dict[NodeId, LoomNode]:
        """These nodes by their ids; those that are not there are left out."""
        found: dict[NodeId, LoomNode] = {}
        async for part in in_parts(list(map(NodeId, node_ids))):
            places = await self.trees.find_exact(part)
            by_tree: dict[LoomTree, list[NodeId]] = {}
            for tree, node in places.values():
                by_tree.setdefault(tree, []).append(node)
            for tree, nodes in by_tree.items():
                await tree.load_words(nodes)
            for each, (tree, node) in places.items():
                if tree.find(node) is not None:
                    found[each] = tree.node(node)
        return found

    async def context_of(self, node_id: str) -> str:
        """What models are told beside the text at a node."""
        tree, node = await self.trees.find(node_id)
        return tree.context_of(node)

    async def checked_out_child(self, node_id: str) -> NodeId | None:
        """The child of a node that was selected last."""
        tree, node = await self.trees.find(node_id)
        return tree.checked_out_child(node)

    async def active_node(self, root_id: str | None = None) -> NodeId | None:
        """Where a tree was left; without a root, the tree that was used last."""
        if root_id is not None:
            tree, _ = await self.trees.find(root_id)
            return tree.shown_id(tree.active_node())
        for tree in await self.trees.last_used(1):
            return tree.shown_id(tree.active_node())
        return None

    async def tree_settings(self, root_id: str) -> TreeSettings:
        """The settings of a tree."""
        return settings_of((await self.trees.find(root_id))[0], self.default_entry())

    async def shape(self, node_id: str) -> TreeShape:
        """How the subtree of a node has grown."""
        from weft.loom.trees.tree_shape import shape_of  # for those who look at numbers

        tree, node = await self.trees.find(node_id)
        return shape_of(tree, node)

    async def stats(self, root_id: str) -> TreeStats:
        """A tree in numbers, by model."""
        from weft.loom.trees.tree_shape import stats_of

        tree, _ = await self.trees.find(root_id)
        await tree.load_all()
        return stats_of(tree)

    # -- lists

    async def roots(self, *, archived: bool | None = False) -> list[LoomNode]:
        """The roots of all trees, the newest first; archived ones alone, or (None) too.  Trees that
        cannot be read are left out, here and in the lists below; the catalogue has them.
        """
        rows = await self.trees.rows(archived=archived is not False)
        wanted = [row for row in rows if archived is None or row.archived == archived]
        wanted.sort(key=lambda row: (row.created, row.id), reverse=True)
        trees = [await self.trees.readable(row.id) for row in wanted]
        return [tree.node(tree.root_id) for tree in trees if tree is not None]

    async def recent(self, limit: int = 20) -> list[LoomNode]:
        """The newest nodes of all trees."""
        found: list[LoomNode] = []
        for tree in await self.trees.last_used(limit):
            found += [tree.node(node) for node in tree.newest(limit)]
        # By time alone nodes of one moment would change places; what came later in a tree is first.
        found.sort(key=lambda node: node.created_at, reverse=True)
        return found[:limit]

    async def find_root_by_text(self, text: str) -> LoomNode | None:
        """The newest tree that begins with exactly this text; None where there is none."""
        for row in sorted(await self.trees.rows(), key=lambda row: row.created, reverse=True):
            if not text.startswith(row.first_prompt):
                continue
            tree = await self.trees.readable(row.id)
            if tree is not None and tree.text(tree.root_id) == text:
                return tree.node(tree.root_id)
        return None

    async def catalogue(
        self,
        *,
        facets: Mapping[str, Sequence[str]] | None = None,
        query: str | None = None,
        sort: CatalogueSort = "updated",
        offset: int = 0,
        limit: int = 50,
        details: bool = False,
    ) -> TreeCatalogue:
        """A page of all trees: values of one facet are alternatives, facets all have to fit.

        Facets are the fields of an entry; with `details`, and where one of these is asked for, also
        `models` (all that wrote in a tree) and the metadata of trees, for which each is opened.

        Raises:
            UsageError: there is no such facet or order.
        """
        wanted = dict(facets or {})
        rows = await self.trees.rows(query=query, archived="archived" in wanted)
        entries = [_entry(row, await self.trees.tree_id(row)) for row in rows]
        if details or needs_details(wanted):
            entries = [
                await self._detailed(entry, row) for entry, row in zip(entries, rows, strict=True)
            ]
        return catalogue_page(entries, wanted, sort=sort, offset=offset, limit=limit)

    async def _detailed(self, entry: CatalogueEntry, row: SessionRow) -> CatalogueEntry:
        tree = await self.trees.readable(row.id)
        if tree is None:
            return entry
        return detailed(entry, tree, settings_of(tree, self.default_entry()).metadata)

    async def search(
        self,
        query: str,
        *,
        roots: Sequence[str] | None = None,
        models: Sequence[str] | None = None,
        bookmarked: bool | None = None,
        after: float | None = None,
        limit: int = 20,
    ) -> list[LoomHit]:
        """Nodes that say all these words, whose id begins so, or whose tree is called so; the best
        first.  Filters may stand among the words: `storm model:haiku is:bookmarked`.
        """
        from weft.loom.search_rank import parse_query  # few search
        from weft.loom.tree_search import search_nodes

        def fits(hit: LoomHit) -> bool:
            return (
                (roots is None or hit.root in roots)
                and (models is None or hit.node.model in models)
                and (bookmarked is None or hit.node.bookmarked == bookmarked)
                and (after is None or hit.node.created_at > after)
            )

        asked, most = parse_query(query), limit * 5
        while True:
            # More than are asked for: filters take some away, and so does what was deleted.
            sources = await self._sources(asked, most)
            hits = await search_nodes(self.nodes_by_ids, asked, sources, fits, limit)
            if len(hits) >= limit or len(sources.said) < most or most >= MOST_FOUND:
                return hits
            most = min(10 * most, MOST_FOUND)

    async def search_trees(self, query: str, *, limit: int = 20) -> list[RankedTree]:
        """The trees in which a search finds something, each by its best node."""
        from weft.loom.tree_search import best_trees

        return best_trees(await self.search(query, limit=limit * 5), limit)

    async def _sources(self, query: LoomQuery, limit: int) -> SearchSources:
        from weft.loom.tree_search import SearchSources

        if not query.words:
            return SearchSources(said=())
        said = await self.host.store.search(query.words, limit=limit)
        ids = await self.trees.places(query.words) if query.looks_like_id else []
        places = [(tree.shown_id(node), tree.tree_id) for node, tree in ids]
        named = [
            (await self.trees.tree_id(row), {"name": row.title, "model": row.model})
            for row in await self.trees.rows(limit=MOST_NAMED)
        ]
        return SearchSources(said=said, places=places, named=named)

    # -- writing

    async def create_root(
        self, text: str = "", *, metadata: Mapping[str, Any] | None = None, title: str = ""
    ) -> LoomNode:
        """A new tree.  `name`, `model_plan`, `context` and the like in `metadata` are settings."""
        given = dict(metadata or {})
        session_id = new_session_id(self.now())
        node = tree_edits.text_node(
            root_of(session_id), text, parent=None, metadata=_plain_metadata(given)
        )
        if given.get("context"):
            node.metadata[CONTEXT] = str(given["context"])
        tree = await self._create(session_id, [NewMessage(node=node)], given, title)
        return tree.node(tree.root_id)

    async def _create(
        self,
        session_id: SessionId,
        nodes: Sequence[Fact],
        given: Mapping[str, Any],
        title: str = "",
        *,
        imported: bool = False,
    ) -> LoomTree:
        named = clean_text(title or str(given.get("name") or ""))
        plan = _plan_in(given, self.host)
        settings = stored_settings(
            {name: given[name] for name in _SETTINGS[1:] if given.get(name) is not None} | plan
        )
        chosen = (each for each in nodes if isinstance(each, SettingChanged))
        later = next((each.value for each in chosen if each.name == "model_plan"), None)
        planned = stored_plan(later or settings.get("model_plan"))
        created = SessionCreated(
            project_path=self.host.project_path,
            title=named or "Loom",
            model=planned[0].model if planned else self.default_model(),
            settings={"mode": "loom", **({} if named else {"auto_title": True}), **settings},
            imported=imported,
        )
        await self.host.create(session_id, [created, *nodes])
        return await self.trees.writing(session_id)

    async def add_child(
        self,
        parent_id: str,
        text: str,
        *,
        model: str = "",
        strategy: str | None = None,
        max_tokens: int | None = None,
        temperature: float | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> LoomNode:
        """A new child of a node, which goes on from its newest revision."""
        _, children = await self.save_continuations(
            "",
            [text],
            parent_id=parent_id,
            model=model,
            strategy=strategy,
            max_tokens=max_tokens,
            temperature=temperature,
            metadata=metadata,
        )
        return children[0]

    async def save_continuations(
        self,
        prefix: str,
        continuations: Sequence[str],
        *,
        model: str = "",
        strategy: str | None = None,
        max_tokens: int | None = None,
        temperature: float | None = None,
        parent_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> tuple[LoomNode, list[LoomNode]]:
        """Children of a node, or of a new root that says `prefix`; returns parent and children."""
        if parent_id is None:
            parent_id = (await self.create_root(prefix)).id
        tree, parent = await self.trees.find(parent_id, writes=True)
        held = tree.require(parent)
        nodes = [
            tree_edits.text_node(
                new_text_id(),
                text,
                parent=parent,
                parent_revision=held.revision,
                model=model,
                strategy=strategy,
                max_tokens=max_tokens,
                temperature=temperature,
                metadata=metadata,
            )
            for text in continuations
        ]
        added = tree_edits.add_nodes(tree, nodes)
        await tree.saved()
        return tree.node(parent), [tree.node(node) for node in added]

    async def update_metadata(self, node_id: str, changes: Mapping[str, Any]) -> LoomNode:
        """Set metadata of a node; None removes one, all others stay.  Of a root, the names of
        settings are settings of its tree.
        """
        tree, node = await self.trees.find(node_id, writes=True)
        named = _SETTINGS if tree.parent(node) is None else ()
        settings = {name: value for name, value in changes.items() if name in named}
        if settings:
            tree_edits.change_settings(tree, stored_settings(settings))
        marks = stored_marks({k: v for k, v in changes.items() if k not in settings})
        if marks:
            tree_edits.mark(tree, node, marks)
        await tree.saved()
        return tree.node(node)

    async def set_context(self, node_id: str, text: str) -> LoomNode:
        """What models are told beside the text from a node on; "" clears it."""
        tree, node = await self.trees.find(node_id, writes=True)
        tree_edits.mark(tree, node, {CONTEXT: text})
        await tree.saved()
        return tree.node(node)

    async def set_checked_out_child(self, parent_id: str, child_id: str) -> None:
        """Have a child selected where the tree is opened again.

        Raises:
            UsageError: it is no child of this node.
        """
        tree, parent = await self.trees.find(parent_id, writes=True)
        child = tree.resolve(child_id)
        if tree.parent(child) != parent:
            raise UsageError(f"{child!r} is no child of {parent!r}")
        await _check_out(tree, parent, child)

    async def select_branch(self, node_id: str, number: int) -> LoomNode:
        """Select the child of this number, counted from 1.

        Raises:
            UsageError: there is no such child.
        """
        tree, node = await self.trees.find(node_id, writes=True)
        children = tree.children(node)
        if not 1 <= number <= len(children):
            raise UsageError(f"there is no branch {number}; {node!r} has {len(children)}")
        # In this very tree: by its id alone, a node that a fork shares is that of another tree.
        await _check_out(tree, node, children[number - 1])
        return tree.node(children[number - 1])

    async def set_active_node(self, node_id: str) -> None:
        """Have the tree opened at this node the next time."""
        tree, node = await self.trees.find(node_id, writes=True)
        tree.write([SettingChanged(name="loom_active", value=node)])
        await tree.saved()

    async def update_tree_settings(self, root_id: str, **changes: Any) -> TreeSettings:
        """Change settings of a tree; None keeps what is there.

        Raises:
            UsageError: there is no such setting.
            InvalidPlan: the plan is wrong.
        """
        tree, _ = await self.trees.find(root_id, writes=True)
        tree_edits.change_settings(tree, stored_settings(changes))
        await tree.saved()
        return settings_of(tree, self.default_entry())

    async def persist_config(self, root_id: str) -> ModelPlanEntry:
        """Make the first enabled model of a tree, and how it is used there, the user's own settings
        for new trees (`loom.model` and the like in `config.toml`); returns it.

        Raises:
            UsageError: the file cannot be changed.
        """
        settings = await self.tree_settings(root_id)
        plan = settings.model_plan
        entry = next((each for each in plan if each.enabled), plan[0])
        for name in ("model", "n_branches", "max_tokens", "temperature"):
            await self.host.change_setting(f"loom.{name}", str(getattr(entry, name)))
        shown = "true" if settings.show_model_names else "false"
        await self.host.change_setting("loom.show_model_names", shown)
        self._default = (ModelPlanEntry(), float("-inf"))
        return entry

    async def archive(self, root_id: str, archived: bool = True) -> None:
        """Leave a tree out of lists, or show it again."""
        tree, _ = await self.trees.find(root_id, writes=True)
        tree_edits.change_settings(tree, {"archived": archived or None})
        await tree.saved()

    async def delete_subtree(self, node_id: str) -> int:
        """Delete a node and all below it; returns how many.  It can be restored."""
        tree, node = await self.trees.find(node_id, writes=True)
        gone = tree_edits.delete(tree, node)
        await tree.saved()
        return gone

    async def restore_subtree(self, node_id: str) -> int:
        """Bring back what was deleted with this node; returns how many nodes are seen again.

        Raises:
            NodeNotFound: there never was such a node.
            UsageError: it was not deleted.
        """
        tree, node = await self.trees.find(node_id, deleted=True, writes=True)
        back = tree_edits.restore(tree, node)
        await tree.saved()
        return back

    async def delete_tree(self, root_id: str) -> int:
        """Remove a whole tree for good; returns how many nodes it had."""
        tree, _ = await self.trees.find(root_id, deleted=True, writes=True)
        gone = len(tree.tree.nodes)
        session_id = tree.port.session_id
        self.trees.forget(session_id)
        await self.host.delete(session_id)
        return gone

    async def import_nodes(self, records: Iterable[Any]) -> int:
        """Add nodes under the ids that they have; those that are there already are skipped, so that
        an import can be repeated.  Returns how many were added.

        A tree goes on with one that is there where all that both have is the same.  Else it is
        another tree, and ids of it that are taken are replaced (`metadata["imported_id"]` has what
        they were).

        Raises:
            UsageError: a record is no node, its parent is neither there nor in the import, or what
                hangs on a node that is there differs from what is there.
        """
        return (await self._import(records, is_one_tree=False))[0]

    async def _import(
        self, records: Iterable[Any], *, is_one_tree: bool, beside: ImportBeside | None = None
    ) -> tuple[int, LoomTree | None]:
        """How many nodes were added, and the last tree; `beside` is what becomes durable with
        them.
        """
        from weft.loom.trees.imported_nodes import checked_nodes  # few import
        from weft.loom.trees.tree_import import import_units

        added, tree = 0, None
        for unit in import_units(checked_nodes(records), is_one_tree=is_one_tree):
            work, tree = await self._import_place(unit)
            named = [each.id for each in work.new]
            facts = work.facts(await self.trees.taken(named))
            if beside is not None and facts:
                facts += beside(work.ids, is_new=tree is None)
            if tree is None:
                # All in one append: a crash leaves the whole tree or none of it.
                tree = await self._create(work.session_id, facts, unit[0].settings, imported=True)
            elif facts:
                tree = await self.trees.writing(tree.port.session_id)
                tree.write(facts)
                await tree.saved()
            added += len(named)
        return added, tree

    async def _import_place(
        self, unit: Sequence[ImportedNode]
    ) -> tuple[TreeImport, LoomTree | None]:
        """The tree that an import goes on with; None: it makes one.

        Raises:
            UsageError: what it hangs on is not there, or what is there below it differs.
        """
        from weft.loom.trees.tree_import import TreeImport

        root = unit[0]
        if root.parent_id is not None:
            place = await self._exact(root.parent_id)
            if place is None:
                raise UsageError(f"the parent {root.parent_id!r} of {root.id!r} is not there")
            tree, parent = place
            work = TreeImport(unit, tree.port.session_id, above={root.parent_id: parent})
            await tree.load_all()
            other = work.differing(tree)
            # It has its place in this tree, so that it cannot become one of its own.
            if other is not None:
                raise UsageError(
                    f"the node {other!r} of the import is not the one of this id that is there: "
                    "it says something else or stands elsewhere; give it another id"
                )
            return work, tree
        for number in count():
            session_id = imported_session(root.id, number)
            place = None if number else await self._exact(root.id)
            known = None if place is None else place[0]
            if known is None and await self.host.store.row(session_id) is not None:
                known = await self.trees.reading(session_id)
            work = TreeImport(unit, session_id if known is None else known.port.session_id)
            if known is None:
                return work, None
            await known.load_all()
            if work.differing(known) is None:
                return work, known
        raise AssertionError("unreachable")

    async def tree_record(self, root_id: str) -> TreeRecord:
        """A whole tree as data, for the formats of `weft.loom.formats`."""
        from weft.loom.trees.tree_records import tree_record  # few export

        tree, _ = await self.trees.find(root_id)
        await tree.load_all()
        return await tree_record(tree, lambda: settings_of(tree, self.default_entry()))

    async def import_tree(self, record: TreeRecord) -> int:
        """Add a tree that was read from a file, with its name and the place where it was left;
        returns how many nodes were new.

        Raises:
            UsageError: its nodes make up no tree.
        """
        return (await self.imported_tree(record))[0]

    async def imported_tree(
        self, record: TreeRecord, edits: Sequence[NodeEdited] = ()
    ) -> tuple[int, NodeId]:
        """The same, and the root that the tree has now; `edits` are made in a new one.

        Nodes, name, plan and place are one append: a crash leaves all of it or nothing.
        """
        from weft.loom.trees.tree_import import record_facts

        def beside(ids: Mapping[NodeId, NodeId], *, is_new: bool) -> list[Fact]:
            made: Sequence[Fact] = edits if is_new else ()
            return [*record_facts(record, ids, is_new=is_new), *made]

        added, tree = await self._import(record.nodes, is_one_tree=True, beside=beside)
        if tree is None:
            raise UsageError("a tree without nodes cannot be imported")
        return added, tree.tree_id

    async def _exact(self, node_id: NodeId) -> tuple[LoomTree, NodeId] | None:
        """The tree that has a node of this very id, deleted or not, and the node as it has it."""
        try:
            tree, node = await self.trees.find(node_id, deleted=True)
        except (NodeNotFound, AmbiguousId):
            return None
        return (tree, node) if node_id in (node, tree.shown_id(node)) else None


async def _check_out(tree: LoomTree, parent: NodeId, child: NodeId) -> None:
    tree.write([NodeMarked(node=parent, mark=CHECKED_OUT, value=child)])
    await tree.saved()


# --- metadata ---------------------------------------------------------------------------


_CONFIG: Final = ("model", "n_branches", "max_tokens", "temperature", "context", *_SETTINGS)


def _plain_metadata(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name not in _CONFIG}


def _plan_in(given: Mapping[str, Any], host: LoomHost) -> dict[str, Any]:
    """A plan of one model, where the metadata of a root say how it is to be used."""
    fields = ("n_branches", "max_tokens", "temperature")
    named = {name: given[name] for name in fields if given.get(name) is not None}
    if given.get("model_plan") is not None or not (named or given.get("model")):
        return {}
    model = str(given.get("model") or host.default_model())
    return {"model_plan": [{**msgspec.to_builtins(host.plan_entry(model)), **named}]}


def _entry(row: SessionRow, tree_id: NodeId) -> CatalogueEntry:
    return CatalogueEntry(
        root_id=tree_id,
        name=row.title,
        model=row.model,
        nodes=row.message_count,
        created=row.created,
        updated=row.last_active,
        cost_usd=row.cost_usd,
        archived=row.archived,
        project_path=row.project_path,
    )
