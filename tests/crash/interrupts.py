"""Nine points of a turn × abort, kill -9, stream break: the history is legal for every vendor's
protocol, and the next prompt works.

`python -m tests.crash.interrupts` prints one JSON line; 9 × 3 cases, each with the model of each of
four vendors.  Nothing is left to
chance: a case waits at a gate in the model's stream or in a tool, or acts from a fail-point, and so
    always stops at the very
same place.  Where no answer streams, "stream break" means that the next stream breaks, each time at
another depth.

The history is judged as each of the four vendors would get it (`interrupts_protocols`), and what
the model is told of the two calls must be what happened to them.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import anyio
import msgspec

import weft
from tests.support.crash.interrupt_frame import Lives, prove
from tests.support.crash.interrupt_model import (
    HELLO,
    NEXT,
    SAID,
    SHOWN,
    Beat,
    Hold,
    PlayedModel,
    Snap,
    has_called,
    plain_beats,
    said_by_user,
    turn_beats,
)
from tests.support.vendor_legality import VENDORS, illegal, illegal_request
from weft import faults
from weft.api.session import Session
from weft.app import App
from weft.clock import Clock
from weft.context import LineEntry
from weft.events import Event, FinishReason, SessionStatus, TurnFinished
from weft.ids import NodeId
from weft.loop.tool_results import INTERRUPTED, NOT_RUN, STOPPED_WHILE_RUNNING
from weft.providers import ModelRequest, ToolSpec
from weft.runtime.ports.local import LocalPort
from weft.tools import FunctionTool, ToolContext

PointName: TypeAlias = Literal[
    "before_call",
    "mid_text",
    "mid_thinking",
    "mid_args",
    "before_approval",
    "during_approval",
    "tool_running",
    "between_tools",
    "after_tools",
]
Kind: TypeAlias = Literal["abort", "kill", "break"]
POINTS: tuple[PointName, ...] = get_args(PointName)
KINDS: tuple[Kind, ...] = get_args(Kind)
SESSION = "ses_interrupted"

FAULTS: dict[PointName, str] = {
    "before_call": "loop.request.before_call",
    "before_approval": "loop.ask.before",
    "between_tools": "loop.tool.between",
    "after_tools": "loop.call.before",
}
"""The points that a fail-point names."""
HOLDS: dict[PointName, str] = {"mid_text": "text", "mid_thinking": "thinking", "mid_args": "args"}
"""The points that lie in the first answer's stream."""
BREAKS: dict[PointName, tuple[int, str]] = {
    "before_call": (1, "start"),
    "mid_text": (1, "text"),
    "mid_thinking": (1, "thinking"),
    "mid_args": (1, "args"),
    "before_approval": (1, "end"),
    "during_approval": (2, "start"),
    "tool_running": (2, "thinking"),
    "between_tools": (2, "text"),
    "after_tools": (2, "args"),
}
"""Which answer of the turn breaks, and where in it."""

DONE = ("noted one", "noted two")
TOLD: dict[tuple[PointName, Kind], tuple[str, str]] = {
    ("before_approval", "abort"): (NOT_RUN, NOT_RUN),
    ("during_approval", "abort"): (NOT_RUN, NOT_RUN),
    ("tool_running", "abort"): (STOPPED_WHILE_RUNNING, NOT_RUN),
    ("between_tools", "abort"): ("noted one", NOT_RUN),
    ("after_tools", "abort"): DONE,
    ("during_approval", "kill"): (NOT_RUN, NOT_RUN),
    ("tool_running", "kill"): (INTERRUPTED, NOT_RUN),
    ("between_tools", "kill"): (INTERRUPTED, NOT_RUN),
    ("after_tools", "kill"): ("noted one", INTERRUPTED),
    ("during_approval", "break"): DONE,
    ("tool_running", "break"): DONE,
    ("between_tools", "break"): DONE,
    ("after_tools", "break"): DONE,
}
"""What the model is told of the two calls; in the other cases it never made them.

A result that only the dead process knew is in doubt, like one that was never reached.
"""
TOLD_AFTER_GOING_ON: dict[PointName, tuple[str, str]] = {
    "tool_running": (INTERRUPTED, "noted two"),
    "between_tools": (INTERRUPTED, "noted two"),
    "after_tools": ("noted one", INTERRUPTED),
}
"""The same for a turn that went on after a kill.

In the other cases both calls were made and done.
"""
KEPT: dict[PointName, str] = {"mid_text": SHOWN, "mid_args": SAID}
"""Text of the broken answer that is kept.

What a dead process had from `before_approval` on, too.
"""


class Case(msgspec.Struct, frozen=True):
    """One way to be interrupted."""

    point: PointName
    kind: Kind
    vendor: str
    goes_on: bool = False
    """After a kill the turn itself goes on before the next prompt."""

    def __str__(self) -> str:
        then = "-and-going-on" if self.goes_on else ""
        return f"{self.point}-{self.kind}{then}-{self.vendor}"


