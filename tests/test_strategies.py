"""The histories that laws are tried on are worth trying them on."""

from __future__ import annotations

from collections import Counter

from tests.support.history_generator import write_fork, write_history
from tests.support.strategies import numbers
from weft.events import FACTS, kind_of


def test_histories_hold_every_kind_and_something_unknown() -> None:
    facts = [fact for seed in range(60) for fact in write_history(numbers(seed, 60)).facts]
    assert {kind_of(fact) for fact in facts} == {*FACTS, "dreamt@3"}


def test_histories_are_rich_enough_to_go_wrong() -> None:
    seen: Counter[str] = Counter()
    for seed in range(60):
        plain = write_fork(numbers(seed, 30), numbers(seed + 100, 30)).plain
        branched = Counter(plain.parents.values())
        seen["branches"] += any(count > 1 for count in branched.values())
        seen["open calls"] += len(plain.settled) < len(plain.calls)
        seen["settled calls"] += bool(plain.settled)
        seen["queued"] += len(plain.queue) > 1
        seen["asked"] += bool(plain.requests)
        seen["compacted"] += bool(plain.compactions)
        seen["in a turn"] += plain.turn is not None
        seen["hidden"] += bool(plain.deleted)
    assert min(seen.values()) >= 5, seen
