"""A turn that waits is woken once, and asks no model meanwhile, whenever its process is killed.

`python -m tests.crash.waits` prints one JSON line; `--rounds 20 --seed 7` tries fewer, others, and
`--only 13` one of them.  A round is a session whose turn waits: for a time, for a background
command, for a file, for a port, for a CI run (of a `gh` of ours), or for a file because a program
wants that (`session.wait_for`); or which is sent a prompt later, once (`at`) or again and again
(`loop`).  The file is written, the port listened on and the run ended after the kills.
Its process is killed (`kill -9`) once or twice, when the log has grown to a place that the seed
chooses, or a moment later; the next one opens the session and goes on with what is not asleep.  At
last two applications are open at once, both of which wake what is due.

What is judged is the log: each turn has ended once, and well; each wait has one end, not before its
time; between the two no model call began; each call was answered once; and each round of a schedule
began once, not before its time.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, TypeAlias

import anyio
import apsw
import msgspec

from tests.support.source_code import ROOT
from weft.api.session import Session
from weft.app import App, app, open_app
from weft.errors import SessionBusy, UsageError
from weft.events import (
    AnyFact,
    InputScheduled,
    ModelCallStarted,
    ScheduleEnded,
    ScheduleFired,
    ToolComplete,
    TurnFinished,
    TurnWaiting,
    TurnWoken,
    decode,
)
from weft.ids import CallUid
from weft.session.decide import unattended
from weft.store.sqlite import open_sqlite
from weft.tools.waits import ci_look

Kind: TypeAlias = Literal["time", "command", "file", "port", "ci", "program", "at", "loop"]

_KINDS: tuple[Kind, ...] = ("command", "time", "file", "port", "ci", "program", "at", "loop")
TURNS = {"program": 2, "loop": 3}
"""How many turns a round of a kind has; one where it is not here."""
SESSION = "ses_waits"
WAIT_SECONDS = 0.4
COMMAND = "sleep 0.9; echo built"
ROUND_SECONDS = 60.0
TICK_SECONDS = 0.002
MOST_FACTS = {"time": 14, "command": 24, "file": 9, "port": 9, "ci": 9}
MOST_FACTS |= {"program": 13, "at": 10, "loop": 24}
"""About how many facts a round has; a kill that comes later finds the process at its end."""


class WaitPlan(msgspec.Struct, frozen=True):
    """What a seed and a number make of a round."""

    kind: Kind
    kills: tuple[tuple[int, float], ...]
    """How far the log has grown, and how many seconds later."""


def planned(seed: int, number: int) -> WaitPlan:
    """The round of this number."""
    dice = random.Random(f"{seed}:{number}")
    kind: Kind = _KINDS[number % len(_KINDS)]
    kills = []
    for _ in range(dice.choice((1, 1, 2))):
        delay = dice.choice((0.0, dice.uniform(0, 0.05), dice.uniform(0, WAIT_SECONDS)))
        kills.append((dice.randint(1, MOST_FACTS[kind]), delay))
    return WaitPlan(kind, tuple(sorted(kills)))


def script(kind: Kind, port: int) -> dict[str, Any]:
    """A model that waits, chosen by the rounds of calls that it sees."""
    start = {"do": "call", "name": "shell", "args": {"command": COMMAND, "background": True}}
    waits = {
        "time": [_wait(seconds=WAIT_SECONDS)],
        "command": [start, _wait(command="bg_1")],
        "file": [_wait(file="out.txt")],
        "port": [_wait(port=port)],
        "ci": [_wait(ci="acme/tool#77")],
    }
    answers: list[Any] = [
        {"when": {"since": "go.", "rounds": place}, "steps": [step]}
        for place, step in enumerate(waits.get(kind, ()))
    ]
    return {"answers": [*answers, "done."], "loop": True}


def _wait(**args: object) -> dict[str, Any]:
    return {"do": "call", "name": "wait_for", "args": args}


class WaitRound:
    """One session, and the processes that go on with it."""

    def __init__(self, root: Path, plan: WaitPlan) -> None:
        self._root = root
        self._plan = plan
        self._failed: list[str] = []
        (root / "project").mkdir()
        (root / "kind").write_text(plan.kind)
        _make_forge(root / "forge")
        # Not listened on before it is to be: its number is taken, and no one has it.
        self._server = socket.socket()
        self._server.bind(("127.0.0.1", 0))
        port = self._server.getsockname()[1]
        (root / "script.json").write_text(json.dumps(script(plan.kind, port)))

    def run(self) -> str:
        """Let the round happen; what is wrong already, or nothing."""
        for grown, delay in self._plan.kills:
            self._kill_at(grown, delay)
        try:
            anyio.run(self._finish)
        except TimeoutError:
            return "the turn does not end"
        finally:
            self._server.close()
        return "; ".join(self._failed)

    def _kill_at(self, grown: int, delay: float) -> None:
        environ = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.waits", "--life", str(self._root)],
            cwd=ROOT,
            env=environ,
        )
        give_up = time.monotonic() + ROUND_SECONDS
        while process.poll() is None and self._seq() < grown and time.monotonic() < give_up:
            time.sleep(TICK_SECONDS)
        time.sleep(delay)
        process.kill()
        code = process.wait()
        if code not in (0, -signal.SIGKILL):
            self._failed.append(f"a process ended with {code}")

    def _seq(self) -> int:
        path = self._root / "weft.db"
        if not path.exists():
            return 0
        try:
            db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
            found = db.execute("select last_seq from streams where name = ?", (SESSION,)).fetchall()
            db.close()
        except apsw.Error:  # it is being made
            return 0
        return int(str(found[0][0])) if found else 0

    async def _finish(self) -> None:
        with anyio.fail_after(ROUND_SECONDS):
            async with (
                opened(self._root),
                opened(self._root) as second,
                anyio.create_task_group() as group,
            ):
                group.start_soon(live, second)
                if self._plan.kind in ("file", "port", "ci", "program"):
                    await self._until_waiting(second)
                (self._root / "project" / "out.txt").write_text("done")
                _end_run(self._root / "forge")
                self._server.listen()

    async def _until_waiting(self, application: App) -> None:
        """What is there before the turn waits for it is not waited for."""
        session = await application.sessions.start_session(session_id=SESSION, auto_approve=True)
        async with await session.subscribe(after=0, live="status") as events:
            async for event in events:
                if isinstance(event, TurnWaiting):
                    return

    def facts(self) -> list[AnyFact]:
        """The log."""
        return anyio.run(self._facts)

    async def _facts(self) -> list[AnyFact]:
        async with await open_sqlite(self._root / "weft.db") as store:
            return [decode(record.body) for record in await store.read(SESSION)]


def _make_forge(folder: Path) -> None:
    """A `gh` whose run goes on."""
    folder.mkdir()
    (folder / "gh").write_text(f"#!/bin/sh\nexec cat {folder}/state\n")
    (folder / "gh").chmod(0o755)
    (folder / "state").write_text(json.dumps({"status": "in_progress"}))


def _end_run(folder: Path) -> None:
    """Its run has ended: the whole answer at once, for it may be read now."""
    (folder / "new").write_text(json.dumps({"status": "completed", "conclusion": "success"}))
    (folder / "new").replace(folder / "state")


def opened(root: Path) -> App:
    """The application, on a store that all processes of the round share."""
    app.WAKE_EVERY_SECONDS = 0.05
    ci_look.PACE_SECONDS = 0.1  # type: ignore[misc]
    unattended.LEAST_EVERY_SECONDS = 0.0  # type: ignore[misc]
    environ = {
        "HOME": str(root),
        "WEFT_HOME": str(root),
        "PATH": f"{root}/forge:{os.environ['PATH']}",
    }
    settings = {"model.default": f"scripted:{root / 'script.json'}", "sandbox.mode": "off"}
    return open_app(root / "project", root / "weft.db", settings, environ=environ, wakes_due=True)


async def live(application: App) -> None:
    """Go on with the session, to the end of its turn; a wait is left to those who wake it."""
    session = await application.sessions.start_session(session_id=SESSION, auto_approve=True)
    kind = (Path(application.project_path).parent / "kind").read_text()
    ended = 0
    async with await session.subscribe(after=0, live="status") as events:
        await _go_on(session, kind)
        async for event in events:
            if not isinstance(event, TurnFinished):
                continue
            ended += 1
            if ended == TURNS.get(kind, 1):
                return
            if kind == "program":
                await _begin_wait(session)


async def _go_on(session: Session, kind: str) -> None:
    status = await session.get_status()
    if status == "interrupted":
        await session.continue_turn()
    elif status == "idle" and not await session.messages():
        await _begin(session, kind)


async def _begin(session: Session, kind: str) -> None:
    every, rounds = (WAIT_SECONDS, TURNS["loop"]) if kind == "loop" else (None, None)
    if kind not in ("at", "loop"):
        await session.send_prompt("go.")
        return
    due = time.time() + WAIT_SECONDS
    # The one that finds it made, and over by now, has nothing more to do.
    with suppress(UsageError):
        await session.schedule(due, "go.", every=every, max_rounds=rounds, input_id="at")


async def _begin_wait(session: Session) -> None:
    with suppress(UsageError, SessionBusy):
        await session.wait_for({"kind": "file", "place": "out.txt"}, input_id="wait")


async def _life(root: Path) -> None:
    async with opened(root) as application:
        await live(application)


def judge(facts: Sequence[AnyFact], turns: int = 1) -> list[str]:
    """What is wrong about a log with so many turns."""
    wrong = []
    if [fact.seq for fact in facts] != list(range(1, len(facts) + 1)):
        wrong.append("the log has gaps")
    ends = [fact.reason for fact in facts if isinstance(fact, TurnFinished)]
    if ends != ["stop"] * turns:
        wrong.append(f"the turn ended with {ends}")
    waits = [fact for fact in facts if isinstance(fact, TurnWaiting)]
    for wait in waits:
        wrong += _wrong_wait(wait, facts)
    woken = [fact.wait_id for fact in facts if isinstance(fact, TurnWoken)]
    wrong += [f"a wake without a wait: {each}" for each in woken if each not in _ids(waits)]
    calls = [wait.call_uid for wait in waits]
    if len(set(calls)) < len(calls):
        wrong.append("one call has waited twice")
    return wrong + _wrong_rounds(facts, turns)


def _wrong_rounds(facts: Sequence[AnyFact], turns: int) -> list[str]:
    """What is wrong about the rounds of a schedule."""
    scheduled = [fact for fact in facts if isinstance(fact, InputScheduled)]
    fired = [fact for fact in facts if isinstance(fact, ScheduleFired)]
    if not scheduled:
        return ["a round without a schedule"] if fired else []
    wrong = []
    if len(scheduled) != 1:
        wrong.append(f"it was scheduled {len(scheduled)} times")
    if [fact.round for fact in fired] != list(range(1, turns + 1)):
        wrong.append(f"rounds {[fact.round for fact in fired]} began, of {turns}")
    if any(fact.at < fact.due for fact in fired):
        wrong.append("a round began before its time")
    if sum(isinstance(fact, ScheduleEnded) for fact in facts) != 1:
        wrong.append("the schedule did not end once")
    return wrong


def _ids(waits: Sequence[TurnWaiting]) -> set[str]:
    return {wait.wait_id for wait in waits}


def _wrong_wait(wait: TurnWaiting, facts: Sequence[AnyFact]) -> list[str]:
    woken = [f for f in facts if isinstance(f, TurnWoken) and f.wait_id == wait.wait_id]
    if len(woken) != 1:
        return [f"a wait was woken {len(woken)} times"]
    wrong = []
    [end] = woken
    between = [fact for fact in facts if wait.seq < fact.seq < end.seq]
    if any(isinstance(fact, ModelCallStarted) for fact in between):
        wrong.append("a model was asked during the wait")
    if end.by != wait.on.kind:
        wrong.append(f"it was for a {wait.on.kind}, and ended by {end.by}")
    if wait.on.kind == "time" and end.at < (wait.until or 0.0) - 0.01:
        wrong.append("it was woken before its time")
    if wait.call_uid is not None and _answers(wait.call_uid, facts) != 1:
        wrong.append(f"its call was answered {_answers(wait.call_uid, facts)} times")
    return wrong


def _answers(call_uid: CallUid | None, facts: Sequence[AnyFact]) -> int:
    return sum(isinstance(fact, ToolComplete) and fact.call_uid == call_uid for fact in facts)


def attempt(seed: int, number: int) -> tuple[str, bool]:
    """One round: what is wrong, with what happened in it; and whether its turn waited."""
    plan = planned(seed, number)
    with tempfile.TemporaryDirectory(prefix="weft-waits-") as name:
        played = WaitRound(Path(name), plan)
        wrong = [said] if (said := played.run()) else []
        facts = played.facts()
        wrong = wrong or judge(facts, TURNS.get(plan.kind, 1))
    waited = any(isinstance(fact, TurnWaiting | InputScheduled) for fact in facts)
    said = f"round {number} ({plan.kind}, kills {plan.kills}): {'; '.join(wrong)}" if wrong else ""
    return said, waited


def main(argv: Sequence[str]) -> int:
    """Prove it and print the line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--only", type=int, default=None)
    parser.add_argument("--life", type=Path, default=None)
    chosen = parser.parse_args(argv)
    if chosen.life is not None:
        anyio.run(_life, chosen.life)
        return 0
    start = time.monotonic()
    numbers = range(chosen.rounds) if chosen.only is None else [chosen.only]
    violations = waited = 0
    for number in numbers:
        said, has_waited = attempt(chosen.seed, number)
        waited += has_waited
        if said:
            violations += 1
            print(said, file=sys.stderr, flush=True)
    line = {
        "claim": "waits",
        "n": len(numbers),
        "violations": violations,
        "seed": chosen.seed,
        "seconds": round(time.monotonic() - start, 1),
        "waited": waited,
    }
    print(json.dumps(line))
    return int(bool(violations))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
