"""From the upper layer into the project: plan, judge, put.

Judging is where boundaries, rules and protected paths have their say, on each path by itself and
before anything is put in place.  A file that another program changed while the command ran is
merged where that is clean; else theirs stays, the command's version is kept aside, and both are
reported.  A repository is never removed, for its history is in no other place; what its records
come to is for the `GitGuard` to judge.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Container, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

import msgspec

from weft.errors import ToolError
from weft.workspace.base import ChangedFile, ReviewedChanges, ReviewedFile, unkept
from weft.workspace.boundaries.workspace import MAX_BYTES, MovedRange, SessionBoundaries
from weft.workspace.disk_threads import DiskThreads
from weft.workspace.git_repository import find_hook_folder, may_be_record
from weft.workspace.history.watchers import note_own_write
from weft.workspace.sandbox.content_match import looks_same
from weft.workspace.sandbox.merge import merge
from weft.workspace.sandbox.overlay_apply import (
    ApplyOutcome,
    OverlayApplier,
    finish_folders,
    rewrite,
    touched,
)
from weft.workspace.sandbox.overlay_changes import TooMuch
from weft.workspace.sandbox.overlay_plan import (
    HEART,
    KEPT_BYTES,
    ApplyStep,
    FoundEntry,
    is_text,
    plan,
    size_of,
)
from weft.workspace.sandbox.removals import (
    RemovalPlan,
    as_text,
    folder_size,
    plan_removals,
    why_not_held,
)
from weft.workspace.sandbox.scratch import DONE, PLAN, ScratchPlace

if TYPE_CHECKING:  # loaded with the first change of a repository
    from weft.workspace.sandbox.git_guard import GitGuard

MOST_REPORTED = 10_000
"""Changes of one command that the history records; more are counted."""
MOST_BYTES = 128 * 1024 * 1024
"""Content that the history is handed for one command."""
ASIDE_BYTES = 512 * 1024 * 1024
"""Removed files that are kept aside, of all commands together."""
MAY_BE_PART = re.compile(
    r"(?:^|/)(?:HEAD|config|config\.worktree|commondir|(?:objects|refs|hooks)(?:/.*)?)$"
)
WHY_PLANTED = "git would obey it there, as in a .git folder; the write tool can ask for it"
ASK_OUTSIDE = "if the user wants it, a command with outside_sandbox asks for it"
MOST_NAMED = 20
"""Paths that the result names of a kind."""


class ChangeJudge(Protocol):
    """Decides which paths a command may change."""

    def forbids(self, path: str) -> str:
        """Why this path (as the project shows it) may not be changed by a command.

        Empty when it may.
        """
        ...

    def forbids_link(self, path: str) -> str:
        """The same for a link that a command makes there: what lies below gets other names."""
        ...

    def forbids_record(self, path: str) -> str:
        """The same for a protected file in which nothing changes that programs obey."""
        ...


StepId: TypeAlias = tuple[str, str]
"""Path and what is done there: what takes the place of another kind of thing takes two steps at one
path.
"""


def identified(step: ApplyStep) -> StepId:
    """How a step is known among those of one command."""
    return step.path, step.do


class PlannedStep(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A step as it is written down before it is carried out."""

    layer: int
    path: bytes
    """As the disk has it, for not every name is text."""
    do: str
    before: str = ""
    """How what was there is known again (`mark`)."""
    after: str = ""
    told: ChangedFile | None = None
    """The change for the history, with what is about to be replaced.

    None where it records nothing.
    """


class CommittedChanges(msgspec.Struct, kw_only=True):
    """What came of what a command changed."""

    changes: list[ChangedFile] = []
    left_out: list[str] = []
    """What changed besides and the history does not hold, in sentences."""
    remarks: list[str] = []
    """What the model has to know: what did not reach the project, and why."""
    is_held_back: bool = False


class JudgedLayer(msgspec.Struct, frozen=True, kw_only=True):
    """What may be done in one folder."""

    root: str
    upper: str
    steps: list[ApplyStep]
    removals: RemovalPlan


