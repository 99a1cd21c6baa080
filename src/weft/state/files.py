"""Touched files: what tools of this session changed in the project, and where in the log each
change is recorded.

What files held is not here, only where it can be read (`places`), as with the words of the tree: a
rewind reads exactly the changes that it takes back.
"""

from __future__ import annotations

import stat
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Literal, TypeAlias

import msgspec

from weft.events import (
    AnyFact,
    FileChange,
    FileTouched,
    RefMoved,
    Rewound,
    SessionCreated,
    SessionHosted,
    ToolExecuting,
    TurnStarted,
    WorkspaceSaved,
    WorkspaceSnapshot,
)
from weft.ids import BlobId, NodeId, SessionId
from weft.tree import LogPosition

REPORTING: Final = frozenset({"shell", "shell_stop", "agent"})
"""Tools with an unknown effect that tell which files they changed."""

FileAction: TypeAlias = Literal["created", "modified", "deleted"]


class TouchedFile(msgspec.Struct, frozen=True, kw_only=True):
    """One changed file, as `touched_files()` shows it."""

    path: str
    action: FileAction
    at: float


class OriginalFile(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What was at a path before the session first touched it."""

    exists: bool
    content: BlobId | None = None
    mode: int = 0


class SnapshotPlace(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where a snapshot of the files is written down, and what it is of."""

    at: LogPosition
    tree: BlobId | None
    began: LogPosition | None
    """Where the turn began at whose end it was taken."""
    prompt: NodeId | None
    """The node that this turn started from."""
    node: NodeId | None
    """The last node of this turn."""


class SavedWorkspace(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What another host works on, and where that is written down."""

    at: LogPosition
    tree: BlobId
    repository: BlobId | None
    included: BlobId | None


class LeftFile(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What the session last left at a path."""

    content: BlobId | None
    mode: int
    """0: nothing, or not known."""
    is_there: bool
    is_certain: bool


class TouchedFiles(msgspec.Struct):
    """Changed files; the last touched one is last."""

    touched: dict[str, TouchedFile] = {}
    originals: dict[str, OriginalFile] = {}
    places: list[LogPosition] = []
    """The facts that tell of changes, in the order they happened."""
    logs: list[SessionId] = []
    """The logs that were folded, the oldest ancestor of a fork first."""
    checkpoints: dict[str, int] = {}
    """How many of `places` there were when a checkpoint was set."""
    rewinds: list[LogPosition] = []
    """Rewinds that have not been taken back."""
    unsettled: LogPosition | None = None
    """A rewind whose files may not have been put back yet."""
    snapshots: list[SnapshotPlace] = []
    """The snapshots of the project's files, in the order they were taken."""
    saved: SavedWorkspace | None = None
    """What was last saved for other hosts."""
    folder: str = ""
    """The folder that was last worked in, as its identity tells; empty where it is not known."""
    left: dict[str, LeftFile] = {}
    """What the session left at each path that it changed since the last snapshot."""
    had_effect: bool = False
    """Something was run since the last snapshot that may have changed files."""
    is_reported: bool = True
    """All that was run since then reports what it changes; False where a tool of a program may have
    changed anything."""
    turn_began: LogPosition | None = None
    """Where the last turn began, and the node that it started from."""
    turn_prompt: NodeId | None = None

    def apply(self, fact: AnyFact) -> None:
        """Take one more fact in."""
        # The most frequent kinds first: a session is opened by folding all that it has.
        match fact:
            case ToolExecuting():
                self.had_effect = True
                self.is_reported &= fact.effect == "checkable" or fact.tool_name in REPORTING
            case FileTouched():
                self.places.append(LogPosition(fact.session_id, fact.seq))
                self._touch(fact)
            case TurnStarted():
                self.turn_began = LogPosition(fact.session_id, fact.seq)
                self.turn_prompt = fact.node
            case Rewound():
                self._rewind(fact)
            case RefMoved(name=name, ref="checkpoint"):
                # A count, not a `seq`: in a fork the places come from several logs, each of which
                # counts from 1.
                self.checkpoints[name] = len(self.places)
            case SessionCreated():
                self.logs.append(fact.session_id)
            case WorkspaceSnapshot():
                self._take_snapshot(fact)
            case WorkspaceSaved():
                self.folder = fact.folder
                if fact.tree is not None:
                    at = LogPosition(fact.session_id, fact.seq)
                    self.saved = SavedWorkspace(at, fact.tree, fact.repository, fact.included)
            case SessionHosted(folder=folder):
                self.folder = folder
            case _:
                pass

    def left_after(self, noted: Iterable[AnyFact]) -> Mapping[str, LeftFile]:
        """`left`, once these facts are on record, too."""
        left = dict(self.left)
        for fact in noted:
            if isinstance(fact, FileTouched):
                left[fact.path] = _left_by(fact)
        return left

    @property
    def tree(self) -> BlobId | None:
        """The tree of the last snapshot that has one; None where there is none."""
        for place in reversed(self.snapshots):
            if place.tree is not None:
                return place.tree
        return None

    def _take_snapshot(self, fact: WorkspaceSnapshot) -> None:
        at = LogPosition(fact.session_id, fact.seq)
        self.snapshots.append(
            SnapshotPlace(at, fact.tree, self.turn_began, self.turn_prompt, fact.node)
        )
        self.had_effect = False
        # Where it was not taken, the next one still has to tell whose the changes are.
        if fact.tree is not None:
            self.left = {}
            self.is_reported = True

    def newest_first(self) -> list[TouchedFile]:
        """All of them, the last touched first."""
        return list(reversed(self.touched.values()))

    def places_after(self, place: LogPosition) -> list[LogPosition]:
        """Where the changes are written down that happened after the fact at `place`."""
        age = self.age_of()
        start = age(place)
        return [each for each in self.places if age(each) > start]

    def counts_after(self, places: Iterable[LogPosition]) -> list[int]:
        """How many changes happened after each of these facts; the changes are gone through once,
        however many facts there are.
        """
        age = self.age_of()
        ages = sorted(map(age, self.places))
        return [len(ages) - bisect_right(ages, age(place)) for place in places]

    def age_of(self) -> Callable[[LogPosition], tuple[int, int]]:
        """What facts are ordered by."""
        # A `seq` orders facts of one log only; across the logs of a fork the age of the log
        # decides.
        rank = {log: number for number, log in enumerate(self.logs)}
        return lambda place: (rank.get(place.log, -1), place.seq)

    def _leave(self, path: str, left: LeftFile) -> None:
        self.left[path] = left
        self.had_effect = True

    def _touch(self, fact: FileTouched) -> None:
        self._leave(fact.path, _left_by(fact))
        # A folder is no file to show, but its fact stays in `places`: a rewind has to undo it.
        if stat.S_ISDIR(fact.mode_after or fact.mode_before):
            return
        exists = fact.action != "created"
        before = OriginalFile(exists, fact.before, fact.mode_before)
        self._net(fact.path, before, exists_now=fact.action != "deleted", at=fact.at)

    def _rewind(self, fact: Rewound) -> None:
        place = LogPosition(fact.session_id, fact.seq)
        if fact.files:
            self.places.append(place)
        for change in fact.files:
            is_there = _is_there(change.after, change.mode_after)
            left = LeftFile(change.after, change.mode_after, is_there, is_certain=True)
            self._leave(change.path, left)
            if not stat.S_ISDIR(change.mode_after or change.mode_before):
                self._put_back(change, fact.at)
        # Two facts make one rewind: the intent, before files are written, and what came of it. A
        # crash between the two leaves `unsettled`, and recovery does the rest.
        if fact.settles:
            self.unsettled = None
            return
        self.unsettled = place if fact.files else None
        if not fact.undoes:
            self.rewinds.append(place)
        else:
            undone = LogPosition(fact.session_id, fact.undoes)
            self.rewinds = [each for each in self.rewinds if each != undone]

    def _put_back(self, change: FileChange, at: float) -> None:
        before = OriginalFile(_is_there(change.before, change.mode_before))
        now = OriginalFile(
            _is_there(change.after, change.mode_after), change.after, change.mode_after
        )
        if self.originals.get(change.path) == now:
            # As if the session had never been there.
            self.touched.pop(change.path, None)
            del self.originals[change.path]
        else:
            self._net(change.path, before, exists_now=now.exists, at=at)

    def _net(self, path: str, before: OriginalFile, *, exists_now: bool, at: float) -> None:
        """What all changes of a path come to, seen from before the first."""
        # Only the first change knows what was there before the session; later ones start from our
        # own work.
        original = self.originals.setdefault(path, before)
        # Out and in again, because a dict keeps the place of a key that is only set.
        self.touched.pop(path, None)
        action: FileAction
        if not exists_now:
            action = "deleted"
        elif not original.exists:
            action = "created"
        else:
            action = "modified"
        # What the session made and removed again stays: a tool had its hands there. Only a rewind
        # makes it as if the session had never been there.
        self.touched[path] = TouchedFile(path=path, action=action, at=at)


def note_left_out(found: dict[tuple[str, BlobId | None], str], fact: WorkspaceSnapshot) -> None:
    """Take in which contents, each at a path, a snapshot left out, and why; the oldest snapshot
    comes first.
    """
    # It was left out once, and stored when the file came to hold it again.
    for change in fact.changes:
        found.pop((change.path, change.content), None)
    found |= {(each.path, each.content): each.why for each in fact.left_out}


def _left_by(fact: FileTouched) -> LeftFile:
    return LeftFile(fact.after, fact.mode_after, fact.action != "deleted", fact.is_certain)


def _is_there(content: BlobId | None, mode: int) -> bool:
    return content is not None or mode != 0
