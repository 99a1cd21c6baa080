"""Crashes at every named fail-point: the same verdict as after a kill from outside.

`python -m tests.crash.failpoints --n 20 --seed 1` prints one JSON line.  The points enumerate
themselves (`weft.faults.names()`).  First every scenario is lived through once, and each point
counts how often it is passed.  Then each point is hit `n` times, at a random pass of a random
scenario that reaches it: the process dies there by `os._exit`, and new processes judge, go on and
complete (`journey_verdict`).  A point that no scenario reaches is a violation: whoever adds a
boundary adds a way to it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

import msgspec

from tests.support.crash.journey import JourneyFolder
from tests.support.crash.journey_life import Life, Variant
from tests.support.crash.journey_process import Process, import_everything, next_life, side_by_side
from weft import faults

WORKERS = 2
TRIES_A_HIT = 5


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """A way to live, for the points that lie on it."""

    variant: Variant = "plain"
    store_kind: str = "sqlite"
    comes_back: Literal["", "continue", "prompt"] = ""
    """Not empty: a first life was killed while a model call, a tool or a request was open, and this
    one comes back to it.
    """


SCENARIOS = (
    Scenario(),
    Scenario(variant="abort"),
    Scenario(variant="crash"),
    Scenario(variant="crash_often"),
    Scenario(variant="stuck"),
    Scenario(variant="wait"),
    Scenario(variant="narrow"),
    Scenario(variant="compact"),
    Scenario(variant="rewind"),
    Scenario(variant="broken"),
    Scenario(comes_back="continue"),
    Scenario(comes_back="prompt"),
    Scenario(store_kind="jsonl"),
    Scenario(store_kind="jsonl", comes_back="continue"),
)

TRIED_ELSEWHERE = ("goal.checked", "goal.judge", "workspace.remove")
"""Points that these journeys do not reach.  `tests.crash.goals` kills sessions with a goal at
places of their log; `tests/workspace/test_displaced_file.py` kills at the points of a removal."""

FIRST_DEATHS = ("loop.intent.after", "loop.request.mid_stream", "loop.ask.after", "loop.call.after")
"""Where the life before one that comes back ends."""


class Hit(msgspec.Struct, frozen=True):
    """One crash to make."""

    point: str
    scenario: Scenario
    at: int
    seed: int


class Tally(msgspec.Struct):
    """What came of some crashes."""

    hits: dict[str, int] = {}
    wrong: list[str] = []

    def add(self, other: Tally) -> None:
        """Take another one's numbers in."""
        for name, times in other.hits.items():
            self.hits[name] = self.hits.get(name, 0) + times
        self.wrong += other.wrong


# -- one life


def _first_life(place: JourneyFolder, scenario: Scenario, seed: int) -> Life | None:
    """The life in which the point is to be hit; None when the one before it went wrong."""
    if not scenario.comes_back:
        return Life(seed=seed, variant=scenario.variant)
    dice = random.Random(f"first {seed}")
    before = Process(place, Life(seed=seed, point=dice.choice(FIRST_DEATHS), at=dice.randint(1, 2)))
    try:
        before.end()
        if before.status != faults.EXIT_CODE:
            return None
        return next_life(before, comes_back=scenario.comes_back)
    finally:
        before.close()


def passes(scenario: Scenario, seed: int) -> dict[str, int]:
    """How often each point is passed when nothing happens."""
    with _place(scenario) as place:
        life = _first_life(place, scenario, seed)
        if life is None:
            raise RuntimeError(f"the life before {scenario} did not end where it should")
        process = Process(place, msgspec.structs.replace(life, counts=True))
        try:
            process.end()
            if process.wrong or not process.is_finished:
                raise RuntimeError(f"{scenario} fails undisturbed: {process.wrong}")
            counted: dict[str, int] = process.words("passes")[0][0]
            return counted
        finally:
            process.close()


def crash(hit: Hit) -> Tally:
    """Die at the point, and see what the next processes find."""
    with _place(hit.scenario) as place:
        life = _first_life(place, hit.scenario, hit.seed)
        if life is None:
            return Tally()  # the life before was over before its point; not a hit
        process = Process(place, msgspec.structs.replace(life, point=hit.point, at=hit.at))
        try:
            if not process.end():
                return Tally(wrong=[f"{hit}: stuck"])
            is_hit = process.status == faults.EXIT_CODE
            wrong = list(process.wrong)
            after = next_life(process, comes_back=_how_to_come_back(hit.seed))
        finally:
            process.close()
        if is_hit:
            wrong += _complete(place, after)
        return Tally(hits={hit.point: int(is_hit)}, wrong=[f"{hit}: {each}" for each in wrong])


