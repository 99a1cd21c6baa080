"""Rivals on one project stream in every run of the suite, and that the proof can fail."""

from __future__ import annotations

import pytest

from tests.crash import rivals
from weft.events import AnyFact, SessionRestarted, SystemNote

pytestmark = pytest.mark.process


@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
def test_rivals_on_one_project_stream_all_get_their_batches_in_once(kind: rivals.Kind) -> None:
    assert rivals.attempt(kind, 3, 1) == []


def notes(*texts: str) -> list[AnyFact]:
    return [SystemNote(text=text, seq=seq) for seq, text in enumerate(texts, start=1)]


def test_the_proof_notices_what_must_not_be() -> None:
    logs = {"a": notes("a 0", "a 1"), "b": notes("b 0", "b 1")}
    whole = ["a 0 0/2", "a 0 1/2", "b 0 0/1", "b 1 0/1", "a 1 0/1"]
    assert rivals.judge(notes(*whole), logs, 2) == []
    lost, doubled = whole[:-1], [*whole, whole[-1]]
    torn = [whole[0], whole[2], whole[1], *whole[3:]]
    for wrong in (lost, doubled, torn):
        assert rivals.judge(notes(*wrong), logs, 2) != []
    assert rivals.judge(notes(*whole)[1:], logs, 2) != []
    restarted = {**logs, "a": [*logs["a"], SessionRestarted(reason="x")]}
    assert rivals.judge(notes(*whole), restarted, 2) == ["a was restarted"]
    assert rivals.judge(notes(*whole), {**logs, "a": notes("a 1", "a 0")}, 2) != []
