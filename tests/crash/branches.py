"""Branches that are generated are nodes or partial nodes, and their money adds up, whenever their
process is killed.

`python -m tests.crash.branches` prints one JSON line; `--rounds 20 --seed 7` tries fewer, others,
and `--only 13` one of them.  A round is a tree whose branches are being generated in a process of
its own, which is killed (`kill -9`) at a moment that the seed chooses, in a third of the rounds
before the first token.  Then the tree is opened again, and judged: no generation is open; each
branch of a plan that is on record is one node, whole, or partial with what the model had said up to
some place, or partial and marked as empty; each of them is paid for once, at what its node says; no
draft is left; and the sum of the branches is what the session has used.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import msgspec

from tests.support.source_code import ROOT
from weft.app import App, open_app
from weft.events import (
    AnyFact,
    BranchesEnded,
    BranchesStarted,
    BranchFailed,
    NewMessage,
    UsageRecorded,
    decode,
)
from weft.loom import LoomNode
from weft.messages import NOTHING_USED
from weft.providers import ModelInfo, ModelRequest, StreamEvent, StreamFinished, TextPiece

BRANCHES = 8
TOKENS = 60
PACE_SECONDS = 0.01
READY_SECONDS = 30.0


class BranchPlan(msgspec.Struct, frozen=True):
    """What a seed and a number make of a round."""

    delay: float
    """Seconds after the process said that it generates."""
    is_early: bool = False
    """It says so before it begins, and not with the first token."""


def planned(seed: int, number: int) -> BranchPlan:
    """The round of this number."""
    dice = random.Random(f"{seed}:{number}")
    delay = dice.choice((dice.uniform(0, 0.1), dice.uniform(0, 1), dice.uniform(0.3, 1.2)))
    is_early = dice.random() < 1 / 3
    return BranchPlan(dice.uniform(0, 0.15) if is_early else delay, is_early)


class PacedModel:
    """Branches of different lengths, at a steady pace."""

    def __init__(self) -> None:
        self.info = ModelInfo(provider="paced", name="m", price_input=1.0, price_output=2.0)
        self._asked = 0

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[AsyncIterator[StreamEvent]]:
        """Play the answer."""
        self._asked += 1
        yield self._pieces(10 + self._asked * (TOKENS - 10) // BRANCHES)

    async def _pieces(self, count: int) -> AsyncIterator[StreamEvent]:
        for number in range(count):
            await anyio.sleep(PACE_SECONDS)
            yield TextPiece(f" word{number}")
        yield StreamFinished()


def opened(root: Path) -> App:
    """The application on a round's store."""
    return open_app(
        root / "project",
        root / "weft.db",
        {"sandbox.mode": "off", "repo.index": False},
        environ={"HOME": str(root), "WEFT_HOME": str(root), "PATH": os.environ["PATH"]},
    )


async def live(root: Path, *, is_early: bool) -> None:
    """Generate until the end, if there is one."""
    async with opened(root) as app:
        node = await app.loom.create_root("Once upon a time")
        view = await app.loom.open(node.id)
        view.set_model(PacedModel())
        view.set_max_tokens(1_000)
        view.set_n_branches(BRANCHES)
        (root / "root.txt").write_text(node.id)
        await view.save()
        run = view.generate()
        if not is_early:
            await anext(run)
        print("ready", flush=True)
        async for _ in run:
            pass


def kill_one(root: Path, plan: BranchPlan) -> str:
    """Let a process generate, and kill it; what is wrong already, or nothing."""
    environ = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    command = [sys.executable, "-m", "tests.crash.branches", "--life", str(root)]
    command += ["--early"] if plan.is_early else []
    process = subprocess.Popen(command, cwd=ROOT, env=environ, stdout=subprocess.PIPE)
    assert process.stdout is not None
    if process.stdout.readline() != b"ready\n":
        process.kill()
        return f"the process did not begin: {process.wait()}"
    time.sleep(plan.delay)
    process.kill()
    process.stdout.close()
    code = process.wait()
    return "" if code in (0, -signal.SIGKILL) else f"the process ended with {code}"


