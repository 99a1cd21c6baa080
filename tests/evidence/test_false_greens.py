"""Ways in which a command ends with 0 though what it names was not run, or not all of it.

A receipt that is green for one of them would be worse than none.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.evidence_calls import call, receipts, shell

TESTS, TYPES, LINT = "All tests pass.", "Type checking is clean.", "The linter is clean."
MASKED = (
    *("pytest || true", "pytest | tail -3", "pytest | cat", "! pytest", "pytest; true"),
    *(
        "pytest & true",
        "pytest |& cat",
        "(pytest); true",
        "if pytest; then :; fi",
        "{ pytest; true; }",
    ),
    *(
        "pytest\ntrue",
        "set +e\npytest\ntrue",
        "pytest || :",
        "pytest || echo failed",
        "echo 5 passed",
    ),
    *("true # && pytest", "echo done # all of it && pytest", ": #&& pytest && mypy ."),
    *('echo done "&&" pytest', "echo done '&&' pytest", "echo '&''&' pytest"),
    *("exit 0 && pytest", "exit && pytest", "builtin exit 0 && pytest", "command exit && pytest"),
    *("eval exit && pytest", "exec true && pytest", "exec echo && pytest", "set -n && pytest"),
    *("trap 'exit 0' EXIT && pytest", "trap 'exit 0' 0 && pytest -q"),
    *("hash -p /bin/true pytest && pytest", "enable -n exit && exec true && pytest"),
    *("export PATH=fake && pytest", "PATH=fake && pytest", "declare PATH=fake && pytest"),
    *(
        "PATH=fake pytest",
        "env PATH=fake pytest",
        "source env.sh && pytest",
        ". ./env.sh && pytest",
    ),
    *("cd passes && pytest", "cd passes && cd . && pytest", "pushd passes && pytest"),
    *(
        "cd passes && cd ./ && pytest -q",
        "cd && pytest",
        "cd -- && pytest",
        "cd -P passes && pytest",
    ),
)
"""Lines that bash ends with 0 where `pytest` fails."""


def colors(answer: str, command: str, output: str = "") -> list[str]:
    found = receipts(answer, shell(command, output=output))
    assert found
    return [each.color for each in found]


@pytest.mark.parametrize("command", MASKED)
def test_a_masked_failure_is_not_green(command: str) -> None:
    assert "green" not in colors(TESTS, command)


@pytest.mark.process
@pytest.mark.parametrize("command", MASKED)
def test_bash_masks_the_failure(tmp_path: Path, command: str) -> None:
    for folder, code in ((".", 1), ("fake", 0), ("passes", 0), ("home", 0)):
        (tmp_path / folder).mkdir(exist_ok=True)
        program = tmp_path / folder / "pytest"
        program.write_text(f"#!/bin/bash\n[ -e passed ] || exit {code}\n")
        program.chmod(0o755)
    for folder in ("passes", "home"):
        (tmp_path / folder / "passed").touch()
    (tmp_path / "env.sh").write_text("PATH=fake\n")
    environ = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path / "home")}
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, env=environ, capture_output=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("answer", "command"),
    [
        (TESTS, "export PYTEST_ADDOPTS=--co && pytest"),
        (TESTS, "unset CI && export PYTEST_ADDOPTS=-k && pytest"),
        (TESTS, "pytest --co -q"),
        (TESTS, "pytest -m smoke"),
        (TESTS, "pytest --deselect tests/a.py"),
        (TESTS, "pytest --ignore=tests"),
        (TESTS, "pytest --version"),
        (TESTS, "go test"),
        (TESTS, "go test ."),
        (TESTS, "go test -v"),
        ("The build succeeds.", "go build"),
        ("The build succeeds.", "go build ."),
        (LINT, "go vet"),
        (TESTS, "cargo test --no-run"),
        (TESTS, "npm --prefix tests test"),
        (TESTS, "yarn --cwd tests test"),
        (TYPES, "mypy tests"),
        (LINT, "ruff check tests"),
        (LINT, "ruff check --exit-zero ."),
        (LINT, "pre-commit run"),
        ("The formatting is clean.", "prettier ."),
        ("The formatting is clean.", "gofmt ."),
        ("The formatting is clean.", "gofmt -l ."),
        (TYPES, "exec pytest && mypy ."),
    ],
)
def test_a_part_is_not_the_whole(answer: str, command: str) -> None:
    assert "green" not in colors(answer, command)


@pytest.mark.parametrize(
    "output",
    [
        "5 skipped in 0.01s",
        "Tests:       5 skipped, 5 total",
        "5 tests collected in 0.01s",
        "collected 5 items\n\n<Module a.py>",
        "no tests ran in 0.00s",
        "3 passed, 2 deselected",
        "2 xfailed in 0.02s",
    ],
)
def test_a_run_of_nothing_is_not_green(output: str) -> None:
    assert colors(TESTS, "pytest", output) == ["amber"]


@pytest.mark.parametrize(
    ("answer", "command"),
    [
        ("All tests pass, including the new `test_new`.", "pytest -k test_new"),
        ("All tests pass, including the new `test_new`.", "pytest tests/test_x.py::test_new"),
        ("All tests pass (also `tests/test_x.py`).", "pytest tests/test_x.py"),
        ("The whole test suite passes with `test_new`.", "pytest -k test_new"),
        ("Every test passes, among them `test_new`.", "pytest -k test_new"),
    ],
)
def test_a_test_that_is_named_along_is_not_all_of_them(answer: str, command: str) -> None:
    assert "green" not in colors(answer, command)


@pytest.mark.parametrize(
    ("answer", "command"),
    [
        ("All tests in `tests/test_x.py` pass.", "pytest tests/test_x.py"),
        ("`pytest tests/test_x.py` passes.", "pytest tests/test_x.py"),
        ("All tests pass.", "source .venv/bin/activate && pytest"),
        ("All tests pass.", ". venv/bin/activate && python -m pytest -q"),
        ("All tests pass.", "echo testing && cd . && pytest"),
        ("All tests pass.", "go test ./..."),
        ("The linter is clean.", "pre-commit run --all-files"),
        ("The linter is clean.", "pre-commit run -a"),
        ("Type checking is clean.", "mypy src"),
        ("The formatting is clean.", "prettier --check ."),
        ("The formatting is clean.", "gofmt -w . && prettier --check ."),
    ],
)
def test_what_was_run_in_full_is_green(answer: str, command: str) -> None:
    assert colors(answer, command, "3 passed" if "test" in answer else "") == ["green"]


@pytest.mark.parametrize(
    "hit",
    [
        "src/app.ts:3:const config = parse_config();",
        "src/app.py:3:def main(): parse_config()",
        "src/app.ts:9:export const handler = parse_config;",
        "src/app.go:9:func main() { parse_config() }",
        "src/app.py:9:class Loader(parse_config): ...",
        "src/app.ts:9:const parse_config = wrapped(parse_config)",
    ],
)
def test_a_use_in_the_definition_of_another_name_is_a_use(hit: str) -> None:
    found = receipts(
        "Nothing else calls `parse_config`.",
        call("grep", {"pattern": "parse_config"}, hit),
        last_tree="tree-now",
    )
    assert [each.color for each in found] == ["amber"]


@pytest.mark.parametrize(
    "hit",
    [
        "src/config.py:3:def parse_config(path: str) -> Config:",
        "src/config.ts:3:export async function parse_config(path: string) {",
        "src/config.go:9:func (l *Loader) parse_config() error {",
        "src/config.rs:9:pub(crate) fn parse_config() {}",
    ],
)
def test_its_own_definition_is_no_use(hit: str) -> None:
    found = receipts(
        "Nothing else calls `parse_config`.",
        call("grep", {"pattern": "parse_config"}, hit),
        last_tree="tree-now",
    )
    assert [each.color for each in found] == ["green"]


@pytest.mark.parametrize(
    "command", ["ruff check .", "mypy .", "cargo build", "ruff format --check ."]
)
@pytest.mark.parametrize("answer", ["All checks pass.", "Everything is green.", "CI passes."])
def test_all_checks_are_not_shown_by_one_that_runs_no_test(answer: str, command: str) -> None:
    assert "green" not in colors(answer, command)


def test_all_checks_are_shown_by_tests_and_a_linter() -> None:
    assert colors("All checks pass.", "ruff check . && pytest") == ["green"]
