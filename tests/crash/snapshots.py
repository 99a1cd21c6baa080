"""Random histories of a project, rebuilt from the log alone: the files of every message equal a
copy that was taken at its moment.

`python -m tests.crash.snapshots --n 500 --seed 1` prints one JSON line.  A history is some turns of
one session, with edits and shell commands (in the sandbox, outside it, in the background) as the
proof of rewinds has them, rewinds and new branches between them, the user's own edits, and now and
then another process that goes on.  The whole tree is copied when the model is asked, and at each
end of a turn.  Then the project is emptied, and every copy is compared with what `files_at` gives,
in the session and in a fork of it.

With `--plant` a fault is planted, and the line must count violations: `contents` stores nothing of
what changed, `events` believes that nothing ever does.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

import anyio
import msgspec

from tests.crash.rewinds import FOLDERS, NAMES, Ground, Tree, opened, some_calls
from tests.support.crash.journey_process import import_everything, side_by_side
from tests.support.file_tree import differing_paths, tree, with_git_modes
from weft.api.session import Session
from weft.errors import UsageError
from weft.events import Event, NewMessage, TurnStarted, WorkspaceSnapshot
from weft.providers import ModelInfo, ModelRequest
from weft.providers.script import CallTool, SayText, Step
from weft.providers.scripted import ScriptedModel
from weft.runtime.snapshots.node_files import NodeFiles
from weft.workspace.history.history import FileHistory, ReadContents

WORKERS = 2
Plant: TypeAlias = Literal["", "contents", "events"]


class Copy(msgspec.Struct):
    """What the project was at a message."""

    node: str
    files: Tree
    theirs: set[str] = set()
    """What the user changed since the last snapshot; the log need not know it where the message's
    turn had none."""


class Tally(msgspec.Struct):
    """What came of some histories."""

    histories: int = 0
    nodes: int = 0
    exact: int = 0
    kinds: dict[str, int] = {}
    wrong: list[str] = []

    def count(self, kind: str) -> None:
        self.kinds[kind] = self.kinds.get(kind, 0) + 1

    def add(self, other: Tally) -> None:
        """Take another one's numbers in."""
        self.histories += other.histories
        self.nodes += other.nodes
        self.exact += other.exact
        self.wrong += other.wrong
        for kind, times in other.kinds.items():
            self.kinds[kind] = self.kinds.get(kind, 0) + times


