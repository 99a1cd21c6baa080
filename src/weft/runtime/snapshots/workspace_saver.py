"""What another host needs to go on with a session's files, saved where hosts share the store.

At the end of each round that had an effect, and of each turn: the tree of files as snapshots have
it, the repository's refs, index and objects, and the ignored files that the project wants along.
What is equal to what was saved last costs a few looks at the disk.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import msgspec

from weft.config.project_ids import repository_place
from weft.errors import WeftError
from weft.events import Fact, IncludedFile, LeftOutFile, WorkspaceSaved
from weft.ids import BlobId
from weft.loop import Commit
from weft.runtime.snapshots.folder_identity import identity_of
from weft.runtime.snapshots.project_snapshots import ProjectSnapshots, SnapshotStore
from weft.sha256 import sha256
from weft.state import SavedWorkspace, SessionState
from weft.workspace import GitRepository, Runner, find_repository, read_ignore_file
from weft.workspace.disk_threads import DiskThreads
from weft.workspace.history.project_tree import tree_mode
from weft.workspace.repository_copies.copy_record import RepositoryRecord
from weft.workspace.repository_copies.copy_taker import stamp_of, take_repository
from weft.workspace.repository_copies.included_files import INCLUDE, files_of, is_named
from weft.workspace.safe_read import read_beneath
from weft.workspace.sandbox.secret_names import is_secret_file

logger = logging.getLogger(__name__)

MOST_NAMED: Final = 100
"""Files that are left behind and named."""
MOST_INCLUDED: Final = 4_000
MOST_INCLUDED_BYTES: Final = 64 * 1024 * 1024
_NOTHING: Final = Commit(facts=())


class _Part(msgspec.Struct):
    """What was saved of the repository, or of the ignored files."""

    stamp: object = None
    """What it was taken by; while that is the same, so is the part."""
    id: BlobId | None = None
    blobs: dict[BlobId, bytes] = {}
    left: tuple[LeftOutFile, ...] = ()
    why: str = ""


class WorkspaceSaver:
    """Saves the workspace of one session."""

    def __init__(
        self,
        snapshots: ProjectSnapshots,
        threads: DiskThreads,
        store: SnapshotStore,
        runner: Runner,
        project: str,
        scratch: Path,
    ) -> None:
        self._snapshots = snapshots
        self._threads = threads
        self._store = store
        self._runner = runner
        self._project = project
        self._scratch = scratch
        self._repository = _Part()
        self._record: RepositoryRecord | None = None
        self._included = _Part()

    async def save(self, state: SessionState, noted: Sequence[Fact]) -> Commit:
        """What was not saved yet; nothing where all of it was.  `noted` goes on record with it."""
        if self._snapshots.unknown:
            return _NOTHING
        try:
            return await self._saved(state, noted)
        except (OSError, ValueError, WeftError):
            # A turn does not fail by it: the session goes on here, and elsewhere from what it had.
            logger.exception("the workspace was not saved for other hosts")
            return _NOTHING

    async def _saved(self, state: SessionState, noted: Sequence[Fact]) -> Commit:
        tree = await self._snapshots.tree()
        self._forget_stored(state.files.saved)
        await self._look_at_repository(state)
        await self._look_at_included()
        last = _last(state, noted)
        now = (tree.digest, self._repository.id, self._included.id)
        if last is not None and now == (last.tree, last.repository, last.included):
            return _NOTHING
        before = state.files.tree if state.files.saved is None else state.files.saved.tree
        bringing, lacking = Commit(facts=()), dict[str, LeftOutFile]()
        if tree.digest != before:
            _, bringing, found = await self._snapshots.bring(tree, before, state)
            lacking = dict(found)
        left = [*lacking.values(), *self._ignored(), *self._included.left]
        fact = WorkspaceSaved(
            tree=tree.digest,
            repository=self._repository.id,
            included=self._included.id,
            left_behind=tuple(left[:MOST_NAMED]),
            more_left_behind=max(0, len(left) - MOST_NAMED),
            folder=await self._threads.run(partial(identity_of, self._project)),
            why=self._repository.why,
        )
        parts: dict[BlobId, bytes] = {}
        if last is None or last.repository != self._repository.id:
            parts |= self._repository.blobs
        if last is None or last.included != self._included.id:
            parts |= self._included.blobs
        return msgspec.structs.replace(bringing, facts=(fact,), blobs={**parts, **bringing.blobs})

    def _forget_stored(self, saved: SavedWorkspace | None) -> None:
        """Hold nothing of what is on record: it can be tens of megabytes."""
        if saved is not None and saved.repository == self._repository.id:
            self._repository.blobs = {}
        if saved is not None and saved.included == self._included.id:
            self._included.blobs = {}

    def _ignored(self) -> list[LeftOutFile]:
        """What is ignored and does not go along."""
        return [
            LeftOutFile(path=path, why=why)
            for path, why in sorted(self._snapshots.left_out().items())
            if why == "ignored" and path.rstrip("/") != ".git"
        ]

    # -- the repository

    async def _look_at_repository(self, state: SessionState) -> None:
        repository = await self._threads.run(partial(find_repository, self._project))
        if repository is None:
            self._repository = _Part()
            return
        stamp = await self._threads.run(partial(stamp_of, repository))
        if stamp == self._repository.stamp:
            return
        if self._record is None:
            self._record = await self._stored_record(state)
        try:
            await self._take(repository, stamp)
        except WeftError as error:
            logger.warning("a repository was not saved for other hosts", exc_info=True)
            self._repository = _Part(stamp=stamp, why=str(error)[:200])

    async def _take(self, repository: GitRepository, stamp: object) -> None:
        place = await self._threads.run(partial(repository_place, self._project))
        known = self._record
        await anyio.to_thread.run_sync(partial(os.makedirs, self._scratch, 0o700, exist_ok=True))
        taken = await take_repository(self._runner, repository, place.inside, self._scratch, known)
        data = msgspec.json.encode(taken.record, order="deterministic")
        record_id = BlobId(sha256(data).hexdigest())
        # What it brings is handed in, with all that comes after, until it is known to be on record.
        blobs = {**self._repository.blobs, **taken.blobs, record_id: data}
        self._repository = _Part(stamp=stamp, id=record_id, blobs=blobs)
        self._record = taken.record

    async def _stored_record(self, state: SessionState) -> RepositoryRecord | None:
        saved = state.files.saved
        if saved is None or saved.repository is None:
            return None
        data = await self._store.blob(saved.repository)
        if data is None:
            return None
        try:
            return msgspec.json.decode(data, type=RepositoryRecord)
        except msgspec.MsgspecError:
            logger.warning("the record of a repository is damaged: all of it is saved again")
            return None

    # -- ignored files that go along

    async def _look_at_included(self) -> None:
        ignored = [each.path.rstrip("/") for each in self._ignored()]
        look = partial(_included_now, self._project, ignored)
        wanted = await self._threads.run(look)
        if wanted == self._included.stamp:
            return
        secret = self._snapshots.secrets_among([path for path, *_ in wanted])
        read = partial(_read_included, self._project, wanted, secret)
        self._included = await self._threads.run(read)
        self._included.stamp = wanted


_Stamps = tuple[tuple[str, int, int, int], ...]


def _included_now(project: str, ignored: Sequence[str]) -> _Stamps:
    """The ignored files that a project's own list names, and what they look like.  Blocks."""
    wanted = read_ignore_file(f"{project}/{INCLUDE}")
    if wanted is None:
        return ()
    found: list[tuple[str, int, int, int]] = []
    for top in ignored:
        for source, below in files_of(project, top):
            if is_named(wanted, below) and len(found) <= MOST_INCLUDED:
                with suppress(FileNotFoundError):  # a build may be at work
                    about = os.lstat(source)
                    found.append((below, about.st_mtime_ns, about.st_size, about.st_mode))
    return tuple(sorted(found))


