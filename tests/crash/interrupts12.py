"""Three more points × abort, kill -9, provider drop: while a summary is written, in a step of a
plan, in a sub-agent.

`python -m tests.crash.interrupts12` prints one JSON line.  With the nine of
`tests.crash.interrupts` these are the twelve points of a session.  A summary is interrupted both
where a person asked for it and where a turn makes room.  Every case waits at a gate in a model's
stream, in the model of each of the vendors; what a dead process had begun is found by a new one,
which goes on with it or is told something else.

Afterwards the history (a child's too) is legal for every vendor's protocol, as is every request on
the way; the log says what happened; no child is left at work; nothing is done twice; and the next
prompt works.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import anyio
import anyio.lowlevel
import msgspec

import weft
from tests.support.crash.interrupt_frame import Lives, prove
from tests.support.vendor_models import VENDOR_PROFILES, illegal_anywhere
from tests.support.world import facts, until_idle
from weft.api.session import Session
from weft.app import App
from weft.context import INSTRUCTIONS
from weft.errors import SessionError
from weft.events import (
    ArchitectPlan,
    ChildFinished,
    Compacted,
    ErrorRaised,
    FinishReason,
    SystemNote,
    ToolExecuting,
    TurnFinished,
)
from weft.messages import ChatMessage, Text
from weft.providers import ModelRequest
from weft.providers.script import Break, CallTool, SayText, Stall, Step, Think
from weft.providers.scripted import ScriptedModel, assistant_turns

PointName: TypeAlias = Literal["compaction", "making_room", "architect_step", "sub_agent"]
Kind: TypeAlias = Literal["abort", "kill", "break"]
POINTS: tuple[PointName, ...] = get_args(PointName)
KINDS: tuple[Kind, ...] = get_args(Kind)
VENDORS = ("claude", "gpt", "chat", "gemini")
SESSION = "ses_interrupted"
GATE = "here"
WINDOW = 4_000
LONG = "x" * 1_600
"""A prompt of a tenth of the window."""
SUMMARY = "In short: they talked."
MADE, NEXT = "The file is made.", "Then that is done."

ENDS: dict[tuple[PointName, Kind], FinishReason] = {
    ("making_room", "abort"): "aborted",
    ("making_room", "break"): "stop",
    ("architect_step", "abort"): "aborted",
    ("architect_step", "break"): "provider_error",
    ("sub_agent", "abort"): "aborted",
    ("sub_agent", "break"): "stop",
}
"""How the turn ends.

