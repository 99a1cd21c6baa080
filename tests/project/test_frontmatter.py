"""Front matter: plain settings are read as they are meant; whatever else YAML can be is refused."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import UsageError
from weft.project.frontmatter import (
    DEEPEST,
    LONGEST_SETTINGS,
    MOST_VALUES,
    setting_text,
    split_front_matter,
)


def settings_of(yaml: str) -> dict[str, object]:
    return split_front_matter(f"---\n{yaml}\n---\nbody\n", "x.md")[0]


# --- what people write ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("a: text", "text"),
        ("a: 'true'", "true"),
        ("a: true", True),
        ("a: Yes", True),
        ("a: off", False),
        ("a: 12", 12),
        ("a: -3", -3),
        ("a: '12'", "12"),
        ("a:", None),
        ("a: ~", None),
        ("a: 1.10", "1.10"),
        ("a: 007", "007"),
        ("a: 2026-01-31", "2026-01-31"),
        ("a: 2001-99-99", "2001-99-99"),
        ("a: " + "9" * 5000, "9" * 5000),
        ("a: [x, y]", ["x", "y"]),
        ("a:\n- x\n- {b: 1}", ["x", {"b": 1}]),
        ("a: >\n  two\n  lines", "two lines"),
        ("a: |\n  two\n  lines", "two\nlines"),
        ('a: "say \\"x\\""', 'say "x"'),
        ("a: x # a comment", "x"),
    ],
)
def test_a_value_is_what_its_writer_means(written: str, meant: object) -> None:
    assert settings_of(written) == {"a": meant}


@pytest.mark.parametrize(
    "text",
    [
        "---\na: b\n---\nbody",
        "---\r\na: b\r\n---\r\nbody\r\n",
        "\ufeff---\na: b\n---\n\nbody\n",
        "---  \na: b\n---\t\nbody",
    ],
)
def test_the_fences_are_found_however_the_lines_end(text: str) -> None:
    assert split_front_matter(text, "x.md") == ({"a": "b"}, "body")


@pytest.mark.parametrize("text", ["", "body", "a: b\n---\n", "----\na: b\n----\n"])
def test_a_file_without_a_fence_has_no_settings(text: str) -> None:
    assert split_front_matter(text, "x.md") == ({}, text)


@pytest.mark.parametrize("yaml", ["", "# nothing", "\n\n"])
def test_settings_may_be_empty(yaml: str) -> None:
    assert settings_of(yaml) == {}


def test_a_caller_cannot_change_what_the_next_one_gets() -> None:
    settings_of("a: b")["a"] = "c"
    assert settings_of("a: b") == {"a": "b"}


# --- what is refused ------------------------------------------------------------------------

LAUGHS = "a0: &a0 [lol]\n" + "\n".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)
)
MERGED = "a0: &a0 {x: 1}\n" + "\n".join(
    f"a{n}: &a{n}\n  <<: [*a{n - 1}, *a{n - 1}]" for n in range(1, 60)
)


@pytest.mark.parametrize(
    ("yaml", "told"),
    [
        (LAUGHS + "\ndescription: *a29", "line 2 of the settings uses an anchor"),
        (MERGED, "line 2 of the settings uses an anchor"),
        ("a: &me [*me]", "uses an anchor"),
        ("b: 1\na: *nobody", "line 3 of the settings uses an anchor"),
        ("a: !!python/object/apply:os.system [id]", "uses a tag"),
        ("a: !!bool x", "uses a tag"),
        ("!!map {a: b}", "uses a tag"),
        ("a: " + "[" * 10_000, f"nested deeper than {DEEPEST} levels"),
        ("{a: " * 5_000, f"nested deeper than {DEEPEST} levels"),
        ("a: " + "[" * 17 + "]" * 17, f"nested deeper than {DEEPEST} levels"),
        ("- " * 10_000, f"nested deeper than {DEEPEST} levels"),
        ("? " * 10_000, "is a list or a table"),
        ("\n".join(" " * n + "a:" for n in range(200)), f"nested deeper than {DEEPEST} levels"),
        ("a: " + "x" * LONGEST_SETTINGS, "longer than 32 KB"),
        ("a: [" + "x, " * MOST_VALUES + "]", "more than 1,000 values"),
        ("\n".join(f"a{n}: x" for n in range(MOST_VALUES)), "more than 1,000 values"),
        ("a: 1\nb: 2\na: 3", "have 'a' twice, in line 4 again"),
        ("a: {b: 1, 'b': 2}", "have 'b' twice"),
        ("x" * 500 + ": 1\n" + "x" * 500 + ": 2", "twice"),
        ("[a, b]", "must be names with values"),
        ("just a text", "must be names with values"),
        ("? [a, b]\n: c", "a name in line 2 of the settings is a list or a table"),
        ("a: 1\n...\n--- !x\nb: 2", "more than one YAML document"),
        ("a: b\0c", "characters that YAML does not allow"),
        ("a: \x1b[31mred", "characters that YAML does not allow"),
        ("a: \ud800", "characters that YAML does not allow"),
        ("a:\n\t- b", "not right in line 3"),
        ("a: [", "not right in line"),
        ("a: Fix: never", "not right in line 2"),
        ("a: 'open", "not right in line"),
    ],
)
def test_what_is_no_plain_table_is_one_sentence(yaml: str, told: str) -> None:
    with pytest.raises(UsageError) as refused:
        settings_of(yaml)
    sentence = str(refused.value)
    assert sentence.startswith("x.md: ")
    assert told in sentence
    assert sentence.isprintable()
    assert len(sentence) < 200


def test_settings_without_an_end_are_refused() -> None:
    with pytest.raises(UsageError, match="the settings at the top have no end"):
        split_front_matter("---\na: b\n", "x.md")


@pytest.mark.parametrize("value", ["[a]", "{a: b}"])
def test_a_text_that_is_a_list_is_refused(value: str) -> None:
    with pytest.raises(UsageError, match=r"x.md: a must be a text, not a list or a table"):
        setting_text(settings_of(f"a: {value}"), "a", "x.md")


ODD = st.text(alphabet=string.printable + "&*!{}[]\u2028\ud800\0é", max_size=300)


def outcome(yaml: str) -> dict[str, object] | str:
    """The settings, or what is said about them."""
    try:
        return settings_of(yaml)
    except UsageError as error:
        return str(error)


@given(yaml=ODD)
def test_whatever_stands_there_is_settings_or_one_sentence(yaml: str) -> None:
    found = outcome(yaml)
    if isinstance(found, str):
        assert found.startswith("x.md: ")
        assert "\n" not in found
    else:
        assert all(isinstance(name, str) for name in found)
