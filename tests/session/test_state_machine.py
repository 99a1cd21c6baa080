"""The session against a plain one: whatever people, the model and the machine do, in any order,
both agree.

After each step the real session has the same queue, the same history, a status that fits, settings
as they were set, a log without a gap, and a state that is exactly what replaying the log gives.
The model waits to be told what to answer, so every step ends in a situation that is known: idle,
waiting for the model, waiting for leave, or interrupted.
"""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.lowlevel
import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import weft
from tests.support.example_count import examples
from tests.support.plain_session import Delivery, Mode, PlainSession, Queued
from weft.api.session import Session
from weft.app import App
from weft.clock import Clock
from weft.errors import NoPendingRequest, RequestRefused, SessionBusy, UsageError
from weft.events import decode
from weft.messages import ChatMessage, Text
from weft.providers import (
    CallArgs,
    CallStarted,
    Model,
    ModelInfo,
    ModelRequest,
    StreamEvent,
    StreamFinished,
    TextPiece,
)
from weft.state import SessionState, snapshot
from weft.store import MemoryData, MemoryStore, Store
from weft.store.sqlite import SqliteStore, open_sqlite
from weft.tools import FunctionTool

T = TypeVar("T")
SESSION = "ses_machine"
SMALL_THINGS = (
    "note",
    "answer what nobody asked",
    "abort nothing",
    "restart",
    "off",
    "low",
    "high",
)


class PatientModel(Model):
    """Answers when it is told what to answer."""

    info = ModelInfo(
        provider="patient", name="model", price_input=1.0, price_output=1.0, thinks=True
    )

    def __init__(self) -> None:
        self.requests: list[ModelRequest] = []
        self.waiting: asyncio.Future[Sequence[StreamEvent]] | None = None

    def stream(
        self, request: ModelRequest
    ) -> AbstractAsyncContextManager[AsyncIterator[StreamEvent]]:
        return self._open(request)

    @asynccontextmanager
    async def _open(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[StreamEvent]]:
        assert self.waiting is None, "the model is asked twice at once"
        self.requests.append(request)
        async with aclosing(self._events()) as events:
            yield events

    async def _events(self) -> AsyncGenerator[StreamEvent]:
        event: StreamEvent | None = None
        while not isinstance(event, StreamFinished):
            self.waiting = asyncio.get_running_loop().create_future()
            try:
                events = await self.waiting
            finally:
                self.waiting = None
            for event in events:
                yield event

    def begin(self, text: str) -> None:
        """Let it say this, and more later."""
        assert self.waiting is not None
        self.waiting.set_result([TextPiece(text)])

    def answer(self, text: str, keys: Sequence[str] = ()) -> None:
        """Let it say this, call `act` with these keys, and be done."""
        events: list[StreamEvent] = [TextPiece(text)]
        for index, key in enumerate(keys):
            events.append(CallStarted(index=index, name="act", provider_id=f"call_{key}"))
            events.append(CallArgs(index, msgspec.json.encode({"key": key}).decode()))
        events.append(StreamFinished(reason="tool_calls" if keys else "stop"))
        assert self.waiting is not None
        self.waiting.set_result(events)

    def fail(self) -> None:
        """Let it refuse."""
        assert self.waiting is not None
        self.waiting.set_exception(RequestRefused("no"))


class StepClock(Clock):
    """Every look at it is a second later, so that a draft is kept with each piece."""

    def __init__(self) -> None:
        self._seconds = itertools.count(1_800_000_000)

    def now(self) -> float:
        return float(next(self._seconds))

    def monotonic(self) -> float:
        return float(next(self._seconds))


async def act(key: str) -> str:
    """Do something that cannot be undone."""
    return f"did {key}"


