"""Screens that join in the middle of an answer.

`python -m tests.crash.joins --n 1000 --seed 1` prints one JSON line.

While a model streams reasoning, words and the arguments of two calls, and now and then breaks off
and begins again, `n` screens call `session.join()` at random moments: in the session's own process
and in another one, from now on or with an old cursor.  Some of them sleep until their inbox has
overflowed.  A screen appends what `drafts` and `events` hand it and nothing else.  When an answer
is whole it must have shown exactly what the log has: each token once, and each fact once, in order.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import anyio
import anyio.lowlevel
import msgspec

import weft
from weft.api.inspection import Joined
from weft.api.session import Session
from weft.app import App
from weft.events import (
    AnswerRestarted,
    Event,
    FactBase,
    NewMessage,
    TextDelta,
    ThinkingDelta,
    ToolArgsDelta,
)
from weft.messages import Node, Thinking
from weft.providers.script import Break, CallTogether, CallTool, SayText, Script, Think
from weft.providers.scripted import ScriptedModel
from weft.tools import FunctionTool

ANSWERS = 2
"""Whole answers that a screen sees before it leaves."""
AT_ONCE = 8
"""Screens that are open at the same time."""


class Verdict(msgspec.Struct):
    """What came of it."""

    joins: int = 0
    in_flight: int = 0
    """Times that an answer was in flight at that moment."""
    thinking: int = 0
    arguments: int = 0
    """Times that the draft had reasoning, or arguments."""
    overflows: int = 0
    remote: int = 0
    answers: int = 0
    """Whole answers that were compared."""
    wrong: list[str] = []


class ShownAnswer:
    """What a screen shows of one answer."""

    def __init__(self) -> None:
        self.text = ""
        self.thinking = ""
        self.arguments: dict[int, str] = {}

    def take(self, delta: TextDelta | ThinkingDelta | ToolArgsDelta) -> str:
        """Append a piece; says what is wrong with it, if anything."""
        match delta:
            case TextDelta(offset=offset, text=text):
                have, self.text = len(self.text), self.text[:offset] + text
            case ThinkingDelta(offset=offset, text=text):
                have, self.thinking = len(self.thinking), self.thinking[:offset] + text
            case ToolArgsDelta(index=index, offset=offset, text=text):
                known = self.arguments.get(index, "")
                have, self.arguments[index] = len(known), known[:offset] + text
        # From 0 on it is the answer so far, in the place of what was shown.
        return "" if offset in (0, have) else f"a piece at {offset}, after {have} characters"


class JoinedScreen:
    """A screen that trusts `join` alone."""

    def __init__(self, name: str, joined: Joined, *, is_remote: bool, after: int | None) -> None:
        self._name = name
        self._joined = joined
        self._is_remote = is_remote
        self._answers: dict[str, ShownAnswer] = {}
        self._cursor = joined.seq if after is None else after
        self.wrong: list[str] = []
        self.whole = 0
        for draft in joined.drafts:
            shown = self._answers[draft.node] = ShownAnswer()
            shown.text, shown.thinking = draft.text, draft.thinking
            shown.arguments = {call.index: call.arguments for call in draft.calls}

    async def watch(self, answers: int) -> None:
        """Read until so many answers are whole."""
        async with self._joined.events as events:
            async for event in events:
                self._take(event)
                if self.whole >= answers or self.wrong:
                    return
        self._say("the events ended")

    def _say(self, wrong: str) -> None:
        self.wrong.append(f"{self._name}: {wrong[:400]}")

    def _take(self, event: Event) -> None:
        match event:
            case AnswerRestarted(node_id=node):
                self._answers.pop(node, None)
            case (
                TextDelta(node_id=node) | ThinkingDelta(node_id=node) | ToolArgsDelta(node_id=node)
            ):
                if wrong := self._answers.setdefault(node, ShownAnswer()).take(event):
                    self._say(wrong)
            case FactBase():
                self._take_fact(event)
            case _:
                pass

    def _take_fact(self, fact: FactBase) -> None:
        if fact.seq != self._cursor + 1:
            self._say(f"fact {fact.seq} came after {self._cursor}")
        self._cursor = fact.seq
        if isinstance(fact, NewMessage) and fact.node.role == "assistant":
            shown = self._answers.pop(fact.node.id, None)
            # What was answered before the screen came, or while it slept, its message alone tells.
            if fact.seq > self._joined.events._upto:
                self.whole += 1
                self._compare(shown or ShownAnswer(), fact.node)

    def _compare(self, shown: ShownAnswer, node: Node) -> None:
        thought = "".join(part.text for part in node.parts if isinstance(part, Thinking))
        if shown.text != node.text:
            self._say(f"showed {shown.text!r} for {node.text!r}")
        if shown.thinking != thought:
            self._say(f"showed the reasoning {shown.thinking!r} for {thought!r}")
        for index, call in enumerate(node.calls):
            given = shown.arguments.get(index, "")
            whole = msgspec.json.encode(call.args).decode()
            # In another process the log may be faster than the socket; the message has them whole.
            is_enough = self._is_remote and whole.startswith(given)
            if given != whole and not is_enough:
                self._say(f"showed the arguments {given!r} for {whole!r}")


async def look(where: str) -> str:
    """Look somewhere."""
    return f"nothing at {where}"


def model(dice: random.Random) -> ScriptedModel:
    """Thinks, says and calls in small pieces; each eighth answer breaks off and begins again."""
    answers = []
    for number in range(16):
        calls = tuple(
            CallTool(name="look", args={"where": _words(dice, 60)}, chunk=dice.randint(1, 3))
            for _ in range(2)
        )
        steps = (
            Think(text=_words(dice, 120), chunk=dice.randint(1, 4)),
            SayText(text=_words(dice, 200), chunk=dice.randint(1, 4)),
            CallTogether(calls=calls),
        )
        answers.append((*steps, Break(times=1)) if number % 8 == 7 else steps)
    return ScriptedModel(Script(answers=tuple(answers), loop=True))


def _words(dice: random.Random, length: int) -> str:
    return "".join(dice.choices("abcdefgh äß漢🙂\n", k=length))


Place: TypeAlias = Literal["own", "guest", "new"]
Cursor: TypeAlias = Literal["now", "start", "near"]
PLACES: tuple[Place, ...] = ("own", "guest", "new")
CURSORS: tuple[Cursor, ...] = ("now", "now", "now", "start", "near")


class JoinPlan(msgspec.Struct, frozen=True):
    """How one screen joins."""

    number: int
    where: Place
    """In the session's process, in one that has watched it from the start, or in one that is
    opened for it."""
    cursor: Cursor
    sleeps: bool

    @classmethod
    def drawn(cls, number: int, dice: random.Random) -> JoinPlan:
        """A plan by chance."""
        [where] = dice.choices(PLACES, (66, 30, 4))
        return cls(number, where, dice.choice(CURSORS), dice.random() < 0.1)


class JoinStage:
    """A session that answers without end, and the screens that join it."""

    def __init__(self, folder: str, dice: random.Random, verdict: Verdict) -> None:
        self._folder = folder
        self._dice = dice
        self._verdict = verdict
        self._room = anyio.Semaphore(AT_ONCE)

    async def run(self, n: int) -> None:
        """`n` screens, a few at a time."""
        async with self._app() as owner, self._app() as guest:
            self._session = await owner.sessions.start_session(
                model=model(self._dice), tools=[FunctionTool(look, effect="pure")]
            )
            self._guest = await guest.sessions.get(self._session.id)
            async with anyio.create_task_group() as group:
                group.start_soon(_talk_without_end, self._session)
                await self._join_all(n)
                group.cancel_scope.cancel()

    def _app(self) -> App:
        store = Path(self._folder) / "weft.db"
        return weft.open(self._folder, store, environ={"HOME": self._folder})

    async def _join_all(self, n: int) -> None:
        async with anyio.create_task_group() as group:
            for number in range(n):
                await self._room.acquire()
                for _ in range(self._dice.randint(0, 60)):
                    await anyio.lowlevel.checkpoint()
                group.start_soon(self._one, JoinPlan.drawn(number, self._dice))

    async def _one(self, plan: JoinPlan) -> None:
        try:
            if plan.where != "new":
                chosen = self._session if plan.where == "own" else self._guest
                await self._join(plan, chosen)
                return
            async with self._app() as app:
                await self._join(plan, await app.sessions.get(self._session.id))
        finally:
            self._room.release()

    async def _join(self, plan: JoinPlan, session: Session) -> None:
        after = {"now": None, "start": 0}.get(plan.cursor)
        if plan.cursor == "near":
            after = max(0, (await session.editor_snapshot()).seq - 3)
        joined = await session.join(after=after)
        screen = JoinedScreen(str(plan), joined, is_remote=plan.where != "own", after=after)
        self._count(plan, joined)
        if plan.sleeps:
            while not joined.events._inbox.lost:
                await anyio.lowlevel.checkpoint()
            self._verdict.overflows += 1
        await screen.watch(ANSWERS)
        self._verdict.answers += screen.whole
        self._verdict.wrong += screen.wrong

    def _count(self, plan: JoinPlan, joined: Joined) -> None:
        verdict = self._verdict
        verdict.joins += 1
        verdict.remote += plan.where != "own"
        verdict.in_flight += bool(joined.drafts)
        verdict.thinking += any(draft.thinking for draft in joined.drafts)
        verdict.arguments += any(draft.calls for draft in joined.drafts)


async def _talk_without_end(session: Session) -> None:
    for number in itertools.count():
        await session.send_message(f"turn {number}", max_turns=50)


async def join_at_random(n: int, seed: int, verdict: Verdict) -> None:
    """`n` screens at random moments."""
    with tempfile.TemporaryDirectory(prefix="joins-") as folder:
        await JoinStage(folder, random.Random(seed), verdict).run(n)


async def prove(n: int, seed: int) -> Verdict:
    """The claim, within a time that only a broken one needs."""
    verdict = Verdict()
    with anyio.fail_after(900):
        await join_at_random(n, seed, verdict)
    return verdict


def main(argv: Sequence[str]) -> int:
    """Prove it and print the line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(argv)
    began = time.monotonic()
    verdict = anyio.run(prove, chosen.n, chosen.seed)
    for wrong in verdict.wrong:
        print(wrong, file=sys.stderr)
    line = {
        "claim": "joins",
        "n": verdict.joins,
        "violations": len(verdict.wrong),
        "seed": chosen.seed,
        "seconds": round(time.monotonic() - began, 1),
        "in_flight": verdict.in_flight,
        "thinking": verdict.thinking,
        "arguments": verdict.arguments,
        "overflows": verdict.overflows,
        "remote": verdict.remote,
        "answers": verdict.answers,
    }
    print(json.dumps(line))
    return int(bool(verdict.wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
