"""`Fan`, the handle on a fan-out: several candidates for one task, compared, and one kept.

Everything it tells is on the session's record; a handle in another process tells the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, Self, TypeAlias

import anyio
import anyio.to_thread
import msgspec

from weft.errors import UsageError, WeftError
from weft.events import FactBase, FanSlot
from weft.ids import SessionId, derived_id
from weft.runtime.session_host import SessionHost
from weft.session import Subscription

if TYPE_CHECKING:
    from weft.runtime.fan.candidate_changes import CandidateDiff
    from weft.runtime.fan.fan_index import FanEntry
    from weft.runtime.fan.fan_record import CandidateRecord, FanRecord
    from weft.runtime.fan.fan_run import FanOptions, FanRun
    from weft.runtime.fan.kept_candidate import KeepOutcome

_PAGE: Final = 1000
_LOOK_SECONDS: Final = 0.2
"""How often a reader of events looks whether there will be more."""
_ENDED: Final = object()
_SHARED_NETWORK: Final = (
    "sandbox.network is on: candidates use the machine's network, so they can reach each other's "
    "servers and yours, and a port that one of them binds is taken for the others"
)
MOST: Final = 64

CandidateStatus: TypeAlias = Literal[
    "working", "verifying", "done", "failed", "interrupted", "stopped", "kept", "pruned"
]


class FanCandidate(msgspec.Struct, frozen=True, kw_only=True):
    """One candidate, as tables show it; they come ranked, the best first."""

    index: int
    model: str
    session: str
    state: CandidateStatus
    verify: str = ""
    """`passed`, `flaky`, `failed`; empty where it was not verified."""
    verify_passed: int = 0
    verify_runs: int = 0
    base_verify: str = ""
    """What the check said of the base itself."""
    touches_checks: bool = False
    base_tests: str = ""
    """What it said of a candidate that changed tests, with the tests as the base has them."""
    files: tuple[str, ...] = ()
    added: int = 0
    removed: int = 0
    judged: int = 0
    """Its place among those that the judge compared, from 1; 0 where there was none."""
    agree: int = 0
    """How many candidates came to the same change."""
    of: int = 0
    cost_usd: float | None = None
    seconds: float = 0.0
    reason: str = ""
    text: str = ""
    detail: str = ""
    """Why it failed."""
    isolation: str = "overlay"
    is_best: bool = False
    """The one to keep: first of those that finished, and passed where there is a check."""


class FanSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One fan-out in a list."""

    id: str
    session: str
    prompt: str
    at: float
    planned: int
    ended: int
    passed: int
    """Those that passed the check; who changed tests has to pass the base's as well."""
    kept: tuple[int, ...] = ()
    is_closed: bool = False
    agent: str = ""
    """The kind of sub-agent that works isolated in it; empty for a fan-out of candidates."""


class FanEvents:
    """An iterator over the facts of a fan-out; it ends when the fan-out is settled."""

    def __init__(self, fan: Fan, after: int) -> None:
        self._fan = fan
        self._after = after
        self._events: Subscription | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> FactBase:
        if self._events is None:
            self._events = await self._fan._subscribe(self._after)
        while True:
            # Before the look at what there is: what comes after it is then waited for.
            is_settled, event = self._fan.is_settled, None
            with anyio.move_on_after(_LOOK_SECONDS):
                event = await anext(self._events, _ENDED)
            if event is _ENDED or (event is None and is_settled):
                self.close()
                raise StopAsyncIteration
            if isinstance(event, FactBase) and getattr(event, "fan_id", "") == self._fan.id:
                return event

    def close(self) -> None:
        """Read no more."""
        if self._events is not None:
            self._events.close()


