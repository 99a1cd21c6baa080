"""Forks, and what is asked of a large tree: processor time and memory.

The floor of each row is the same work on a small session, in the same run.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

import weft
from bench.bench_reopen import memory_megabytes
from bench.logs import answered_turn, facts, stamped, write_facts
from bench.scenes import run as run_async
from bench.table import Row
from weft.events import Fact, HeadMoved, NewMessage, RefMoved, SessionCreated, SubtreeDeleted
from weft.ids import NodeId, SessionId
from weft.messages import Node
from weft.providers import ScriptedModel
from weft.store.sqlite import open_sqlite
from weft.tree import ConversationTree

FORKS = 64
REPEATS = 5
SHORT, FORKED, LISTED, BRANCHED = (
    SessionId(f"ses_{name}") for name in ("short", "forked", "listed", "branched")
)
FORKED_FACTS = 20_000
"""A session of 400 turns."""
LISTED_TURNS = 4_500
BRANCHED_TURNS = 1_000
BRANCHES = 64
NODES = 100_000


class Costs(NamedTuple):
    """Milliseconds of processor time, and megabytes."""

    forks: float
    forks_floor: float
    memory: float
    memory_floor: float
    tree: float
    tree_floor: float
    usage: float
    usage_floor: float
    names: float
    names_floor: float


def _turns(count: int) -> Iterator[Fact]:
    yield SessionCreated(project_path="/", model="scripted:m", title="Long work")
    for turn in range(1, count + 1):
        yield from answered_turn(turn, _answer(turn - 1))


def _answer(turn: int) -> NodeId | None:
    return NodeId(f"nod_{turn:020}_a") if turn else None


def _deleted(turns: int) -> Iterator[Fact]:
    """A session with deletions near its end, so that every line is a long one."""
    yield from _turns(turns)
    for turn in range(turns - 1, turns - 6, -1):
        yield SubtreeDeleted(node=NodeId(f"nod_{turn:020}_u"))


def _branched(turns: int) -> Iterator[Fact]:
    """A session with branches at even distances."""
    yield from _turns(turns)
    for number in range(BRANCHES):
        at, new = _answer(turns * (number + 1) // (BRANCHES + 1)), turns + number + 1
        yield HeadMoved(node=at)
        yield from answered_turn(new, at)
        yield RefMoved(name=f"branch-{number}", node=_answer(new))
    yield HeadMoved(node=_answer(turns))


async def _prepare(home: Path) -> None:
    async with await open_sqlite(home / "weft.db") as store:
        await write_facts(store, SHORT, stamped(SHORT, _turns(2)))
        await write_facts(store, FORKED, facts(FORKED, FORKED_FACTS))
        await write_facts(store, LISTED, stamped(LISTED, _deleted(LISTED_TURNS)))
        await write_facts(store, BRANCHED, stamped(BRANCHED, _branched(BRANCHED_TURNS)))


async def _measure(home: Path) -> Costs:
    environ = {"HOME": str(home), "WEFT_HOME": str(home), "PATH": "/usr/bin:/bin"}
    (home / "project").mkdir(exist_ok=True)
    async with weft.open(home / "project", environ=environ) as app:
        opened = {
            name: await app.sessions.start_session(session_id=name, model=ScriptedModel(()))
            for name in (SHORT, FORKED, LISTED, BRANCHED)
        }
        floor = await _fork(app, SHORT)
        forks = await _fork(app, FORKED)
        short, listed, branched = opened[SHORT], opened[LISTED], opened[BRANCHED]
        return Costs(
            *(forks[0], floor[0], forks[1], floor[1]),
            *(await _least(listed.tree), await _least(short.tree)),
            *(await _least(branched.usage), await _least(short.usage)),
            *(await _least(branched.list_branches), await _least(short.list_branches)),
        )


async def _fork(app: weft.App, source: SessionId) -> tuple[float, float]:
    """Milliseconds and megabytes of all forks."""
    await app.sessions.fork_session(source)
    gc.collect()
    memory, started = memory_megabytes(), time.process_time()
    for _ in range(FORKS):
        await app.sessions.fork_session(source)
    taken = (time.process_time() - started) * 1000
    gc.collect()
    return taken, max(memory_megabytes() - memory, 0.1)


async def _least(ask: Callable[[], Awaitable[object]]) -> float:
    """The least of several: what is above it is the machine's other work."""
    taken: list[float] = []
    for _ in range(REPEATS):
        started = time.process_time()
        await ask()
        taken.append((time.process_time() - started) * 1000)
    return min(taken)


def _count_rows() -> Iterator[Row]:
    small, large = _random_tree(100), _random_tree(NODES)
    started = time.process_time()
    large.descendant_count(large.roots[0])
    yield Row(f"descendants, {NODES:,} nodes, first", _since(started), "ms")
    floor = min(_count_again(small, number) for number in range(REPEATS))
    again = min(_count_again(large, number) for number in range(REPEATS))
    yield Row(f"descendants, {NODES:,} nodes, after 64 new", again, "ms", floor=floor, limit=1.0)


def _random_tree(size: int) -> ConversationTree:
    chance, tree = Random(1), ConversationTree()
    for number in range(size):
        back = 1 + int(chance.expovariate(1 / 40))
        parent = NodeId(f"nod_{max(0, number - back):012}") if number else None
        _say(tree, NodeId(f"nod_{number:012}"), parent)
    return tree


def _say(tree: ConversationTree, node: NodeId, parent: NodeId | None) -> None:
    said = Node(id=node, role="assistant", parent=parent)
    tree.apply(NewMessage(node=said, session_id=FORKED, seq=len(tree.nodes) + 1))


def _count_again(tree: ConversationTree, generation: int) -> float:
    parent = tree.head
    for number in range(64):
        _say(tree, NodeId(f"nod_new_{generation}_{number}"), parent)
    started = time.process_time()
    tree.descendant_count(tree.roots[0])
    return _since(started)


def _since(started: float) -> float:
    return (time.process_time() - started) * 1000


def run() -> list[Row]:
    """All rows of this benchmark."""
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        run_async(lambda: _prepare(home))
        command = [sys.executable, "-m", "bench.bench_tree", str(home)]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    costs = Costs(*json.loads(done.stdout))
    asked = f"{LISTED_TURNS * 2:,} nodes after deletions"
    return [
        Row("64 forks of 400 turns", costs.forks, "ms", floor=costs.forks_floor, limit=1000.0),
        Row("64 forks, memory", costs.memory, "MB", floor=costs.memory_floor, limit=30.0),
        Row(f"tree(), {asked}", costs.tree, "ms", floor=costs.tree_floor, limit=20.0),
        Row("usage(), 65 branches", costs.usage, "ms", floor=costs.usage_floor, limit=20.0),
        Row("list_branches(), 65", costs.names, "ms", floor=costs.names_floor, limit=20.0),
        *_count_rows(),
    ]


if __name__ == "__main__":
    print(json.dumps(run_async(lambda: _measure(Path(sys.argv[1])))))
