"""Random sessions with branches, rewinds and the user's own edits, in each of which something broke
and was mended: a bisection finds a border that is one, and whose it is.  And bisections that are
killed: no process, no mount and no place of theirs is left, and the project is untouched.

`python -m tests.crash.bisect --n 100 --seed 1 --kills 10` prints one JSON line.  Whether the check
fails is written down by the proof itself, at the beginning and the end of each turn, and after each
edit by hand; a bisection must agree with that.

With `--plant` a fault is planted, and the line must count violations: `outside` believes that every
change is the session's own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from tests.support.crash.journey_process import import_everything, side_by_side
from tests.support.file_tree import tree
from tests.support.rewind_project import open_world, start
from tests.support.world import World
from weft.api.session import Session
from weft.errors import UsageError
from weft.evidence import Bisection
from weft.providers import ModelInfo, ModelRequest
from weft.providers.script import CallTool, SayText, Step
from weft.providers.scripted import ScriptedModel

WORKERS = 2
STATE: Final = "state.txt"
CHECK: Final = f"! grep -q broken {STATE}"


class TurnRecord(msgspec.Struct):
    """What the proof knows of a turn."""

    tip: str
    breaks_before: bool
    breaks_after: bool
    words: list[str]
    """What was written to the file, call by call; empty for a call that did not."""


class Tally(msgspec.Struct):
    """What came of some sessions."""

    sessions: int = 0
    checks: int = 0
    states: int = 0
    kinds: dict[str, int] = {}
    wrong: list[str] = []

    def count(self, kind: str) -> None:
        self.kinds[kind] = self.kinds.get(kind, 0) + 1

    def add(self, other: Tally) -> None:
        """Take another one's numbers in."""
        self.sessions += other.sessions
        self.checks += other.checks
        self.states += other.states
        self.wrong += other.wrong
        for kind, times in other.kinds.items():
            self.kinds[kind] = self.kinds.get(kind, 0) + times


