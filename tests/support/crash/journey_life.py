"""One process's part of a journey: open the session, judge it, go on, speak and answer, until
everything is done or it is killed.

The process says on a pipe what it knows: a tick for each event, an input as tried before it is sent
and as accepted only after the call returned.  What it has said by then is what the next process
holds the log to.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import time
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import anyio
import msgspec

import weft
from tests.support.crash import journey
from tests.support.crash.journey import MODEL, SESSION, JourneyFolder
from tests.support.crash.journey_verdict import Judge
from weft import faults
from weft.api.session import Session
from weft.clock import Clock
from weft.errors import NoPendingRequest, SessionStopped
from weft.events import Event, QuestionAsked, SessionStatus, ToolExecuting
from weft.ids import CallUid
from weft.providers import ModelInfo, ModelRequest
from weft.providers.script import Break, CallTool, Fail, SayText, Script, Step
from weft.providers.scripted import ScriptedModel, ScriptedProvider
from weft.state import Request

Delivery: TypeAlias = Literal["prompt", "steering", "follow_up"]
Variant: TypeAlias = Literal[
    "plain",
    "abort",
    "crash",
    "crash_often",
    "stuck",
    "wait",
    "narrow",
    "compact",
    "rewind",
    "broken",
]
"""What else happens: the user aborts, the program has a bug (once, or again and again), a tool does
not let go of an aborted turn, the turn waits for a moment, the model's window is too narrow for the
whole turn, the user has it compacted, or goes back to the first message, files and all, or a stream
breaks and the answer begins again.
"""

INPUTS_A_LIFE = 4
CLING_SECONDS = 1.2
"""Longer than an abort waits."""
WAIT_SECONDS = 0.05


class Input(msgspec.Struct, frozen=True):
    """Something a client says, under an id of its own."""

    input_id: str
    delivery: Delivery

    @property
    def text(self) -> str:
        return f"<{self.input_id}> as {self.delivery}"


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What earlier processes said before they died."""

    tried: tuple[Input, ...] = ()
    accepted: frozenset[str] = frozenset()
    doubts: frozenset[CallUid] = frozenset()
    """Effects that were found open: none of them may ever run again."""


class Life(msgspec.Struct, frozen=True, kw_only=True):
    """What one process is to do."""

    seed: int
    number: int = 1
    known: Known = Known()
    variant: Variant = "plain"
    comes_back: Literal["continue", "prompt"] = "continue"
    was_restarted: bool = False
    """An earlier life had a bug planted, so its session may have been restarted."""
    steals: bool = False
    """The owner lives (it is only stopped), so the session has to be taken from it."""
    holds_at_end: bool = False
    """Wait for a byte before the last verdict."""
    point: str = ""
    at: int = 0
    """Die at this pass of that fail-point."""
    counts: bool = False
    """Say at the end how often each fail-point was passed."""

    @property
    def may_restart(self) -> bool:
        return self.was_restarted or self.variant in ("crash", "crash_often")


class Voice:
    """The pipe to the parent: short lines, each written at once, so that a killed process has said
    them too.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def say(self, word: str, *values: object) -> None:
        os.write(self._fd, (json.dumps([word, *values]) + "\n").encode())

    def tick(self) -> None:
        os.write(self._fd, b".\n")


async def live(place: JourneyFolder, life: Life, voice: Voice, ears: int) -> None:
    """Live one life to its end."""
    counted = [faults.arm(name, at=1 << 60) for name in faults.names() if life.counts]
    if life.point:
        faults.arm(life.point, at=life.at)
    model = _model(life)
    app = weft.open(
        place.project,
        place.store,
        environ=place.environ,
        clock=_clock(life),
        providers={"scripted": ScriptedProvider({"journey": model})},
    )
    async with app:
        opened = time.monotonic()
        if life.steals:
            await app.store.take_lease(SESSION, steal=True)
        session = await app.sessions.start_session(
            session_id=SESSION, model=MODEL, tools=journey.tools(place)
        )
        voice.say("open", time.monotonic() - opened)
        judge = Judge(place, app.store, life.known.tried, life.known.accepted, life.known.doubts)
        judge.may_restart = life.may_restart
        judge.others_speak = life.steals
        await judge.look(is_end=False)
        await judge.look_at_owner(session, model.requests)
        driver = Driver(session, life, voice)
        voice.say("met", *judge.met)
        for call_uid in judge.in_doubt:
            voice.say("doubt", call_uid)
        await driver.drive()
        voice.say("driven")
        if life.holds_at_end:
            await anyio.to_thread.run_sync(os.read, ears, 1)
        judge.accepted |= driver.accepted
        judge.tried += driver.tried
        judge.doubts |= judge.in_doubt
        await judge.look(is_end=True)
        await judge.look_at_owner(session, model.requests)
        for wrong in judge.wrong:
            voice.say("wrong", wrong)
        if life.counts:
            voice.say("passes", {point.name: point.passes for point in counted})
    voice.say("finished")


def _clock(life: Life) -> Clock:
    # Too often means so many crashes in so many seconds: on a busy machine they lie further apart.
    return journey.ReadingClock() if life.variant == "crash_often" else journey.HastyClock()


def _model(life: Life) -> ScriptedModel:
    """The journey's model, with what is to go wrong in it."""
    dice = random.Random(f"model {life.seed}")
    crashes = {"crash": {dice.randint(1, 4)}, "crash_often": {2, 3, 4, 5}}.get(life.variant, set())
    breaks = dice.randint(1, 4)
    asked = 0

    def choose(request: ModelRequest) -> Sequence[Step]:
        nonlocal asked
        asked += 1
        if asked in crashes:
            raise RuntimeError("a bug, planted")
        if life.variant == "stuck" and asked == 1:
            return (CallTool(name="cling", args={"seconds": CLING_SECONDS}),)
        if life.variant == "wait" and asked == 1:
            return (CallTool(name="wait_for", args={"seconds": WAIT_SECONDS}),)
        if life.variant == "narrow" and {"look-c", "act-c"} <= journey.called(request):
            return (Fail(error="ContextTooLong"),)
        steps = journey.answer_to(request)
        if life.variant == "broken" and asked == breaks:
            return tuple(part for step in steps for part in _broken(step))
        return steps

    info = ModelInfo(
        provider="scripted",
        name="journey",
        price_input=3.0,
        price_output=15.0,
        thinks=True,
    )
    script = Script(answers=(), pace_seconds=journey.PACE_SECONDS)
    return ScriptedModel(script, choose=choose, info=info)


