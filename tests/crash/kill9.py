"""Kill -9 at any instant: nothing accepted is lost, nothing runs twice unseen, and the session goes
on.

`python -m tests.crash.kill9 --n 1000 --seed 1` prints one JSON line.  A journey (`journey.py`) is
begun in a process of its own and killed from outside at a random point; a new process opens the
same store, takes the session over at once, judges what it finds, and goes on, either where the turn
stood or with another prompt, until it is killed in turn or everything is done.  A journey dies one
to three times, so recovery itself is killed too.

A part of the journeys is not killed but stopped past all patience, robbed of its session, and let
go on: it must be refused.

The line's `teeth` say that the same harness sees what is missing: without the intent records, and
without the fence, it must go red (`--teeth intents`, `--teeth fencing` do only that, and succeed
when it did).
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from tests.support.crash.journey import JourneyFolder
from tests.support.crash.journey_life import Life, Variant
from tests.support.crash.journey_process import (
    A_LIFE_TAKES_AT_MOST_SECONDS,
    Process,
    import_everything,
    next_life,
    side_by_side,
)
from weft.loop.approval import ReadyCall
from weft.loop.tool_calls import ToolCallBatch
from weft.store import Append
from weft.store.checks import check_place
from weft.store.sqlite import appends

Teeth: TypeAlias = Literal["", "intents", "fencing"]

TEETH: tuple[Teeth, ...] = ("intents", "fencing")
TEETH_N = 8
WORKERS = 2
KILLS_A_JOURNEY = 3
TICKS = 120
"""About as many events as a life has.

A kill comes after so many at the latest, or the life is done first.
"""
ZOMBIES = 20
"""One journey in so many is robbed instead of killed."""
JSONL = 10
"""One journey in so many is kept as lines of JSON instead of in the default store."""
PATIENCE_SECONDS = 0.3
"""A new process that says nothing for so long waits for a lock that the stopped one holds."""


class Tally(msgspec.Struct):
    """What came of some journeys."""

    kills: int = 0
    zombies: int = 0
    refused: int = 0
    """Robbed processes that were told so."""
    journeys: int = 0
    takeover_seconds: float = 0.0
    """The longest time from opening the store to owning the session of a dead process."""
    met: dict[str, int] = {}
    """How many of the dead left a draft, an intent, a request, … behind."""
    wrong: list[str] = []

    def hear(self, process: Process) -> None:
        """Take in what one process found."""
        self.wrong += process.wrong
        if process.life.number > 1:
            for what in itertools.chain.from_iterable(process.words("met")):
                self.met[what] = self.met.get(what, 0) + 1
            for (seconds,) in process.words("open"):
                self.takeover_seconds = max(self.takeover_seconds, seconds)

    def add(self, other: Tally) -> None:
        """Take another one's numbers in."""
        self.kills += other.kills
        self.zombies += other.zombies
        self.refused += other.refused
        self.journeys += other.journeys
        self.takeover_seconds = max(self.takeover_seconds, other.takeover_seconds)
        self.wrong += other.wrong
        for what, times in other.met.items():
            self.met[what] = self.met.get(what, 0) + times


# -- what the teeth are shown with


async def _intend_nothing(batch: ToolCallBatch, ready: ReadyCall) -> None:
    """`ToolCallBatch._intend` without the record."""


def _ignore_the_fence(append: Append, *, last_seq: int, fence: int, is_held: bool) -> None:
    """`check_place` without its first half."""
    check_place(append, last_seq=last_seq, fence=append.fence or 0, is_held=True)


def _without(what: Teeth) -> Callable[[], None] | None:
    """What a process does first so that it has no intents, or no fence."""

    def patch() -> None:
        if what == "intents":
            # The seam is a test's own.
            setattr(ToolCallBatch, "_intend", _intend_nothing)  # noqa: B010
        else:
            setattr(appends, "check_place", _ignore_the_fence)  # noqa: B010  # as above

    return patch if what else None


# -- one journey


def killed(
    place: JourneyFolder, seed: int, teeth: Teeth = "", most_kills: int = KILLS_A_JOURNEY
) -> Tally:
    """One journey that dies up to `most_kills` times."""
    dice = random.Random(seed)
    tally = Tally(journeys=1)
    life = Life(seed=seed, variant=_variant(dice))
    for _ in range(dice.randint(1, most_kills)):
        process = Process(place, life, _without(teeth))
        try:
            _kill_at_random(process, dice)
            tally.hear(process)
            if process.is_finished or process.wrong:
                return tally
            tally.kills += 1
            life = next_life(
                process,
                comes_back=dice.choice(("continue", "continue", "prompt")),
                variant=_variant(dice),
            )
        finally:
            process.close()
    last = Process(place, life, _without(teeth))
    try:
        _live_to_the_end(last)
        tally.hear(last)
    finally:
        last.close()
    return tally


def _variant(dice: random.Random) -> Variant:
    """Mostly the plain turn; now and then one in which more happens."""
    others: tuple[Variant, ...] = ("abort", "narrow", "compact", "rewind", "broken")
    return "plain" if dice.random() < 0.5 else dice.choice(others)


def _kill_at_random(process: Process, dice: random.Random) -> None:
    after = dice.randint(0, TICKS)
    if not process.hear_until(lambda: process.ticks >= after, A_LIFE_TAKES_AT_MOST_SECONDS):
        process.said.append(["wrong", f"life {process.life.number} is stuck"])
    elif process.status is None:
        time.sleep(dice.uniform(0, 0.003))
    process.kill()


