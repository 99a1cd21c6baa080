"""The budgets of the zones: what a text is cut to, and that a small window leaves room."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from weft.context import ZONE_SHARES, estimate_text, fitted, is_cut, zone_budget

LINES = st.lists(st.text(alphabet="abc é\n", max_size=80), max_size=60).map("\n".join)


def test_a_budget_is_what_the_settings_say_and_no_more_than_a_share_of_the_window() -> None:
    assert zone_budget("instructions", 8192, 200_000) == 8192
    assert zone_budget("instructions", 8192, 32_000) == 4000
    assert zone_budget("memory", 2048, 8_000) == 500
    assert zone_budget("memory", 2048, 0) == 2048
    in_prefix = {name: share for name, share in ZONE_SHARES.items() if name != "results"}
    assert sum(in_prefix.values()) < 0.5


def test_a_text_is_cut_at_the_end_of_a_line_and_says_so() -> None:
    text = "\n".join(f"line {number}" for number in range(1_000))
    cut = fitted(text, "memory", 200)
    kept, _, note = cut.partition("\n\n[")
    assert text.startswith(f"{kept}\n")
    assert note == (
        "The rest is left out: the setting context.memory and the model's window allow 200 tokens.]"
    )
    assert is_cut(cut)
    assert not is_cut(text)
    assert fitted(text, "memory", 0) == ""


@given(text=LINES, tokens=st.integers(0, 400))
def test_what_was_fitted_fits_and_stays_as_it_is(text: str, tokens: int) -> None:
    cut = fitted(text, "skills", tokens)
    assert estimate_text(len(cut)) <= tokens + tokens // 16
    assert fitted(cut, "skills", tokens) == cut
    assert (cut == text) is not is_cut(cut) or not cut
