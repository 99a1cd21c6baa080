"""A session and its agent in two processes, killed at random.

`python -m tests.crash.families --n 100 --seed 1` prints one JSON line.

A session with a budget has given its task to an agent that would never end by itself.  One process
has the session, another the agent; after a random time one of them is killed (`kill -9`), or both,
and started again.  Whoever is left goes on.  In the end both are at rest, and the log must say: the
agent ended once, each model call of either is counted once, and when the last call but the ones in
flight was made, the budget that both share was not used up.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import anyio
import anyio.to_thread
import msgspec

import weft
from tests.support.role_models import RoleAnswers, agent_call, role_model
from weft.api.session import Session
from weft.app import App
from weft.errors import WeftError
from weft.events import (
    AnyFact,
    ChildFinished,
    ChildStarted,
    TurnFinished,
    UsageRecorded,
    decode,
)
from weft.ids import SessionId
from weft.messages import NOTHING_USED, Usage
from weft.providers.script import CallTool, Pause, SayText, Spend, Stall, Step
from weft.providers.scripted import ScriptedModel, ScriptedProvider
from weft.session import load_state
from weft.store.sqlite import open_sqlite

ROOT = "root"
CALL = Usage(input_tokens=500, output_tokens=500)
BUDGET = 20_000
LONGEST_LIFE = 1.5
"""Seconds within which a process is killed."""
A_TRY_TAKES_AT_MOST_SECONDS = 120.0


class Verdict(msgspec.Struct):
    """What came of it."""

    tries: int = 0
    killed: dict[str, int] = {}
    apart: int = 0
    """Tries in which agent and session were in two processes when the kill came."""
    wrong: list[str] = []


# -- the workers


def roles(*, stalls: bool) -> RoleAnswers:
    """The session hands its task to an agent, which looks and looks."""
    spend = Spend(usage=CALL)
    waits: tuple[Step, ...] = (Stall(gate="a"),) if stalls else ()
    first: tuple[Step, ...] = (SayText(text="hm"), *waits, *_look(0), spend)
    return {
        "begin": [(agent_call("dig"), spend), (SayText(text="The end."), spend)],
        "dig": [first, *((*_look(number), spend) for number in range(1, 90))],
    }


def _look(number: int) -> tuple[Step, ...]:
    return Pause(seconds=0.03), CallTool(name="todo", args={"todos": [{"text": str(number)}]})


def open_app(folder: Path, model: ScriptedModel) -> App:
    """The application as each process opens it."""
    return weft.open(
        folder.parent,
        folder / "weft.db",
        {"model.default": "scripted:script", "sandbox.mode": "off"},
        environ={"HOME": str(folder.parent), "PATH": os.environ["PATH"]},
        providers={"scripted": ScriptedProvider({"script": model})},
    )


async def start(app: App) -> Session:
    """The session, made or resumed."""
    return await app.sessions.start_session(
        session_id=ROOT, auto_approve=True, budget={"max_tokens": BUDGET}
    )


async def begin(folder: Path) -> None:
    """Have both begun in one process, and die with the agent in the middle of an answer."""
    model = role_model(roles(stalls=True))
    async with open_app(folder, model) as app:
        await (await start(app)).send_prompt("begin")
        await model.gate("a").reached.wait()
        os.kill(os.getpid(), signal.SIGKILL)


async def lead(folder: Path, *, waits: bool) -> None:
    """Have the session, and go on with it until its turn is over."""
    async with open_app(folder, role_model(roles(stalls=False))) as app:
        session = await start(app)
        if waits:
            await _told_to_go()
        while not await _is_over(app, session):
            try:
                await session.continue_and_wait()
            except WeftError:
                await anyio.sleep(0.02)
    print("over", flush=True)


async def _is_over(app: App, session: Session) -> bool:
    state = (await app.host.port(session.id)).state
    return state.turn.open is None


async def work(folder: Path, child: str, *, waits: bool) -> None:
    """Have the agent, and go on with it until it rests; then stay until told to leave."""
    async with open_app(folder, role_model(roles(stalls=False))) as app:
        try:
            session = await app.sessions.get(child)
            if waits:
                await _told_to_go()
            print("apart" if app.host.runs_here(SessionId(child)) else "together", flush=True)
            # On a busy machine the session may have gone on with its agent to the end before this
            # process is there.  It is a new turn then, of the agent alone, within the same budget.
            await session.continue_and_wait()
        except WeftError as error:
            print(f"refused {error}", file=sys.stderr, flush=True)
        print("rests", flush=True)
        await anyio.to_thread.run_sync(sys.stdin.readline)
    # Closed: what a turn of the agent alone has used is counted by the session.
    print("left", flush=True)


async def _told_to_go() -> None:
    print("ready", flush=True)
    await anyio.to_thread.run_sync(sys.stdin.readline)


# -- the tries


class Worker:
    """A process that has one of the two."""

    def __init__(self, folder: Path, *words: str) -> None:
        self._command = [sys.executable, "-m", "tests.crash.families", "--worker", str(folder)]
        self._words = words
        self._start("--waits")

    def _start(self, *more: str) -> None:
        self._process = subprocess.Popen(
            [*self._command, *self._words, *more],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def says(self) -> str:
        """The next word that it says; empty when it is gone."""
        return _pipe(self._process.stdout).readline().strip()

    def go(self) -> None:
        """Let it begin."""
        pipe = _pipe(self._process.stdin)
        pipe.write("go\n")
        pipe.flush()

    def kill(self) -> None:
        """End it, and wait until it is gone."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            _pipe(pipe).close()

    def start_again(self) -> None:
        """A new process in its place."""
        self.kill()
        self._start()


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


