"""`README.md`: the commands and the program that a newcomer tries first work as they stand
there.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.source_code import ROOT

pytestmark = pytest.mark.process

README = (ROOT / "README.md").read_text("utf-8")
COMMANDS = re.findall(r"^    \.venv/bin/weft (.+)$", README, re.MULTILINE)
SCRIPT = "docs/examples/first-session.json"


def run(folder: Path, *words: str) -> str:
    """What a program of ours prints in a folder, with a home of its own."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "WEFT_HOME": str(folder / "weft")}
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def clone(folder: Path) -> Path:
    """As much of a clone as the examples need."""
    (folder / SCRIPT).parent.mkdir(parents=True)
    shutil.copy(ROOT / SCRIPT, folder / SCRIPT)
    return folder


def test_the_first_commands_ask_write_and_rewind(tmp_path: Path) -> None:
    place = clone(tmp_path)
    ask, write, rewind = ([*shlex.split(line)] for line in COMMANDS)
    assert "A Python project" in run(place, "-m", "weft", *ask)
    assert not (place / "NOTES.txt").exists()
    run(place, "-m", "weft", *write)
    assert (place / "NOTES.txt").is_file()
    run(place, "-m", "weft", *rewind)
    assert not (place / "NOTES.txt").exists()
    run(place, "-m", "weft", "session", "undo", "demo", "--yes")
    assert (place / "NOTES.txt").is_file()


def test_the_program_of_the_readme_works(tmp_path: Path) -> None:
    [program] = re.findall(r"^```python\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    named = '"anthropic:claude-sonnet-5-5"'
    assert named in program
    place = clone(tmp_path)
    (place / "program.py").write_text(program.replace(named, f'"scripted:{SCRIPT}"'))
    assert run(place, "program.py").startswith("A Python project")
