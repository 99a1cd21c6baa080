"""Random histories in which it is known who wrote each line: edits by two sessions with file tools
and commands, renames, rewinds, candidates of fan-outs that were kept, and the user's own edits,
renames, stashes, checkouts and commits.  Blame must name the writer of every line that it is asked
about.

`python -m tests.crash.blame --n 200 --seed 1` prints one JSON line: at least so many lines.  The
oracle knows nothing of differences or logs: each line that is written is a word that was never
written before, and the proof notes down who wrote that word.

With `--plant` a fault is planted, and the line must count violations: `newest` believes that the
newest change of a file wrote all of it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from tests.support.crash.journey_process import import_everything, side_by_side
from tests.support.rewind_project import open_world
from tests.support.world import World
from weft.api.session import Session
from weft.app import App
from weft.errors import UsageError
from weft.evidence import Blame
from weft.providers import CallResults, ModelInfo, ModelRequest
from weft.providers.script import CallTool, SayText, Step
from weft.providers.scripted import ScriptedModel

WORKERS: Final = 2
ASKED: Final = 10
"""Lines that are asked about in each history."""
NOISE: Final = ("", "}", "    return")
"""Lines that are everywhere: they stand between the others, and are not asked about."""
USER: Final = "user"


class Tally(msgspec.Struct):
    """What came of some histories."""

    lines: int = 0
    histories: int = 0
    kinds: dict[str, int] = {}
    wrong: list[str] = []

    def count(self, kind: str) -> None:
        self.kinds[kind] = self.kinds.get(kind, 0) + 1

    def add(self, other: Tally) -> None:
        """Take another one's numbers in."""
        self.lines += other.lines
        self.histories += other.histories
        self.wrong += other.wrong
        for kind, times in other.kinds.items():
            self.kinds[kind] = self.kinds.get(kind, 0) + times