class OverlayCommit:
    """Commits the changes of one command to the project."""

    def __init__(
        self,
        place: ScratchPlace,
        *,
        started_ns: int,
        judge: ChangeJudge,
        boundaries: SessionBoundaries,
        shown: Callable[[str, str], str],
        base_of: Callable[[str], bytes | None],
        aside: str,
        threads: DiskThreads,
        guard: Callable[[], GitGuard],
        kept_bytes: int = KEPT_BYTES,
        aside_bytes: int = ASIDE_BYTES,
        tidy: Callable[[], None] = lambda: None,
    ) -> None:
        """`shown` names a path of a folder, `base_of` knows earlier versions of files, `aside` is
        where lost versions are kept.

        That folder is for this command alone: in one that held links of another, a path could lead
        anywhere.  `tidy` is called in a thread when all is done.
        """
        self._place = place
        self._started = started_ns
        self._judge = judge
        self._boundaries = boundaries
        self._shown = shown
        self._base_of = base_of
        self._aside = aside
        self._threads = threads
        self._guard = guard
        self._kept_bytes = kept_bytes
        self._aside_bytes = aside_bytes
        self._tidy: Callable[[], None] | None = tidy
        self._refused: list[str] = []
        self._failed: list[str] = []
        self._merged: list[str] = []
        self._lost: list[str] = []
        self._disarmed: list[str] = []
        self._set_aside: list[str] = []
        self._gone: list[str] = []
        self._rewritten: list[str] = []
        self._moved: dict[str, MovedRange] = {}
        self._committed = CommittedChanges()
        self._layers: dict[int, JudgedLayer | None] = {}

    async def review(self) -> ReviewedChanges:
        """What `run` would carry over, and what not.

        Nothing is put in place; `run` goes by the same verdicts, and leaves out what another
        program changes meanwhile.
        """
        files: list[ReviewedFile] = []
        for number, (root, _, _) in enumerate(self._place.layers):
            layer = await self._judged_layer(number)
            steps = () if layer is None else layer.steps
            files += [
                reviewed(step, as_text(self._shown(root, step.path)))
                for step in steps
                if step.do not in ("touch", "leave")
            ]
        remarks = (*self._committed.remarks, *self._remarks())
        return ReviewedChanges(files=tuple(files), remarks=remarks)

    async def run(self) -> CommittedChanges:
        """Bring the project to what the command saw, as far as it may be."""
        committed = self._committed
        for number in range(len(self._place.layers)):
            if (layer := await self._judged_layer(number)) is not None:
                await self._put(number, layer)
        if self._tidy is not None:
            await self._threads.run(self._tidy)
        committed.remarks += self._remarks()
        committed.is_held_back |= bool(self._refused or self._lost or self._failed)
        return committed

    async def _judged_layer(self, number: int) -> JudgedLayer | None:
        """The verdicts on one folder, found once: to judge may merge files, or move them aside."""
        if number not in self._layers:
            root, upper, _ = self._place.layers[number]
            self._layers[number] = await self._judge_layer(root, upper)
        return self._layers[number]

    async def _judge_layer(self, root: str, upper: str) -> JudgedLayer | None:
        committed = self._committed
        try:
            steps = await self._threads.run(
                lambda: plan(root, upper, self._started, kept_bytes=self._kept_bytes)
            )
        except (TooMuch, OSError) as error:
            why = (
                str(error) if isinstance(error, TooMuch) else error.strerror or "it cannot be read"
            )
            committed.remarks.append(
                "None of its changes reached the project, for they are more than is "
                f"carried over: {why}."
            )
            committed.is_held_back = True
            return None
        allowed = await self._judged(steps, root, upper)
        # After all others: the records are judged as they would be, without what was refused.
        allowed = await self._guarded(allowed, root, upper, committed)
        allowed, removals = await self._with_removals(allowed, root, upper)
        if not allowed:
            return None
        return JudgedLayer(root=root, upper=upper, steps=allowed, removals=removals)

    async def _put(self, number: int, layer: JudgedLayer) -> None:
        root, upper, allowed, removals = layer.root, layer.upper, layer.steps, layer.removals
        why = unkept(self._kept_bytes)
        reported = _reports(allowed, lambda path: self._shown(root, path), why, removals)
        outcome = await self._threads.run(
            lambda: self._apply(allowed, reported, root, upper, number)
        )
        self._settle(outcome, root)
        self._name_removed(outcome.done, removals, root)
        _report(outcome.done, reported, self._committed)

    # --- judging -------------------------------------------------------------------------------

    async def _judged(self, steps: Sequence[ApplyStep], root: str, upper: str) -> list[ApplyStep]:
        # Over all steps: a repository is gone only if no other step puts its parts back.
        taken_away = _taken_away(steps)
        if taken_away:
            taken_away = await self._threads.run(lambda: _repositories(taken_away, root, upper))
        planted = await self._threads.run(lambda: _planted(root, upper, steps))
        allowed: list[ApplyStep] = []
        for step in steps:
            shown = self._shown(root, step.path)
            if step.path in planted:
                self._refused.append(f"{shown}: {WHY_PLANTED}")
                continue
            if any(step.path == each or step.path.startswith(f"{each}/") for each in taken_away):
                self._refused.append(f"{shown}: a command may not take a repository away")
                continue
            verdict = await self._verdict(step, shown, root, upper)
            if verdict is not None:
                allowed.append(verdict)
        return allowed

    async def _guarded(
        self, steps: list[ApplyStep], root: str, upper: str, committed: CommittedChanges
    ) -> list[ApplyStep]:
        """The steps without those in repositories that would lose history."""
        # Loaded with the first command that touches a repository: it is as large as all the rest.
        if not any(may_be_record(step.path) for step in steps):
            return steps
        found = await self._guard().judge(root, upper, steps, lambda path: self._shown(root, path))
        committed.changes += found.lost_refs
        committed.remarks += found.remarks
        for folder, why in found.refused.items():
            shown = self._shown(root, folder) if folder else "."
            self._refused.append(f"{shown}: {why}; {ASK_OUTSIDE}")
        # A project that is a bare repository is held back as a whole: every path begins with "".
        inside = tuple(f"{folder}/" if folder else "" for folder in found.refused)
        return [
            self._kept_aside(step) if step.path in found.kept else step
            for step in steps
            if not f"{step.path}/".startswith(inside) and step.path not in found.left_out
        ]

    def _kept_aside(self, step: ApplyStep) -> ApplyStep:
        return msgspec.structs.replace(step, aside=f"{self._aside}/{step.path}")

    async def _with_removals(
        self, steps: list[ApplyStep], root: str, upper: str
    ) -> tuple[list[ApplyStep], RemovalPlan]:
        """The steps with what becomes of removed files that the history does not hold."""
        # Where the user keeps no history, there is none to miss.
        if not self._kept_bytes or not any(map(why_not_held, steps)):
            return steps, RemovalPlan()
        kept_before = await self._threads.run(lambda: folder_size(os.path.dirname(self._aside)))
        room = self._aside_bytes - kept_before
        found = await self._threads.run(
            lambda: plan_removals(
                steps,
                room=room,
                is_same=lambda ours, copy: looks_same(f"{root}/{ours}", f"{upper}/{copy}"),
            )
        )
        if found.is_bulk:
            for path in found.gone:
                self._refused.append(
                    f"{as_text(self._shown(root, path))}: no rewind could bring it back "
                    f"({found.gone[path]}); {ASK_OUTSIDE}"
                )
            steps = [step for step in steps if not found.loses(step) or step.path not in found.gone]
        return [
            self._kept_aside(step) if step.path in found.aside and found.loses(step) else step
            for step in steps
        ], found

    def _name_removed(self, done: Sequence[ApplyStep], removals: RemovalPlan, root: str) -> None:
        for step in done:
            if not removals.loses(step):
                continue
            shown = self._shown(root, step.path)
            if why := removals.aside.get(step.path):
                self._set_aside.append(f"{as_text(shown)} ({why}): {as_text(step.aside)}")
            elif why := removals.gone.get(step.path):
                self._gone.append(f"{as_text(shown)} ({why})")
            elif why := removals.rewritten.get(step.path):
                self._rewritten.append(f"{as_text(shown)} ({why})")

    async def _verdict(
        self, step: ApplyStep, shown: str, root: str, upper: str
    ) -> ApplyStep | None:
        """The step as it may be carried out; None when it may not, which is noted."""
        if step.do == "touch":
            return None if step.is_stale else step
        if step.do == "leave":
            self._failed.append(f"{shown}: pipes, sockets and devices are not carried over")
            return None
        # Rules before staleness: a forbidden path must not even be merged or kept aside.
        if why := await self._why_forbidden(step, shown, root, upper):
            self._refused.append(f"{shown}: {why}")
            return None
        if step.is_stale:
            fresh = await self._threads.run(lambda: self._merge(step, shown, root, upper))
            if fresh is None:
                return None
            step = fresh
        try:
            await self._admit(step, shown, root, upper)
        except ToolError as error:
            self._refused.append(f"{shown}: {error}")
            return None
        return step

    async def _why_forbidden(self, step: ApplyStep, shown: str, root: str, upper: str) -> str:
        if step.after is not None and step.after.kind == "link":
            return self._judge.forbids_link(shown)
        why = self._judge.forbids(shown)
        if not why or ".git" not in step.path:
            return why
        from weft.workspace.sandbox.git_setup import GitSetup  # few commands set a repository up

        setup = GitSetup(root, upper)
        if not await self._threads.run(lambda: setup.is_gits_own(step)):
            return why
        return self._judge.forbids_record(shown)

    async def _admit(self, step: ApplyStep, shown: str, root: str, upper: str) -> None:
        """Ask the boundaries.

        Raises:
            ToolError: the change reaches beyond one.
        """
        if step.do == "mode" or self._boundaries.of(shown) is None:
            return
        before = await self._threads.run(lambda: _content(f"{root}/{step.path}", step.before))
        after = await self._threads.run(lambda: _content(f"{upper}/{step.path}", step.after))
        moved = await self._boundaries.admit(shown, before, after)
        if moved is not None:
            self._moved[step.path] = moved

    def _merge(self, step: ApplyStep, shown: str, root: str, upper: str) -> ApplyStep | None:
        """Both changes of a file together.

        None where they cannot be, and then the command's version is kept aside.
        """
        base = self._base_of(shown)
        theirs = _content(f"{root}/{step.path}", step.before)
        ours = _content(f"{upper}/{step.path}", step.after)
        if base is not None and theirs is not None and ours is not None:
            together = merge(base, ours, theirs)
            if together is not None:
                self._merged.append(shown)
                return rewrite(upper, step, together)
        aside = self._keep_aside(step, upper)
        kept = f"; the command's version is kept in {aside}" if aside else ""
        self._lost.append(f"{shown}{kept}")
        return None

    def _keep_aside(self, step: ApplyStep, upper: str) -> str:
        if step.do != "put":
            return ""
        target = f"{self._aside}/{step.path}"
        try:
            os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
            # A rename within our own folder: also a file larger than the free disk can be kept.
            os.rename(f"{upper}/{step.path}", target)
        except OSError:
            return ""
        return target

    # --- carrying out ----------------------------------------------------------------------------

    def _apply(
        self,
        steps: list[ApplyStep],
        reported: Mapping[StepId, ChangedFile],
        root: str,
        upper: str,
        layer: int,
    ) -> ApplyOutcome:
        write_plan(self._place, steps, layer, reported)
        # The plan is on disk now.  A crash from here on is finished by `overlay_recovery`, which
        # trusts nothing but the marks of before and after in it.
        applier = OverlayApplier(root, upper)
        try:
            outcome = applier.run(steps)
        finally:
            applier.close()
        finish_folders(root, outcome.done)
        for step in outcome.done:
            note_own_write(root, step.path)
        # The record of what was done must not name what was not: a rewind would undo it.
        if outcome.failed:
            write_plan(self._place, outcome.done, layer, reported)
        # One rename turns the plan into the record, so there is no moment with both or neither.
        os.rename(f"{self._place.folder}/{PLAN}{layer}", f"{self._place.folder}/{DONE}{layer}")
        if layer == len(self._place.roots) - 1 and self._tidy is not None:
            # In this thread, for going to another takes as long as the work.
            self._tidy()
            self._tidy = None
        return outcome

    def _settle(self, outcome: ApplyOutcome, root: str) -> None:
        """Note what moved, and what could not be done."""
        for step in outcome.done:
            self._boundaries.moved(self._moved.pop(step.path, None))
            if step.is_disarmed:
                self._disarmed.append(self._shown(root, step.path))
        held_back = bool(self._refused or self._lost)
        for step, why in outcome.failed:
            if step.do == "remove_folder" and held_back:
                continue  # something that was refused is still in it
            self._failed.append(f"{self._shown(root, step.path)}: {why}")

    def _remarks(self) -> list[str]:
        kinds = (
            (
                "These changes of the command were refused and did not reach the project",
                self._refused,
            ),
            (
                "These files were changed outside the sandbox while the command ran, and "
                "that version was kept",
                self._lost,
            ),
            (
                "These files were changed outside the sandbox while the command ran; "
                "both changes were merged",
                self._merged,
            ),
            ("These changes could not be carried over", self._failed),
            (
                "These files were removed or emptied and a rewind does not bring them back; "
                "they are kept as long as history.quota has room",
                self._set_aside,
            ),
            ("These files were removed or emptied and nothing brings them back", self._gone),
            (
                "These files were rewritten and a rewind does not bring back what they held",
                self._rewritten,
            ),
            (
                "These files came over, but not as programs that run as their owner or "
                "group (set-user-id, set-group-id)",
                self._disarmed,
            ),
        )
        return [_listed(title, lines) for title, lines in kinds if lines]


