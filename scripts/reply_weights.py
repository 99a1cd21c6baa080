"""The weights by which answers to a plan are judged, found on those in `tests/decisions/data`.

`python -m scripts.reply_weights` writes `reply_weights.tsv`; with `--check` it only says how well
the detector does on answers that it was not made with, each fifth of them left out in turn.

Logistic regression with a penalty on large weights, by plain gradient descent: features that come
with corrections and not with other answers get more weight, and no single answer gets much.
"""

from __future__ import annotations

import math
import random
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from weft.decisions.corrections.detector import (
    LEAST_SCORE,
    is_clear,
    judged_plan,
    rules_count,
    windows,
)
from weft.decisions.corrections.reply_score import features

DATA: Final = Path(__file__).parent.parent / "tests" / "decisions" / "data"
WEIGHTS: Final = (
    Path(__file__).parent.parent / "src/weft/decisions/corrections" / "reply_weights.tsv"
)
SETS: Final = (
    *("", "more_", "unseen_", "held_out_", "role_", "varied_", "apart_", "acts_", "kept_"),
    *("fresh_", "later_", "sealed_", "mixed_", "talk_", "shut_", "closed_", "last_"),
)
"""What the weights are found on: all tables but `final_`, which they are measured with."""
PENALTY: Final = 2.5
STEPS: Final = 400
LEAST_WEIGHT: Final = 0.03
LEAST_COUNT: Final = 3
"""Windows that a feature is in at least: what is rarer tells of an answer, not of answers."""


class JudgedReply(NamedTuple):
    """An answer, with the features of each of its windows."""

    is_correction: bool
    windows: list[set[str]]
    clear: list[float]
    """What it counts that the rules find a correction in each, or nothing."""
    right: list[int]
    """The windows that say what is wanted; of other answers all."""


def rows(name: str) -> list[list[str]]:
    """A table of answers; a line end inside of one is written as in Python."""
    lines = (DATA / name).read_text("utf-8").splitlines()
    return [line.replace("\\n", "\n").split("\t") for line in lines]


def judged(row: Sequence[str], *, is_correction: bool) -> JudgedReply:
    """An answer of a table."""
    plan, parts = judged_plan(row[0]), windows(row[1])
    wanted = row[3].lower() if len(row) > 3 else ""
    named = [n for n, part in enumerate(parts) if wanted and wanted in part.text.lower()]
    every = list(range(len(parts)))
    return JudgedReply(
        is_correction,
        [features(plan, part) for part in parts],
        [rules_count(part.english) * bool(is_clear(row[0], part.english)) for part in parts],
        (named[-1:] if len(parts) > 1 else every) if is_correction else every,
    )


def read_replies(sets: Sequence[str] = SETS) -> list[JudgedReply]:
    """All answers of the tables."""
    return [
        judged(row, is_correction=is_correction)
        for name in sets
        for is_correction, kind in ((True, "corrections"), (False, "no_corrections"))
        for row in rows(f"{name}{kind}.tsv")
    ]


def fitted(replies: Sequence[JudgedReply]) -> dict[str, float]:
    """The weights that tell these apart best."""
    known = [
        ([*reply.windows[n], "bias"], reply.is_correction) for reply in replies for n in reply.right
    ]
    counts = Counter(name for found, _ in known for name in found)
    known = [
        ([name for name in found if counts[name] >= LEAST_COUNT], is_one) for found, is_one in known
    ]
    weights = dict.fromkeys({name for found, _ in known for name in found}, 0.0)
    speed = dict.fromkeys(weights, 1e-09)
    for _ in range(STEPS):
        slope = {name: PENALTY * weights[name] * (name != "bias") for name in weights}
        for found, is_correction in known:
            total = sum(weights[name] for name in found)
            error = 1 / (1 + math.exp(-max(-30.0, min(30.0, total)))) - is_correction
            for name in found:
                slope[name] += error
        for name, each in slope.items():
            # A step of its own for each: features come once or a thousand times.
            speed[name] += each * each
            weights[name] -= 0.3 * each / math.sqrt(speed[name])
    return weights


def total_of(reply: JudgedReply, weights: dict[str, float]) -> float:
    """What an answer comes to, as the detector has it."""
    bias = weights["bias"]
    return max(
        (
            bias + sum(weights.get(name, 0.0) for name in found) + counts
            for found, counts in zip(reply.windows, reply.clear, strict=True)
        ),
        default=-99.0,
    )


def check(replies: list[JudgedReply], parts: int = 5) -> None:
    """Say how well answers are judged that the weights were not found on."""
    random.Random(1).shuffle(replies)
    found: list[tuple[bool, float]] = []
    for part in range(parts):
        weights = fitted([each for n, each in enumerate(replies) if n % parts != part])
        found += [(each.is_correction, total_of(each, weights)) for each in replies[part::parts]]
    for least in (0.0, LEAST_SCORE, 1.0, 1.5):
        captured = [total > least for is_correction, total in found if is_correction]
        false = [total > least for is_correction, total in found if not is_correction]
        print(
            f"{least:4.1f}: {sum(captured)} of {len(captured)} corrections, "
            f"{sum(false)} of {len(false)} others"
        )


def main() -> None:
    replies = read_replies()
    if "--check" in sys.argv:
        check(replies)
        return
    weights = fitted(replies)
    lines = [
        "# Features of answers and their weights: `python -m scripts.reply_weights` finds them."
    ]
    lines += [
        f"{name}\t{weight:.2f}"
        for name, weight in sorted(weights.items())
        if abs(weight) >= LEAST_WEIGHT
    ]
    WEIGHTS.write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()
