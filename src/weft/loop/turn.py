"""One turn: ask the model, get leave, run tools, again, until it answers without calls.

The turn has no memory that matters: where it stands is in the log.  An open model call is made again, calls without a result are run
or settled, and otherwise the model is asked.  So a turn that starts fresh, goes on after a crash, or is continued by a person
enters the same loop at the place that the state names.

Each step ends in one append.  The answer waits in the notebook until an intent, a request for leave, the next model call or the end of
the turn takes it along; so a round with pure tools costs one append, and one with an effect two.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import anyio
import msgspec

from weft.context import (
    Composed,
    Composer,
    Entry,
    Prefix,
    Target,
    estimate_text,
    is_full,
    notes_for_model,
)
from weft.errors import AuthFailed, BadArguments, ContextTooLong, ProviderError, WeftError
from weft.events import (
    ChildFinished,
    ContextUsage,
    ErrorRaised,
    Fact,
    FinishReason,
    InputPromoted,
    ModelCallStarted,
    NewMessage,
    PrefixFrozen,
    SystemNote,
    TurnFinished,
    UsageRecorded,
)
from weft.faults import Boundary
from weft.ids import BlobId, CallUid, NodeId, TurnId
from weft.loop.answer import Answer
from weft.loop.base import Commit, ContextLine, TurnEnvironment
from weft.loop.batch import Batch
from weft.loop.budget import refusal, warnings
from weft.loop.compaction import (
    Need,
    NotSummarised,
    agreed,
    plan,
    summarise,
    window_left,
)
from weft.loop.notebook import Notebook
from weft.loop.request import BrokenAnswer, Request
from weft.loop.results import touched_facts
from weft.loop.steps import (
    answer_at_tip,
    answer_node,
    call_started,
    promote,
    settle_open_calls,
    tip_after,
    usage_recorded,
)
from weft.messages import NOTHING_USED, Node, Text, ToolCall, ToolResult, Usage
from weft.providers import ModelRequest, ToolSpec
from weft.state import SessionState
from weft.tools import SubmitTool

_CALL = Boundary("loop.call")
_FINISH = Boundary("loop.finish")
_ABORT = Boundary("loop.abort")
_COMPACT = Boundary("loop.make_room")

EMPTY_ANSWER = (
    "Your last answer was empty. Answer with text, or call a tool; say so if the task is done."
)
NO_PROGRESS = (
    "You have made the same calls with the same results several times. "
    "Do something else, or say what keeps you from going on."
)
HOLDS = 3
"""How often hooks may keep one turn from ending."""


LIKELY_OUTPUT = 1_000
"""Tokens of an answer that a family's purse sets aside for it."""


