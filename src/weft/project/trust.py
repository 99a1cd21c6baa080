"""Trust: whether a project's own files may start programs or widen permissions.

A folder that came from elsewhere (a clone, an archive, a pull request) can hold settings and hooks.
Until the user has said that they trust it, its settings count only where they can do no harm, and
nothing of it is run.  Trust is a fact on the user's side, in a file that only they can write;
nothing in the folder can give it, no mode implies it, and a run without a user never asks for it.

It is bound to what was looked at: the folder's real path, its owner, and the content of every file
that could act (the settings, the hooks, the scripts that hooks name).  If one of them changes, the
folder is not trusted any more, and the user is asked again. Agents, skills and commands of a folder
need no trust: an agent never has more permissions than the session it works for, and a command's
programs are asked about.  An isolated agent needs it: git's settings are of a kind with hooks.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from weft.config.documents import read_toml
from weft.config.settings import (
    LARGEST_FILE,
    LARGEST_PROJECT_FILE,
    PROJECT_HOOKS,
    PROJECT_SETTINGS,
    check_project,
    hooks_of_json,
    withheld,
)
from weft.errors import UsageError
from weft.hooks.config import read_hooks
from weft.hooks.scripts import LARGEST_SCRIPT, script_hash
from weft.sha256 import sha256
from weft.workspace import (
    SourceFolder,
    project_folders,
    read_small_file,
    user_folder,
)

FILE: Final = "trust.json"
_PROJECT_VARIABLE: Final = re.compile(r"\$\{?(?:WEFT|CLAUDE)_PROJECT_DIR\}?/?")


class ProjectFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The files of a project that could act, as they were read in one go: what is judged is what is
    used.
    """

    path: str
    """The folder, every link followed."""
    owner: int
    files: dict[str, bytes] = {}
    """By path relative to the folder."""
    scripts: dict[str, str] = {}
    """SHA-256 of each file of the project that a hook's command names."""
    problems: tuple[str, ...] = ()
    """Files that could have acted and are left out, a sentence each."""

    @property
    def hashes(self) -> dict[str, str]:
        """SHA-256 of everything that trust is bound to, by path."""
        read = {name: sha256(data).hexdigest() for name, data in self.files.items()}
        return dict(sorted({**self.scripts, **read}.items()))

    def scripts_of(self, command: str) -> dict[str, str]:
        """Those of the scripts that this command names."""
        named = set(_named_in(command, self.path))
        return {name: digest for name, digest in self.scripts.items() if name in named}


class TrustedFolder(msgspec.Struct, frozen=True, kw_only=True):
    """A folder that the user trusts, and what they trusted."""

    path: str
    owner: int
    hashes: dict[str, str]
    at: float = 0.0


class TrustQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """What the user must know to say whether they trust a folder."""

    path: str
    files: tuple[str, ...]
    """The files that would act."""
    settings: tuple[str, ...]
    """The settings that do not count yet."""
    values: tuple[str, ...] = ()
    """What each of those settings would be, as JSON."""
    commands: tuple[str, ...]
    """The commands that hooks would run."""
    changed: tuple[str, ...] = ()
    """What is not as it was when the folder was trusted before; empty when it never was."""


class _Kept(msgspec.Struct, frozen=True, kw_only=True):
    version: int = 1
    folders: tuple[TrustedFolder, ...] = ()


# --- looking -----------------------------------------------------------------------------


def look(project: str | os.PathLike[str]) -> ProjectFiles:
    """Read what could act in a project, without following it: nothing is run, and no file is waited
    for.
    """
    # The real path: a link to a trusted folder could be turned to another one afterwards.
    real = os.path.realpath(project)
    folder = project_folders(real)[0]
    files: dict[str, bytes] = {}
    problems: list[str] = []
    for name in (PROJECT_SETTINGS, PROJECT_HOOKS):
        try:
            data = _document(folder, name)
        except UsageError as error:
            problems.append(str(error))
            continue
        if data is not None:
            files[name] = data
    return ProjectFiles(
        path=real,
        # Part of what is trusted: where others can write, a folder of the same name and content may
        # be made again by another user, who then owns the scripts.
        owner=os.stat(real).st_uid,
        files=files,
        scripts=_hashes(folder, _scripts_in(files, real)),
        problems=tuple(dict.fromkeys(problems)),
    )


def _document(folder: SourceFolder, name: str) -> bytes | None:
    """A settings file of a project, if it can be read as what it is; None where there is none."""
    found = read_small_file(folder, name, LARGEST_PROJECT_FILE)
    if found is None:
        return None
    if name == PROJECT_HOOKS:
        hooks_of_json(found.data, found.path)
    else:
        read_toml(found.data, found.path)
    return found.data


def _scripts_in(files: Mapping[str, bytes], project: str) -> list[str]:
    named = (name for command in commands_in(files) for name in _named_in(command, project))
    # A command may name the settings file itself; its content is hashed as it was read.
    return [name for name in dict.fromkeys(named) if name not in files]


def _hashes(folder: SourceFolder, names: Iterable[str]) -> dict[str, str]:
    """The hash of each script.

    Together they are bounded: this runs in folders that are not trusted yet.
    """
    found: dict[str, str] = {}
    left = LARGEST_SCRIPT
    for name in names:
        found[name], size = script_hash(folder, name, left)
        left -= size
    return found


