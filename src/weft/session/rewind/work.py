"""A rewind, carried out: what changed is read, the disk looked at, the intent recorded, the files
put back, and the intent settled.

The intent is durable before the first file is touched, and everything that is about to be replaced
is kept with it, so that a rewind can be taken back.  After a crash each file is one or the other,
as its content shows: what was not put back yet is; what is neither was changed by someone else, and
is named.  A second fact settles the intent, and says which files are not what it promised.
"""

from __future__ import annotations

import stat
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from weft import faults
from weft.errors import ToolError, UsageError
from weft.events import AnyFact, CommandCause, Fact, FileChange, FileTouched, Rewound, SystemNote
from weft.faults import FailPointPair
from weft.ids import BlobId, NodeId
from weft.loop import Commit
from weft.session.answers import RewindItem, RewindPlan
from weft.session.commands import RewindTo, UndoRewind
from weft.session.decide.branches import keep_line, left_line, spare_lines
from weft.session.environment import FileNow, FileRestorer
from weft.session.log.session_log import SessionLog
from weft.session.log.stored_line import read_places
from weft.session.rewind.plan import (
    FileSide,
    PathSpan,
    RewindStep,
    action_for,
    after_of,
    before_of,
    closes_itself,
    in_order,
    note_to_model,
    plan,
    side_of,
    spans,
)
from weft.state import SessionState
from weft.store import Store
from weft.tree import LogPosition

MOST_BYTES: Final = 256 * 1024 * 1024
"""Content that one rewind takes off the disk at most, for it must be kept to be undone."""
_REWIND = FailPointPair("session.rewind")
_BETWEEN = faults.point("session.rewind.between_files")
_REWOUND = FailPointPair("session.rewound")


class RewindDraft(msgspec.Struct, frozen=True, kw_only=True):
    """A rewind that has been thought through."""

    plan: RewindPlan
    steps: tuple[RewindStep, ...] = ()
    undoes: int = 0

    def done(self, failed: Mapping[str, RewindItem] | None = None) -> RewindPlan:
        """The plan as it was carried out."""
        items = tuple((failed or {}).get(item.path, item) for item in self.plan.files)
        return msgspec.structs.replace(self.plan, files=items, is_done=True)


