"""Folders that no one looks for files in, by their names, each with the reason; the only such list.

Reasons differ in how sure they are, so each reader takes those that fit what it does:

- file history, `find` and `grep` leave out version control, and by default dependencies and caches
  (a project's ignore file takes those back).  They keep build output: `build/` and `dist/` are
  source folders in many projects, and only the project's own ignore file can tell;
- a walk that only offers something (completion), or that must end soon (the search for `.env`
  files), leaves out all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

SkipReason: TypeAlias = Literal["version control", "dependencies", "cache", "build output"]

SKIPPED_FOLDERS: Final[Mapping[str, SkipReason]] = {
    ".git": "version control",
    ".hg": "version control",
    ".svn": "version control",
    "node_modules": "dependencies",
    "site-packages": "dependencies",
    ".venv": "dependencies",
    "venv": "dependencies",
    ".tox": "dependencies",
    "__pycache__": "cache",
    ".mypy_cache": "cache",
    ".ruff_cache": "cache",
    ".pytest_cache": "cache",
    ".hypothesis": "cache",
    "target": "build output",
    "dist": "build output",
    "build": "build output",
}
"""Name of a folder → why it is left out."""


NODE_PACKAGES: Final = "node_modules"
PROJECT_PROGRAMS: Final = (f"{NODE_PACKAGES}/.bin", ".venv/bin", "venv/bin")
"""Where among its dependencies a project has programs of its own."""

REMADE_SUFFIXES: Final = frozenset(
    {
        *(".o", ".a", ".so", ".obj", ".lo", ".la", ".d", ".gch", ".pch"),
        *(".pyc", ".pyo", ".class", ".jar", ".beam", ".hi", ".cmi", ".cmx", ".cmo", ".rlib"),
        *(".tsbuildinfo", ".gcda", ".gcno", ".aux", ".toc", ".tmp"),
    }
)
"""Endings of files that compilers and tools write again; where they are ignored, they are no loss.

A log tells what happened once, and an editor's swap file holds what was never saved: neither is
made again.
"""


def is_remade(path: str) -> bool:
    """True for an ignored path that a tool makes again: `make clean` and `npm ci` remove such."""
    *folders, name = path.split("/")
    # What git LFS keeps may be in no other place: it leaves the machine only with a push.
    if f"/{path}".find("/.git/lfs/objects/") >= 0:
        return False
    if any(folder in SKIPPED_FOLDERS for folder in folders):
        return True
    return name[name.rfind(".") :] in REMADE_SUFFIXES if "." in name else False


def skipped_for(*reasons: SkipReason) -> tuple[str, ...]:
    """The names that are left out for these reasons, in the order of the table."""
    return tuple(name for name, reason in SKIPPED_FOLDERS.items() if reason in reasons)