def reviewed(step: ApplyStep, shown: str) -> ReviewedFile:
    """A step as it is shown before it is carried out."""
    before, after = step.before, step.after
    is_folder = "folder" in (each.kind for each in (before, after) if each is not None)
    action: Literal["created", "modified", "deleted"] = "modified"
    if after is None:
        action = "deleted"
    elif before is None:
        action = "created"
    return ReviewedFile(
        path=f"{shown}/" if is_folder and step.do != "put" else shown,
        action=action,
        is_ignored=step.is_ignored,
        data_before=None if before is None else before.data,
        data_after=None if after is None else after.data,
    )


def write_plan(
    place: ScratchPlace,
    steps: Sequence[ApplyStep],
    layer: int,
    reported: Mapping[StepId, ChangedFile],
) -> None:
    """Write down what is about to be done, so that it can be finished after a crash, and the
    changes for the history.
    """
    planned = [
        PlannedStep(
            layer=layer,
            path=os.fsencode(step.path),
            do=step.do,
            before=mark(step.before),
            after=mark_of_ours(step.after),
            told=_without_after(reported.get(identified(step))),
        )
        for step in steps
    ]
    # Not forced to disk: after a power cut the project may lack the changes too, and each path is
    # compared before anything is done.
    with open(f"{place.folder}/{PLAN}{layer}", "wb") as file:
        file.write(msgspec.msgpack.encode(planned))