class History:
    """One history on its way."""

    def __init__(self, ground: Ground, tally: Tally) -> None:
        self.ground = ground
        self.tally = tally
        self.dice = random.Random(f"snapshots {ground.seed}")
        self.copies: list[Copy] = []
        self.theirs: set[str] = set()
        self.has_snapshot = False
        self.asked: list[Tree] = []
        """What the project was at each request of the present turn."""
        self.answers: list[list[Step]] = []

    def now(self) -> Tree:
        found = with_git_modes(tree(self.ground.project, skip=(".git", "ignoring")))
        return {path: each for path, each in found.items() if not path.startswith("cache")}

    def model(self) -> ScriptedModel:
        def choose(request: ModelRequest) -> Sequence[Step]:
            self.asked.append(self.now())
            return self.answers.pop(0) if self.answers else [SayText(text="done")]

        info = ModelInfo(provider="scripted", name="m", price_input=0.0, price_output=0.0)
        return ScriptedModel((), choose=choose, info=info)

    # -- what happens

    async def play(self) -> None:
        for _ in range(self.dice.randint(1, 3)):
            async with opened(self.ground, self.model()) as app:
                session = await app.sessions.start_session(
                    session_id="s", permission_mode="bypass", max_turns=500
                )
                for _ in range(self.dice.randint(1, 4)):
                    await self.between(session)
                    await self.turn(session)
            self.tally.count("process")

    async def turn(self, session: Session) -> None:
        self.asked.clear()
        rounds = self.dice.choice([0, 1, 1, 2, 3])
        self.answers = [some_calls(self.dice) for _ in range(rounds)]
        in_background = self.dice.random() < 0.08
        if in_background:
            line = f"sleep 0.6; echo {self.dice.random()} >> {self.file()}"
            args = {"command": line, "background": True}
            self.answers.append([CallTool(name="shell", args=args)])
        elif rounds and self.ground.sandbox != "off" and self.dice.random() < 0.3:
            line = f"echo {self.dice.random()} >> {self.file()}"
            args = {"command": line, "outside_sandbox": True}
            self.answers.append([CallTool(name="shell", args=args)])
            self.tally.count("outside the sandbox")
        self.tally.count("turn" if rounds else "turn without effect")
        await session.send_message("go")
        if in_background:
            self.tally.count("background")
            await self.all_quiet(session)
        await self.note(session, only_end=in_background)

    async def all_quiet(self, session: Session) -> None:
        """Wait for the end of what runs in the background, and of the turn that tells of it."""
        with anyio.fail_after(30):
            async with await session.subscribe() as events:
                while True:
                    port = await session._port()
                    is_idle = await session.get_status() == "idle"
                    if (
                        is_idle
                        and not port.state.background.running
                        and not port.state.queue.entries
                    ):
                        return
                    await anext(events)

    async def note(self, session: Session, *, only_end: bool) -> None:
        """Which messages the copies of this turn belong to."""
        facts = [fact async for fact in self.log(session)]
        start = max(n for n, fact in enumerate(facts) if isinstance(fact, TurnStarted))
        later = [fact.node for fact in facts[start:] if isinstance(fact, NewMessage)]
        answers = [node.id for node in later if node.role == "assistant"]
        has_snapshot = any(isinstance(fact, WorkspaceSnapshot) for fact in facts[start:])
        theirs = set() if has_snapshot else set(self.theirs)
        if has_snapshot:
            self.theirs.clear()
        self.has_snapshot |= has_snapshot
        if not only_end and len(self.asked) == len(answers):
            started = facts[start]
            assert isinstance(started, TurnStarted)
            if started.node is not None:
                self.copies.append(Copy(started.node, self.asked[0], theirs))
            self.copies += [
                Copy(node, files, theirs)
                for node, files in zip(answers[:-1], self.asked[1:], strict=True)
            ]
        self.copies.append(Copy(answers[-1], self.now(), theirs))

    async def log(self, session: Session) -> AsyncIterator[Event]:
        end = (await session.editor_snapshot()).seq
        async with await session.subscribe(after=0, live=False) as events:
            while events.cursor < end:
                yield await anext(events)

    async def between(self, session: Session) -> None:
        if self.copies and self.dice.random() < 0.25:
            to = self.dice.choice(self.copies).node
            before = self.now()
            try:
                await session.rewind(to, conversation=self.dice.random() < 0.5)
            except UsageError:
                return
            self.tally.count("rewind" if before != self.now() else "rewind of nothing")
        elif self.copies and self.dice.random() < 0.1:
            await session.branch_at(self.dice.choice(self.copies).node)
            self.tally.count("branch")
        if self.dice.random() < 0.5:
            for _ in range(self.dice.randint(1, 3)):
                self.edit_by_hand()
            self.tally.count("edits by the user")

    def file(self) -> str:
        return f"{self.dice.choice(FOLDERS)}/{self.dice.choice(NAMES)}"

    def edit_by_hand(self) -> None:
        before = self.now()
        path = self.ground.project / self.file()
        try:
            match self.dice.choice(
                ["write", "write", "append", "remove", "mode", "folder", "link"]
            ):
                case "write":
                    path.write_text(f"by hand {self.dice.random()}\n")
                case "append":
                    with path.open("a") as file:
                        file.write("by hand\n")
                case "remove":
                    path.unlink()
                case "mode":
                    path.chmod(self.dice.choice([0o600, 0o644, 0o755]))
                case "folder":
                    shutil.rmtree(path.parent)
                case _:
                    path.symlink_to("by/hand")
        except OSError:
            pass  # the commands have left something else there
        changed = differing_paths(before, self.now())
        self.theirs.update(changed)
        if not self.has_snapshot:
            # What was there before the first look is only known as far as the log tells.
            for copy in self.copies:
                copy.theirs.update(changed)

    # -- the verdict

    async def judge(self) -> None:
        for each in self.ground.project.iterdir():
            if each.is_dir() and not each.is_symlink():
                _open_all(each)
                shutil.rmtree(each)
            else:
                each.unlink()
        async with opened(self.ground, self.model()) as app:
            session = await app.sessions.start_session(session_id="s")
            fork = await app.sessions.fork_session("s")
            for number, copy in enumerate(self.copies):
                await self.compare(session if number % 2 else fork, number, copy)

    async def compare(self, session: Session, number: int, copy: Copy) -> None:
        self.tally.nodes += 1
        try:
            found = await session.files_at(copy.node)
        except UsageError as error:
            if self.has_snapshot:
                self.wrong(number, copy, str(error))
            return  # nothing ever had an effect, and nothing was looked at
        self.tally.exact += found.is_exact
        wrong = set(differing_paths(copy.files, await self.rebuilt(session, found, copy.node)))
        if not found.is_exact:
            wrong -= copy.theirs
        if wrong:
            self.wrong(number, copy, f"{sorted(wrong)[:6]} (exact: {found.is_exact})")

    async def rebuilt(self, session: Session, found: NodeFiles, node: str) -> Tree:
        """Everything that the log has of one message, in full."""
        target = self.ground.base / "rebuilt"
        left_out = await session.write_files(target, node)
        files = tree(target, skip=(".git", "ignoring"))
        _open_all(target)
        shutil.rmtree(target)
        assert left_out == [], left_out
        assert files.keys() <= found.files.keys()
        return {path: each for path, each in files.items() if not path.startswith("cache")}

    def wrong(self, number: int, copy: Copy, said: str) -> None:
        where = f"seed {self.ground.seed} {self.ground.sandbox}: {number}/{len(self.copies)}"
        self.tally.wrong.append(f"{where} {copy.node}: {said}")


