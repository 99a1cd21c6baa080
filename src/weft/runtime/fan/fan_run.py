"""A fan-out at work: candidates side by side, each verified when it has ended.

Every candidate is a session of its own that shares the parent's line, works in a view of its own,
and is paid from the parent's budget.  What happens is on the parent's record before it is shown;
after a crash the next process finds there which candidates had ended, and their overlays on disk.

One candidate of a model begins alone: it writes the prompt cache that the others read.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final, Literal, TypeAlias

import anyio
import anyio.to_thread
import msgspec

from weft.agents import ChildRequest
from weft.agents.child_run import ChildRun, finished
from weft.agents.host import ChildEnd
from weft.errors import ToolError, UsageError, WeftError
from weft.events import (
    CallOrigin,
    ChildStarted,
    Fact,
    FanBase,
    FanCandidateDropped,
    FanCandidateEnded,
    FanCandidateRestored,
    FanCandidateStarted,
    FanClosed,
    FanSlot,
    FanStarted,
    FanVerified,
    finish_words,
)
from weft.ids import BlobId, SessionId, new_id, new_session_id
from weft.loop import Commit
from weft.messages import Text, Usage
from weft.runtime.agent_host import SessionAgentHost
from weft.runtime.fan.base_files import BaseFiles, Isolation, make_base, open_base
from weft.runtime.fan.base_watch import BaseWatch
from weft.runtime.fan.candidate_changes import (
    CandidateDiff,
    candidate_diff,
    packed,
    touches_checks,
    unpacked,
)
from weft.runtime.fan.candidate_copy import (
    apply_layer,
    can_clone,
    copy_at,
    copy_diff,
    is_whole,
    make_copy,
    note_copy,
    set_up,
)
from weft.runtime.fan.fan_host import FanHost, places_of
from weft.runtime.fan.fan_index import FanEntry, FanIndex, store_name
from weft.runtime.fan.fan_marks import FanMark
from weft.runtime.fan.fan_places import FanPlaces, move_into
from weft.runtime.fan.fan_record import CandidateRecord, FanLog, FanRecord
from weft.session import AbortTurn
from weft.sha256 import sha256
from weft.state import SessionState
from weft.workspace import ProcessCommand, RunResult
from weft.workspace.sandbox.client import SandboxUnavailable
from weft.workspace.sandbox.overlay_changes import TooMuch
from weft.workspace.sandbox.removals import as_text
from weft.workspace.sandbox.scratch import remove
from weft.workspace.views.copy_view import CopyView
from weft.workspace.views.held_view import HeldView

MOST_CANDIDATES: Final = 64
LEAD_SECONDS: Final = 30.0
"""How long the others of a model wait for its first candidate to write the cache."""
_LOOK_SECONDS: Final = 0.1
LONGEST_WORDS: Final = 4_000
OUTPUT_BYTES: Final = 64 * 1024
"""How much of a verify command's output is kept."""
NOT_ISOLATED: Final = frozenset(
    (
        *("find_symbol", "references", "outline", "map", "lsp", "rename"),
        *("agent", "wait_for", "shell_output", "shell_stop"),
        *("decision_log", "decision_update"),
    )
)
"""Tools that see the project itself (the index, language servers), outlive the turn, or write what
holds for all of the project.
"""

CandidateView: TypeAlias = HeldView | CopyView
"""What a candidate works in."""

logger = logging.getLogger(__name__)


class FanOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a fan-out is to be."""

    fan_id: str = ""
    """Empty: a new one."""
    prompt: str
    plan: tuple[FanSlot, ...]
    verify: str = ""
    verify_runs: int = 1
    verify_seconds: float = 600.0
    base: Literal["now", "head"] = "now"
    budget_usd: float | None = None
    stop: Literal["all", "verified"] = "all"
    judge: str = ""
    agent: str = ""
    """The kind of sub-agent that is its one candidate."""
    at_once: int = 4
    """Candidates that work at the same time."""

    @property
    def slots(self) -> list[FanSlot]:
        """One for each candidate."""
        return [each for each in self.plan for _ in range(each.n)]


class FanRun:
    """One fan-out in this process."""

    def __init__(
        self,
        sessions: FanHost,
        session_id: SessionId,
        places: FanPlaces,
        *,
        verify_seconds: float = 600.0,
        at_once: int = 4,
    ) -> None:
        self.sessions = sessions
        self._session_id = session_id
        self.places = places
        self._verify_seconds = verify_seconds
        self._slots = anyio.Semaphore(at_once)
        self._log = FanLog()
        self._fan_id = ""
        self.base: BaseFiles | None = None
        self._lock = -1
        """Held for as long as the process knows it: what is on disk of it is no leftover."""
        self._watch: BaseWatch | None = None
        self._runs: dict[int, CandidateRun] = {}
        self.busy: set[int] = set()
        """The candidates that work, are verified, or are about to."""
        self._stop_why: Literal["", "budget", "stopped", "verified"] = ""
        self.settled = anyio.Event()
        """Nothing of it runs here any more."""
        self.settled.set()
        self.verifying: dict[int, anyio.CancelScope] = {}
        """The candidates that are being verified, and what stops that; 0 is the base."""
        self._mark: FanMark | None = None
        self.changed_in_place: tuple[int, list[str]] = (0, [])
        """How many ignored files the user wrote to, under the candidates, and a few of them."""
        self.not_cloned: dict[str, str] = {}
        """The ignored trees that copies of candidates do not have, each with the reason."""
        self.judge: Callable[[FanRun], Awaitable[None]] | None = None
        """Breaks ties, where a judge is wanted."""
        self.judge_error = ""
        self.opened = 0
        """The candidate whose session the user drives."""
        self._released = anyio.Event()
        self.deciding = anyio.Lock()
        """Held by whoever keeps, removes or resumes candidates: one after the other."""

    @property
    def record(self) -> FanRecord:
        """What the log says of it."""
        return self._log.fans[self._fan_id]

    @property
    def mark(self) -> FanMark:
        """What tells the next start, where this process dies, that something is half done."""
        if self._mark is None:
            folder = self.sessions.services.places.unsettled_fans
            self._mark = FanMark(str(folder), self._fan_id)
        return self._mark

    @property
    def host(self) -> SessionAgentHost:
        """The session that it belongs to."""
        return self.sessions.registry.agents.host_of(self._session_id)

    # -- the beginning

    async def begin(self, options: FanOptions) -> None:
        """Pin the base, and put the fan-out on record.

        Raises:
            UsageError: it cannot be: nothing isolates candidates here, or the base cannot be had.
        """
        host = self.host
        why = await self.places.why_not(self.root)
        if why and self.sessions.services.config.get("fan.isolation") == "overlay":
            raise UsageError(
                f"candidates cannot be kept apart by an overlay here: {why}. `weft doctor` says "
                'what is missing; `fan.isolation = "auto"` lets each work in a copy instead'
            )
        self._fan_id = options.fan_id or new_id("fan", host.now())
        # First of all: what is found on disk later is told from a leftover by this and the log.
        entry = FanEntry(
            fan_id=self._fan_id,
            session_id=self._session_id,
            project=host.state.about.project_path,
            prompt=options.prompt[:500],
            at=host.now(),
            store=store_name(await self.sessions.registry.store_of(self._session_id)),
        )
        index = FanIndex(self.sessions.services.places.home)
        async with self.mark.held():
            await self._begin(options, index, entry, why)

    async def _begin(self, options: FanOptions, index: FanIndex, entry: FanEntry, why: str) -> None:
        await anyio.to_thread.run_sync(index.add, entry)
        try:
            self._lock = await anyio.to_thread.run_sync(self.places.claim, self._fan_id)
            await self._pin_and_record(options, why)
        except BaseException as error:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._undo_begin, index)
            if isinstance(error, OSError):
                raise UsageError(f"the base cannot be pinned: {error}") from error
            raise

    def _undo_begin(self, index: FanIndex) -> None:
        self.let_go()
        self.places.remove(self._fan_id)
        index.forget(self._fan_id)

    def let_go(self) -> None:
        """What is on disk of it is no longer held by this process."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    async def _pin_and_record(self, options: FanOptions, why: str) -> None:
        at_ns = time.time_ns()
        folder = self.places.folder(self._fan_id)
        isolation: Isolation = "overlay"
        if why:
            can = await anyio.to_thread.run_sync(can_clone, self.root, folder)
            isolation = "reflink" if can else "worktree"
        links = bool(self.sessions.services.config.get("fan.pin_ignored")) and not why
        self.base = await make_base(
            *(self.host.runner, self.root, folder, options.base),
            links_ignored=links,
            isolation=isolation,
            why=why,
        )
        base = FanBase(kind=options.base, commit=self.base.record.commit, at_ns=at_ns)

        def started(state: SessionState) -> Commit:
            fact = FanStarted(
                fan_id=self._fan_id,
                prompt=options.prompt,
                node=state.tree.head,
                plan=options.plan,
                verify=options.verify,
                verify_runs=options.verify_runs,
                base=base,
                budget_usd=options.budget_usd,
                stop=options.stop,
                judge=options.judge,
                agent=options.agent,
            )
            return Commit(facts=(fact,))

        await self.append(started)

    def know(self, record: FanRecord) -> None:
        """Take what the log says of it."""
        self._fan_id = record.fan_id
        self._log.fans[record.fan_id] = record

    async def come_back(self, record: FanRecord) -> None:
        """Take up a fan-out that another process left; without its base, it can be read."""
        self.know(record)
        base = await open_base(self.host.runner, self.places.folder(record.fan_id))
        if base is None or (
            base.record.isolation == "overlay" and await self.places.why_not(self.root)
        ):
            return
        self.base = base
        if self.base is not None:
            self._lock = await anyio.to_thread.run_sync(self.places.claim, record.fan_id)
            await anyio.to_thread.run_sync(self.places.clear_checks, record.fan_id)

    @property
    def root(self) -> str:
        """The project."""
        project = self.host.state.about.project_path
        return self.sessions.services.workspaces.workspace(project).root

    async def append(self, build: Callable[[SessionState], Commit]) -> Sequence[Fact]:
        """Put facts on the session's record."""
        stored = await self.host.append(build)
        self._log.apply_all(stored)
        return stored

    # -- the work

    def start(self, indices: Sequence[int] | None = None) -> None:
        """Let it run in the background of the session's turns."""
        if self.base is None:
            raise UsageError(f"the base of {self._fan_id} is gone; its diffs can still be read")
        self.settled = anyio.Event()
        count = len(_slots(self.record.started))
        self.busy = set(range(1, count + 1) if indices is None else indices)
        self._stop_why = ""
        self.host.start(lambda: self.run(indices), f"fan {self._fan_id}")

    async def run(self, indices: Sequence[int] | None = None) -> None:
        """Let the candidates work, all of the plan or these, until each has ended and is verified,
        or the stop rule says enough.
        """
        assert self.base is not None
        async with self.mark.held():
            await self._run(self.base, indices)

    async def _run(self, base: BaseFiles, indices: Sequence[int] | None) -> None:
        try:
            watch = await self.begin_watch(base)
            async with anyio.create_task_group() as group:
                group.start_soon(watch.run)
                group.start_soon(self._mind_budget)
                await self._run_all(indices)
                await self._judge()
                group.cancel_scope.cancel()
            self.changed_in_place = await anyio.to_thread.run_sync(base.changed_in_place)
        finally:
            self.end_watch()

    async def begin_watch(self, base: BaseFiles) -> BaseWatch:
        """Have the base kept still in the views that are opened from now on; what is returned is
        to be run.
        """
        self._watch = BaseWatch(base)
        await self._watch.start()
        return self._watch

    def end_watch(self) -> None:
        """Nothing of it is at work here any more."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        self.busy.clear()
        self.settled.set()

    async def _run_all(self, indices: Sequence[int] | None) -> None:
        slots = dict(enumerate(_slots(self.record.started), start=1))
        wanted = slots if indices is None else {index: slots[index] for index in indices}
        leads: dict[str, anyio.Event] = {}
        async with anyio.create_task_group() as group:
            if self.record.started.verify and not self.record.base_runs:
                group.start_soon(self._verify_base)
            for index, slot in wanted.items():
                lead = leads.get(slot.model)
                own = leads.setdefault(slot.model, anyio.Event()) if lead is None else None
                group.start_soon(self._run_one, index, slot, lead, own)

    async def _run_one(
        self, index: int, slot: FanSlot, lead: anyio.Event | None, own: anyio.Event | None
    ) -> None:
        """One candidate from its beginning to its last verification; whatever fails is its own."""
        if lead is not None:
            with anyio.move_on_after(LEAD_SECONDS):
                await lead.wait()
        try:
            async with self._slots:
                known = self.record.candidates.get(index)
                if known is not None and known.has_finished and not self.record.is_checked(known):
                    await self._verify(index)
                elif not self._stop_why:
                    candidate = CandidateRun(self, index, slot, own)
                    self._runs[index] = candidate
                    await candidate.run()
                    if not self._stop_why:
                        await self._verify(index)
        except (WeftError, OSError) as error:
            logger.exception("a candidate failed", extra={"fan": self._fan_id, "index": index})
            await self._note_failure(index, str(error))
        finally:
            if own is not None:
                own.set()
            self._runs.pop(index, None)
            self.busy.discard(index)
        if self.record.started.stop == "verified" and self._is_good(index):
            await self.stop("verified")

    async def _judge(self) -> None:
        """Have ties broken; where that fails, the rank stands without."""
        if not self.record.started.judge or self.judge is None or self._stop_why:
            return
        try:
            await self.judge(self)
        except WeftError as error:
            logger.exception("the judge could not be asked", extra={"fan": self._fan_id})
            self.judge_error = str(error)

    def _is_good(self, index: int) -> bool:
        known = self.record.candidates.get(index)
        if known is None or known.ended is None:
            return False
        return bool(known.ended.files) and self.record.has_passed(known)

    async def _note_failure(self, index: int, why: str) -> None:
        with suppress(WeftError):
            await self.dropped(index, "failed", why)

    async def dropped(
        self,
        index: int,
        why: Literal["pruned", "budget", "stopped", "failed"],
        detail: str = "",
        work: bytes | None = None,
    ) -> None:
        """Put on record that a candidate was given up."""
        blob = None if work is None else BlobId(sha256(work).hexdigest())
        fact = FanCandidateDropped(
            fan_id=self._fan_id, index=index, why=why, detail=detail[:LONGEST_WORDS], work=blob
        )
        blobs = {} if blob is None or work is None else {blob: work}
        await self.append(lambda state: Commit(facts=(fact,), blobs=blobs))

    async def prune(self, index: int, *, is_forced: bool = False) -> None:
        """Remove the overlay of a candidate; what it had changed is on record.  What cannot be
        stored is lost only where that is forced.

        Raises:
            UsageError: something of it cannot be stored; it is named.
            FinalToolError: the base cannot be read.
        """
        if self.record.candidates[index].dropped != "pruned":
            work = None
            if await self._has_place(index):
                work = await self._work_of(index, is_forced=is_forced)
            await self.dropped(index, "pruned", work=work)
        await anyio.to_thread.run_sync(self.places.remove, self._fan_id, str(index))

    async def _work_of(self, index: int, *, is_forced: bool) -> bytes | None:
        """What a candidate changed, to be stored."""
        how = f"`weft fan prune {self._fan_id} {index} --force` removes it all the same"
        try:
            diff = await self.diff_of(index)
        except UsageError as error:
            if not is_forced:
                raise UsageError(f"its work cannot be stored: {error}. {how}") from error
            return None
        except (WeftError, OSError):
            if not is_forced:
                raise
            return None
        work = packed(diff)
        lost = diff.too_large if work is not None else ["more than is stored of a candidate"]
        if lost and not is_forced:
            raise UsageError(f"it would be lost: {', '.join(lost)}. {how}")
        return work

    async def restore(self, index: int, work: bytes) -> None:
        """Make a candidate again that was pruned."""
        assert self.base is not None
        changes = unpacked(work)
        paths = [path for path, _ in changes]
        files = {path: file for path, file in changes if file is not None}
        layer = self.places.fresh(self._fan_id, f"tests-{index}")
        await anyio.to_thread.run_sync(self.places.put_layer, layer, paths, files)
        await anyio.to_thread.run_sync(self.places.remove, self._fan_id, str(index))
        view = await self.open_view(str(index))
        await self.close_view(view)
        # The view is closed: what is put into its upper layer is what the next one shows.
        if isinstance(view, CopyView):
            await anyio.to_thread.run_sync(apply_layer, layer, view.root)
        else:
            await anyio.to_thread.run_sync(move_into, layer, view.place.upper)
        await anyio.to_thread.run_sync(remove, layer)
        fact = FanCandidateRestored(fan_id=self._fan_id, index=index)
        await self.append(lambda state: Commit(facts=(fact,)))

    async def stop(self, why: Literal["budget", "stopped", "verified"]) -> None:
        """Stop what is still at work; what it has done stays."""
        self._stop_why = self._stop_why or why
        for index, scope in list(self.verifying.items()):
            # A check of the base is worth its time where one has passed: it says what that means.
            if index or why != "verified":
                scope.cancel()
        for candidate in list(self._runs.values()):
            await candidate.stop("stopped" if why == "verified" else why)

    async def _mind_budget(self) -> None:
        """Stop all where they have used what they may."""
        limit = self.record.started.budget_usd
        if limit is None:
            return
        while True:
            await anyio.sleep(_LOOK_SECONDS)
            if self.spent_usd() >= limit:
                break
        await self.stop("budget")

    def spent_usd(self) -> float:
        """What the candidates have used so far."""
        used = [each for known in self.record.candidates.values() for each in self._used(known)]
        return sum(usage.cost_usd or 0.0 for usage in used)

    def _used(self, candidate: CandidateRecord) -> list[Usage]:
        """What one has used; the session has paid for it also where no end of it is on record."""
        port = self.sessions.registry.ports.get(candidate.child)
        if port is not None:
            return [port.state.ledger.total]
        paid = self.host.state.children.known.get(candidate.child)
        if paid is not None and paid.counted:
            return list(paid.counted.values())
        ended = candidate.ended
        return [ended.usage] if ended is not None and ended.usage is not None else []

    # -- a candidate in the user's hands

    async def open(self, index: int) -> SessionId:
        """Open a candidate's overlay for whoever drives its session now; it counts as at work until
        it is released.
        """
        if self.base is None:
            raise UsageError(f"the base of {self._fan_id} is gone; its diffs can still be read")
        self.settled, self._released = anyio.Event(), anyio.Event()
        self.busy, self._stop_why = {index}, ""
        opened = anyio.Event()
        self.host.start(lambda: self._sit(index, opened), f"fan {self._fan_id}")
        async with anyio.create_task_group() as group:
            # It may fail before it is open.
            group.start_soon(self._first_of, opened, group.cancel_scope)
            await self.settled.wait()
            group.cancel_scope.cancel()
        if not opened.is_set():
            raise UsageError(self.record.candidates[index].detail or "it cannot be opened")
        self.opened = index
        return self.record.candidates[index].child

    async def _first_of(self, event: anyio.Event, scope: anyio.CancelScope) -> None:
        await event.wait()
        scope.cancel()

    async def _sit(self, index: int, opened: anyio.Event) -> None:
        assert self.base is not None
        slot = _slots(self.record.started)[index - 1]
        async with self.mark.held():
            try:
                watch = await self.begin_watch(self.base)
                async with anyio.create_task_group() as group:
                    group.start_soon(watch.run)
                    await CandidateRun(self, index, slot, None).sit(opened, self._released)
                    await self._verify(index)
                    group.cancel_scope.cancel()
            except (WeftError, OSError) as error:
                logger.exception("a candidate failed", extra={"fan": self._fan_id, "index": index})
                await self._note_failure(index, str(error))
            finally:
                self.opened = 0
                self.end_watch()

    async def release(self) -> None:
        """The candidate that is open is done with: its work is compared and verified."""
        self._released.set()
        await self.settled.wait()

    # -- views

    async def open_view(self, name: str, *layers: str, on_base: bool = True) -> CandidateView:
        """A view over the base, or over the project as it is now; `layers` lie above it, the first
        on top.
        """
        assert self.base is not None
        if self.base.record.isolation != "overlay":
            return await self._open_copy(self.base, name, layers, on_base=on_base)
        view = self.places.view(
            self._fan_id,
            name,
            root=self.root,
            pins=(*layers, *self.base.layers) if on_base else layers,
            objects=self.base.record.objects if on_base else "",
        )
        try:
            await view.open()
        except SandboxUnavailable as error:
            raise UsageError(f"the overlay of a candidate cannot be opened: {error}") from error
        if on_base and self._watch is not None:
            await self._watch.add(view)
        return view

    async def _open_copy(
        self, base: BaseFiles, name: str, layers: Sequence[str], *, on_base: bool
    ) -> CopyView:
        """The same where there is no overlay: all files are written out."""
        folder, config = self.places.folder(self._fan_id, name), self.sessions.services.config
        runner, most = self.host.runner, int(config.get("fan.max_disk"))
        if await is_whole(folder):
            return CopyView(copy_at(folder), most_bytes=most)  # with its candidate's work
        if not on_base:
            base = await make_base(
                *(runner, self.root, f"{folder}/now", "now"),
                links_ignored=False,
                isolation=base.record.isolation,
            )
        copy, clones = copy_at(folder), base.record.isolation == "reflink"
        self.not_cloned |= await make_copy(base, folder, clones=clones)
        for layer in reversed(layers):
            await anyio.to_thread.run_sync(apply_layer, layer, copy)
        if command := str(config.get("fan.setup")):
            await set_up(copy, command, runner, self._verify_seconds)
        await note_copy(folder)
        return CopyView(copy, most_bytes=most)

    async def _has_place(self, index: int) -> bool:
        """Whether a candidate can have left something: a copy that was not finished is none."""
        if not self.places.has(self._fan_id, str(index)):
            return False
        if self.base is None or self.base.record.isolation == "overlay":
            return True
        return await is_whole(self.places.folder(self._fan_id, str(index)))

    async def diff_of(self, index: int) -> CandidateDiff:
        """What a candidate changed.

        Raises:
            UsageError: nothing of it is left, or it is more than is carried over.
            FinalToolError: the base cannot be read.
        """
        if self.base is None or not await self._has_place(index):
            raise UsageError(self.why_gone(index))
        if self.base.record.isolation != "overlay":
            return await copy_diff(self.base, self.places.folder(self._fan_id, str(index)))
        try:
            return await candidate_diff(self.base, self.places.upper(self._fan_id, str(index)))
        except TooMuch as error:
            raise UsageError(str(error)) from error

    def why_gone(self, index: int) -> str:
        """Why nothing of a candidate is left but its record."""
        known, shows = self.record.candidates[index], f"weft fan diff {self._fan_id} {index}"
        was_kept = f"candidate {index} was kept; " if known.kept else ""
        if self.record.is_closed:
            return (
                f"{was_kept}{self._fan_id} is closed, and its overlays are gone; `{shows}` shows "
                f"what candidate {index} changed"
            )
        if known.dropped == "pruned":
            return (
                f"candidate {index} was pruned; `weft fan restore {self._fan_id} {index}` brings "
                "it back"
            )
        return f"the overlay of candidate {index} is gone; `{shows}` shows what it changed"

    async def close_view(self, view: CandidateView) -> None:
        """Take a view apart; what was written in it stays."""
        if self._watch is not None and isinstance(view, HeldView):
            self._watch.remove(view)
        with anyio.CancelScope(shield=True):
            await view.close()

    # -- verification

    async def _verify_base(self) -> None:
        """Run the check on the base itself, once: it tells whether a pass means anything."""
        try:
            await self._verify_on("base", 0, 1)
        except (WeftError, OSError):
            logger.exception("the base could not be verified", extra={"fan": self._fan_id})

    async def _verify(self, index: int) -> None:
        candidate = self.record.candidates.get(index)
        if not self.record.started.verify or candidate is None or not candidate.has_finished:
            return
        name = f"verify-{index}-work"
        work = await self._work_layer(index, name)
        done = sum(run.on == "candidate" for run in candidate.verified)
        for run in range(done + 1, self.record.started.verify_runs + 1):
            await self._verify_on("candidate", index, run, work)
        ended = candidate.ended
        if ended is not None and ended.touches_checks and not self._stop_why:
            layer = await self._base_tests(ended)
            await self._verify_on("base_tests", index, 1, layer, work)
        await anyio.to_thread.run_sync(self.places.remove, self._fan_id, name)

    async def _work_layer(self, index: int, name: str) -> str:
        """A layer with what would be kept of a candidate, and nothing else that it left: ignored
        files (dependencies, caches) must not make its check pass.
        """
        assert self.base is not None
        changes = (await self.diff_of(index)).changes
        files = {each.path: each.after for each in changes if each.after is not None}
        folder = self.places.fresh(self._fan_id, name)
        paths = [each.path for each in changes]
        await anyio.to_thread.run_sync(self.places.put_layer, folder, paths, files)
        return folder

    async def _base_tests(self, ended: FanCandidateEnded) -> str:
        """A layer with the tests, and what configures them, as the base has them."""
        assert self.base is not None
        paths = touches_checks(ended.files, self.record.started.verify)
        files = await self.base.read(paths)
        folder = self.places.fresh(self._fan_id, f"tests-{ended.index}")
        await anyio.to_thread.run_sync(self.places.put_layer, folder, paths, files)
        return folder

    async def _verify_on(
        self,
        on: Literal["candidate", "base_tests", "base"],
        index: int,
        run: int,
        *layers: str,
    ) -> None:
        if self._stop_why and index:
            return
        try:
            with anyio.CancelScope() as scope:
                self.verifying[index] = scope
                fact, blobs = await self.checked(on, index, run, *layers)
                await self.append(lambda state: Commit(facts=(fact,), blobs=blobs))
        finally:
            self.verifying.pop(index, None)

    async def checked(
        self,
        on: Literal["candidate", "base_tests", "base", "merged"],
        index: int,
        run: int,
        *layers: str,
    ) -> tuple[FanVerified, dict[BlobId, bytes]]:
        """Run the verify command in a view of its own, that is thrown away afterwards: nothing that
        it leaves is part of a candidate, and each run begins with the same cold caches.
        """
        name = f"verify-{index}-{on}-{run}"
        self.places.fresh(self._fan_id, name)
        view = await self.open_view(name, *layers, on_base=on != "merged")
        command, begun = self.record.started.verify, time.monotonic()
        code: int | None = None
        try:
            result = await view.runner(self.host.runner, self.host.egress).run(
                ProcessCommand(
                    argv=("/bin/sh", "-c", command),
                    cwd=view.root,
                    timeout_seconds=self._verify_seconds,
                )
            )
            code = None if result.timed_out else result.exit_code
            said = result.output[-OUTPUT_BYTES:] + self._how_ended(result)
        except ToolError as error:
            said = str(error)
        finally:
            await self.close_view(view)
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self.places.remove, self._fan_id, name)
        data = said.encode()
        blob = BlobId(sha256(data).hexdigest())
        fact = FanVerified(
            fan_id=self._fan_id,
            index=index,
            run=run,
            on=on,
            command=command,
            exit_code=code,
            seconds=round(time.monotonic() - begun, 3),
            output=blob,
            passed=code == 0,
        )
        return fact, {blob: data}

    def _how_ended(self, result: RunResult) -> str:
        """What the output of a check does not say of its end."""
        if result.timed_out:
            return f"\nit was ended after {self._verify_seconds:g} s, by fan.verify_seconds"
        return f"exit code {result.exit_code}" if not result.output.strip() else ""

    # -- the end

    async def close(self) -> None:
        """End it: nothing of it is at work any more, and its overlays are gone."""
        await self.stop("stopped")
        await self.settled.wait()
        await self.append(lambda state: Commit(facts=(FanClosed(fan_id=self._fan_id),)))
        self.let_go()
        await anyio.to_thread.run_sync(self.places.remove, self._fan_id)


class CandidateRun:
    """One candidate at work."""

    def __init__(self, fan: FanRun, index: int, slot: FanSlot, lead: anyio.Event | None) -> None:
        self._fan = fan
        self._index = index
        self._slot = slot
        self._lead = lead
        """Set when the others of its model may begin."""
        self._why: Literal["", "budget", "stopped"] = ""
        known = fan.record.candidates.get(index)
        host = fan.host
        self._is_new = known is None or not known.child
        self.child = new_session_id(host.now())
        if known is not None and known.child:
            self.child = known.child
        self._stopping = anyio.Event()
        self._copy: str | None = None
        """The project in its copy, where there is no overlay."""
        self.place = f"{fan.record.fan_id}/{index}"

    async def run(self) -> None:
        """See it to its end, and put that on record."""
        fan, views = self._fan, self._fan.sessions.services.workspaces.views
        view = await fan.open_view(str(self._index))
        views[self.place] = view
        self._copy = view.root if isinstance(view, CopyView) else None
        try:
            await self._start(view)
            begun = time.monotonic()
            end = await self._work() if not self._why else ChildEnd(reason="aborted")
            if not fan.sessions.registry.is_closing:
                # Before anything that can fail: what it used is paid, whatever comes of it.
                await fan.append(lambda state: Commit(facts=finished(state, self.child, end)))
            diff = await fan.diff_of(self._index)
            if fan.sessions.registry.is_closing:
                return  # suspended with the program: the next process goes on with it
        finally:
            views.pop(self.place, None)
            with anyio.CancelScope(shield=True):
                # Its tools lead into the view; a later call opens it anew, without.
                if self.child in fan.sessions.registry.ports:
                    await fan.sessions.registry.unload(self.child)
            await fan.close_view(view)
        await self._end(end, diff, time.monotonic() - begun)
        if self._why:
            await fan.dropped(self._index, self._why)

    async def sit(self, opened: anyio.Event, released: anyio.Event) -> None:
        """Hold its overlay open until it is released, and put on record what came of it."""
        fan, registry = self._fan, self._fan.sessions.registry
        known = fan.record.candidates[self._index]
        words = known.ended.text if known.ended is not None else ""
        if self.child in registry.ports:
            await registry.unload(self.child)  # its tools lead nowhere
        view = await fan.open_view(str(self._index))
        views, begun = fan.sessions.services.workspaces.views, time.monotonic()
        views[self.place] = view
        try:
            self._is_new = True  # it is at work again, and what was verified is of the past
            await self._start(view)
            opened.set()
            await released.wait()
            diff, used = await fan.diff_of(self._index), await registry.usage_of(self.child)
        finally:
            views.pop(self.place, None)
            with anyio.CancelScope(shield=True):
                if self.child in registry.ports:
                    await registry.unload(self.child)
            await fan.close_view(view)
        end = ChildEnd(reason="stop", text=words, used=dict(used))
        await self._end(end, diff, time.monotonic() - begun)

    async def stop(self, why: Literal["budget", "stopped"]) -> None:
        """Stop its turn; what it has done stays."""
        self._why = why
        self._stopping.set()
        port = self._fan.sessions.registry.ports.get(self.child)
        if port is not None:
            with suppress(WeftError):
                await port.abort(AbortTurn(reason="the fan-out was stopped"))

    async def _start(self, view: CandidateView) -> None:
        fan = self._fan
        assert fan.base is not None
        facts: tuple[Fact, ...] = (
            ChildStarted(
                child=self.child,
                node=fan.record.started.node,
                purpose="candidate",
                name=self.place,
            ),
        )
        if self._is_new:
            started = FanCandidateStarted(
                fan_id=fan.record.fan_id,
                index=self._index,
                child=self.child,
                model=self._slot.model,
                isolation=fan.base.record.isolation,
                place=self.place,
                network=not view.has_own_network,
            )
            facts = (*facts, started)
        await fan.append(lambda state: Commit(facts=facts))

    async def _work(self) -> ChildEnd:
        run = ChildRun(
            self._fan.host,
            self._wanted(),
            (Text(text=self._fan.record.started.prompt),),
            label=f"candidate {self._index}",
            outlives_turn=True,
            goes_on=True,
        )
        async with anyio.create_task_group() as group:
            if self._lead is not None:
                group.start_soon(self._tell_lead, self._lead)
            group.start_soon(self._mind_stop)
            end = await run.run()
            group.cancel_scope.cancel()
        return end

    async def _mind_stop(self) -> None:
        """A stop may come before there is a turn to be stopped."""
        await self._stopping.wait()
        while True:
            port = self._fan.sessions.registry.ports.get(self.child)
            if port is not None and port.state.turn.open is not None:
                with suppress(WeftError):
                    await port.abort(AbortTurn(reason="the fan-out was stopped"))
            await anyio.sleep(_LOOK_SECONDS)

    async def _tell_lead(self, lead: anyio.Event) -> None:
        """The first answer of the model is there: what it was sent is in its cache."""
        while True:
            port = self._fan.sessions.registry.ports.get(self.child)
            if port is not None and port.state.ledger.total.total_tokens:
                lead.set()
                return
            await anyio.sleep(_LOOK_SECONDS / 2)

    def _wanted(self) -> ChildRequest:
        fan, host = self._fan, self._fan.host
        model = host.model_named(self._slot.model) if self._slot.model else host.model
        effort = model.effort or host.model.effort
        node = fan.record.started.node
        return ChildRequest(
            child=self.child,
            origin=CallOrigin(session_id=host.session_id, node=node),
            title=f"{fan.record.fan_id} {self._index}",
            model=msgspec.structs.replace(model, effort=effort),
            tools=tuple(name for name in host.tools if name not in NOT_ISOLATED),
            # Nothing of it reaches the project before the user keeps it.
            permission_mode="auto",
            depth=1,
            place=self.place,
            project_path=self._copy,
            forks=node is not None,
            facts=host.inherited(),
        )

    async def _end(self, end: ChildEnd, diff: CandidateDiff, seconds: float) -> None:
        ended, blobs = candidate_end(self._fan.record, self._index, end, diff, seconds)
        await self._fan.append(
            lambda state: Commit(facts=(*finished(state, self.child, end), ended), blobs=blobs)
        )


def candidate_end(
    record: FanRecord, index: int, end: ChildEnd, diff: CandidateDiff, seconds: float
) -> tuple[FanCandidateEnded, dict[BlobId, bytes]]:
    """The end of a candidate as it goes on record, with its diff."""
    text = diff.text.encode(errors="surrogateescape")
    blob = BlobId(sha256(text).hexdigest())
    # Not every name is text, and what is stored must be.
    paths = tuple(as_text(change.path) for change in diff.changes)
    used: list[Usage] = list(end.used.values())
    ended = FanCandidateEnded(
        fan_id=record.fan_id,
        index=index,
        **finish_words(end.reason),
        usage=sum(used[1:], used[0]) if used else None,
        seconds=round(seconds, 3),
        diff=blob if paths else None,
        files=paths,
        added=diff.added,
        removed=diff.removed,
        touches_checks=bool(touches_checks(paths, record.started.verify)),
        group=diff.group,
        text=(end.text or end.detail)[-LONGEST_WORDS:],
    )
    return ended, {blob: text} if paths else {}


async def new_run(host: FanHost, session_id: SessionId) -> FanRun:
    """A fan-out of a session, to be begun or taken up.

    Raises:
        UsageError: the session is open in another process.
    """
    port = await host.port(session_id)
    if not port.lives_here:
        raise UsageError("the session is open in another process; its fan-outs are driven there")
    config = host.services.config
    return FanRun(
        host,
        session_id,
        places_of(host),
        verify_seconds=float(config.get("fan.verify_seconds")),
        at_once=int(config.get("fan.at_once")),
    )


def _slots(started: FanStarted) -> list[FanSlot]:
    return [each for each in started.plan for _ in range(each.n)]
