"""A test that starts a process is marked, or it fails; so `-m "not process"` starts none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.source_code import ROOT

pytestmark = pytest.mark.process

SUITE = """
import os, subprocess
import pytest

def run():
    try:
        subprocess.run(["true"])
    except Exception:
        pass

@pytest.fixture(scope="module")
def shared():
    run()

@pytest.fixture
def weft():
    run()

def test_calm(): pass
def test_forgotten(): run()
def test_shared(shared): pass
def test_forked():
    if pid := os.fork():
        os.waitpid(pid, 0)
    else:
        os._exit(0)
def test_program(weft): pass
@pytest.mark.process
def test_marked(): run()
"""


def outcome(folder: Path, *arguments: str) -> dict[str, set[str]]:
    """What became of the tests of a suite that is under our conftest: names by outcome."""
    suite = folder / "test_suite.py"
    suite.write_text(SUITE)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "tests.conftest", "-c", "pyproject.toml"),
            *("-v", "-W", "ignore::DeprecationWarning", str(suite), *arguments),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    found: dict[str, set[str]] = {}
    for line in done.stdout.splitlines():
        place, _, rest = line.partition(" ")
        if "::" in place and rest.split():
            found.setdefault(rest.split()[0], set()).add(place.rpartition("::")[2])
    return found


def test_an_unmarked_test_that_starts_a_process_fails(tmp_path: Path) -> None:
    assert outcome(tmp_path)["ERROR"] == {"test_forgotten", "test_shared", "test_forked"}


def test_without_processes_no_marked_test_runs_nor_one_that_runs_the_program(
    tmp_path: Path,
) -> None:
    ran = outcome(tmp_path, "-m", "not process", "-k", "calm or program or marked")
    assert ran == {"PASSED": {"test_calm"}}
