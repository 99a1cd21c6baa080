"""What must hold of a journey whatever interrupted it, judged by a new process from the log, the
side file and the project.

- Law 2: `seq` is 1, 2, 3, …, and living through the log and replaying it give the same state.
- Law 1: an input that was accepted is in the tree or in the queue, once; one that was only tried,
  at most once.
- Section 6: steering that waits reaches the model with its next call, after an interruption too.
- Law 4: in what the model sees every call is answered once, right behind its answer; at the end
  none by a stand-in.
- Law 5: whatever happened was intended before, and happened once; what is reported as done was
  done, what is reported as not run was not; a doubt ends as `interrupted`, reported to the model
  and to the user.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Protocol

import apsw

from tests.support.crash import journey
from tests.support.crash.journey import SESSION, JourneyFolder
from weft.api.session import Session
from weft.context import NO_RESULT, ContextTarget, build
from weft.errors import SessionNotFound
from weft.events import (
    AnyFact,
    ErrorRaised,
    ModelCallStarted,
    NewMessage,
    Rewound,
    SessionRestarted,
    SystemNote,
    ToolComplete,
    ToolExecuting,
    TurnFinished,
    decode,
)
from weft.ids import CallUid, NodeId
from weft.loop.tool_results import INTERRUPTED, NOT_RUN
from weft.messages import CallResult, CallResults, ChatMessage, Message, ToolCall, ToolResult
from weft.providers import ModelRequest
from weft.runtime.ports.local import LocalPort
from weft.session import load_line, load_state
from weft.state import GONE_ON_BY_USER, SessionState, snapshot
from weft.store import Store

TARGET = ContextTarget("scripted", "journey")


class Spoken(Protocol):
    """An input as the judge needs it."""

    @property
    def input_id(self) -> str: ...

    @property
    def text(self) -> str: ...


class Judge:
    """Looks at a journey and collects what is wrong with it."""

    def __init__(
        self,
        place: JourneyFolder,
        store: Store,
        tried: Iterable[Spoken],
        accepted: Iterable[str],
        doubts: Iterable[CallUid],
    ) -> None:
        self._place = place
        self._store = store
        self.tried: list[Spoken] = list(tried)
        self.accepted = set(accepted)
        self.doubts = set(doubts)
        self.in_doubt: set[CallUid] = set()
        """Effects of unknown kind that stand open in the log."""
        self.met: list[str] = []
        """What was open in the log that a dead process left."""
        self.others_speak = False
        """The owner before this one was alive when it was robbed, and may have said more than we
        know.
        """
        self.may_restart = False
        """A bug was planted, so the session may have been restarted."""
        self.wrong: list[str] = []

    async def look(self, *, is_end: bool) -> None:
        """Judge what is stored; at the end nothing may be left open."""
        facts = await self._facts()
        try:
            state = await load_state(SESSION, self._store)
        except SessionNotFound:
            if self.accepted:
                self._say(f"the session is gone, and {len(self.accepted)} inputs with it")
            return
        self._judge_order(facts, state)
        self._judge_inputs(facts, state)
        self._judge_calls(facts, state)
        self._judge_effects(facts)
        await self._judge_context(state, is_end=is_end)
        await self._judge_row(state)
        self._judge_text(facts)
        if not self.may_restart and any(_is_restart(fact) for fact in facts):
            self._say("another process wrote: the session was restarted, and nothing had crashed")
        if is_end:
            self._judge_end(facts, state)
        else:
            await self._note_what_is_open(state)

    async def _note_what_is_open(self, state: SessionState) -> None:
        turn = state.turn
        drafts = await self._store.load_drafts(SESSION)
        is_open = {
            "turn": turn.open is not None,
            "model call": turn.open is not None and turn.open.call is not None,
            "draft": any(draft.text for draft in drafts),
            "intent": bool(turn.intents),
            "request": bool(turn.requests),
            "answered request": bool(turn.answers),
            "unsettled call": any(state.tree.unsettled(node) for node in state.tree.nodes),
            "steering": bool(state.queue.waiting("steering")),
            "follow-up": bool(state.queue.waiting("follow_up")),
        }
        self.met = [what for what, is_there in is_open.items() if is_there]

    async def look_at_owner(self, session: Session, requests: Sequence[ModelRequest]) -> None:
        """Judge the living session: it owns the log, knows all of it, and asks its model legal
        questions.
        """
        port = await session._port()
        if not isinstance(port, LocalPort):
            self._say("the session was not taken over at once: a dead process still owns it")
            return
        lease = await self._store.lease_of(SESSION)
        if lease is None or lease.owner.process_id != self._store.owner.process_id:
            self._say("the lease is not the owner's")
        if snapshot(port.state) != snapshot(await load_state(SESSION, self._store)):
            self._say("what the session knows is not what its log says")
        for request in requests:
            self._judge_messages(request.messages, "a request")

    # -- the parts

    async def _facts(self) -> list[AnyFact]:
        found: list[AnyFact] = []
        while records := await self._store.read(SESSION, after=len(found)):
            found += [decode(record.body) for record in records]
        return found

    def _judge_order(self, facts: Sequence[AnyFact], state: SessionState) -> None:
        if [fact.seq for fact in facts] != list(range(1, len(facts) + 1)):
            self._say(f"gap or repeat in seq: {[fact.seq for fact in facts]}")
        replayed = SessionState(session_id=SESSION)
        for fact in facts:
            is_asked = isinstance(fact, ModelCallStarted) and fact.purpose == "turn"
            if is_asked and replayed.queue.waiting("steering"):
                self._say("the model was asked while steering waited")
            replayed.apply(fact)
        if snapshot(replayed) != snapshot(state):
            self._say("loading and replaying differ")

    def _judge_inputs(self, facts: Sequence[AnyFact], state: SessionState) -> None:
        texts = [
            fact.node.text
            for fact in facts
            if isinstance(fact, NewMessage) and fact.node.role == "user"
        ]
        texts += [entry.text for entry in state.queue.entries.values()]
        times = Counter(texts)
        for each in {spoken.input_id: spoken for spoken in self.tried}.values():
            found = times.pop(each.text, 0)
            if found > 1:
                self._say(f"{each.input_id} is there {found} times")
            if not found and each.input_id in self.accepted:
                self._say(f"{each.input_id} was accepted and is lost")
        if times and not self.others_speak:
            self._say(f"no input says this: {list(times)}")

    def _judge_calls(self, facts: Sequence[AnyFact], state: SessionState) -> None:
        """Each call is settled at most once; outside an open turn, exactly once."""
        made = [
            call.call_uid
            for fact in facts
            if isinstance(fact, NewMessage)
            for call in fact.node.calls
        ]
        settled = Counter(fact.call_uid for fact in facts if isinstance(fact, ToolComplete))
        if len(set(made)) != len(made):
            self._say("two calls have one name")
        if strangers := set(settled) - set(made):
            self._say(f"a result without a call: {strangers}")
        for call_uid in made:
            if settled[call_uid] > 1:
                self._say(f"{call_uid} was settled {settled[call_uid]} times")
            if not settled[call_uid] and state.turn.open is None:
                self._say(f"{call_uid} was never settled")

    def _judge_effects(self, facts: Sequence[AnyFact]) -> None:
        intents: dict[CallUid, list[ToolExecuting]] = defaultdict(list)
        results: dict[CallUid, ToolResult] = {}
        for fact in facts:
            if isinstance(fact, ToolExecuting):
                intents[fact.call_uid].append(fact)
            if isinstance(fact, ToolComplete):
                results.setdefault(fact.call_uid, fact.result)
        happened = Counter(effect.call_uid for effect in self._place.effects())
        for call_uid, times in happened.items():
            if call_uid not in intents:
                self._say(f"{call_uid} took effect and was never intended")
            if times > 1:
                self._say(f"{call_uid} took effect {times} times")
        unknown = {uid for uid, all_ in intents.items() if all_[0].effect == "unknown"}
        for call_uid in unknown:
            if len(intents[call_uid]) > 1:
                self._say(f"{call_uid} was run again")
        self.in_doubt = {uid for uid in unknown if uid not in results}
        self._judge_results(results, intents, happened)
        self._judge_doubts(facts, results)
        if not any(isinstance(fact, Rewound) for fact in facts):
            self._judge_keys(results)  # who goes back does things again

    def _judge_results(
        self,
        results: dict[CallUid, ToolResult],
        intents: dict[CallUid, list[ToolExecuting]],
        happened: Counter[CallUid],
    ) -> None:
        """What the model reads is true."""
        for call_uid, result in results.items():
            is_note = intents[call_uid] and intents[call_uid][0].tool_name == "note"
            if is_note and result.status == "done" and happened[call_uid] != 1:
                self._say(f"{call_uid} is reported as done and did not happen")
            untouched = result.status in ("denied", "invalid") or result.text == NOT_RUN
            if untouched and happened[call_uid]:
                self._say(f"{call_uid} is reported as not run and happened")

    def _judge_doubts(self, facts: Sequence[AnyFact], results: dict[CallUid, ToolResult]) -> None:
        for call_uid in self.doubts:
            result = results.get(call_uid)
            if result is not None and (result.status, result.text) != ("interrupted", INTERRUPTED):
                self._say(f"{call_uid} was in doubt and is reported as {result.status}")
            if result is None and call_uid not in self.in_doubt:
                self._say(f"{call_uid} was in doubt and is gone")
        interrupted = [uid for uid, result in results.items() if result.status == "interrupted"]
        notes = [
            fact
            for fact in facts
            if isinstance(fact, SystemNote)
            and fact.level == "warning"
            and "interrupted" in fact.text
        ]
        if len(notes) != len(interrupted):
            self._say(f"{len(interrupted)} doubts, and the user learned of {len(notes)}")

    def _judge_keys(self, results: dict[CallUid, ToolResult]) -> None:
        """The same thing twice only after the first time was reported as uncertain."""
        for key in ("one", "two"):
            calls = [effect.call_uid for effect in self._place.effects() if effect.key == key]
            for earlier in calls[:-1]:
                result = results.get(earlier)
                if result is None or result.status not in ("interrupted", "aborted"):
                    self._say(f"note {key!r} was repeated, and no note says why")

    async def _judge_context(self, state: SessionState, *, is_end: bool) -> None:
        line = await load_line(state.tree, state.tree.head, self._store)
        notes: dict[NodeId | None, list[str]] = defaultdict(list)
        for note in state.tree.notes:
            if note.to_model:
                notes[note.node].append(note.text)
        messages = build(line, TARGET, notes=notes)
        self._judge_messages(messages, "the context")
        shown = {result.call_uid: result.text for result in _results(messages)}
        if is_end and NO_RESULT in shown.values():
            self._say("a call has no result of its own")
        for call_uid in self.doubts & shown.keys() - self.in_doubt:
            if shown.get(call_uid) != INTERRUPTED:
                self._say(f"the model does not learn that {call_uid} is in doubt")

    def _judge_messages(self, messages: Sequence[Message], what: str) -> None:
        expected: list[str] = []
        for message in messages:
            if isinstance(message, CallResults):
                if [result.call_uid for result in message.results] != expected:
                    self._say(f"{what} answers other calls than those before it")
                expected = []
                continue
            if expected:
                self._say(f"{what} leaves calls without a result")
            expected = [part.call_uid for part in message.parts if isinstance(part, ToolCall)]
        if expected:
            self._say(f"{what} ends with open calls")
        made = [
            part.call_uid
            for message in messages
            if isinstance(message, ChatMessage)
            for part in message.parts
            if isinstance(part, ToolCall)
        ]
        if len(made) != len(set(made)):
            self._say(f"{what} holds one call twice")

    async def _judge_row(self, state: SessionState) -> None:
        row = await self._store.row(SESSION)
        is_open = state.turn.open is not None
        # While a turn is open the row may be behind in its counts, in nothing else.
        if row is None or row.turn_open != is_open or row.last_seq > state.seq:
            self._say("the list's row is not that of the log")
        elif row.title != state.about.title(state.settings):
            self._say("the list's row has another title")
        elif not is_open and row.last_seq != state.seq:
            self._say("the list's row is not that of the last append")

    def _judge_text(self, facts: Sequence[AnyFact]) -> None:
        """Whole answers are what the model said, broken ones the beginning of it."""
        for fact in facts:
            if not isinstance(fact, NewMessage) or fact.node.role != "assistant":
                continue
            text = fact.node.text
            if fact.node.is_partial:
                fine = any(said.startswith(text) for said in journey.SAID)
            else:
                fine = text in journey.SAID or not text
            if not fine:
                self._say(f"the model never said {text!r}")

    def _judge_end(self, facts: Sequence[AnyFact], state: SessionState) -> None:
        last = [fact for fact in facts if isinstance(fact, TurnFinished)][-1:]
        if state.turn.open is not None or not last or last[0].reason != "stop":
            self._say(f"the session did not complete: {last}")
        if state.queue.entries:
            self._say("something is still queued")
        intended = {fact.seq for fact in facts if isinstance(fact, Rewound) and fact.files}
        settled = [fact.settles for fact in facts if isinstance(fact, Rewound) and fact.settles]
        if sorted(settled) != sorted(intended):
            self._say(f"rewinds {sorted(intended)} are settled by {sorted(settled)}")
        if self._place.store_kind == "sqlite":
            self._judge_database()

    def _judge_database(self) -> None:
        db = apsw.Connection(self._place.store)
        try:
            said = [str(row[0]) for row in db.execute("pragma integrity_check").fetchall()]
        finally:
            db.close()
        if said != ["ok"]:
            self._say(f"the database is damaged: {said}")

    def _say(self, wrong: str) -> None:
        if wrong not in self.wrong:
            self.wrong.append(wrong)


def _results(messages: Iterable[Message]) -> list[CallResult]:
    return [
        result
        for message in messages
        if isinstance(message, CallResults)
        for result in message.results
    ]


def _is_restart(fact: AnyFact) -> bool:
    if isinstance(fact, SessionRestarted):
        return fact.reason != GONE_ON_BY_USER
    return isinstance(fact, ErrorRaised)
