"""Room for the requests of a turn: when a line is compacted by itself, and what happens where that
cannot be had.

Only before a model call, when every call of the answer before is settled: never inside a batch of
tool calls.  Results that can be fetched again go first.  From the soft threshold on it waits for a
natural boundary (a new turn, a finished task) and does without a summary that cannot be had.  From
the hard one on room is made in any case, by a list of the steps where no model writes a summary,
and by cutting results that are too long for the window.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice, takewhile
from typing import Final

import anyio.lowlevel
import msgspec

from weft.context import (
    LineEntry,
    RoomLevel,
    cleared_tokens,
    first_of_steps,
    results_to_clear,
    results_to_shorten,
    room,
)
from weft.events import ErrorRaised, Fact, ResultsCleared, SystemNote
from weft.faults import FailPointPair
from weft.ids import CallUid, NodeId, TurnId
from weft.loop.base import ModelEnvironment
from weft.loop.compaction.summary import (
    COOL_DOWN_SHARE,
    CompactionPlan,
    Need,
    NotSummarised,
    ask_hooks,
    line_tokens,
    list_steps,
    plan,
    summarise,
)
from weft.loop.compaction.worker import work_on
from weft.loop.pending_facts import PendingFacts
from weft.loop.turn_line import TurnLine
from weft.loop.usage import UsageTracker
from weft.messages import ToolCall
from weft.sha256 import sha256

_COMPACT = FailPointPair("loop.make_room")

NOTES_SEEN: Final = 200
"""How many of the newest notes are looked through for a summary that failed."""
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
        self._was_asked = False
        """The hooks have allowed it for the coming call."""
        self._could_not = False
        """The model could not write a summary: it is not asked again in this turn."""
        self._said_so = False

    def use_other_model(self) -> None:
        """Another model may do what the one before could not."""
        self._could_not = False

    async def before_call(self, level: RoomLevel) -> str:
        """Make room; returns why the turn has to end instead, empty when it may go on."""
        self._was_asked = False
        if level == "soft":
            await self._make_room_soon()
            return ""
        if self._progress.is_going_round(self._line.entries):
            return NO_PROGRESS
        if not await self._clear() or self._level == "hard":
            await self._compact(await self._plan("full"), must=True)
        await self._shorten(self._beyond_hard)
        # Not even without room for the answer: the vendor would refuse it, and then fewer of the
        # newest steps stay as they are, too.
        if self._is_beyond_room:
            await self._compact(await self._plan("overflow"), must=True)
        if self._level == "hard" and not (self._said_so or self._may_not):
            self._said_so = True
            self._pending.note(SystemNote(text=NO_ROOM, level="warning"))
        return ""

    async def after_overflow(self) -> bool:
        """The vendor says that the request does not fit: make it shorter, if that is possible."""
        self._was_asked = False
        if await self._compact(await self._plan("overflow"), must=True):
            return True
        return await self._shorten(self._line.compose().tokens // 2)

    async def _make_room_soon(self) -> None:
        # What the user has undone is not done again before it has to be.
        if not is_at_boundary(self._line.entries) or self._is_undone:
            return
        if not await self._clear() and not (self._could_not or await self._has_just_failed()):
            await self._compact(await self._plan("soon"), must=False)

    async def _has_just_failed(self) -> bool:
        """Whether this model could not write a summary, and little was said since."""
        # From the record: each turn has a room maker of its own, and would ask, and pay, again.
        notes = islice(reversed(self._env.journal.state.tree.notes), NOTES_SEEN)
        failed = {note.node for note in notes if note.text.startswith(self._no_summary)}
        since = list(takewhile(lambda e: e.node.id not in failed, reversed(self._line.entries)))
        if len(since) == len(self._line.entries):
            return False
        space = room(self._env.window_left, self._env.model.info.max_output_tokens)
        return await work_on(since, line_tokens, since) < space * COOL_DOWN_SHARE

    @property
    def _no_summary(self) -> str:
        return f"{self._env.model_name} wrote no summary: "

    @property
    def _is_undone(self) -> bool:
        tree = self._env.journal.state.tree
        return tree.undone is not None and tree.undone.upto in tree.walk_up(tree.head)

    @property
    def _env(self) -> ModelEnvironment:
        return self._environment()

    @property
    def _is_beyond_room(self) -> bool:
        space = room(self._env.window_left, self._env.model.info.max_output_tokens)
        return self._line.compose().tokens > space

    @property
    def _level(self) -> RoomLevel:
        return self._env.room_level(self._line.compose().tokens)

    async def _plan(self, need: Need) -> CompactionPlan | None:
        output = self._env.model.info.max_output_tokens
        return await plan(self._line.context, self._env.window_left, output, need)

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
        await self._read_back()
        return True

    async def _read_back(self) -> None:
        """Read the line again: what was appended counts from then on, and this turn is to see what
        every later one will.
        """
        await self._line.load()
        # To read a long line and to compose it are several milliseconds each.
        await anyio.lowlevel.checkpoint()

    # -- results

    async def _clear(self) -> bool:
        """Clear results that can be fetched again; False where that is not enough."""
        line, info = self._line.context, self._env.model.info
        work = partial(
            results_to_clear,
            line.entries,
            first_of_steps(line.entries),
            frozenset(self._env.journal.state.files.touched),
            used=self._line.compose().tokens,
            space=room(self._env.window_left, info.max_output_tokens),
            cleared=_wholly(line.cleared),
        )
        uids = await work_on(line.entries, work)
        return await self._put_cleared(dict.fromkeys(uids, 0))

    async def _shorten(self, excess: int) -> bool:
        """Cut results that are too long for the window; False where there is nothing to cut."""
        if excess <= 0:
            return False
        line = self._line.context
        given = (line.entries, excess, _wholly(line.cleared))
        results = await work_on(line.entries, results_to_shorten, *given)
        return await self._put_cleared(results)

    @property
    def _beyond_hard(self) -> int:
        """Tokens that are too many even for the hard threshold."""
        space = room(self._env.window_left, self._env.model.info.max_output_tokens)
        return self._line.compose().tokens - int(space * self._env.limits.hard_share)

    async def _put_cleared(self, results: Mapping[CallUid, int]) -> bool:
        if not results or not await self._may():
            return False
        line, before = self._line.context, self._line.compose().tokens
        # Of what is excluded, too: put back, it is read as it was.
        whole = self._line.entries
        kept = [uid for entry in whole for uid in entry.results if uid in line.cleared]
        every = {**{uid: line.cleared[uid] for uid in kept}, **results}
        freed = await work_on(line.entries, cleared_tokens, line.entries, results)
        self._progress.take(line.entries)
        self._pending.note(
            ResultsCleared(
                upto=self._line.last.id,
                results=every,
                tokens_before=before,
                tokens_after=before - freed,
            )
        )
        await self._pending.commit(_COMPACT)
        await self._read_back()
        return True

    async def _may(self) -> bool:
        if self._may_not or self._was_asked:
            return not self._may_not
        self._env.journal.status("thinking")
        self._was_asked = True
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
            text, node = f"{self._no_summary}{why}", self._line.last.id
            self._pending.note(SystemNote(text=text, level="warning", node=node))
        if not must:
            return ()
        try:
            return await list_steps(self._env, wanted, why)
        except NotSummarised:
            return ()


def _wholly(cleared: Mapping[CallUid, int]) -> set[CallUid]:
    return {uid for uid, kept in cleared.items() if not kept}


def is_at_boundary(line: Sequence[LineEntry]) -> bool:
    """Whether this is a good moment to compact: a turn begins, or a task was just finished."""
    if not line or line[-1].node.role == "user":
        return bool(line)
    now = _tasks_done(line[-1])
    if not now:
        return False
    # Each call gives the whole list: what was done before stands in it as done again.
    lists = (_tasks_done(entry) for entry in reversed(line[:-1]))
    before = next((done for done in lists if done is not None), None)
    return bool(now - (before or frozenset()))


def _tasks_done(entry: LineEntry) -> frozenset[str] | None:
    """The tasks that an answer lists as done; None where it has no list."""
    lists = [call.args.get("todos") for call in entry.node.calls if call.name == "todo"]
    if not lists:
        return None
    # What a model wrote may have any form.
    listed = lists[-1] if isinstance(lists[-1], list) else []
    return frozenset(
        str(each.get("text"))
        for each in listed
        if isinstance(each, dict) and each.get("status") == "done"
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
        # Compacted, and then cut as well, all before one call: the second step would find nothing
        # since the first and start the count anew.
        if line and line[-1].node.id == self._tip:
            return
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
    return sha256(form).digest()
