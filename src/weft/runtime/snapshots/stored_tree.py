"""The last tree of a project that this process brought into a store: what the first snapshot of
another session is compared with.

Without it, each session's first snapshot asks the store about every file of the project: a fifth of
a second for 20,000 of them, where mostly nothing has changed since the session before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final
from weakref import WeakKeyDictionary

from weft.events import LeftOutFile
from weft.ids import BlobId
from weft.workspace.history.history import FileHistory
from weft.workspace.history.project_tree import (
    FolderListing,
    ProjectTree,
    TreeChange,
    TreeEntry,
    changed_since,
    tree_mode,
)

MOST_LACKING: Final = 2_000
"""Files without content that are remembered; a tree that lacks more is looked at whole again."""
_FILE: Final = tree_mode(0o100644)


class StoredTree:
    """One tree, and what was left out of it."""

    def __init__(self, tree: ProjectTree, lacking: Mapping[str, LeftOutFile]) -> None:
        self.tree = tree
        self.lacking = lacking
        """By path: all of them, where the fact names the first."""

    async def changes_to(self, now: ProjectTree) -> list[TreeChange]:
        """What differs in a later tree of the same project."""
        held = {each.digest: each.data for each in self.tree.folders.values()}

        async def load(digest: BlobId) -> bytes | None:
            return held.get(digest)

        changes, _ = await changed_since(self.tree.digest, now, load)
        return changes

    def left_after(self, changes: Iterable[TreeChange]) -> dict[str, LeftOutFile]:
        """What is still left out where these paths have changed."""
        changed = {change.path for change in changes}
        return {path: each for path, each in self.lacking.items() if path not in changed}


def as_entry(left: LeftOutFile) -> TreeEntry:
    """A file that was left out, as its listing has it but for its name and mode."""
    return TreeEntry("", _FILE, left.content or "")


def all_listings(tree: ProjectTree) -> list[FolderListing]:
    """The listings of all folders, those of equal ones once."""
    return list({each.digest: each for each in tree.folders.values()}.values())


_LAST: WeakKeyDictionary[FileHistory, WeakKeyDictionary[object, StoredTree]] = WeakKeyDictionary()
"""By what knows a project's files, which its sessions in this process share, and by store."""


def last_tree(files: FileHistory, store: object) -> StoredTree | None:
    """The last one that was handed to this store, whether it came to be stored or not."""
    known = _LAST.get(files)
    return None if known is None else known.get(store)


def remember(files: FileHistory, store: object, stored: StoredTree) -> None:
    """This is the last one from now on."""
    known = _LAST.setdefault(files, WeakKeyDictionary())
    if len(stored.lacking) <= MOST_LACKING:
        known[store] = stored
    else:
        known.pop(store, None)
