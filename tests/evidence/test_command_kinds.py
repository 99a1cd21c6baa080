"""Which commands are checks whose exit code is their own."""

from __future__ import annotations

import pytest

from weft.evidence.command_kinds import checks_in


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("pytest -q", [("test", ())]),
        ("python -m pytest -x -q 2>&1", [("test", ())]),
        ("cd /project && uv run pytest -n auto", [("test", ())]),
        ("cd web && npm test", [("test", ("web",))]),
        ("npm run test:unit", [("test", ("test:unit",))]),
        ("pytest tests/a.py", [("test", ("tests/a.py",))]),
        ("pytest -k foo", [("test", ("-k", "foo"))]),
        ("make -C web test", [("test", ("web",))]),
        ("ruff check . && mypy src && pytest", [("lint", ()), ("types", ()), ("test", ())]),
        ("ruff format --check .", [("format", ())]),
        ("cmake --build build", [("build", ())]),
        ("cargo +nightly test --workspace", [("test", ())]),
    ],
)
def test_a_check_is_known_with_what_may_narrow_it(
    command: str, found: list[tuple[str, tuple[str, ...]]]
) -> None:
    assert [(each.kind, each.narrow) for each in checks_in(command, "/project")] == found


@pytest.mark.parametrize(
    "command",
    [
        *("pytest | tail", "pytest; true", "pytest || true", "! pytest", "(pytest)", "pytest &"),
        *("pytest $X", "pytest `cat x`", "pytest > out", "pytest tests/*.py"),
        *("git commit -m pytest", "echo pytest", "pip install pytest", "pytest 'tests", ""),
        "pytest\ntrue",
    ],
)
def test_a_command_whose_exit_code_may_be_anothers_is_no_check(command: str) -> None:
    assert checks_in(command) == ()