class SessionMachine(RuleBasedStateMachine):
    """Does the same to a real session and to a plain one."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory(prefix="machine-")
        self.plain = PlainSession()
        self.model = PatientModel()
        self.number = 0
        self.said: list[tuple[str, str, Delivery, str]] = []
        """(input id, text, delivery, what the caller was told) of everything that was said."""
        self.effects: list[str] = []
        self.app: App
        self.session: Session

    # -- the world

    async def open_store(self) -> Store:
        """A store on the data of this machine, as a new process would open it."""
        raise NotImplementedError

    async def bury(self, store: Store) -> None:
        """Let a store look as if its process had died; it closes, unseen, later."""
        raise NotImplementedError

    async def _open(self) -> None:
        self.model = PatientModel()
        self.app = weft.open(
            self.folder.name,
            await self.open_store(),
            environ={"HOME": self.folder.name},
            clock=StepClock(),
            providers={},
        )
        await self.app.__aenter__()
        self.session = await self.app.sessions.start_session(
            session_id=SESSION,
            model=self.model,
            title="machine",
            tools=[FunctionTool(act, effect="unknown")],
        )

    async def _die(self) -> None:
        """Every task of the application ends where it stands.

        Nothing is closed, nothing is said.
        """
        await self.app._supervisor.aclose()
        if self.app._socket is not None:
            await self.app._socket.aclose()
        await self.bury(self.app.store)

    def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do something, and let the session come to the situation that the plain one is in."""

        async def in_time() -> T:
            with anyio.fail_after(5):
                return await work()

        return self.runner.run(in_time())

    def settle(self) -> None:
        async def wait() -> None:
            while not await self._is_settled():
                await anyio.lowlevel.checkpoint()

        self.run(wait)

    async def _is_settled(self) -> bool:
        status = await self.session.get_status()
        match self.plain.situation:
            case "model":
                draft = (await self.session.editor_snapshot()).draft
                is_asked = self.model.waiting is not None and draft == self.plain.streamed
                return is_asked and status == "thinking"
            case "permission":
                return status == "awaiting_permission"
            case situation:
                return status == situation

    def new(self, what: str) -> str:
        """A text that was never used before."""
        self.number += 1
        return f"{what}-{self.number}"

    # -- the start and the end

    @initialize()
    def begin(self) -> None:
        self.run(self._open)
        self.settle()

    def teardown(self) -> None:
        with suppress(AttributeError):
            self.run(self.app.aclose)
        self.runner.close()
        self.folder.cleanup()

    # -- people

    def _say(self, delivery: Delivery) -> None:
        text = self.new("say")
        expected = self.plain.say(text, delivery)
        send = {
            "steering": self.session.send_prompt,
            "follow_up": self.session.queue_follow_up,
        }[delivery]
        accepted = self.run(lambda: send(text, input_id=f"id-{text}"))
        assert accepted.status == expected
        self.said.append((f"id-{text}", text, delivery, accepted.status))
        self.settle()

    @rule()
    def prompt_or_steer(self) -> None:
        self._say("steering")

    @rule()
    def follow_up(self) -> None:
        self._say("follow_up")

    @precondition(lambda self: self.said)
    @rule(data=st.data())
    def say_again_under_the_same_id(self, data: st.DataObject) -> None:
        input_id, text, delivery, told = data.draw(st.sampled_from(self.said))
        send = {
            "steering": self.session.send_prompt,
            "follow_up": self.session.queue_follow_up,
        }[delivery]
        assert self.run(lambda: send(text, input_id=input_id)).status == told

    @precondition(lambda self: self.plain.situation != "idle")
    @rule()
    def abort(self) -> None:
        was_busy = self.plain.is_busy
        self.plain.abort()
        receipt = self.run(self.session.abort)
        assert (receipt.turn_id is not None) == was_busy
        assert [entry.text for entry in receipt.surviving] == [q.text for q in self.plain.queue]
        self.settle()

    @precondition(lambda self: self.plain.nodes or self.number < 3)
    @rule()
    def continue_turn(self) -> None:
        if self.plain.is_busy:
            with pytest.raises(SessionBusy):
                self.run(self.session.continue_turn)
            return
        if not self.plain.nodes:
            with pytest.raises(UsageError):
                self.run(self.session.continue_turn)
            return
        self.plain.go_on()
        self.run(self.session.continue_turn)
        self.settle()

    @precondition(lambda self: self.plain.is_asked)
    @rule(allow=st.booleans())
    def answer_the_request(self, allow: bool) -> None:
        action: Any = "allow_once" if allow else "deny"
        self.plain.answer(allow=allow)
        self.run(lambda: self.session.respond_to_permission(action))
        self.settle()

    @rule(what=st.sampled_from(SMALL_THINGS))
    def do_a_small_thing(self, what: str) -> None:
        """Much that can always be done, in one rule, so that the rest gets its turn."""
        match what:
            case "note":
                self._add_a_note()
            case "answer what nobody asked" if not self.plain.is_asked:
                with pytest.raises(NoPendingRequest):
                    self.run(lambda: self.session.respond_to_permission("deny"))
            case "abort nothing" if self.plain.situation == "idle":
                self.abort()
            case "restart":
                self.restart()
            case "off" | "low" | "high":
                self.plain.thinking = what
                self.run(lambda: self.session.set_thinking_level(what))
            case _:
                pass

    def _add_a_note(self) -> None:
        text = self.new("note")
        self.plain.note(text)
        self.run(lambda: self.session.add_system_message(text))

    @precondition(lambda self: self.plain.nodes)
    @rule(mode=st.sampled_from(["default", "default", "plan", "bypass"]))
    def set_the_permission_mode(self, mode: Mode) -> None:
        self.plain.set_mode(mode)
        self.run(lambda: self.session.set_permission_mode(mode))

    # -- the queue

    @precondition(lambda self: self.plain.queue)
    @rule(data=st.data())
    def edit_a_queued_message(self, data: st.DataObject) -> None:
        chosen = data.draw(st.sampled_from(self.plain.queue))
        entry_id, text = self._entry_id(chosen), self.new("edited")
        chosen.text = text
        self.run(lambda: self.session.edit_queued(entry_id, text))

    @precondition(lambda self: self.plain.queue)
    @rule(data=st.data())
    def remove_a_queued_message(self, data: st.DataObject) -> None:
        chosen = data.draw(st.sampled_from(self.plain.queue))
        entry_id = self._entry_id(chosen)
        self.plain.queue.remove(chosen)
        self.run(lambda: self.session.remove_queued(entry_id))
        with pytest.raises(UsageError):
            self.run(lambda: self.session.remove_queued(entry_id))

    @precondition(lambda self: len(self.plain.queue) > 1)
    @rule(data=st.data())
    def reorder_the_queue(self, data: st.DataObject) -> None:
        first = data.draw(st.lists(st.sampled_from(self.plain.queue), unique_by=id))
        entry_ids = [self._entry_id(each) for each in first]
        self.plain.reorder(first)
        self.run(lambda: self.session.reorder_queue(entry_ids))

    @precondition(lambda self: self.plain.queue)
    @rule()
    def recall_the_queues(self) -> None:
        expected = self.plain.recall()
        steering, follow_up = self.run(self.session.recall_queues)
        assert [entry.text for entry in (*steering, *follow_up)] == [
            each.text
            for delivery in ("steering", "follow_up")
            for each in expected
            if each.delivery == delivery
        ]

    @precondition(lambda self: self.plain.queue)
    @rule()
    def take_back_all_steering(self) -> None:
        expected = self.plain.dequeue()
        taken = self.run(self.session.dequeue_steering)
        assert [each.text for each in taken] == [each.text for each in expected]

    def _entry_id(self, queued: Queued) -> str:
        steering, follow_up = self.run(self.session.get_queued_messages)
        return next(e.entry_id for e in (*steering, *follow_up) if e.text == queued.text)

    # -- the model

    @precondition(lambda self: self.plain.situation == "model")
    @rule()
    def model_begins_to_say_something(self) -> None:
        text = self.new("beginning ")
        self.plain.model_begins(text)
        self._let(lambda: self.model.begin(text))

    @precondition(lambda self: self.plain.situation == "model")
    @rule()
    def model_says_something(self) -> None:
        text = self.new("answer")
        self.plain.model_says(text)
        self._let(lambda: self.model.answer(text))

    @precondition(lambda self: self.plain.situation == "model")
    @rule(count=st.integers(1, 3))
    def model_calls_tools(self, count: int) -> None:
        text, keys = self.new("calling"), [self.new("key") for _ in range(count)]
        self.plain.model_calls(text, keys)
        self._let(lambda: self.model.answer(text, keys))

    @precondition(lambda self: self.plain.situation == "model")
    @rule()
    def model_fails(self) -> None:
        self.plain.model_fails()
        self._let(self.model.fail)

    def _let(self, happen: Callable[[], None]) -> None:
        async def let() -> None:
            answered = self.model.waiting
            happen()
            # What was answered must be gone before anybody looks for what is asked next.
            while self.model.waiting is answered:
                await anyio.lowlevel.checkpoint()

        self.run(let)
        self.settle()

    # -- the machine

    @precondition(lambda self: self.plain.situation != "idle")
    @rule()
    def restart(self) -> None:
        self.plain.close()
        self.run(self.app.aclose)
        self.run(self._open)
        self.settle()

    @precondition(lambda self: self.plain.situation != "idle")
    @rule()
    def crash(self) -> None:
        self.plain.crash()
        self.run(self._die)
        self.run(self._open)
        assert self.model.requests == [], "opening must not call a model"
        self.settle()

    @precondition(lambda self: self.plain.is_busy)
    @rule()
    def crash_and_go_on(self) -> None:
        """What is rare among single steps: the turn that a crash left open goes on."""
        self.crash()
        self.both_agree()
        self.continue_turn()

    @precondition(lambda self: self.plain.situation == "permission")
    @rule(allow=st.booleans())
    def crash_answer_and_go_on(self, allow: bool) -> None:
        """Leave that is given while no turn runs counts when the turn goes on."""
        self.crash()
        self.answer_the_request(allow)
        self.both_agree()
        self.continue_turn()

    # -- what must always hold

    @invariant()
    def both_agree(self) -> None:
        self.run(self._compare)

    async def _compare(self) -> None:
        plain = self.plain
        seen = await self.session.editor_snapshot()
        assert [(e.text, e.delivery) for e in seen.queue] == [
            (each.text, each.delivery) for each in plain.queue
        ]
        rows = [(message.role, message.content) for message in await self.session.messages()]
        assert rows == plain.rows()
        assert (seen.thinking, seen.permission_mode) == (plain.thinking, plain.mode_in_force)
        assert len(seen.requests) == plain.is_asked
        await self._compare_with_the_log()
        if plain.situation == "model":
            self._compare_with_what_the_model_sees()

    async def _compare_with_the_log(self) -> None:
        records = await self.app.store.read(SESSION, limit=1 << 30)
        assert [record.seq for record in records] == list(range(1, len(records) + 1))
        replayed = SessionState(session_id=self.session.id)
        replayed.apply_all(decode(record.body) for record in records)
        state = (await self.session._port()).state
        assert snapshot(state) == snapshot(replayed)
        assert state.turn.last_reason == (
            None if self.plain.situation != "idle" else self.plain.last_reason
        )

    def _compare_with_what_the_model_sees(self) -> None:
        seen = [
            part.text
            for message in self.model.requests[-1].messages
            if isinstance(message, ChatMessage)
            for part in message.parts
            if isinstance(part, Text) and not part.text.startswith("[")
        ]
        assert seen == [node.text for node in self.plain.nodes]


