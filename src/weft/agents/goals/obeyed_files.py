"""Files that a check goes by: scripts that it runs, tests that it names, what its programs obey."""

from __future__ import annotations

import re
import shlex
from typing import Final

_READERS: Final = frozenset(
    (
        *("[", "awk", "cat", "cmp", "cut", "diff", "echo", "egrep", "fgrep", "find", "grep"),
        *("head", "jq", "ls", "printf", "rg", "sed", "sort", "stat", "tail", "test", "uniq", "wc"),
    )
)
"""Programs that look at files, and run none of them."""
_OBEYED: Final = {
    "make": ("Makefile", "makefile", "GNUmakefile"),
    "npm": ("package.json",),
    "pnpm": ("package.json",),
    "yarn": ("package.json",),
    "pytest": ("conftest.py", "pytest.ini", "pyproject.toml", "setup.cfg", "tox.ini"),
    "tox": ("tox.ini",),
    "cargo": ("Cargo.toml",),
    "just": ("justfile",),
}
"""Files that decide what a program does."""
_BETWEEN: Final = re.compile(r"&&|\|\||[;&|\n]")


def is_obeyed(path: str, check: str) -> bool:
    """Whether a file of the project decides what a command line says of the rest."""
    return any(_goes_by(path, part) for part in _BETWEEN.split(check))


def _goes_by(path: str, command: str) -> bool:
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    if not words or words[0] in _READERS:
        return False
    named = [word.split("::")[0].removeprefix("./").rstrip("/") for word in words]
    if any(path == word or (word and path.startswith(f"{word}/")) for word in named):
        return True
    files = {file for word in named for file in _OBEYED.get(word.rsplit("/", 1)[-1], ())}
    return path.rsplit("/", 1)[-1] in files
