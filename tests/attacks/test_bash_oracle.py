"""Bash itself as the judge: the words that we call literal are the words that it makes of them."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import pytest

from tests.support.attack_corpus import BENIGN, cases
from tests.support.bash_words import (
    bash_words,
    command_words,
    is_comparable,
    refused_by_bash,
)
from tests.support.example_count import examples
from tests.support.shell_lines import grammar_line, literal_line
from weft.permissions.shell import parse_line

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="bash is run in bubblewrap"),
]


def some_lines(count: int, seed: int) -> list[str]:
    random = Random(seed)
    written = [case.text for case in cases(BENIGN) if case.tool == "shell"]
    made = [(grammar_line if at % 2 else literal_line)(random) for at in range(count)]
    return [*written, *made]


def test_bash_makes_the_same_words_of_a_line(tmp_path: Path) -> None:
    lines = [line for line in some_lines(examples(500), 7) if is_comparable(parse_line(line))]
    assert len(lines) > 60
    for line, seen in zip(lines, bash_words(lines, tmp_path), strict=True):
        read = command_words(parse_line(line))
        if "||" in line or "&&" in line or "if " in line or "!" in line or "while" in line:
            assert set(seen) <= set(read), line  # some of them are not run
        elif line.startswith("for "):
            assert set(seen) == set(read), line  # they are run once for each word
        else:
            assert sorted(seen) == sorted(read), line


def test_what_bash_refuses_is_not_understood(tmp_path: Path) -> None:
    lines = [line for line in some_lines(examples(400), 8) if "\0" not in line]
    refused = refused_by_bash(lines, tmp_path)
    assert any(refused)
    taken = [
        line
        for line, is_refused in zip(lines, refused, strict=True)
        if is_refused and not parse_line(line).doubt
    ]
    assert taken == []