def _live_to_the_end(process: Process) -> None:
    if not process.end():
        process.said.append(["wrong", f"life {process.life.number} is stuck"])
    elif not process.is_finished:
        process.said.append(["wrong", f"life {process.life.number} did not finish"])


def robbed(place: JourneyFolder, seed: int, teeth: Teeth = "") -> Tally:
    """One journey whose process is stopped, robbed, and let go on."""
    dice = random.Random(seed)
    tally = Tally(journeys=1)
    first = Process(place, Life(seed=seed), _without(teeth))
    second: Process | None = None
    try:
        after = dice.randint(1, TICKS * 2 // 3)
        first.hear_until(lambda: first.ticks >= after, A_LIFE_TAKES_AT_MOST_SECONDS)
        if first.status is not None:
            tally.wrong += first.wrong
            return tally
        first.stop()
        while first.hear(0.0):
            pass
        tally.zombies = 1
        life = next_life(first, steals=True, holds_at_end=True)
        second = Process(place, life, _without(teeth))
        woken_after = dice.randint(0, TICKS // 2)
        taken = second
        taken.hear_until(lambda: bool(taken.words("open")), PATIENCE_SECONDS)
        taken.hear_until(lambda: taken.ticks >= woken_after, PATIENCE_SECONDS)
        first.go_on()
        both = (first, taken)
        # Without the fence the two take turns at undoing each other's work, so nobody waits long
        # for that.
        seconds = 2.0 if teeth else A_LIFE_TAKES_AT_MOST_SECONDS
        if not first.end(seconds):
            tally.wrong.append("the robbed process does not end")
        elif not taken.hear_until(lambda: bool(taken.words("driven")), seconds):
            tally.wrong.append("the new owner is stuck")
        else:
            tally.refused = len(first.words("lost"))
            taken.wake()
            _live_to_the_end(taken)
        tally.wrong += [wrong for process in both for wrong in process.wrong]
    finally:
        first.close()
        if second is not None:
            second.close()
    return tally


# -- many journeys


def run(
    n: int, seed: int, *, teeth: Teeth = "", workers: int = WORKERS, most_kills: int = 3
) -> Tally:
    """Journeys with at least `n` kills (or, for the fence's teeth, `n` robberies), side by side in
    `workers` processes.
    """
    import_everything()
    shares = [n // workers + (number < n % workers) for number in range(workers)]
    whole = Tally()
    work = [
        partial(_share, share, f"{seed}-{number}", teeth, most_kills)
        for number, share in enumerate(shares)
    ]
    for tally in side_by_side(work, Tally):
        whole.add(tally)
    return whole


def _share(n: int, seed: str, teeth: Teeth, most_kills: int) -> Tally:
    tally = Tally()
    for one, is_robbery in _journeys(seed, teeth):
        if (tally.zombies if teeth == "fencing" else tally.kills) >= n:
            return tally
        folder = Path(tempfile.mkdtemp(prefix="kill9-"))
        try:
            is_jsonl = not is_robbery and not teeth and one % JSONL == 0
            place = JourneyFolder(folder, "jsonl" if is_jsonl else "sqlite")
            place.make()
            came = (
                robbed(place, one, teeth) if is_robbery else killed(place, one, teeth, most_kills)
            )
        finally:
            shutil.rmtree(folder)
        tally.add(came)
        if came.wrong and not teeth:
            what = "robbed" if is_robbery else "killed"
            print(f"{what}, seed {one}: {'; '.join(came.wrong)}", file=sys.stderr)
    return tally


def _journeys(seed: str, teeth: Teeth) -> Iterator[tuple[int, bool]]:
    """Seeds, and whether the journey is robbed instead of killed."""
    dice = random.Random(seed)
    for number in itertools.count(1):
        is_robbery = teeth == "fencing" or (not teeth and number % ZOMBIES == 0)
        yield dice.getrandbits(32), is_robbery


def main(argv: Sequence[str]) -> int:
    """Prove it and print the line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-teeth", action="store_true", help="leave the runs out that go red")
    parser.add_argument("--teeth", choices=("", "intents", "fencing"), default="")
    chosen = parser.parse_args(argv)
    start = time.monotonic()
    if chosen.teeth:
        tally = run(chosen.n, chosen.seed, teeth=chosen.teeth)
        line = _line(tally, chosen.seed, start) | {
            "without": chosen.teeth,
            "went_red": bool(tally.wrong),
        }
        print(json.dumps(line))
        return int(not tally.wrong)
    tally = run(chosen.n, chosen.seed)
    wanted = () if chosen.no_teeth else TEETH
    bitten = {what: len(run(TEETH_N, chosen.seed, teeth=what).wrong) for what in wanted}
    print(json.dumps(_line(tally, chosen.seed, start) | {"teeth": bitten}))
    return int(bool(tally.wrong) or not all(bitten.values()))


def _line(tally: Tally, seed: int, start: float) -> dict[str, Any]:
    return {
        "claim": "kill9",
        "n": tally.kills + tally.zombies,
        "violations": len(tally.wrong),
        "seed": seed,
        "seconds": round(time.monotonic() - start, 1),
        "kills": tally.kills,
        "robbed": tally.zombies,
        "robbed_and_told": tally.refused,
        "journeys": tally.journeys,
        "met": tally.met,
        "slowest_takeover_seconds": round(tally.takeover_seconds, 3),
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
