"""Differences between the log and the disk: files that are not what the log tells of.

The log tells of the last snapshot of the files and of what the session's own tools left since.
What is on the disk beside that was made by another program, or by a command whose end is not known:
one that was killed with its process, or that goes on in the background.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from hashlib import sha256
from typing import Literal

import msgspec

from weft.errors import SessionNotFound, UsageError
from weft.events import WorkspaceSnapshot
from weft.ids import CallUid
from weft.runtime.fan.fan_keep import file_now
from weft.runtime.snapshots.project_snapshots import ProjectFiles, ProjectSnapshots, made_by
from weft.session import load_state
from weft.session.log.stored_line import read_places
from weft.state import LeftFile, SessionState
from weft.store import Store
from weft.workspace import ChangedFile
from weft.workspace.disk_threads import DiskThreads
from weft.workspace.history.history import WatchedRun
from weft.workspace.history.project_tree import TreeChange, changed_since, folders_above


class FileDifference(msgspec.Struct, frozen=True, kw_only=True):
    """A path that is not what the log tells of."""

    path: str
    """Relative to the project, with forward slashes."""
    kind: Literal["created", "modified", "deleted"]
    """What was done to it, seen from the log."""
    by: str
    """`outside` (nothing of this session did it: the user, another session or another program) or
    `unknown` (a command of the session may have: it was interrupted, or still runs)."""
    since: float | None = None
    """When the files were last looked at for the log, in seconds since 1970; None where they never
    were, and only what the session's tools left is compared."""


async def differences(
    state: SessionState, store: Store, files: ProjectFiles
) -> list[FileDifference]:
    """Every path that differs, in order; it reads all of the project that may have changed.

    Ignored files are compared only where a tool of the session changed them.

    Raises:
        UsageError: the files are not known, and why.
    """
    if files.unknown:
        raise UsageError(f"what differs from the log is not known: {files.unknown}")
    threads = DiskThreads.of(state.about.project_path)
    snapshots = ProjectSnapshots(files, threads, store, lambda paths: set())
    try:
        now = await snapshots.tree()
    except OSError as error:
        raise UsageError(f"the files cannot be looked at: {error.strerror}") from error
    changes, _ = await changed_since(state.files.tree, now, store.blob)
    judge = _DifferenceJudge(state, await _since(state, store))
    found: dict[str, FileDifference] = {}
    if state.files.tree is None:
        # Nothing is known of the files that the session did not change itself, but for what its
        # commands found when they began.
        changes = [each for each in changes if each.path in state.files.left]
        look = partial(
            files.history().not_handed_out, WatchedRun(), await _all_cut_off(state, store)
        )
        for each in map(judge.of_command, await threads.run(look)):
            found[each.path] = each
    found |= {each.path: each for each in map(judge.of_change, changes) if each is not None}
    same = {path: left for path, left in state.files.left.items() if path not in judge.seen}
    root = state.about.project_path
    for each in await threads.run(partial(judge.of_left, root, same)):
        found[each.path] = each
    return [found[path] for path in sorted(_without_folders(found, judge.folders))]


class _DifferenceJudge:
    """Tells what the log knows of from what it does not."""

    def __init__(self, state: SessionState, since: float | None) -> None:
        self._left = state.files.left
        self._above = {folder for path in self._left for folder in folders_above(path)}
        self._is_unsure = bool(_cut_off(state)) or not state.files.is_reported
        self._since = since
        self.seen: set[str] = set()
        self.folders: set[str] = set()

    def of_change(self, change: TreeChange) -> FileDifference | None:
        """A change since the last snapshot; None where the session made it."""
        self.seen.add(change.path)
        if any(each is not None and each.is_folder for each in (change.before, change.after)):
            self.folders.add(change.path)
        by = made_by(change, self._left, self._above, is_unsure=self._is_unsure)
        if by == "session":
            return None
        return self._named(change.path, change.before is not None, change.after is not None, by)

    def of_command(self, change: ChangedFile) -> FileDifference:
        """A change of a command whose end is not on record."""
        return FileDifference(path=change.path, kind=change.action, by="unknown", since=self._since)

    def of_left(self, root: str, left: Mapping[str, LeftFile]) -> list[FileDifference]:
        """What the session left, and the disk does not have; blocks."""
        by = "unknown" if self._is_unsure else "outside"
        found: list[FileDifference] = []
        for path, ours in left.items():
            if path.startswith("/") or stat.S_ISDIR(ours.mode):
                continue
            try:
                there = file_now(root, path)
            except OSError:
                found.append(self._named(path, ours.is_there, True, by))
                continue
            digest = None if there is None else sha256(there.data or b"").hexdigest()
            is_same = digest == ours.content or (ours.content is None and digest is not None)
            if (there is not None) != ours.is_there or (ours.is_there and not is_same):
                found.append(self._named(path, ours.is_there, there is not None, by))
        return found

    def _named(self, path: str, was: bool, is_now: bool, by: str) -> FileDifference:
        kind: Literal["created", "modified", "deleted"] = "modified"
        if was != is_now:
            kind = "created" if is_now else "deleted"
        return FileDifference(path=path, kind=kind, by=by, since=self._since)


def _cut_off(state: SessionState) -> list[CallUid]:
    """The calls whose effect is not known: they were cut off, or still run."""
    calls = [uid for uid, intent in state.turn.intents.items() if intent.effect == "unknown"]
    return [*calls, *(each.call_uid for each in state.background.running.values())]


async def _all_cut_off(state: SessionState, store: Store) -> list[CallUid]:
    """Those of its agents, too."""
    calls = _cut_off(state)
    for child in state.children.known:
        with suppress(SessionNotFound):
            calls += await _all_cut_off(await load_state(child, store), store)
    return calls


def _without_folders(found: Iterable[str], folders: set[str]) -> list[str]:
    """The paths without folders that are named by what is in them."""
    paths = list(found)
    above = {folder for path in paths for folder in folders_above(path)}
    return [path for path in paths if path not in folders or path not in above]


async def _since(state: SessionState, store: Store) -> float | None:
    for place in reversed(state.files.snapshots):
        if place.tree is not None:
            [fact] = (await read_places([place.at], store)).values()
            assert isinstance(fact, WorkspaceSnapshot)
            return fact.at
    return None
