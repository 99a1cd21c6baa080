"""What an answer claims, by its words."""

from __future__ import annotations

import pytest

from weft.evidence import claims_in, may_claim


@pytest.mark.parametrize(
    ("answer", "kinds"),
    [
        ("All tests pass.", ["test"]),
        ("All 57 tests pass now.", ["test"]),
        ("`pytest` reports 57 passed, 0 failed.", ["test"]),
        ("Tests: 12/12 passing", ["test"]),
        ("✅ All tests passing", ["test"]),
        ("Ran the test suite: no failures.", ["test"]),
        ("The suite passes with 3 skipped.", ["test"]),
        ("The failing test now passes.", ["test"]),
        ("The build succeeds and the linter is clean.", ["build", "lint"]),
        ("The project now compiles without errors.", ["build"]),
        ("Type checks pass (`mypy --strict`).", ["types"]),
        ("**All 214 tests pass**, and `npm run build` succeeds.", ["test", "build"]),
        ("Everything passes.", ["all"]),
        ("No other callers of `parse_config`.", ["search"]),
        ("`foo` is not used anywhere else.", ["search"]),
        ("I fixed the bug and verified that it works.", ["other"]),
    ],
)
def test_a_claim_is_found_whatever_its_form(answer: str, kinds: list[str]) -> None:
    assert may_claim(answer)
    assert [claim.kind for claim in claims_in(answer)] == kinds


@pytest.mark.parametrize(
    "answer",
    [
        "The tests should pass now.",
        "If you run the tests, they pass.",
        "Run `pytest` to verify that all tests pass.",
        "I couldn't run the tests.",
        "Two tests still fail.",
        "All tests pass except `test_slow`.",
        "The tests were passing before my change.",
        "I updated the build script and cleaned up the tests.",
        "Fixed the failing tests.",
        "Do all tests pass?",
        "> All tests pass",
        "```\n57 passed\n```",
        "Next, make sure that the build is green.",
    ],
)
def test_what_is_hoped_planned_asked_or_denied_is_no_claim(answer: str) -> None:
    assert claims_in(answer) == ()


def test_a_claim_knows_what_it_speaks_of() -> None:
    [claim] = claims_in("The new test in tests/test_a.py passes.")
    assert (claim.is_whole, claim.named) == (False, ("tests/test_a.py",))
    [counted] = claims_in("All 1,204 tests pass.")
    assert (counted.is_whole, counted.count) == (True, 1204)


@pytest.mark.parametrize(
    "long", ["_a" * 20_000, "a" * 30_000 + "@", "a b. " + "c/" * 600, "x" + " " * 20_000 + "y"]
)
def test_a_line_without_an_end_claims_nothing_and_hides_no_claim(long: str) -> None:
    """One word of 40,000 characters held the server up for minutes."""
    assert claims_in(f"{long} all tests passed") == ()
    assert [each.text for each in claims_in(f"{long}\nAll tests passed.")] == ["All tests passed"]
