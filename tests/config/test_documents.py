"""TOML and JSON that may come from anywhere: tables of a bounded depth, or one sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.config.documents import DEEPEST, read_json, read_toml
from weft.errors import UsageError

QUARTER = 256 * 1024


@pytest.mark.parametrize(
    ("read", "data", "told"),
    [
        (read_toml, b"a=" + b"[" * 10_000, "nested deeper than 32 levels"),
        (read_toml, b"a=" + b"{a=" * 10_000, "nested deeper than 32 levels"),
        (read_toml, b"a" + b".a" * (QUARTER // 2) + b"=1", "nested deeper than 32 levels"),
        (read_toml, b"[a" + b' . "="' * (QUARTER // 6) + b"]", "nested deeper than 32 levels"),
        (read_toml, b"[a" + b".a" * 30 + b"]\nb.c.d=1", "nested deeper than 32 levels"),
        (read_toml, b"a = 1\nb = = 2", "not valid TOML: Invalid value (at line 2, column 5)"),
        (read_toml, b"a = 1\na = 2", "not valid TOML: Cannot overwrite a value"),
        (read_toml, b"a = 'b\0c'", "not valid TOML: Found invalid character '\\x00' (at line 1"),
        (read_toml, b"a = 1\nb = '\xe4'", "not UTF-8 text: line 2"),
        (read_toml, "a = 1".encode("utf-16"), "not UTF-8 text: line 1"),
        (read_toml, b"a=" + b"9" * 5_000, "not valid TOML: Exceeds the limit"),
        (read_json, b"[" * 100_000, "nested deeper than 32 levels"),
        (read_json, b'{"a":' * 100_000, "nested deeper than 32 levels"),
        (read_json, b'{"a":' * 33 + b"1" + b"}" * 33, "nested deeper than 32 levels"),
        (read_json, b'{"a": 1, "a": 2}', "not valid JSON: 'a' is there twice"),
        (read_json, b'{"b": [{"a": 1, "a": 2}]}', "not valid JSON: 'a' is there twice"),
        (read_json, b'{\n"a" 1}', "not valid JSON: Expecting ':' delimiter: line 2"),
        (read_json, b"[1]", "is not a JSON object"),
        (read_json, b"null", "is not a JSON object"),
        (read_json, b"", "not valid JSON"),
        (read_json, b'{"a": "\xff"}', "not UTF-8 text: line 1"),
        (read_json, b'{"a":' + b"9" * 5_000 + b"}", "not valid JSON: Exceeds the limit"),
    ],
)
def test_what_is_not_taken_is_one_sentence(
    read: Callable[[bytes, str], dict[str, Any]], data: bytes, told: str
) -> None:
    with pytest.raises(UsageError) as refused:
        read(data, "x.conf")
    sentence = str(refused.value)
    assert sentence.startswith("x.conf is ")
    assert told in sentence
    assert sentence.isprintable()
    assert len(sentence) < 250


@pytest.mark.parametrize(
    ("read", "data"),
    [
        (read_toml, b"\xef\xbb\xbfa = 1\r\n\r\n[b]\r\nc = 'd'\r\n"),
        (read_json, b'\xef\xbb\xbf{"a": 1,\r\n"b": {"c": "d"}}'),
    ],
)
def test_a_mark_and_other_line_ends_are_no_fault(
    read: Callable[[bytes, str], dict[str, Any]], data: bytes
) -> None:
    assert read(data, "x.conf") == {"a": 1, "b": {"c": "d"}}


def test_as_deep_as_the_limit_is_fine() -> None:
    deepest = b'{"a":' * DEEPEST + b"1" + b"}" * DEEPEST
    assert read_json(deepest, "x.conf")
    assert read_toml(b"a" + b".a" * (DEEPEST - 1) + b" = 1", "x.conf")
    assert read_toml(b"a = 'b.c.d" + b".e" * 20 + b"'", "x.conf"), "dots in a text are no names"


def outcome(read: Callable[[bytes, str], dict[str, Any]], data: bytes) -> dict[str, Any] | str:
    """The tables, or what is said about them."""
    try:
        return read(data, "x.conf")
    except UsageError as error:
        return str(error)


@given(data=st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
@pytest.mark.parametrize("read", [read_toml, read_json])
def test_whatever_stands_there_is_a_table_or_one_sentence(
    read: Callable[[bytes, str], dict[str, Any]], data: bytes
) -> None:
    found = outcome(read, data)
    assert isinstance(found, dict) or found.startswith("x.conf is ")
