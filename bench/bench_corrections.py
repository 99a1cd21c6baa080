"""Corrections of users that are found among answers which the detector was not made with.

First looks, each before the table was used for anything: `fresh` 51 of 60 captured and 3 of 60
false; `later` 28 of 30 and 3 of 30; `apart` 45 of 60 and 4 of 79; `kept` 50 of 60 and 5 of 80;
`sealed` 38 of 50 and 3 of 100.  `apart` and `kept` are used since, the others are measured here.
"""

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
        [row for name in ("fresh", "later", "sealed") for row in rows(f"{name}_{kind}.tsv")]
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