class RandomHistory:
    """One history on its way."""

    def __init__(self, world: World, seed: int, tally: Tally) -> None:
        self.world, self.seed, self.tally = world, seed, tally
        self.dice = random.Random(f"blame {seed}")
        self.writers: dict[str, str] = {}
        """Each word → the prompt that it was written for, or the user."""
        self.answers: list[list[Step]] = []
        self.for_candidates: list[list[Step]] = []
        self.tips: dict[str, list[str]] = {}
        self.number = 0

    def model(self) -> ScriptedModel:
        def choose(request: ModelRequest) -> Sequence[Step]:
            if self.for_candidates:
                if not isinstance(request.messages[-1], CallResults):
                    return self.for_candidates.pop(0)
                return [SayText(text="done")]
            return self.answers.pop(0) if self.answers else [SayText(text="done")]

        info = ModelInfo(provider="scripted", name="script", price_input=0.0, price_output=0.0)
        return ScriptedModel((), choose=choose, info=info)

    async def play(self) -> None:
        for name in ("a.txt", "src/b.txt"):
            self.world.write(name, self.text([], USER))
        self.git("init", "-q")
        self.commit()
        async with open_world(self.world, self.model(), sandbox="auto") as app:
            sessions = [
                await app.sessions.start_session(session_id=name, auto_approve=True)
                for name in ("s1", "s2")
            ]
            for _ in range(self.dice.randint(8, 14)):
                self.world.clock.advance(60)
                await self.something(self.dice.choice(sessions))
            self.world.clock.advance(60)
            await self.ask(app)

    # -- what happens

    async def something(self, session: Session) -> None:
        chance = self.dice.random()
        if chance < 0.40:
            await self.turn(session)
        elif chance < 0.62:
            self.edit_by_hand()
        elif chance < 0.72:
            await self.rewind(session)
        elif chance < 0.80:
            await self.rename(session)
        elif chance < 0.88:
            await self.fan(session)
        elif chance < 0.94:
            self.commit()
        else:
            self.stash()

    async def turn(self, session: Session) -> None:
        prompt = self.prompt()
        self.answers = []
        for _ in range(self.dice.randint(1, 2)):
            path = self.dice.choice(self.files())
            # What an earlier call of the turn makes of the file is not known yet.
            if any(path in str(step) for round_ in self.answers for step in round_):
                continue
            self.answers += self.calls(path, prompt)
        await self.send(session, prompt)
        self.tally.count("turn of a session")

    def calls(self, path: str, writer: str) -> list[list[Step]]:
        before = self.world.read(path)
        after = self.text(before.split("\n")[:-1], writer)
        if self.dice.random() < 0.5:
            read = CallTool(name="read", args={"path": path})
            return [[read], [CallTool(name="write", args={"path": path, "content": after})]]
        lines = after.encode().hex()
        return [[CallTool(name="shell", args={"command": f"echo {lines} | xxd -r -p > {path}"})]]

    async def send(self, session: Session, prompt: str) -> None:
        await session.send_message(prompt)
        tip = (await session.messages_with_ids())[-1][0]
        self.tips.setdefault(session.id, []).append(tip)

    def edit_by_hand(self) -> None:
        path = self.dice.choice(self.files())
        lines = self.world.read(path).split("\n")[:-1]
        self.world.write(path, self.text(lines, USER))
        self.tally.count("edit by the user")

    async def rewind(self, session: Session) -> None:
        tips = self.tips.get(session.id, [])
        if len(tips) < 2:
            return
        try:
            await session.rewind(self.dice.choice(tips[:-1]))
        except UsageError:
            return
        line = {node for node, _ in await session.messages_with_ids()}
        self.tips[session.id] = [tip for tip in tips if tip in line]
        self.tally.count("rewind")

    async def rename(self, session: Session) -> None:
        path = self.dice.choice(self.files())
        self.number += 1
        new = f"moved{self.number}.txt"
        if self.dice.random() < 0.5:
            command = f"mv {path} {new}"
            self.answers = [[CallTool(name="shell", args={"command": command})]]
            await self.send(session, self.prompt())
            self.tally.count("rename by a session")
            return
        (self.world.project / path).rename(self.world.project / new)
        self.tally.count("rename by the user")

    async def fan(self, session: Session) -> None:
        prompt = self.prompt()
        path = self.dice.choice(self.files())
        before = self.world.read(path).split("\n")[:-1]
        for _ in range(2):
            content = self.text(before, prompt)
            read = CallTool(name="read", args={"path": path})
            write = CallTool(name="write", args={"path": path, "content": content})
            self.for_candidates.append([read, write])
        fan = await session.generate_branches(prompt, 2)
        await fan.wait()
        self.for_candidates = []
        if self.dice.random() < 0.5:
            self.edit_by_hand()
        self.world.clock.advance(60)
        try:
            kept = await fan.keep(self.dice.choice([1, 2]))
            self.tally.count("candidate kept" if kept.is_kept else "candidate not kept")
        except UsageError as error:
            self.tally.count(f"no keep: {error}"[:60])
        await fan.close()

    def commit(self) -> None:
        self.git("add", "-A")
        self.git("commit", "-qm", "by the user", "--allow-empty")
        self.tally.count("commit by the user")

    def stash(self) -> None:
        """Away and back again, as `git checkout` of another branch does it."""
        self.git("add", "-A")
        self.git("stash", "-q")
        self.git("stash", "pop", "-q", check=False)
        self.tally.count("stash by the user")

    # -- the files

    def files(self) -> list[str]:
        root = self.world.project
        found = [path.relative_to(root).as_posix() for path in root.rglob("*.txt")]
        return sorted(found)

    def text(self, lines: Sequence[str], writer: str) -> str:
        """Some of the lines, with new ones among them."""
        new: list[str] = []
        for line in lines:
            chance = self.dice.random()
            if chance < 0.08:
                continue
            new.append(self.word(writer) if chance < 0.2 else line)
            if chance > 0.88:
                new.append(self.word(writer))
        for _ in range(self.dice.randint(1, 3) if lines else 12):
            place = self.dice.randint(0, len(new))
            new[place:place] = [self.dice.choice(NOISE), self.word(writer)]
        return "\n".join(new) + "\n"

    def word(self, writer: str) -> str:
        word = f"w{len(self.writers)}"
        self.writers[word] = writer
        return word

    def prompt(self) -> str:
        self.number += 1
        return f"prompt {self.number}"

    def git(self, *args: str, check: bool = True) -> None:
        identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
        subprocess.run(
            ["git", *identity, *args],
            cwd=self.world.project,
            check=check,
            capture_output=True,
        )

    # -- the verdict

    async def ask(self, app: App) -> None:
        self.tally.histories += 1
        places = [
            (path, number, line)
            for path in self.files()
            for number, line in enumerate(self.world.read(path).split("\n"), start=1)
            if line in self.writers
        ]
        for path, number, word in self.dice.sample(places, min(ASKED, len(places))):
            self.tally.lines += 1
            found = await app.blame(path, number)
            writer = self.writers[word]
            self.tally.count("line of the user" if writer == USER else "line of a session")
            said = USER if found.made_by == "user" else self._prompt_of(found)
            if found.text != word or said != writer:
                self.tally.wrong.append(
                    f"seed {self.seed}: {path}:{number} {word} is of {writer}, not of {said}: "
                    f"{found.sentence} {found.steps[:5]} {found.notes}"
                )

    def _prompt_of(self, found: Blame) -> str:
        return found.made_by if found.turn is None else found.turn.prompt


# --- running --------------------------------------------------------------------------------------


def attempt(seed: int, plant: str = "") -> Tally:
    """One history."""
    tally = Tally()
    if plant == "newest":
        _believe_the_newest()
    with tempfile.TemporaryDirectory(prefix="weft-blame-", ignore_cleanup_errors=True) as name:
        history = RandomHistory(World("sqlite", Path(name)), seed, tally)
        asyncio.run(history.play())
    return tally


def _believe_the_newest() -> None:
    from weft.runtime.blame import line_trace

    line_trace.place_before = lambda old, new, place: None  # type: ignore[attr-defined]


def run(lines: int, seed: int, plant: str = "") -> Tally:
    """Histories with at least so many lines, in processes of their own."""
    import_everything()
    count = -(-lines // ASKED)
    work = [seed * 100_000 + n for n in range(count)]
    shares = [work[n::WORKERS] for n in range(WORKERS)]
    total = Tally()
    for each in side_by_side([partial(_share, share, plant) for share in shares if share], Tally):
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
    parser.add_argument("--n", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plant", default="", choices=("", "newest"))
    chosen = parser.parse_args(argv)
    begun = time.monotonic()
    tally = run(chosen.n, chosen.seed, chosen.plant)
    line = {
        "claim": "blame",
        "n": tally.lines,
        "violations": len(tally.wrong),
        "seed": chosen.seed,
        "histories": tally.histories,
        **tally.kinds,
        "seconds": round(time.monotonic() - begun, 1),
        "wrong": tally.wrong[:10],
    }
    print(json.dumps(line))
    return int(bool(tally.wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