class FileRewinder:
    """Puts files back for one session."""

    def __init__(self, store: Store, files: FileRestorer) -> None:
        self._store = store
        self._files = files

    # -- thinking it through

    async def draft(self, command: RewindTo | UndoRewind, state: SessionState) -> RewindDraft:
        """What a command does to a session in this state, and to its files as they are.

        Raises:
            UsageError: it asks for nothing, for what is not there, or for too much.
        """
        if isinstance(command, UndoRewind):
            return await self._draft_of_undoing(command, state)
        if not (command.files or command.conversation):
            raise UsageError("a rewind takes files, the conversation or both")
        if command.to is not None:
            state.tree.require(command.to)
        steps: list[RewindStep] = []
        if command.files:
            steps = await self._plan(await self._changes_since(command, state), command.overwrite)
        planned = await self._plan_for(steps, command.to, conversation=command.conversation)
        if command.conversation:
            left = left_line(state, command.to)
            planned = msgspec.structs.replace(planned, left=left)
        return RewindDraft(plan=planned, steps=tuple(steps))

    async def _draft_of_undoing(self, command: UndoRewind, state: SessionState) -> RewindDraft:
        # A fork inherits the facts of its ancestor's rewinds; those changed files for the other
        # session, which may have gone on since.
        own = [place for place in state.files.rewinds if place.log == state.session_id]
        if not own:
            raise UsageError("there is no rewind to undo")
        rewound, changed = await self._changes_of(state, own[-1])
        steps = await self._plan(changed, command.overwrite)
        return RewindDraft(
            plan=await self._plan_for(steps, rewound.left, conversation=rewound.conversation),
            steps=tuple(steps),
            undoes=rewound.seq,
        )

    async def _plan_for(
        self, steps: Sequence[RewindStep], to: NodeId | None, *, conversation: bool
    ) -> RewindPlan:
        left_out = await self._files.left_out() if steps else {}
        planned = {step.item.path for step in steps}
        return RewindPlan(
            to=to,
            conversation=conversation,
            files=tuple(step.item for step in steps),
            left_out=tuple(
                f"{path}: {why}" for path, why in sorted(left_out.items()) if path not in planned
            ),
        )

    async def _changes_since(self, command: RewindTo, state: SessionState) -> dict[str, PathSpan]:
        """What was changed after a message was done, or a checkpoint set."""
        files = state.files
        if command.checkpoint:
            start = files.checkpoints.get(command.checkpoint, 0)
            return spans(await self._read(files.places[start:]))
        if command.to is None:
            return spans(await self._read(files.places))
        return await changes_since(state, command.to, self._store)

    async def _changes_of(
        self, state: SessionState, place: LogPosition
    ) -> tuple[Rewound, dict[str, PathSpan]]:
        """A rewind, and what it changed in fact."""
        later = await self._read([place, *state.files.places_after(place)])
        rewound = later[0]
        assert isinstance(rewound, Rewound)
        failed = {
            change.path
            for fact in later
            if isinstance(fact, Rewound) and fact.settles == rewound.seq
            for change in fact.files
        }
        changed = spans([rewound])
        return rewound, {path: span for path, span in changed.items() if path not in failed}

    async def _read(self, places: Sequence[LogPosition]) -> list[AnyFact]:
        found = await read_places(places, self._store)
        return [found[place] for place in places]

    async def _plan(
        self, changed: Mapping[str, PathSpan], overwrite: Collection[str]
    ) -> list[RewindStep]:
        if unknown := sorted(set(overwrite) - set(changed)):
            raise UsageError(
                f"{unknown[0]!r} would not be touched by this rewind; overwrite takes "
                "paths of its list"
            )
        now = {path: await self._glance(path) for path in changed}
        wanted = {span.target.content for span in changed.values() if span.target.content}
        kept = {content for content in wanted if await self._store.blob(content) is not None}
        return plan(changed, now, kept, overwrite)

    async def _glance(self, path: str) -> FileNow | None:
        """What is there, without holding its content."""
        try:
            found = await self._files.look(path)
        except ToolError:
            return FileNow(
                mode=stat.S_IFREG
            )  # unknown: it agrees with nothing that the session left
        return None if found is None else msgspec.structs.replace(found, data=None)

    # -- doing it

    async def intent(self, draft: RewindDraft, state: SessionState) -> Commit:
        """The facts that must be durable before the first file is touched, with everything that is
        about to be replaced.

        Raises:
            UsageError: it is too much for one rewind.
        """
        plan, acting = draft.plan, in_order(draft.steps)
        rewound = Rewound(
            to=plan.to,
            conversation=plan.conversation,
            files=tuple(step.change for step in acting),
            undoes=draft.undoes,
            left=state.tree.head,
        )
        facts: list[Fact] = [rewound]
        if plan.conversation:
            kept = keep_line(state, plan.to)
            spare = spare_lines(state, plan.to) if draft.undoes else []
            facts = [*kept, *spare, rewound]
        # The conversation stays, so that the model would go on believing in files that are gone.
        elif any(not step.target.is_folder for step in acting):
            note = note_to_model(acting)
            facts.append(SystemNote(text=note, to_model=True, node=state.tree.head))
        return Commit(facts=tuple(facts), blobs=await self._about_to_go(acting))

    async def _about_to_go(self, acting: Iterable[RewindStep]) -> dict[BlobId, bytes]:
        blobs: dict[BlobId, bytes] = {}
        total = 0
        for step in acting:
            if step.now is None or step.now.content is None:
                continue
            found = await self._files.look(step.path)
            # Looked at again, with content this time. One that has changed since is not kept, and
            # `put_back` will refuse to touch it.
            if found is not None and found.content == step.now.content and found.data is not None:
                blobs[step.now.content] = found.data
                total += len(found.data)
            if total > MOST_BYTES:
                raise UsageError(
                    f"this rewind would replace more than {MOST_BYTES >> 20} MiB of "
                    "files; go back in smaller steps"
                )
        return blobs

    async def carry_out(self, steps: Sequence[RewindStep]) -> dict[str, RewindItem]:
        """Put everything back, one path at a time; returns what could not be."""
        failed: dict[str, RewindItem] = {}
        closing: list[RewindStep] = []
        for step in in_order(steps):
            _BETWEEN.hit()
            target = step.target
            if closes_itself(target):
                closing.append(step)
                # Files go into it first; without write permission for us that would fail.
                target = FileSide(True, None, target.mode | 0o700)
            await self._put(step.path, target, step.now, failed)
        # The deepest first: a closed folder cannot be searched for those below it.
        for step in reversed(closing):
            await self._close(step, failed)
        return failed

    async def _close(self, step: RewindStep, failed: dict[str, RewindItem]) -> None:
        try:
            found = await self._files.look(step.path)
        # Raised from here it would leave the rewind unsettled, and every later command, which has
        # to finish it first, would fail in the same way.
        except ToolError as error:
            failed[step.path] = RewindItem(path=step.path, action="conflict", reason=str(error))
            return
        await self._put(step.path, step.target, found, failed)

    async def _put(
        self, path: str, target: FileSide, expected: FileNow | None, failed: dict[str, RewindItem]
    ) -> None:
        try:
            wanted = await self._content(target)
            await self._files.put_back(path, wanted, expected=expected)
        except ToolError as error:
            failed[path] = RewindItem(path=path, action="conflict", reason=str(error))

    async def _content(self, side: FileSide) -> FileNow | None:
        if not side.exists:
            return None
        if side.is_folder or side.content is None:
            return FileNow(mode=side.mode)
        data = await self._store.blob(side.content)
        if data is None:
            raise ToolError("what it was is gone: it was dropped to stay within the quota")
        return FileNow(mode=side.mode, content=side.content, data=data)

    async def settled(
        self,
        intent: Rewound,
        failed: Mapping[str, RewindItem],
        steps: Iterable[RewindStep],
        head: NodeId | None,
    ) -> Commit:
        """The facts that close an intent, and name what is not as it promised."""
        # The intent is already in the log and said what each file would be; later rewinds compute
        # from these facts, so that what did not come true must be taken back.
        corrections = [
            await self._correction(step.path, step.target) for step in steps if step.path in failed
        ]
        facts: list[Fact] = [
            Rewound(to=intent.to, conversation=False, files=tuple(corrections), settles=intent.seq)
        ]
        if failed:
            reasons = "; ".join(f"{path}: {item.reason}" for path, item in sorted(failed.items()))
            text = f"Not everything could be put back. {reasons}"
            facts.append(SystemNote(text=text, level="warning", node=head))
        return Commit(facts=tuple(facts))

    async def _correction(self, path: str, promised: FileSide) -> FileChange:
        found = await self._glance(path)
        now = side_of(found)
        return FileChange(
            path=path,
            before=promised.content,
            after=now.content,
            mode_before=promised.mode,
            mode_after=now.mode,
        )

    # -- after a crash

    async def finish(self, place: LogPosition, head: NodeId | None) -> Commit:
        """Do what is left of a rewind that was interrupted; returns the facts that settle it."""
        (intent,) = await self._read([place])
        assert isinstance(intent, Rewound)
        steps = [_step(change, await self._glance(change.path)) for change in intent.files]
        strange = {step.path: step.item for step in steps if step.item.action == "conflict"}
        failed = strange | await self.carry_out(steps)
        return await self.settled(intent, failed, steps, head)


