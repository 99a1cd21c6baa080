"""JSON of others as plain values: decoded with limits, and looked into without trust."""

from __future__ import annotations

import json
import math
import sys
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

import msgspec

from weft.errors import UsageError
from weft.messages import clean_text

Json: TypeAlias = dict[str, Any]

MOST_BYTES: Final = 512 * 1024 * 1024
"""Of a file; exports of years of chats have a fifth of that."""
MOST_VALUES: Final = 32_000_000
"""Of a file: a million nodes with all that is said of them.  Small values take twenty times the
room in memory that they have in the file."""
LONGEST_TEXT: Final = 16 * 1024 * 1024
"""Characters of one node."""
LONGEST_ID: Final = 200
"""Characters; a store takes no longer ones."""
_LONGEST_NAME: Final = 512
_LONGEST_SHOWN: Final = 60
_MILLISECONDS: Final = 1e11
"""From here on a number is one of milliseconds: as seconds it would be in the year 5138."""
_LATEST: Final = 253_402_300_799.0
_LARGEST: Final = sys.float_info.max
_WHOLE: Final = 2**63
"""A store takes whole numbers up to here."""
RATINGS: Final = 10
"""The highest rating, and the lowest below zero."""


def decode_json(data: bytes) -> Any:
    """The value that the bytes are.

    Raises:
        UsageError: they are no JSON, too many values, or nested too deep.
    """
    # Commas in texts count as well: it is a bound, and has to be known before anything is decoded.
    if sum(map(data.count, (b",", b"[", b"{"))) > MOST_VALUES:
        raise UsageError(f"the file has more than {MOST_VALUES} values; import it in parts")
    try:
        return msgspec.json.decode(data)
    except RecursionError:
        raise UsageError("the file is nested too deep for a tree of text") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    try:
        # Halves of emoji, which programs that cut text leave behind, are JSON to this one alone.
        return _cleaned(json.loads(data.decode("utf-8-sig", "replace")))
    except RecursionError:
        raise UsageError("the file is nested too deep for a tree of text") from None
    except ValueError as error:
        raise UsageError(f"the file is not JSON: {error}") from None


def as_table(value: Any, where: str) -> Json:
    """The value as an object with text as keys.

    Raises:
        UsageError: it is something else.
    """
    if isinstance(value, dict):
        return value
    raise UsageError(f"{where} should be an object, and is {_kind(value)}")


def as_list(value: Any, where: str) -> list[Any]:
    """The value as a list.

    Raises:
        UsageError: it is something else.
    """
    if isinstance(value, list):
        return value
    raise UsageError(f"{where} should be a list, and is {_kind(value)}")


def as_id(value: Any, where: str) -> str:
    """The value as an id; numbers are taken as the text of their digits.

    Raises:
        UsageError: it is no text, empty, or too long to be an id.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value:
        raise UsageError(f"{where} has no id")
    if "\0" in value:
        raise UsageError(f"{where} has an id with a NUL character")
    if len(value) > LONGEST_ID:
        raise UsageError(f"{where} has an id of {len(value)} characters; {LONGEST_ID} are allowed")
    return clean_text(value)


def as_text(value: Any, where: str) -> str:
    """The value as text; what is missing is empty.

    Raises:
        UsageError: it is something else, or longer than a node may be.
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        raise UsageError(f"the text of {where} is {_kind(value)}")
    if len(value) > LONGEST_TEXT:
        raise UsageError(f"{where} has {len(value)} characters; {LONGEST_TEXT} are allowed")
    return clean_text(value)


def short_text(value: Any) -> str:
    """A name or a title: text, or nothing where it is none."""
    return clean_text(value)[:_LONGEST_NAME] if isinstance(value, str) else ""


def number(value: Any) -> float | None:
    """A finite number; thumbs up and down are 1 and -1."""
    if isinstance(value, bool):
        return 1.0 if value else -1.0
    # Whole numbers have no end in JSON: one may be larger than any float.
    if isinstance(value, int | float) and abs(value) <= _LARGEST:
        return float(value)
    return None


def whole(value: Any) -> int | None:
    """A whole number that is not below zero."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53
    return value if is_count else None


def rating(value: Any) -> float | None:
    """A rating, or the nearest that there is; None for anything else."""
    found = number(value)
    return None if found is None else min(max(found, -RATINGS), RATINGS)


def amount(value: Any) -> float | None:
    """A cost or a temperature: a finite number that is not below zero."""
    found = None if isinstance(value, bool) else number(value)
    return None if found is None or found < 0 else found


def seconds(value: Any) -> float | None:
    """A time, as seconds or milliseconds since 1970 or as ISO 8601; None for anything else.

    A time that cannot be read is left out: a wrong one would sort nodes wrongly.
    """
    if isinstance(value, str):
        try:
            found = datetime.fromisoformat(value)
            aware = found if found.tzinfo else found.replace(tzinfo=UTC)
            # Before the year 1 of the era in UTC there is nothing that a number could stand for.
            value = aware.timestamp()
        except (ValueError, OverflowError):
            return None
    found_number = None if isinstance(value, bool) else number(value)
    if found_number is None or found_number < 0:
        return None
    if found_number >= _MILLISECONDS:
        found_number /= 1_000
    return found_number if found_number <= _LATEST else None


def iso_time(at: float | None) -> str | None:
    """Seconds as ISO 8601 in UTC, with microseconds and Z; None where no calendar has the time."""
    if at is None:
        return None
    try:
        return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%S.%f}Z"
    except (ValueError, OverflowError, OSError):
        return None


def plain_metadata(value: Any) -> Json:
    """Metadata of others: an object, or nothing."""
    if not isinstance(value, dict):
        return {}
    # Through JSON once more, which is what it will be stored as.
    return {clean_text(str(key)): _cleaned(inner) for key, inner in value.items()}


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {clean_text(str(key)): _cleaned(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_cleaned(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, int) and not -_WHOLE <= value < _WHOLE:
        return number(value)
    return value


def shown(value: Any) -> str:
    """A value of a file as a sentence names it."""
    said = repr(value)
    return said if len(said) <= _LONGEST_SHOWN else f"{said[:_LONGEST_SHOWN]}…"


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false"}
    if value is None:
        return "missing"
    return names.get(type(value), "a number")
