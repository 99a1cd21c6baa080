"""Each claim beside the record, by its rules."""

from __future__ import annotations

import pytest

from tests.support.evidence_calls import call, receipts, shell

ALL = "All tests pass."
PASSED = shell("pytest", output="57 passed")
OLD = shell("pytest", output="57 passed", tree="older")


def test_a_whole_run_on_these_files_is_green_and_on_others_grey() -> None:
    [now] = receipts(ALL, PASSED)
    assert (now.color, now.exit_code, now.call) == ("green", 0, "call_1")
    assert [each.color for each in receipts(ALL, OLD)] == ["grey"]
    assert [each.color for each in receipts(ALL, PASSED, tree=None)] == ["grey"]
    assert [each.color for each in receipts(ALL, shell("pytest", tree=""))] == ["grey"]


def test_a_script_of_the_projects_own_is_not_said_to_be_no_run_at_all() -> None:
    [told] = receipts(ALL, shell("./ci.sh", output="57 passed"))
    assert (told.color, told.why) == ("amber", "no known test runner was run")


@pytest.mark.parametrize(
    ("answer", "calls"),
    [
        (ALL, []),
        (ALL, [shell("pytest", 1)]),
        (ALL, [PASSED, shell("pytest tests/a.py", 1)]),
        (ALL, [shell("pytest", 1), PASSED]),  # the same files: one of the two is chance
        (ALL, [shell("pytest tests/a.py")]),
        (ALL, [shell("pytest -k fast")]),
        (ALL, [shell("pytest --lf")]),
        (ALL, [shell("pytest --collect-only")]),
        (ALL, [shell("pytest || true")]),
        (ALL, [shell("pytest | tail -3")]),
        (ALL, [shell("pytest; echo done")]),
        (ALL, [shell("pytest", None)]),
        (ALL, [shell("pytest", cwd="web")]),
        (ALL, [shell("npm run build")]),
        (ALL, [shell("pytest", tree="older"), shell("npm test")]),
        ("All 58 tests pass.", [PASSED]),
        ("The new test passes.", [shell("pytest tests/a.py")]),
        ("`npm test` passes.", [PASSED]),
        ("The build succeeds.", [PASSED]),
        ("Formatting is clean.", [shell("black . && pytest"), shell("black --check .", 1)]),
        (ALL, [shell("pytest && black .")]),
        (ALL, [shell("PYTEST_ADDOPTS=-x pytest")]),
        (ALL, [shell("pytest", output="2 failed, 3 passed")]),
        (ALL, [shell("make -n test")]),
        ("All tests pass on Python 3.9 to 3.13.", [PASSED]),
        ("No other callers of `foo`.", [call("grep", {"pattern": "bar"}, "(no match)")]),
        ("No other callers of `foo`.", [call("grep", {"pattern": "foo"}, "b.py:3:foo()")]),
        (
            "No other callers of `foo`.",
            [call("grep", {"pattern": "foo", "path": "src"}, "(no match)")],
        ),
        (
            "No other callers of `foo`.",
            [call("grep", {"pattern": "foo", "glob": "*.py"}, "(no match)")],
        ),
        (
            "No other callers of `foo`.",
            [call("grep", {"pattern": "foo"}, "a.py:1:def foo():\n(more than 1 lines; …)")],
        ),
        ("No other callers of `foo`.", [shell("rg foo src", 1)]),
        ("No other callers of `foo`.", [shell("rg foo -g '*.py'", 1)]),
    ],
)
def test_what_may_not_be_green_is_not(answer: str, calls: list[tuple[str, object]]) -> None:
    found = receipts(answer, *calls, last_tree="tree-now")  # type: ignore[arg-type]
    assert found
    assert "green" not in [each.color for each in found]


@pytest.mark.parametrize(
    ("answer", "calls"),
    [
        ("All 57 tests pass.", [PASSED]),
        (ALL, [OLD, shell("pytest tests/a.py", 1, tree="older still"), PASSED]),
        ("`pytest tests/a.py` passes.", [shell("pytest tests/a.py")]),
        ("The new test in tests/a.py passes.", [shell("pytest tests/a.py")]),
        (
            "The new test passes.",
            [call("write", {"path": "tests/a.py", "content": "x"}), shell("pytest tests/a.py")],
        ),
        (ALL, [shell("npm test", tree="older"), shell("make test")]),
        ("Lint and types are clean.", [shell("ruff check . && mypy src")]),
        ("Everything passes.", [PASSED, shell("ruff check .")]),
        (
            "No other callers of `foo`.",
            [call("grep", {"pattern": r"\bfoo\b"}, "a.py:1:def foo():")],
        ),
        ("`foo` is not used anywhere else.", [shell("rg -n foo", 1)]),
    ],
)
def test_what_the_record_shows_is_green(answer: str, calls: list[tuple[str, object]]) -> None:
    found = receipts(answer, *calls, last_tree="tree-now")  # type: ignore[arg-type]
    assert [each.color for each in found] == ["green"] * len(found), found
    assert found


def test_what_no_command_can_show_has_no_color() -> None:
    assert [each.color for each in receipts("I verified that it works.", PASSED)] == ["none"]
