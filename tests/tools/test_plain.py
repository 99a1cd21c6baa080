"""Commands that every shell reads the same way are told from those that only bash reads
like bash.
"""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.tools.shell_syntax import is_plain


@pytest.mark.parametrize(
    "command",
    [
        "git status",
        "pytest -q tests/a.py::b",
        "make",
        "/usr/bin/env",
        "ls -la src",
        "true 3",
        "./run --x",
    ],
)
def test_a_program_and_words_are_plain(command: str) -> None:
    assert is_plain(command)


@pytest.mark.parametrize(
    "command",
    [
        "a | b",
        "a && b",
        "a; b",
        "a &",
        "a > b",
        "a < b",
        "X=1 a",
        "a $X",
        "a `b`",
        "a 'b'",
        'a "b"',
        "a *.py",
        "a b?",
        "a [ab]",
        "a {1,2}",
        "a ~",
        "a # b",
        "a \\n",
        "!a",
        "a\nb",
        "a\tb",
        "(a)",
        "-a",
        " a",
        "",
        "ä",
    ],
)
def test_what_a_shell_gives_a_meaning_is_not(command: str) -> None:
    assert not is_plain(command)


@pytest.mark.process
@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_nothing_that_bash_does_itself_is_plain() -> None:
    listed = subprocess.run(
        ["bash", "-c", "compgen -b; compgen -k"], capture_output=True, text=True, check=True
    )
    its_own = set(listed.stdout.split()) - {"true", "false"}
    assert len(its_own) > 60
    assert [name for name in its_own if is_plain(f"{name} a")] == []


@pytest.fixture(scope="module")
def shower(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A program that shows the words it was given."""
    program = tmp_path_factory.mktemp("bin") / "show"
    program.write_text("#!/bin/sh\nprintf '<%s>' \"$@\"\n")
    program.chmod(0o755)
    return str(program)


@pytest.mark.process
@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@settings(max_examples=25, deadline=None)
@given(st.text(st.sampled_from("aZ9_./:,@%+ -")))
def test_both_shells_hand_a_plain_command_the_same_words(shower: str, words: str) -> None:
    command = f"{shower} {words}"
    assert is_plain(command)
    shown = [subprocess.check_output([shell, "-c", command]) for shell in ("bash", "sh")]
    expected = "".join(f"<{word}>" for word in words.split(" ") if word) or "<>"
    assert shown == [expected.encode()] * 2
