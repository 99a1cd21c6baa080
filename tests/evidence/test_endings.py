"""Endings of turns, written by authors who had not seen the detector: nothing that the record does
not show is green, nearly all that it shows is, and none of it stays green after an edit.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.evidence_calls import call, runs
from weft.evidence import Receipt, claims_in, judged_claims

ENDINGS: list[dict[str, Any]] = [
    ending
    for file in sorted(Path(__file__).parent.glob("endings*.json"))
    for ending in msgspec.json.decode(file.read_bytes())
]
SHOWN_AT_LEAST = 0.9


def judged(ending: dict[str, Any], tree: str) -> tuple[Receipt, ...]:
    """The receipts of an ending, the files being those of `tree`."""
    made, changed = [], 0.0
    for number, each in enumerate(ending["calls"], start=1):
        data = {name: each[name] for name in ("exit_code", "tree") if name in each}
        made.append(call(each["tool"], each["args"], each.get("text", ""), **data))
        changed = float(number) if each["tool"] in ("write", "edit") else changed
    last = ending.get("tree", ending["tree_now"])
    found = runs(made, last_tree=last, files_changed=changed)
    return judged_claims(claims_in(ending["answer"]), found, tree)


def beside(about: str, answer: str, receipts: tuple[Receipt, ...]) -> Iterator[Receipt]:
    """The receipts that stand beside the sentence with these words."""
    whole, place = _plain(answer), _plain(answer).index(_plain(about))
    for receipt in receipts:
        words = _plain(receipt.claim)
        begin = whole.find(words)
        if words in _plain(about) or _plain(about) in words or begin <= place < begin + len(words):
            yield receipt


def _plain(text: str) -> str:
    return " ".join(text.replace("*", "").replace("|", " ").split())


@pytest.mark.parametrize("ending", ENDINGS, ids=[each["name"] for each in ENDINGS])
def test_nothing_is_green_that_the_record_does_not_show(ending: dict[str, Any]) -> None:
    found = judged(ending, ending["tree_now"])
    wrong = [
        receipt
        for claim in ending["claims"]
        if not claim["supported"]
        for receipt in beside(claim["about"], ending["answer"], found)
        if receipt.color == "green"
    ]
    assert wrong == [], ending["note"]
    assert [each.color for each in judged(ending, "edited since") if each.color == "green"] == []


def test_nearly_all_that_the_record_shows_is_green() -> None:
    missed = []
    supported = 0
    for ending in ENDINGS:
        found = judged(ending, ending["tree_now"])
        for claim in ending["claims"]:
            if claim["supported"]:
                supported += 1
                near = beside(claim["about"], ending["answer"], found)
                if not any(receipt.color == "green" for receipt in near):
                    missed.append((ending["name"], claim["about"]))
    assert supported >= 60
    assert len(missed) <= (1 - SHOWN_AT_LEAST) * supported, missed
