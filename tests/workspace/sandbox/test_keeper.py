"""The keeper's program: how it is started, and how little of Python it takes."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from weft.workspace.sandbox.client import KEEPER, keeper_command, write_bytecode

pytestmark = pytest.mark.process


def said_by(keeper: Path) -> str:
    """What the program prints, started as bubblewrap would start it."""
    argv = keeper_command(
        bubblewrap="bwrap", python=sys.executable, scratch="/tmp", keeper=str(keeper)
    )
    program = argv[argv.index("--") + 1 :]
    return subprocess.run([*program, "7"], capture_output=True, text=True, check=True).stdout


@pytest.fixture
def keeper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    keeper = tmp_path / "keeper.py"
    keeper.write_text("import sys; print('old', __name__, sys.argv[1])")
    return keeper


def test_the_keeper_starts_without_a_compiler_run(keeper: Path) -> None:
    assert said_by(keeper) == "old __main__ 7\n"
    assert not Path(cache_from_source(str(keeper))).exists()
    write_bytecode(str(keeper))
    written = keeper.stat()
    # The same size and time, so that only what was compiled before can say the old word.
    keeper.write_text(keeper.read_text().replace("old", "new"))
    os.utime(keeper, ns=(written.st_atime_ns, written.st_mtime_ns))
    assert said_by(keeper) == "old __main__ 7\n"


def test_bytecode_of_another_source_is_not_run_and_is_written_again(keeper: Path) -> None:
    write_bytecode(str(keeper))
    keeper.write_text(keeper.read_text().replace("old", "newer"))
    assert said_by(keeper) == "newer __main__ 7\n"
    cached = Path(cache_from_source(str(keeper)))
    os.utime(cached, (0, 0))
    before = cached.read_bytes()
    write_bytecode(str(keeper))
    assert cached.read_bytes() != before


def test_no_bytecode_is_written_where_the_user_wants_none(
    keeper: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    write_bytecode(str(keeper))
    assert not Path(cache_from_source(str(keeper))).exists()


def test_the_keeper_loads_next_to_nothing() -> None:
    script = (
        "import sys; before = set(sys.modules); source = open(sys.argv[1]).read(); "
        "exec(compile(source, 'keeper', 'exec'), {'__name__': 'keeper'}); "
        "print(*sorted(set(sys.modules) - before))"
    )
    loaded = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script, KEEPER],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert "ctypes" in loaded
    assert not {"array", "collections", "enum", "re", "signal", "typing"} & set(loaded)
