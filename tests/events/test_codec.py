"""Facts to bytes and back: nothing is lost, what is newer is kept, what is damaged is named."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.history_generator import History
from tests.support.strategies import any_fact, any_signal, histories, json_values
from weft.errors import Corrupt
from weft.events import (
    FACTS,
    SIGNALS,
    AnyFact,
    Fact,
    HeadMoved,
    SettingChanged,
    Signal,
    UnknownFact,
    codec,
    decode,
    decode_event,
    encode,
    kind_of,
)
from weft.events.upcast import UPCASTERS, Upcaster, upcast
from weft.ids import NodeId, SessionId

A = SessionId("ses_a")


@given(fact=any_fact())
def test_a_fact_comes_back_as_it_was(fact: Fact) -> None:
    body = encode(fact)
    assert decode(body) == fact
    assert encode(decode(body)) == body
    assert decode_event(body) == fact


@given(signal=any_signal())
def test_a_signal_comes_back_as_it_was(signal: Signal) -> None:
    assert decode_event(encode(signal)) == signal


@given(history=histories())
def test_a_history_comes_back_as_it_was(history: History) -> None:
    assert [decode(encode(fact)) for fact in history.facts] == history.facts


def test_facts_and_signals_share_no_name() -> None:
    assert set(FACTS).isdisjoint(SIGNALS)


# --- newer programs


@given(extra=st.dictionaries(st.text(min_size=1, max_size=5), json_values, max_size=3))
def test_a_kind_of_a_newer_program_is_kept_byte_for_byte(extra: dict[str, Any]) -> None:
    head = {"kind": "dreamt@2", "session_id": "ses_a", "seq": 7, "at": 1.5}
    body = b"  " + msgspec.json.encode(extra | head).replace(b":", b" : ")
    for read in (decode, decode_event):
        fact = read(body)
        assert isinstance(fact, UnknownFact)
        assert (fact.kind, fact.session_id, fact.seq, fact.at) == ("dreamt@2", "ses_a", 7, 1.5)
        assert encode(fact) == body
        assert kind_of(fact) == "dreamt@2"


def test_fields_of_a_newer_program_are_tolerated() -> None:
    body = b'{"kind":"head_moved","node":"nod_1","why":{"deep":[1]},"session_id":"ses_a","seq":3}'
    assert decode(body) == HeadMoved(node=NodeId("nod_1"), session_id=A, seq=3)


# --- damage


def damaged(kind: str = "head_moved", **fields: Any) -> bytes:
    """A stored fact with other content than its kind has."""
    return msgspec.json.encode({"kind": kind, "session_id": "ses_a", "seq": 12, **fields})


@pytest.mark.parametrize(
    "body",
    [
        damaged(node=5),
        damaged(node=["nod_1"]),
        damaged("new_message"),
        damaged("new_message", node={"id": "n", "role": "wizard"}),
        damaged("turn_finished", turn_id="t", reason="bored"),
        damaged("setting_changed"),
        damaged(node="nod_X").replace(b"X", b"\xff"),
    ],
)
def test_damaged_content_of_a_known_kind_is_named_by_stream_and_seq(body: bytes) -> None:
    with pytest.raises(Corrupt, match=r"'ses_a' at seq 12 is damaged") as caught:
        decode(body)
    assert (caught.value.stream, caught.value.seq) == ("ses_a", 12)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x00" * 40,
        b"[]",
        b"{}",
        b'{"kind":"head_moved"',
        b'{"kind":7,"seq":1}',
        b'{"kind":"dreamt"}',
        b'{"kind":"dreamt","seq":"one"}',
        b'{"kind":"dre\xffamt","seq":1}',
        b'{"kind":"dreamt","seq":1,"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
)
def test_bytes_that_are_no_fact_are_named_by_where_they_were_found(body: bytes) -> None:
    with pytest.raises(Corrupt) as caught:
        decode(body, stream="ses_z", seq=9)
    assert (caught.value.stream, caught.value.seq) == ("ses_z", 9)


@given(body=st.binary(max_size=60))
def test_no_bytes_at_all_raise_anything_but_corrupt(body: bytes) -> None:
    with suppress(Corrupt):
        decode(body)


@given(fact=any_fact(), data=st.data())
def test_a_flipped_byte_is_read_or_refused_and_never_anything_else(
    fact: Fact, data: st.DataObject
) -> None:
    body = bytearray(encode(fact))
    body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    with suppress(Corrupt):
        decode(bytes(body))


@given(fact=any_fact(), data=st.data())
def test_a_torn_line_is_always_refused(fact: Fact, data: st.DataObject) -> None:
    body = encode(fact)
    with pytest.raises(Corrupt):
        decode(body[: data.draw(st.integers(0, len(body) - 1))])


# --- older programs


def _first_to_second(old: dict[str, Any]) -> dict[str, Any]:
    """`option_set(key)` became `option_set@2(name)`."""
    return {k: v for k, v in old.items() if k != "key"} | {
        "kind": "option_set@2",
        "name": old["key"],
    }


def _second_to_third(old: dict[str, Any]) -> dict[str, Any]:
    return old | {"kind": "setting_changed", "value": old["value"] * 2}


PRETEND: dict[str, Upcaster] = {"option_set": _first_to_second, "option_set@2": _second_to_third}


@pytest.fixture
def pretend_old_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    """This program once wrote `option_set` and `option_set@2`."""
    monkeypatch.setattr(codec, "UPCASTERS", PRETEND)


def old(kind: str, **fields: Any) -> bytes:
    """A line as the old program stored it."""
    head = {"kind": kind, "session_id": "ses_a", "seq": 4, "at": 2.5}
    return msgspec.json.encode(head | fields)


def now(value: Any) -> AnyFact:
    """What the old lines mean today."""
    return SettingChanged(name="model", value=value, session_id=A, seq=4, at=2.5)


@pytest.mark.usefixtures("pretend_old_kinds")
def test_an_old_kind_goes_through_every_version_between() -> None:
    assert decode(old("option_set", key="model", value="x")) == now("xx")
    assert decode(old("option_set@2", name="model", value="x")) == now("xx")
    assert decode_event(old("option_set", key="model", value="x")) == now("xx")


@pytest.mark.usefixtures("pretend_old_kinds")
@pytest.mark.parametrize(
    "body",
    [old("option_set"), old("option_set@2", name=1, value="x"), old("option_set@2", value={})],
)
def test_damage_in_an_old_kind_is_named_like_any_other(body: bytes) -> None:
    with pytest.raises(Corrupt) as caught:
        decode(body)
    assert (caught.value.stream, caught.value.seq) == ("ses_a", 4)


def test_upcasting_leaves_alone_what_it_does_not_know() -> None:
    assert upcast({"kind": "head_moved", "seq": 1}, PRETEND) == {"kind": "head_moved", "seq": 1}


def test_every_upcaster_ends_at_a_kind_of_today() -> None:
    """One step for each old tag, none of which is a tag that is written today."""
    assert set(UPCASTERS).isdisjoint(FACTS)