def _broken(step: Step) -> tuple[Step, ...]:
    """A step with a break in the midst of its text."""
    if not isinstance(step, SayText):
        return (step,)
    return (SayText(text=step.text[:40], chunk=4), Break())


class Driver:
    """The user of the session: sends prompts at any time, answers requests, and waits for
    the end.
    """

    def __init__(self, session: Session, life: Life, voice: Voice) -> None:
        self._session = session
        self._life = life
        self._voice = voice
        self._dice = random.Random(f"driver {life.seed}")
        self._events = 0
        self._planned = self._plan()
        self._abort_at = self._dice.randint(0, 60) if life.variant == "abort" else -1
        self._is_compacted = False
        self._is_rewound = False
        self.tried: list[Input] = []
        self.accepted: set[str] = set()

    def _plan(self) -> list[tuple[int, Input]]:
        """Inputs, and the event after which each is sent."""
        kinds: tuple[Delivery, ...] = ("steering", "follow_up")
        return sorted(
            (
                (
                    self._dice.randint(0, 90),
                    Input(f"in-{self._life.number}-{place}", kinds[place % 2]),
                )
                for place in range(INPUTS_A_LIFE)
            ),
            key=lambda planned: planned[0],
        )

    async def drive(self) -> None:
        """Go on until the session is idle, its queue empty, and its last turn ended well."""
        async with await self._session.subscribe() as events:
            await self._begin()
            async for event in events:
                self._events += 1
                self._voice.tick()
                if await self._react(event):
                    return
        raise SessionStopped(SESSION, "it stopped under its driver")

    async def _begin(self) -> None:
        life = self._life
        if life.number == 1:
            await self._send(Input("in-1-go", "prompt"))
            return
        snapshot = await self._session.editor_snapshot()
        for request in snapshot.requests:
            if self._dice.random() < 0.5:
                await self._answer(request)
        if snapshot.status == "interrupted" and life.comes_back == "continue":
            await self._session.continue_turn()
        unsure = [each for each in life.known.tried if each.input_id not in life.known.accepted]
        for each in unsure:
            await self._send(each)
        await self._send(Input(f"in-{life.number}-again", "prompt"))

    async def _react(self, event: Event) -> bool:
        """Do what is due; True when everything is done."""
        if self._abort_at == self._events:
            await self._session.abort("the user said so")
        while self._planned and self._planned[0][0] <= self._events:
            await self._send(self._planned.pop(0)[1])
        match event:
            case SessionStatus(status="awaiting_permission"):
                await self._answer_all()
            case SessionStatus(status="idle" | "error"):
                return await self._is_over()
            case ToolExecuting(tool_name="cling"):
                await self._session.abort("it clings")
            case _:
                pass
        return False

    async def _is_over(self) -> bool:
        snapshot = await self._session.editor_snapshot()
        if snapshot.status not in ("idle", "error"):
            return False
        metadata = await self._session.metadata()
        assert metadata.turn_count, "idle before the first turn"
        if self._life.variant == "compact" and not self._is_compacted:
            self._is_compacted = True
            await self._session.compact()
        if self._planned:
            await self._send(self._planned.pop(0)[1])
            return False
        if snapshot.status == "error" or snapshot.queue or await self._last_reason() != "stop":
            await self._send(Input(f"in-{self._life.number}-more-{self._events}", "prompt"))
            return False
        if self._life.variant == "rewind" and not self._is_rewound:
            self._is_rewound = True
            await self._rewind()
            await self._send(Input(f"in-{self._life.number}-anew", "prompt"))
            return False
        return True

    async def _rewind(self) -> None:
        """Go back to the first message, and now and then back again."""
        first, _ = (await self._session.messages_with_ids())[0]
        await self._session.rewind(first)
        if self._dice.random() < 0.5:
            await self._session.undo_rewind()

    async def _last_reason(self) -> str | None:
        return (await self._session._port()).state.turn.last_reason

    async def _answer_all(self) -> None:
        for request in (await self._session.editor_snapshot()).requests:
            await self._answer(request)

    async def _answer(self, request: Request) -> None:
        action: Any = "deny" if self._dice.random() < 0.1 else "allow_once"
        with contextlib.suppress(NoPendingRequest):  # an abort or a new turn was first
            if isinstance(request, QuestionAsked):
                await self._session.answer_question(request.request_id, "It is.")
            else:
                await self._session.respond_to_permission(action, request_id=request.request_id)

    async def _send(self, each: Input) -> None:
        say = {
            "prompt": self._session.send_prompt,
            "steering": self._session.queue_steering,
            "follow_up": self._session.queue_follow_up,
        }[each.delivery]
        self._voice.say("tried", each.input_id, each.delivery)
        self.tried.append(each)
        await say(each.text, input_id=each.input_id)
        self._voice.say("accepted", each.input_id)
        self.accepted.add(each.input_id)