def _open_all(folder: Path) -> None:
    folder.chmod(0o700)
    for each in folder.rglob("*"):
        if each.is_dir() and not each.is_symlink():
            each.chmod(0o700)


# --- running ---------------------------------------------------------------------------------


def attempt(seed: int, sandbox: str, plant: Plant = "") -> Tally:
    """One history."""
    tally = Tally(histories=1)
    plant_fault(plant)
    with tempfile.TemporaryDirectory(prefix="weft-snapshots-", ignore_cleanup_errors=True) as name:
        ground = Ground(Path(name), seed, "", sandbox)
        ground.make()
        history = History(ground, tally)

        async def both() -> None:
            await history.play()
            await history.judge()

        asyncio.run(both())
        _open_all(ground.project)
    return tally


def plant_fault(plant: Plant) -> None:
    if plant == "contents":
        nothing = ReadContents({}, set())
        FileHistory.contents = lambda self, wanted, room: nothing  # type: ignore[method-assign]
    elif plant == "events":
        FileHistory._is_quiet = lambda self: self._index is not None  # type: ignore[method-assign]
        FileHistory._names = lambda self, index: {}  # type: ignore[method-assign]


def run(count: int, seed: int, plant: Plant = "", sandbox: str = "both") -> Tally:
    """So many histories, in processes of their own."""
    kinds = ("off", "auto") if sandbox == "both" else (sandbox,)
    work = [(seed * 100_000 + n, kinds[n % len(kinds)]) for n in range(count)]
    import_everything()
    shares = [work[n::WORKERS] for n in range(WORKERS)]
    found = side_by_side([partial(_share, share, plant) for share in shares if share], Tally)
    total = Tally()
    for each in found:
        total.add(each)
    return total


def _share(work: Sequence[tuple[int, str]], plant: Plant) -> Tally:
    logging.disable(logging.CRITICAL)
    os.environ.setdefault("LC_ALL", "C.UTF-8")
    total = Tally()
    for seed, sandbox in work:
        try:
            total.add(attempt(seed, sandbox, plant))
        except Exception as error:
            total.wrong.append(f"seed {seed} {sandbox}: {type(error).__name__}: {error}")
    return total


def main(argv: Sequence[str]) -> int:
    """Prove it and print the line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plant", default="", choices=["", "contents", "events"])
    chosen = parser.parse_args(argv)
    start = time.monotonic()
    tally = run(chosen.n, chosen.seed, chosen.plant)
    for said in tally.wrong:
        print(said, file=sys.stderr, flush=True)
    line = {
        "claim": "snapshots",
        "n": tally.histories,
        "violations": len(tally.wrong),
        "seed": chosen.seed,
        "seconds": round(time.monotonic() - start, 1),
        "messages": tally.nodes,
        "exact": tally.exact,
        "kinds": tally.kinds,
    }
    print(json.dumps(line))
    return int(bool(tally.wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
