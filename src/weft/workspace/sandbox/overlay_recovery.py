"""What a crash left of sandboxed commands, and what becomes of it.

A command that had not ended never touched the project: what it wrote lies in its upper layer, and
stays there for the user to look at. One that had ended was judged, and what was allowed had begun
to be put into the project; the plan of it was written down before.  That is finished: each path
that is still as it was before gets what the command gave it, one that is already as it should be is
done, and one that is neither was changed by another program since and is left alone.  The changes
are then reported to the history.

Everything here blocks.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress

import msgspec

from weft.workspace.base import ChangedFile
from weft.workspace.sandbox.overlay_apply import OverlayApplier, finish_folders
from weft.workspace.sandbox.overlay_changes import TooMuch, changes, is_empty
from weft.workspace.sandbox.overlay_commit import (
    PlannedStep,
    identified,
    mark,
    mark_of_looks,
    mark_of_ours,
)
from weft.workspace.sandbox.overlay_plan import ApplyStep, plan
from weft.workspace.sandbox.scratch import (
    DONE,
    JOB,
    KEPT,
    KEPT_BYTES,
    LOCK,
    PLAN,
    ScratchJob,
    ScratchPlace,
    bytes_below,
    records_of,
    remove,
)

_NAMED = 10


class RecoveredCommand(msgspec.Struct, frozen=True, kw_only=True):
    """What was found of one command, and done with it."""

    label: str
    """Whose it was."""
    folder: str
    finished: tuple[str, ...] = ()
    """Paths that have what the command gave them, by now."""
    left: tuple[str, ...] = ()
    """Paths that another program changed since, and that were left alone."""
    unapplied: tuple[str, ...] = ()
    """Paths that the command wrote and that never reached the project, as it had not ended."""
    changes: tuple[ChangedFile, ...] = ()
    """Changes for the history, of those that were finished."""

    def __str__(self) -> str:
        """For the model and for the user."""
        if self.unapplied:
            return (
                "It ran in the sandbox and had not ended, so nothing that it wrote "
                f"reached the project ({_listed(self.unapplied)}); "
                f"that is kept in {self.folder}."
            )
        if not self.finished and not self.left:
            return "It ran in the sandbox and had changed nothing."
        said = "It ran in the sandbox and had ended"
        if self.finished:
            said += f"; its changes were put into the project ({_listed(self.finished)})"
        if self.left:
            said += f"; changed outside the sandbox since, and left alone: {_listed(self.left)}"
        return f"{said}."


def settle(base: str, label: str) -> RecoveredCommand | None:
    """Find what a dead process left of this command, and finish it if it can be.

    None when there is nothing of it.
    """
    for folder in _folders(base):
        with _orphaned(folder) as is_orphaned:
            if not is_orphaned:
                continue
            done = _recorded(folder, label)
            for place in _places(folder):
                job = _job(place)
                if job is not None and job.label == label:
                    return _settled(ScratchPlace(folder=place, roots=job.roots), job, done)
            if done:
                return _recovered(label, folder, done, ())
    return None


def is_left(base: str, labels: Collection[str]) -> bool:
    """Whether a dead process left something of one of these commands; nothing is changed."""
    for folder in _folders(base):
        with _orphaned(folder) as is_orphaned, suppress(OSError):
            if not is_orphaned:
                continue
            jobs = map(_job, _places(folder))
            if any(job is not None and job.label in labels for job in jobs):
                return True
            if any(records_of(folder, label) for label in labels):
                return True
    return False


def sweep(base: str, most_bytes: int = KEPT_BYTES) -> int:
    """Remove folders of dead processes in which nothing is; and of what is half done or was moved
    aside, the oldest beyond so many bytes, never by its age alone.  Returns how many were removed.
    """
    swept = 0
    kept: list[tuple[float, int, str]] = []
    for folder in _folders(base):
        with _orphaned(folder) as is_orphaned, suppress(OSError):
            if not is_orphaned:
                continue
            # Worth keeping: a session that was not opened since may still ask for the changes of
            # its command.
            if _is_worth_keeping(folder):
                kept.append((os.stat(folder).st_mtime, bytes_below(folder), folder))
            else:
                remove(folder)
                swept += 1
    with suppress(OSError):
        for entry in os.scandir(f"{base}/{KEPT}"):
            changed = entry.stat(follow_symlinks=False).st_mtime
            kept.append((changed, bytes_below(entry.path), entry.path))
    return swept + _hold_to(most_bytes, kept, f"{base}/{KEPT}/")


def _hold_to(most_bytes: int, kept: list[tuple[float, int, str]], aside: str) -> int:
    """Remove the oldest beyond so many bytes; returns how many."""
    total = removed = 0
    for _, size, path in sorted(kept, reverse=True):
        total += size
        if total <= most_bytes:
            continue
        if path.startswith(aside):
            remove(path)
            removed += 1
            continue
        with _orphaned(path) as is_orphaned:
            if is_orphaned:  # still: a session may be asking for it just now
                remove(path)
                removed += 1
    return removed


def forget_records(base: str, own: str) -> None:
    """Remove what was written down of commands whose changes no session will ask for: the records
    of this process in its folder `own`, and all that dead ones left.
    """
    for folder in _folders(base):
        if folder == own:
            _forget_own(folder)
            continue
        with _orphaned(folder) as is_orphaned:
            if is_orphaned:
                remove(folder)


def _forget_own(folder: str) -> None:
    for name in os.listdir(folder):
        if name.startswith(f"{DONE}-"):
            with suppress(FileNotFoundError):
                os.unlink(f"{folder}/{name}")


def _recorded(folder: str, label: str) -> list[PlannedStep]:
    """What a command has changed in the project, as it was written down; the record is removed."""
    records = records_of(folder, label)
    steps = [step for path in records for step in _steps(path)]
    for path in records:
        # Reported once: the session records them in its log, and a second report would be a second
        # change.
        os.unlink(path)
    return steps


def _settled(
    place: ScratchPlace, job: ScratchJob, recorded: Sequence[PlannedStep]
) -> RecoveredCommand:
    numbers = range(len(job.roots))
    done = [step for number in numbers for step in _steps(f"{place.folder}/{DONE}{number}")]
    done = [*recorded, *done]
    planned = [step for number in numbers for step in _steps(f"{place.folder}/{PLAN}{number}")]
    if not done and not planned:
        return RecoveredCommand(label=job.label, folder=place.folder, unapplied=_written(place))
    left: list[str] = []
    for number, (root, upper, _) in enumerate(place.layers):
        of_layer = [step for step in planned if step.layer == number]
        if of_layer:
            left += _finished(root, upper, of_layer, job)
    # Only now: if this process dies amid the steps, the next one finds the plan, and what is left
    # of the layer.
    remove(place.folder)
    steps = [*done, *(step for step in planned if os.fsdecode(step.path) not in left)]
    return _recovered(job.label, place.folder, steps, left)


def _recovered(
    label: str, folder: str, steps: Sequence[PlannedStep], left: Sequence[str]
) -> RecoveredCommand:
    return RecoveredCommand(
        label=label,
        folder=folder,
        finished=tuple(os.fsdecode(step.path) for step in steps if step.do != "touch"),
        left=tuple(left),
        changes=tuple(step.told for step in steps if step.told is not None),
    )


def _finished(root: str, upper: str, planned: Sequence[PlannedStep], job: ScratchJob) -> list[str]:
    """Do what is left of a plan; returns the paths that another program changed since."""
    known = {(os.fsdecode(step.path), step.do): step for step in planned}
    for step in planned:
        if step.do == "make":  # it may have been made, and not yet have its mode
            known.setdefault((os.fsdecode(step.path), "mode"), step)
    # Only what was planned: what was put into a folder already looks like something that the
    # command removed from it.
    steps = [step for step in plan(root, upper, job.started_ns) if identified(step) in known]
    fit = [step for step in steps if _is_as_before(step, known[identified(step)])]
    left = [step.path for step in steps if step not in fit and step.do != "remove_folder"]
    # The same code as in the ordinary case, with the same checks: the project may have changed
    # since.
    applier = OverlayApplier(root, upper)
    try:
        outcome = applier.run(fit)
    finally:
        applier.close()
    finish_folders(root, outcome.done)
    return left + [step.path for step, _ in outcome.failed if step.do != "remove_folder"]


def _is_as_before(step: ApplyStep, planned: PlannedStep) -> bool:
    """True when the project still has what it had when the step was judged, and the layer what it
    was judged for.
    """
    known = {mark(step.before)}
    # How many ignored files are read depends on how many are left: this one may not have been.
    if step.before is not None and step.do == "remove":
        known.add(mark_of_looks(step.before))
    return planned.before in known and mark_of_ours(step.after) == planned.after


def _written(place: ScratchPlace) -> tuple[str, ...]:
    found: list[str] = []
    with suppress(TooMuch, OSError):
        for _, upper, _ in place.layers:
            found += [each.path for each in changes(upper) if each.kind != "folder"]
    return tuple(found)


def _steps(path: str) -> list[PlannedStep]:
    """The steps that were written down."""
    try:
        with open(path, "rb") as file:
            return msgspec.msgpack.decode(file.read(), type=list[PlannedStep])
    except (OSError, msgspec.MsgspecError):
        return []


def _job(place: str) -> ScratchJob | None:
    try:
        with open(f"{place}/{JOB}", "rb") as file:
            return msgspec.json.decode(file.read(), type=ScratchJob)
    except (OSError, msgspec.MsgspecError):
        return None


def _is_worth_keeping(folder: str) -> bool:
    """True when a session may yet ask what became of a command."""
    if any(name.startswith(DONE) for name in os.listdir(folder)):
        return True  # the log may not have it
    return any(map(_holds_something, _places(folder)))


def _holds_something(place: str) -> bool:
    job = _job(place)
    if job is None or not job.label:
        return False
    if os.path.exists(f"{place}/{DONE}0"):
        return True
    layers = ScratchPlace(folder=place, roots=job.roots).layers
    return any(os.path.isdir(upper) and not is_empty(upper) for _, upper, _ in layers)


def _folders(base: str) -> list[str]:
    """The folders of all processes, dead or alive."""
    try:
        names = sorted(os.listdir(base))
    except OSError:
        return []
    return [f"{base}/{name}" for name in names if name.partition("-")[0].isdigit()]


def _places(folder: str) -> list[str]:
    return [f"{folder}/{name}" for name in sorted(os.listdir(folder)) if name.isdigit()]


@contextmanager
def _orphaned(folder: str) -> Iterator[bool]:
    """Whether the process of a folder is gone; no other process can find the same meanwhile."""
    try:
        lock = os.open(f"{folder}/{LOCK}", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        yield False
        return
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield True
    finally:
        os.close(lock)


def _listed(paths: tuple[str, ...]) -> str:
    named = ", ".join(os.fsencode(path).decode(errors="replace") for path in paths[:_NAMED])
    return named if len(paths) <= _NAMED else f"{named} and {len(paths) - _NAMED} more"
