"""Times and lengths of time as users write them."""

from __future__ import annotations

from datetime import datetime

import pytest

from weft.api.unattended.times import duration_of, given_time, shown_duration, time_of_words
from weft.errors import UsageError

NOON = datetime(2027, 1, 31, 12, 0).timestamp()


@pytest.mark.parametrize(
    ("words", "seconds"),
    [("30s", 30), ("5m", 300), ("1h30m", 5400), ("2d", 172800), ("1.5h", 5400)],
)
def test_a_length_of_time_is_read_and_shown(words: str, seconds: float) -> None:
    assert duration_of(words) == seconds
    assert duration_of(shown_duration(seconds)) == seconds


@pytest.mark.parametrize("words", ["", "5", "m", "5 m", "5x", "-5m", "1h30"])
def test_what_is_no_length_of_time_is_refused(words: str) -> None:
    with pytest.raises(UsageError, match="no length of time"):
        duration_of(words)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("17:00", datetime(2027, 1, 31, 17, 0)),
        ("9:30", datetime(2027, 2, 1, 9, 30)),
        ("12:00", datetime(2027, 2, 1, 12, 0)),
        ("+2h", datetime(2027, 1, 31, 14, 0)),
        ("2027-03-01T08:00", datetime(2027, 3, 1, 8, 0)),
    ],
)
def test_a_time_of_day_is_the_next_one(words: str, meant: datetime) -> None:
    assert time_of_words(words, NOON) == meant.timestamp()
    assert given_time(meant, NOON) == meant.timestamp()


@pytest.mark.parametrize("given", [True, float("nan"), float("inf"), None])
def test_what_is_no_time_is_refused(given: object) -> None:
    with pytest.raises(UsageError, match="a time is"):
        given_time(given, NOON)  # type: ignore[arg-type]
