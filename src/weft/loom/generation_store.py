"""The store of all text trees that opens views of them: `app.loom`."""

from __future__ import annotations

from weft.loom.loom_session import LoomSession, view_over
from weft.loom.tree_store import TreeStore


class GenerationStore(TreeStore):
    """All text trees."""

    async def open(self, start_id: str, *, read_only: bool = False) -> LoomSession:
        """A view that starts at a node, or at a unique beginning of its id; at a root it opens
        where the tree was left.

        To be read only, it takes nothing from a process that works on the tree.

        Raises:
            NodeNotFound: there is no such node.
            AmbiguousId: several ids begin so.
            UsageError: another process has the tree, and it is not opened to be read only.
        """
        tree, node = await self.trees.find(start_id, writes=not read_only)
        view = view_over(self, tree, node, read_only=read_only)
        tree.hold()
        return view
