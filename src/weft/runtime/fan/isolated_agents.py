"""Isolated sub-agents: each works as the one candidate of a fan-out of its own.

Its overlay, its base that does not move, its git directory and its network are a candidate's, and
so is the way back: what it changed is offered to the session that it works for, which can put it
into the project by another call of the tool, merged with what is there by then, and under the same
approval as an edit.  The fan-out's id follows from the child's, so that a call that goes on after a
crash finds the overlay of its child again.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Final

import anyio
import anyio.to_thread
import msgspec

from weft.agents.host import ChildEnd, ChildRequest
from weft.errors import FinalToolError, UsageError, WeftError
from weft.events import FanCandidateStarted, FanSlot
from weft.ids import CallUid, NodeId, SessionId, derived_id
from weft.loop import Commit
from weft.permissions import MODES, ToolAction
from weft.runtime.fan.candidate_changes import CandidateChange, CandidateDiff
from weft.runtime.fan.fan_host import FanHost
from weft.runtime.fan.fan_index import FanEntry, FanIndex
from weft.runtime.fan.fan_keep import KeepPlan, KeptFile
from weft.runtime.fan.fan_run import (
    NOT_ISOLATED,
    CandidateView,
    FanOptions,
    FanRun,
    candidate_end,
    new_run,
)
from weft.runtime.fan.kept_candidate import CandidateKeeper, KeepOutcome
from weft.runtime.fan.opened_runs import open_run
from weft.tools import PreparedCall, ToolContext, ToolOutcome
from weft.tools.diff import bounded
from weft.workspace.sandbox.overlay_plan import started_now
from weft.workspace.sandbox.removals import as_text
from weft.workspace.views.copy_view import CopyView

ONLY: Final = 1
"""The number of the one candidate."""
STOP_SECONDS: Final = 5.0
"""How long it may take to put on record what an agent that was stopped had changed."""
SHOWN_CHARACTERS: Final = 12_000
"""How much of a diff the model reads with the agent's end."""
SHOWN_NAMES: Final = 30