def all_cases() -> list[Case]:
    """Every case with every vendor's model."""
    return [Case(*each) for each in itertools.product(POINTS, KINDS, VENDORS)] + [
        Case(point, "kill", vendor, goes_on=True)
        for point, vendor in itertools.product(POINTS, VENDORS)
    ]


def sampled_cases() -> list[Case]:
    """Every case once, the vendors taking turns."""
    vendors = itertools.cycle(VENDORS)
    return [Case(point, kind, next(vendors)) for kind in KINDS for point in POINTS] + [
        Case(point, "kill", next(vendors), goes_on=True) for point in POINTS
    ]


class StepClock(Clock):
    """Every look at it is a second later, so that a draft is kept with each piece."""

    def __init__(self) -> None:
        self._seconds = itertools.count(1_800_000_000)

    def now(self) -> float:
        return float(next(self._seconds))

    def monotonic(self) -> float:
        return float(next(self._seconds))


class Stage:
    """The session of one case in one process: its model, its tool, and the hand that interrupts."""

    def __init__(self, folder: Path, case: Case, *, is_armed: bool) -> None:
        self._case = case
        self._is_armed = is_armed
        """False in the process that comes back: nothing stops there."""
        self._side_file = folder / "effects"
        self.there = anyio.Event()
        """Set when the point is reached."""
        self.model = PlayedModel(VENDORS[case.vendor].info, self._choose, self.there.set)
        self.app: App = weft.open(
            folder,
            folder / "weft.db",
            environ={"HOME": str(folder), "WEFT_HOME": str(folder)},
            clock=StepClock(),
            providers={},
        )

    async def open(self) -> Session:
        """The session, new or as it was left."""
        return await self.app.sessions.start_session(
            session_id=SESSION, model=self.model, tools=[self._note()]
        )

    # -- the model and the tool

    def _choose(self, request: ModelRequest) -> Sequence[Beat]:
        texts = said_by_user(request)
        if "next" in texts:
            return plain_beats(NEXT)
        if "go" not in texts:
            return plain_beats(HELLO)
        answer = 2 if has_called(request) else 1
        stop, place = self._stop_in(answer)
        if answer == 2:
            return plain_beats(NEXT, stop, place)
        signature = "proof-of-call" if self._case.vendor == "google" else ""
        return turn_beats(stop, place, signature=signature)

    def _stop_in(self, answer: int) -> tuple[Beat | None, str]:
        point, kind = self._case.point, self._case.kind
        if not self._is_armed:
            return None, ""
        if kind == "break":
            which, place = BREAKS[point]
            return (Snap(), place) if which == answer else (None, "")
        if point in HOLDS and answer == 1:
            return Hold(), HOLDS[point]
        return None, ""

    def _note(self) -> FunctionTool:
        case = self._case
        clings = self._is_armed and case.point == "tool_running" and case.kind != "break"

        async def note(key: str, context: ToolContext) -> str:
            """Write a line that nobody can take back."""
            with open(self._side_file, "a") as file:  # noqa: ASYNC230  # a few bytes
                file.write(f"{context.call_uid} {key}\n")
            if clings:
                self.there.set()
                await anyio.sleep_forever()
            return f"noted {key}"

        return FunctionTool(note, effect="unknown")

    # -- being interrupted

    async def go(self, session: Session) -> FinishReason:
        """Have the turn that is interrupted.

        Returns how it ended, if the process is still there.
        """
        port = await session._port()
        assert isinstance(port, LocalPort)
        actor = port.actor

        def act(name: str) -> None:
            if self._case.kind == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            assert actor._worker.turn is not None
            actor._worker.turn.scope.cancel()  # as an abort does, at this very instant
            self.there.set()

        if self._case.point in FAULTS and self._case.kind != "break":
            faults.arm(FAULTS[self._case.point], action=act)
        try:
            async with await session.subscribe() as events, anyio.create_task_group() as group:
                group.start_soon(self._interrupt, session)
                await session.send_prompt("go", retries=0)
                async for event in events:
                    if isinstance(event, TurnFinished):
                        group.cancel_scope.cancel()
                        return event.reason
                    await self._give_leave(event, session)
            raise AssertionError("the session stopped")
        finally:
            faults.disarm_all()

    async def go_on(self, session: Session) -> FinishReason:
        """Let the turn that a kill left open come to its end."""
        async with await session.subscribe() as events:
            await session.continue_turn()
            async for event in events:
                if isinstance(event, TurnFinished):
                    return event.reason
                await self._give_leave(event, session)
        raise AssertionError("the session stopped")

    async def _give_leave(self, event: Event, session: Session) -> None:
        if not isinstance(event, SessionStatus) or event.status != "awaiting_permission":
            return
        is_the_point = self._case.point == "during_approval" and self._case.kind != "break"
        if is_the_point and self._is_armed:
            self.there.set()
            return
        for request in (await session.editor_snapshot()).requests:
            await session.respond_to_permission("allow_once", request_id=request.request_id)

    async def _interrupt(self, session: Session) -> None:
        await self.there.wait()
        if self._case.kind == "kill":
            await self.app.store.load_drafts(SESSION)  # comes after all chunks that were handed in
            os.kill(os.getpid(), signal.SIGKILL)
        await session.abort("enough")

    # -- the verdict

    async def judge(self, session: Session) -> list[str]:
        """What is illegal about the history, and about all that the model was asked."""
        line, notes = await _line(session)
        wrong = illegal(line, notes, self._tools())
        for request in self.model.requests:
            wrong += illegal_request(request, self._case.vendor)
        return wrong

    def _tools(self) -> tuple[ToolSpec, ...]:
        tool = self._note()
        return (ToolSpec(name=tool.name, description=tool.description, schema=tool.schema),)

    async def judge_told(self, session: Session) -> list[str]:
        """Whether the model is told what happened, and the words it had said are kept."""
        line, _ = await _line(session)
        told = [
            entry.results[call.call_uid].text
            for entry in line
            for call in entry.node.calls
            if call.call_uid in entry.results
        ]
        wrong = []
        if tuple(told) != self._to_be_told():
            wrong.append(f"the model is told {told}")
        happened = self._side_file.read_text().split() if self._side_file.exists() else []
        keys = happened[1::2]
        for text, key in zip(told, ("one", "two"), strict=False):
            if (text == f"noted {key}" and key not in keys) or (text == NOT_RUN and key in keys):
                wrong.append(f"{text!r} is told of note {key}, and that is not so")
        if len(set(keys)) != len(keys):
            wrong.append("a note was made twice")
        broken = "".join(entry.node.text for entry in line if entry.node.is_partial)
        kept = self._kept()
        # A draft is not waited for: a process that dies at a fail-point may have more to say than
        # it could keep.
        is_fine = kept.startswith(broken) if self._dies_at_a_fail_point else broken == kept
        if not is_fine:
            wrong.append(f"of the broken answer this is kept: {broken!r}")
        return wrong

    def _to_be_told(self) -> tuple[str, ...]:
        if self._case.goes_on:
            return TOLD_AFTER_GOING_ON.get(self._case.point, DONE)
        return TOLD.get((self._case.point, self._case.kind), ())

    @property
    def _dies_at_a_fail_point(self) -> bool:
        return self._case.kind == "kill" and self._case.point in FAULTS

    def _kept(self) -> str:
        point, kind = self._case.point, self._case.kind
        if kind == "break" and BREAKS[point][0] == 2:
            return {"text": NEXT[:4], "args": NEXT}.get(BREAKS[point][1], "")
        if point == "before_approval" and kind != "abort":
            return SAID  # the answer was whole, and nobody had written it down
        return KEPT.get(point, "")


