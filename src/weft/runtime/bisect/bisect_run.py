"""A bisection at work: the states of a session's line, checks on some of them, and the call that
broke it.

Nothing of it goes on record, and nothing in the project changes.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Final

import anyio
import msgspec

from weft.errors import Corrupt, UsageError
from weft.evidence.bisection import (
    BisectCheck,
    BisectState,
    BorderSearch,
    BreakingCall,
    Verdict,
    distinct,
)
from weft.ids import CallUid, NodeId, TurnId
from weft.runtime.bisect.check_ground import CheckGround
from weft.runtime.bisect.line_states import LineState, LineStates
from weft.runtime.bisect.state_layers import StateLayer, state_layer
from weft.runtime.bisect.turn_steps import CallWords, TurnStep, steps_of
from weft.runtime.snapshots.node_files import NodeFiles
from weft.state import SessionState
from weft.store import Store

MOST_JOBS: Final = 64
MOST_CALLS: Final = 10
"""Calls that are named where they cannot be told apart."""
MOST_PATHS: Final = 50
_NO_CHANGE: Final = StateLayer(put={}, gone=())


class BisectOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be found, and how."""

    good: str | int | None = None
    """A turn by its number, or one of its messages; None: before the first."""
    bad: str | int | None = None
    """The same; None: the files as they are now."""
    jobs: int = 1
    """Checks that run at the same time."""
    on_check: Callable[[BisectCheck], None] = lambda check: None
    """Is told of each check when it has ended."""


class BorderFound(msgspec.Struct, frozen=True, kw_only=True):
    """What a search came to, before it is put in words."""

    outcome: str
    good: LineState | None = None
    bad: LineState | None = None
    calls: tuple[BreakingCall, ...] = ()
    paths: tuple[str, ...] = ()

    @property
    def turn_id(self) -> TurnId | None:
        """The turn that broke it."""
        return None if self.bad is None else self.bad.turn_id

    @property
    def branch_at(self) -> NodeId | None:
        """The last message before what broke it."""
        if self.outcome == "found" and self.bad is not None and self.bad.about.kind == "turn":
            return self.bad.parent
        return None if self.good is None else self.good.about.node


