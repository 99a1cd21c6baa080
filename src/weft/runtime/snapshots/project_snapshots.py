"""Snapshots of a project's files for the log of one session: what a turn left, and what was
changed from outside between two.

The file history knows every file and what changed since the last look, so that a turn that changed
nothing costs a look at an empty queue.  The first look, at everything, begins in a thread with the
first effect and is waited for at the end of the turn.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import msgspec

from weft.errors import WeftError
from weft.events import Fact, LeftOutFile, SnapshotChange, WorkspaceSnapshot
from weft.ids import BlobId, NodeId, TreeHash, TurnId
from weft.loop import Commit, TreeBlobs
from weft.state import LeftFile, SessionState
from weft.workspace.disk_threads import DiskThreads

if TYPE_CHECKING:  # loaded with the first effect: it costs start-up time
    from weft.runtime.snapshots.stored_tree import StoredTree
    from weft.workspace.history.history import FileHistory, WatchedRun
    from weft.workspace.history.project_tree import (
        FolderListing,
        ProjectTree,
        TreeChange,
        TreeEntry,
    )

logger = logging.getLogger(__name__)

MOST_CHANGES: Final = 1_000
"""Changes and left-out files that one fact lists; more are counted."""
MOST_BYTES: Final = 64 * 1024 * 1024
"""Content that one snapshot brings: all of it is in memory until it is durable."""
MOST_FILES: Final = 4_000
"""Contents that one snapshot brings: each takes the store about 0.1 ms."""
BEGIN_SECONDS: Final = 0.05
"""So long after the first effect the files are first looked at: not while it has its effect, but
while the model is asked again.
"""
FIRST_SHARE: Final = 32
"""The first snapshot of a project may bring this part of the quota."""

_TOO_MANY: Final = "too many files at once"
_CHANGED: Final = "changed meanwhile"
_QUOTA: Final = "quota"
_TRIED_AGAIN: Final = frozenset({_TOO_MANY, _CHANGED, _QUOTA})
"""Why a content was left out that the next session's first snapshot may bring."""
_NOTHING: Final = Commit(facts=())


class ProjectFiles(Protocol):
    """What knows the project's files."""

    @property
    def unknown(self) -> str:
        """Why they are not known; empty when they are."""
        ...

    @property
    def quota(self) -> int:
        """Bytes of history that the project may have."""
        ...

    def history(self) -> FileHistory:
        """The project's file history; blocks for a moment the first time."""
        ...


class SnapshotStore(Protocol):
    """What is needed of a store."""

    async def blob(self, blob_id: BlobId) -> bytes | None:
        """As `Store.blob`."""
        ...

    async def missing_blobs(
        self, blob_ids: Collection[BlobId], *, project_path: str | None = None
    ) -> set[BlobId]:
        """As `Store.missing_blobs`."""
        ...


class _TreeStep(NamedTuple):
    """From what is stored to a tree."""

    changes: Sequence[TreeChange]
    listings: Sequence[FolderListing]
    """Those that the session does not have yet."""
    files: Mapping[str, TreeEntry]
    """Whose content may have to be stored."""
    lacking: Mapping[str, LeftOutFile]
    """Whose content is left out, as it was before."""