async def _line(session: Session) -> tuple[list[LineEntry], dict[NodeId | None, list[str]]]:
    port = await session._port()
    notes: dict[NodeId | None, list[str]] = {}
    for note in port.state.tree.notes:
        if note.to_model:
            notes.setdefault(note.node, []).append(note.text)
    return await port.line(), notes


# -- one case


async def interrupt_and_go_on(folder: Path, case: Case) -> list[str]:
    """Abort or break; then judge, prompt and judge again, in the same process."""
    stage = Stage(folder, case, is_armed=True)
    async with stage.app:
        session = await stage.open()
        await session.send_message("hello")
        expected: FinishReason = "aborted" if case.kind == "abort" else "provider_error"
        reason = await stage.go(session)
        wrong = [] if reason == expected else [f"the turn ended with {reason}"]
        return wrong + await _judge_and_go_on(stage, session)


async def be_killed(folder: Path, case: Case) -> None:
    """Live until the point; does not come back from there."""
    stage = Stage(folder, case, is_armed=True)
    async with stage.app:
        session = await stage.open()
        await session.send_message("hello")
        await stage.go(session)


async def come_back(folder: Path, case: Case) -> list[str]:
    """The next process: judge, prompt and judge again."""
    stage = Stage(folder, case, is_armed=False)
    async with stage.app:
        session = await stage.open()
        wrong = [] if await session.get_status() == "interrupted" else ["it is not interrupted"]
        if case.goes_on:
            wrong += await stage.judge(session)
            reason = await stage.go_on(session)
            wrong += [] if reason == "stop" else [f"it went on and ended with {reason}"]
        return wrong + await _judge_and_go_on(stage, session)


async def _judge_and_go_on(stage: Stage, session: Session) -> list[str]:
    wrong = await stage.judge(session)
    reply = await session.send_message("next")
    if (reply.finish_reason, reply.text) != ("stop", NEXT):
        wrong.append(f"the next prompt ended with {reply.finish_reason}: {reply.text}")
    wrong += await stage.judge_told(session)
    return wrong + await stage.judge(session)


def main(argv: Sequence[str]) -> int:
    """Prove it and print the line."""
    lives = Lives(interrupt_and_go_on, be_killed, come_back)
    every = all_cases()
    counts = {
        "cases": len({(case.point, case.kind) for case in every}),
        "points": len(POINTS),
        "kinds": len(KINDS),
        "vendors": len(VENDORS),
    }
    return prove("interrupts", argv, lives, every=every, sampled=sampled_cases(), counts=counts)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