class Fan:
    """One fan-out of a session."""

    def __init__(self, host: SessionHost, session_id: SessionId, run: FanRun) -> None:
        self._host = host
        self._session_id = session_id
        self._run = run

    @property
    def id(self) -> str:
        """Its id."""
        return self._run.record.fan_id

    @property
    def session_id(self) -> SessionId:
        """The session that it belongs to."""
        return self._session_id

    @property
    def prompt(self) -> str:
        """The task."""
        return self._run.record.started.prompt

    @property
    def planned(self) -> int:
        """How many candidates there are to be."""
        return sum(slot.n for slot in self._run.record.started.plan)

    @property
    def verify_command(self) -> str:
        """The check; empty where there is none."""
        return self._run.record.started.verify

    @property
    def notes(self) -> tuple[str, ...]:
        """What its candidates share with each other and with the machine, in sentences for the
        user; empty where they share nothing that matters.
        """
        said: list[str] = []
        base = self._run.base
        if base is not None and base.record.isolation != "overlay":
            said.append(_copies(base.record.isolation, base.record.why))
            if left_out := self._run.not_cloned:
                named = [f"{path} ({why})" for path, why in list(left_out.items())[:3]]
                more = " and more" if len(left_out) > 3 else ""
                said.append(f"candidates do not have {', '.join(named)}{more}")
            return tuple(said)
        known = self._run.record.candidates.values()
        is_shared = any(each.network for each in known)
        if is_shared or (not known and not self._run.places.has_own_network):
            said.append(_SHARED_NETWORK)
        if base is not None and (ignored := base.record.ignored).shared:
            names = ", ".join(ignored.shared[:3]) + (" and more" if ignored.shared[3:] else "")
            said.append(f"candidates see what you change in {names} ({ignored.why})")
        if self._run.judge_error:
            said.append(f"the judge could not be asked: {self._run.judge_error}")
        count, names_in_place = self._run.changed_in_place
        if count:
            said.append(
                f"{count:,} ignored files were written to in place while candidates worked, and "
                f"they saw that: {', '.join(names_in_place)}"
            )
        return tuple(said)

    @property
    def verdict(self) -> str:
        """What the judge said; empty where none was asked."""
        judged = self._run.record.judged
        return "" if judged is None else judged.reason

    @property
    def is_closed(self) -> bool:
        """True when it is over: its overlays are gone, and its diffs are left."""
        return self._run.record.is_closed

    @property
    def is_settled(self) -> bool:
        """True when nothing of it is at work here."""
        return self._run.settled.is_set()

    async def wait(self) -> None:
        """Wait until every candidate has ended and is verified, or the stop rule ended all.

        Cancelling the wait stops nothing.
        """
        await self._run.settled.wait()

    def events(self, after: int | None = None) -> FanEvents:
        """The facts of this fan-out, from its beginning or after a `seq`, until it is settled."""
        start = self._run.record.started.seq - 1 if after is None else after
        return FanEvents(self, start)

    async def _subscribe(self, after: int) -> Subscription:
        port = await self._host.port(self._session_id)
        return port.subscribe(after=after, live="status")

    def candidates(self) -> list[FanCandidate]:
        """The candidates as they are now, the best first."""
        record = self._run.record
        ordered = record.ranked()
        ranked = [self._shown(record, each) for each in ordered]
        if ranked and record.is_checked(ordered[0]) and _can_be_kept(ranked[0]):
            ranked[0] = msgspec.structs.replace(ranked[0], is_best=True)
        return ranked

    def _shown(self, record: FanRecord, known: CandidateRecord) -> FanCandidate:
        end = known.ended
        agree, of = record.agreement(known)
        runs = [run for run in known.verified if run.on == "candidate"]
        port = self._host.running(known.child)
        cost = known.cost_usd
        if end is None and port is not None:
            cost = port.state.ledger.total.cost_usd
        return FanCandidate(
            index=known.index,
            model=known.model or record.started.plan[0].model,
            session=known.child,
            state=self._state(known),
            verify=known.verdict if runs else "",
            verify_passed=sum(run.passed for run in runs),
            verify_runs=len(runs),
            base_verify=record.base_verdict if record.base_runs else "",
            touches_checks=end is not None and end.touches_checks,
            base_tests=known.base_verdict if known.base_verdict != "none" else "",
            files=end.files if end is not None else (),
            added=end.added if end is not None else 0,
            removed=end.removed if end is not None else 0,
            judged=_judged(record, known),
            agree=agree,
            of=of,
            cost_usd=cost,
            seconds=end.seconds if end is not None else 0.0,
            reason=end.finish_reason if end is not None else "",
            text=end.text if end is not None else "",
            detail=known.detail,
            isolation=known.isolation,
        )

    def _state(self, known: CandidateRecord) -> CandidateStatus:
        if known.kept and self._is_in_project(known.index):
            return "kept"
        if known.dropped == "pruned":
            return "pruned"
        if known.index in self._run.verifying:
            return "verifying"
        if known.index in self._run.busy and not known.has_finished:
            return "working"
        if known.dropped in ("budget", "stopped"):
            return "stopped"
        if known.ended is None and known.dropped != "failed":
            return "interrupted" if self.is_settled else "working"
        return "done" if known.has_finished else "failed"

    def _is_in_project(self, index: int) -> bool:
        """False where a rewind took back what was kept: the message that says so is off the line
        then.
        """
        kept = [each for each in self._run.record.kept if each.index == index]
        port = self._host.running(self._session_id)
        if port is None or kept[-1].node is None:
            return True
        tree = port.state.tree
        return any(node == kept[-1].node for node in (tree.head, *tree.ancestors(tree.head)))

    # -- looking

    async def diff(self, index: int) -> str:
        """What a candidate changed, as a unified diff.

        Raises:
            UsageError: there is no such candidate.
        """
        known = self._known(index)
        if known.ended is None:
            return (await self._changes(index)).text
        if known.ended.diff is None:
            return ""
        store = await self._host.registry.store_of(self._session_id)
        data = await store.blob(known.ended.diff)
        return "" if data is None else data.decode(errors="replace")

    async def verify_output(self, index: int) -> str:
        """What the last run of the check printed for a candidate; 0 is the base."""
        record = self._run.record
        runs = record.base_runs if index == 0 else self._known(index).verified
        if not runs or runs[-1].output is None:
            return ""
        store = await self._host.registry.store_of(self._session_id)
        return (await store.blob(runs[-1].output) or b"").decode(errors="replace")

    async def compare(self, first: int, second: int) -> str:
        """How the second candidate's files differ from the first's, as a unified diff.

        Raises:
            UsageError: there is no such candidate, or its overlay is gone.
        """
        from weft.runtime.fan.candidate_changes import compared

        one, other = await self._changes(first), await self._changes(second)
        return compared(one, other, f"candidate {first}", f"candidate {second}")

    async def _changes(self, index: int) -> CandidateDiff:
        self._known(index)
        async with self._run.mark.held():
            return await self._run.diff_of(index)

    def _known(self, index: int) -> CandidateRecord:
        known = self._run.record.candidates
        if index not in known:
            has = ", ".join(map(str, sorted(known))) or "none yet"
            raise UsageError(f"{self.id} has no candidate {index!r}; there are {has}")
        return known[index]

    # -- deciding

    async def keep(
        self,
        index: int,
        preview: bool = False,
        *,
        force: bool = False,
        conflicts: Literal["mine", "markers"] = "mine",
    ) -> KeepOutcome:
        """Put a candidate's changes into the project, merged with what was changed there since.

        The check is run on the result before it is put there; where it fails, nothing is put,
        unless `force` says so.  `preview` only says what would happen.  Where both changed the same
        lines yours stay; with `conflicts="markers"` both versions are put there between conflict
        markers, and the check is not run.  What was kept in part can be kept again.

        Raises:
            UsageError: there is no such candidate, nothing to keep, or it is still at work.
        """
        from weft.runtime.fan.fan_lessons import note_choice
        from weft.runtime.fan.kept_candidate import CandidateKeeper

        known = self._known(index)
        if index in self._run.busy or (known.ended is None and not self.is_settled):
            raise UsageError(f"candidate {index} is still at work")
        keeper = CandidateKeeper(self._run, index, has_markers=conflicts == "markers")
        if preview:
            async with self._run.mark.held():
                return await keeper.run(preview=True, is_forced=False)
        async with self._run.deciding, self._run.mark.held():
            outcome = await keeper.run(preview=False, is_forced=force)
            if outcome.is_kept:
                await note_choice(self._host, self._session_id, self._run.record, index)
            return outcome

    async def prune(self, index: int, *, force: bool = False) -> None:
        """Give a candidate up: its overlay is removed, its diff and its session stay.  What of its
        work cannot be stored (large files) is lost only with `force`.

        Raises:
            UsageError: there is no such candidate, it is still at work, or something would be lost,
                which is named.
            FinalToolError: its work cannot be read now.
        """
        async with self._run.deciding:
            known = self._known(index)
            if index in self._run.busy or (known.ended is None and not self.is_settled):
                raise UsageError(f"candidate {index} is still at work; stop it first")
            if self.is_closed:
                raise UsageError(self._run.why_gone(index))
            async with self._run.mark.held():
                await self._run.prune(index, is_forced=force)

    async def restore(self, index: int) -> None:
        """Undo a prune: the candidate is there again, with what it had changed.

        Raises:
            UsageError: it was not pruned, the fan-out is closed, or its work was too large to be
                stored.
        """
        async with self._run.deciding:
            known = self._known(index)
            if known.dropped != "pruned":
                raise UsageError(f"candidate {index} was not pruned")
            if self._run.base is None or self._run.record.is_closed:
                raise UsageError(f"the base of {self.id} is gone; the diff is left")
            store = await self._host.registry.store_of(self._session_id)
            work = None if known.work is None else await store.blob(known.work)
            if work is None:
                raise UsageError(f"what candidate {index} had changed was not stored; its diff is")
            async with self._run.mark.held():
                await self._run.restore(index, work)

    async def open(self, index: int) -> SessionId:
        """The id of a candidate's session, with its overlay open, to go on with it by hand (by
        `app.sessions.get`); `release` ends that.  Meanwhile it counts as at work.

        Raises:
            UsageError: there is no such candidate, nothing of it is left, or the fan-out is at
                work.
        """
        async with self._run.deciding:
            known = self._known(index)
            if not self.is_settled:
                raise UsageError(f"{self.id} is at work; wait, or stop it")
            if not known.child or not self._run.places.has(self.id, str(index)):
                raise UsageError(self._run.why_gone(index))
            return await self._run.open(index)

    async def bring_lesson(self, index: int) -> str:
        """Have the model sum up what a candidate learned, and add that to the session's
        conversation; returns the text.

        Raises:
            UsageError: there is no such candidate, or it has said nothing.
        """
        from weft.api.fan.lesson import bring_lesson

        known = self._known(index)
        if not known.child:
            raise UsageError(f"candidate {index} has said nothing yet")
        return await bring_lesson(self._host, self._session_id, known.child, index)

    async def release(self, index: int) -> None:
        """Be done with a candidate that is open: what it changed is on record, and verified.

        Raises:
            UsageError: it is not open here.
        """
        if self._run.opened != index:
            raise UsageError(f"candidate {index} is not open")
        await self._run.release()

    async def stop(self) -> None:
        """Stop what is at work; what it has done stays."""
        await self._run.stop("stopped")

    async def resume(self, indices: Sequence[int] | None = None) -> None:
        """Go on with candidates that were interrupted or stopped, all of them or these; those of
        the plan that never began are begun, and checks that are missing are made.

        Raises:
            UsageError: it is at work, or there is nothing to go on with.
        """
        async with self._run.deciding:
            if not self.is_settled:
                raise UsageError(f"{self.id} is at work")
            record = self._run.record
            if record.is_closed:
                raise UsageError(f"{self.id} is closed")
            unfinished = self._unfinished(record)
            for index in indices or ():
                if index not in unfinished:
                    raise UsageError(self._why_not_resumed(index))
            wanted = unfinished if indices is None else list(dict.fromkeys(indices))
            if not wanted:
                raise UsageError(
                    f"every candidate of {self.id} has ended; there is nothing to resume"
                )
            self._run.start(wanted)

    def _why_not_resumed(self, index: int) -> str:
        known = self._known(index)
        if known.dropped == "pruned":
            return f"candidate {index} was pruned; there is nothing left to go on with"
        return f"candidate {index} has ended"

    def _unfinished(self, record: FanRecord) -> list[int]:
        count = sum(slot.n for slot in record.started.plan)
        known = record.candidates
        return [
            index
            for index in range(1, count + 1)
            if index not in known
            or (
                known[index].dropped != "pruned"
                and not (known[index].has_finished and record.is_checked(known[index]))
            )
        ]

    async def close(self) -> None:
        """End it: what is at work is stopped, and all overlays are removed."""
        from weft.runtime.fan.fan_index import FanIndex

        index = FanIndex(self._host.services.places.home)
        async with self._run.mark.held():
            await self._run.stop("stopped")
            async with self._run.deciding:
                await self._run.close()
                self._host.fan_runs.pop(self.id, None)
            await anyio.to_thread.run_sync(index.close, self.id)