def one_try(template: Path, child: str, dice: random.Random, verdict: Verdict) -> None:
    """Two processes, a kill, and the end."""
    folder = template.parent / f"try-{verdict.tries}"
    shutil.copytree(template, folder, ignore=shutil.ignore_patterns("*.sock"))
    verdict.tries += 1
    victims = dice.choice((("lead",), ("work",), ("lead", "work"), ("work", "lead")))
    workers = {"lead": Worker(folder, "lead")}
    try:
        assert workers["lead"].says() == "ready"
        workers["work"] = Worker(folder, "work", child)
        assert workers["work"].says() == "ready"
        for worker in workers.values():
            worker.go()
        verdict.apart += workers["work"].says() == "apart"
        for name in victims:
            time.sleep(dice.uniform(0, LONGEST_LIFE) / len(victims))
            workers[name].start_again()
            verdict.killed[name] = verdict.killed.get(name, 0) + 1
        wrong = end_in_time(workers["lead"], workers["work"])
    finally:
        for worker in workers.values():
            worker.kill()
    wrong += anyio.run(read_logs, folder, SessionId(child))
    verdict.wrong += [f"try {verdict.tries}: {victims} killed: {each}" for each in wrong]
    shutil.rmtree(folder)


def end_in_time(lead: Worker, work: Worker) -> list[str]:
    """Let both come to their end, each in its own time; returns what is wrong.

    The session may be over when the other process is still about to find the agent, which then has
    a turn alone.
    """
    wrong = [] if (said := _says_in_time(lead, "over")) == "over" else [f"lead said {said!r}"]
    if (said := _says_in_time(work, "rests")) != "rests":
        return [*wrong, f"work said {said!r}"]
    work.go()
    said = _says_in_time(work, "left")
    return wrong if said == "left" else [*wrong, f"work said {said!r}"]


def _says_in_time(worker: Worker, last: str) -> str:
    """What a process says at last: this word, or nothing."""

    def ring(number: int, frame: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, A_TRY_TAKES_AT_MOST_SECONDS)
    said = "nothing"
    try:
        while said not in (last, ""):
            said = worker.says()
    except TimeoutError:
        return f"{said}, and no more"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return said


