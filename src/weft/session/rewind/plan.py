"""What a rewind does to files: a pure function of the changes that it takes back and of what is on
the disk.

A path goes back to what it was before the first of those changes.  That is what the session found
there, so what the user did before is kept; and what this session did not change is not in the list.
It goes back only if it is still what the last of those changes
left: anything else was changed outside the session, and is named instead (`conflict`), unless the
    caller says that it may be overwritten.
"""

from __future__ import annotations

import stat
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from weft.events import AnyFact, FileChange, FileTouched, Rewound
from weft.ids import BlobId
from weft.permissions import is_changed_by_hand, is_git_record
from weft.session.answers import RewindAction, RewindItem
from weft.session.environment import FileNow

_KIND = {stat.S_IFDIR: "folder", stat.S_IFLNK: "link", stat.S_IFREG: "file"}


class FileSide(msgspec.Struct, frozen=True):
    """What is at a path, as far as it is known: None is no content, 0 no mode."""

    exists: bool
    content: BlobId | None = None
    mode: int = 0

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.mode)

    def agrees(self, other: FileSide) -> bool:
        """True when both are the same, as far as modes are known.

        Content that is not known agrees with none.
        """
        if not (self.exists and other.exists):
            return self.exists == other.exists
        if self.is_folder or other.is_folder:
            return self._is_kind_of(other)
        if self.mode and other.mode and self.mode != other.mode:
            return False
        return self.content is not None and self.content == other.content

    def _is_kind_of(self, other: FileSide) -> bool:
        """Both folders, with one mode; one that was about to be made has none yet."""
        about_to_be = stat.S_IFDIR in (self.mode, other.mode)
        return self.is_folder and other.is_folder and (about_to_be or self.mode == other.mode)


NOTHING = FileSide(False)


class PathSpan(msgspec.Struct, frozen=True, kw_only=True):
    """All changes of one path that are taken back, as one."""

    path: str
    target: FileSide
    """What was there before the first."""
    left: FileSide
    """What the last one left."""
    missing: str = ""
    """Why the content of `target` was not kept."""
    is_certain: bool = True
    others_between: bool = False
    """It was changed outside the session between two of them."""


def side_of(now: FileNow | None) -> FileSide:
    """What is at a path now, to compare it with what was there."""
    return NOTHING if now is None else FileSide(True, now.content, now.mode)


class RewindStep(msgspec.Struct, frozen=True, kw_only=True):
    """What happens to one path."""

    span: PathSpan
    now: FileNow | None
    item: RewindItem

    @property
    def path(self) -> str:
        return self.span.path

    @property
    def target(self) -> FileSide:
        return self.span.target

    @property
    def acts(self) -> bool:
        return self.item.action in ("restore", "delete", "recreate")

    @property
    def change(self) -> FileChange:
        """As the log has it."""
        now = side_of(self.now)
        return FileChange(
            path=self.path,
            before=now.content,
            after=self.target.content,
            mode_before=now.mode,
            mode_after=self.target.mode,
        )


# --- what is taken back ----------------------------------------------------------------


def spans(facts: Iterable[AnyFact]) -> dict[str, PathSpan]:
    """The changes that these facts tell of, in order, one for each path."""
    found: dict[str, PathSpan] = {}
    for fact in facts:
        for change in _changes(fact):
            earlier = found.get(change.path)
            if earlier is not None:
                change = msgspec.structs.replace(
                    earlier,
                    left=change.left,
                    is_certain=earlier.is_certain and change.is_certain,
                    others_between=earlier.others_between or not earlier.left.agrees(change.target),
                )
            found[change.path] = change
    return found


def _changes(fact: AnyFact) -> list[PathSpan]:
    if isinstance(fact, Rewound):
        return [
            PathSpan(path=each.path, target=before_of(each), left=after_of(each))
            for each in fact.files
        ]
    if not isinstance(fact, FileTouched):
        return []
    before = FileSide(fact.action != "created", fact.before, fact.mode_before)
    after = FileSide(fact.action != "deleted", fact.after, fact.mode_after)
    return [
        PathSpan(
            path=fact.path,
            target=before,
            left=after,
            missing=fact.missing,
            is_certain=fact.is_certain,
        )
    ]


def before_of(change: FileChange) -> FileSide:
    """What a change found."""
    exists = change.before is not None or change.mode_before != 0
    return FileSide(exists, change.before, change.mode_before)


def after_of(change: FileChange) -> FileSide:
    """What a change left."""
    exists = change.after is not None or change.mode_after != 0
    return FileSide(exists, change.after, change.mode_after)


# --- what happens to each --------------------------------------------------------------


