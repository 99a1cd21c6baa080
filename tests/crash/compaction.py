"""What compactions may not lose, whatever the summarizer does.

`python -m tests.crash.compaction --n 2 --seed 1` prints one JSON line; `--table` writes what was
found of each kind as a Markdown table to stderr.

For `n` seeds each, sessions with planted facts (`tests.support.planted_session`) are compacted 1, 3
and 8 times in windows of 16,000, 32,000 and 128,000 tokens by summarizers that keep a third, drop
all, lie, babble, time out, write too much or refuse.  Constraints, decisions, rejected approaches,
exact values in the user's own and in pinned messages, finished and open tasks, changed files and
the failing command are all in the next request; no finished step comes back as open; every request
fits its window, and no turn ends in an error.

Then a session of 300 turns in a window of 32,000 tokens: no request is refused, at least nine in
ten begin with all of the one before, and after an undo the next one is what it was, byte for byte.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import anyio
import msgspec

from tests.support.planted_session import (
    HELD,
    REPORTED,
    SUMMARIZERS,
    PlantedResult,
    lead_long,
    lead_planted,
)

WINDOWS = (16_000, 32_000, 128_000)
COMPACTIONS = (1, 3, 8)
LONG_TURNS = 300
LONG_WINDOW = 32_000
LEAST_UNCHANGED = 0.9


class Verdict(msgspec.Struct):
    """What came of it."""

    sessions: int = 0
    requests: int = 0
    compactions: int = 0
    found: dict[str, dict[str, list[int]]] = {}
    """Kind → summarizer → how many were found, and planted."""
    done_as_open: int = 0
    unchanged: float = 0.0
    """Share of the long session's requests that begin with all of the one before."""
    long_compactions: int = 0
    wrong: list[str] = []

    def take(self, name: str, summarizer: str, result: PlantedResult) -> None:
        """One more session."""
        self.sessions += 1
        self.requests += result.requests
        self.compactions += result.compactions
        self.done_as_open += result.done_as_open
        self.wrong += [f"{name}: {wrong}" for wrong in result.wrong]
        for kind, (found, planted) in result.found.items():
            counts = self.found.setdefault(kind, {}).setdefault(summarizer, [0, 0])
            counts[0] += found
            counts[1] += planted

    def table(self) -> str:
        """What was found of each kind, by summarizer, in per cent."""
        rows = [
            "| kind | " + " | ".join(SUMMARIZERS) + " |",
            "|---|" + "---|" * len(SUMMARIZERS),
        ]
        for kind in (*HELD, *REPORTED):
            cells = [self.found.get(kind, {}).get(name, [0, 0]) for name in SUMMARIZERS]
            shown = [f"{100 * found / planted:.0f}" if planted else "" for found, planted in cells]
            rows.append(f"| {kind} | " + " | ".join(shown) + " |")
        return "\n".join(rows)


async def compact_at_random(
    seed: int,
    verdict: Verdict,
    *,
    windows: Sequence[int] = WINDOWS,
    compactions: Sequence[int] = COMPACTIONS,
    summarizers: Sequence[str] = tuple(SUMMARIZERS),
) -> None:
    """One session for each window, number of compactions and summarizer."""
    for window in windows:
        for summarizer in summarizers:
            for count in compactions:
                with tempfile.TemporaryDirectory(prefix="planted-") as folder:
                    result = await lead_planted(
                        Path(folder),
                        window=window,
                        summarizer=summarizer,
                        compactions=count,
                        seed=seed,
                    )
                verdict.take(f"{window} {summarizer} {count} seed {seed}", summarizer, result)


async def talk_long(turns: int, seed: int, verdict: Verdict, window: int = LONG_WINDOW) -> None:
    """The long session."""
    with tempfile.TemporaryDirectory(prefix="long-") as folder:
        result = await lead_long(Path(folder), window=window, turns=turns, seed=seed)
    verdict.wrong += [f"long session: {wrong}" for wrong in result.wrong]
    verdict.requests += result.requests
    verdict.long_compactions = result.compactions
    verdict.unchanged = result.unchanged / (result.requests - 1)
    if verdict.unchanged < LEAST_UNCHANGED:
        verdict.wrong.append(f"long session: only {verdict.unchanged:.0%} of prefixes unchanged")


async def prove(seeds: int, seed: int) -> Verdict:
    """All sessions."""
    verdict = Verdict()
    for number in range(seeds):
        await compact_at_random(seed + number, verdict)
    await talk_long(LONG_TURNS, seed, verdict)
    return verdict


def main(argv: Sequence[str]) -> int:
    """Prove it and print the line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=2, help="seeds of each kind of session")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--table", action="store_true")
    chosen = parser.parse_args(argv)
    began = time.monotonic()
    verdict = anyio.run(prove, chosen.n, chosen.seed)
    for wrong in verdict.wrong:
        print(wrong, file=sys.stderr)
    if chosen.table:
        print(verdict.table(), file=sys.stderr)
    planted = [counts for kinds in verdict.found.values() for counts in kinds.values()]
    line = {
        "claim": "compaction",
        "n": verdict.sessions,
        "violations": len(verdict.wrong),
        "seed": chosen.seed,
        "seconds": round(time.monotonic() - began, 1),
        "requests": verdict.requests,
        "compactions": verdict.compactions,
        "planted": sum(counts[1] for counts in planted),
        "done_as_open": verdict.done_as_open,
        "long_compactions": verdict.long_compactions,
        "unchanged_prefixes": round(verdict.unchanged, 3),
    }
    print(json.dumps(line))
    return int(bool(verdict.wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