class RandomSession:
    """One session on its way."""

    def __init__(self, world: World, seed: int, tally: Tally) -> None:
        self.world, self.seed, self.tally = world, seed, tally
        self.dice = random.Random(f"bisect {seed}")
        self.records: dict[str, TurnRecord] = {}
        self.answers: list[list[Step]] = []
        self.began: bool | None = None
        self.jobs = 1

    @property
    def breaks(self) -> bool:
        file = self.world.project / STATE
        return file.exists() and "broken" in file.read_text()

    def model(self) -> ScriptedModel:
        def choose(request: ModelRequest) -> Sequence[Step]:
            if self.began is None:
                self.began = self.breaks
            return self.answers.pop(0) if self.answers else [SayText(text="done")]

        info = ModelInfo(provider="scripted", name="script", price_input=0.0, price_output=0.0)
        return ScriptedModel((), choose=choose, info=info)

    async def play(self) -> None:
        self.world.write(STATE, "fine\n")
        async with open_world(self.world, self.model(), sandbox="auto") as app:
            session = await start(app)
            for _ in range(self.dice.randint(5, 14)):
                await self.between(session)
                await self.turn(session)
            if not self.breaks and self.dice.random() < 0.8:
                await self.turn(session, ["", "broken", ""])
            if self.dice.random() < 0.3:
                self.edit_by_hand()
            line = [node for node, _ in await session.messages_with_ids()]
            before = tree(self.world.project, skip=(".git",))
            self.jobs = self.dice.choice([1, 1, 1, 3])
            found = await session.bisect(CHECK, jobs=self.jobs)
            self.judge(found, [self.records[node] for node in line if node in self.records])
            if tree(self.world.project, skip=(".git",)) != before:
                self.wrong("the project was changed")

    async def turn(self, session: Session, words: list[str] | None = None) -> None:
        if words is None:
            words = [self.dice.choice(["", "fine", "fine", "broken"]) for _ in range(self.rounds())]
            words = words if self.dice.random() < 0.4 else [""] * len(words)
        self.answers, self.began = [[self.call(word)] for word in words], None
        await session.send_message("go")
        tip = (await session.messages_with_ids())[-1][0]
        self.records[tip] = TurnRecord(tip, bool(self.began), self.breaks, words)

    def rounds(self) -> int:
        return self.dice.choice([0, 1, 1, 2, 4])

    def call(self, word: str) -> CallTool:
        number = self.dice.random()
        line = f"echo {word} {number} > {STATE}" if word else f"echo {number} >> noise.txt"
        if not word and self.dice.random() < 0.4:
            return CallTool(name="write", args={"path": f"n{number}.txt", "content": "n\n"})
        return CallTool(name="shell", args={"command": line})

    async def between(self, session: Session) -> None:
        chance = self.dice.random()
        if self.records and chance < 0.12:
            to = self.dice.choice(list(self.records))
            try:
                await session.rewind(to, files=self.dice.random() < 0.6)
            except UsageError:
                return
            self.tally.count("rewind")
        elif self.records and chance < 0.2:
            await session.branch_at(self.dice.choice(list(self.records)))
            self.tally.count("branch")
        if self.dice.random() < 0.3:
            self.edit_by_hand()

    def edit_by_hand(self) -> None:
        word = self.dice.choice(["", "fine", "broken"])
        text = f"by hand {word} {self.dice.random()}\n"
        self.world.write(STATE if word else "by-hand.txt", text)
        self.tally.count("edit by the user")

    # -- the verdict

    def judge(self, found: Bisection, line: list[TurnRecord]) -> None:
        self.tally.sessions += 1
        self.tally.states += len(found.states)
        self.tally.checks += found.count
        self.tally.count(found.outcome)
        if found.outcome == "found":
            self.judge_border(found, line)
        elif found.outcome == "nothing":
            changed = [each for each in line if any(each.words)]
            if changed:
                self.wrong(f"nothing was found, and {len(changed)} turns wrote")
        elif found.outcome == "bad_at_start" and found.good is not None:
            # The user broke it before the session first looked.
            if not line[found.good.turn - 1].breaks_before:
                self.wrong(f"it did not fail before that turn: {found.sentence}")
        elif found.outcome != "good_at_end" or self.breaks or (line and line[-1].breaks_after):
            self.wrong(f"{found.outcome}: {found.sentence}")

    def judge_border(self, found: Bisection, line: list[TurnRecord]) -> None:
        assert found.bad is not None
        most = 3 + math.ceil(math.log2(len(found.states)))
        if self.jobs == 1 and found.count > most:
            self.wrong(f"{found.count} checks for {len(found.states)} states")
        bad = found.bad
        self.tally.count(f"broken by {bad.made_by}")
        if bad.kind == "now":
            if not self.breaks or line[-1].breaks_after:
                self.wrong(f"it did not break since the last turn: {found.sentence}")
            return
        record = line[bad.turn - 1]
        if bad.kind == "before":
            good = found.good
            assert good is not None
            before = good.kind == "turn" and line[good.turn - 1].breaks_after
            if before or not record.breaks_before:
                self.wrong(f"it did not break between the turns: {found.sentence}")
            elif bad.made_by == "session":
                self.wrong(f"it was not the session: {found.sentence}")
            return
        if record.breaks_before or not record.breaks_after:
            self.wrong(f"turn {bad.turn} did not break it: {found.sentence}")
            return
        self.judge_call(found, record)

    def judge_call(self, found: Bisection, record: TurnRecord) -> None:
        writes = [word for word in record.words if word]
        flips = [n for n, word in enumerate(writes) if word == "broken"]
        if len(found.calls) != 1 or STATE not in found.calls[0].paths:
            self.wrong(f"the call was not found: {found.sentence}")
        elif not flips or "broken" not in found.calls[0].target:
            self.wrong(f"another call broke it: {found.sentence}, {record.words}")

    def wrong(self, said: str) -> None:
        self.tally.wrong.append(f"seed {self.seed}: {said}")


# --- kills ----------------------------------------------------------------------------------------