class IsolatedAgent:
    """One isolated agent at work."""

    def __init__(self, run: FanRun, wanted: ChildRequest) -> None:
        self._fan = run
        self._child = wanted.child
        self._place = f"{run.record.fan_id}/{ONLY}"
        self._view: CandidateView | None = None
        self._held = AsyncExitStack()
        self._begun = time.monotonic()
        self._asked = wanted

    @property
    def wanted(self) -> ChildRequest:
        """The child as it is to be in its overlay."""
        host, wanted, view = self._fan.host, self._asked, self._view
        mode = wanted.permission_mode
        if view is None or not view.has_own_network:
            # What it does is seen outside: it has no more than the session.
            mode = min(mode, host.mode, key=MODES.index)
        return msgspec.structs.replace(
            wanted,
            place=self._place,
            permission_mode=mode,
            tools=tuple(name for name in wanted.tools if name not in NOT_ISOLATED),
            project_path=view.root if isinstance(view, CopyView) else None,
        )

    async def open(self) -> None:
        """Open its overlay, and put that on record.

        Raises:
            WeftError: it cannot be opened.
        """
        fan = self._fan
        fan.busy, fan.settled = {ONLY}, anyio.Event()
        try:
            await self._held.enter_async_context(fan.mark.held())
            assert fan.base is not None
            self._watch = await fan.begin_watch(fan.base)
            self._view = await fan.open_view(str(ONLY))
            fan.sessions.services.workspaces.views[self._place] = self._view
            await self._note_start(self._view)
        except BaseException:
            await self.leave()
            raise

    async def _note_start(self, view: CandidateView) -> None:
        fan = self._fan
        known = fan.record.candidates.get(ONLY)
        if known is not None and known.child:
            return  # it goes on
        assert fan.base is not None
        started = FanCandidateStarted(
            fan_id=fan.record.fan_id,
            index=ONLY,
            child=self._child,
            model=fan.record.started.plan[0].model,
            isolation=fan.base.record.isolation,
            place=self._place,
            network=not view.has_own_network,
        )
        await fan.append(lambda state: Commit(facts=(started,)))

    async def follow(self, run: Callable[[], Awaitable[ChildEnd]]) -> tuple[ChildEnd, str]:
        """See it to its end, and put on record what it changed."""
        ends: list[ChildEnd] = []
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._watch.run)
                ends.append(await run())
                group.cancel_scope.cancel()
            said = "" if self._is_suspended else await self._settled(ends[0])
        except anyio.get_cancelled_exc_class():
            if self._fan.host.is_aborting and not self._is_suspended:
                with anyio.CancelScope(shield=True), anyio.move_on_after(STOP_SECONDS):
                    await self._settled(ChildEnd(reason="aborted"))
            raise
        finally:
            await self.leave()
        return ends[0], said

    @property
    def _is_suspended(self) -> bool:
        """True once the program closes: the next process goes on with it."""
        return self._fan.sessions.registry.is_closing

    async def leave(self) -> None:
        """Close the overlay; what was changed in it stays."""
        fan, registry = self._fan, self._fan.sessions.registry
        fan.sessions.services.workspaces.views.pop(self._place, None)
        with anyio.CancelScope(shield=True):
            # Its tools lead into the view; a later call opens it anew, without.
            if self._child in registry.ports and self._is_suspended:
                await fan.sessions.stop(self._child, suspends=True)
            elif self._child in registry.ports:
                await registry.unload(self._child)
            if self._view is not None:
                await fan.close_view(self._view)
                self._view = None
            fan.end_watch()
            await self._held.aclose()

    async def _settled(self, end: ChildEnd) -> str:
        """Put its end on record; returns what the model is told of its changes."""
        fan = self._fan
        try:
            diff = await fan.diff_of(ONLY)
        except (WeftError, OSError) as error:
            await fan.dropped(ONLY, "failed", str(error))
            return f"What it changed could not be compared with the project: {error}"
        seconds = time.monotonic() - self._begun
        ended, blobs = candidate_end(fan.record, ONLY, end, diff, seconds)
        await fan.append(lambda state: Commit(facts=(ended,), blobs=blobs))
        if diff.changes or diff.too_large:
            return self._offer(diff)
        await self.leave()
        # Most agents change nothing, and there is nothing to be found again of such a one.
        await close_run(fan, forgets=True)
        return ""

    def _offer(self, diff: CandidateDiff) -> str:
        """What the model reads of changes that are not in the project."""
        fan_id, base = self._fan.record.fan_id, self._fan.base
        where = "an overlay of its own"
        if base is not None and base.record.isolation != "overlay":
            where = f"a copy of the project (there is no overlay here: {base.record.why})"
        names = [as_text(change.path) for change in diff.changes]
        more = f" and {len(names) - SHOWN_NAMES:,} more" if names[SHOWN_NAMES:] else ""
        count = f"{len(names):,} file{'' if len(names) == 1 else 's'}"
        said = [
            f"It worked in {where}: nothing is changed here yet. It changed {count} "
            f"(+{diff.added:,} −{diff.removed:,}): {', '.join(names[:SHOWN_NAMES])}{more}.",
            *(f"Not to be carried over: {each}." for each in diff.left_out),
            f'To put that into the project, call this tool with keep="{fan_id}"; to leave it, '
            f"do nothing. The user can look at it with `weft fan diff {fan_id} {ONLY}`.",
        ]
        text = diff.text
        if len(text) <= SHOWN_CHARACTERS:
            said.append(f"\n{text}")
        return "\n".join(said).rstrip()


async def open_isolated(
    host: FanHost, session_id: SessionId, wanted: ChildRequest, name: str, prompt: str
) -> IsolatedAgent | None:
    """The overlay of an isolated child: made, or opened as another process left it; None where it
    is over.

    Raises:
        WeftError: the child cannot be isolated here, and why.
    """
    fan_id = derived_id("fan", session_id, wanted.child)
    entries = await anyio.to_thread.run_sync(FanIndex(host.services.places.home).entries)
    entry = next((each for each in entries if each.fan_id == fan_id), None)
    run = None if entry is None else await _known_run(host, entry)
    if run is None:
        run = await new_run(host, session_id)
        # What a process left that died before it was on record.
        await anyio.to_thread.run_sync(run.places.remove, fan_id)
        slot = FanSlot(model=str(wanted.model))
        await run.begin(FanOptions(fan_id=fan_id, prompt=prompt, plan=(slot,), agent=name))
        host.fan_runs[fan_id] = run
    elif run.record.is_closed:
        return None
    elif run.base is None:
        raise UsageError(f"the overlay of the agent ({fan_id}) cannot be opened here any more")
    place = IsolatedAgent(run, wanted)
    await place.open()
    return place


