"""Corrections of users that are found among answers which the detector was not made with.

The table is the last of five, each written before the detector that was measured on it: 64 of 88
captured and 3 of 127 false, 65 of 87 and 4 of 128, 68 of 88 and 3 of 131, 66 of 86 and 5 of 126,
and 72 of 88 and 4 of 124.  The others are used since.
"""

from __future__ import annotations

import time

from scripts.reply_weights import rows

from bench.table import Row
from weft.decisions.corrections import find_correction
from weft.runtime.decisions.decision_source import may_correct

PROPOSAL = "I'll use Celery for the nightly export."
LONG = "We looked at it, but we should rather use cron and not Celery. " * 160
ROUNDS = 100


def run() -> list[Row]:
    """The shares of both kinds, and what a look costs."""
    corrections, others = rows("final_corrections.tsv"), rows("final_no_corrections.tsv")
    captured = sum(_is_noted(*row[:2]) for row in corrections)
    false = sum(_is_noted(*row[:2]) for row in others)
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


def _is_noted(proposal: str, reply: str) -> bool:
    """Whether a session takes an answer for a correction: the first look counts, too."""
    return may_correct(proposal, reply) and find_correction(proposal, reply) is not None


def _cost(reply: str) -> float:
    find_correction(PROPOSAL, reply)
    start = time.process_time()
    for _ in range(ROUNDS):
        find_correction(PROPOSAL, reply)
    return (time.process_time() - start) * 1_000 / ROUNDS
