"""Compaction: the older part of a line is given to the model as a summary from now on.

The log is untouched: a compaction is one more fact about a line, and can be undone.  It happens on
demand, by itself before a request would not fit, and once after a vendor said that it did not.  It
is never made twice for the same content: the cut must lie beyond the last one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final, Literal, TypeAlias

import anyio
import msgspec

from weft.context import (
    INSTRUCTIONS,
    KEPT_SHARE,
    RECORD_HEADING,
    STEPS,
    STEPS_SHARE,
    ContextTarget,
    LineEntry,
    bounded_summary,
    carried,
    checked,
    choose_cut,
    compacted_message,
    cut_middle,
    estimate,
    estimate_text,
    finished_tasks,
    framed,
    gather,
    kept_blocks,
    lone_request_digest,
    notes_for_model,
    render,
    room,
    step_list,
    tasks_on,
    transcript,
)
from weft.errors import ContextTooLong
from weft.events import (
    Compacted,
    ErrorRaised,
    Fact,
    FinishReason,
    KeptRecord,
    ModelCallStarted,
    UsageRecorded,
)
from weft.faults import FailPointPair
from weft.ids import NodeId, TurnId, new_id, new_node_id
from weft.loop.answer import BLOCKED, ModelAnswer
from weft.loop.base import Commit, ContextLine, ModelEnvironment
from weft.loop.budget import refusal
from weft.loop.compaction.worker import work_on
from weft.loop.hooks import Trigger, TurnHooks
from weft.loop.model_retry import BrokenAnswer, ModelCallAttempts
from weft.loop.pending_facts import PendingFacts
from weft.messages import NOTHING_USED, ChatMessage, Text, Usage
from weft.providers import ModelRequest
from weft.state import SessionState

_COMPACT = FailPointPair("loop.compact")


Need: TypeAlias = Literal["soon", "full", "overflow", "request", "all"]
"""Why there is to be a compaction: this is a good moment, it would hardly fit, it did not, the user
asks for it, and asks for it though all of it would fit."""

LEAST_GAIN: Final = 50
LEAST_GAIN_SHARE: Final = 0.1
"""Tokens (and the share of the room) that must go for an automatic compaction.

Less is not worth a model call.
"""
COOL_DOWN_SHARE: Final = 0.2
"""The same, where there is still some room: so much is said between two compactions."""


UNANSWERED: Final = ModelAnswer(parts=(), usage=NOTHING_USED, stop=None)
"""What comes of a call that brought nothing: it is over, and no usage of it was reported."""


class CompactionPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be summarised, and up to where."""

    entries: tuple[LineEntry, ...]
    upto: NodeId
    tail: tuple[LineEntry, ...] = ()
    """What stays word for word behind it."""
    before: str = ""
    """The summary that stands there already."""
    kept: KeptRecord | None = None
    """What the compaction before has kept."""
    pinned: tuple[LineEntry, ...] = ()
    """What is pinned in the part that `before` stands for."""
    unpinned: tuple[LineEntry, ...] = ()
    """What was pinned there, and is no more."""
    tokens: int = 0
    """What it is all together now."""
    space: int = 0
    """Tokens that there is room for."""
    must_gain: bool = False
    """It is not made unless it is shorter than what it stands for."""


async def plan(
    line: ContextLine, window: int, most_output: int, need: Need
) -> CompactionPlan | None:
    """What to compact of a line; None when there is nothing (new) to gain.

    `window` is what the prefix leaves of the model's.
    """
    return await work_on(line.entries, _plan, line, window, most_output, need)


def _plan(line: ContextLine, window: int, most_output: int, need: Need) -> CompactionPlan | None:
    space = room(window, most_output)
    cut = _cut(line.entries, space, need)
    entries = tuple(line.entries[:cut])
    tokens = line_tokens(line.entries) + estimate_text(len(line.summary))
    # A summary costs a model call and the vendor's cache of the line. For a few tokens it would be
    # due again before the next call.
    if not entries or line_tokens(entries) < _least_gain(space, need, tokens):
        return None
    before = line.compacted
    return CompactionPlan(
        entries=entries,
        upto=entries[-1].node.id,
        tail=tuple(line.entries[cut:]),
        before="" if before is None else before.summary,
        kept=None if before is None else before.kept,
        pinned=line.pinned,
        unpinned=line.unpinned,
        tokens=line_tokens(entries) + estimate_text(len(line.summary)),
        # The vendor counts otherwise than we do: what it refused is more than there is room for.
        space=min(space, tokens) if need == "overflow" else space,
        # An automatic one that gains nothing would be tried again before every call. One that the
        # user asked for is made: they may want it for its focus.
        must_gain=need in ("soon", "full"),
    )


