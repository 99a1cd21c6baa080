"""Trust: whether a project's own files may start programs or widen leave.

A folder that came from elsewhere (a clone, an archive, a pull request) can hold settings and hooks.  Until the person has said that
they trust it, its settings count only where they can do no harm, and nothing of it is run.  Trust is a fact on the person's side, in a
file that only they can write; nothing in the folder can give it, no mode implies it, and a run without a person never asks for it.

It is bound to what was looked at: the folder's real path, its owner, and the content of every file that could act (the settings, the
hooks, the scripts that hooks name).  If one of them changes, the folder is not trusted any more, and the person is asked again.
Agents, skills and commands of a folder need no trust: an agent never has more leave than the session it works for, and a command's
programs are asked about.  A git worktree for an agent needs it: git's settings are of a kind with
hooks.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from weft.app.config import LARGEST_FILE, PROJECT_HOOKS, PROJECT_SETTINGS, hooks_of_json, withheld
from weft.app.hook_book import read_hooks
from weft.errors import UsageError

FILE: Final = "trust.json"
_PROJECT_VARIABLE: Final = re.compile(r"\$\{?(?:WEFT|CLAUDE)_PROJECT_DIR\}?/?")


class ProjectFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The files of a project that could act, as they were read in one go: what is judged is what is used."""

    path: str
    """The folder, every link followed."""
    owner: int
    files: dict[str, bytes] = {}
    """By path relative to the folder."""
    scripts: dict[str, str] = {}
    """SHA-256 of each file of the project that a hook's command names."""

    @property
    def hashes(self) -> dict[str, str]:
        """SHA-256 of everything that trust is bound to, by path."""
        read = {name: hashlib.sha256(data).hexdigest() for name, data in self.files.items()}
        return dict(sorted({**self.scripts, **read}.items()))

    def scripts_of(self, command: str) -> dict[str, str]:
        """Those of the scripts that this command names."""
        named = set(_named_in(command, self.path))
        return {name: digest for name, digest in self.scripts.items() if name in named}


class Trusted(msgspec.Struct, frozen=True, kw_only=True):
    """A folder that the person trusts, and what they trusted."""

    path: str
    owner: int
    hashes: dict[str, str]
    at: float = 0.0


class TrustQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """What a person must know to say whether they trust a folder."""

    path: str
    files: tuple[str, ...]
    """The files that would act."""
    settings: tuple[str, ...]
    """The settings that do not count yet."""
    commands: tuple[str, ...]
    """The commands that hooks would run."""
    changed: tuple[str, ...] = ()
    """What is not as it was when the folder was trusted before; empty when it never was."""


class _Kept(msgspec.Struct, frozen=True, kw_only=True):
    version: int = 1
    folders: tuple[Trusted, ...] = ()


# --- looking -----------------------------------------------------------------------------


def look(project: str | os.PathLike[str]) -> ProjectFiles:
    """Read what could act in a project, without following it: nothing is run, and no file is waited for."""
    real = os.path.realpath(project)
    owner = os.stat(real).st_uid
    files = {
        name: data
        for name in (PROJECT_SETTINGS, PROJECT_HOOKS)
        if (data := read_regular(os.path.join(real, name))) is not None
    }
    scripts = {
        name: hashlib.sha256(data).hexdigest()
        for command in commands_in(files)
        for name in _named_in(command, real)
        if name not in files
        and (data := read_regular(os.path.join(real, name), 16 * LARGEST_FILE)) is not None
    }
    return ProjectFiles(path=real, owner=owner, files=files, scripts=scripts)


def read_regular(path: str, most: int = LARGEST_FILE) -> bytes | None:
    """The bytes of a regular file; None for anything else, a pipe that nobody writes to included."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        about = os.fstat(handle)  # first: a folder cannot even be made a file object
        if not stat.S_ISREG(about.st_mode) or about.st_size > most:
            return None
        with os.fdopen(handle, "rb", closefd=False) as file:
            return file.read(most)
    finally:
        os.close(handle)


def commands_in(files: Mapping[str, bytes]) -> list[str]:
    """The commands that a project's hooks would run; none of a file that cannot be read, for that one runs nothing."""
    found: list[str] = []
    for name, data in files.items():
        table = _hooks_in(name, data)
        try:
            found += [hook.command for hook in read_hooks(table, name)]
        except UsageError:
            continue
    return found