class RewindWork:
    """Carries rewinds out, in the mailbox's order: nothing else is carried out meanwhile."""

    def __init__(self, log: SessionLog, store: Store, files: FileRestorer | None) -> None:
        self._log = log
        self._store = store
        self._files = files

    async def preview(self, command: RewindTo | UndoRewind) -> RewindPlan:
        """What it would do."""
        return (await self._rewinder().draft(command, self._log.state)).plan

    async def carry_out(self, command: RewindTo | UndoRewind, asked: str) -> RewindPlan:
        """Do it; `asked` is the digest of the command, by which it is known when it comes again."""
        rewinder = self._rewinder()
        draft = await rewinder.draft(command, self._log.state)
        cause = None
        if command.input_id:
            # With the intent, and with the answer of full success: after a crash the rewind is
            # finished, and a repeat must not begin a second one.
            cause = CommandCause(input_id=command.input_id, digest=asked, answer=draft.done())
        commit = await rewinder.intent(draft, self._log.state)
        _REWIND.before.hit()
        stored = await self._log.commit(commit, cause)
        _REWIND.after.hit()
        intent = next(fact for fact in stored if isinstance(fact, Rewound))
        if not intent.files:
            return draft.done()
        failed = await rewinder.carry_out(draft.steps)
        head = self._log.state.tree.head
        settled = await rewinder.settled(intent, failed, draft.steps, head)
        _REWOUND.before.hit()
        await self._log.commit(settled)
        _REWOUND.after.hit()
        return draft.done(failed)

    async def finish(self) -> None:
        """Do what is left of a rewind that was interrupted after its intent was durable."""
        state = self._log.state
        place = state.files.unsettled
        # An intent in the log of an ancestor is that session's to finish.
        if place is None or place.log != state.session_id or self._files is None:
            return
        settled = await self._rewinder().finish(place, state.tree.head)
        _REWOUND.before.hit()
        await self._log.commit(settled)
        _REWOUND.after.hit()

    def _rewinder(self) -> FileRewinder:
        if self._files is None:
            raise UsageError("this session has no files that could be put back")
        return FileRewinder(self._store, self._files)


