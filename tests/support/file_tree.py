"""Whole folders as values, byte for byte, with modes and link targets.

And scripts to change them.
"""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path
from typing import NamedTuple


class TreeEntry(NamedTuple):
    """A file, link or folder at a path."""

    mode: int
    content: bytes | None
    """Of a file; a link's target; None for a folder."""


def tree(folder: Path, *, skip: tuple[str, ...] = (".git",)) -> dict[str, TreeEntry]:
    """Everything below a folder, but for what has one of these names."""
    found: dict[str, TreeEntry] = {}
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
            found[name] = TreeEntry(about.st_mode, content)
    return found


def with_git_modes(files: dict[str, TreeEntry]) -> dict[str, TreeEntry]:
    """The same files with the permissions that git would give them."""
    return {path: each._replace(mode=_git_mode(each.mode)) for path, each in files.items()}


def _git_mode(mode: int) -> int:
    if stat.S_ISLNK(mode):
        return mode
    # git has no permissions of folders: one that a command made unsearchable is an ordinary one.
    if stat.S_ISDIR(mode):
        return stat.S_IFDIR | 0o755
    return stat.S_IFMT(mode) | (0o755 if mode & 0o100 else 0o644)


def differing_paths(one: dict[str, TreeEntry], other: dict[str, TreeEntry]) -> list[str]:
    """Paths that are not the same in both."""
    return sorted(path for path in one.keys() | other.keys() if one.get(path) != other.get(path))


def run_script(folder: Path, script: str) -> None:
    """Run a script to its end."""
    subprocess.run(["bash", "-ec", script], cwd=folder, check=True, timeout=60)


def files_holding(folder: Path, text: str) -> list[str]:
    """Files below a folder with this text in any place, in small or capital letters.

    Another program looks: a file of SQLite that this process opened and closed once more would
    lose its locks.
    """
    command = ["grep", "-rlaiF", "-e", text, "--", str(folder)]
    found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert found.returncode < 2, found.stderr
    return sorted(os.path.relpath(line, folder) for line in found.stdout.splitlines())
