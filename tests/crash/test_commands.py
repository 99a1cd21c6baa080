"""Random command lines in every run of the suite, and that the proof can fail."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.crash import commands
from tests.support.example_count import examples
from weft.permissions import Mode, PermissionRule

needs_sandbox = pytest.mark.skipif(shutil.which("bwrap") is None, reason="it runs in bubblewrap")


def test_random_lines_are_judged_and_never_loosened() -> None:
    fuzz = commands.Fuzz(5)
    fuzz.run(examples(2_000))
    assert fuzz.wrong == []


@pytest.mark.process
@needs_sandbox
def test_what_is_judged_to_only_read_changes_nothing(tmp_path: Path) -> None:
    lines = commands.read_only_lines(examples(300), 6)
    assert commands.effects_of(lines, tmp_path) == []


@pytest.mark.process
@needs_sandbox
@pytest.mark.parametrize(
    "line", ["touch x", "chmod 600 a.txt", "echo x > ~/y", "cp a.txt /tmp/z", "git branch x"]
)
def test_the_canary_sees_an_effect(tmp_path: Path, line: str) -> None:
    assert commands.effects_of(["ls", line, "cat a.txt"], tmp_path) == [line]


def test_the_fuzz_sees_a_decision_that_is_loosened_and_an_exception() -> None:
    def by_first(line: str, mode: Mode, rules: tuple[PermissionRule, ...]) -> str:
        return rules[-1].verdict if rules else "deny"

    def by_prefix(line: str, mode: Mode, rules: tuple[PermissionRule, ...]) -> str:
        return "allow" if line.startswith("git") else "ask"

    def failing(line: str, mode: Mode, rules: tuple[PermissionRule, ...]) -> str:
        raise RecursionError

    for wrong in (by_first, by_prefix, failing):
        fuzz = commands.Fuzz(5, wrong)
        fuzz.run(600)
        assert fuzz.wrong
