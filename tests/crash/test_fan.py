"""One killed fan-out in every run of the suite, and that the proof can fail."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.crash import fan

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]


def test_a_fan_out_killed_while_one_is_kept_leaves_the_project_whole_or_as_it_was() -> None:
    assert fan.attempt(1, 1) == ""


def test_the_proof_tells_whole_from_half_and_from_torn(tmp_path: Path) -> None:
    project = fan.make_project(tmp_path)
    assert fan.state_of(project) == "old"
    (project / "3.txt").write_text("new\n")
    assert fan.state_of(project) == "mixed"
    (project / "3.txt").write_text("ne")
    assert fan.state_of(project).startswith("torn")
    for number in range(fan.FILES):
        (project / f"{number}.txt").write_text("new\n")
        (project / "made").mkdir(exist_ok=True)
        (project / "made" / f"{number}.txt").write_text("made\n")
    shutil.rmtree(project / "gone")
    assert fan.state_of(project) == "new"
