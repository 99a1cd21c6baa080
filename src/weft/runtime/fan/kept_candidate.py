"""A candidate on its way into the project: planned, verified, put there, and on record.

The facts that tell of it are one append: the message that names the candidate, each file with what
it was before, and `FanKept`; a rewind to before that message takes all of it back.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread
import msgspec

from weft.errors import UsageError
from weft.events import Fact, FanKept, FanVerified, NewMessage
from weft.ids import BlobId, CallUid, NodeId, SessionId, new_node_id
from weft.loop import Commit, touched_facts
from weft.messages import Node, Text
from weft.runtime.fan.base_files import BaseFile
from weft.runtime.fan.candidate_changes import is_same
from weft.runtime.fan.fan_keep import (
    KeepJudge,
    KeepPlan,
    KeptFile,
    file_now,
    plan_keep,
    put_aside,
    put_plan,
)
from weft.state import SessionState
from weft.workspace import ChangedFile
from weft.workspace.sandbox.overlay_plan import started_now
from weft.workspace.sandbox.overlay_recovery import RecoveredCommand, is_left, settle
from weft.workspace.sandbox.removals import as_text
from weft.workspace.sandbox.scratch import ScratchJob, ScratchPlace, remove

if TYPE_CHECKING:
    from weft.runtime.fan.fan_host import FanHost
    from weft.runtime.fan.fan_record import FanRecord
    from weft.runtime.fan.fan_run import FanRun
    from weft.runtime.workspaces.sandbox import SandboxFactory
    from weft.runtime.workspaces.session_workspace import SessionWorkspace


_NOTHING: Final = "changed nothing that the project lacks"


class KeepOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What keeping a candidate did, or would do."""

    plan: KeepPlan
    is_kept: bool = False
    verified: FanVerified | None = None
    """The check on the project with the candidate's changes, before they were put there."""
    output: str = ""
    """What that printed."""
    aside: str = ""
    remarks: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    """Paths that were to be changed and are as the user has them; empty where it was not tried."""
    node: NodeId | None = None


