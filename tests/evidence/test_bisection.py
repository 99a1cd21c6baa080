"""The search for a border: few checks, whatever cannot be checked, however many at once."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.evidence.bisect_words import sentence_of
from weft.evidence.bisection import (
    BisectCheck,
    BisectState,
    BorderSearch,
    BreakingCall,
    Verdict,
    distinct,
    verdict_of,
)

GOOD: list[Verdict] = ["good"]
BAD: list[Verdict] = ["bad"]
NONE: list[Verdict] = ["none"]
VERDICTS: list[Verdict] = ["good", "bad", "none"]


def driven(search: BorderSearch, verdicts: list[Verdict], jobs: int = 1) -> list[int]:
    """Every state that was checked, in order."""
    asked: list[int] = []
    while wanted := search.wanted(jobs):
        assert len(wanted) <= jobs
        assert len(set(wanted)) == len(wanted)
        for index in wanted:
            assert index not in asked
            asked.append(index)
            search.take(index, verdicts[index])
    return asked


@pytest.mark.parametrize("broken", range(1, 41))
def test_the_border_among_41_states_is_found_by_8_checks_both_ends_included(broken: int) -> None:
    verdicts: list[Verdict] = GOOD * broken + BAD * (41 - broken)
    search = BorderSearch(range(41))
    asked = driven(search, verdicts)
    assert (search.good, search.bad) == (broken - 1, broken)
    assert len(asked) <= 8
    assert asked[0] == 40, "the bad end comes first: nothing may be broken"


@given(st.data())
def test_a_border_is_one_whatever_could_not_be_checked(data: st.DataObject) -> None:
    middle = data.draw(st.lists(st.sampled_from(VERDICTS), max_size=60))
    verdicts: list[Verdict] = ["good", *middle, "bad"]
    search = BorderSearch(range(len(verdicts)))
    asked = driven(search, verdicts, data.draw(st.integers(1, 9)))
    assert verdicts[search.good] == "good"
    assert verdicts[search.bad] == "bad"
    assert search.good < search.bad
    assert set(verdicts[search.good + 1 : search.bad]) <= {"none"}
    assert {search.good, search.bad} <= set(asked)


@given(st.integers(2, 300), st.data())
def test_where_there_is_one_border_the_checks_are_as_few_as_halving_takes(
    count: int, data: st.DataObject
) -> None:
    broken = data.draw(st.integers(1, count - 1))
    verdicts: list[Verdict] = GOOD * broken + BAD * (count - broken)
    search = BorderSearch(range(count))
    asked = driven(search, verdicts)
    assert (search.good, search.bad) == (broken - 1, broken)
    assert len(asked) <= 2 + math.ceil(math.log2(count))


def test_a_row_of_states_that_cannot_be_checked_is_left_quickly() -> None:
    verdicts: list[Verdict] = GOOD * 10 + NONE * 80 + BAD * 10
    search = BorderSearch(range(100))
    asked = driven(search, verdicts)
    assert (search.good, search.bad) == (9, 90)
    assert asked[:2] == [99, 0]
    # Halving alone would walk out of the row one by one, and find the good side last of all.
    assert next(n for n, index in enumerate(asked) if verdicts[index] != "none" and n > 1) < 20


def test_equal_files_are_checked_once_and_the_border_is_named_by_its_own_sides() -> None:
    keys = ["a", "a", "b", "b", "a", "c", "c"]
    search = BorderSearch(distinct(keys))
    verdicts: list[Verdict] = ["good" if key != "c" else "bad" for key in keys]
    asked = driven(search, verdicts)
    assert (search.good, search.bad) == (4, 5)
    assert len(asked) <= 3


@pytest.mark.parametrize(("first", "last"), [("bad", "bad"), ("good", "good"), ("none", "bad")])
def test_without_a_good_and_a_bad_end_nothing_else_is_checked(
    first: Verdict, last: Verdict
) -> None:
    verdicts: list[Verdict] = [first, *GOOD * 20, last]
    search = BorderSearch(range(22))
    assert set(driven(search, verdicts)) <= {0, 21}


@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        *((0, "good"), (1, "bad"), (2, "bad"), (124, "bad"), (125, "none"), (126, "none")),
        *((127, "none"), (128, "bad"), (137, "none"), (139, "none"), (-9, "none"), (255, "bad")),
        (None, "none"),
    ],
)
def test_an_exit_code_says_what_it_says_to_git_bisect(code: int | None, verdict: str) -> None:
    assert verdict_of(code)[0] == verdict


def state(index: int, kind: str = "turn", made_by: str = "session") -> BisectState:
    name = f"turn {index}" if kind == "turn" else f"before turn {index}"
    return BisectState(index=index, kind=kind, turn=index, name=name, made_by=made_by)


def test_what_a_flaky_check_leaves_is_what_only_one_answer_is_known_of() -> None:
    search = BorderSearch(range(9))
    driven(search, GOOD * 5 + BAD * 4)
    assert (search.good, search.bad) == (4, 5)
    first, last = search.certain([4])
    assert (first, last) == (0, 5)


def test_the_sentence_names_who_broke_it() -> None:
    call = BreakingCall(tool_name="edit", target="edit auth.py:41", paths=("auth.py",))
    found = sentence_of("found", state(22), state(23), [call], ["auth.py"])
    assert found == "turn 23 broke it: `edit auth.py:41`; it passes up to turn 22"
    theirs = sentence_of("found", state(22), state(23, "before", "outside"), [], ["auth.py"])
    assert "you or another program" in theirs
    assert "auth.py" in theirs
    flaky = [
        BisectCheck(state=5, name="turn 5", verdict="bad"),
        BisectCheck(state=5, name="turn 5", verdict="good", is_again=True),
    ]
    said = sentence_of("flaky", state(4), None, checks=flaky)
    assert said == (
        "the check is flaky: two runs at turn 5 came out differently; what is left: it passes at "
        "turn 4"
    )
