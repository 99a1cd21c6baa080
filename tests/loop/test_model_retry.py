"""When a failed model call is made again, and what is said when it is not."""

from __future__ import annotations

import pytest

from weft.errors import ProviderError, ProviderUnavailable, RateLimited
from weft.loop import TurnLimits, wait_before_retry, with_retry_time
from weft.loop.model_retry import TIMEOUT_RETRIES

NOON = 1_800_014_400.0
"""2027-01-15 12:00:00 UTC."""


def tries(error: ProviderError, limits: TurnLimits) -> int:
    """How often a call that always fails so is made."""
    made = 1
    while wait_before_retry(error, retries=made - 1, waited=0.0, limits=limits) is not None:
        made += 1
    return made


def silent() -> ProviderUnavailable:
    error = ProviderUnavailable("it sent nothing for 300 seconds")
    error.timed_out = True
    return error


def test_a_silent_server_is_tried_less_often_than_one_that_refuses() -> None:
    overloaded = ProviderUnavailable("overloaded", status=503)
    assert tries(overloaded, TurnLimits()) == 1 + TurnLimits().retries
    assert tries(silent(), TurnLimits()) == 1 + TIMEOUT_RETRIES < tries(overloaded, TurnLimits())
    assert tries(silent(), TurnLimits(retries=0)) == 1


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (45.0, "it asks to wait 45 s, until 12:00:45 UTC"),
        (600.0, "it asks to wait 10 min, until 12:10:00 UTC"),
        (7_800.0, "it asks to wait 2 h 10 min, until 14:10:00 UTC"),
        (86_400.0, "it asks to wait 24 h 0 min, until 2027-01-16 12:00 UTC"),
        (1e300, "until 2028-01-16 12:00 UTC"),
    ],
)
def test_a_wait_that_is_too_long_is_said_with_its_time(seconds: float, said: str) -> None:
    error = RateLimited("too many requests", status=429, retry_after_seconds=seconds)
    told = with_retry_time(error, NOON)
    assert type(told) is RateLimited
    assert (told.status, told.retry_after_seconds) == (429, seconds)
    assert str(told).startswith("too many requests; it asks to wait ")
    assert str(told).endswith(said)


def test_an_error_without_a_time_is_said_as_it_is() -> None:
    error = ProviderUnavailable("overloaded", status=503)
    assert with_retry_time(error, NOON) is error