def settings_in(files: Mapping[str, bytes]) -> list[str]:
    """The settings that count only once the project is trusted; none of a file that cannot be read."""
    try:
        return withheld(files.get(PROJECT_SETTINGS, b""), PROJECT_SETTINGS)
    except UsageError:
        return []


def _hooks_in(name: str, data: bytes) -> dict[str, Any]:
    if name == PROJECT_SETTINGS and b"hooks" in data:
        import tomllib  # only where there is such a file: it costs start-up time

        try:
            table = tomllib.loads(data.decode()).get("hooks")
        except (tomllib.TOMLDecodeError, UnicodeDecodeError):
            return {}
        return table if isinstance(table, dict) else {}
    if name == PROJECT_HOOKS:
        try:
            return hooks_of_json(data, name)
        except UsageError:
            return {}
    return {}


def _named_in(command: str, project: str) -> Iterator[str]:
    """The files below the project that the words of a command name; not those that it only writes to."""
    before = ""
    for word in _words(_PROJECT_VARIABLE.sub(f"{project}/", command)):
        writes, before = ">" in before, word
        real = os.path.realpath(os.path.join(project, word))
        if not writes and real.startswith(f"{project}/") and os.path.isfile(real):
            yield os.path.relpath(real, project)


def _words(command: str) -> list[str]:
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError:
        return command.split()


# --- remembering -------------------------------------------------------------------------


class Trust:
    """The folders that a person trusts, in `trust.json` beside their settings."""

    def __init__(self, config: Path) -> None:
        self._file = config / FILE

    def covers(self, seen: ProjectFiles) -> bool:
        """True when the person trusts exactly this."""
        known = self._known(seen.path)
        return known is not None and known.owner == seen.owner and known.hashes == seen.hashes

    def question(self, seen: ProjectFiles) -> TrustQuestion | None:
        """What to ask the person; None when the folder is trusted as it is, or has nothing that could act."""
        settings = settings_in(seen.files)
        acts = settings or any(name != PROJECT_SETTINGS for name in seen.files)
        if not acts or self.covers(seen):
            return None
        known = self._known(seen.path)
        changed: tuple[str, ...] = ()
        if known is not None:
            now = seen.hashes
            names = sorted({*now, *known.hashes})
            changed = tuple(name for name in names if now.get(name) != known.hashes.get(name))
            changed = changed or ("the folder's owner",)
        return TrustQuestion(
            path=seen.path,
            files=tuple(seen.hashes),
            settings=tuple(settings),
            commands=tuple(commands_in(seen.files)),
            changed=changed,
        )

    def keep(self, seen: ProjectFiles, at: float) -> None:
        """Remember that the person trusts a folder as it is now.

        Raises:
            UsageError: it cannot be written down.
        """
        trusted = Trusted(path=seen.path, owner=seen.owner, hashes=seen.hashes, at=at)
        self._write([each for each in self._folders() if each.path != seen.path], trusted)

    def forget(self, path: str) -> bool:
        """Trust a folder no longer; False when it was not trusted."""
        folders = self._folders()
        left = [each for each in folders if each.path != os.path.realpath(path)]
        if len(left) < len(folders):
            self._write(left)
        return len(left) < len(folders)

    def _known(self, path: str) -> Trusted | None:
        return next((each for each in self._folders() if each.path == path), None)

    def _folders(self) -> tuple[Trusted, ...]:
        """What is on record; nothing where somebody else could have written it, or it cannot be read."""
        data = read_regular(str(self._file), 16 * LARGEST_FILE)
        if data is None or not self._is_ours():
            return ()
        try:
            return msgspec.json.decode(data, type=_Kept).folders
        except msgspec.MsgspecError:
            return ()

    def _is_ours(self) -> bool:
        about = self._file.stat()
        return about.st_uid == os.geteuid() and not about.st_mode & 0o022

    def _write(self, folders: Iterable[Trusted], *more: Trusted) -> None:
        """Replace the file as a whole; it is private from its first byte on."""
        kept = _Kept(folders=(*folders, *more))
        data = msgspec.json.format(msgspec.json.encode(kept)) + b"\n"
        passing = self._file.with_name(f".{FILE}-{os.getpid()}")
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(passing, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(handle)
            os.replace(passing, self._file)
        except OSError as error:
            passing.unlink(missing_ok=True)
            raise UsageError(f"cannot write {self._file}: {error.strerror}") from error
