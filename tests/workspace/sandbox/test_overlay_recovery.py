"""A process dies with a sandboxed command: what it left is found, told, and finished where it had
been judged.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.source_code import ROOT
from weft.workspace.sandbox.overlay_recovery import RecoveredCommand, settle, sweep
from weft.workspace.writes.atomic_write import OURS
from weft.workspace.writes.atomic_write import sweep as sweep_files

pytestmark = pytest.mark.process

PROGRAM = """
import anyio, os, sys
from pathlib import Path
from tests.support.sandboxed_project import sandboxed_project
from weft.workspace.sandbox.overlay_apply import OverlayApplier

base, script, die_after = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
run, done = OverlayApplier.run, 0

def step():
    global done
    done += 1
    if done == die_after:
        os._exit(9)

OverlayApplier.run = lambda self, steps, each=None: run(self, steps, step)

def watch(text):
    if "die" in text:
        os._exit(9)

async def main():
    async with sandboxed_project(base) as there:
        print("confined", flush=True)
        await there.shell(script, watch, label="call_1")
        os._exit(9)

anyio.run(main)
"""


AMID_AN_EXCHANGE = """
from weft import faults
def change(name):
    if sys.argv[4]:
        (base / "project" / "a").write_text(sys.argv[4])
    faults.arm("workspace.displaced.exchanged", action=lambda name: os._exit(9))
faults.arm("workspace.displaced.before_exchange", action=change)

