"""A goal goes on after any kill, in its mode, with no grant that it did not have.

`python -m tests.crash.goals` prints one JSON line; `--rounds 5 --seed 7` tries fewer, others, and
`--only 13` one of them.  A round is a session in mode `auto`, whose model writes a wrong answer
twice and then the right one, and whose goal is checked by a command.  Its process is killed
(`kill -9`) once or twice, when the log has grown to a place that the seed chooses, or a moment
later; then an application that no user has told anything wakes what is due, until the goal has
ended.  Each round has a twin: the same store, where the key of the seals is another user's.

What is judged is the log: the goal is reached, and ended once; each round was checked; nothing was
asked, for the mode holds, and nothing was denied; no permission names more than was given; rounds
count on.  Of the twin: no model is asked, no file is written, the goal is paused and says why.
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

import anyio
import apsw
import msgspec

from tests.support.source_code import ROOT
from weft.app import App, app, open_app
from weft.events import (
    AnyFact,
    GoalChecked,
    GoalEnded,
    GoalPaused,
    GoalSet,
    ModelCallStarted,
    PermissionRequest,
    ToolComplete,
    decode,
)
from weft.state import SessionState, fold
from weft.store.sqlite import open_sqlite

SESSION = "ses_goals"
CHECK = "cat answer.txt; grep -q right answer.txt"
ROUND_SECONDS = 120.0
TWIN_SECONDS = 20.0
TICK_SECONDS = 0.002
MOST_FACTS = 62
"""About how many facts a whole goal has; a kill that comes later finds the process at its end."""
MODE = "auto"
OTHER_KEY = b"the key of another user: 32 letters"


class GoalPlan(msgspec.Struct, frozen=True):
    """What a seed and a number make of a round."""

    kills: tuple[tuple[int, float], ...]
    """How far the log has grown, and how many seconds later."""


def planned(seed: int, number: int) -> GoalPlan:
    """The round of this number."""
    dice = random.Random(f"{seed}:{number}")
    kills = []
    for _ in range(dice.choice((1, 1, 2))):
        delay = dice.choice((0.0, dice.uniform(0, 0.05)))
        kills.append((dice.randint(2, MOST_FACTS), delay))
    return GoalPlan(tuple(sorted(kills)))


def script() -> dict[str, object]:
    """A model that is wrong twice, and answers by what it reads."""

    def write(text: str) -> dict[str, object]:
        return {"do": "call", "name": "write", "args": {"path": "answer.txt", "content": text}}

    answers: list[object] = []
    for since, text in (("Goal:", "wrong"), ("Round 2 of", "nearly"), ("Round 3 of", "right")):
        # The later ones first: the first text stands in all of them.
        answers[:0] = [
            {"when": {"user_says": since, "since": since, "rounds": 0}, "steps": [write(text)]},
            {
                "when": {"user_says": since, "since": since, "rounds": 1},
                "steps": [{"do": "text", "text": f"It is {text}."}],
            },
        ]
    return {"answers": answers, "loop": True}


class GoalRun:
    """One session, and the processes that go on with it."""

    def __init__(self, root: Path, plan: GoalPlan) -> None:
        self._root = root
        self._plan = plan
        self.failed: list[str] = []
        (root / "project").mkdir()
        (root / "script.json").write_text(json.dumps(script()))

    def run(self) -> None:
        """Let it happen."""
        for place, (grown, delay) in enumerate(self._plan.kills):
            self._kill_at(grown, delay, "begin" if place == 0 else "wake")
        try:
            self._judge_twin()
            anyio.run(self._finish)
        except TimeoutError:
            self.failed.append("the goal does not end")

    def _kill_at(self, grown: int, delay: float, life: str) -> None:
        environ = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
        words = [sys.executable, "-m", "tests.crash.goals", "--life", str(self._root), life]
        process = subprocess.Popen(words, cwd=ROOT, env=environ)
        give_up = time.monotonic() + ROUND_SECONDS
        while process.poll() is None and self._seq() < grown and time.monotonic() < give_up:
            time.sleep(TICK_SECONDS)
        time.sleep(delay)
        process.kill()
        code = process.wait()
        if code not in (0, -signal.SIGKILL):
            self.failed.append(f"a process ended with {code}")

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
            async with opened(self._root) as application:
                await woken(application)

    def _judge_twin(self) -> None:
        """What becomes of a copy in which the key of the seals is another user's."""
        # In the same place: elsewhere it would be another project.
        aside = self._root.with_name("aside")
        self._root.rename(aside)
        shutil.copytree(aside, self._root, symlinks=True, ignore=shutil.ignore_patterns("*.sock"))
        try:
            self._wake_twin()
        finally:
            shutil.rmtree(self._root)
            aside.rename(self._root)

    def _wake_twin(self) -> None:
        before = facts_of(self._root)
        if not any(isinstance(fact, GoalSet) for fact in before) or ended(before):
            return
        (self._root / "unattended.key").write_bytes(OTHER_KEY)
        answer = self._root / "project" / "answer.txt"
        was = answer.read_text() if answer.exists() else None

        async def wake() -> None:
            async with opened(self._root) as application:
                with anyio.move_on_after(TWIN_SECONDS):
                    await _until_paused(application)

        anyio.run(wake)
        new = facts_of(self._root)[len(before) :]
        if any(isinstance(fact, ModelCallStarted) for fact in new):
            self.failed.append("the twin without a seal asked a model")
        if (answer.read_text() if answer.exists() else None) != was:
            self.failed.append("the twin without a seal wrote a file")
        if [fact.reason for fact in new if isinstance(fact, GoalPaused)] != ["unsealed"]:
            print(
                [type(f).__name__ for f in before[-4:]],
                "|",
                [str(f)[:150] for f in new],
                file=sys.stderr,
            )
            self.failed.append("the twin does not say that it is unsealed")


