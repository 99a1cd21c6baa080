"""A session worth interrupting: what the model says, which tools it has, and where everything lies.

One turn has all that recovery must know about: reasoning and text that stream in small pieces,
three pure calls side by side, effects of unknown kind and files that can be checked, a permission
and an answer that the user must give.  Which answer a request gets is a function of the calls in it
(or of the summary that stands for them), so a new process goes on at the right one, also when a
half answer was sent back.

`journey_life` lives through it in one process, `journey_verdict` judges what is on disk,
`journey_process` forks and kills.
"""

from __future__ import annotations

import itertools
import os
import re
import time
from pathlib import Path

import anyio
import msgspec

from weft.clock import Clock
from weft.context import INSTRUCTIONS
from weft.ids import CallUid, SessionId
from weft.messages import ChatMessage, Text, ToolCall
from weft.providers import ModelRequest
from weft.providers.script import CallTogether, CallTool, SayText, Step, Think
from weft.tools import FunctionTool, Tool, ToolContext

SESSION = SessionId("ses_journey")
MODEL = "scripted:journey"
PACE_SECONDS = 0.0004
HASTE = 100
SECONDS_A_READING = 0.05
"""A draft is due at every fifth reading; four crashes that follow each other lie within a minute.
"""
"""Between two pieces of an answer."""

LOOKING = "First I look around, at three places at once, to see what is there."
ACTING = "Now I act: a note, a file, and another note, one after the other."
MENDING = "One word in the file is wrong, so I read it and mend it."
DONE = "That was everything; it is done."
SAID = (LOOKING, ACTING, MENDING, DONE)
"""All that the model ever says."""

FILE = "out.txt"
WRITTEN = "a first line\na wrong line\n"
MENDED = "a first line\na right line\n"


class JourneyFolder(msgspec.Struct, frozen=True):
    """The folder of one journey."""

    folder: Path
    store_kind: str = "sqlite"

    @property
    def project(self) -> Path:
        return self.folder / "p"

    @property
    def store(self) -> str:
        """As `weft.open` takes it."""
        if self.store_kind == "jsonl":
            return f"jsonl:{self.folder / 'log'}"
        return str(self.folder / "weft.db")

    @property
    def side_file(self) -> Path:
        """Where the effects of unknown kind can be counted."""
        return self.folder / "effects"

    @property
    def environ(self) -> dict[str, str]:
        return {"HOME": str(self.folder), "WEFT_HOME": str(self.folder / "h")}

    def make(self) -> None:
        """Make the folders, and the file that the model reads."""
        self.project.mkdir(parents=True)
        (self.project / "in.txt").write_text("what was there before\n")
        self.side_file.touch()

    def effects(self) -> list[Effect]:
        """The effects that really happened, in order."""
        lines = self.side_file.read_text().splitlines()
        return [Effect(CallUid(uid), key) for uid, key in (line.split() for line in lines)]


class Effect(msgspec.Struct, frozen=True):
    """One line of the side file."""

    call_uid: CallUid
    key: str


class HastyClock(Clock):
    """A hundred times as fast as the machine's: drafts are kept every 2.5 ms instead of
    every 250.
    """

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic() * HASTE


class ReadingClock(HastyClock):
    """Durations by the number of readings: a busy machine, on which more time passes between two
    of them, makes no difference.
    """

    def __init__(self) -> None:
        self._readings = itertools.count()

    def monotonic(self) -> float:
        return next(self._readings) * SECONDS_A_READING


def tools(place: JourneyFolder) -> list[str | Tool]:
    """What the model may call: a pure tool, one whose effect cannot be checked, one that clings,
    and files.
    """

    async def look(where: str) -> str:
        """Look somewhere."""
        await anyio.sleep(0.002)
        return f"nothing unusual at {where}\n" * 300

    def note(key: str, context: ToolContext) -> str:
        """Write a line that cannot be taken back."""
        fd = os.open(place.side_file, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(fd, f"{context.call_uid} {key}\n".encode())
            os.fsync(fd)
        finally:
            os.close(fd)
        return f"noted {key}"

    async def cling(seconds: float) -> str:
        """Take no notice of being cancelled."""
        with anyio.CancelScope(shield=True):
            await anyio.sleep(seconds)
        return "let go"

    return [
        FunctionTool(look, effect="pure"),
        FunctionTool(note, effect="unknown"),
        FunctionTool(cling, effect="unknown"),
        "read",
        "write",
        "edit",
        "ask",
        "wait_for",
    ]


STAGES: tuple[tuple[str, tuple[Step, ...]], ...] = (
    (
        "look-c",
        (
            Think(text="Where should I look? Everywhere.", signature="proof-1", chunk=8),
            SayText(text=LOOKING, chunk=8),
            CallTogether(
                calls=(
                    CallTool(name="look", args={"where": "left"}, id="look-a", chunk=6),
                    CallTool(name="look", args={"where": "right"}, id="look-b", chunk=6),
                    CallTool(name="read", args={"path": "in.txt"}, id="look-c"),
                )
            ),
        ),
    ),
    (
        "act-c",
        (
            SayText(text=ACTING, chunk=8),
            CallTool(name="note", args={"key": "one"}, id="act-a"),
            CallTool(name="write", args={"path": FILE, "content": WRITTEN}, id="act-b", chunk=16),
            CallTool(name="note", args={"key": "two"}, id="act-c"),
        ),
    ),
    (
        "mend-c",
        (
            Think(text="Wrong is not right.", signature="proof-2", chunk=8),
            SayText(text=MENDING, chunk=8),
            CallTool(name="read", args={"path": FILE}, id="mend-a"),
            CallTool(name="ask", args={"question": "Is it wrong?"}, id="mend-b"),
            CallTool(
                name="edit",
                args={"path": FILE, "old_string": "wrong", "new_string": "right"},
                id="mend-c",
            ),
        ),
    ),
)
"""The answers with calls, each named by the last call in it."""


def answer_to(request: ModelRequest) -> tuple[Step, ...]:
    """The first stage whose calls are not in the request.

    Then the end.  A request for a summary gets one.
    """
    if request.system == INSTRUCTIONS:
        return (SayText(text=_summary(_text(request)), chunk=8),)
    done = called(request) | set(re.findall(r"\(done: ([a-z-]+)\)", _text(request)))
    for last_call, steps in STAGES:
        if last_call not in done:
            return steps
    return (SayText(text=DONE, chunk=8),)


def called(request: ModelRequest) -> set[str]:
    """The calls that the model is shown."""
    return {
        part.provider_id
        for message in request.messages
        if isinstance(message, ChatMessage)
        for part in message.parts
        if isinstance(part, ToolCall)
    }


def _summary(text: str) -> str:
    """What a summary must carry over: the stages that are behind us."""
    marks = {"look-c": "TOOL look", "act-c": "TOOL write", "mend-c": "TOOL edit"}
    done = [name for name, mark in marks.items() if mark in text or f"(done: {name})" in text]
    return " ".join(f"(done: {name})" for name in done) or "Nothing was done."


def _text(request: ModelRequest) -> str:
    return "\n".join(
        part.text
        for message in request.messages
        if isinstance(message, ChatMessage) and message.role == "user"
        for part in message.parts
        if isinstance(part, Text)
    )
