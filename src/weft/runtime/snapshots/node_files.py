"""The project's files as they were at a message, rebuilt from the log.

The snapshot at the end of the message's own turn is the state at that end; what the turn changed
after the message is undone in it, as a rewind would.  Where the turn has none (it had no effect, or
was cut off), the state is that of the last snapshot before it, with what the log says was changed
since.  A file's content is found by its hash: it was stored with the snapshot that saw it, or with
the change that replaced it.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

import msgspec

from weft.errors import Corrupt, UsageError
from weft.events import AnyFact, FileTouched, LeftOutFile, WorkspaceSnapshot
from weft.ids import BlobId, NodeId
from weft.session.log.stored_line import read_places
from weft.session.rewind.plan import FileSide, spans
from weft.state import SessionState, SnapshotPlace, note_left_out
from weft.store import Store
from weft.tree import LogPosition, NodeSkeleton
from weft.workspace.disk_threads import DiskThreads
from weft.workspace.history.project_tree import (
    TreeEntry,
    entries_along,
    files_of,
    folders_above,
    tree_mode,
)
from weft.workspace.skipped_folders import skipped_for

_NAMED: Final = 3
_SNAPSHOTS_AT_ONCE: Final = 50
VERSION_CONTROL: Final = frozenset(skipped_for("version control"))
_FILE_MODE = stat.S_IFREG | 0o644


class FileAt(msgspec.Struct, frozen=True, kw_only=True):
    """A file, link or folder at a message."""

    mode: int
    """Kind and permissions, as git has them."""
    content: BlobId | None = None
    """Hash of the content, or of a link's target; None for a folder, and where it is not known."""
    why: str = ""
    """Why the content is not stored."""
    is_left_out: bool = False
    """A snapshot left the content out.  It is not looked for under its hash either: in an import,
    that could be the content of another session."""

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.mode)

    @property
    def is_link(self) -> bool:
        return stat.S_ISLNK(self.mode)


class NodeFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The project's files at one message."""

    files: dict[str, FileAt]
    """Path, relative to the project → what was there."""
    tree: BlobId
    """The tree hash of the snapshot that they were taken from."""
    is_exact: bool
    """True when they are what a copy of that moment would be, content for content; `why` says why
    not."""
    why: str = ""
    """A sentence: the message's turn has no snapshot, so that what was changed from outside since
    the one before is not in here; or contents are not stored (`left_out`)."""
    left_out: tuple[LeftOutFile, ...] = ()
    """The files whose content is not stored, each with the reason."""


class PathAt(msgspec.Struct, frozen=True, kw_only=True):
    """One path at one message."""

    file: FileAt | None
    """None where nothing was."""
    above: dict[str, FileAt]
    """The folders above it, or what was there in the place of one."""
    unknown: Sequence[str]
    """Those of them of which it is not known what is in them."""
    is_exact: bool
    """As of `NodeFiles`."""


async def write_files(files: NodeFiles, folder: str, store: Store) -> list[LeftOutFile]:
    """Put all of them below a folder, which is made and must not be there; returns those that are
    not there, because their content is not stored or the disk does not take them.

    Raises:
        UsageError: there is something at `folder` already, it cannot be made, or the disk is full.
    """
    threads = DiskThreads()
    try:
        await threads.run(partial(os.mkdir, folder, 0o700))
    except OSError as error:
        raise UsageError(f"{folder} cannot be made: {error.strerror}") from error
    left_out: list[LeftOutFile] = []
    folders: list[str] = []
    for path, found in sorted(files.files.items()):
        data = await stored_content(found, store)
        why = why_not_put(path, found, files.files, data)
        if not why:
            why = await threads.run(partial(put_entry, f"{folder}/{path}", found.mode, data))
        if why:
            left_out.append(LeftOutFile(path=path, why=why))
        elif found.is_folder:
            folders.append(path)
    # Last, and the innermost first: until then nobody else can look into them.
    for path in sorted(folders, reverse=True):
        await threads.run(partial(os.chmod, f"{folder}/{path}", 0o755))
    return left_out


async def stored_content(found: FileAt, store: Store) -> bytes | None:
    """What a file held; None where it is not stored."""
    return None if found.content is None or found.is_left_out else await store.blob(found.content)


