"""Trees between a store and files: exports of what the store has, imports of what others wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

import msgspec

from weft.errors import UsageError
from weft.ids import NodeId
from weft.loom.formats.basemode import dump_basemode
from weft.loom.formats.own_json import dump_own
from weft.loom.formats.tree_export import dump_html, dump_markdown
from weft.loom.formats.tree_file import parse_trees
from weft.loom.node import CONTEXT, LoomNode
from weft.loom.node_record import NodeRecord, TreeRecord

if TYPE_CHECKING:
    from weft.loom.generation_store import GenerationStore
    from weft.loom.trees.loom_tree import LoomTree

TreeFormat: TypeAlias = Literal["json", "basemode", "md", "html"]
TREE_FORMATS: Final[tuple[TreeFormat, ...]] = get_args(TreeFormat)
_FIELDS: Final = frozenset({"bookmarked", "hidden", "rating", "partial", "role"})
"""What stands among a node's metadata and has a field in a record."""


class TreeImport(msgspec.Struct, frozen=True, kw_only=True):
    """What came of an import."""

    roots: tuple[NodeId, ...]
    added: int
    known: int
    """Nodes that were there already."""
    source: str
    """The format of the file."""


async def export_tree(store: GenerationStore, node_id: str, form: str = "json") -> bytes:
    """The tree of a node as a file; as Markdown the line down to it, from a root the chosen one.

    Raises:
        UsageError: there is no such format.
        NodeNotFound, AmbiguousId: there is no such node, or there are several.
    """
    if form not in TREE_FORMATS:
        raise UsageError(f"no format {form!r}; there are {', '.join(TREE_FORMATS)}")
    node = await store.resolve_node_id(node_id)
    tree = await tree_record(store, node)
    if form == "json":
        return dump_own([tree])
    if form == "basemode":
        return dump_basemode([tree])
    if form == "html":
        return dump_html(tree).encode()
    return dump_markdown(tree, "" if node == tree.root_id else node).encode()


async def import_trees(store: GenerationStore, data: bytes) -> TreeImport:
    """Add the trees of a file; nodes that are known are left as they are.

    Raises:
        UsageError: the file has no tree.
    """
    trees = parse_trees(data)
    added = 0
    for tree in trees:
        is_known = bool(await store.nodes_by_ids([tree.root_id]))
        added += await store.import_nodes(map(_importable, tree.nodes))
        if not is_known:
            await _settle(store, tree)
    return TreeImport(
        roots=tuple(NodeId(tree.root_id) for tree in trees),
        added=added,
        known=sum(len(tree.nodes) for tree in trees) - added,
        source=trees[0].source if trees else "",
    )


async def _settle(store: GenerationStore, tree: TreeRecord) -> None:
    """Give a new tree its name, and open it where it was left."""
    if tree.name:
        await store.update_tree_settings(tree.root_id, name=tree.name)
    if tree.current_id:
        await store.set_active_node(tree.current_id)


def _importable(node: NodeRecord) -> dict[str, Any]:
    """A node as a store takes it."""
    fields: dict[str, Any] = msgspec.to_builtins(node)
    # A message of a chat gets a blank line behind it: as text, one would run into the next.
    if node.kind == "message" and node.text.strip() and not node.text.endswith("\n\n"):
        fields["text"] = node.text.rstrip("\n") + "\n\n"
    # Ratings are whole numbers there.
    if node.rating is not None:
        fields["rating"] = round(node.rating)
    return fields


async def tree_record(store: GenerationStore, node_id: str) -> TreeRecord:
    """The tree of a node with all that is known of it."""
    root = await store.root(node_id)
    settings = await store.tree_settings(root.id)
    tree, _ = store.loaded(root.id)
    await tree.load_all()
    return TreeRecord(
        root_id=root.id,
        nodes=tuple(_Records(tree).all()),
        name=settings.name,
        current_id=tree.active_node(),
        created_at=root.created_at or None,
        metadata=_plain(dict(settings.metadata)),
    )


class _Records:
    """The records of one tree.

    A node that was edited after others grew from it is written twice: as it is now, and, for those
    that still read as they grew, as it was.
    """

    def __init__(self, tree: LoomTree) -> None:
        self._tree = tree
        self._parents: dict[tuple[NodeId, int], str] = {}
        """The record that stands for each revision of a node."""

    def all(self) -> list[NodeRecord]:
        found: list[NodeRecord] = []
        for each in self._tree.all_nodes():
            node = self._tree.node(each)
            parent = self._above(node, found)
            found.append(self._record(node, parent))
            self._parents[node.id, node.revision] = node.id
        return found

    def _above(self, node: LoomNode, found: list[NodeRecord]) -> str | None:
        if node.parent_id is None:
            return None
        key = (node.parent_id, node.parent_revision)
        if key not in self._parents:
            was = self._tree.node(node.parent_id, node.parent_revision)
            name = f"{was.id}~{node.parent_revision}"
            now = next(record for record in found if record.id == was.id)
            old = {"revision_of": was.id, "revision": node.parent_revision}
            found.append(
                msgspec.structs.replace(
                    now, id=name, text=was.text, checked_out=False, metadata=now.metadata | old
                )
            )
            self._parents[key] = name
        return self._parents[key]

    def _record(self, node: LoomNode, parent: str | None) -> NodeRecord:
        tree, above = self._tree, node.parent_id
        # Its own mark, and not what holds there: that would be looked for up the whole line.
        context = tree.marks(node.id).get(CONTEXT)
        metadata = {name: each for name, each in node.metadata.items() if name not in _FIELDS}
        return NodeRecord(
            id=node.id,
            parent_id=parent,
            text=node.text,
            kind=node.kind,
            role=node.role or "",
            model=node.model or "",
            strategy=node.strategy or "",
            max_tokens=node.max_tokens,
            temperature=node.temperature,
            created_at=node.created_at or None,
            context=context if isinstance(context, str) else "",
            partial=node.partial,
            bookmarked=node.bookmarked,
            hidden=node.hidden,
            checked_out=above is not None and tree.checked_out_child(above) == node.id,
            rating=node.rating,
            usage=None if node.usage is None else msgspec.to_builtins(node.usage),
            cost_usd=node.cost_usd,
            metadata=_plain(metadata),
        )


def _plain(metadata: dict[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(metadata)
    return plain
