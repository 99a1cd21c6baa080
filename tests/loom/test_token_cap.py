"""The limit on the tokens of a branch."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from weft.loom.token_cap import TokenCap


def words(text: str) -> int:
    """A counter in the manner of vocabularies: a token begins at a space, and none is too long."""
    return sum(-(-len(part) // 6) for part in text.replace(" ", "\0 ").split("\0") if part)


def clipped(text: str, limit: int, size: int) -> tuple[str, TokenCap]:
    cap = TokenCap(limit, words)
    return "".join(cap.clip(text[at : at + size]) for at in range(0, len(text), size)), cap


def test_text_below_the_limit_is_left_alone() -> None:
    text, cap = clipped("a few words", 10, 4)
    assert text == "a few words"
    assert not cap.is_reached


def test_the_piece_that_passes_the_limit_is_cut_inside() -> None:
    cap = TokenCap(3, words)
    assert cap.clip("one two") == "one two"
    assert cap.clip(" three four five") == " three"
    assert cap.is_reached
    assert cap.clip(" six") == ""


def test_an_accent_stays_with_its_letter() -> None:
    cap = TokenCap(2, len)
    assert cap.clip("xe\u0301y") == "x"


@given(
    st.text("ab é", max_size=3_000), st.integers(0, 700), st.integers(1, 400), st.integers(1, 400)
)
def test_as_much_as_fits_is_given_however_it_comes(
    text: str, limit: int, size: int, other: int
) -> None:
    kept, cap = clipped(text, limit, size)
    assert text.startswith(kept)
    assert words(kept) <= limit
    assert cap.is_reached == (words(text) > limit)
    assert not cap.is_reached or words(text[: len(kept) + 1]) > limit
    assert clipped(text, limit, other)[0] == kept


def test_the_work_for_a_piece_does_not_grow_with_the_text() -> None:
    counted: list[int] = []

    def count(text: str) -> int:
        counted.append(len(text))
        return words(text)

    cap = TokenCap(10**9, count)
    for _ in range(2_000):
        cap.clip("word ")
    assert max(counted) < 1_000