async def files_at(node: NodeId, state: SessionState, store: Store) -> NodeFiles:
    """The files at a message of a session in this state.

    Raises:
        UsageError: there is no such message, or no snapshot that could tell.
        Corrupt: a stored tree cannot be read.
    """
    found = state.tree.require(node)
    moments = _Moments(state, found, node)
    origin = moments.origin()
    facts = await read_places(moments.places, store)
    changed = moments.changed(facts[place] for place in moments.places)
    return await snapshot_files(origin, state, store, changed, is_of_turn=moments.is_exact)


async def snapshot_files(
    origin: SnapshotPlace,
    state: SessionState,
    store: Store,
    changed: Mapping[str, tuple[FileSide, str]],
    *,
    is_of_turn: bool = True,
) -> NodeFiles:
    """The files of a snapshot that has a tree, with these paths otherwise: what each was, and why
    its content was not kept.

    Raises:
        Corrupt: its tree cannot be read.
    """
    assert origin.tree is not None
    try:
        base = await files_of(origin.tree, store.blob)
    except (LookupError, ValueError) as error:
        raise Corrupt(state.session_id, f"the tree {origin.tree} cannot be read") from error
    left_out = await _left_out(origin, state, store)
    files = {path: _file_at(path, entry, left_out) for path, entry in base.items()}
    for path, (side, missing) in changed.items():
        _change(files, path, side, missing)
    files = await _with_reasons(files, store)
    missed = tuple(
        LeftOutFile(path=path, why=each.why, content=each.content)
        for path, each in files.items()
        if each.why
    )
    why = _why_inexact(missed, is_of_turn=is_of_turn)
    return NodeFiles(files=files, tree=origin.tree, is_exact=not why, why=why, left_out=missed)


async def files_now(state: SessionState, store: Store) -> NodeFiles:
    """The files as another host goes on with them: those that were saved last, with what the log
    says was changed since.

    Raises:
        UsageError: none were saved.
        Corrupt: a stored tree cannot be read.
    """
    saved = state.files.saved
    if saved is None:
        raise UsageError("nothing of this session's files is stored for other hosts")
    try:
        base = await files_of(saved.tree, store.blob)
    except (LookupError, ValueError) as error:
        raise Corrupt(state.session_id, f"the tree {saved.tree} cannot be read") from error
    places = state.files.places_after(saved.at)
    facts = await read_places(places, store)
    files = {path: _file_at(path, entry, {}) for path, entry in base.items()}
    for path, span in spans(facts[place] for place in places).items():
        _change(files, path, span.left, "")
    files = await _with_reasons(files, store)
    missed = tuple(
        LeftOutFile(path=path, why=each.why, content=each.content)
        for path, each in files.items()
        if each.why
    )
    why = _why_inexact(missed, is_of_turn=True)
    return NodeFiles(files=files, tree=saved.tree, is_exact=not why, why=why, left_out=missed)


async def _with_reasons(files: dict[str, FileAt], store: Store) -> dict[str, FileAt]:
    """The files, each whose content is not stored with a reason."""
    wanted = {each.content for each in files.values() if each.content and not each.is_left_out}
    gone = await store.missing_blobs(wanted)
    return {path: _with_reason(each, gone) for path, each in files.items()}


def _with_reason(found: FileAt, gone: Collection[BlobId]) -> FileAt:
    if found.is_left_out or found.is_folder:
        return found
    is_stored = found.content is not None and found.content not in gone
    # A change tells why it did not keep a content, which a snapshot may have all the same.
    why = "" if is_stored else found.why or "quota"
    return found if why == found.why else msgspec.structs.replace(found, why=why)


def _why_inexact(missed: Sequence[LeftOutFile], *, is_of_turn: bool) -> str:
    if not is_of_turn:
        return (
            "the turn of this message has no snapshot: what was changed from outside since the one "
            "before is not in it"
        )
    if not missed:
        return ""
    named = ", ".join(f"{each.path} ({each.why})" for each in missed[:_NAMED])
    more = f" and {len(missed) - _NAMED} more" if len(missed) > _NAMED else ""
    return f"not every content is stored: {named}{more}"