async def read_logs(folder: Path, child: SessionId) -> list[str]:
    """What is wrong with the logs."""
    async with await open_sqlite(folder / "weft.db") as store:
        told: dict[str, list[AnyFact]] = {
            name: [decode(record.body) for record in await store.read(name, limit=100_000)]
            for name in (ROOT, child)
        }
        root = await load_state(SessionId(ROOT), store)
        agent = await load_state(child, store)
    wrong: list[str] = []
    ends = [fact for fact in told[ROOT] if isinstance(fact, ChildFinished)]
    # What it used in a turn of its own afterwards is one more fact, with the same end.
    turns = sum(isinstance(fact, TurnFinished) for fact in told[child])
    if not 1 <= len(ends) <= turns:
        wrong.append(f"the agent ended {len(ends)} times in {turns} turns")
    for name, state in (("session", root), ("agent", agent)):
        if state.turn.open is not None:
            wrong.append(f"a turn of the {name} is open still")
    if root.turn.last_reason != "max_budget":
        reasons = [end.finish_reason for end in ends]
        wrong.append(f"the turn ended with {root.turn.last_reason}, the agent with {reasons}")
    used = [
        fact.usage for facts in told.values() for fact in facts if isinstance(fact, UsageRecorded)
    ]
    total = sum(used, NOTHING_USED).total_tokens
    if root.ledger.total.total_tokens != total:
        wrong.append(f"{root.ledger.total.total_tokens} tokens are counted of {total}")
    # A call is refused when the budget is used up: the last one may go beyond it, and so may one
    # that was killed, whose use is estimated when the next process finds it.
    largest = sorted((each.total_tokens for each in used), reverse=True)[:2]
    if total - sum(largest) > BUDGET:
        wrong.append(f"{total} tokens were used of {BUDGET}")
    return wrong


def prove(n: int, seed: int) -> Verdict:
    """All tries, on copies of one beginning."""
    verdict, dice = Verdict(), random.Random(seed)
    # A short path: sockets lie below it.
    with tempfile.TemporaryDirectory(prefix="fam-") as base:
        template = Path(base) / "begun"
        child = begun(template)
        for _ in range(n):
            one_try(template, child, dice, verdict)
    return verdict


def begun(template: Path) -> str:
    """Have a session begin in this folder and die; returns its agent."""
    template.mkdir()
    command = [sys.executable, "-m", "tests.crash.families", "--worker", str(template)]
    subprocess.run([*command, "begin"], check=False)
    return anyio.run(_child_of, template)


async def _child_of(folder: Path) -> str:
    async with await open_sqlite(folder / "weft.db") as store:
        facts = [decode(record.body) for record in await store.read(ROOT, limit=1_000)]
    [child] = [fact.child for fact in facts if isinstance(fact, ChildStarted)]
    return child


def _be_worker(words: Sequence[str]) -> int:
    folder, role, *rest = words
    waits = "--waits" in rest
    if role == "begin":
        anyio.run(begin, Path(folder))
    elif role == "lead":
        anyio.run(lambda: lead(Path(folder), waits=waits))
    else:
        anyio.run(lambda: work(Path(folder), rest[0], waits=waits))
    return 0


def main(argv: Sequence[str]) -> int:
    """Prove it and print the line."""
    if argv[:1] == ["--worker"]:
        return _be_worker(argv[1:])
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(argv)
    began = time.monotonic()
    verdict = prove(chosen.n, chosen.seed)
    for wrong in verdict.wrong:
        print(wrong, file=sys.stderr)
    line = {
        "claim": "families",
        "n": verdict.tries,
        "violations": len(verdict.wrong),
        "seed": chosen.seed,
        "seconds": round(time.monotonic() - began, 1),
        "killed": verdict.killed,
        "apart": verdict.apart,
    }
    print(json.dumps(line))
    return int(bool(verdict.wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