def commands_in(files: Mapping[str, bytes]) -> list[str]:
    """The commands that a project's hooks would run.

    None of a file that cannot be read, for that one runs nothing.
    """
    found: list[str] = []
    for name, data in files.items():
        table = _hooks_in(name, data)
        try:
            found += [hook.command for hook in read_hooks(table, name)]
        except UsageError:
            continue
    return found


def settings_in(files: Mapping[str, bytes]) -> dict[str, Any]:
    """The settings that count only once the project is trusted, with their values.

    None of a file that cannot be read.
    """
    try:
        return withheld(files.get(PROJECT_SETTINGS, b""), PROJECT_SETTINGS)
    except UsageError:
        return {}


def _written(value: Any) -> str:
    """A value as the user reads it: JSON, which shows where a text begins and ends."""
    # `str` for what JSON does not have, such as a date: no setting takes it, and the question must
    # not fail.
    return json.dumps(value, ensure_ascii=False, default=str)


def _hooks_in(name: str, data: bytes) -> dict[str, Any]:
    try:
        if name == PROJECT_HOOKS:
            return hooks_of_json(data, name)
        table = read_toml(data, name).get("hooks") if b"hooks" in data else None
    except UsageError:
        return {}
    return table if isinstance(table, dict) else {}


def _named_in(command: str, project: str) -> Iterator[str]:
    """The files below the project that the words of a command name.

    Not those that it only writes to.
    """
    # A file that is only written to (`> log`) changes with every run: trust that is bound to it
    # would be asked for again each time.
    before = ""
    for word in _words(_PROJECT_VARIABLE.sub(f"{project}/", command)):
        writes, before = ">" in before, word
        real = None if writes else _real_file(os.path.join(project, word))
        if real is not None and real.startswith(f"{project}/"):
            yield os.path.relpath(real, project)


def _real_file(path: str) -> str | None:
    """The file of this name, all links followed; None when there is none, or can be none."""
    try:
        return os.path.realpath(path) if os.path.isfile(path) else None
    except (ValueError, OSError):
        return None


def _words(command: str) -> list[str]:
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    # With `punctuation_chars`, operators such as `;` and `>` become words of their own, so that
    # `run.sh;` still names `run.sh`.
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError:
        # An open quote: a shell would refuse the command, but a script that it names is hashed all
        # the same.
        return command.split()


def check(seen: ProjectFiles) -> None:
    """See that all that a project wants can be understood.

    Raises:
        UsageError: it cannot; the sentence says where.
    """
    if seen.problems:
        raise UsageError(seen.problems[0])
    check_project(seen.files, seen.path)
    for name, data in seen.files.items():
        read_hooks(_hooks_in(name, data), f"{seen.path}/{name}")


# --- remembering -------------------------------------------------------------------------


class TrustStore:
    """The folders that the user trusts, in `trust.json` beside their settings."""

    def __init__(self, config: Path) -> None:
        self._file = config / FILE

    def covers(self, seen: ProjectFiles) -> bool:
        """True when the user trusts exactly this."""
        known = self._known(seen.path)
        return known is not None and known.owner == seen.owner and known.hashes == seen.hashes

    def question(self, seen: ProjectFiles) -> TrustQuestion | None:
        """What to ask the user.

        None when the folder is trusted as it is, or has nothing that could act.
        """
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
            values=tuple(map(_written, settings.values())),
            commands=tuple(commands_in(seen.files)),
            changed=changed,
        )

    def knows(self, seen: ProjectFiles) -> bool:
        """True when the user trusts this folder, or did before it changed."""
        known = self._known(seen.path)
        return known is not None and known.owner == seen.owner

    def keep(self, seen: ProjectFiles, at: float) -> None:
        """Remember that the user trusts a folder as it is now.

        Raises:
            UsageError: its settings or hooks are not right, or the record cannot be written.
        """
        check(seen)
        trusted = TrustedFolder(path=seen.path, owner=seen.owner, hashes=seen.hashes, at=at)
        self._write([each for each in self._folders() if each.path != seen.path], trusted)

    def forget(self, path: str) -> bool:
        """Trust a folder no longer; False when it was not trusted."""
        folders = self._folders()
        left = [each for each in folders if each.path != os.path.realpath(path)]
        if len(left) < len(folders):
            self._write(left)
        return len(left) < len(folders)

    def _known(self, path: str) -> TrustedFolder | None:
        return next((each for each in self._folders() if each.path == path), None)

    def _folders(self) -> tuple[TrustedFolder, ...]:
        """What is on record.

        Nothing where another user could have written it, or it cannot be read.
        """
        try:
            found = read_small_file(user_folder(self._file.parent), FILE, 16 * LARGEST_FILE)
            if found is None or not self._is_ours():
                return ()
            return msgspec.json.decode(found.data, type=_Kept).folders
        except (UsageError, msgspec.MsgspecError, RecursionError):
            return ()

    def _is_ours(self) -> bool:
        # Write access to this file would be enough to have programs run as this user, so a file
        # that others may write to counts as empty, which only means that the user is asked again.
        about = self._file.stat()
        return about.st_uid == os.geteuid() and not about.st_mode & 0o022

    def _write(self, folders: Iterable[TrustedFolder], *more: TrustedFolder) -> None:
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
                # Before the rename: after a crash the name would otherwise lead to an empty file,
                # and every folder would have to be trusted again.
                os.fsync(handle)
            os.replace(passing, self._file)
        except OSError as error:
            passing.unlink(missing_ok=True)
            raise UsageError(f"cannot write {self._file}: {error.strerror}") from error