def _cut(entries: Sequence[LineEntry], space: int, need: Need) -> int:
    if need == "all":
        return len(entries)
    keep = int(space * KEPT_SHARE)
    if need == "overflow":
        # The vendor counts otherwise than we do, or its window is smaller: only the line itself
        # shows what there is to gain.
        keep = min(keep, int(line_tokens(entries[:-1]) * KEPT_SHARE))
        return choose_cut(entries, keep)
    return choose_cut(entries, keep, steps=STEPS, most_tokens=int(space * STEPS_SHARE))


def line_tokens(entries: Sequence[LineEntry]) -> int:
    """About how much these are."""
    return sum(estimate(render(entry, ContextTarget("", ""))) for entry in entries)


def _least_gain(space: int, need: Need, tokens: int) -> int:
    if need == "soon":
        return max(LEAST_GAIN, int(space * COOL_DOWN_SHARE))
    # What is beyond the room would be refused as it is: then anything is worth it.
    if need == "full" and tokens <= space:
        return max(LEAST_GAIN, int(space * LEAST_GAIN_SHARE))
    return 0


async def ask_hooks(
    hooks: TurnHooks | None, trigger: Trigger, focus: str = ""
) -> tuple[str, Sequence[Fact]]:
    """Ask the hooks before a compaction: why there is to be no compaction (empty when there may be
    one), and what they want on record.
    """
    if hooks is None:
        return "", ()
    ruling = await hooks.before_compaction(trigger, focus)
    return (ruling.reason if ruling.verdict == "deny" else ""), ruling.facts


class NotSummarised(Exception):
    """The model could not be made to write a summary."""


class PreparedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a compaction carries, whatever the summary says."""

    blocks: tuple[str, ...]
    kept: KeptRecord
    finished: tuple[str, ...]
    """Tasks that no summary may show as open."""


async def prepared_record(environment: ModelEnvironment, wanted: CompactionPlan) -> PreparedRecord:
    """Take from the record what is carried."""
    state, line = environment.journal.state, (*wanted.entries, *wanted.tail)
    work = partial(gather, pinned=frozenset(state.tree.pins), unpinned=wanted.unpinned)
    given = (wanted.entries, wanted.tail, wanted.kept, wanted.space)
    kept = await work_on(line, work, *given)
    line = (*wanted.pinned, *wanted.entries)
    blocks = carried(state, line, kept, wanted.space, wanted.tail)
    return PreparedRecord(
        blocks=(RECORD_HEADING, *blocks),
        kept=kept,
        finished=tuple(finished_tasks(tasks_on(state, kept, wanted.tail), kept.done)),
    )


async def summarise(
    environment: ModelEnvironment,
    wanted: CompactionPlan,
    focus: str,
    turn_id: TurnId | None,
    *,
    trigger: Trigger,
    note: Callable[[Fact], None],
    begin: Callable[[], Awaitable[object]],
) -> list[Fact]:
    """Have the model write the summary; returns the facts that make it count.

    Each call is noted and, by `begin`, on record before it is made; what it used is noted in any
    case, at once.

    Raises:
        NotSummarised: the model could not be made to write it.
    """
    record = await prepared_record(environment, wanted)
    seconds = environment.limits.summary_seconds
    answer: ModelAnswer | None = None
    # A model that hangs must not hold the turn, and what is typed meanwhile, for ever.
    with anyio.move_on_after(seconds):
        answer = await _answer(environment, wanted, record, focus, turn_id, note, begin)
    if answer is None:
        raise NotSummarised(f"the model took longer than {seconds:g} s")
    text = _said(answer).strip()
    if not text or answer.stop in BLOCKED:
        raise NotSummarised("the model gave no summary")
    return await _made(environment, wanted, record, text, trigger)


async def list_steps(environment: ModelEnvironment, wanted: CompactionPlan, why: str) -> list[Fact]:
    """The facts of a compaction whose summary no model could be made to write: the record, and the
    steps from it.

    Raises:
        NotSummarised: it would gain nothing.
    """
    record = await prepared_record(environment, wanted)
    given = (wanted.entries, wanted.before, wanted.space, why)
    text = await work_on(wanted.entries, step_list, *given)
    return await _made(environment, wanted, record, text, "auto")


async def _made(
    environment: ModelEnvironment,
    wanted: CompactionPlan,
    record: PreparedRecord,
    text: str,
    trigger: Trigger,
) -> list[Fact]:
    summary, struck = checked(bounded_summary(text, wanted.space), record.finished)
    compacted = Compacted(
        upto=wanted.upto,
        summary=summary,
        carried=record.blocks,
        kept=record.kept,
        struck=struck,
        tokens_before=wanted.tokens,
    )
    after = estimate_text(len(compacted_message(compacted)))
    if wanted.must_gain and after >= wanted.tokens:
        raise NotSummarised("the summary is no shorter than what it would stand for")
    compacted = msgspec.structs.replace(compacted, tokens_after=after)
    return await _shown(environment.hooks, trigger, compacted)


async def _answer(
    environment: ModelEnvironment,
    wanted: CompactionPlan,
    record: PreparedRecord,
    focus: str,
    turn_id: TurnId | None,
    note: Callable[[Fact], None],
    begin: Callable[[], Awaitable[object]],
) -> ModelAnswer:
    """The model's answer to what fits of the conversation.

    Raises:
        NotSummarised: it has none.
    """
    info = environment.model.info
    # The window in our tokens, as for every other request: a vendor that counts twice as many would
    # refuse what we take for half of it.
    window = int(info.context_window / environment.token_ratio)
    space = room(window, info.max_output_tokens) // 2
    notes = notes_for_model(environment.journal.state.tree)
    line = (*wanted.entries, *wanted.tail)
    while True:
        conversation = await work_on(line, _conversation, wanted, record, space, notes)
        try:
            return await _ask(environment, conversation, focus, turn_id, note, begin)
        except BrokenAnswer as broken:
            # Our estimate is not the vendor's tokenizer, so the transcript itself may not fit. It
            # is halved until it does, or until too little is left to be worth a summary.
            if not isinstance(broken.error, ContextTooLong) or space < 1_000:
                raise NotSummarised(str(broken)) from broken
            space //= 2


def _conversation(
    wanted: CompactionPlan,
    record: PreparedRecord,
    space: int,
    notes: Mapping[NodeId | None, Sequence[str]],
) -> str:
    """What the summarising model reads: the part that goes, what stays, and the record.

    The tail and the record have half as much room as the part that goes: together they fit, too.
    """
    gone = transcript(wanted.entries, space, wanted.before, notes)
    known = cut_middle("\n\n".join((*record.blocks[1:], *kept_blocks(record.kept))), space // 4)
    pieces = [framed("conversation", gone)]
    if known:
        pieces.append(framed("record", known))
    if wanted.tail:
        pieces.append(framed("kept", transcript(wanted.tail, space // 4, "", notes)))
    return "\n\n".join(pieces)


async def _ask(
    environment: ModelEnvironment,
    conversation: str,
    focus: str,
    turn_id: TurnId | None,
    note: Callable[[Fact], None],
    begin: Callable[[], Awaitable[object]],
) -> ModelAnswer:
    """Ask for the summary once; whatever comes of it, what it used is noted."""
    asked = _model_request(environment, conversation, focus)
    started = ModelCallStarted(
        turn_id=turn_id or TurnId(""),
        node=new_node_id(environment.clock.now()),
        model=environment.model_name,
        purpose="compaction",
        input_tokens=estimate_text(len(conversation)),
        digest=lone_request_digest(
            model=environment.model_name,
            system=asked.system,
            thinking=asked.thinking,
            messages=asked.messages,
        ),
    )
    # On record before it is sent: if the process dies now, recovery can count what the call may
    # have used.
    note(started)
    await begin()
    request = ModelCallAttempts(environment, started.node, is_quiet=True)
    answer: ModelAnswer | None = None
    try:
        answer = await request.answer(asked)
        return answer
    finally:
        # Also after a cancel: the vendor bills a summary that no one will read.
        cut_short = [request.partial()] if request.is_billed else []
        made = [*request.discarded, *([answer] if answer is not None else cut_short)]
        for each in made or [UNANSWERED]:
            note(_used(environment, each, started))


async def _shown(hooks: TurnHooks | None, trigger: Trigger, compacted: Compacted) -> list[Fact]:
    """Show the summary to the hooks; what they add is carried with it."""
    if hooks is None:
        return [compacted]
    ruling = await hooks.after_compaction(trigger, compacted.summary)
    if ruling.context:
        carried = (*compacted.carried, ruling.context)
        compacted = msgspec.structs.replace(compacted, carried=carried)
    return [compacted, *ruling.facts]


def _used(
    environment: ModelEnvironment, answer: ModelAnswer, started: ModelCallStarted
) -> UsageRecorded:
    usage = answer.usage or Usage(
        input_tokens=started.input_tokens, output_tokens=estimate_text(len(_said(answer)))
    )
    if usage.cost_usd is None:
        usage = msgspec.structs.replace(usage, cost_usd=environment.model.info.cost(usage))
    return UsageRecorded(
        usage=usage,
        model=environment.model_name,
        purpose="compaction",
        estimated=answer.usage is None,
        turn_id=started.turn_id or None,
        node=started.node,
    )


def _said(answer: ModelAnswer) -> str:
    return "".join(part.text for part in answer.parts if isinstance(part, Text))


def _model_request(environment: ModelEnvironment, conversation: str, focus: str) -> ModelRequest:
    asked = "Write the handover of this conversation."
    if focus:
        asked += f" Pay special attention to: {focus}"
    return ModelRequest(
        model=environment.model.info.name,
        system=INSTRUCTIONS,
        messages=(
            ChatMessage(
                role="user",
                parts=(Text(text=f"{conversation}\n\n{asked}"),),
            ),
        ),
        # A summary needs no thought of its own; a model that cannot do without has its least.
        thinking="off",
        session_id=environment.journal.state.session_id,
    )


class CompactionWork:
    """A compaction that the user asked for; runs where a turn would."""

    def __init__(self, environment: ModelEnvironment, focus: str) -> None:
        self._env = environment
        self._focus = focus
        self._pending = PendingFacts(environment.journal)
        self.turn_id = TurnId(new_id("cmp", environment.clock.now()))
        self.scope = anyio.CancelScope()
        self.abort_reason = ""
        self.ends_as: FinishReason = "aborted"
        self.is_compaction = True
        self.stops_after_step = False
        self.is_suspended = False  # a compaction that the program's end cuts short is over

    async def run(self) -> None:
        """Write the summary and commit it.

        Whatever happens ends in an append, for which the command waits.
        """
        facts: Sequence[Fact] = ()
        with self.scope:
            facts = await self._work()
        if self.scope.cancelled_caught:
            facts = [ErrorRaised(message="it was stopped", where="compaction")]
        self._pending.note(*facts)
        await self._pending.commit(_COMPACT, ends_work=True)

    def settled(self, state: SessionState) -> Commit:
        """What ends it when the model does not let go."""
        stopped = ErrorRaised(message="it was stopped", where="compaction")
        return self._pending.take(
            state, lambda state, noted: [stopped], drop_draft=False, ends_work=True
        )

    async def _work(self) -> list[Fact]:
        window, output = self._env.window_left, self._env.model.info.max_output_tokens
        line = await self._env.journal.line()
        # The user's request is carried out even where the usual cut would leave nothing to
        # summarise.
        wanted = await plan(line, window, output, "request")
        wanted = wanted or await plan(line, window, output, "all")
        if wanted is None:
            return [ErrorRaised(message="there is nothing to compact", where="compaction")]
        if why := await self._beyond_budget():
            return [ErrorRaised(message=why, where="compaction")]
        self._env.journal.status("thinking")
        refused, noted = await ask_hooks(self._env.hooks, "manual", self._focus)
        if refused:
            return [*noted, ErrorRaised(message=refused, where="compaction")]
        try:
            facts = await summarise(
                self._env,
                wanted,
                self._focus,
                None,
                trigger="manual",
                note=self._pending.note,
                begin=lambda: self._pending.commit(_COMPACT),
            )
        except NotSummarised as failure:
            facts = [ErrorRaised(message=str(failure), where="compaction")]
        return [*noted, *facts]

    async def _beyond_budget(self) -> str | None:
        """Why there is no money or tokens left for a summary; it is a model call like any other."""
        is_priced = self._env.model.info.cost(Usage()) is not None
        total = self._env.journal.state.ledger.total
        why = refusal(self._env.limits, total, model=self._env.model_name, is_priced=is_priced)
        budget = self._env.shared_budget
        if why is not None or budget is None or not budget.is_limited:
            return why
        return await budget.refusal(self.turn_id, NOTHING_USED, is_priced=is_priced)
