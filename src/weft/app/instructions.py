"""What the person and the project want every model to know: `AGENTS.md`, from the outermost folder to the innermost.

The person's own file comes first, then one file a folder from the repository's root down to the project, nearest last; `CLAUDE.md` is
read where a folder has no `AGENTS.md`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

NAMES: Final = ("AGENTS.md", "CLAUDE.md")
LIMIT: Final = 32 * 1024
"""Bytes of all instructions together; what is beyond is left out, and said so."""


def instructions(project: Path, config: Path) -> str:
    """All instructions for a project, each under the path it comes from; empty when there are none."""
    pieces: list[str] = []
    left = LIMIT
    for path in instruction_files(project, config):
        text = _read(path, left)
        if text:
            pieces.append(f"# Instructions from {path}\n\n{text}")
            left -= len(text.encode())
        if left <= 0:
            break
    return "\n\n".join(pieces)


def instruction_files(project: Path, config: Path) -> Iterator[Path]:
    """The files that hold them, outermost first."""
    folders = [config, *reversed(list(up_to_root(project)))]
    for folder in folders:
        found = next((folder / name for name in NAMES if (folder / name).is_file()), None)
        if found is not None:
            yield found


def up_to_root(project: Path) -> Iterator[Path]:
    """The project and the folders above it, up to the repository's root; outside a repository, only the project."""
    above = [project, *project.parents]
    root = next((folder for folder in above if (folder / ".git").exists()), project)
    for folder in above:
        yield folder
        if folder == root:
            return


def _read(path: Path, most: int) -> str:
    try:
        data = path.read_bytes()
    except OSError:
        return ""
    text = data[:most].decode("utf-8", "replace").strip()
    if len(data) > most:
        text += "\n\n[The rest is left out: instructions are limited to 32 KiB.]"
    return text
