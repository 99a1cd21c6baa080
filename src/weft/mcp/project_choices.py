"""The user's answers about the servers that projects name.

An answer counts for exactly what was shown: the entry, and the files of the project that its words
and variables name.  It lies in the user's own folder; a project can neither bring nor read it.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final, Literal, TypeAlias

import msgspec

from weft.errors import UsageError
from weft.mcp.private_file import locked, read_private, replace_private
from weft.mcp.server_config import ConfiguredServer, ServerEntry, canonical
from weft.sha256 import sha256

logger = logging.getLogger(__name__)

FILE: Final = "mcp-choices.json"
LARGEST_FILE: Final = 16 * 1024 * 1024
"""Bytes of the files that command lines name, that are hashed."""
_OBEYED: Final = {
    **dict.fromkeys(("npm", "npx", "pnpm", "yarn", "bun"), ("package.json",)),
    **dict.fromkeys(("uv", "uvx", "poetry", "hatch"), ("pyproject.toml",)),
    **dict.fromkeys(("make", "gmake"), ("Makefile", "makefile", "GNUmakefile")),
    "just": ("justfile", "Justfile", ".justfile"),
    "deno": ("deno.json", "deno.jsonc"),
}
"""By program, the files of a project in which what it runs is written."""
Answer: TypeAlias = Literal["yes", "no"]


class _Choice(msgspec.Struct, frozen=True):
    shown: str
    """The hash of what was shown."""
    answer: Answer


class ProjectChoices:
    """What the user said about servers of projects, in `mcp-choices.json` beside their settings."""

    def __init__(self, config: Path) -> None:
        self._file = config / FILE

    def of(self, project: str, server: ConfiguredServer) -> Answer | None:
        """The answer about a server as it is now; None when it was not asked, or has changed."""
        found = self._read().get(project, {}).get(server.name)
        return found.answer if found is not None and found.shown == shown_hash(server) else None

    def knows(self, project: str, name: str) -> bool:
        """Whether the user was asked about a server of this name before."""
        return name in self._read().get(project, {})

    def names(self) -> set[str]:
        """The servers of any project that the user was asked about."""
        return {name for answers in self._read().values() for name in answers}

    def keep(self, project: str, server: ConfiguredServer, answer: Answer) -> None:
        """Remember an answer.

        Raises:
            UsageError: it cannot be written down.
        """
        try:
            with locked(self._file):
                kept = self._read()
                choice = _Choice(shown_hash(server), answer)
                kept.setdefault(project, {})[server.name] = choice
                self._write(kept)
        except OSError as error:
            raise UsageError(f"{self._file} cannot be written: {error}") from error

    def forget(self, project: str) -> int:
        """Forget all answers about a project; returns how many there were.

        Raises:
            UsageError: it cannot be written down.
        """
        try:
            with locked(self._file):
                kept = self._read()
                gone = kept.pop(project, {})
                if gone:
                    self._write(kept)
                return len(gone)
        except OSError as error:
            raise UsageError(f"{self._file} cannot be written: {error}") from error

    def _read(self) -> dict[str, dict[str, _Choice]]:
        """All answers; none where others could have written them."""
        try:
            data = read_private(self._file)
            if data is None:
                return {}
            return msgspec.json.decode(data, type=dict[str, dict[str, _Choice]])
        except (OSError, msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            logger.warning("answers about MCP servers are not read: %s", type(error).__name__)
            return {}

    def _write(self, kept: dict[str, dict[str, _Choice]]) -> None:
        replace_private(self._file, msgspec.json.format(msgspec.json.encode(kept)) + b"\n")


def shown_hash(server: ConfiguredServer) -> str:
    """A hash of a project's server: its entry, and the files of the project that it runs."""
    project = os.path.dirname(server.source)
    return sha256(canonical([server.digest, named_files(server.entry, project)])).hexdigest()


def named_files(entry: ServerEntry, project: str) -> dict[str, str]:
    """The files below the project that a command line or a variable of an entry names, with a hash
    of each."""
    found: dict[str, str] = {}
    left = LARGEST_FILE
    for word in _words(entry):
        path = os.path.realpath(os.path.join(project, entry.cwd, word))
        if not path.startswith(f"{os.path.realpath(project)}/"):
            continue
        data, beyond = _file_data(path, left)
        if data is not None:
            left -= len(data)
            found[word] = sha256(data).hexdigest() + beyond
    return found


def _words(entry: ServerEntry) -> Iterator[str]:
    """All that may name a file: `server.js`, `--require=server.js`, `--require server.js`, `sh -c
    "node server.js"`, and what a program reads by itself where it is started."""
    given = [entry.command, *entry.args, *entry.env.values()]
    parts = [part.strip("'\"();&|") for text in given for part in text.split()]
    for word in (*given, *parts):
        for each in dict.fromkeys((word, word.rpartition("=")[2])):
            if each and "\0" not in each:
                yield each
    for word in parts:
        yield from _OBEYED.get(os.path.basename(word), ())
    for option, module in pairwise(parts):
        if option == "-m" and "\0" not in module:
            path = module.replace(".", "/")
            yield from (f"{path}.py", f"{path}/__main__.py")


def _file_data(path: str, most: int) -> tuple[bytes | None, str]:
    """The beginning of a file, and what tells that the rest of it has changed."""
    try:
        # A folder is no file, and cannot be opened as one.
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return None, ""
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
        with os.fdopen(handle, "rb") as file:
            about = os.fstat(handle)
            data = file.read(max(0, most)) if stat.S_ISREG(about.st_mode) else None
    except OSError:
        return None, ""
    # No start takes long: what is beyond is not read.  The kernel keeps this time, and a program
    # cannot set it.
    is_cut = data is not None and about.st_size > len(data)
    return data, f"+{about.st_size}@{about.st_ctime_ns}" if is_cut else ""