def facts_of(root: Path) -> list[AnyFact]:
    """The log."""

    async def read() -> list[AnyFact]:
        async with await open_sqlite(root / "weft.db") as store:
            return [decode(record.body) for record in await store.read(SESSION)]

    return anyio.run(read)


def ended(facts: Sequence[AnyFact]) -> list[GoalEnded]:
    return [fact for fact in facts if isinstance(fact, GoalEnded)]


def opened(root: Path) -> App:
    """The application, on a store that all processes of the round share."""
    app.WAKE_EVERY_SECONDS = 0.05
    environ = {"HOME": str(root), "WEFT_HOME": str(root), "PATH": os.environ["PATH"]}
    environ["WEFT_REPO_INDEX"] = "off"
    settings = {"model.default": f"scripted:{root / 'script.json'}", "sandbox.mode": "off"}
    return open_app(root / "project", root / "weft.db", settings, environ=environ, wakes_due=True)


async def begin(application: App) -> None:
    """Set the goal, and work for it to the end."""
    session = await application.sessions.start_session(session_id=SESSION, permission_mode=MODE)
    await session.set_goal("write the right answer", CHECK, outside_sandbox=True)
    await _until_ended(application)


async def woken(application: App) -> None:
    """Go on with what is due; nobody says anything here."""
    if not await _has_goal(application):
        # It was killed before the goal was durable: there is nothing to go on with.
        await begin(application)
        return
    await _until_ended(application)


async def _has_goal(application: App) -> bool:
    records = await application.store.read(SESSION)
    return any(isinstance(decode(record.body), GoalSet) for record in records)


async def _until_ended(application: App) -> None:
    while True:
        records = await application.store.read(SESSION)
        if any(isinstance(decode(record.body), GoalEnded) for record in records):
            return
        await anyio.sleep(0.05)


async def _until_paused(application: App) -> None:
    while True:
        records = await application.store.read(SESSION)
        if any(isinstance(decode(record.body), GoalPaused) for record in records):
            return
        await anyio.sleep(0.05)


async def _life(root: Path, life: str) -> None:
    async with opened(root) as application:
        await (begin if life == "begin" else woken)(application)


def judge(facts: Sequence[AnyFact]) -> list[str]:
    """What is wrong about a log."""
    wrong = []
    if [fact.seq for fact in facts] != list(range(1, len(facts) + 1)):
        wrong.append("the log has gaps")
    if [fact.reason for fact in ended(facts)] != ["done"]:
        wrong.append(f"the goal ended with {[fact.reason for fact in ended(facts)]}")
    checked = [fact for fact in facts if isinstance(fact, GoalChecked)]
    if [fact.round for fact in checked] != [1, 2, 3] or not checked[-1].done:
        wrong.append(f"rounds {[fact.round for fact in checked]} were checked")
    if any(isinstance(fact, PermissionRequest) for fact in facts):
        wrong.append("something was asked that the mode allows")
    denied = [fact for fact in facts if isinstance(fact, ToolComplete)]
    if any(fact.result.status == "denied" for fact in denied):
        wrong.append("something was denied that the mode allows")
    given = {
        (fact.permission.mode, fact.permission.grants)
        for fact in facts
        if isinstance(fact, GoalSet) and fact.permission is not None
    }
    if given != {(MODE, (f"shell({CHECK})",))}:
        wrong.append(f"it was given {given}")
    if fold(facts, SessionState(session_id=facts[0].session_id)).goal.paused is not None:
        wrong.append("it is paused")
    return wrong


def attempt(seed: int, number: int) -> str:
    """One round: what is wrong, with what happened in it."""
    plan = planned(seed, number)
    with tempfile.TemporaryDirectory(prefix="weft-goals-") as name:
        (root := Path(name) / "run").mkdir()
        played = GoalRun(root, plan)
        played.run()
        wrong = played.failed or judge(facts_of(root))
    return f"round {number} (kills {plan.kills}): {'; '.join(wrong)}" if wrong else ""


def main(argv: Sequence[str]) -> int:
    """Prove it and print the line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--only", type=int, default=None)
    parser.add_argument("--life", nargs=2, default=None)
    chosen = parser.parse_args(argv)
    if chosen.life is not None:
        anyio.run(_life, Path(chosen.life[0]), chosen.life[1])
        return 0
    start = time.monotonic()
    numbers = range(chosen.rounds) if chosen.only is None else [chosen.only]
    violations = 0
    for number in numbers:
        if said := attempt(chosen.seed, number):
            violations += 1
            print(said, file=sys.stderr, flush=True)
    line = {
        "claim": "goals",
        "n": len(numbers),
        "violations": violations,
        "seed": chosen.seed,
        "seconds": round(time.monotonic() - start, 1),
    }
    print(json.dumps(line))
    return int(bool(violations))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
