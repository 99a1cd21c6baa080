"""Paths of settings and data: read from the environment here, and handed to the rest."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from weft.sha256 import sha256


class WeftPaths(msgspec.Struct, frozen=True, kw_only=True):
    """The folders of one installation."""

    home: Path
    """Data: `$WEFT_HOME`, by default `~/.local/share/weft`."""
    user: Path
    """The user's home folder."""
    config: Path
    """The user's own settings: `~/.config/weft`."""

    @property
    def database(self) -> Path:
        return self.home / "weft.db"

    @property
    def servers_restart(self) -> Path:
        """Its time changes when the user asks for a restart of language servers."""
        return self.home / "language-servers" / "restart"

    @property
    def handovers(self) -> Path:
        """Where handover documents are saved."""
        return self.home / "handovers"

    @property
    def unattended_key(self) -> Path:
        """The key that seals what may be done when no user is there."""
        return self.home / "unattended.key"

    @property
    def servers(self) -> Path:
        """Tokens and records of the HTTP servers that run here."""
        return self.home / "server"

    @property
    def projects(self) -> Path:
        """Which folder has which project id."""
        return self.home / "projects"

    @property
    def user_memory(self) -> Path:
        """What the user asked to be remembered in every project."""
        return self.config / "MEMORY.md"

    @property
    def memory(self) -> Path:
        """What the user asked to be remembered of each project."""
        return self.home / "memory"

    def are_words_of_user(self, place: str) -> bool:
        """True when a session would take what stands at this real path for words or settings of
        the user.
        """
        # Where they really lie, asked anew: people link them into a repository of theirs, and a
        # variable may put them anywhere.
        config, home = _real(str(self.config)), _real(str(self.home))
        folders = config, _linked(f"{home}/memory"), _linked(f"{home}/projects")
        below = f"{place}/"
        return any(below.startswith(f"{folder}/") for folder in folders) or (
            place == _linked(f"{config}/MEMORY.md")
        )

    @property
    def workspaces(self) -> Path:
        """The folders of sessions that came from other hosts."""
        return self.home / "workspaces"

    @property
    def worktrees(self) -> Path:
        """Where earlier versions made copies of projects for isolated agents."""
        return self.home / "worktrees"

    def index_of(self, project: str) -> Path:
        """Where the index of a project lies; what is there can be deleted at any time."""
        name = sha256(os.fsencode(os.path.realpath(project))).hexdigest()[:32]
        return self.home.joinpath("index", name)

    @property
    def sockets(self) -> Path:
        """Where sockets lie for stores that have no folder."""
        return self.home / "sockets"

    @property
    def unsettled_fans(self) -> Path:
        """The marks of fan-outs of which something is under way."""
        return self.home / "fans" / "unsettled"

    @property
    def sandbox(self) -> Path:
        """What the sandbox writes down of commands, and the files that they removed."""
        return self.home / "sandbox"


def places(environ: Mapping[str, str]) -> WeftPaths:
    """Where this environment keeps things."""
    user = Path(environ.get("HOME") or "~").expanduser()
    data = Path(environ.get("XDG_DATA_HOME") or user / ".local" / "share")
    config = Path(environ.get("XDG_CONFIG_HOME") or user / ".config")
    home = environ.get("WEFT_HOME")
    return WeftPaths(
        user=user, home=Path(home).expanduser() if home else data / "weft", config=config / "weft"
    )


def _real(path: str) -> str:
    """The real path, as `os.path.realpath` finds it.

    Asked of the kernel in three calls, where that one makes a call for each folder on the way.
    """
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            return os.readlink(f"/proc/self/fd/{place}")
        finally:
            os.close(place)
    except (OSError, AttributeError):  # there is nothing yet, or no such call
        folder, _, name = path.rpartition("/")
        if not folder or name in ("", ".", "..") or os.path.lexists(path):
            return os.path.realpath(path)
        return f"{_real(folder)}/{name}"


def _linked(path: str) -> str:
    """The real path of what lies in a folder whose path is real."""
    return _real(path) if os.path.islink(path) else path


def absolute(path: str) -> str:
    """The path as sessions store it."""
    return str(Path(path).expanduser().resolve())
