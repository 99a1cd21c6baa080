"""Server-sent events, however the bytes are cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import ProviderUnavailable
from weft.transport.sse import EventParser


def parse(*pieces: bytes) -> list[tuple[bytes, bytes]]:
    parser = EventParser()
    events = [event for piece in pieces for event in parser.feed(piece)]
    return events + parser.finish()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"data: a\n\n", [(b"", b"a")]),
        (b"data:a\n\n", [(b"", b"a")]),
        (b"event: x\ndata: a\n\n", [(b"x", b"a")]),
        (b"event:x\r\ndata: a\r\n\r\ndata: b\r\n\r\n", [(b"x", b"a"), (b"", b"b")]),
        (b"data: a\rdata: b\r\r", [(b"", b"a\nb")]),
        (b"data: a\ndata: b\n\n", [(b"", b"a\nb")]),
        (b": comment\n\n\n\ndata: a\nid: 7\nretry: 3\n\n", [(b"", b"a")]),
        (b"event: alone\n\ndata: a\n\n", [(b"", b"a")]),
        (b"\xef\xbb\xbfdata: a\n\n", [(b"", b"a")]),
        (b"data: forgot the end", [(b"", b"forgot the end")]),
        (b"data: \n\n", [(b"", b"")]),
        (b"", []),
    ],
)
def test_events_are_read_by_the_rules(text: bytes, expected: list[tuple[bytes, bytes]]) -> None:
    assert parse(text) == expected


lines = st.sampled_from(
    [b"data: x", b"data:y", b"event: e", b": c", b"", b"", b"id: 1", b"data", b"data: \xc3\xa9"]
)
ends = st.sampled_from([b"\n", b"\r\n", b"\r"])


@given(st.lists(st.tuples(lines, ends), max_size=12), st.lists(st.integers(0, 99), max_size=6))
def test_where_the_bytes_are_cut_does_not_matter(
    written: list[tuple[bytes, bytes]], cuts: list[int]
) -> None:
    text = b"".join(line + end for line, end in written)
    places = sorted({min(cut, len(text)) for cut in cuts})
    bounds = [0, *places, len(text)]
    pieces = [text[a:b] for a, b in pairwise(bounds)]
    assert parse(*pieces) == parse(text)


def test_an_event_that_does_not_end_is_given_up() -> None:
    parser = EventParser(max_event=1000)
    for _ in range(9):
        assert parser.feed(b"data: " + b"x" * 100) == []
    with pytest.raises(ProviderUnavailable, match="over 1000 bytes"):
        parser.feed(b"x" * 100)
