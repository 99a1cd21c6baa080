"""Rounds of tool calls, with loop detection: the calls of each answer are run, and a model that
goes round in circles or makes mistakes is noticed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from weft.events import Fact, FinishReason, NewMessage
from weft.ids import CallUid
from weft.loop.base import ToolCallEnvironment
from weft.loop.pending_facts import PendingFacts
from weft.loop.tool_calls import ToolCallBatch
from weft.loop.turn_line import TurnLine
from weft.messages import Node, ToolCall, ToolResult
from weft.sha256 import sha256
from weft.state import SessionState

NO_PROGRESS = (
    "You have made the same calls with the same results several times. "
    "Do something else, or say what keeps you from going on."
)


class ProgressWatch:
    """Notices the same calls with the same results, again and again."""

    def __init__(self, repeats: int) -> None:
        self._repeats = repeats
        self._last = b""
        self._times = 0
        self._nudged = False
        self.is_stuck = False

    def should_nudge(
        self, calls: Sequence[ToolCall], results: Mapping[CallUid, ToolResult]
    ) -> bool:
        """Take one more round in; True when it is time to warn the model."""
        # Results count as much as calls: asking for the state of a build again and again is
        # progress as long as the answer changes.
        seen = _fingerprint(calls, results)
        if seen != self._last:
            self._last, self._times, self._nudged = seen, 0, False
        self._times += 1
        if self._times < self._repeats:
            return False
        # Counted from zero after the nudge, so that the model has as many rounds again to do
        # something else.
        self._times = 0
        self.is_stuck, self._nudged = self._nudged, True
        return not self.is_stuck


class ToolRounds:
    """The calls of one answer after the other."""

    def __init__(self, pending: PendingFacts, line: TurnLine, repeats: int) -> None:
        """`repeats` is `TurnLimits.repeats`."""
        self._pending = pending
        self._line = line
        self._watch = ProgressWatch(repeats)
        self.mistakes = 0
        """Answers in a row that could not be acted on."""
        self.mistake: FinishReason = "mistakes"
        """What was wrong with the last of them."""
        self.halted = ""
        """Why a hook wants the turn to end; empty when none does."""
        self.beyond = ""
        """The limit that calls were beyond, and so not run; empty when none were."""

    @property
    def is_stuck(self) -> bool:
        """The model goes round in circles, and a warning did not help."""
        return self._watch.is_stuck

    async def run(
        self,
        environment: ToolCallEnvironment,
        node: Node,
        calls: tuple[ToolCall, ...],
        *,
        was_cut: bool = False,
        submit: str = "",
    ) -> None:
        """Settle calls of an answer; the results are noted, and in the line.

        `was_cut`: the output limit fell into the last of them.  Calls of the tool `submit`
        are not counted.
        """
        batch = ToolCallBatch(environment, self._pending, node.id)
        over = self._over(environment, node, submit)
        await batch.run(tuple(call for call in calls if call.call_uid not in over))
        batch.leave([call for call in calls if call.call_uid in over], f"Not run: {self.beyond}.")
        await _save_files(environment, self._pending)
        self._line.take_results(node, batch.results)
        self.mistakes = 0 if batch.ran else self.mistakes + 1
        is_malformed = all(call.raw_args for call in calls)
        self.mistake = "length" if was_cut else "malformed_call" if is_malformed else "mistakes"
        # The first reason stays: a later round is only there to settle what was open.
        self.halted = self.halted or batch.halted
        if self._watch.should_nudge(calls, batch.results):
            self._pending.nudge(NO_PROGRESS)

    def _over(
        self, environment: ToolCallEnvironment, node: Node, submit: str
    ) -> frozenset[CallUid]:
        """Those of an answer's calls that are beyond the limit of the turn."""
        limit = environment.limits.max_tool_calls
        if limit is None:
            return frozenset()
        made = _calls_before(environment.journal.state, self._pending.facts, node)
        counted = [call.call_uid for call in node.calls if call.name != submit]
        over = frozenset(counted[max(0, limit - made) :])
        if over:
            most = "1 tool call" if limit == 1 else f"{limit} tool calls"
            self.beyond = f"the limit of {most} in one turn is reached"
        return over

    def count_mistake(self, nudge: str, mistake: FinishReason = "mistakes") -> None:
        """An answer without calls could not be acted on; `nudge` says to the model what to do."""
        self.mistakes += 1
        self.mistake = mistake
        self._pending.nudge(nudge)


async def _save_files(environment: ToolCallEnvironment, pending: PendingFacts) -> None:
    """Let the files as a round has left them go on record with its results, for other hosts."""
    snapshots, state = environment.snapshots, environment.journal.state
    if snapshots is not None and snapshots.saves and state.files.had_effect:
        pending.note_commit(await snapshots.saved(state, pending.facts))


def _calls_before(state: SessionState, noted: Sequence[Fact], node: Node) -> int:
    """Tool calls of the turn's answers before `node`; those included that are only noted."""
    done = state.turn.open.calls if state.turn.open is not None else 0
    new = (fact.node for fact in noted if isinstance(fact, NewMessage))
    return done + sum(len(each.calls) for each in new if not each.is_partial) - len(node.calls)


def _fingerprint(calls: Sequence[ToolCall], results: Mapping[CallUid, ToolResult]) -> bytes:
    # Without ids and durations, which differ in every round.
    round_ = [
        (call.name, call.args, results[call.call_uid].text)
        for call in calls
        if call.call_uid in results
    ]
    return sha256(msgspec.json.encode(round_)).digest()