async def _known_run(host: FanHost, entry: FanEntry) -> FanRun | None:
    """The fan-out of a child that was at work before; None where a crash came before its record."""
    try:
        return await open_run(host, entry)
    except UsageError:
        return None


async def close_run(run: FanRun, *, forgets: bool = False) -> None:
    """End a fan-out: nothing of it is left on disk; with `forgets` not even in the index."""
    async with run.mark.held(), run.deciding:
        await run.close()
        run.sessions.fan_runs.pop(run.record.fan_id, None)
        index = FanIndex(run.sessions.services.places.home)
        end = index.forget if forgets else index.close
        await anyio.to_thread.run_sync(end, run.record.fan_id)


# --- the way back ---------------------------------------------------------------------------------


async def prepare_keep(
    host: FanHost, session_id: SessionId, fan_id: str, context: ToolContext
) -> PreparedCall:
    """A call that puts what an isolated agent changed into the project: compared with it now,
    judged path by path as an edit of each, and put there when it is approved.

    Raises:
        FinalToolError: there is no such agent of this session, or nothing to be put.
    """
    started = started_now()
    try:
        index = FanIndex(host.services.places.home)
        entry = await anyio.to_thread.run_sync(index.find, fan_id)
        if entry.session_id != session_id:
            raise UsageError(f"no agent of this session has made {fan_id!r}")
        run = await open_run(host, entry)
        if run.busy:
            raise UsageError("the agent is still at work")
        known = run.record.candidates.get(ONLY)
        if known is not None and known.kept and run.record.is_closed:
            raise UsageError("its changes are in the project already")
        call: tuple[CallUid, NodeId | None] = (context.call_uid, context.node)
        keeper = CandidateKeeper(run, ONLY, call=call)
        plan = await keeper.plan()
    except (UsageError, OSError) as error:
        raise FinalToolError(str(error)) from error
    if not plan.changes and not plan.paths("conflict"):
        raise FinalToolError("the project has all that the agent changed")
    return _prepared(keeper, plan, started, run.root)


def _prepared(keeper: CandidateKeeper, plan: KeepPlan, started: int, root: str) -> PreparedCall:
    fan_id = keeper.fan.record.fan_id
    parts = tuple(
        ToolAction(
            tool="agent",
            kind="edit",
            target=as_text(file.path),
            place=f"{root}/{as_text(file.path)}",
            acts_as="write" if file.theirs is None else "edit",
            removes=file.result is None,
        )
        for file in plan.changes
    )

    async def run() -> ToolOutcome:
        async with keeper.fan.deciding:
            outcome = await keeper.keep_plan(plan, started)
        if not outcome.left and not plan.left_out:
            await close_run(keeper.fan)
        return _outcome(fan_id, outcome)

    return PreparedCall(
        action=ToolAction(
            tool="agent", kind="edit", target=f"keep {fan_id}", parts=parts, has_effect=bool(parts)
        ),
        run=run,
        preview=_preview(plan),
    )


def _preview(plan: KeepPlan) -> str:
    shown = [_change(file).text.rstrip() for file in plan.changes]
    shown += [f"{as_text(file.path)} stays as it is: {file.why}" for file in _conflicts(plan)]
    return "\n".join(shown)


def _change(file: KeptFile) -> CandidateChange:
    return CandidateChange(path=as_text(file.path), before=file.theirs, after=file.result)


def _conflicts(plan: KeepPlan) -> list[KeptFile]:
    return [file for file in plan.files if file.action == "conflict"]


def _outcome(fan_id: str, outcome: KeepOutcome) -> ToolOutcome:
    plan = outcome.plan
    put = [as_text(file.path) for file in plan.changes if as_text(file.path) not in outcome.left]
    merged = [as_text(path) for path in plan.paths("merge") if as_text(path) in put]
    said = [f"Put into the project: {', '.join(put)}." if put else "Nothing was put."]
    if merged:
        said.append(f"Merged with what was changed here since: {', '.join(merged)}.")
    why = {as_text(file.path): file.why for file in _conflicts(plan)}
    said += [f"Not put: {path} ({why.get(path) or 'it could not be'})." for path in outcome.left]
    if outcome.aside:
        said.append(f"The agent's versions of those are in {outcome.aside}.")
    said += outcome.remarks
    return ToolOutcome(
        text="\n".join(said),
        is_error=not put,
        data={"fan": fan_id, "files": put, "diff": bounded(_preview(plan))},
    )