A summary that cannot be had ends no turn, nor does a sub-agent that fails: the model is told.
"""


class Case(msgspec.Struct, frozen=True):
    """One way to be interrupted."""

    point: PointName
    kind: Kind
    vendor: str
    goes_on: bool = False
    """After a kill the work itself goes on before the next prompt."""

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


async def _no_wait(seconds: float) -> None:
    await anyio.lowlevel.checkpoint()


class Stage:
    """The session of one case in one process."""

    def __init__(self, folder: Path, case: Case, *, is_armed: bool) -> None:
        self._case = case
        self._is_armed = is_armed
        """False in the process that comes back: nothing stops there."""
        self._folder = folder
        self._wrong: list[str] = []
        self._pose = VENDOR_PROFILES[case.vendor]
        info = self._pose.info
        if self._compacts:
            info = msgspec.structs.replace(info, context_window=WINDOW, max_output_tokens=400)
        self.model = ScriptedModel([], choose=self._choose, info=info)
        self._name = f"{info.provider}:{info.name}"
        self.app: App = weft.open(
            folder / "p",
            folder / "weft.db",
            {
                "model.architect": self._name,
                "model.editor": self._name,
                "sandbox.mode": "off",
                "compaction.soft": 0.85,
            },
            environ={"HOME": str(folder), "WEFT_HOME": str(folder)},
            sleep=_no_wait,
        )

    @property
    def _compacts(self) -> bool:
        return self._case.point in ("compaction", "making_room")

    async def open(self) -> Session:
        """The session, new or as it was left."""
        more: dict[str, Any] = {"system_prompt": "Help."} if self._compacts else {}
        return await self.app.sessions.start_session(
            session_id=SESSION,
            model=self.model,
            tools=[] if self._compacts else "all",
            auto_approve=True,
            thinking="high",
            **more,
        )

    # -- the model: what it says is a function of what it is told, so another process goes on at the
    # right place

    def _choose(self, request: ModelRequest) -> Sequence[Step]:
        self._wrong += self._pose.illegal(request)
        first, newest = _said(request)
        if request.system == INSTRUCTIONS:
            return self._interrupted(SUMMARY) if self._compacts else (SayText(text=SUMMARY),)
        if "sub-task" in first and not self._compacts:
            return self._child(request)
        if newest == "next":
            return (SayText(text=NEXT),)
        if any(tool.name == "submit" for tool in request.tools):
            return (Think(text="a plan"), CallTool(name="submit", args=PLAN, id="call_plan"))
        asks = newest == "go" and self._case.point == "sub_agent"
        if asks and not _has_results_since_go(request):
            task = {"prompt": "sub-task: make the file"}
            return (SayText(text="I hand it on."), CallTool(name="agent", args=task, id="call_a"))
        return (Think(text="so"), SayText(text=f"Heard {assistant_turns(request)}."))

    def _child(self, request: ModelRequest) -> Sequence[Step]:
        if not _has_results_since_go(request):
            args = {"path": "made.txt", "content": "made\n"}
            return (Think(text="write"), CallTool(name="write", args=args, id="call_w"))
        return self._interrupted(MADE)

    def _interrupted(self, text: str) -> Sequence[Step]:
        """The stream in the midst of which it happens."""
        half, rest = SayText(text=text[:8]), SayText(text=text[8:])
        if not self._is_armed:
            return (half, rest)
        if self._case.kind == "break":
            return (Think(text="oh"), half, Break())
        return (Think(text="oh"), half, Stall(gate=GATE), rest)

    # -- being interrupted

    async def prepare(self, session: Session) -> None:
        """Talk as long as it takes until the point can be reached."""
        await session.send_message("hello")
        if self._case.point == "architect_step":
            await session.set_mode("architect")
        for _ in range(7 if self._compacts else 0):
            await session.send_message(LONG)

    async def go(self, session: Session) -> None:
        """Do what is interrupted; returns when it is over, unless the process is gone before."""
        async with anyio.create_task_group() as group:
            if self._case.kind != "break":
                group.start_soon(self._interrupt, session)
            if self._case.point == "compaction":
                try:
                    await session.compact()
                except SessionError:
                    pass
                else:
                    self._wrong.append("it was compacted all the same")
            else:
                prompt = LONG if self._case.point == "making_room" else "go"
                await session.send_message(prompt)
            await until_idle(session)
            group.cancel_scope.cancel()

    async def _interrupt(self, session: Session) -> None:
        await self.model.gate(GATE).reached.wait()
        if self._case.kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        await session.abort("enough")

    # -- the verdict

    async def judge(self, session: Session) -> list[str]:
        """What is illegal about the history, a child's too, and about all that the model
        was asked.
        """
        wrong = [*self._wrong, *await illegal_anywhere(session)]
        for child in await session.children():
            if not await self.app.store.last_seq(child.id):
                continue
            wrong += await illegal_anywhere(await self.app.sessions.get(child.id))
        return wrong

    async def judge_what_is_seen(self, session: Session) -> list[str]:
        """Whether the log tells the person what happened."""
        case, wrong = self._case, []
        ends = [each.reason for each in await facts(session, TurnFinished)]
        errors = [each for each in await facts(session, ErrorRaised) if each.where == "compaction"]
        notes = [each.text for each in await facts(session, SystemNote)]
        is_said = bool(errors) or any("wrote no summary" in text for text in notes)
        if (
            self._compacts
            and case.kind != "kill"
            and (case.point, case.kind) != ("making_room", "abort")
        ):
            wrong += [] if is_said else ["nothing is said of the summary that could not be had"]
        if (
            case.kind != "kill"
            and case.point != "compaction"
            and ends[-1] != ENDS[case.point, case.kind]
        ):
            wrong.append(f"the turn ended with {ends[-1]}")
        if self._compacts and case.kind != "kill" and await facts(session, Compacted):
            wrong.append("half a summary counts")
        if not self._compacts:
            wrong += await self._judge_children(session)
        return wrong

    async def _judge_children(self, session: Session) -> list[str]:
        children = await session.children()
        wrong = [] if len(children) == 1 else [f"there are {len(children)} children"]
        wrong += [f"a child is still at work: {each}" for each in children if each.reason is None]
        if not await facts(session, ChildFinished):
            wrong.append("the end of the child is not on record")
        child = await self.app.sessions.get(children[0].id)
        if [each.tool_name for each in await facts(child, ToolExecuting)] != ["write"]:
            wrong.append("the child did not write exactly once")
        made = self._folder / "p" / "made.txt"
        if not made.exists() or made.read_text() != "made\n":
            wrong.append("what the child had done is gone")
        if self._case.point == "architect_step" and not await facts(session, ArchitectPlan):
            wrong.append("the plan is gone")
        return wrong


PLAN = {
    "summary": "Make a file.",
    "steps": [
        {
            "action": "create",
            "file": "made.txt",
            "description": "sub-task",
            "details": "sub-task: make the file made.txt with the word made.",
        }
    ],
}


def _said(request: ModelRequest) -> tuple[str, str]:
    """The first and the newest words of the person, notes of ours left out."""
    texts = [
        part.text
        for message in request.messages
        if isinstance(message, ChatMessage) and message.role == "user"
        for part in message.parts
        if isinstance(part, Text) and not part.text.startswith(("[", "<environment>"))
    ]
    return (texts[0], texts[-1]) if texts else ("", "")


def _has_results_since_go(request: ModelRequest) -> bool:
    return not isinstance(request.messages[-1], ChatMessage) or any(
        not isinstance(message, ChatMessage) for message in request.messages
    )


# -- one case


async def interrupt_and_go_on(folder: Path, case: Case) -> list[str]:
    """Abort or break; then judge, prompt and judge again, in the same process."""
    (folder / "p").mkdir(exist_ok=True)
    stage = Stage(folder, case, is_armed=True)
    async with stage.app:
        session = await stage.open()
        await stage.prepare(session)
        await stage.go(session)
        wrong = await stage.judge_what_is_seen(session)
        stage._is_armed = False
        return wrong + await _judge_and_go_on(stage, session)


async def be_killed(folder: Path, case: Case) -> None:
    """Live until the point; does not come back from there."""
    (folder / "p").mkdir(exist_ok=True)
    stage = Stage(folder, case, is_armed=True)
    async with stage.app:
        session = await stage.open()
        await stage.prepare(session)
        await stage.go(session)


async def come_back(folder: Path, case: Case) -> list[str]:
    """The next process: judge, go on or prompt, and judge again."""
    stage = Stage(folder, case, is_armed=False)
    async with stage.app:
        session = await stage.open()
        expected = "idle" if case.point == "compaction" else "interrupted"
        status = await session.get_status()
        wrong = [] if status == expected else [f"it is {status}, not {expected}"]
        wrong += await stage.judge(session)
        if case.goes_on:
            wrong += await _goes_on(case, session)
        wrong += await _judge_and_go_on(stage, session)
        return wrong + await stage.judge_what_is_seen(session)


async def _goes_on(case: Case, session: Session) -> list[str]:
    if case.point == "compaction":
        report = await session.compact()
        return [] if report.summary == SUMMARY else [f"the summary is {report.summary!r}"]
    reply = await session.continue_and_wait()
    wrong = [] if reply.finish_reason == "stop" else [f"it went on and ended: {reply.detail}"]
    if case.point == "making_room" and not await facts(session, Compacted):
        wrong.append("it went on and made no room")
    return wrong


async def _judge_and_go_on(stage: Stage, session: Session) -> list[str]:
    wrong = await stage.judge(session)
    await session.set_mode("normal")
    reply = await session.send_message("next")
    if (reply.finish_reason, reply.text) != ("stop", NEXT):
        wrong.append(f"the next prompt ended with {reply.finish_reason}: {reply.text}")
    return wrong + await stage.judge(session)


def main(argv: Sequence[str]) -> int:
    """Prove it and print the line."""
    lives = Lives(interrupt_and_go_on, be_killed, come_back)
    every = all_cases()
    counts = {
        "points": len(POINTS),
        "kinds": len(KINDS),
        "vendors": len(VENDORS),
    }
    return prove("interrupts12", argv, lives, every=every, sampled=sampled_cases(), counts=counts)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