class Turn:
    """A turn on its way."""

    def __init__(self, environment: TurnEnvironment, turn_id: TurnId) -> None:
        self._env = environment
        self.turn_id = turn_id
        self.scope = anyio.CancelScope()
        """Cancelling it aborts the turn."""
        self.abort_reason = ""
        self._notebook = Notebook(environment.journal)
        self._line: list[Entry] = []
        self._context = ContextLine(entries=())
        """As it was read last; what it held then, `_line` has grown beyond."""
        self._compacted_for_overflow = False
        self._may_not_compact = False
        self._could_not_compact = False
        self._expected = NOTHING_USED
        self._request: Request | None = None
        self._in_flight: NodeId | None = None
        self._retries = 0
        self._mistakes = 0
        self._misfits = 0
        self._held_back = 0
        self._halted = ""
        self._watch = _ProgressWatch(environment.limits.repeats)
        info = environment.model.info
        self._composer = Composer(Target(info.provider, info.name))
        self._scratch: dict[int, Any] = {}
        self._tools_told: tuple[Prefix, tuple[ToolSpec, ...]] | None = None

    async def run(self) -> None:
        """Work until the turn is finished; the end is always a `TurnFinished` in the log.

        A cancel from outside `scope` (the process is closing) leaves the turn open: it is interrupted, and can go on.
        """
        try:
            with self.scope:
                await self._work()
            if self.scope.cancelled_caught:
                await self._abort()
        finally:
            if self._env.purse is not None:
                self._env.purse.release(self.turn_id)

    # -- the loop

    async def _work(self) -> None:
        await self._load_line()
        if await self._settle_last_answer():
            return
        while True:
            try:
                self._renew()
            except WeftError as error:
                is_refused = isinstance(error, AuthFailed)
                await self._finish("auth_error" if is_refused else "provider_error", str(error))
                return
            if (stop := self._limit_reached()) is not None:
                await self._finish(*stop)
                return
            answer = await self._ask_model()
            if answer is None:
                return
            if answer.calls:
                node = self._line[-1].node
                await self._run_calls(node)
                if await self._was_handed_in(node):
                    return
            elif await self._is_done(answer):
                return

    async def _load_line(self) -> None:
        self._context = await self._env.journal.line()
        self._line = list(self._context.entries)

    async def _settle_last_answer(self) -> bool:
        """Run what the last answer asked for and what has no result yet; there is such only after an interruption.

        True when that was the end of the turn.
        """
        node = answer_at_tip(self._env.journal.state)
        if node is None:
            return False
        entry = next((entry for entry in self._line if entry.node.id == node), None)
        if entry is None:
            return False
        waiting = set(self._env.journal.state.tree.unsettled(node))
        if waiting:
            calls = tuple(call for call in entry.node.calls if call.call_uid in waiting)
            await self._run_calls(entry.node, calls)
        elif entry is not self._line[-1]:
            return False
        return await self._was_handed_in(entry.node)

    # -- asking

    def _renew(self) -> None:
        """Go on with the model, thinking and limits that the settings name now.

        What the line holds is rendered anew for another model: what only the one before may read again is left out.
        """
        before = self._env
        self._env = before.renewed(before)
        if self._env.model_name != before.model_name:
            info = self._env.model.info
            self._composer = Composer(Target(info.provider, info.name))
            self._could_not_compact = False
            if self._env.prefix.id != before.prefix.id:
                prefix = self._env.prefix
                frozen = PrefixFrozen(prefix=prefix.id, reason="another model")
                self._notebook.note(frozen, blobs={prefix.id: prefix.data})

    def _renew_if_possible(self) -> None:
        """The same, where the next round of the loop will say what is wrong."""
        with contextlib.suppress(WeftError):
            self._renew()

    async def _ask_model(self) -> Answer | None:
        """The model's answer, noted and in the line; None when the turn has ended instead."""
        await self._make_room()
        node = await self._open_call()
        self._env.journal.status("thinking")
        composed = self._compose()
        request = self._request = Request(self._env, node)
        self._in_flight = node
        try:
            answer = await request.answer(self._model_request(composed))
        except BrokenAnswer as broken:
            self._expected = NOTHING_USED
            self._retries += broken.retries
            self._note_discarded(node, request, composed)
            if await self._made_room_after(broken):
                return await self._ask_model()
            await self._give_up(node, broken.error, request, composed)
            return None
        self._expected = NOTHING_USED
        self._compacted_for_overflow = False
        self._retries += request.retries
        self._request = self._in_flight = None
        self._note_discarded(node, request, composed)
        if not answer.parts:
            self._note_usage(node, answer, composed)
            return answer
        self._note_answer(node, answer, composed)
        return answer

    async def _make_room(self) -> None:
        """Compact before the next request would not fit.  When that fails, the request is tried as it is.

        It is not tried again before each call of the turn: then only where the vendor says that a request does not fit.
        """
        used, output = self._compose().tokens, self._env.model.info.max_output_tokens
        if not self._could_not_compact and is_full(used, window_left(self._env), output):
            await self._compact("full")

    async def _made_room_after(self, broken: BrokenAnswer) -> bool:
        """The vendor says that the request does not fit: compact once, and try again."""
        if not isinstance(broken.error, ContextTooLong) or self._compacted_for_overflow:
            return False
        self._compacted_for_overflow = True
        self._request = self._in_flight = None
        return await self._compact("overflow")

    async def _compact(self, need: Need) -> bool:
        """Replace the older part of the line by a summary; False when that could not be done or gains nothing."""
        line = msgspec.structs.replace(self._context, entries=tuple(self._line))
        output = self._env.model.info.max_output_tokens
        wanted = plan(line, window_left(self._env), output, need)
        if wanted is None or self._may_not_compact:
            return False
        self._env.journal.status("thinking")
        refused, told = await agreed(self._env.hooks, "auto")
        self._notebook.note(*told)
        if refused:
            # Asked once a turn: a hook that refuses now would be run before every model call.
            self._may_not_compact = True
            self._notebook.note(ErrorRaised(message=refused, where="compaction"))
            return False
        try:
            facts = await summarise(
                self._env,
                wanted,
                "",
                self.turn_id,
                trigger="auto",
                note=self._notebook.note,
                begin=lambda: self._notebook.commit(_COMPACT),
            )
        except NotSummarised as failure:
            self._could_not_compact = True
            self._notebook.note(ErrorRaised(message=str(failure), where="compaction"))
            return False
        self._notebook.note(*facts)
        self._warn_of_budget()
        await self._notebook.commit(_COMPACT)
        await self._load_line()
        return True

    async def _open_call(self) -> NodeId:
        """Make the model call durable, with everything noted and all steering that waits; returns the answer's node id."""
        state = self._env.journal.state
        turn = state.turn.open
        open_call = turn.call if turn is not None and turn.turn_id == self.turn_id else None
        is_steered = bool(state.queue.waiting("steering"))  # while room was made
        self._renew_if_possible()
        is_as_opened = open_call is not None and open_call.model == self._env.model_name
        if open_call is not None and is_as_opened and not self._notebook.facts and not is_steered:
            return open_call.node

        def more(state: SessionState, noted: Sequence[Fact]) -> list[Fact]:
            # Here, and not before: whoever has set another model by now has set it for this call.
            self._renew_if_possible()
            now = self._env.clock.now()
            started = call_started(self.turn_id, self._env.model_name, self._env.prefix.id, now)
            return [*promote(state, noted, now), started]

        stored = await self._notebook.commit(_CALL, more, drop_draft=True)
        await self._take_into_line(stored)
        return next(fact.node for fact in reversed(stored) if isinstance(fact, ModelCallStarted))

    def _compose(self) -> Composed:
        return self._composer.compose(
            self._line,
            summary=self._context.summary,
            upto=self._context.upto,
            notes=notes_for_model(self._env.journal.state.tree),
        )

    def _model_request(self, composed: Composed) -> ModelRequest:
        prefix = self._env.prefix
        used = self._input_tokens(composed)
        self._env.journal.signal(
            ContextUsage(used=used, window=self._env.model.info.context_window)
        )
        return ModelRequest(
            model=self._env.model.info.name,
            messages=composed.messages,
            system=prefix.prefix.system,
            tools=self._specs(),
            thinking=self._env.thinking,  # type: ignore[arg-type]  # checked when it was set
            session_id=self._env.journal.state.session_id,
            scratch=self._scratch,
        )

    def _specs(self) -> tuple[ToolSpec, ...]:
        """The tools as providers are told of them: the same object for every call, so that they encode it once."""
        prefix = self._env.prefix.prefix
        if self._tools_told is None or self._tools_told[0] is not prefix:
            specs = tuple(
                ToolSpec(name=tool.name, description=tool.description, schema=tool.schema)
                for tool in prefix.tools
            )
            self._tools_told = (prefix, specs)
        return self._tools_told[1]

    def _note_answer(self, node: NodeId, answer: Answer, composed: Composed) -> None:
        usage, _ = self._cost(answer, composed)
        added = answer_node(
            self._env.journal.state, node, answer, model=self._env.model_name, usage=usage
        )
        self._notebook.note(added)
        self._line.append(Entry(node=added.node, results={}))
        self._note_usage(node, answer, composed)

    def _note_partial(self, node: NodeId, request: Request, composed: Composed) -> None:
        """Keep what had come of an answer that broke off, and in any case what it used."""
        partial = request.partial()
        if partial.parts:
            self._note_answer(node, partial, composed)
        elif request.is_billed:
            self._note_usage(node, partial, composed)

    def _note_discarded(self, node: NodeId, request: Request, composed: Composed) -> None:
        """Count what attempts used that were given up."""
        for lost in request.discarded:
            self._note_usage(node, lost, composed)

    def _note_usage(self, node: NodeId, answer: Answer, composed: Composed) -> None:
        usage, estimated = self._cost(answer, composed)
        self._notebook.note(
            usage_recorded(
                usage,
                turn_id=self.turn_id,
                node=node,
                model=self._env.model_name,
                estimated=estimated,
            )
        )
        self._warn_of_budget()

    def _expect(self, composed: Composed) -> None:
        """Set aside what the next call will use, as far as one can tell."""
        if self._env.purse is None or not self._env.purse.is_limited:
            return
        info = self._env.model.info
        expected = Usage(
            input_tokens=self._input_tokens(composed),
            output_tokens=min(LIKELY_OUTPUT, info.max_output_tokens),
        )
        self._expected = msgspec.structs.replace(expected, cost_usd=info.cost(expected))
        self._env.purse.hold(self.turn_id, lambda: self._expected + self._pending())

    def _pending(self) -> Usage:
        """What calls used that is not on record yet."""
        noted = (fact.usage for fact in self._notebook.facts if isinstance(fact, UsageRecorded))
        return sum(noted, NOTHING_USED)

    def _pending_of_children(self) -> Usage:
        """What children used whose ends are not on record yet."""
        noted = (fact.usage for fact in self._notebook.facts if isinstance(fact, ChildFinished))
        return sum((usage for usage in noted if usage is not None), NOTHING_USED)

    def _input_tokens(self, composed: Composed) -> int:
        return composed.tokens + estimate_text(len(self._env.prefix.data))

    def _cost(self, answer: Answer, composed: Composed) -> tuple[Usage, bool]:
        """What the answer used, in money too; an estimate where the vendor did not say."""
        usage = answer.usage
        if usage is None:
            characters = sum(len(part.text) for part in answer.parts if isinstance(part, Text))
            usage = Usage(
                input_tokens=self._input_tokens(composed),
                output_tokens=estimate_text(characters),
            )
        if usage.cost_usd is None:
            usage = msgspec.structs.replace(usage, cost_usd=self._env.model.info.cost(usage))
        return usage, answer.usage is None

    async def _give_up(
        self, node: NodeId, error: ProviderError, request: Request, composed: Composed
    ) -> None:
        """The model cannot be reached: keep what it said so far, and end the turn."""
        self._request = self._in_flight = None
        self._note_partial(node, request, composed)
        reason: FinishReason = "provider_error"
        if isinstance(error, AuthFailed):
            reason = "auth_error"
        elif isinstance(error, ContextTooLong):
            reason = "context_overflow"
        await self._finish(reason, str(error))

    # -- acting

    async def _run_calls(self, node: Node, calls: tuple[ToolCall, ...] | None = None) -> None:
        """Settle the calls of an answer; the results are noted, and in the line."""
        calls = node.calls if calls is None else calls
        batch = Batch(self._env, self._notebook, node.id)
        await batch.run(calls)
        self._take_results_into_line(node, batch.results)
        self._mistakes = 0 if batch.ran else self._mistakes + 1
        self._halted = self._halted or batch.halted
        if self._watch.should_nudge(calls, batch.results):
            self._nudge(NO_PROGRESS)

    async def _is_done(self, answer: Answer) -> bool:
        """End the turn, unless the answer was empty or somebody steered meanwhile."""
        if not answer.says_something and answer.stop != "refusal":
            self._mistakes += 1
            self._nudge(EMPTY_ANSWER)
            return False
        if self._env.submit is not None:
            return await self._is_handed_in_as_text(answer, self._env.submit)
        return await self._finish_unless_steered("stop", answer.detail)

    # -- handing in

    async def _was_handed_in(self, node: Node) -> bool:
        """End the turn if one of these calls handed in a result that fits, or too many did not."""
        submit = self._env.submit
        if submit is None:
            return False
        results = next(entry.results for entry in self._line if entry.node.id == node.id)
        for call in node.calls:
            result = results.get(call.call_uid)
            if call.name != submit.name or result is None:
                continue
            if not result.is_error:
                value = submit.value(call.args)
                return await self._finish_unless_steered("submitted", deliverable=value)
            if await self._does_not_fit(result.text):
                return True
        return False

    async def _is_handed_in_as_text(self, answer: Answer, submit: SubmitTool) -> bool:
        """A plain answer that is the result counts; another one is told to call the tool."""
        text = "".join(part.text for part in answer.parts if isinstance(part, Text))
        try:
            value = submit.read(text)
        except BadArguments as problem:
            if await self._does_not_fit(str(problem), is_final=answer.stop == "refusal"):
                return True
            self._nudge(str(problem))
            return False
        return await self._finish_unless_steered("submitted", answer.detail, value)

    async def _does_not_fit(self, problem: str, *, is_final: bool = False) -> bool:
        """Count a result that does not fit; True when it was the last try, and the turn is over."""
        self._misfits += 1
        if self._misfits <= self._env.limits.repairs and not is_final:
            return False
        await self._finish("schema_failed", problem)
        return True

    def _nudge(self, text: str) -> None:
        state = self._env.journal.state
        node = tip_after(state, self._notebook.facts)
        self._notebook.note(SystemNote(text=text, to_model=True, node=node))

    async def _finish_unless_steered(
        self, reason: FinishReason, detail: str = "", deliverable: Any = None
    ) -> bool:
        if await self._is_held_back():
            return False
        is_over = False

        def more(state: SessionState, noted: Sequence[Fact]) -> list[Fact]:
            nonlocal is_over
            steering = promote(state, noted, self._env.clock.now())
            is_over = not steering
            if is_over and reason == "submitted" and self._env.handed_in is not None:
                return [*self._env.handed_in(state, deliverable)]
            if is_over:
                return [self._finished(state, noted, reason, detail, deliverable)]
            now = self._env.clock.now()
            started = call_started(self.turn_id, self._env.model_name, self._env.prefix.id, now)
            return [*steering, started]

        stored = await self._notebook.commit(_FINISH, more, drop_draft=True)
        await self._take_into_line(stored)
        return is_over

    async def _is_held_back(self) -> bool:
        """Ask the hooks whether the turn may end.  The answer is on record before they run; steering that waits comes first."""
        hooks, state = self._env.hooks, self._env.journal.state
        if hooks is None or not hooks.wants_stop or self._halted or self._held_back >= HOLDS:
            return False
        if state.queue.waiting("steering"):
            return False
        await self._notebook.commit(_FINISH, drop_draft=True)
        ruling = await hooks.before_stop(self._line[-1].node.text, held_back=self._held_back)
        self._notebook.note(*ruling.facts)
        if ruling.verdict != "deny" or ruling.halts:
            return False
        self._held_back += 1
        self._nudge(f"A hook does not let you stop here: {ruling.reason}")
        return True

    # -- ending

    def _limit_reached(self) -> tuple[FinishReason, str] | None:
        limits, state = self._env.limits, self._env.journal.state
        if self._halted:
            return "halted", self._halted
        if self._mistakes >= limits.mistakes:
            return "mistakes", f"{self._mistakes} answers in a row could not be acted on"
        if self._watch.is_stuck:
            return "no_progress", "the same calls with the same results, again and again"
        if _answers_given(state, self._notebook.facts) >= limits.max_turns:
            return "max_turns", f"the limit of {limits.max_turns} answers in one turn is reached"
        return self._budget_reached(state)

    def _budget_reached(self, state: SessionState) -> tuple[FinishReason, str] | None:
        pending = self._pending()
        why = refusal(
            self._env.limits,
            state.ledger.total + pending,
            model=self._env.model_name,
            is_priced=self._is_priced,
        )
        return ("max_budget", why) if why is not None else self._purse_is_empty(pending)

    @property
    def _is_priced(self) -> bool:
        return self._env.model.info.cost(Usage()) is not None

    def _warn_of_budget(self) -> None:
        """Tell the person, once, that most of the budget is used."""
        state, noted = self._env.journal.state, self._notebook.facts
        total = state.ledger.total + self._pending()
        self._notebook.note(*warnings(self._env.limits, total, state, noted))

    def _purse_is_empty(self, pending: Usage) -> tuple[FinishReason, str] | None:
        """Ask for the next call's share of what the family has left; it is set aside in the same instant."""
        purse = self._env.purse
        if purse is None or not purse.is_limited:
            return None
        why = purse.refuses(self.turn_id, pending, is_priced=self._is_priced)
        if why is None:
            self._expect(self._compose())
            return None
        return "max_budget", why

    async def _finish(self, reason: FinishReason, detail: str = "") -> None:
        """End the turn with everything noted; open calls are settled, so that the history is whole."""

        def more(state: SessionState, noted: Sequence[Fact]) -> list[Fact]:
            settled = settle_open_calls(state, noted, by="weft", reason=detail or reason)
            return [*settled, self._finished(state, noted, reason, detail)]

        await self._notebook.commit(_FINISH, more, drop_draft=True)

    async def _abort(self) -> None:
        """Settle everything that was cut short."""
        _ABORT.before.hit()
        await self._env.journal.commit(self.settled)
        _ABORT.after.hit()

    def settled(self, state: SessionState) -> Commit:
        """The facts that end the turn where it stands; partial text is kept, in the model's context too.

        Does not wait, so that an actor can end a turn whose tool does not let go.
        """
        request, node = self._request, self._in_flight
        self._request = self._in_flight = None
        if request is not None and node is not None:
            composed = self._compose()
            self._note_discarded(node, request, composed)
            self._note_partial(node, request, composed)
        self._note_unclaimed(state)

        def more(state: SessionState, noted: Sequence[Fact]) -> list[Fact]:
            settled = settle_open_calls(
                state, noted, by="abort", reason=self.abort_reason or "the turn was stopped"
            )
            return [*settled, self._finished(state, noted, "aborted", self.abort_reason)]

        return self._notebook.take(state, more, drop_draft=True)

    def _note_unclaimed(self, state: SessionState) -> None:
        """What a command changed before it was stopped can be taken back like anything else."""
        blobs: dict[BlobId, bytes] = {}
        call_uid = next(reversed(state.turn.intents), None)
        facts = touched_facts(self._env.unclaimed(), call_uid, blobs)
        self._notebook.note(*facts, blobs=blobs)

    def _finished(
        self,
        state: SessionState,
        noted: Sequence[Fact],
        reason: FinishReason,
        detail: str,
        deliverable: Any = None,
    ) -> TurnFinished:
        return TurnFinished(
            turn_id=self.turn_id,
            reason=reason,
            detail=detail,
            retries=self._retries,
            iterations=_answers_given(state, noted),
            deliverable=deliverable,
        )

    # -- the line

    async def _take_into_line(self, stored: Sequence[Fact]) -> None:
        """Promoted inputs became part of the line.  It is read anew, for the queue holds only the beginning of a long one."""
        if any(isinstance(fact, InputPromoted) for fact in stored):
            await self._load_line()

    def _take_results_into_line(self, node: Node, results: Mapping[CallUid, ToolResult]) -> None:
        place = next(i for i, entry in enumerate(self._line) if entry.node.id == node.id)
        merged = {**self._line[place].results, **results}
        self._line[place] = Entry(node=node, results=merged)


def _answers_given(state: SessionState, noted: Sequence[Fact]) -> int:
    """Answers of the model in this turn, those included that are only noted."""
    done = state.turn.open.iterations if state.turn.open is not None else 0
    return done + sum(
        isinstance(fact, NewMessage) and fact.node.role == "assistant" and not fact.node.is_partial
        for fact in noted
    )


class _ProgressWatch:
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
        """Take one more round in; True when it is time to tell the model."""
        seen = _fingerprint(calls, results)
        if seen != self._last:
            self._last, self._times, self._nudged = seen, 0, False
        self._times += 1
        if self._times < self._repeats:
            return False
        self._times = 0
        self.is_stuck, self._nudged = self._nudged, True
        return not self.is_stuck


def _fingerprint(calls: Sequence[ToolCall], results: Mapping[CallUid, ToolResult]) -> bytes:
    round_ = [
        (call.name, call.args, results[call.call_uid].text)
        for call in calls
        if call.call_uid in results
    ]
    return hashlib.sha256(msgspec.json.encode(round_)).digest()
