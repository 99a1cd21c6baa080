"""Trees between a store and files: exports of what the store has, imports of what others wrote."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

import anyio.to_thread
import msgspec

from weft.errors import UsageError
from weft.events import NodeEdited
from weft.ids import NodeId
from weft.loom.formats.basemode import dump_basemode
from weft.loom.formats.earlier_texts import with_one_node_each
from weft.loom.formats.own_json import dump_own
from weft.loom.formats.tree_export import dump_html, dump_markdown
from weft.loom.formats.tree_file import parse_trees
from weft.loom.node_record import NodeRecord, TreeRecord
from weft.loom.trees.tree_edits import text_parts

if TYPE_CHECKING:
    from weft.loom.tree_store import TreeStore

TreeFormat: TypeAlias = Literal["json", "basemode", "md", "html"]
TREE_FORMATS: Final[tuple[TreeFormat, ...]] = get_args(TreeFormat)


class TreeImport(msgspec.Struct, frozen=True, kw_only=True):
    """What came of an import."""

    roots: tuple[NodeId, ...]
    added: int
    known: int
    """Nodes that were there already."""
    source: str
    """The format of the file."""


async def export_tree(store: TreeStore, node_id: str, form: str = "json") -> bytes:
    """The tree of a node as a file; as Markdown the line down to it, from a root the chosen one.

    Raises:
        UsageError: there is no such format.
        NodeNotFound, AmbiguousId: there is no such node, or there are several.
    """
    if form not in TREE_FORMATS:
        raise UsageError(f"no format {form!r}; there are {', '.join(TREE_FORMATS)}")
    node = await store.resolve_node_id(node_id)
    tree = await store.tree_record(node)
    if form == "json":
        return dump_own([tree])
    if form == "basemode":
        return dump_basemode([tree])
    if form == "html":
        return dump_html(tree).encode()
    return dump_markdown(tree, "" if node == tree.root_id else node).encode()


async def import_trees(
    store: TreeStore, data: bytes, progress: Callable[[int, int], None] = lambda done, total: None
) -> TreeImport:
    """Add the trees of a file; nodes that are known are left as they are.  `progress` is told how
    many nodes of how many were taken in, tree by tree.

    Each tree is there whole or not at all, whatever stops the import; a repeat adds the rest.

    Raises:
        UsageError: the file has no tree.
    """
    trees = await anyio.to_thread.run_sync(parse_trees, data)
    added, done, total = 0, 0, sum(len(tree.nodes) for tree in trees)
    roots: list[NodeId] = []
    for tree in trees:
        progress(done, total)
        nodes = tuple(map(_importable, tree.nodes))
        more, root = await _imported(store, msgspec.structs.replace(tree, nodes=nodes))
        added += more
        done += len(tree.nodes)
        roots.append(root)
    progress(done, total)
    return TreeImport(
        roots=tuple(roots),
        added=added,
        known=total - added,
        source=trees[0].source if trees else "",
    )


async def _imported(store: TreeStore, tree: TreeRecord) -> tuple[int, NodeId]:
    """Add a tree; nodes that were edited become such again, where none of the tree is there yet."""
    whole, later = with_one_node_each(tree)
    # What is known is left as it is: the nodes of the file are compared with it as they are there.
    if not later or await store.nodes_by_ids([node.id for node in tree.nodes]):
        return await store.imported_tree(tree)
    edits = [
        NodeEdited(
            node=NodeId(each.node_id),
            revision=each.revision,
            parts=text_parts(each.text),
            carries=tuple(map(NodeId, each.children)),
        )
        for each in later
    ]
    added, root = await store.imported_tree(whole, edits)
    return (len(tree.nodes) if added == len(whole.nodes) else added), root


def _importable(node: NodeRecord) -> NodeRecord:
    """A node as a store takes it."""
    # A message of a chat gets a blank line behind it: as text, one would run into the next.
    if node.kind == "message" and node.text.strip() and not node.text.endswith("\n\n"):
        node = msgspec.structs.replace(node, text=node.text.rstrip("\n") + "\n\n")
    # Ratings are whole numbers there.
    if node.rating is not None:
        node = msgspec.structs.replace(node, rating=round(node.rating))
    return node
