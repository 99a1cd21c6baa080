"""Where a line of one text stands in another."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from weft.runtime.blame.line_map import is_binary, likeness, lines_of, place_before

TEXTS = st.lists(st.sampled_from([b"", b"}", b"a", b"b", b"c"]), max_size=30)


@given(old=TEXTS, new=TEXTS)
def test_a_line_only_leads_to_an_equal_one_and_their_order_stays(
    old: list[bytes], new: list[bytes]
) -> None:
    found = [place_before(old, new, place) for place in range(len(new))]
    assert all(at is None or old[at] == new[place] for place, at in enumerate(found))
    kept = [at for at in found if at is not None]
    assert kept == sorted(set(kept))


@given(noise=TEXTS, gone=st.sets(st.integers(0, 19)), data=st.data())
def test_lines_that_are_once_in_both_are_found_whatever_stands_between(
    noise: list[bytes], gone: set[int], data: st.DataObject
) -> None:
    old = [line for n in range(20) for line in (b"line %d" % n, *data.draw(TEXTS))]
    kept = [n for n in range(20) if n not in gone]
    new = [*noise]
    for n in kept:
        new += [b"line %d" % n, *data.draw(TEXTS)]
    for n in kept:
        word = b"line %d" % n
        assert place_before(old, new, new.index(word)) == old.index(word)


def test_lines_are_those_of_a_text_whether_or_not_the_last_is_ended() -> None:
    assert lines_of(b"a\nb") == lines_of(b"a\nb\n") == [b"a", b"b"]
    assert lines_of(b"") == []
    assert is_binary(b"a\0") is True
    assert is_binary(b"a\n") is False


def test_likeness_counts_lines_that_say_something() -> None:
    assert likeness([b"a", b"", b"b"], [b"a", b"b", b"", b""]) == 1.0
    assert likeness([b"a", b"b"], [b"a", b"c"]) == 0.5
    assert likeness([b""], [b""]) == 0.0
