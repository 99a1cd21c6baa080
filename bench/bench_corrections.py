"""Corrections of users that are found among answers which the detector was not made with."""

from __future__ import annotations

import time

from scripts.reply_weights import rows

from bench.table import Row
from weft.decisions.corrections import find_correction

PROPOSAL = "I'll use Celery for the nightly export."
LONG = "We looked at it, but we should rather use cron and not Celery. " * 160
ROUNDS = 100


def run() -> list[Row]:
    """The shares of both kinds, and what a look costs."""
    corrections, others = (
        [row for name in ("fresh", "later") for row in rows(f"{name}_{kind}.tsv")]
        for kind in ("corrections", "no_corrections")
    )
    captured = sum(find_correction(*row[:2]) is not None for row in corrections)
    false = sum(find_correction(*row[:2]) is not None for row in others)
    return [
        Row(
            f"corrections found, of {len(corrections)} not used to make the detector",
            100 * captured / len(corrections),
            "%",
            limit=80.0,
            better="more",
        ),
        Row(
            f"other answers taken for one, of {len(others)}",
            100 * false / len(others),
            "%",
            limit=5.0,
        ),
        Row("a look at an answer of 2 kB", _cost(LONG[:2_000]), "ms", limit=3.0),
        Row("a look at an answer of 10 kB", _cost(LONG[:10_000]), "ms", limit=1.0),
    ]


def _cost(reply: str) -> float:
    find_correction(PROPOSAL, reply)
    start = time.process_time()
    for _ in range(ROUNDS):
        find_correction(PROPOSAL, reply)
    return (time.process_time() - start) * 1_000 / ROUNDS