def _judged(record: FanRecord, known: CandidateRecord) -> int:
    if record.judged is None:
        return 0
    place = record.judged_place(known)
    return place + 1 if place < len(record.judged.order) else 0


def _copies(isolation: str, why: str) -> str:
    ignored = "with clones of ignored files"
    if isolation == "worktree":
        ignored = "without ignored files but those that .worktreeinclude names"
    return (
        f"there is no overlay here ({why}): each candidate works in a copy of the project, "
        f"{ignored}. Its commands run outside the sandbox, so they are asked for (and refused "
        "where no user can be asked), and use the machine's network and ports"
    )


def _can_be_kept(first: FanCandidate) -> bool:
    """Whether the first one is good, and not only better than the others."""
    is_own_work = not first.touches_checks or first.base_tests in ("", "passed")
    has_passed = first.state in ("done", "kept") and first.verify in ("", "passed")
    return has_passed and is_own_work and bool(first.files)


async def begin_fan(
    host: SessionHost,
    session_id: SessionId,
    *,
    prompt: str,
    n: int,
    models: Sequence[str],
    verify: str,
    verify_runs: int,
    base: Literal["now", "head"],
    stop: Literal["all", "verified"],
    budget_usd: float | None,
    judge: str = "",
    input_id: str | None = None,
) -> Fan:
    """Begin a fan-out of a session, and return while its candidates work.

    The id follows from the input id: a repeat finds the fan-out that the first call made.
    """
    from weft.runtime.fan.fan_run import FanOptions

    plan = _plan(host, n, models)
    if stop == "verified" and not verify:
        raise UsageError("to stop when one is verified there must be a verify command")
    if not 1 <= verify_runs <= 20:
        raise UsageError("the check can be run 1 to 20 times")
    fan_id = derived_id("fan", session_id, input_id) if input_id else ""
    options = FanOptions(
        fan_id=fan_id,
        prompt=prompt,
        plan=plan,
        verify=verify,
        verify_runs=verify_runs,
        base=base,
        budget_usd=budget_usd,
        stop=stop,
        judge=judge,
    )
    if judge:
        host.check_model(judge)
        if missing := host.missing_key(judge):
            raise UsageError(missing)
    if not fan_id:
        return await _begin(host, session_id, options)
    async with _lock(host, fan_id):
        return await _begun(host, fan_id) or await _begin(host, session_id, options)