def _how_to_come_back(seed: int) -> Literal["continue", "prompt"]:
    return "continue" if seed % 3 else "prompt"


def _complete(place: JourneyFolder, life: Life) -> list[str]:
    last = Process(place, life)
    try:
        if not last.end() or not last.is_finished:
            return [*last.wrong, "the session does not complete"]
        return last.wrong
    finally:
        last.close()


# -- all of them


def reached(seed: int, workers: int = WORKERS) -> dict[str, list[tuple[Scenario, int]]]:
    """For each point the scenarios that reach it, and how often."""
    import_everything()
    names = [name for name in faults.names() if not name.startswith(TRIED_ELSEWHERE)]
    found: dict[str, list[tuple[Scenario, int]]] = {name: [] for name in names}
    shares = [SCENARIOS[number::workers] for number in range(workers)]
    work = [partial(_passes_of_all, share, seed) for share in shares]
    for share, counted in zip(shares, side_by_side(work, list[dict[str, int]]), strict=True):
        for scenario, passed in zip(share, counted, strict=True):
            for name, times in passed.items():
                if times:
                    found[name].append((scenario, times))
    return {name: _quick(ways) or ways for name, ways in found.items()}


def _passes_of_all(scenarios: Sequence[Scenario], seed: int) -> list[dict[str, int]]:
    return [passes(scenario, seed) for scenario in scenarios]


def _quick(ways: Sequence[tuple[Scenario, int]]) -> list[tuple[Scenario, int]]:
    """A tool that clings takes more than a second: only for the points that nothing else
    reaches.
    """
    return [way for way in ways if way[0].variant != "stuck"]


def run(
    n: int, seed: int, *, workers: int = WORKERS, points: Sequence[str] = ()
) -> tuple[Tally, Mapping[str, int]]:
    """Hit every point (or the named ones) `n` times.

    Returns what came of it, and how many scenarios reach each point.
    """
    ways = reached(seed)
    wanted = [name for name in ways if not points or name in points]
    shares = [wanted[number::workers] for number in range(workers)]
    whole = Tally()
    work = [partial(_share, {name: ways[name] for name in share}, n, seed) for share in shares]
    for tally in side_by_side(work, Tally):
        whole.add(tally)
    return whole, {name: len(ways[name]) for name in wanted}


def _share(ways: Mapping[str, Sequence[tuple[Scenario, int]]], n: int, seed: int) -> Tally:
    whole = Tally()
    for name, found in ways.items():
        if not found:
            print(f"no scenario reaches {name}", file=sys.stderr)
            whole.wrong.append(f"no scenario reaches {name}")
            continue
        tally = _hit_often(name, found, n, random.Random(f"{seed} {name}"))
        if tally.hits.get(name, 0) < n:
            tally.wrong.append(f"{name} was hit only {tally.hits} times")
        for wrong in tally.wrong:
            print(wrong, file=sys.stderr)
        whole.add(tally)
    return whole


def _hit_often(
    name: str, ways: Sequence[tuple[Scenario, int]], n: int, dice: random.Random
) -> Tally:
    """Crash until it was `n` times at the point: at a late pass a life may be over before."""
    tally = Tally()
    for _ in range(n * TRIES_A_HIT):
        if tally.hits.get(name, 0) >= n:
            break
        scenario, times = dice.choice(ways)
        at = dice.randint(1, times)
        tally.add(crash(Hit(name, scenario, at, dice.getrandbits(32))))
    return tally


@contextlib.contextmanager
def _place(scenario: Scenario) -> Iterator[JourneyFolder]:
    folder = Path(tempfile.mkdtemp(prefix="points-"))
    try:
        place = JourneyFolder(folder, scenario.store_kind)
        place.make()
        yield place
    finally:
        shutil.rmtree(folder)


def main(argv: Sequence[str]) -> int:
    """Prove it and print the line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=20, help="crashes at each point")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("points", nargs="*", help="only these points")
    chosen = parser.parse_args(argv)
    start = time.monotonic()
    tally, ways = run(chosen.n, chosen.seed, points=chosen.points)
    line = {
        "claim": "failpoints",
        "n": sum(tally.hits.values()),
        "violations": len(tally.wrong),
        "seed": chosen.seed,
        "seconds": round(time.monotonic() - start, 1),
        "points": len(ways),
        "least_hits_of_a_point": min((tally.hits.get(name, 0) for name in ways), default=0),
    }
    print(json.dumps(line))
    return int(bool(tally.wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
