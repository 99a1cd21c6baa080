"""Whole folders as values: what they hold, byte for byte, with modes and link targets; and ways to change them by a shell."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path
from typing import NamedTuple


class Thing(NamedTuple):
    """What is at a path."""

    mode: int
    content: bytes | None
    """Of a file; a link's target; None for a folder."""


def tree(folder: Path, *, skip: tuple[str, ...] = (".git",)) -> dict[str, Thing]:
    """Everything below a folder, but for what has one of these names."""
    found: dict[str, Thing] = {}
    waiting = [folder]
    while waiting:
        for entry in os.scandir(waiting.pop()):
            about = entry.stat(follow_symlinks=False)
            name = os.path.relpath(entry.path, folder)
            if entry.name in skip:
                continue
            content: bytes | None = None
            if stat.S_ISLNK(about.st_mode):
                content = os.fsencode(os.readlink(entry.path))
            elif stat.S_ISREG(about.st_mode):
                content = Path(entry.path).read_bytes()
            elif stat.S_ISDIR(about.st_mode):
                waiting.append(Path(entry.path))
            found[name] = Thing(about.st_mode, content)
    return found


def differing(one: dict[str, Thing], other: dict[str, Thing]) -> list[str]:
    """Paths that are not the same in both."""
    return sorted(path for path in one.keys() | other.keys() if one.get(path) != other.get(path))


def sh(folder: Path, script: str) -> None:
    """Run a script to its end."""
    subprocess.run(["bash", "-ec", script], cwd=folder, check=True, timeout=60)