def _without_after(reported: ChangedFile | None) -> ChangedFile | None:
    """What was put in place is there to be read."""
    return None if reported is None else msgspec.structs.replace(reported, data_after=None)


def mark(found: FoundEntry | None) -> str:
    """What tells a thing from any other that could be in its place: its content, or its looks where
    that was not read.
    """
    if found is None:
        return ""
    if found.hash is not None:
        return str(found.hash)
    return mark_of_looks(found)


def mark_of_looks(found: FoundEntry) -> str:
    """The mark of what was not read."""
    return " ".join(map(str, found.identity))


def mark_of_ours(found: FoundEntry | None) -> str:
    """The same for what lies in the upper layer, where no other program writes and we change times
    and modes ourselves.
    """
    return "" if found is None or found.hash is None else str(found.hash)


def _taken_away(steps: Sequence[ApplyStep]) -> list[str]:
    """The repositories that would be none afterwards: `.git` folders."""
    gone = {
        step.path
        for step in steps
        if step.do in ("remove", "remove_folder") and HEART.fullmatch(step.path)
    }
    put = {step.path for step in steps if step.do in ("put", "make")}
    return sorted({f"{path.rpartition('.git')[0]}.git" for path in gone - put})


def _repositories(paths: Sequence[str], root: str, upper: str) -> list[str]:
    """Those of some removed `.git` that are a repository, and not the pointer of a work tree whose
    records are in another one.
    """
    from weft.workspace.sandbox.git_setup import GitSetup  # few commands remove a `.git`

    setup = GitSetup(root, upper)
    return [path for path in paths if not setup.is_pointer(path)]