def plan(
    changed: Mapping[str, PathSpan],
    now: Mapping[str, FileNow | None],
    kept: Collection[BlobId],
    overwrite: Collection[str] = (),
) -> list[RewindStep]:
    """What is done with every path; `kept` are the contents that can still be had."""
    steps = {
        path: RewindStep(
            span=span,
            now=now[path],
            item=_judged(span, now[path], kept, is_forced=path in overwrite),
        )
        for path, span in changed.items()
    }
    # The deepest first: whether a folder can go depends on what was decided for those in it.
    for path in sorted(steps, key=_depth, reverse=True):
        steps[path] = _without_other_things(steps[path], steps)
    return [steps[path] for path in sorted(steps)]


def _judged(
    span: PathSpan, now: FileNow | None, kept: Collection[BlobId], *, is_forced: bool
) -> RewindItem:
    target, path = span.target, span.path
    present = side_of(now)
    # Before all refusals: what is already so needs neither content nor permission.
    if present.agrees(target):
        return RewindItem(path=path, action="unchanged", reason="it is in that state already")
    # A rewind runs without asking. To put back a hook or a shell profile would be to run what was
    # in it, so that not even `overwrite` covers these.
    # Git's own records (a branch that a command removed) are data, which no program runs.
    if is_changed_by_hand(path) and not is_git_record(path):
        return RewindItem(
            path=path,
            action="conflict",
            reason="programs obey this file, so it is only ever changed by hand",
        )
    if not target.is_folder and target.exists and target.content not in kept:
        why = span.missing or "it was dropped to stay within the quota"
        return RewindItem(path=path, action="unavailable", reason=f"what it was is gone: {why}")
    # Every rewind can be undone, and for that what it replaces must be stored.
    if not is_forced and _is_beyond_keeping(now):
        return RewindItem(
            path=path,
            action="unavailable",
            reason="it is too large to be kept, so taking it away could not be undone",
        )
    if not is_forced and (why := _conflict(span, present)):
        return RewindItem(path=path, action="conflict", reason=why)
    return RewindItem(path=path, action=action_for(present, target), reason=_remark(span))


def _conflict(span: PathSpan, present: FileSide) -> str:
    """Why a path is not simply put back; empty when it can be."""
    if not span.left.agrees(present):
        if not present.exists:
            return "it was removed since"
        return (
            "it was changed since"
            if span.left.exists
            else "it was created outside the session since"
        )
    if not span.is_certain:
        return "it may have been changed outside the session: its changes could not be observed"
    return ""


def _is_beyond_keeping(now: FileNow | None) -> bool:
    return now is not None and not stat.S_ISDIR(now.mode) and now.content is None


def action_for(present: FileSide, target: FileSide) -> RewindAction:
    """What has to be done to get from the one to the other."""
    if not target.exists:
        return "delete"
    return "restore" if present.exists else "recreate"


def _remark(span: PathSpan) -> str:
    return (
        "also takes back what was changed outside the session in between"
        if span.others_between
        else ""
    )


def _without_other_things(step: RewindStep, steps: Mapping[str, RewindStep]) -> RewindStep:
    """A folder that holds anything else stays; asked for the deepest first."""
    if not step.acts or step.now is None or not stat.S_ISDIR(step.now.mode):
        return step
    if step.target.is_folder:
        return step
    for name in step.now.names:
        below = steps.get(f"{step.path}/{name}")
        if below is None or not below.acts or below.target.exists:
            reason = f"it holds {name!r}, which stays"
            item = RewindItem(path=step.path, action="conflict", reason=reason)
            return msgspec.structs.replace(step, item=item)
    return step


# --- in which order --------------------------------------------------------------------


def in_order(steps: Iterable[RewindStep]) -> list[RewindStep]:
    """Those that act, in an order in which each can be done: make way, the deepest first.

    Then build up, the outermost first.
    """
    return sorted((step for step in steps if step.acts), key=_turn)


def _turn(step: RewindStep) -> tuple[int, int, str]:
    depth = _depth(step.path)
    was_folder = step.now is not None and stat.S_ISDIR(step.now.mode)
    if step.target.is_folder:
        # First folders that only change their mode, for they may be closed; then files go, then the
        # folders that held them; then folders are made, and files in them.
        return (0 if was_folder else 3, depth, step.path)
    if not step.target.exists:
        return (2 if was_folder else 1, -depth, step.path)
    return (4, depth, step.path)


def closes_itself(side: FileSide) -> bool:
    """True for a folder that its owner may not write into: it gets its mode last."""
    return side.is_folder and side.mode & 0o300 != 0o300


def _depth(path: str) -> int:
    return path.count("/")


# --- the note to the model -------------------------------------------------------------


def note_to_model(steps: Sequence[RewindStep]) -> str:
    """What the model has to know when files went back and the conversation did not."""
    paths = [step.path for step in steps if step.acts and not step.target.is_folder]
    shown = ", ".join(paths[:20]) + (f" and {len(paths) - 20} more" if len(paths) > 20 else "")
    return (
        f"The user has put files back to what they were earlier: {shown}. Read them again "
        "before you rely on them."
    )
