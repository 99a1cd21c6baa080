"""A few of the hostile folders in every run of the suite, and that the proof can fail."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.crash import hostile
from tests.support.hostile_project import CANARY
from tests.support.weft_program import WeftProgram

pytestmark = pytest.mark.process


@pytest.mark.parametrize("number", range(4))
def test_a_run_in_a_hostile_folder_starts_nothing_ends_and_stays_inside(number: int) -> None:
    assert hostile.attempt(1, number) == ""


def test_the_proof_notices_a_file_that_was_read_a_program_that_ran_and_a_failure(
    tmp_path: Path,
) -> None:
    weft, ran = WeftProgram(tmp_path), tmp_path / "ran"
    assert hostile.judge(weft, ran) == ""
    hostile.git_programs(weft.project, ran)
    (weft.project / "a").write_text("a")
    subprocess.run(["git", "-C", str(weft.project), "add", "a"], check=False)
    assert ran.exists(), "the trap works on a program that falls for it"
    assert hostile.judge(weft, ran) == "a program of the folder was run"
    ran.unlink()
    (weft.project / "AGENTS.md").write_text(CANARY)
    assert hostile.judge(weft, ran) == "a file outside was read"