def _planted(root: str, upper: str, steps: Sequence[ApplyStep]) -> set[str]:
    """Hooks outside of `.git`, and the parts of repositories under other names that git would
    obey.
    """
    return _hooks(root, steps) | _other_repositories(root, upper, steps)


def _hooks(root: str, steps: Sequence[ApplyStep]) -> set[str]:
    # Of the repository as it is: a command that names another folder for them does not get so far.
    folder = find_hook_folder(root) if steps else None
    if folder is None:
        return set()
    top = root.rstrip("/")
    changes = [step for step in steps if step.do != "touch"]
    return {step.path for step in changes if folder.hold(f"{top}/{step.path}")}


def _other_repositories(root: str, upper: str, steps: Sequence[ApplyStep]) -> set[str]:
    if not any(MAY_BE_PART.search(step.path) for step in steps):
        return set()
    from weft.workspace.sandbox.repository.planted_repositories import planted  # few have any

    return planted(root, upper, steps)


def _reports(
    steps: Sequence[ApplyStep],
    shown: Callable[[str], str],
    unkept: str,
    removals: RemovalPlan,
) -> dict[StepId, ChangedFile]:
    """The changes to report to the history, should these steps be carried out."""
    room = MOST_BYTES
    reported: dict[StepId, ChangedFile] = {}
    gone = {
        size_of(step.before)
        for step in steps
        if step.path in removals.gone and step.is_ignored and step.before is not None
    }
    # What is kept of ignored files comes first, and with its content: a file that was made of one
    # is taken away by a rewind only because that content is there.
    for step in sorted(steps, key=lambda step: step.path not in removals.kept):
        if len(reported) >= MOST_REPORTED:
            break
        if (fact := _beyond_history(step, shown, removals)) is not None:
            reported[identified(step)] = fact
        elif _is_reported(step, removals) and is_text(step.path):
            with_data = room > 0 or step.path in removals.kept
            fact = touched(step, shown(step.path), with_data=with_data, unkept=unkept)
            if step.path in removals.only_copies or (gone and _came_from_elsewhere(step, gone)):
                fact = msgspec.structs.replace(fact, is_certain=False)
            room -= len(fact.data_before or b"") + len(fact.data_after or b"")
            reported[identified(step)] = fact
    return reported


