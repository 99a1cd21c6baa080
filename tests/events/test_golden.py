"""Old data opens for ever: stored lines of each version are read, and mean what they meant."""

from __future__ import annotations

import re
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.example_count import cases
from tests.support.source_code import SRC
from weft.events import FACTS, FactBase, UnknownFact, decode, encode, kind_of

GOLDEN = Path(__file__).parent.parent / "golden" / "facts"
NEWEST = "v1.jsonl"

WITHDRAWN = {"fan_started", "fan_kept"}
"""Kinds that no program ever wrote; they are read like those of a newer one."""
UNWRITTEN = b'"decision":"dec_9"'
"""In the one line of a shape that no program ever wrote: it opens, and is not what we store."""

LINES = [
    pytest.param(line, id=f"{file.stem}:{number}")
    for file in sorted(GOLDEN.glob("*.jsonl"))
    for number, line in enumerate(file.read_bytes().splitlines(), start=1)
]


def newest_lines() -> list[bytes]:
    """The lines that this version itself would write."""
    stored = (GOLDEN / NEWEST).read_bytes().splitlines()
    return [line for line in stored if UNWRITTEN not in line]


@pytest.mark.parametrize("line", cases(LINES))
def test_every_line_that_was_ever_stored_is_a_fact_of_today(line: bytes) -> None:
    fact = decode(line)
    if isinstance(fact, UnknownFact):
        assert fact.kind in WITHDRAWN
        assert (fact.session_id, fact.raw) == ("ses_a", line)
    else:
        assert kind_of(fact) in FACTS


@pytest.mark.parametrize("line", cases(newest_lines()))
def test_what_this_version_stores_comes_back_as_the_same_bytes(line: bytes) -> None:
    assert encode(decode(line)) == line


def test_every_kind_has_a_golden_line() -> None:
    stored = {kind_of(decode(line)) for line in newest_lines()}
    assert stored == set(FACTS) | WITHDRAWN


def test_every_kind_is_written_somewhere() -> None:
    """What is stored is for ever: a kind is shaped by the part that writes it, not before."""
    source = "".join(file.read_text() for file in SRC.rglob("*.py"))
    # One pass for all kinds: a search for each would read five megabytes a hundred times.
    written = set(re.findall(r"(?<!case )(?<!\| )\b([A-Z]\w+)\((?!FactBase)", source))
    assert {cls.__name__ for cls in FACTS.values()} - written == set()


def test_every_field_of_every_kind_was_stored_once() -> None:
    """A renamed or retyped field would be read as its default from then on.

    Here it would be missing.
    """
    seen = {place for line in newest_lines() for place in _filled(decode(line))}
    wanted = {place for cls in FACTS.values() for place in _fields(cls, set())}
    assert wanted - seen == set()


def _fields(cls: Any, known: set[Any]) -> Iterator[tuple[str, str]]:
    """Struct and field, for a struct and all structs inside it."""
    if cls in known:
        return
    if isinstance(cls, type) and issubclass(cls, msgspec.Struct):
        known.add(cls)
        for name, hint in typing.get_type_hints(cls).items():
            yield _owner(cls, name), name
            yield from _fields(hint, known)
    for inner in typing.get_args(cls):
        yield from _fields(inner, known)


def _filled(value: Any) -> Iterator[tuple[str, str]]:
    """Struct and field, wherever the value differs from the default."""
    if isinstance(value, msgspec.Struct):
        for field in msgspec.structs.fields(value):
            inner = getattr(value, field.name)
            empty = {} if field.default_factory is not msgspec.NODEFAULT else field.default
            if inner != empty:
                yield _owner(type(value), field.name), field.name
                yield from _filled(inner)
    elif isinstance(value, tuple):
        for each in value:
            yield from _filled(each)


def _owner(cls: type, field: str) -> str:
    """Who declares a field: what all facts share is asked for once."""
    return (
        "FactBase"
        if field in FactBase.__struct_fields__ and issubclass(cls, FactBase)
        else cls.__name__
    )
