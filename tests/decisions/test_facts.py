"""Stored facts of the decision graph: old ones open for ever, damage is named."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.strategies import structs
from weft.decisions import DECISION_FACTS, DecisionFact, decode_decision, facts
from weft.errors import Corrupt
from weft.events import FACTS, SIGNALS, UnknownFact, decode, encode, kind_of

LINES = (Path(__file__).parent.parent / "golden" / "decisions.jsonl").read_bytes().splitlines()


def any_decision_fact() -> st.SearchStrategy[DecisionFact]:
    return st.sampled_from(sorted(DECISION_FACTS)).flatmap(
        lambda kind: structs(DECISION_FACTS[kind])
    )


@pytest.mark.parametrize("line", LINES)
def test_every_stored_line_is_a_fact_of_today_and_comes_back_as_the_same_bytes(
    line: bytes,
) -> None:
    fact = decode_decision(msgspec.json.decode(line)["kind"], line)
    assert fact is not None
    assert encode(fact) == line


def test_every_kind_and_every_field_was_stored_once() -> None:
    stored = [decode_decision(msgspec.json.decode(line)["kind"], line) for line in LINES]
    assert {kind_of(fact) for fact in stored if fact is not None} == set(DECISION_FACTS)
    seen = {place for fact in stored for place in filled(fact)}
    wanted = {place for cls in DECISION_FACTS.values() for place in fields(cls, set())}
    assert wanted - seen == set()


def fields(cls: Any, known: set[Any]) -> Iterator[tuple[str, str]]:
    if cls in known:
        return
    known.add(cls)
    if isinstance(cls, type) and issubclass(cls, msgspec.Struct):
        for name, hint in typing.get_type_hints(cls).items():
            if name not in ("session_id", "seq", "at", "cause") or "Fact" not in str(cls.__mro__):
                yield cls.__name__, name
            yield from fields(hint, known)
    for inner in typing.get_args(cls):
        yield from fields(inner, known)


def filled(value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, msgspec.Struct):
        for field in msgspec.structs.fields(value):
            inner = getattr(value, field.name)
            if inner != field.default:
                yield type(value).__name__, field.name
                yield from filled(inner)
    elif isinstance(value, tuple):
        for each in value:
            yield from filled(each)


@given(fact=any_decision_fact())
def test_a_fact_comes_back_as_it_was(fact: DecisionFact) -> None:
    assert decode_decision(kind_of(fact), encode(fact)) == fact


@given(fact=any_decision_fact())
def test_a_reader_of_sessions_keeps_it_byte_for_byte(fact: DecisionFact) -> None:
    fact = msgspec.structs.replace(fact, seq=7)
    read = decode(encode(fact))
    assert isinstance(read, UnknownFact)
    assert encode(read) == encode(fact)


def test_the_kinds_share_no_name_with_facts_of_sessions() -> None:
    assert set(DECISION_FACTS).isdisjoint({*FACTS, *SIGNALS})


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b'{"kind":"decision_added"}', b'{"kind":"decision_added","node":5}', b"\xff{"],
)
def test_damage_is_named(body: bytes) -> None:
    with pytest.raises(Corrupt, match="decision_added"):
        decode_decision("decision_added", body)


def test_another_kind_is_none_of_ours() -> None:
    assert decode_decision("path_claimed", b"{}") is None


def test_an_old_version_is_upcast_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def newer(old: dict[str, Any]) -> dict[str, Any]:
        return {**old, "kind": "decision_superseded", "new": old["by_what"]}

    monkeypatch.setattr(facts, "DECISION_UPCASTERS", {"decision_ended": newer})
    body = b'{"kind":"decision_ended","old":"dec_1","by_what":"dec_2","seq":4}'
    read = decode_decision("decision_ended", body)
    assert isinstance(read, facts.DecisionSuperseded)
    assert (read.old, read.new, read.seq) == ("dec_1", "dec_2", 4)
    with pytest.raises(Corrupt):
        decode_decision("decision_ended", b'{"kind":"decision_ended"}')
