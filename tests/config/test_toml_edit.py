"""One setting of a TOML document is changed; comments, order and every other byte stay."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.config.toml_edit import toml_text, with_value, without_value
from weft.errors import UsageError

FULL = """\
# My settings.
theme = "dark"  # the room is dark

notify = true

# Which model answers.
[model]
default = 'anthropic:claude-sonnet-5-5'  # the usual one
rotation = [
  "a:b",  # first
  "c:d",
]

[permissions]
allow = ["shell(git diff)"]
# the end
"""


def changed(text: str, name: str, value: Any) -> str:
    return with_value(text, name, value, source="config.toml")


def lines_that_differ(before: str, after: str) -> tuple[list[str], list[str]]:
    old, new = before.splitlines(), after.splitlines()
    return [line for line in old if line not in new], [line for line in new if line not in old]


@pytest.mark.parametrize(
    ("name", "value", "gone", "come"),
    [
        (
            "theme",
            "light",
            ['theme = "dark"  # the room is dark'],
            ['theme = "light"  # the room is dark'],
        ),
        (
            "model.default",
            "openai:gpt-5.5",
            ["default = 'anthropic:claude-sonnet-5-5'  # the usual one"],
            ['default = "openai:gpt-5.5"  # the usual one'],
        ),
        (
            "model.rotation",
            ["x:y"],
            ["rotation = [", '  "a:b",  # first', '  "c:d",', "]"],
            ['rotation = ["x:y"]'],
        ),
        ("model.effort", "high", [], ['effort = "high"']),
        ("animation", False, [], ["animation = false"]),
        ("session.max_turns", 7, [], ["[session]", "max_turns = 7"]),
    ],
)
def test_only_the_lines_of_the_setting_change(
    name: str, value: Any, gone: list[str], come: list[str]
) -> None:
    after = changed(FULL, name, value)
    assert lines_that_differ(FULL, after) == (gone, come)
    table: Any = tomllib.loads(after)
    for part in name.split("."):
        table = table[part]
    assert table == value


@pytest.mark.parametrize(
    ("text", "name", "value", "after"),
    [
        ("", "theme", "dark", 'theme = "dark"\n'),
        ("", "model.default", "a:b", 'model.default = "a:b"\n'),
        ("theme = 'dark'", "notify", True, "theme = 'dark'\nnotify = true\n"),
        ("model.style = 'x'\nkeys = 'vi'\n", "model.effort", "low",
         "model.style = 'x'\nmodel.effort = \"low\"\nkeys = 'vi'\n"),
        ("[a]\nb = 1\n", "theme", "dark", 'theme = "dark"\n\n[a]\nb = 1\n'),
        ("# head\n\n# of a\n[a]\nb = 1\n", "theme", "x",
         '# head\n\ntheme = "x"\n\n# of a\n[a]\nb = 1\n'),
        ("a = 1\r\n[b]\r\nc = 2\r\n", "b.d", 3, "a = 1\r\n[b]\r\nc = 2\r\nd = 3\r\n"),
        ('"model"."default" = "x"\n', "model.default", "y", '"model"."default" = "y"\n'),
        ("\ufefftheme = 'a'\n", "theme", "b", "\ufefftheme = \"b\"\n"),
        ('a = """\ntheme = 1\n[b]\n"""\n', "theme", "x",
         'a = """\ntheme = 1\n[b]\n"""\ntheme = "x"\n'),
        ("[[hooks.Stop]]\ncommand = 'x'\n", "model.default", "a:b",
         "[[hooks.Stop]]\ncommand = 'x'\n\n[model]\ndefault = \"a:b\"\n"),
        ("[model.x]\na = 1\n", "model.default", "b",
         '[model.x]\na = 1\n\n[model]\ndefault = "b"\n'),
    ],
)  # fmt: skip
def test_a_setting_goes_where_a_user_would_write_it(
    text: str, name: str, value: Any, after: str
) -> None:
    assert changed(text, name, value) == after


@pytest.mark.parametrize("text", ["model = { default = 'a' }\n", "model = 3\n"])
def test_a_form_that_is_not_edited_is_refused_and_named(text: str) -> None:
    with pytest.raises(UsageError, match=r"model\.default stands in config\.toml"):
        changed(text, "model.default", "b")


def test_what_is_taken_out_is_gone_with_its_line_and_nothing_else() -> None:
    after = without_value(FULL, "model.rotation", source="config.toml")
    assert after is not None
    gone, come = lines_that_differ(FULL, after)
    assert gone == ["rotation = [", '  "a:b",  # first', '  "c:d",', "]"]
    assert come == []
    assert without_value(FULL, "keys", source="config.toml") is None


def test_a_file_that_is_no_toml_is_not_touched() -> None:
    with pytest.raises(UsageError, match=r"config\.toml is not valid TOML"):
        changed("theme = \n", "theme", "dark")


_VALUES = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=20),
    st.booleans(),
    st.integers(-(2**40), 2**40),
    st.lists(st.text(st.characters(codec="utf-8"), max_size=8), max_size=3),
)
_LINES = st.sampled_from(
    [
        "# words = 1",
        "",
        "one = 'a # b'",
        'two = "x\\"]"  # why',
        "three = [1, [2], '''\n]'''] # c",
        "four = { a = 1, b = '}' }",
        "five.six = 7",
        "[table]",
        "[table.inner]  # d",
        "[[many]]",
    ]
)


@given(lines=st.lists(_LINES, max_size=8), value=_VALUES, dotted=st.booleans())
def test_any_document_says_the_same_but_for_the_setting(
    lines: list[str], value: Any, dotted: bool
) -> None:
    text = "".join(f"{line}\n" for line in lines)
    try:
        before = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    name = "table.set" if dotted else "set"
    after = changed(text, name, value)
    assert tomllib.loads(toml_text_of(value))["x"] == value
    expected = before
    if dotted:
        expected.setdefault("table", {})["set"] = value
    else:
        expected["set"] = value
    assert tomllib.loads(after) == expected
    for line in lines:
        assert line in after


def toml_text_of(value: Any) -> str:
    return f"x = {toml_text(value)}\n"