async def changes_since(state: SessionState, node_id: NodeId, store: Store) -> dict[str, PathSpan]:
    """What was changed after a message was done.

    Raises:
        UsageError: there is no such message.
    """
    node = state.tree.require(node_id)
    # By the first revision: an edit of the message moves its words in the log, not the moment at
    # which its turn began.
    first = node.earlier[0] if node.earlier else node.at
    places = state.files.places_after(first)
    found = await read_places(places, store)
    # The calls of the answer itself stay done: one goes back to the moment after it.
    return spans(found[place] for place in places if not _is_of(found[place], node.calls))


def _step(change: FileChange, now: FileNow | None) -> RewindStep:
    """What is left to do for one file of an interrupted rewind."""
    target, before = after_of(change), before_of(change)
    present = side_of(now)
    return RewindStep(
        span=PathSpan(path=change.path, target=target, left=before),
        now=now,
        item=_left_to_do(change.path, present, before, target),
    )


def _left_to_do(path: str, present: FileSide, before: FileSide, target: FileSide) -> RewindItem:
    if present.agrees(target):
        return RewindItem(path=path, action="unchanged")
    # A folder is made before it gets its mode; and what becomes another kind of thing is away for a
    # moment.
    is_halfway = (present.is_folder and target.is_folder) or (
        not present.exists and before.is_folder != target.is_folder
    )
    if present.agrees(before) or is_halfway:
        return RewindItem(path=path, action=action_for(present, target))
    reason = "it was changed while the rewind was interrupted"
    return RewindItem(path=path, action="conflict", reason=reason)


def _is_of(fact: AnyFact, calls: Collection[str]) -> bool:
    return isinstance(fact, FileTouched) and fact.call_uid in calls