def _read_included(project: str, wanted: _Stamps, secret: Collection[str]) -> _Part:
    files: list[IncludedFile] = []
    blobs: dict[BlobId, bytes] = {}
    room = MOST_INCLUDED_BYTES
    left: list[LeftOutFile] = []
    for path, _, size, mode in wanted:
        # A secret never becomes a blob, whatever the list says.
        if path in secret or is_secret_file(os.path.basename(path)):
            left.append(LeftOutFile(path=path, why="secret"))
        elif size > room or len(files) == MOST_INCLUDED:
            left.append(LeftOutFile(path=path, why="too large"))
        elif (data := _content(project, path, mode, room + 1)) is None:
            left.append(LeftOutFile(path=path, why="changed meanwhile"))
        elif len(data) > room:
            left.append(LeftOutFile(path=path, why="too large"))
        else:
            room -= len(data)
            content = BlobId(sha256(data).hexdigest())
            blobs[content] = data
            files.append(IncludedFile(path, tree_mode(mode), content))
    if not files:
        return _Part(left=tuple(left))
    listing = msgspec.json.encode(files)
    listed = BlobId(sha256(listing).hexdigest())
    return _Part(id=listed, blobs={**blobs, listed: listing}, left=tuple(left))


def _content(project: str, path: str, mode: int, limit: int) -> bytes | None:
    """So much of a file, or where a link leads; None where it is something else by now."""
    if not stat.S_ISLNK(mode):
        # A command that goes on behind may have put a link in its way.
        return read_beneath(project, path, limit)
    try:
        return os.fsencode(os.readlink(f"{project}/{path}"))
    except OSError:
        return None


def _last(state: SessionState, noted: Sequence[Fact]) -> WorkspaceSaved | SavedWorkspace | None:
    for fact in reversed(noted):
        if isinstance(fact, WorkspaceSaved):
            return fact
    return state.files.saved