def _beyond_history(
    step: ApplyStep, shown: Callable[[str], str], removals: RemovalPlan
) -> ChangedFile | None:
    """A removed file that a rewind has to name, for it cannot bring it back."""
    if not removals.loses(step) or step.before is None:
        return None
    path = step.path
    why = removals.aside.get(path) or removals.gone.get(path) or removals.rewritten.get(path)
    if not why:
        return None
    where = f"{why}; it is kept in {as_text(step.aside)}" if step.aside else why
    return ChangedFile(
        path=as_text(shown(step.path)),
        action="deleted" if step.after is None else "modified",
        before=step.before.hash,
        after=None if step.after is None else step.after.hash,
        mode_before=step.before.mode,
        mode_after=0 if step.after is None else step.after.mode,
        missing=where,
    )


def _is_reported(step: ApplyStep, removals: RemovalPlan) -> bool:
    return _is_worth_reporting(step) or (removals.loses(step) and step.path in removals.kept)


def _came_from_elsewhere(step: ApplyStep, taken: Container[int]) -> bool:
    """True for a file that may be made of one that nothing brings back: removing it would remove
    the only copy.

    `taken` are the sizes of such files that the command took away.
    """
    if step.do != "put" or step.after is None or step.after.kind != "file":
        return False
    return step.is_copy or size_of(step.after) in taken


def _is_worth_reporting(step: ApplyStep) -> bool:
    return step.do != "touch" and not step.is_ignored


def _report(
    done: Sequence[ApplyStep], reported: Mapping[StepId, ChangedFile], committed: CommittedChanges
) -> None:
    """Report the steps that were carried out to the history, and count those that are not
    reported.
    """
    unnamed = untold = 0
    for step in done:
        if (fact := reported.get(identified(step))) is not None:
            committed.changes.append(fact)
        elif _is_worth_reporting(step):
            unnamed += not is_text(step.path)
            untold += is_text(step.path)
    for count, what in (
        (unnamed, "whose names are no text"),
        (untold, "more than the history takes of one command"),
    ):
        if count:
            committed.left_out.append(f"{count:,} files {what} changed")


def _content(path: str, found: FoundEntry | None) -> bytes | None:
    """What a file holds, also where the history does not keep it.

    None for what is no file, or too large to be bounded.
    """
    if found is None or found.kind != "file":
        return None
    if found.data is not None:
        return found.data
    if size_of(found) > MAX_BYTES:
        return None
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def _listed(title: str, lines: Sequence[str]) -> str:
    # A name need not be text, and what the model reads must be.
    named = [f"- {os.fsencode(line).decode(errors='replace')}" for line in lines[:MOST_NAMED]]
    if len(lines) > MOST_NAMED:
        named.append(f"- … and {len(lines) - MOST_NAMED} more")
    return "\n".join([f"{title}:", *named])
