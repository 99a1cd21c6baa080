"""Readers that come and go, and readers that never read.

`python -m tests.crash.subscribers --n 500 --seed 1` prints one JSON line.

While turns run, one reader disconnects `n` times: after some events, in the midst of waiting, by
closing or by just letting go, or after it has slept so long that its inbox overflowed.  It comes
back with the cursor it had, now and then with an earlier one.  What it has read then must be the
log: every durable event once, in order, to the byte.

Beside it a hundred readers are open and never read.  The session must not notice: it makes the same
appends as without them, no inbox holds more than its bound, and nothing ever waits for one of them
(they are never scheduled, and the turns end).  When they read at last, each of them gets
everything, once, in order.
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
from typing import Literal

import anyio
import anyio.lowlevel
import msgspec

import weft
from weft.actors.hub import CAPACITY
from weft.api.session import Session
from weft.app import App
from weft.events import Event, FactBase, UnknownFact, encode
from weft.providers.script import CallTogether, CallTool, SayText, Script
from weft.providers.scripted import ScriptedModel
from weft.session import Subscription
from weft.store import Append
from weft.tools import FunctionTool

STALLED = 100
TURNS_WITH_STALLED = 12
PIECES = 200
"""Live events of one answer, so that an inbox can overflow in a few turns."""


class Verdict(msgspec.Struct):
    """What came of it."""

    reconnects: int = 0
    overflows: int = 0
    """Times that the reader had lost events and read on from the log."""
    facts: int = 0
    most_held: int = 0
    """The most events that an inbox held."""
    stalled_overflows: int = 0
    seconds_alone: float = 0.0
    seconds_with_stalled: float = 0.0
    wrong: list[str] = []


async def look(where: str) -> str:
    """Look somewhere."""
    return f"nothing at {where}"


def model() -> ScriptedModel:
    """Says much, calls three pure tools, and is done; again and again."""
    calls = tuple(CallTool(name="look", args={"where": where}) for where in "abc")
    text = SayText(text="x" * PIECES, chunk=1)
    return ScriptedModel(
        Script(answers=((text, CallTogether(calls=calls)), (SayText(text="done"),)), loop=True)
    )


async def start(app: App) -> Session:
    """A session that asks nobody."""
    return await app.sessions.start_session(
        model=model(), tools=[FunctionTool(look, effect="pure")]
    )


# -- coming and going


class Wanderer:
    """A reader that does not stay."""

    def __init__(self, session: Session, dice: random.Random, verdict: Verdict) -> None:
        self._session = session
        self._dice = dice
        self._verdict = verdict
        self._cursor = 0
        self.read: list[bytes] = []
        """The facts that were handed out, as the log would hold them."""

    async def wander(self, times: int) -> None:
        """Come and go so many times, then stay until everything is read."""
        while self._verdict.reconnects < times:
            self._verdict.reconnects += 1
            if self.read and self._dice.random() < 0.2:
                await self._look_back()
            else:
                await self._visit()

    async def _visit(self) -> None:
        """Read on from where we were, for a while."""
        way = self._dice.choice(("some", "some", "some", "cancel", "cancel", "sleep"))
        live: Literal["status"] | bool = way == "sleep" or self._dice.random() < 0.5 or "status"
        events = await self._session.subscribe(after=self._cursor, live=live)
        if way == "sleep":
            await self._oversleep(events)
        if way == "cancel":
            with anyio.move_on_after(self._dice.uniform(0, 0.003)):
                while True:
                    self._take(await anext(events))
        else:
            for _ in range(self._dice.randint(0, 30)):
                self._take(await anext(events))
        if self._dice.random() < 0.7:
            events.close()

    async def _oversleep(self, events: Subscription) -> None:
        """Read nothing until the inbox has overflowed."""
        while not events._inbox.lost:
            await anyio.lowlevel.checkpoint()
        self._verdict.overflows += 1

    async def _look_back(self) -> None:
        """Read again from an earlier cursor: the same facts come, from there on."""
        back = self._dice.randint(0, len(self.read) - 1)
        async with await self._session.subscribe(after=back, live=False) as events:
            for place in range(back, min(len(self.read), back + 40)):
                fact = await anext(events)
                assert isinstance(fact, FactBase)
                if encode(fact) != self.read[place]:
                    self._verdict.wrong.append(f"after {back}, fact {place + 1} is another one")
                    return

    def _take(self, event: Event) -> None:
        if isinstance(event, UnknownFact) or not isinstance(event, FactBase):
            return
        if event.seq != self._cursor + 1:
            self._verdict.wrong.append(f"fact {event.seq} came after {self._cursor}")
        self._cursor = event.seq
        self.read.append(encode(event))

    async def read_to(self, seq: int) -> None:
        """Read to the end."""
        async with await self._session.subscribe(after=self._cursor, live="status") as events:
            while self._cursor < seq:
                self._take(await anext(events))


async def come_and_go(times: int, seed: int, verdict: Verdict) -> None:
    """One reader that comes and goes while turns run."""
    with tempfile.TemporaryDirectory(prefix="readers-") as folder:
        async with weft.open(folder, Path(folder) / "weft.db", environ={"HOME": folder}) as app:
            session = await start(app)
            reader = Wanderer(session, random.Random(seed), verdict)
            async with anyio.create_task_group() as group:
                group.start_soon(_talk_without_end, session)
                await reader.wander(times)
                group.cancel_scope.cancel()
            # A message that was on its way may still start a turn; what counts is what is there
            # now.
            end = await app.store.last_seq(session.id)
            await reader.read_to(end)
            log = [record.body for record in await app.store.read(session.id, limit=end)]
    verdict.facts = len(log)
    if reader.read != log:
        verdict.wrong.append(f"{len(reader.read)} facts were read, {len(log)} are in the log")


async def _talk_without_end(session: Session) -> None:
    for number in itertools.count():
        await session.send_message(f"turn {number}")


# -- never reading


async def stall(readers: int, turns: int, verdict: Verdict) -> None:
    """The same turns without and with readers that never read."""
    verdict.seconds_alone, alone = await _timed_turns(0, turns, verdict)
    verdict.seconds_with_stalled, beside = await _timed_turns(readers, turns, verdict)
    if alone != beside:
        verdict.wrong.append(f"{alone} (appends, facts) without readers, {beside} with them")


async def _timed_turns(readers: int, turns: int, verdict: Verdict) -> tuple[float, tuple[int, int]]:
    with tempfile.TemporaryDirectory(prefix="readers-") as folder:
        async with weft.open(folder, Path(folder) / "weft.db", environ={"HOME": folder}) as app:
            session = await start(app)
            appends = _count_appends(app)
            stalled = [await session.subscribe(after=0) for _ in range(readers)]
            began = time.monotonic()
            for number in range(turns):
                await session.send_message(f"turn {number}")
                held = [len(each._inbox._events) for each in stalled]
                verdict.most_held = max([verdict.most_held, *held])
            seconds = time.monotonic() - began
            end = await app.store.last_seq(session.id)
            verdict.stalled_overflows += sum(bool(each._inbox.lost) for each in stalled)
            for each in stalled:
                await _read_all(each, end, verdict)
    if verdict.most_held > CAPACITY:
        verdict.wrong.append(f"an inbox held {verdict.most_held} events")
    return round(seconds, 3), (len(appends), end)


def _count_appends(app: App) -> list[int]:
    """A list that grows with every append of the store."""
    counted: list[int] = []
    append = app.store.append

    async def counting(*appends: Append) -> None:
        counted.append(len(appends))
        await append(*appends)

    setattr(app.store, "append", counting)  # noqa: B010  # the seam is a test's own
    return counted


async def _read_all(events: Subscription, end: int, verdict: Verdict) -> None:
    """What a reader gets that reads at last."""
    seqs: list[int] = []
    while not seqs or seqs[-1] < end:
        event = await anext(events)
        if isinstance(event, FactBase):
            seqs.append(event.seq)
    events.close()
    if seqs != list(range(1, end + 1)):
        verdict.wrong.append("a reader that had stalled missed something")


# -- the claim


async def prove(n: int, stalled: int, turns: int, seed: int) -> Verdict:
    """Both halves."""
    verdict = Verdict()
    with anyio.fail_after(300):
        await come_and_go(n, seed, verdict)
        await stall(stalled, turns, verdict)
    return verdict


def main(argv: Sequence[str]) -> int:
    """Prove it and print the line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=500)
    parser.add_argument("--stalled", type=int, default=STALLED)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(argv)
    began = time.monotonic()
    verdict = anyio.run(prove, chosen.n, chosen.stalled, TURNS_WITH_STALLED, chosen.seed)
    for wrong in verdict.wrong:
        print(wrong, file=sys.stderr)
    line = {
        "claim": "subscribers",
        "n": verdict.reconnects,
        "violations": len(verdict.wrong),
        "seed": chosen.seed,
        "seconds": round(time.monotonic() - began, 1),
        "facts": verdict.facts,
        "overflows": verdict.overflows,
        "stalled": chosen.stalled,
        "stalled_that_overflowed": verdict.stalled_overflows,
        "most_held_by_an_inbox": verdict.most_held,
        "seconds_alone": verdict.seconds_alone,
        "seconds_with_stalled": verdict.seconds_with_stalled,
    }
    print(json.dumps(line))
    return int(bool(verdict.wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
