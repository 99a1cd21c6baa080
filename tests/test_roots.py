"""Ids, clocks, errors and fail-points: what everybody may import."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft import errors, faults
from weft.clock import ManualClock, SystemClock
from weft.ids import new_call_uid, new_id, new_node_id, new_session_id

# --- ids


@given(now=st.floats(0, 2**40), later=st.floats(0.001, 1e6))
def test_ids_list_in_the_order_of_their_milliseconds(now: float, later: float) -> None:
    first, second = new_id("ses", now), new_id("ses", now + later + 0.001)
    assert first < second
    assert len(first) == len(second) == len("ses_") + 26


def test_ids_of_one_moment_differ_and_say_what_they_name() -> None:
    assert len({new_id("x", 1.0) for _ in range(1000)}) == 1000
    made = (new_session_id(1.0), new_node_id(1.0), new_call_uid(1.0))
    assert [each.split("_")[0] for each in made] == ["ses", "nod", "cal"]


# --- clocks


def test_a_manual_clock_moves_only_when_told() -> None:
    clock = ManualClock(start=10.0)
    assert (clock.now(), clock.monotonic()) == (10.0, 10.0)
    clock.advance(2.5)
    assert (clock.now(), clock.monotonic()) == (12.5, 12.5)


def test_the_systems_clock_only_grows() -> None:
    clock = SystemClock()
    assert clock.monotonic() <= clock.monotonic()
    assert clock.now() > 1.6e9


# --- errors

ALL = [
    each
    for _, each in inspect.getmembers(errors, inspect.isclass)
    if issubclass(each, errors.WeftError)
]


@pytest.mark.parametrize("error", ALL)
def test_every_error_has_its_place_in_the_tree_that_is_drawn(error: type[Exception]) -> None:
    assert error.__name__ in (errors.__doc__ or "")
    assert error.__doc__


def test_a_usage_error_is_the_value_error_that_python_would_raise() -> None:
    assert issubclass(errors.UsageError, ValueError)


def test_only_what_may_be_sent_again_is_retryable() -> None:
    retryable = {
        each.__name__ for each in ALL if issubclass(each, errors.ProviderError) and each.retryable
    }
    assert retryable == {"RateLimited", "ProviderUnavailable"}


def test_a_long_list_of_candidates_is_cut_and_kept_whole_for_programs() -> None:
    matches = tuple(f"ses_{n}" for n in range(9))
    error = errors.AmbiguousId("ses", matches)
    assert error.matches == matches
    assert "ses_4, …" in str(error)
    assert "ses_5" not in str(error)


# --- fail-points


@pytest.fixture
def point() -> Iterator[faults.FailPoint]:
    """A point that only this test knows."""
    made = faults.point("tests.roots.here")
    yield made
    faults.disarm_all()
    del faults._POINTS["tests.roots.here"]


def test_a_point_acts_on_the_pass_it_was_armed_for_and_then_never_again(
    point: faults.FailPoint,
) -> None:
    acted: list[str] = []
    point.hit()
    faults.arm("tests.roots.here", at=3, action=acted.append)
    for _ in range(2):
        point.hit()
    assert acted == []
    for _ in range(3):
        point.hit()
    assert acted == ["tests.roots.here"]


def test_points_enumerate_themselves_and_have_one_owner(point: faults.FailPoint) -> None:
    assert point.name in faults.names()
    with pytest.raises(ValueError, match="declared twice"):
        faults.point(point.name)


def test_a_disarmed_point_lets_everything_pass(point: faults.FailPoint) -> None:
    point.arm(1, lambda name: pytest.fail(name))
    faults.disarm_all()
    point.hit()


@pytest.mark.process
def test_an_armed_point_kills_the_process_without_any_clean_up() -> None:
    script = (
        "import atexit; from weft import faults; atexit.register(print, 'cleaned up')\n"
        "here = faults.point('here'); faults.arm('here', at=2)\n"
        "try:\n    here.hit(); here.hit()\nfinally:\n    print('finally')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert done.returncode == faults.EXIT_CODE
    assert done.stdout == b""
