"""Tokens and their probabilities, placed in the text that is stored."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import UsageError
from weft.loom.boundary_repair import RepairedText, StreamRepair, rules_for
from weft.loom.token_places import (
    PlacedToken,
    open_places,
    placed_tokens,
    with_alternative,
)
from weft.providers import TokenLogprob


def scored(*texts: str) -> list[TokenLogprob]:
    return [TokenLogprob(text, -0.5, ((text, -0.5), (f"{text}?", -1.5))) for text in texts]


def mended(before: str, raw: str, *, was_cut: bool = False) -> RepairedText:
    repair = StreamRepair(before, rules_for("system"))
    repair.feed(raw)
    repair.finish(was_cut=was_cut)
    return repair.result()


def shown(text: str, tokens: tuple[PlacedToken, ...]) -> list[str]:
    return [text[token.start : token.end] for token in tokens]


def test_tokens_are_found_in_the_repaired_text() -> None:
    texts = ["he", " ran", " ,", " and", " him", " self"]
    repaired = mended("So", "".join(texts))
    assert repaired.text == " he ran, and himself"
    tokens = placed_tokens(scored(*texts), "".join(texts), repaired)
    assert shown(repaired.text, tokens) == ["he", " ran", ",", " and", " him", "self"]
    assert [token.text for token in tokens] == texts


def test_tokens_behind_the_end_are_gone() -> None:
    texts = [" it", " was", " nea"]
    repaired = mended("So", "".join(texts), was_cut=True)
    assert repaired.text == " it was"
    assert shown(repaired.text, placed_tokens(scored(*texts), "".join(texts), repaired)) == [
        " it",
        " was",
    ]


def test_a_character_of_several_tokens_belongs_to_the_last_of_them() -> None:
    raw = "a 🔦 b"
    tokens = placed_tokens(scored("a", " \ufffd", "\ufffd", "\ufffd", " b"), raw, RepairedText(raw))
    assert shown(raw, tokens) == ["a", "", "", " 🔦", " b"]
    assert shown("🔦", placed_tokens(scored("\ufffd", "\ufffd"), "🔦", RepairedText("🔦"))) == [
        "",
        "🔦",
    ]


def test_a_branch_begins_with_what_could_have_stood_there() -> None:
    texts = ["he", " ran", " away"]
    repaired = mended("So", "".join(texts))
    tokens = placed_tokens(scored(*texts), "".join(texts), repaired)
    assert tokens[0].probability == pytest.approx(0.6065, abs=1e-4)
    assert with_alternative(repaired.text, tokens, 1) == " he ran?"
    assert with_alternative(repaired.text, tokens, 1, " fell") == " he fell"
    assert with_alternative(repaired.text, tokens, 0, " she") == " she"
    assert with_alternative(repaired.text, tokens, 0, "she") == " she"


@pytest.mark.parametrize(
    ("number", "alternative", "says"),
    [
        (-1, None, "there is no token -1; the node has 1"),
        (1, None, "there is no token 1"),
        (0, "a", "has no alternative"),
        (0, "", "has no alternative"),
        (0, None, "has no alternative"),
    ],
)
def test_a_token_that_has_no_alternative_is_said(
    number: int, alternative: str | None, says: str
) -> None:
    tokens = (PlacedToken("a", -0.1, (("a", -0.1),), 0, 1),)
    with pytest.raises(UsageError, match=says):
        with_alternative("a", tokens, number, alternative)


def test_open_places_are_where_two_ways_were_near() -> None:
    def token(*gap: float) -> PlacedToken:
        return PlacedToken("x", -1.0, tuple((str(n), -each) for n, each in enumerate(gap)), 0, 1)

    tokens = [token(0.1, 3.0), token(0.6, 0.7), token(0.5), token(0.5, 0.9)]
    assert open_places(tokens) == [1, 3]
    assert open_places(tokens, most_gap=0.2) == [1]


@given(
    st.lists(st.text("ab ,'s\n", min_size=1, max_size=5), max_size=12),
    st.sampled_from(["So", "So ", "the fl", ""]),
    st.booleans(),
)
def test_places_follow_each_other_and_cover_the_text(
    texts: list[str], before: str, was_cut: bool
) -> None:
    raw = "".join(texts)
    repaired = mended(before, raw, was_cut=was_cut)
    tokens = placed_tokens(scored(*texts), raw, repaired)
    at = tokens[0].start if tokens else 0
    assert at <= 1
    for token in tokens:
        assert token.start == at
        at = token.end
    assert at <= len(repaired.text)
    assert repaired.text[at:] == "" or len(tokens) < len(texts)
