"""Room for the requests of a turn: when a line is compacted by itself, and what happens where that
cannot be had.

Only before a model call, when every call of the answer before is settled: never inside a batch of
tool calls.  From the soft threshold on it waits for a natural boundary (a new turn, a finished
task) and does without a summary that cannot be had.  From the hard one on room is made in any
case, by a list of the steps where no model writes a summary.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from weft.context import LineEntry, RoomLevel
from weft.events import ErrorRaised, Fact, SystemNote
from weft.faults import FailPointPair
from weft.ids import NodeId, TurnId
from weft.loop.base import ModelEnvironment
from weft.loop.compaction.summary import (
    CompactionPlan,
    Need,
    NotSummarised,
    ask_hooks,
    list_steps,
    plan,
    summarise,
)
from weft.loop.pending_facts import PendingFacts
from weft.loop.turn_line import TurnLine
from weft.loop.usage import UsageTracker
from weft.messages import ToolCall

_COMPACT = FailPointPair("loop.make_room")

NO_PROGRESS: Final = (
    "the conversation filled the window again, and since it was last compacted the model has only "
    "repeated calls that it had made before"
)
NO_ROOM: Final = (
    "the conversation cannot be made shorter: what is left are the instructions, the tools, what "
    "is carried and the newest messages. /rewind, fewer pins or a model with a larger window help"
)


class RoomMaker:
    """Makes room in the line of one turn."""

    def __init__(
        self,
        turn_id: TurnId,
        environment: Callable[[], ModelEnvironment],
        pending: PendingFacts,
        line: TurnLine,
        usage: UsageTracker,
    ) -> None:
        self._turn_id = turn_id
        self._environment = environment
        self._pending = pending
        self._line = line
        self._usage = usage
        self._progress = CallProgress()
        self._may_not = False
        """A hook has refused: asked once a turn, it would be run before every model call."""
        self._could_not = False
        """The model could not write a summary: it is not asked again in this turn."""
        self._said_so = False

    def use_other_model(self) -> None:
        """Another model may do what the one before could not."""
        self._could_not = False

    async def before_call(self, level: RoomLevel) -> str:
        """Make room; returns why the turn has to end instead, empty when it may go on."""
        if level == "soft":
            await self._make_room_soon()
            return ""
        if self._progress.is_going_round(self._line.entries):
            return NO_PROGRESS
        await self._compact(self._plan("full"), must=True)
        if self._level == "hard" and not (self._said_so or self._may_not):
            self._said_so = True
            self._pending.note(SystemNote(text=NO_ROOM, level="warning"))
        return ""

    async def after_overflow(self) -> bool:
        """The vendor says that the request does not fit: make it shorter, if that is possible."""
        return await self._compact(self._plan("overflow"), must=True)

    async def _make_room_soon(self) -> None:
        if not self._could_not and is_at_boundary(self._line.entries):
            await self._compact(self._plan("soon"), must=False)

    @property
    def _env(self) -> ModelEnvironment:
        return self._environment()

    @property
    def _level(self) -> RoomLevel:
        return self._env.room_level(self._line.compose().tokens)

    def _plan(self, need: Need) -> CompactionPlan | None:
        output = self._env.model.info.max_output_tokens
        return plan(self._line.context, self._env.window_left, output, need)

    async def _compact(self, wanted: CompactionPlan | None, *, must: bool) -> bool:
        """Replace the older part of the line by a summary.

        False when that could not be done or gains nothing.
        """
        if wanted is None or not await self._may():
            return False
        facts = await self._facts(wanted, must=must)
        if not facts:
            return False
        self._progress.take(self._line.entries)
        self._pending.note(*facts)
        self._usage.warn_of_budget()
        await self._pending.commit(_COMPACT)
        # The summary counts from its append on. The line is read back, so that this turn sees what
        # every later one will.
        await self._line.load()
        return True

    async def _may(self) -> bool:
        if self._may_not:
            return False
        self._env.journal.status("thinking")
        refused, noted = await ask_hooks(self._env.hooks, "auto")
        self._pending.note(*noted)
        if refused:
            self._may_not = True
            self._pending.note(ErrorRaised(message=refused, where="compaction"))
        return not refused

    async def _facts(self, wanted: CompactionPlan, *, must: bool) -> Sequence[Fact]:
        why = "the model could not write one before"
        try:
            if not self._could_not:
                return await summarise(
                    self._env,
                    wanted,
                    "",
                    self._turn_id,
                    trigger="auto",
                    note=self._pending.note,
                    begin=lambda: self._pending.commit(_COMPACT),
                )
        except NotSummarised as failure:
            self._could_not, why = True, str(failure)
            self._pending.note(SystemNote(text=f"no summary was written: {why}", level="warning"))
        if not must:
            return ()
        try:
            return await list_steps(self._env, wanted, why)
        except NotSummarised:
            return ()


def is_at_boundary(line: Sequence[LineEntry]) -> bool:
    """Whether this is a good moment to compact: a turn begins, or a task was just finished."""
    if not line or line[-1].node.role == "user":
        return bool(line)
    lists = [call.args.get("todos") for call in line[-1].node.calls if call.name == "todo"]
    return any(
        isinstance(each, dict) and each.get("status") == "done"
        for todos in lists
        for each in (todos if isinstance(todos, list) else ())
    )


class CallProgress:
    """Whether a turn gets on between two compactions, or only fetches again what they took."""

    def __init__(self) -> None:
        self._made: set[bytes] = set()
        """The calls that were made by the last compaction."""
        self._tip: NodeId | None = None
        """The end of the line then."""
        self._rounds = 0
        """Times in a row that nothing new was done between two compactions."""

    def take(self, line: Sequence[LineEntry]) -> None:
        """The line is compacted now."""
        self._rounds = self._rounds + 1 if self._only_repeats(line) else 0
        self._made |= {_digest(call) for entry in line for call in entry.node.calls}
        self._tip = line[-1].node.id if line else None

    def is_going_round(self, line: Sequence[LineEntry]) -> bool:
        """Whether nothing but calls that were made before came since the last compaction, and since
        the one before it.
        """
        # Once is no fault: what a compaction took may be needed again.
        return self._rounds > 0 and self._only_repeats(line)

    def _only_repeats(self, line: Sequence[LineEntry]) -> bool:
        places = [place for place, entry in enumerate(line) if entry.node.id == self._tip]
        since = line[places[0] + 1 :] if places else ()
        if not since or any(entry.node.role == "user" for entry in since):
            return False
        calls = [call for entry in since for call in entry.node.calls]
        return all(_digest(call) in self._made for call in calls)


def _digest(call: ToolCall) -> bytes:
    form = msgspec.json.encode([call.name, call.args], order="sorted")
    return hashlib.sha256(form).digest()