def killed(seed: int) -> Tally:
    """A bisection of the command line, killed at a random instant."""
    tally, dice = Tally(), random.Random(f"kill {seed}")
    token = f"bisect-kill-{os.getpid()}-{seed}"
    with tempfile.TemporaryDirectory(prefix="weft-bisect-") as name:
        home, folder = Path(name, "home"), Path(name, "project")
        home.mkdir()
        folder.mkdir()
        environ = _environ(home)
        _talked(home, folder, environ)
        before, mounts = tree(folder), Path("/proc/self/mountinfo").read_text()
        check = f"echo on >> f1.txt; (sleep 600; : {token}) & sleep 60; : {token}; true"
        bisect = subprocess.Popen(
            [sys.executable, "-m", "weft", "bisect", "--jobs", "2", "--", check],
            cwd=folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        if not _within(30.0, lambda: bool(bearing(token, but=bisect.pid))):
            tally.wrong.append(f"kill {seed}: no check began")
        time.sleep(dice.random() / 2)
        tally.count("killed in a check" if bisect.poll() is None else "ended before the kill")
        bisect.send_signal(signal.SIGKILL)
        bisect.wait()
        if not _within(5.0, lambda: not bearing(token)):
            tally.wrong.append(f"kill {seed}: {len(bearing(token))} processes run on")
        if tree(folder) != before:
            tally.wrong.append(f"kill {seed}: the project was changed")
        if Path("/proc/self/mountinfo").read_text() != mounts:
            tally.wrong.append(f"kill {seed}: a mount is left")
        _ran(folder, environ, "session", "list")  # the next start, whatever for
        left = list(home.glob("**/sandbox/bisect/*"))
        if left:
            tally.wrong.append(f"kill {seed}: left on disk: {left}")
    return tally


def _environ(home: Path) -> dict[str, str]:
    return {
        "HOME": str(home),
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(sys.path),
        "PYTHONUTF8": "1",
    }


def _talked(home: Path, folder: Path, environ: dict[str, str]) -> None:
    """A session of three turns, each of which writes a file."""
    calls = [
        [{"do": "call", "name": "write", "args": {"path": f"f{n}.txt", "content": "x\n"}}]
        for n in (1, 2, 3)
    ]
    answers: list[object] = []
    for call in calls:
        answers += [call, "done"]
    script = home / "script.json"
    script.write_text(json.dumps({"by": "content", "answers": answers}))
    for number in range(3):
        model = ("-m", f"scripted:{script}", "--permission-mode", "auto")
        _ran(folder, environ, *(("-c",) if number else ()), *model, "-p", f"go {number}")


def _ran(folder: Path, environ: dict[str, str], *words: str) -> None:
    command = [sys.executable, "-m", "weft", *words]
    subprocess.run(command, cwd=folder, env=environ, capture_output=True, check=True)


def bearing(token: str, but: int = 0) -> list[int]:
    """The processes that have a word in their command lines."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path(f"/proc/{name}/cmdline").read_bytes()
        except OSError:
            continue
        if token.encode() in words and int(name) not in (but, os.getpid()):
            found.append(int(name))
    return found


def _within(seconds: float, holds: Callable[[], bool]) -> bool:
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


# --- running --------------------------------------------------------------------------------------


def attempt(seed: int, plant: str = "") -> Tally:
    """One session."""
    tally = Tally()
    if plant == "outside":
        _believe_that_all_is_ours()
    with tempfile.TemporaryDirectory(prefix="weft-bisect-", ignore_cleanup_errors=True) as name:
        world = World("sqlite", Path(name))
        subprocess.run(["git", "init", "-q", world.project], check=True)
        session = RandomSession(world, seed, tally)
        asyncio.run(session.play())
    return tally


def _believe_that_all_is_ours() -> None:
    from weft.runtime.snapshots import project_snapshots

    ours = lambda *given, **more: "session"  # noqa: E731 (one line)
    project_snapshots.made_by = ours


def run(count: int, seed: int, plant: str = "", kills: int = 0) -> Tally:
    """So many sessions, in processes of their own."""
    import_everything()
    work = [seed * 100_000 + n for n in range(count)]
    shares = [work[n::WORKERS] for n in range(WORKERS)]
    found = side_by_side([partial(_share, share, plant) for share in shares if share], Tally)
    total = Tally()
    for each in [*found, *(killed(seed * 1_000 + n) for n in range(kills))]:
        total.add(each)
    return total


def _share(seeds: Sequence[int], plant: str) -> Tally:
    logging.disable(logging.CRITICAL)
    total = Tally()
    for seed in seeds:
        try:
            total.add(attempt(seed, plant))
        except Exception as error:
            total.wrong.append(f"seed {seed}: {type(error).__name__}: {error}")
    return total


def main(argv: Sequence[str]) -> int:
    """Prove it and print the line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=100)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plant", default="", choices=("", "outside"))
    chosen = parser.parse_args(argv)
    begun = time.monotonic()
    tally = run(chosen.n, chosen.seed, chosen.plant, chosen.kills)
    line = {
        "claim": "bisect",
        "n": tally.sessions,
        "violations": len(tally.wrong),
        "states": tally.states,
        "checks": tally.checks,
        **tally.kinds,
        "seconds": round(time.monotonic() - begun, 1),
        "wrong": tally.wrong[:10],
    }
    print(json.dumps(line))
    return int(bool(tally.wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
