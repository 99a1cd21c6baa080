"""Boundary repair: what is streamed joins the text, and is what is stored."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.loom.boundary_repair import (
    LAG,
    RepairedText,
    StreamRepair,
    is_wrapped,
    looks_like_code,
    rewound,
    rules_for,
)
from weft.loom.continuation import STRATEGIES, Strategy


def repaired(
    before: str,
    raw: str,
    strategy: Strategy = "system",
    *,
    size: int = 3,
    was_cut: bool = False,
    fragment: str = "",
) -> RepairedText:
    repair = StreamRepair(before, rules_for(strategy), fragment=fragment)
    given = [repair.feed(raw[at : at + size]) for at in range(0, len(raw), size)]
    given.append(repair.finish(was_cut=was_cut))
    result = repair.result()
    assert "".join(given) == result.text
    return result


@pytest.mark.parametrize(
    ("before", "raw", "text"),
    [
        ("Once upon a time", "there was", " there was"),
        ("Once upon a time ", "there was", "there was"),
        ("Once upon a time ", " there was", "there was"),
        ("Once upon a time", " there was", " there was"),
        ("Once upon a time", ", long ago", ", long ago"),
        ("Once upon a time", " , long ago", ", long ago"),
        ("Yes.", "Then", " Then"),
        ("He said (", "softly", "softly"),
        ("It", " 's late", "'s late"),
        ("the fl", " anks of", "anks of"),
        ("the fl", "anks of", "anks of"),
        ("a twenty-", " one gun", "one gun"),
        ("I want some", " thing else", "thing else"),
        ("it is 5 km", " later", " later"),
        ("the fox", " jumps", " jumps"),
        ("Ivo", " said", " said"),
        ("any", " one of them", " one of them"),
        ("半導", "体の", "体の"),
        ("A list:\n", "- one", "- one"),
        ("", " Hello", " Hello"),
    ],
)
def test_the_first_word_joins_the_text(before: str, raw: str, text: str) -> None:
    assert repaired(before, raw).text == text


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("the dog , the cat .", " the dog, the cat."),
        ("I do n't", " I do n't"),
        ("they 'll see him self", " they'll see himself"),
        ("read .env and ... wait :-)", " read .env and ... wait :-)"),
        ("Para one.\n\nPara two", " Para one.\n\nPara two"),
    ],
)
def test_words_further_in_are_mended(raw: str, text: str) -> None:
    assert repaired("Well then:", raw).text == text


def test_french_keeps_the_space_before_its_punctuation() -> None:
    assert repaired("Quoi ? Rien !", "Pourquoi ? Dis , toi").text == " Pourquoi ? Dis, toi"


@pytest.mark.parametrize("strategy", ["completion", "fim"])
def test_raw_text_keeps_its_boundary(strategy: Strategy) -> None:
    assert repaired("the fl", " anks , oh", strategy).text == " anks , oh"


LONG = "A long line of prose that somebody broke as in a mail"


def test_broken_lines_of_prose_are_joined() -> None:
    assert repaired("Prose.", f"{LONG}\nand went on").text == f" {LONG} and went on"


@pytest.mark.parametrize(
    ("before", "raw"),
    [
        ("roses are red\nviolets are blue\n", "sugar is sweet\nand so are you"),
        ("- one\n- two\n", f"- {LONG}\n- three"),
        ("Prose.\n", f"{LONG}.\nAnother paragraph begins"),
        ("Prose.\n", f"{LONG}\n\nand a new paragraph"),
        (f"{LONG}\n{LONG}\n{LONG}\n", f"{LONG}\nand so on"),
        ("the rain comes down like static", "\nbetween stations, the city\nblurs"),
        ("```python\nx = 1\n", f"# {LONG} it\ny : int"),
    ],
)
def test_lines_that_are_set_as_lines_stay(before: str, raw: str) -> None:
    assert repaired(before, raw).text == raw


def test_source_code_is_left_alone() -> None:
    assert looks_like_code("def f(x):\n    return x\n")
    assert not looks_like_code("It was late; he\nran (and fell).\n")
    assert repaired("def f(x):\n    return x\n", " def g (y) :").text == " def g (y) :"


def test_a_word_that_the_rewind_took_back_is_not_written_twice() -> None:
    assert rewound("twas brilig and the sli") == ("twas brilig and the ", "sli")
    assert repaired("and the sli", "Slithy toves", fragment="sli").text == "thy toves"
    assert repaired("and the sli", " slithy toves", fragment="sli").text == "thy toves"


@pytest.mark.parametrize("text", ["the cat", "and the", "Dr", "x1", "twas brilig", "", "sli "])
def test_whole_words_are_not_rewound(text: str) -> None:
    assert rewound(text) == (text, "")


def test_half_a_word_is_left_out_only_where_a_limit_cut_it() -> None:
    assert repaired("So", "it was nea", was_cut=True).text == " it was"
    assert repaired("So", "it was nea").text == " it was nea"
    assert repaired("So", "it was a twenty-", was_cut=True).text == " it was a"
    assert repaired("So", "it was the", was_cut=True).text == " it was the"
    assert repaired("So", "nea", was_cut=True).text == " nea"
    assert repaired("So", "it was the ", "completion", was_cut=True).text == "it was the"


def test_text_is_held_back_for_a_word_at_most() -> None:
    repair = StreamRepair("So", rules_for("system"))
    assert repair.feed("it was") == " it"
    assert repair.feed(" ") == " was"
    assert repair.feed("a" * 15) == ""
    assert repair.feed("a") == f" {'a' * 16}"


def test_a_single_line_end_behind_a_short_line_is_meant() -> None:
    assert not is_wrapped("Dear Anna,", "thank you")
    assert is_wrapped(LONG, "thank you")


def test_places_in_the_raw_text_are_found_again() -> None:
    result = repaired("So", "he ran , and 's")
    assert result.text == " he ran, and's"
    assert result.is_healed
    assert [result.text[result.offset(at)] for at in (0, 3, 7, 9)] == ["h", "r", ",", "a"]
    assert not repaired("So", " he ran").is_healed


TEXTS = st.text(st.sampled_from("ab Ivnoe'sthing,.;!?-\n\t(\"é半`#5"), max_size=120) | st.text(
    max_size=60
)


@given(TEXTS, TEXTS, st.sampled_from(STRATEGIES), st.integers(1, 9), st.booleans(), st.booleans())
def test_the_edits_lead_from_the_raw_text_to_the_stored_one(
    before: str, raw: str, strategy: Strategy, size: int, was_cut: bool, rewinds: bool
) -> None:
    fragment = rewound(before)[1] if rewinds else ""
    repair = StreamRepair(before, rules_for(strategy), fragment=fragment)
    given_text, fed = "", 0
    for at in range(0, len(raw), size):
        given_text += repair.feed(raw[at : at + size])
        fed = min(len(raw), at + size)
        removed = sum(e.end - e.start - len(e.text) for e in repair.result().edits)
        assert fed - len(given_text) - removed <= LAG
    given_text += repair.finish(was_cut=was_cut)
    result = repair.result()
    assert given_text == result.text
    built, done = "", 0
    for edit in result.edits:
        assert done <= edit.start <= edit.end <= len(raw)
        built += raw[done : edit.start] + edit.text
        done = edit.end
    assert built + raw[done:] == result.text
    places = [result.offset(at) for at in range(len(raw) + 1)]
    assert places == sorted(places)
    assert places[-1] == len(result.text)


@given(TEXTS, TEXTS, st.sampled_from(STRATEGIES), st.integers(1, 9), st.booleans())
def test_how_a_stream_is_cut_into_pieces_does_not_matter(
    before: str, raw: str, strategy: Strategy, size: int, was_cut: bool
) -> None:
    once = repaired(before, raw, strategy, size=len(raw) or 1, was_cut=was_cut)
    assert repaired(before, raw, strategy, size=size, was_cut=was_cut).text == once.text