def _lock(host: SessionHost, fan_id: str) -> anyio.Lock:
    return host.fan_locks.setdefault(fan_id, anyio.Lock())


async def _begin(host: SessionHost, session_id: SessionId, options: FanOptions) -> Fan:
    from weft.runtime.fan.fan_run import new_run
    from weft.runtime.fan.stored_fans import sweep_fans

    run = await new_run(host, session_id)
    run.judge = partial(_judge, host, session_id)
    await sweep_fans(host, run.places)
    if host.registry.agents.mode_of(session_id) == "plan":
        raise UsageError("in plan mode nothing is changed, by candidates neither; change the mode")
    await run.begin(options)
    host.fan_runs[run.record.fan_id] = run
    run.start()
    return Fan(host, session_id, run)


async def _judge(host: SessionHost, session_id: SessionId, run: FanRun) -> None:
    from weft.api.fan.judge import judge_ties  # few fan-outs have one

    await judge_ties(host, session_id, run)


async def _begun(host: SessionHost, fan_id: str) -> Fan | None:
    try:
        return await _opened(host, await _entry(host, fan_id))
    except UsageError:
        return None


def _plan(host: SessionHost, n: int, models: Sequence[str]) -> tuple[FanSlot, ...]:
    """Every model in turn, until there are so many candidates."""
    if not 1 <= n <= MOST:
        raise UsageError(f"a fan-out has 1 to {MOST} candidates, not {n}")
    for model in models:
        host.check_model(model)
        if missing := host.missing_key(model):
            raise UsageError(missing)
    if not models:
        return (FanSlot(n=n),)
    n = max(n, len(models))
    counts = [n // len(models) + (place < n % len(models)) for place in range(len(models))]
    return tuple(FanSlot(model=name, n=count) for name, count in zip(models, counts, strict=True))


async def open_fan(host: SessionHost, fan_id: str) -> Fan:
    """A fan-out by its id or a prefix of it, at work here or stored.

    Raises:
        UsageError: there is none, or several.
    """
    entry = await _entry(host, fan_id)
    async with _lock(host, entry.fan_id):
        return await _opened(host, entry)


async def _opened(host: SessionHost, entry: FanEntry) -> Fan:
    from weft.runtime.fan.opened_runs import open_run

    run = await open_run(host, entry)
    run.judge = partial(_judge, host, entry.session_id)
    return Fan(host, entry.session_id, run)


async def _entry(host: SessionHost, fan_id: str) -> FanEntry:
    from weft.runtime.fan.fan_index import FanIndex

    index = FanIndex(host.services.places.home)
    return await anyio.to_thread.run_sync(index.find, fan_id)


async def list_fans(host: SessionHost, project: str | None) -> list[FanSummary]:
    """The fan-outs of a project, the newest first; those of deleted sessions are left out."""
    from weft.runtime.fan.fan_index import FanIndex
    from weft.runtime.fan.stored_fans import read_fan

    index = FanIndex(host.services.places.home)
    found: list[FanSummary] = []
    for entry in await anyio.to_thread.run_sync(index.entries, project):
        try:
            record = await read_fan(host, entry)
        except WeftError:
            continue
        if record.started.agent and record.is_closed:
            continue  # nothing is left to be decided of it
        candidates = record.candidates.values()
        found.append(
            FanSummary(
                id=entry.fan_id,
                session=entry.session_id,
                prompt=record.started.prompt,
                at=record.started.at,
                planned=sum(slot.n for slot in record.started.plan),
                ended=sum(each.ended is not None for each in candidates),
                passed=sum(map(record.has_passed, candidates)),
                kept=tuple(each.index for each in record.kept),
                is_closed=record.is_closed,
                agent=record.started.agent,
            )
        )
    return found