async def main"""


def dies(
    base: Path, script: str, *, after: int = 0, program: str = PROGRAM, more: str = ""
) -> None:
    """Run a sandboxed command in a process that dies: while it runs (when it says `die`), after so
    many steps of putting its changes in, or when all of them are in and nobody has written that
    down.
    """
    done = subprocess.run(
        [sys.executable, "-c", program, str(base), script, str(after), more],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}/src:{ROOT}"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    if "this machine has no sandbox" in done.stderr:
        pytest.skip("this machine has no sandbox")
    assert (done.returncode, "confined" in done.stdout) == (9, True), done.stderr


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    for name in ("a", "b", "c", "d"):
        (root / name).write_text(f"old {name}\n")
    return root


def test_a_command_that_had_not_ended_left_the_project_alone(tmp_path: Path, project: Path) -> None:
    dies(tmp_path, "echo new > a; mkdir sub; echo x > sub/file; rm b; echo die; sleep 1000")
    found = settle(str(tmp_path / "sandbox"), "call_1")
    assert isinstance(found, RecoveredCommand)
    assert sorted(found.unapplied) == ["a", "b", "sub/file"]
    assert "nothing that it wrote reached the project (a, b, sub/file)" in str(found)
    assert (Path(found.folder) / "upper0" / "a").read_text() == "new\n"
    assert [(project / name).read_text() for name in "ab"] == ["old a\n", "old b\n"]


SCRIPT = "echo new > a; rm b; chmod 600 c; echo more > e; mkdir f; echo in > f/g"
STEPS = 6


@pytest.mark.parametrize("after", range(1, STEPS + 2))
def test_changes_that_were_judged_are_finished_wherever_it_died(
    tmp_path: Path, project: Path, after: int
) -> None:
    dies(tmp_path, SCRIPT, after=after)
    found = settle(str(tmp_path / "sandbox"), "call_1")
    assert found is not None
    assert (set(found.finished), found.left) == ({"a", "b", "c", "e", "f", "f/g"}, ())
    assert (project / "a").read_text() == "new\n"
    assert not (project / "b").exists()
    assert (project / "c").stat().st_mode & 0o777 == 0o600
    assert (project / "e").read_text() == "more\n"
    assert (project / "f/g").read_text() == "in\n"
    assert {each.path: (each.action, each.data_before) for each in found.changes} == {
        "a": ("modified", b"old a\n"),
        "b": ("deleted", b"old b\n"),
        "c": ("modified", b"old c\n"),
        "e": ("created", None),
        "f": ("created", None),
        "f/g": ("created", None),
    }
    assert settle(str(tmp_path / "sandbox"), "call_1") is None, "it is told once"


def test_what_another_program_changed_since_is_left_alone(tmp_path: Path, project: Path) -> None:
    dies(tmp_path, "echo new > a; echo new > b; rm c; echo new > d", after=1)
    assert (project / "a").read_text() == "new\n"
    (project / "b").write_text("by hand\n")
    (project / "c").write_text("by hand\n")
    found = settle(str(tmp_path / "sandbox"), "call_1")
    assert found is not None
    assert (set(found.left), set(found.finished)) == ({"b", "c"}, {"a", "d"})
    assert [(project / name).read_text() for name in "bcd"] == ["by hand\n", "by hand\n", "new\n"]
    assert "left alone: b, c" in str(found)
    assert {each.path for each in found.changes} == {"a", "d"}


@pytest.mark.parametrize("theirs", ["", "by hand\n"])
def test_what_is_displaced_when_it_dies_is_lost_neither_in_the_scratch_folder(
    tmp_path: Path, project: Path, theirs: str
) -> None:
    program = PROGRAM.replace("\nasync def main", AMID_AN_EXCHANGE)
    dies(tmp_path, "echo new > a", program=program, more=theirs)
    found = settle(str(tmp_path / "sandbox"), "call_1")
    assert found is not None
    assert (found.finished, found.left) == (("a",), ())
    assert [each.path for each in found.changes] == ["a"]
    assert (project / "a").read_text() == "new\n"
    folder = os.open(project, os.O_RDONLY)
    sweep_files(folder)
    os.close(folder)
    left = [path.read_text() for path in project.iterdir() if path.name.startswith(OURS)]
    assert left == ([theirs] if theirs else [])


SWAPS = "rm a; mkdir a; echo in > a/x; rm -r folder; echo now > folder; echo odd > $'n\\xff'"


@pytest.mark.parametrize("after", range(1, 9))
def test_one_thing_in_the_place_of_another_is_finished_wherever_it_died(
    tmp_path: Path, project: Path, after: int
) -> None:
    (project / "folder").mkdir()
    (project / "folder" / "y").write_text("y\n")
    dies(tmp_path, SWAPS, after=after)
    found = settle(str(tmp_path / "sandbox"), "call_1")
    assert found is not None
    assert found.left == ()
    assert (project / "a" / "x").read_text() == "in\n"
    assert (project / "folder").read_text() == "now\n"
    assert os.listdir(os.fsencode(project)).count(b"n\xff") == 1
    assert [(each.path, each.action) for each in found.changes] == [
        ("a", "deleted"),
        ("a", "created"),
        ("a/x", "created"),
        ("folder/y", "deleted"),
        ("folder", "deleted"),
        ("folder", "created"),
    ]
    str(found).encode()


def test_nothing_of_a_living_process_is_touched(tmp_path: Path, project: Path) -> None:
    place = tmp_path / "sandbox" / f"{os.getpid()}-abcd" / "1"
    (place / "upper0").mkdir(parents=True)
    (place / "upper0" / "a").write_text("new")
    job = {"label": "call_1", "roots": [str(project)], "started_ns": 0}
    (place / "job").write_text(json.dumps(job))
    (place.parent / "lock").touch()
    script = (
        "import fcntl, sys; f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_EX); "
        "print('held', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", script, str(place.parent / "lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    assert settle(str(tmp_path / "sandbox"), "call_1") is None
    assert sweep(str(tmp_path / "sandbox")) == 0
    holder.communicate()
    found = settle(str(tmp_path / "sandbox"), "call_1")
    assert found is not None
    assert found.unapplied == ("a",)


def test_no_age_takes_half_done_work_away_and_the_quota_takes_the_oldest(
    tmp_path: Path, project: Path
) -> None:
    base = tmp_path / "sandbox"
    for name, label, content in (
        ("1-kept", "call_1", "x"),
        ("2-empty", "call_2", ""),
        ("3-old", "call_3", "x"),
    ):
        place = base / name / "1"
        (place / "upper0").mkdir(parents=True)
        if content:
            (place / "upper0" / "a").write_text(content)
        job = {"label": label, "roots": [str(project)], "started_ns": 0}
        (place / "job").write_text(json.dumps(job))
        (base / name / "lock").touch()
    aside = base / "kept" / "9-aside"
    aside.mkdir(parents=True)
    (aside / "big").write_bytes(b"x" * 100_000)
    os.utime(base / "3-old", (0, 0))
    os.utime(aside, (1, 1))
    (base / "cache").mkdir()
    assert sweep(str(base)) == 1  # in which nothing is
    assert sorted(os.listdir(base)) == ["1-kept", "3-old", "cache", "kept"]
    assert sweep(str(base), 50_000) == 2
    assert sorted(os.listdir(base)) == ["1-kept", "cache", "kept"]
    assert os.listdir(base / "kept") == []
    assert sweep(str(tmp_path / "nowhere")) == 0
