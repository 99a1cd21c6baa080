"""Where things are kept: read from the environment here, and handed to everybody else."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from weft.workspace import project_folders


class WeftPaths(msgspec.Struct, frozen=True, kw_only=True):
    """The folders of one installation."""

    home: Path
    """Data: `$WEFT_HOME`, by default `~/.local/share/weft`."""
    user: Path
    """The person's home folder."""
    config: Path
    """The person's own settings: `~/.config/weft`."""

    @property
    def database(self) -> Path:
        return self.home / "weft.db"


def places(environ: Mapping[str, str]) -> WeftPaths:
    """Where this environment keeps things."""
    user = Path(environ.get("HOME") or "~").expanduser()
    data = Path(environ.get("XDG_DATA_HOME") or user / ".local" / "share")
    config = Path(environ.get("XDG_CONFIG_HOME") or user / ".config")
    home = environ.get("WEFT_HOME")
    return WeftPaths(
        user=user, home=Path(home).expanduser() if home else data / "weft", config=config / "weft"
    )


def absolute(path: str) -> str:
    """The path as sessions store it."""
    return str(Path(path).expanduser().resolve())


def leads_out(path: str, project: str) -> bool:
    """True when a path lies in the repository as it is written, and a link leads it elsewhere."""
    root = project_folders(project)[0].root
    written = os.path.abspath(os.path.join(os.path.realpath(project), path))
    return _is_in(written, root) and not _is_in(os.path.realpath(written), root)


def _is_in(path: str, folder: str) -> bool:
    return f"{path}/".startswith(f"{folder.rstrip('/')}/")
