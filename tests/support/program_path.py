"""A search path that holds nothing but named programs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest


def only_programs(tmp_path: Path, *programs: str) -> dict[str, str]:
    """An environment whose search path holds nothing but these programs."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for program in ("sh", "bash", *programs):
        found = shutil.which(program)
        if found is None:
            pytest.skip(f"this machine has no {program}")
        (folder / program).symlink_to(found)
    return {"PATH": str(folder)}
