"""That the proof by properties runs them, tries more than the suite, and can fail."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.source_code import ROOT

pytestmark = pytest.mark.process

TRIED = """
import pytest
from hypothesis import given, strategies as st
from tests.support.example_count import examples
seen = set()

@given(st.integers(0, 10**9))
def test_property(number: int) -> None:
    seen.add(number)
    assert {holds}

def test_other() -> None:
    assert False, "it is no property"

@pytest.mark.hypothesis
def test_machine() -> None:
    assert examples(5) == 10
    assert len(seen) > 150
"""


def proved(folder: Path, holds: str) -> tuple[int, dict[str, object]]:
    """The exit code and the line of the proof, with twice the suite's examples."""
    (folder / "test_tried.py").write_text(TRIED.replace("{holds}", holds))
    command = [sys.executable, "-m", "tests.crash.properties", "--times", "2", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    line = json.loads(done.stdout)
    return done.returncode, {name: line[name] for name in ("claim", "n", "violations")}


def test_every_property_is_tried_more_often_and_a_broken_one_is_counted(tmp_path: Path) -> None:
    held = {"claim": "properties", "n": 2, "violations": 0}
    assert proved(tmp_path, "number >= 0") == (0, held)
    code, line = proved(tmp_path, "number < 10**8")
    assert code == 1
    assert line["violations"] != 0