class ProjectSnapshots:
    """Takes the snapshots of one session."""

    def __init__(
        self,
        files: ProjectFiles,
        threads: DiskThreads,
        store: SnapshotStore,
        secrets_among: Callable[[Collection[str]], set[str]],
        *,
        has_rules: Callable[[], bool] = lambda: True,
    ) -> None:
        """`secrets_among` says of which of these paths the content is kept out of the log;
        `has_rules`, whether that is not the same for all sessions.
        """
        self._secrets_among = secrets_among
        self._has_rules = has_rules
        self._files = files
        self._threads = threads
        self._store = store
        self._history: FileHistory | None = None
        self._first: asyncio.Future[ProjectTree] | None = None
        self._looking: WatchedRun | None = None
        self._first_sizes: dict[BlobId, int] = {}
        """The contents that first looks brought."""

    # -- the tree

    async def tree(self) -> ProjectTree:
        """All files as they are now.

        Raises:
            OSError: they cannot be looked at.
        """
        if (known := self._tree_quickly()) is not None:
            return known
        if not self._is_prepared:
            await self._first_look()
        # What was changed while it was under way is not in the first look.
        if (known := self._tree_quickly()) is not None:
            return known
        return await self._threads.run(self._look, self._abandon)

    async def _first_look(self) -> None:
        """Wait for the one that `begin` began, or begin it: two at once would only wait for each
        other.
        """
        self.begin()
        if self._first is None:
            return
        try:
            await asyncio.wait([self._first])
        except asyncio.CancelledError:
            self._abandon()
            raise

    def begin(self) -> None:
        """Have everything looked at in a thread, if nothing is known yet; does not wait."""
        if self._files.unknown or self._is_prepared:
            return
        # Done, and nothing is known: the history was closed since, with a session that was deleted.
        if self._first is None or self._first.done():
            self._first = self._threads.start(self._look)

    async def tree_hash(self, seconds: float) -> TreeHash | None:
        """The tree hash; None when it is not known, and the first look takes longer."""
        if self._files.unknown:
            return None
        self.begin()
        try:
            if self._first is not None and not self._is_prepared:
                await asyncio.wait([self._first], timeout=seconds)
            return (await self.tree()).digest if self._is_prepared else None
        except (OSError, WeftError):
            logger.warning("the tree hash of a command is not known", exc_info=True)
            return None

    @property
    def _is_prepared(self) -> bool:
        return self._history is not None and self._history.is_prepared

    def _tree_quickly(self) -> ProjectTree | None:
        return None if self._history is None else self._history.tree_quickly()

    def _look(self) -> ProjectTree:
        """In a thread: loading the parts and opening the folder take time, too."""
        from weft.workspace.history.history import WatchedRun

        self._history = self._files.history()
        self._looking = WatchedRun()
        return self._history.tree(self._looking)

    def _abandon(self) -> None:
        if self._looking is not None:
            self._looking.void()

    @property
    def unknown(self) -> str:
        """Why the files are not known; empty when they are."""
        return self._files.unknown

    def left_out(self) -> Mapping[str, str]:
        """What the file history leaves out, with the reason."""
        return {} if self._history is None else self._history.left_out_here()

    def secrets_among(self, paths: Collection[str]) -> set[str]:
        """Those of these paths whose content is kept out of the log."""
        return self._secrets_among(paths)

    # -- snapshots

    async def before_effect(self, state: SessionState) -> Commit:
        """As `SnapshotTaker` has it."""
        if self._files.unknown:
            return _NOTHING
        if not self._is_prepared:
            # What it finds is the same before and after: what the session changes is on record.
            asyncio.get_running_loop().call_later(BEGIN_SECONDS, self.begin)
            return _NOTHING
        if state.files.tree is None or self._is_known(state.files.tree):
            return _NOTHING
        return await self._contained(state, (), None, None)

    async def at_end(
        self, state: SessionState, noted: Sequence[Fact], turn_id: TurnId, node: NodeId | None
    ) -> Commit:
        """As `SnapshotTaker` has it."""
        last, had_effect = state.files.tree, state.files.had_effect
        if self._files.unknown:
            return self._not_known(turn_id, node) if had_effect else _NOTHING
        if not had_effect and (last is None or not self._is_prepared or self._is_known(last)):
            return _NOTHING
        return await self._contained(state, noted, turn_id, node)

    def _not_known(self, turn_id: TurnId, node: NodeId | None) -> Commit:
        return Commit(
            facts=(WorkspaceSnapshot(turn_id=turn_id, node=node, why=self._files.unknown),)
        )

    def _is_known(self, tree: BlobId) -> bool:
        now = self._tree_quickly()
        return now is not None and now.digest == tree

    async def _contained(
        self,
        state: SessionState,
        noted: Sequence[Fact],
        turn_id: TurnId | None,
        node: NodeId | None,
    ) -> Commit:
        """A snapshot, or one that says why there is none: a turn does not fail by it."""
        try:
            return await self._taken(state, noted, turn_id, node)
        except (OSError, ValueError, WeftError) as error:
            logger.exception("no snapshot of the files")
            # A word: the text of an error names paths of this machine, and a log is exported.
            why = "unreadable" if isinstance(error, OSError) else "failed"
            return Commit(facts=(WorkspaceSnapshot(turn_id=turn_id, node=node, why=why),))

    async def _taken(
        self,
        state: SessionState,
        noted: Sequence[Fact],
        turn_id: TurnId | None,
        node: NodeId | None,
    ) -> Commit:
        tree, last = await self.tree(), state.files.tree
        if tree.digest == last:
            same = WorkspaceSnapshot(turn_id=turn_id, node=node, tree=last, after=last)
            return Commit(facts=(same,) if state.files.had_effect else ())
        step, bringing, lacking = await self.bring(tree, last, state)
        left_out = tuple(lacking[path] for path in sorted(lacking))
        judged = () if last is None else _judged(step.changes, state, noted)
        fact = WorkspaceSnapshot(
            turn_id=turn_id,
            node=node,
            tree=tree.digest,
            after=last,
            changes=judged[:MOST_CHANGES],
            more_changes=max(0, len(judged) - MOST_CHANGES),
            left_out=left_out[:MOST_CHANGES],
            more_left_out=max(0, len(left_out) - MOST_CHANGES),
        )
        return msgspec.structs.replace(bringing, facts=(fact,))

    async def bring(
        self, tree: ProjectTree, last: BlobId | None, state: SessionState
    ) -> tuple[_TreeStep, Commit, Mapping[str, LeftOutFile]]:
        """What has to be stored so that a tree can be read that follows on `last`, and the files
        whose content is not: how it differs, a commit without facts, and those by path.
        """
        step = await self._step_to(tree, last, state)
        # Another session of the project mostly has them: what is stored is named by the tree alone.
        missing = await self._store.missing_blobs(
            {BlobId(each.hash) for each in step.files.values() if each.hash},
            project_path=state.about.known_path,
        )
        contents, lacking = await self._contents(step.files, missing, is_first=last is None)
        lacking = {**step.lacking, **lacking}
        self._remember(tree, last, step.changes, lacking)
        fresh = {each.digest: each.data for each in step.listings}
        # The listings are for as long as the session: a content that is gone is one file that is
        # not known, a listing would be a folder of every later tree.  So they are handed in even
        # where they are stored: another process may delete the last session that has them before
        # this is appended.
        brought = TreeBlobs(
            trees=frozenset({tree.digest}),
            listings=frozenset(fresh),
            contents=frozenset(contents.keys() - fresh.keys()),
        )
        return step, Commit(facts=(), blobs={**contents, **fresh}, trees=brought), lacking

    async def _step_to(
        self, tree: ProjectTree, last: BlobId | None, state: SessionState
    ) -> _TreeStep:
        stored = await self._stored_tree(state) if last is None else None
        if stored is None:
            from weft.workspace.history.project_tree import changed_since

            changes, listings = await changed_since(last, tree, self._store.blob)
            return _TreeStep(changes, listings, _files(changes), {})
        from weft.runtime.snapshots.stored_tree import all_listings, as_entry

        changes = await stored.changes_to(tree)
        left = stored.left_after(changes)
        again = {path: each for path, each in left.items() if each.why in _TRIED_AGAIN}
        files = {path: as_entry(each) for path, each in again.items()} | _files(changes)
        rest = {path: each for path, each in left.items() if path not in again}
        return _TreeStep(changes, all_listings(tree), files, rest)

    async def _stored_tree(self, state: SessionState) -> StoredTree | None:
        """The tree that the last snapshot of the project brought, if the store has it: then it has
        all that is in it.
        """
        from weft.runtime.snapshots.stored_tree import last_tree

        stored = None if self._history is None else last_tree(self._history, self._store)
        if stored is None or self._has_rules():
            return None
        gone = await self._store.missing_blobs(
            {stored.tree.digest}, project_path=state.about.known_path
        )
        return None if gone else stored

    def _remember(
        self,
        tree: ProjectTree,
        last: BlobId | None,
        changes: Iterable[TreeChange],
        lacking: Mapping[str, LeftOutFile],
    ) -> None:
        if self._history is None or self._has_rules():
            return
        from weft.runtime.snapshots.stored_tree import StoredTree, last_tree, remember

        if last is not None:
            before = last_tree(self._history, self._store)
            # Of another tree it is not known what was left out.
            if before is None or before.tree.digest != last:
                return
            lacking = {**before.left_after(changes), **lacking}
        remember(self._history, self._store, StoredTree(tree, lacking))

    async def _contents(
        self, files: Mapping[str, TreeEntry], missing: Collection[str], *, is_first: bool
    ) -> tuple[dict[BlobId, bytes], dict[str, LeftOutFile]]:
        """What the files hold that are new in a tree and not stored, and those of which it is kept
        out of the store, by path.
        """
        room = self._first_room(missing) if is_first else MOST_BYTES
        secret = self._secrets_among(files.keys())
        wanted = [
            (path, each.hash)
            for path, each in files.items()
            if each.hash in missing and path not in secret
        ]
        assert self._history is not None
        beyond = {path for path, _ in wanted[MOST_FILES:]}
        reasons = dict.fromkeys(beyond, _TOO_MANY)
        contents: dict[BlobId, bytes] = {}
        if wanted:
            take = partial(self._history.contents, wanted[:MOST_FILES], room)
            contents, changed = await self._threads.run(take)
            if is_first:
                self._first_sizes |= {each: len(data) for each, data in contents.items()}
            reasons |= dict.fromkeys(changed, _CHANGED)
        lacking = {
            path: each
            for path, each in files.items()
            if path in secret
            or not each.hash
            or (each.hash in missing and each.hash not in contents)
        }
        reasons |= self._history.why_not_kept(lacking) | dict.fromkeys(secret, "secret")
        left_out = {
            path: LeftOutFile(
                path=path,
                why=reasons.get(path, _QUOTA),
                content=BlobId(entry.hash) if entry.hash else None,
            )
            for path, entry in lacking.items()
        }
        return contents, left_out

    def _first_room(self, missing: Collection[str]) -> int:
        """Bytes that a first look at the project may bring; what is saved in a turn and its
        snapshot are two looks, of which the second has what the first one left.
        """
        sizes = self._first_sizes.items()
        spent = sum(size for content, size in sizes if content not in missing)
        return max(0, min(MOST_BYTES, self._files.quota // FIRST_SHARE - spent))


def _files(changes: Iterable[TreeChange]) -> dict[str, TreeEntry]:
    """What is not a folder whose listing is known, of what there is now."""
    return {
        change.path: change.after
        for change in changes
        if change.after is not None and not (change.after.is_folder and change.after.hash)
    }


def _judged(
    changes: Iterable[TreeChange], state: SessionState, noted: Sequence[Fact]
) -> tuple[SnapshotChange, ...]:
    """Who made each change, as far as the log can tell."""
    from weft.workspace.history.project_tree import folders_above  # loaded by now

    left = state.files.left_after(noted)
    above = {folder for path in left for folder in folders_above(path)}
    # While a command runs beside the turns, or a tool of a program may have changed anything, what
    # is not on record is not from outside for certain.
    is_unsure = bool(state.background.running) or not state.files.is_reported
    return tuple(
        SnapshotChange(
            path=change.path,
            mode=0 if change.after is None else change.after.mode,
            content=_content(change),
            by=made_by(change, left, above, is_unsure=is_unsure),
        )
        for change in changes
    )


def _content(change: TreeChange) -> BlobId | None:
    after = change.after
    return None if after is None or after.is_folder or not after.hash else BlobId(after.hash)


def made_by(
    change: TreeChange, left: Mapping[str, LeftFile], above: set[str], *, is_unsure: bool
) -> str:
    """Who made a change: `session`, as it left the path; `unknown` or `outside`."""
    ours, after = left.get(change.path), change.after
    if ours is not None and _is_as_left(ours, change):
        return "session" if ours.is_certain else "unknown"
    # A folder that was made on the way to a file is no change of its own to most tools.
    if after is not None and after.is_folder and change.path in above:
        return "session"
    # Never "user": another session, or an editor that formats on its own, leaves the same files.
    return "unknown" if is_unsure else "outside"


def _is_as_left(ours: LeftFile, change: TreeChange) -> bool:
    from weft.workspace.history.project_tree import tree_mode  # as above

    after = change.after
    if after is None or not ours.is_there:
        return (after is not None) == ours.is_there
    if ours.mode and tree_mode(ours.mode) != after.mode and not after.is_folder:
        return False
    return ours.content is None or ours.content == after.hash