class BisectRun:
    """One bisection."""

    def __init__(
        self,
        ground: CheckGround,
        state: SessionState,
        store: Store,
        options: BisectOptions,
    ) -> None:
        self._ground = ground
        self._state = state
        self._store = store
        self._options = options
        self._states: list[LineState] = []
        self._moving: set[str] = set()
        self.checks: list[BisectCheck] = []
        self.notes: list[str] = []

    @property
    def states(self) -> tuple[BisectState, ...]:
        """All states, once they are known."""
        return tuple(each.about for each in self._states)

    async def run(self) -> BorderFound:
        """See it to its end.

        Raises:
            UsageError: the files are not known, an end is not on the line, or the checks have no
                place.
        """
        return await self._ground.with_pinned(self._found)

    async def _found(self) -> BorderFound:
        # What is on the move is put into every layer, so that no check depends on it.
        self._moving = await self._ground.look(self._state, self._store)
        tree = self._ground.tree
        states = await LineStates(self._state, self._store).look(tree.digest)
        self._states = _numbered(self._chosen(states))
        self.notes += self._ground.notes
        if len({each.key for each in self._states}) < 2:
            return BorderFound(outcome="nothing")
        return await self._searched()

    # -- what there is

    def _chosen(self, states: list[LineState]) -> list[LineState]:
        """The states between the two ends that were asked for."""
        good, bad = self._options.good, self._options.bad
        first = 0 if good is None else self._end(states, good, "good")
        last = len(states) - 1 if bad is None else self._end(states, bad, "bad")
        if states and first >= last:
            raise UsageError(
                "there are no other files between the good end and the bad one"
                if good is not None or bad is not None
                else "the session has one state of files: nothing can have broken"
            )
        return states[first : last + 1]

    def _end(self, states: Sequence[LineState], name: str | int, end: str) -> int:
        """The state at the end of a turn, or the last one before it that is known."""
        turn = name if isinstance(name, int) else self._turn_of(name, end)
        most = max((each.about.turn for each in states), default=0)
        if not states or not 0 <= turn <= most:
            raise UsageError(f"the {end} end: there is no turn {turn}; there are 1 to {most}")
        known = [
            index
            for index, each in enumerate(states)
            if each.about.kind == "turn" and each.about.turn <= turn
        ]
        return known[-1] if known else 0

    def _turn_of(self, name: str, end: str) -> int:
        line = LineStates(self._state, self._store)
        turns = {line.turn_of(node) for node in self._state.tree.nodes if node.startswith(name)}
        turn = turns.pop() if name and len(turns) == 1 else None
        if turn is None:
            raise UsageError(f"the {end} end: {name!r:.60} is no turn, and no message of this line")
        return turn

    # -- the search

    async def _searched(self) -> BorderFound:
        search = await self._driven(BorderSearch(distinct([each.key for each in self._states])))
        last = len(self._states) - 1
        if search.verdict(last) == "good" and self._states[last].about.kind == "now" and last > 1:
            # Mended since, and not by the session: what broke it is found all the same.
            before = BorderSearch(distinct([each.key for each in self._states[:-1]]))
            await self._driven(before)
            if before.verdict(last - 1) == "bad":
                self.notes.append("the check passes on the files as they are now")
                search, last = before, last - 1
        if (why := self._why_no_border(search, last)) is not None:
            return why
        return await self._at_border(search)

    async def _driven(self, search: BorderSearch) -> BorderSearch:
        async def take(index: int) -> None:
            search.take(index, await self._verdict(index))

        await _each_wanted(search, self._options.jobs, take)
        return search

    def _why_no_border(self, search: BorderSearch, last: int) -> BorderFound | None:
        """Why there is nothing to be found between the ends; None where there is."""
        good, bad = self._states[0], self._states[last]
        match search.verdict(last):
            case "good":
                return BorderFound(outcome="good_at_end", bad=bad)
            case "none":
                return BorderFound(outcome="no_verdict", bad=bad)
            case _:
                pass
        match search.verdict(0):
            case "bad":
                return BorderFound(outcome="bad_at_start", good=good)
            case "none":
                return BorderFound(outcome="no_verdict", good=good)
            case _:
                return None

    async def _at_border(self, search: BorderSearch) -> BorderFound:
        known: dict[int, Verdict] = {search.bad: "bad", search.good: "good"}
        doubtful = [
            index for index in known if await self._verdict(index, is_again=True) != known[index]
        ]
        if doubtful:
            first, last = search.certain(doubtful)
            good = self._states[first] if first >= 0 else None
            bad = self._states[last] if last >= 0 else None
            return BorderFound(outcome="flaky", good=good, bad=bad)
        good, bad = self._states[search.good], self._states[search.bad]
        paths = await self._paths_between(good, bad)
        if search.bad - search.good > 1:
            return BorderFound(outcome="range", good=good, bad=bad, paths=paths)
        calls = await self._calls_of(bad)
        return BorderFound(outcome="found", good=good, bad=bad, calls=calls, paths=paths)

    # -- checks

    async def _verdict(self, index: int, *, is_again: bool = False) -> Verdict:
        """Run the check on a state; one that cannot be made is put down as such."""
        about = self._states[index].about
        if about.why:
            return "none"
        try:
            layer = await self._layer(self._states[index])
            return await self._check(index, about.name, layer, is_again=is_again)
        except (Corrupt, UsageError) as error:
            about = msgspec.structs.replace(about, why=str(error))
            self._states[index] = msgspec.structs.replace(self._states[index], about=about)
            return "none"

    async def _check(
        self,
        index: int,
        name: str,
        layer: StateLayer,
        *,
        is_again: bool = False,
        call: CallUid | None = None,
    ) -> Verdict:
        run = await self._ground.run(layer)
        check = BisectCheck(
            state=index,
            name=name,
            verdict=run.verdict,
            exit_code=run.exit_code,
            seconds=round(run.seconds, 3),
            detail=run.detail,
            output=run.output,
            is_again=is_again,
            call=call,
        )
        self.checks.append(check)
        self._options.on_check(check)
        return run.verdict

    async def _layer(self, state: LineState) -> StateLayer:
        """What has to be seen over the project, for a state.

        Raises:
            UsageError: it cannot be rebuilt.
            Corrupt: the same.
        """
        if state.about.kind == "now":
            return _NO_CHANGE
        assert state.files is not None
        return self._layer_of(await state.files())

    def _layer_of(self, files: NodeFiles) -> StateLayer:
        hides = not self._ground.why_copies
        moving = {*self._moving, *self._ground.moving}
        layer = state_layer(files, self._ground.now, moving, hides_secrets=hides)
        if layer.why_not:
            raise UsageError(layer.why_not)
        return layer

    # -- what broke it

    async def _paths_between(self, good: LineState, bad: LineState) -> tuple[str, ...]:
        before, after = await self._looks(good), await self._looks(bad)
        changed = [
            path for path in before.keys() | after.keys() if before.get(path) != after.get(path)
        ]
        return tuple(sorted(changed)[:MOST_PATHS])

    async def _looks(self, state: LineState) -> dict[str, tuple[int, str]]:
        if state.files is None:
            now = self._ground.now.items()
            return {path: (each.mode, each.hash) for path, each in now if not each.is_folder}
        files = (await state.files()).files.items()
        return {path: (each.mode, each.content or "") for path, each in files if not each.is_folder}

    async def _calls_of(self, bad: LineState) -> tuple[BreakingCall, ...]:
        """The call that broke it, or those among which it is."""
        steps = await steps_of(bad, self._store)
        if not steps:
            return ()
        found = steps if len(steps) == 1 else await self._among(bad, steps)
        words = CallWords(self._state, self._store, bad.steps)
        return tuple([await words.of(step) for step in found[:MOST_CALLS]])

    async def _among(self, bad: LineState, steps: list[TurnStep]) -> list[TurnStep]:
        """The steps of a turn halved, as the turns were."""
        search = BorderSearch(range(len(steps) + 1))
        search.take(len(steps), "bad")
        search.take(0, "good")

        async def take(index: int) -> None:
            search.take(index, await self._after(bad, steps[index - 1]))

        await _each_wanted(search, self._options.jobs, take)
        return steps[search.good : search.bad]

    async def _after(self, bad: LineState, step: TurnStep) -> Verdict:
        assert bad.files_after is not None
        try:
            layer = self._layer_of(await bad.files_after(step.count))
            name = f"inside {bad.about.name}"
            return await self._check(bad.about.index, name, layer, call=step.call_uid)
        except (Corrupt, UsageError):
            return "none"


def _numbered(states: Sequence[LineState]) -> list[LineState]:
    return [
        msgspec.structs.replace(each, about=msgspec.structs.replace(each.about, index=index))
        for index, each in enumerate(states)
    ]


async def _each_wanted(
    search: BorderSearch, jobs: int, take: Callable[[int], Coroutine[None, None, None]]
) -> None:
    while wanted := search.wanted(jobs):
        async with anyio.create_task_group() as group:
            for index in wanted:
                group.start_soon(take, index)
