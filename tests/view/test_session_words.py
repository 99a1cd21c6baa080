"""The offer to go on with a turn that a crash has cut off."""

from __future__ import annotations

from weft.view import coming_back_text


def test_the_offer_says_what_the_next_call_sends_and_costs_at_most() -> None:
    assert coming_back_text("", 0, None) == "The last turn was interrupted."
    assert coming_back_text("", 3704, 0.256) == (
        "The last turn was interrupted. "
        "The next model call sends about 3,704 tokens: at most $0.26."
    )
    assert coming_back_text("", 10, 0.0012).endswith("at most $0.0012.")
    assert coming_back_text("", 10, None).endswith("its price is not known.")


def test_the_offer_of_a_parked_turn_says_why_it_is_parked() -> None:
    said = coming_back_text("parked: its process ended 4 times within an hour", 0, None)
    assert said == "The last turn is parked: its process ended 4 times within an hour."
