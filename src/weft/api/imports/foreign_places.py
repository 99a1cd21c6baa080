"""Where other agents keep their sessions, and which of those are of a folder.

Nothing is followed out of these places: a link in one of them is passed over.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from weft.api.imports.opencode_records import OpencodeRecords, has_session, session_ids
from weft.api.imports.record_lines import RecordLines
from weft.errors import UsageError
from weft.export.agents import READERS

AGENTS: Final = tuple(READERS)
MOST_FILES: Final = 20_000
_FIRST_LINES: Final = 20
_AGENT_FILE: Final = "agent-"
_ID: Final = re.compile(r"[A-Za-z0-9_-]{4,80}")


class ForeignSource(msgspec.Struct, frozen=True, kw_only=True):
    """One session of another agent, not read yet."""

    agent: str
    path: str
    session_id: str = ""
    """Of opencode, whose sessions share a file."""

    def records(self) -> Iterator[RecordLines | OpencodeRecords]:
        """The files of the session, the conversation of the user first."""
        path = Path(self.path)
        if self.agent == "opencode":
            yield OpencodeRecords(path, self.session_id)
            return
        yield RecordLines(path)
        if self.agent == "claude":
            for each in _agent_files(path):
                yield RecordLines(each)


class ForeignPlaces:
    """The places of one user."""

    def __init__(self, home: Path, environ: Mapping[str, str]) -> None:
        self._home = home
        claude = Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude")
        codex = Path(environ.get("CODEX_HOME") or home / ".codex")
        pi = Path(environ.get("PI_CODING_AGENT_DIR") or home / ".pi" / "agent")
        data = Path(environ.get("XDG_DATA_HOME") or home / ".local" / "share")
        self.claude, self.codex, self.pi = claude, codex, pi
        self.opencode = data / "opencode"

    def of_folder(self, agent: str, folder: str) -> list[ForeignSource]:
        """The sessions that worked in a folder, the newest first.  Blocks."""
        if agent == "opencode":
            return list(self._opencode(folder))
        files = self._files(agent, folder)
        found = [each for each in files if not is_agent_file(each) and _folder_of(each) == folder]
        found.sort(key=lambda path: path.name if agent != "claude" else _changed(path))
        return [ForeignSource(agent=agent, path=str(path)) for path in reversed(found)]

    def named(self, agent: str, given: str, project: str) -> list[ForeignSource]:
        """The session of a file or an id.  Blocks.

        Raises:
            UsageError: there is none, or several.
        """
        if given.startswith("~/"):
            given = str(self._home / given[2:])
        path = Path(os.path.abspath(os.path.join(project, given)))
        if os.path.lexists(path):
            return [_of_path(agent, path)]
        if not _ID.fullmatch(given):
            raise UsageError(f"there is no file {given!r}")
        if agent == "opencode":
            found = self._with_session(given)
        else:
            found = [
                ForeignSource(agent=agent, path=str(path))
                for path in self._files(agent, None)
                if given in path.stem and not is_agent_file(path)
            ]
        if len(found) != 1:
            many = f"several sessions of {agent} have" if found else f"no session of {agent} has"
            raise UsageError(f"{many} the id {given!r}")
        return found

    def _files(self, agent: str, folder: str | None) -> Iterator[Path]:
        """Files of sessions; those that cannot be of the folder are left out where names tell."""
        if agent == "codex":
            for root in ("sessions", "archived_sessions"):
                yield from _files(self.codex / root, "**/rollout-*.jsonl")
            return
        base = self.claude / "projects" if agent == "claude" else self.pi / "sessions"
        if agent == "claude" and folder is not None:
            yield from _files(base / re.sub(r"[^A-Za-z0-9]", "-", folder), "*.jsonl")
            return
        for each in sorted(base.iterdir()) if base.is_dir() else ():
            if not each.is_symlink():
                yield from _files(each, "*.jsonl")

    def _stores(self) -> list[Path]:
        found = [*sorted(self.opencode.glob("opencode*.db")), self.opencode / "storage"]
        return [path for path in found if path.exists() and not path.is_symlink()]

    def _opencode(self, folder: str) -> Iterator[ForeignSource]:
        seen: set[str] = set()
        for place in self._stores():
            try:
                ids = session_ids(place, folder)
            except UsageError:
                # Reading it says why; what stands in another one is not hidden by it.
                yield ForeignSource(agent="opencode", path=str(place))
                continue
            for each in ids:
                if each not in seen:
                    seen.add(each)
                    yield ForeignSource(agent="opencode", path=str(place), session_id=each)

    def _with_session(self, session_id: str) -> list[ForeignSource]:
        """The first store that has the session.

        Raises:
            UsageError: none has it, and one cannot be read.
        """
        damaged: UsageError | None = None
        for place in self._stores():
            try:
                if has_session(place, session_id):
                    return [ForeignSource(agent="opencode", path=str(place), session_id=session_id)]
            except UsageError as error:
                damaged = error
        if damaged is not None:
            raise damaged
        return []


def _agent_files(path: Path) -> list[Path]:
    """What the agents of a session of Claude Code did: in a folder of its name; of older versions
    beside it."""
    own = _files(path.with_suffix("") / "subagents", "*.jsonl")
    beside = _files(path.parent, f"{_AGENT_FILE}*.jsonl") if not is_agent_file(path) else []
    return [*sorted(own), *(each for each in sorted(beside) if _session_of(each) == path.stem)]


def is_agent_file(path: Path) -> bool:
    """It is no conversation of the user's."""
    return path.name.startswith(_AGENT_FILE)


def _of_path(agent: str, path: Path) -> ForeignSource:
    if agent != "opencode":
        return ForeignSource(agent=agent, path=str(path))
    if path.suffix != ".json":
        raise UsageError("name a session of opencode by its id, or an export of it (*.json)")
    return ForeignSource(agent=agent, path=str(path))


def _files(folder: Path, pattern: str) -> list[Path]:
    """Files below a folder, no links."""
    if not folder.is_dir() or folder.is_symlink():
        return []
    found: list[Path] = []
    for path in folder.glob(pattern):
        if path.is_file() and not path.is_symlink():
            found.append(path)
        if len(found) >= MOST_FILES:
            break
    return found


def _folder_of(path: Path) -> str:
    """The folder that a session worked in."""
    return _early(path, "cwd")


def _session_of(path: Path) -> str:
    """The session that an agent of Claude Code worked for."""
    return _early(path, "sessionId")


def _early(path: Path, key: str) -> str:
    """A value of the first lines of a file."""
    with suppress(UsageError):
        for record in islice(RecordLines(path), _FIRST_LINES):
            payload = record.get("payload")
            where = payload if isinstance(payload, dict) else record
            if isinstance(found := where.get(key), str):
                return found
    return ""


def _changed(path: Path) -> str:
    try:
        return f"{path.stat().st_mtime_ns:024}"
    except OSError:
        return ""