async def file_at(path: str, node: NodeId, state: SessionState, store: Store) -> PathAt | None:
    """What was at one path at a message, and at the folders above it; None where no snapshot can
    tell.  It costs the depth of the path, not the project.

    Raises:
        UsageError: there is no such message.
        Corrupt: a stored tree cannot be read.
    """
    moments = _Moments(state, state.tree.require(node), node)
    if not moments.is_known:
        return None
    origin = moments.origin()
    facts = await read_places(moments.places, store)
    changed = moments.changed(facts[place] for place in moments.places)
    assert origin.tree is not None
    try:
        base = await entries_along(origin.tree, path, store.blob)
    except (LookupError, ValueError) as error:
        raise Corrupt(state.session_id, f"the tree {origin.tree} cannot be read") from error
    last = base.get(path)
    content = BlobId(last.hash) if last is not None and last.hash else None
    why = await _why_left_out(path, content, origin, state, store)
    left_out = {(path, content): why} if why else {}
    files = {each: _file_at(each, entry, left_out) for each, entry in base.items()}
    for each in (path, *folders_above(path)):
        if (change := changed.get(each)) is not None:
            _change(files, each, *change)
    unknown = [each for each, entry in base.items() if entry.is_folder and not entry.hash]
    return PathAt(
        file=files.pop(path, None), above=files, unknown=unknown, is_exact=moments.is_exact
    )


class _Moments:
    """Where a message lies between the snapshots, and which changes lie between."""

    def __init__(self, state: SessionState, node: NodeSkeleton, node_id: NodeId) -> None:
        self._node = node
        self._id = node_id
        self._age = age = state.files.age_of()
        first = node.earlier[0] if node.earlier else node.at
        self._began = age(first)
        self._done = max([self._began, *map(age, node.results.values())])
        known = [each for each in state.files.snapshots if each.tree is not None]
        self._before = next((s for s in reversed(known) if age(s.at) <= self._done), None)
        self._after = next((s for s in known if age(s.at) > self._done), None)
        self._all_places = state.files.places
        self._is_back = False
        self.is_exact = False
        self.places: list[LogPosition] = []

    @property
    def is_known(self) -> bool:
        """True where there is a snapshot to begin with."""
        return self._before is not None or self._after is not None

    def origin(self) -> SnapshotPlace:
        """The snapshot to begin with; `places` are the changes between it and the message."""
        if self._after is not None and self._is_of_turn(self._after):
            self.is_exact = self._is_back = True
            return self._between(self._after)
        if self._before is not None:
            return self._between(self._before)
        if self._after is not None:
            self._is_back = True
            return self._between(self._after)
        raise UsageError(
            "the files at this message are not known: the session has no snapshot of them "
            "(they are taken at the end of each turn that has an effect)"
        )

    def _is_of_turn(self, snapshot: SnapshotPlace) -> bool:
        if self._id in (snapshot.prompt, snapshot.node):
            return True
        return snapshot.began is not None and self._age(snapshot.began) <= self._began

    def _between(self, snapshot: SnapshotPlace) -> SnapshotPlace:
        age, at = self._age, self._age(snapshot.at)
        if self._is_back:
            inside = [place for place in self._all_places if self._done < age(place) < at]
        else:
            # Up to the next snapshot: the message's own calls report right after their results.
            end = None if self._after is None else age(self._after.at)
            later = [place for place in self._all_places if at < age(place)]
            inside = [place for place in later if end is None or age(place) < end]
        self.places = inside
        return snapshot

    def changed(self, facts: Iterable[AnyFact]) -> dict[str, tuple[FileSide, str]]:
        """What each path was that is not what the snapshot says."""
        if self._is_back:
            later = spans(fact for fact in facts if not self._is_own(fact))
            return {path: (span.target, span.missing) for path, span in later.items()}
        earlier = spans(fact for fact in facts if self._is_done(fact))
        return {path: (span.left, "") for path, span in earlier.items()}

    def _is_own(self, fact: AnyFact) -> bool:
        return isinstance(fact, FileTouched) and fact.call_uid in self._node.calls

    def _is_done(self, fact: AnyFact) -> bool:
        place = LogPosition(fact.session_id, fact.seq)
        return self._age(place) <= self._done or self._is_own(fact)