class CandidateKeeper:
    """Keeps one candidate of a fan-out."""

    def __init__(
        self,
        fan: FanRun,
        index: int,
        *,
        has_markers: bool = False,
        call: tuple[CallUid, NodeId | None] | None = None,
    ) -> None:
        """`has_markers`: conflicts are put into the project between markers.  `call`: the call of
        the session's turn that keeps it, and its message.
        """
        self.fan = fan
        self._has_markers = has_markers
        self.index = index
        self._call = call

    @cached_property
    def _sandbox(self) -> SandboxFactory:
        return _sandbox_of(self.fan)

    @property
    def label(self) -> str:
        """What a crash leaves of this keep is found by it."""
        return keep_labels(self.fan.record, self.index)[-1]

    async def plan(self) -> KeepPlan:
        """What keeping it would do.

        Raises:
            UsageError: there is nothing of it to be kept.
        """
        diff, rules = await self.fan.diff_of(self.index), await self._workspace()
        name = f"candidate {self.index}" if self._has_markers else ""
        return await plan_keep(diff, self.fan.root, rules, marks_as=name)

    async def _workspace(self) -> SessionWorkspace:
        """What the user's rules and boundaries allow the session."""
        host = self.fan.host
        factory, actor = self.fan.sessions.registry.factories[host.session_id], host.actor
        assert actor is not None
        if factory.reach_rules is not None:
            await factory.reach_rules()
        return factory.followed(lambda: actor.state, actor.gate)

    async def run(self, *, preview: bool, is_forced: bool) -> KeepOutcome:
        """Keep it.  With `preview` only say what would happen; `is_forced`: also when the check
        fails on the result.

        Raises:
            UsageError: there is nothing to be kept, or the session is at work.
        """
        if not preview and self.fan.host.state.turn.open is not None:
            raise UsageError(
                "the session of the fan-out is at work, or was interrupted; let its turn end, or "
                "stop it, before a candidate is kept"
            )
        started = started_now()
        plan = await self.plan()
        if preview:
            return KeepOutcome(plan=plan)
        if not plan.changes and not plan.paths("conflict"):
            is_kept = self.fan.record.candidates[self.index].kept
            why = "was kept already; a rewind takes it back" if is_kept else _NOTHING
            raise UsageError(f"candidate {self.index} {why}")
        return await self.keep_plan(plan, started, is_forced=is_forced)

    async def keep_plan(
        self, plan: KeepPlan, started: int, *, is_forced: bool = False
    ) -> KeepOutcome:
        """Do what was planned at this time."""
        if not plan.changes:
            aside = await anyio.to_thread.run_sync(self._aside, plan.files)
            return KeepOutcome(
                plan=plan, aside=aside, left=tuple(map(as_text, plan.paths("conflict")))
            )
        async with self.fan.mark.held(stays=True):
            outcome = await self._run(plan, started, is_forced=is_forced)
        if self.fan.sessions.services.workspaces.sandbox() is not self._sandbox:
            await anyio.to_thread.run_sync(self._sandbox.machine.scratch.close)
        return outcome

    async def _run(self, plan: KeepPlan, started: int, *, is_forced: bool) -> KeepOutcome:
        scratch = self._sandbox.machine.scratch
        roots = (self.fan.root,)
        place = await anyio.to_thread.run_sync(scratch.place, roots)
        try:
            job = ScratchJob(label=self.label, roots=roots, started_ns=started)
            await anyio.to_thread.run_sync(scratch.assign, place, job)
            await anyio.to_thread.run_sync(put_plan, plan, place)
            # Markers are no code: the check would judge them, and not the work.
            is_checked = not plan.paths("marked")
            verified, blobs, said = await self._verified(place) if is_checked else (None, {}, "")
        except BaseException:
            await _thrown_away(lambda: scratch.discard(place))
            raise
        if verified is not None and not verified.passed and not is_forced:
            await _thrown_away(lambda: scratch.discard(place))
            await self.fan.append(lambda state: Commit(facts=(verified,), blobs=blobs))
            return KeepOutcome(plan=plan, verified=verified, output=said)
        # From here on a cancel waits: half of it would be in the project and on no record.
        with anyio.CancelScope(shield=True):
            outcome = await self._put(plan, place, started, verified, blobs, said)
        return outcome  # noqa: RET504 - a scope may swallow, by its type, and end without one

    async def _verified(
        self, place: ScratchPlace
    ) -> tuple[FanVerified | None, dict[BlobId, bytes], str]:
        """The check, on the project as it is now with what is to be put there."""
        if not self.fan.record.started.verify:
            return None, {}, ""
        fact, blobs = await self.fan.checked("merged", self.index, 1, place.layers[0][1])
        said = next(iter(blobs.values()), b"").decode(errors="replace")
        return fact, blobs, said

    async def _put(
        self,
        plan: KeepPlan,
        place: ScratchPlace,
        started: int,
        verified: FanVerified | None,
        blobs: dict[BlobId, bytes],
        said: str,
    ) -> KeepOutcome:
        fan = self.fan
        aside = await anyio.to_thread.run_sync(self._aside, plan.files)
        now = {file.path: file.theirs for file in plan.changes}
        workspace = await self._workspace()
        commit = self._sandbox.commit_of(
            place,
            judge=KeepJudge(plan, fan.root, workspace),
            boundaries=workspace.boundaries,
            base_of=lambda path: None if (file := now.get(path)) is None else file.data,
            started_ns=started,
            label=self.label,
            inner=fan.host.runner,
        )
        done = await commit.run()
        moved = workspace.beside()
        facts = (*(() if verified is None else (verified,)), *moved.facts)
        blobs = {**blobs, **moved.blobs}
        put = {change.path for change in done.changes}
        missing = await anyio.to_thread.run_sync(_missing, plan, put, fan.root)
        outcome = KeepOutcome(
            plan=plan,
            is_kept=len(missing) < len(plan.changes),
            verified=verified,
            output=said,
            aside=aside,
            remarks=tuple(done.remarks),
            left=tuple(map(as_text, (*plan.paths("conflict"), *missing))),
        )
        if not outcome.is_kept and not done.changes:
            await fan.append(lambda state: Commit(facts=facts, blobs=blobs))
            return outcome
        node = await self.record(done.changes, outcome, before=facts, blobs=blobs)
        return msgspec.structs.replace(outcome, is_kept=True, node=node)

    def _aside(self, files: Sequence[KeptFile]) -> str:
        lost = [file for file in files if file.action == "conflict"]
        return put_aside(lost, self._sandbox.machine.scratch.aside()) if lost else ""

    async def record(
        self,
        changes: Sequence[ChangedFile],
        outcome: KeepOutcome,
        *,
        before: Sequence[Fact] = (),
        blobs: dict[BlobId, bytes],
    ) -> NodeId:
        """Put on the session's record what was changed, and let its head stand on a message that
        names the candidate.
        """
        kept = dict(blobs)
        call_uid, node = self._call or (None, None)
        touched = touched_facts(changes, call_uid, kept)
        now = self.fan.host.now()
        asked, answered = new_node_id(now), new_node_id(now)
        merged = map(as_text, outcome.plan.paths("merge"))
        fact = FanKept(
            fan_id=self.fan.record.fan_id,
            index=self.index,
            node=answered,
            merged=tuple(each for each in merged if each not in outcome.left),
            conflicts=outcome.left,
            aside=outcome.aside,
            files=tuple(each.path for each in changes),
            marked=tuple(map(as_text, outcome.plan.paths("marked"))),
        )

        def build(state: SessionState) -> Commit:
            if state.turn.open is not None:
                # By a call of it, or one that a crash had cut off: a message would stand amid a
                # turn.
                alone = msgspec.structs.replace(fact, node=node)
                return Commit(facts=(*before, *touched, alone), blobs=kept)
            messages = self._messages(state, asked, answered, outcome)
            return Commit(facts=(*before, *messages, *touched, fact), blobs=kept)

        await self.fan.append(build)
        return answered

    def _messages(
        self,
        state: SessionState,
        asked: NodeId,
        answered: NodeId,
        outcome: KeepOutcome,
    ) -> list[Fact]:
        record = self.fan.record
        candidate = record.candidates[self.index]
        words = candidate.ended.text if candidate.ended is not None else ""
        named = f"Candidate {self.index} of {record.fan_id}"
        said = f"[{named} was kept: its changes are in the project.]"
        if outcome.left:
            left = ", ".join(outcome.left)
            said = (
                f"[{named} was kept in part. Not taken over, they are as the user has them: {left}]"
            )
        if marked := ", ".join(map(as_text, outcome.plan.paths("marked"))):
            said += f"\n[Conflict markers were put where both had changed the same lines: {marked}]"
        said += "".join(f"\n[{remark}]" for remark in outcome.remarks)
        meta = {"fan": record.fan_id, "candidate": self.index, "child": candidate.child}
        user = Node(
            id=asked, role="user", parts=(Text(text=record.started.prompt),), parent=state.tree.head
        )
        answer = Node(
            id=answered,
            role="assistant",
            parts=(Text(text=f"{words}\n\n{said}".strip()),),
            parent=asked,
            model=candidate.model,
            metadata=meta,
        )
        return [NewMessage(node=user), NewMessage(node=answer)]