class MemoryMachine(SessionMachine):
    """On a store that forgets; its data outlives a process."""

    def __init__(self) -> None:
        super().__init__()
        self.data = MemoryData()

    async def open_store(self) -> Store:
        return MemoryStore(data=self.data)

    async def bury(self, store: Store) -> None:
        self.data.living.pop(store.owner.process_id)


class SqliteMachine(SessionMachine):
    """On the default store."""

    async def open_store(self) -> Store:
        return await open_sqlite(Path(self.folder.name) / "weft.db")

    async def bury(self, store: Store) -> None:
        assert isinstance(store, SqliteStore)
        store._presence.end()  # the lock that says that its process lives
        store._writer.end()
        for thread in (store._watch, store._reader, store._searcher):
            thread.end()
        await store._writer.ended()


@pytest.mark.hypothesis
@pytest.mark.timeout(600)  # only where it fails: finding the shortest way there takes a while
def test_a_session_on_the_memory_store_behaves_as_the_plain_one() -> None:
    run_state_machine_as_test(
        MemoryMachine,
        settings=settings(max_examples=examples(50), stateful_step_count=40, deadline=None),
    )


@pytest.mark.hypothesis
@pytest.mark.timeout(600)
def test_a_session_on_the_default_store_behaves_as_the_plain_one() -> None:
    run_state_machine_as_test(
        SqliteMachine,
        settings=settings(max_examples=examples(12), stateful_step_count=30, deadline=None),
    )