async def looked_at(root: Path) -> tuple[list[AnyFact], list[str]]:
    """Open the tree again; its log, and what is wrong with the tree."""
    wrong: list[str] = []
    node = (root / "root.txt").read_text()
    async with opened(root) as app:
        # So that its price is known, as that of a vendor's model is.
        app.loom.model_name(PacedModel())
        session = await app.loom.session_of(node)
        if await app.store.load_drafts(session):
            wrong.append("drafts are left")
        children = await app.loom.children(node)
        wrong += [f"{child.id}: {said}" for child in children if (said := misread(child))]
        used = (await app.loom.open(node)).get_state().usage
        facts = await read_log(app, session)
        for child in children:
            if await app.loom.get(child.id) != child:
                wrong.append(f"{child.id} is not found by its id")
        recorded = [fact.usage for fact in facts if isinstance(fact, UsageRecorded)]
        if used != sum(recorded, NOTHING_USED):
            wrong.append("the ledger is not the sum of what was recorded")
        again = await app.loom.open(node)
        if len(again.get_state().children) != len(children):
            wrong.append("a second look found other nodes")
    return facts, wrong


def misread(node: LoomNode) -> str:
    """What is wrong with a branch, or nothing."""
    whole = "".join(f" word{number}" for number in range(TOKENS))
    is_empty = not node.text.strip()
    if not whole.startswith(node.text):
        return f"the model never said {node.text[-40:]!r}"
    if is_empty != bool(node.metadata.get("empty")) or (is_empty and not node.partial):
        return "it is empty and not marked so, or marked so and not empty"
    if node.usage is None or node.cost_usd is None or node.cost_usd <= 0:
        return "it cost nothing"
    return ""


async def read_log(app: App, session: str) -> list[AnyFact]:
    """All facts of a session."""
    return [decode(record.body) for record in await app.store.read(session, limit=100_000)]


def judge(facts: Sequence[AnyFact]) -> list[str]:
    """What is wrong with a log."""
    wrong: list[str] = []
    started = [fact for fact in facts if isinstance(fact, BranchesStarted)]
    ended = [fact.gen_id for fact in facts if isinstance(fact, BranchesEnded)]
    if sorted(ended) != sorted(fact.gen_id for fact in started):
        wrong.append(f"{len(started)} generations began and {len(ended)} ended")
    nodes = [fact.node for fact in facts if isinstance(fact, NewMessage)]
    paid = [fact for fact in facts if isinstance(fact, UsageRecorded)]
    failed = [fact for fact in facts if isinstance(fact, BranchFailed)]
    if failed:
        wrong.append(f"{len(failed)} branches failed, and the model never does")
    for slot in (slot for generation in started for slot in generation.plan):
        made = [node for node in nodes if node.id == slot.node_id]
        costs = [fact.usage for fact in paid if fact.node == slot.node_id]
        if len(made) != 1:
            wrong.append(f"the branch {slot.node_id} is {len(made)} nodes")
        elif [made[0].usage] != costs:
            wrong.append(f"{slot.node_id} was not paid for once, at what it says")
    if len(paid) != sum(len(generation.plan) for generation in started):
        wrong.append(f"{len(paid)} branches were paid for")
    return wrong


def attempt(seed: int, number: int) -> tuple[str, list[AnyFact]]:
    """One round: what is wrong, and its log."""
    with tempfile.TemporaryDirectory(prefix="weft-branches-") as folder:
        root = Path(folder)
        (root / "project").mkdir()
        said = kill_one(root, planned(seed, number))
        if said:
            return said, []
        facts, wrong = anyio.run(looked_at, root)
        return "; ".join([*wrong, *judge(facts)]), facts


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int)
    parser.add_argument("--life", type=Path)
    parser.add_argument("--early", action="store_true")
    given = parser.parse_args(argv)
    if given.life is not None:
        anyio.run(partial(live, is_early=given.early), given.life)
        return 0
    wrong: list[str] = []
    broken_off = empty = whole = 0
    began = time.monotonic()
    numbers = range(given.rounds) if given.only is None else [given.only]
    for number in numbers:
        said, facts = attempt(given.seed, number)
        if said:
            wrong.append(f"{number}: {said}")
        for fact in facts:
            if isinstance(fact, NewMessage) and fact.node.model:
                broken_off += fact.node.is_partial
                empty += not fact.node.parts
                whole += not fact.node.is_partial
    result = {
        "claim": "branches",
        "n": len(numbers),
        "seed": given.seed,
        "seconds": round(time.monotonic() - began, 1),
        "partial": broken_off,
        "empty": empty,
        "whole": whole,
        "violations": len(wrong),
        "wrong": wrong[:5],
    }
    print(json.dumps(result))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