async def _left_out(
    origin: SnapshotPlace, state: SessionState, store: Store
) -> Mapping[tuple[str, BlobId | None], str]:
    """The contents that the snapshots up to this one left out."""
    age = state.files.age_of()
    places = [each.at for each in state.files.snapshots if age(each.at) <= age(origin.at)]
    facts = await read_places(places, store)
    found: dict[tuple[str, BlobId | None], str] = {}
    for place in places:
        if isinstance(fact := facts[place], WorkspaceSnapshot):
            note_left_out(found, fact)
    return found


async def _why_left_out(
    path: str,
    content: BlobId | None,
    origin: SnapshotPlace,
    state: SessionState,
    store: Store,
) -> str:
    """Why the snapshots up to this one do not have a content; empty where none left it out."""
    age = state.files.age_of()
    places = [each.at for each in state.files.snapshots if age(each.at) <= age(origin.at)]
    # The newest first: the one that saw the file become what it is decides, and it mostly is one of
    # the last.
    for end in range(len(places), 0, -_SNAPSHOTS_AT_ONCE):
        some = places[max(0, end - _SNAPSHOTS_AT_ONCE) : end]
        facts = await read_places(some, store)
        for place in reversed(some):
            fact = facts[place]
            if not isinstance(fact, WorkspaceSnapshot):
                continue
            found: dict[tuple[str, BlobId | None], str] = {(path, content): ""}
            note_left_out(found, fact)
            if (why := found.get((path, content))) is None or why:
                return why or ""
    return ""


def _file_at(
    path: str, entry: TreeEntry, left_out: Mapping[tuple[str, BlobId | None], str]
) -> FileAt:
    content = BlobId(entry.hash) if entry.hash and not entry.is_folder else None
    why = left_out.get((path, content), "")
    return FileAt(mode=entry.mode, content=content, why=why, is_left_out=bool(why))


def _change(files: dict[str, FileAt], path: str, side: FileSide, missing: str) -> None:
    if path.startswith("/"):
        return  # in a folder that was added to the project
    known = files.pop(path, None)
    if not side.exists:
        for below in [each for each in files if each.startswith(f"{path}/")]:
            del files[below]
        return
    mode = side.mode
    if not stat.S_IMODE(mode):
        # Tools that keep the mode of a file do not name it.
        is_same_kind = known is not None and known.is_folder == stat.S_ISDIR(mode)
        mode = known.mode if known is not None and is_same_kind else mode or _FILE_MODE
    files[path] = FileAt(mode=tree_mode(mode), content=side.content, why=missing)


def _has_place(path: str, files: Mapping[str, FileAt]) -> bool:
    while True:
        path, _, name = path.rpartition("/")
        if name in ("", ".", ".."):
            return False
        if not path:
            return True
        above = files.get(path)
        if above is None or not above.is_folder:
            return False


def why_not_put(path: str, found: FileAt, files: Mapping[str, FileAt], data: bytes | None) -> str:
    """Why an entry of these files is not put below a folder; empty when it is."""
    # Where the case of names does not count, `.GIT` is a repository too, and git runs programs that
    # it names.
    if not VERSION_CONTROL.isdisjoint(path.lower().split("/")):
        return "version control's own"
    # Nothing is put through a link, or beside a folder that is not known: below the folder that was
    # asked for are only folders that were made here.
    if not _has_place(path, files):
        return "its folder is not known"
    return found.why or "quota" if data is None and not found.is_folder else ""


def put_entry(path: str, mode: int, data: bytes | None) -> str:
    """Make it; returns why the disk does not take it, of a name or a target that it cannot have.

    Raises:
        UsageError: the disk takes nothing more.
    """
    try:
        _make(path, mode, data)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO):
            raise UsageError(f"{path} cannot be written: {error.strerror}") from error
        return error.strerror or "it cannot be written"
    return ""


def _make(path: str, mode: int, data: bytes | None) -> None:
    if stat.S_ISDIR(mode):
        os.mkdir(path, 0o700)
    elif stat.S_ISLNK(mode):
        os.symlink(data or b"", os.fsencode(path))
    else:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(data or b"")
            os.fchmod(file.fileno(), stat.S_IMODE(mode))
