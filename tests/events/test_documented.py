"""What can be stored or published is documented: every kind, every field, its default and its
choices.
"""

from __future__ import annotations

import json
import re
import types
import typing
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import msgspec
import pytest

from tests.support.source_code import ROOT
from weft.decisions import DECISION_FACTS
from weft.events import FACTS, SIGNALS, FactBase, SignalBase, upcast
from weft.view import AnyBlock, LiveArea

FORMATS = ROOT / "docs" / "formats"


class Row(NamedTuple):
    """One field as the documentation has it."""

    name: str
    type: str
    default: str
    meaning: str


@cache
def sections(file: str) -> dict[str, list[Row]]:
    """Heading → the rows of the table beneath it; headings lose their marks."""
    found: dict[str, list[Row]] = {}
    rows: list[Row] = []
    for line in (FORMATS / file).read_text(encoding="utf-8").splitlines():
        if heading := re.fullmatch(r"#+ `?([^`]+)`?", line):
            rows = found[heading[1]] = []
        elif line.startswith("| `"):
            name, kind, default, meaning = (cell.strip() for cell in line.strip("|").split(" | "))
            rows.append(Row(name.strip("`"), kind, default.strip("`"), meaning))
    return found


def declared(cls: type[msgspec.Struct], base: type[msgspec.Struct] | None) -> list[tuple[str, str]]:
    """Name and default of the fields that a struct adds to its base, as the documentation writes
    them.
    """
    shared = base.__struct_fields__ if base else ()
    return [
        (field.encode_name, _default(field))
        for field in msgspec.structs.fields(cls)
        if field.name not in shared
    ]


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "required"
    empty = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
    return json.dumps(empty)


def choices(hint: Any) -> Iterator[str]:
    """The words that a closed set of a type allows."""
    if typing.get_origin(hint) is typing.Literal:
        yield from typing.get_args(hint)
    elif typing.get_origin(hint) in (typing.Union, types.UnionType, tuple):
        for inner in typing.get_args(hint):
            yield from choices(inner)


def nested(hint: Any, known: dict[str, type[msgspec.Struct]]) -> dict[str, type[msgspec.Struct]]:
    """All structs inside a type, by name."""
    is_struct = isinstance(hint, type) and issubclass(hint, msgspec.Struct)
    if is_struct and hint.__name__ not in known:
        known[hint.__name__] = hint
        for inner in typing.get_type_hints(hint).values():
            nested(inner, known)
    for inner in typing.get_args(hint):
        nested(inner, known)
    return known


# A tuple type made at run time.
IN_FACTS = nested(tuple[tuple(FACTS.values())], {})  # type: ignore[misc]
VALUES = {name: cls for name, cls in IN_FACTS.items() if cls not in FACTS.values()}
IN_DECISIONS = nested(tuple[tuple(DECISION_FACTS.values())], {})  # type: ignore[misc]  # as above
DECISION_VALUES = {
    name: cls
    for name, cls in IN_DECISIONS.items()
    if cls not in DECISION_FACTS.values() and name not in VALUES
}
BLOCKS = {cls.__struct_config__.tag: cls for cls in typing.get_args(AnyBlock)}
# A block is documented under its tag, wherever it stands: in the live area too.
LIVE = {
    name: cls
    for name, cls in nested(LiveArea, nested(AnyBlock, {})).items()
    if cls not in FACTS.values() and cls not in BLOCKS.values() and name not in VALUES
}
KINDS = [
    *(pytest.param("facts.md", kind, cls, FactBase, id=kind) for kind, cls in FACTS.items()),
    *(pytest.param("facts.md", name, cls, None, id=name) for name, cls in VALUES.items()),
    *(
        pytest.param("decisions.md", kind, cls, FactBase, id=kind)
        for kind, cls in DECISION_FACTS.items()
    ),
    *(
        pytest.param("decisions.md", name, cls, None, id=name)
        for name, cls in DECISION_VALUES.items()
    ),
    *(pytest.param("signals.md", kind, cls, SignalBase, id=kind) for kind, cls in SIGNALS.items()),
    *(pytest.param("view.md", tag, cls, None, id=f"{tag} block") for tag, cls in BLOCKS.items()),
    *(pytest.param("view.md", name, cls, None, id=name) for name, cls in LIVE.items()),
]


@pytest.mark.parametrize(("file", "heading", "cls", "base"), KINDS)
def test_each_kind_and_value_is_documented_field_by_field(
    file: str, heading: str, cls: type[msgspec.Struct], base: type[msgspec.Struct] | None
) -> None:
    rows = sections(file).get(heading)
    assert rows is not None, f"{heading} has no section in {file}"
    assert [(row.name, row.default) for row in rows] == declared(cls, base)
    assert all(row.type and row.meaning for row in rows)


@pytest.mark.parametrize(("file", "heading", "cls", "base"), KINDS)
def test_each_word_that_a_field_allows_is_documented(
    file: str, heading: str, cls: type[msgspec.Struct], base: type[msgspec.Struct] | None
) -> None:
    rows = {row.name: row for row in sections(file)[heading]}
    for name, hint in typing.get_type_hints(cls).items():
        allowed = list(choices(hint))
        words = ", ".join(f"`{word}`" for word in allowed if word)
        if words and name in rows:
            # Markdown cannot write an empty word as code.
            assert rows[name].type == words + (" or empty" if "" in allowed else "")


@pytest.mark.parametrize(
    ("file", "heading", "base"),
    [("facts.md", "Every fact", FactBase), ("signals.md", "Every signal", SignalBase)],
)
def test_what_all_share_is_documented(file: str, heading: str, base: type[msgspec.Struct]) -> None:
    rows = sections(file)[heading]
    assert [(row.name, row.default) for row in rows] == declared(base, None)


@pytest.mark.parametrize(
    ("file", "known"),
    [
        ("facts.md", {*FACTS, *VALUES}),
        ("decisions.md", {*DECISION_FACTS, *DECISION_VALUES}),
        ("signals.md", {*SIGNALS}),
        ("view.md", {*BLOCKS, *LIVE}),
    ],
)
def test_nothing_is_documented_that_does_not_exist(file: str, known: set[str]) -> None:
    tables = {heading for heading, rows in sections(file).items() if rows}
    assert tables - known <= {"Every fact", "Every signal"}


def test_each_old_version_says_how_it_loads() -> None:
    text = (FORMATS / "facts.md").read_text(encoding="utf-8")
    assert all(f"`{kind}`" in text for kind in upcast.UPCASTERS)
    assert ("there is no upcaster yet" in text) == (not upcast.UPCASTERS)