async def recover_keeps(host: FanHost, session_id: SessionId, record: FanRecord) -> bool:
    """Finish what dead processes had begun to put into the project, and put it on record; False
    where the session is open in another process, which has to do it.
    """
    folder = str(host.services.places.sandbox)
    if not await anyio.to_thread.run_sync(has_leftover, folder, record):
        return True
    from weft.runtime.fan.fan_lessons import note_choice
    from weft.runtime.fan.fan_run import new_run

    if not (await host.port(session_id)).lives_here:
        return False
    run = await new_run(host, session_id)
    run.know(record)
    for index in list(record.candidates):
        if await _recovered(CandidateKeeper(run, index), folder):
            await note_choice(host, session_id, record, index)
    return True


def has_leftover(folder: str, record: FanRecord) -> bool:
    """Whether a dead process left anything of a keep of these candidates.  Blocks."""
    labels = {label for index in record.candidates for label in keep_labels(record, index)}
    return is_left(os.path.realpath(folder), labels)


def _settled(folder: str, label: str) -> RecoveredCommand | None:
    return settle(os.path.realpath(folder), label)


def keep_labels(record: FanRecord, index: int) -> list[str]:
    """What a crash leaves of a keep is found by these, the last one of the keep that is to come:
    one that was kept in part, or taken back by a rewind, can be kept again.
    """
    first = f"{record.fan_id}/{index}/keep"
    before = sum(each.index == index for each in record.kept)
    return [first, *(f"{first}/{number}" for number in range(1, before + 1))]


async def _recovered(keeper: CandidateKeeper, folder: str) -> bool:
    """Finish one; False where it had not begun."""
    *before, label = keep_labels(keeper.fan.record, keeper.index)
    for each in before:
        # On record already: what is left is the note that it was done.
        await anyio.to_thread.run_sync(_settled, folder, each)
    left = await anyio.to_thread.run_sync(_settled, folder, label)
    if left is None:
        return False
    if not left.changes and not left.finished:
        # It had not begun to be put there, and the candidate's overlay still has all of it.
        await anyio.to_thread.run_sync(remove, left.folder)
        return False
    outcome = KeepOutcome(
        plan=KeepPlan(), remarks=(str(left),), left=tuple(map(as_text, left.left))
    )
    await keeper.record(left.changes, outcome, blobs={})
    return True


def _missing(plan: KeepPlan, put: Container[str], root: str) -> list[str]:
    """What was to be put and is not there.  Blocks."""
    return [
        file.path
        for file in plan.changes
        if file.path not in put and not _is_there(root, file.path, file.result)
    ]


def _is_there(root: str, path: str, file: BaseFile | None) -> bool:
    try:
        return is_same(file_now(root, path), file)
    except IsADirectoryError:
        return file is None  # it took the place of a file that was to go
    except OSError:
        return False


async def _thrown_away(discard: Callable[[], None]) -> None:
    with anyio.CancelScope(shield=True):
        await anyio.to_thread.run_sync(discard)


def _sandbox_of(fan: FanRun) -> SandboxFactory:
    """What puts changes into the project; that works without a sandbox for commands, too."""
    from weft.runtime.workspaces.sandbox import SandboxFactory

    services = fan.sessions.services
    sandbox = services.workspaces.sandbox() or SandboxFactory(
        services.config, environ={}, places=services.places
    )
    if not sandbox.machine.scratch.folder:
        sandbox.machine.scratch.open()
    return sandbox
