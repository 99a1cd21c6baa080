"""Times and lengths of time as users write them."""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta
from typing import Final

from weft.errors import UsageError

_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)([smhd])")
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")
EXAMPLES: Final = "17:00, 2027-01-31T17:00 or +2h"


def duration_of(words: str) -> float:
    """The seconds of `90s`, `5m`, `1h30m`, `2d`.

    Raises:
        UsageError: it is no length of time.
    """
    given = words.strip().lower()
    parts = _PART.findall(given)
    if not parts or "".join(number + unit for number, unit in parts) != given:
        raise UsageError(f"{words!r:.60} is no length of time: write 30s, 5m, 1h30m or 2d")
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if not math.isfinite(seconds):
        raise UsageError(f"{words!r:.60} is more time than there is")
    return seconds


def shown_duration(seconds: float) -> str:
    """A length of time as `duration_of` takes it, in whole seconds."""
    left, shown = round(seconds), ""
    for unit, size in reversed(_UNITS.items()):
        count, left = divmod(left, int(size))
        shown += f"{count}{unit}" if count else ""
    return shown or "0s"


def time_of_words(words: str, now: float) -> float:
    """The time that is meant, in wall-clock seconds: a time of day is the next one of this machine.

    Raises:
        UsageError: it is no time.
    """
    given = words.strip()
    if given.startswith("+"):
        return now + duration_of(given[1:])
    if (clock := _CLOCK.fullmatch(given)) is not None:
        return _next_at(clock, words, now)
    try:
        # Without an offset it is the time of this machine, as the user reads it.
        return datetime.fromisoformat(given).timestamp()
    except (ValueError, OverflowError, OSError) as error:
        raise UsageError(f"{words!r:.60} is no time: write {EXAMPLES}") from error


def _next_at(clock: re.Match[str], words: str, now: float) -> float:
    hour, minute, second = (int(part or 0) for part in clock.groups())
    today = datetime.fromtimestamp(now)
    try:
        found = today.replace(hour=hour, minute=minute, second=second, microsecond=0)
    except ValueError as error:
        raise UsageError(f"{words!r:.60} is no time of day: write it as 17:00") from error
    if found.timestamp() <= now:
        found += timedelta(days=1)
    return found.timestamp()


def given_time(given: str | float | datetime, now: float) -> float:
    """A time as a program gives it, in wall-clock seconds.

    Raises:
        UsageError: it is none.
    """
    if isinstance(given, datetime):
        return given.timestamp()
    if isinstance(given, str):
        return time_of_words(given, now)
    return _number("a time", given)


def given_seconds(given: str | float) -> float:
    """A length of time as a program gives it.

    Raises:
        UsageError: it is none.
    """
    return duration_of(given) if isinstance(given, str) else _number("a length of time", given)


def _number(what: str, given: object) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not math.isfinite(given):
        raise UsageError(f"{what} is a number of seconds, or words, not {given!r:.80}")
    return float(given)
