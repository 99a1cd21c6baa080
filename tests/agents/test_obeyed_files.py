"""Which files decide what a check says of the rest."""

from __future__ import annotations

import pytest

from weft.agents.goals.obeyed_files import is_obeyed


@pytest.mark.parametrize(
    ("path", "check"),
    [
        ("check.sh", "sh check.sh"),
        ("check.sh", "./check.sh --all"),
        ("tests/test_a.py", "pytest tests/test_a.py::test_one"),
        ("tests/test_a.py", "cd . && pytest tests/"),
        ("Makefile", "make test"),
        ("conftest.py", "python -m pytest -q"),
    ],
)
def test_what_a_check_runs_is_obeyed(path: str, check: str) -> None:
    assert is_obeyed(path, check)


@pytest.mark.parametrize(
    ("path", "check"),
    [
        ("answer.txt", "grep -q right answer.txt"),
        ("answer.txt", "cat answer.txt | grep right"),
        ("src/a.py", "pytest tests"),
        ("Makefile", "cargo test"),
    ],
)
def test_what_a_check_looks_at_is_not(path: str, check: str) -> None:
    assert not is_obeyed(path, check)
