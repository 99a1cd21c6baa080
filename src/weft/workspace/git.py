"""Safe git: all of Weft's own git calls, made so that a repository's settings start no program.

A repository's settings name programs: filters, hooks, monitors, transports, helpers.  They are not
switched off one by one, because no list of them stays whole: a new git brings new ones, an include
may hold for worktrees alone, and the name of a filter need not fit on a command line.  Git never
sees them.  It is given a stand-in, a git directory of ours that lives as long as a few calls:
objects, refs, index and ignore files are links to the real ones; the settings are written here,
from a short list of values that only say how data is stored.  Missing objects are missing, because
there is no remote to fetch them from.

The user's own settings are not read either.  They are honest, but a filter of theirs (LFS) fetches
from where the repository says.

What is left to git is reading: whatever changes the real repository is done by the caller.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from weft.errors import FinalToolError
from weft.workspace.base import ProcessCommand, Runner, RunResult
from weft.workspace.git_repository import GitRepository, read_small

SECONDS: Final = 300.0
_PLACE: Final = ".git-"
"""What the names of the folders of stand-ins begin with."""
_SWITCHES: Final = (
    # All of this follows from settings that are not there; said once more in case one slips in.
    *("--no-pager", "--no-optional-locks"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "protocol.allow=never"),
    *("-c", "safe.bareRepository=explicit"),
    *("-c", "submodule.recurse=false"),
    *("-c", "gc.auto=0"),
    *("-c", "advice.detachedHead=false"),
)
_ENVIRON: Final = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_PROTOCOL_FROM_USER": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_CONFIG_COUNT": "0",
}
_LINKED: Final = (
    *("objects", "refs", "packed-refs", "reftable", "shallow", "index"),
    *("info/exclude", "info/attributes", "info/sparse-checkout"),
)
"""What git reads as data.  Attributes may name filters; no setting says what those are."""
_BOOLEAN: Final = "true|yes|on|1|false|no|off|0"
_SETTINGS: Final = {
    "extensions.objectformat": "sha1|sha256",
    "extensions.refstorage": "files|reftable",
    "core.filemode": _BOOLEAN,
    "core.symlinks": _BOOLEAN,
    "core.ignorecase": _BOOLEAN,
    "core.autocrlf": f"input|{_BOOLEAN}",
    "core.eol": "lf|crlf|native",
    "core.sparsecheckout": _BOOLEAN,
    "core.sparsecheckoutcone": _BOOLEAN,
}
"""The settings that are taken over, with the values that they may have: none names a program."""
_READ: Final = r"^(extensions\.[a-z]+|core\.[a-z]+)$"
_FOLLOWED: Final = r"^(remote\..*\.url|branch\..*\.(remote|merge)|user\.(name|email))$"


@asynccontextmanager
async def open_safe_git(
    runner: Runner, repository: GitRepository, scratch: Path
) -> AsyncIterator[SafeGit]:
    """Git over a repository, for a few calls; `scratch` is a folder that only the user can enter.

    Raises:
        FinalToolError: there is no git, or the repository cannot be read.
    """
    async with _own_place(scratch) as place:
        git = SafeGit(runner, repository, place)
        await git.prepare()
        yield git


@asynccontextmanager
async def open_view(
    runner: Runner, top: str, scratch: Path, make: Callable[[str], Mapping[str, str]]
) -> AsyncIterator[SafeGit]:
    """Git over a stand-in that the caller makes, where a stand-in for that would only take time.

    `make` gets a path, puts a git directory of links there, and returns its settings; it runs in a
    thread.  `top` is the folder whose programs are not run.

    Raises:
        FinalToolError: there is no git.
    """
    async with _own_place(scratch) as place:
        common = str(place / "repository")
        git = SafeGit(runner, GitRepository(top=top, records=common, common=common), place)
        await anyio.to_thread.run_sync(git.take_over, make)
        yield git


@asynccontextmanager
async def _own_place(scratch: Path) -> AsyncIterator[Path]:
    place, lock = await anyio.to_thread.run_sync(_new_place, scratch)
    try:
        yield place
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(_remove_place, place, lock)


def _new_place(scratch: Path) -> tuple[Path, int]:
    """A folder for a stand-in, and the lock that says that a living process uses it."""
    _sweep(scratch)
    while True:
        place = Path(tempfile.mkdtemp(prefix=_PLACE, dir=scratch))
        # Until it is locked it looks like a leftover.  A sweep that took it for one has the lock,
        # or has removed the folder already; then another one is made.
        with suppress(FileNotFoundError):
            handle = _open_folder(place)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(handle)
                continue
            except OSError:
                pass  # a disk without locks: no sweep can get one either, so nothing is lost
            if place.exists():
                return place, handle
            os.close(handle)


def _sweep(scratch: Path) -> None:
    """Remove the stand-ins of processes that were killed: their locks ended with them."""
    for place in scratch.glob(f"{_PLACE}*"):
        with suppress(OSError):
            handle = _open_folder(place)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(place, ignore_errors=True)
            finally:
                os.close(handle)


def _remove_place(place: Path, lock: int) -> None:
    shutil.rmtree(place, ignore_errors=True)
    os.close(lock)


def _open_folder(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


class SafeGit:
    """Git calls that run no program of a repository; `open_safe_git` makes one."""

    def __init__(self, runner: Runner, repository: GitRepository, place: Path) -> None:
        program = runner.which("git", not_below=repository.top)
        if program is None:
            raise FinalToolError("there is no git on this machine")
        self.repository = repository
        self.common = place / "repository"
        """The stand-in for the shared git directory."""
        self.sparse = ""
        """The settings of a sparse checkout, where they stand in `config.worktree`."""
        self.plain_settings = ""
        """Those of the repository's settings that name no program, as lines of a `config`."""
        self.settings: dict[str, str] = {}
        """The same by name."""
        self._records = self.common
        if repository.is_linked:
            self._records = self.common / "worktrees" / os.path.basename(repository.records)
        self._home = place / "home"
        self._runner = runner
        self._program = program

    async def prepare(self) -> None:
        """Make the stand-in."""
        await anyio.to_thread.run_sync(self._link)
        settings = await self._settings(f"{self.repository.common}/config")
        await anyio.to_thread.run_sync(self._check_settings, settings)
        if _is_true(settings.get("extensions.worktreeconfig")):
            own = await self._settings(f"{self.repository.records}/config.worktree")
            sparse = {name: own[name] for name in own if name.startswith("core.sparse")}
            self.sparse = plain_lines(sparse)
            settings |= sparse
        await anyio.to_thread.run_sync(self._write_config, settings)

    def take_over(self, make: Callable[[str], Mapping[str, str]]) -> None:
        """Let the caller make the stand-in.  Blocks."""
        self._home.mkdir()
        self._write_config(make(str(self.common)))

    async def output(self, *args: str, work_tree: str = "") -> str | None:
        """What git prints, None when it fails."""
        result = await self.run(*args, work_tree=work_tree)
        return None if result.exit_code else result.output.strip()

    async def run(
        self,
        *args: str,
        work_tree: str = "",
        stdin: bytes = b"",
        on_output: Callable[[str], None] | None = None,
    ) -> RunResult:
        """Call git; `on_output` gets everything that it prints."""
        environ = {"GIT_DIR": str(self._records), **self._own_home()}
        if work_tree:
            environ["GIT_WORK_TREE"] = work_tree
        return await self._call(args, environ, cwd=work_tree, stdin=stdin, on_output=on_output)

    async def save(
        self, *args: str, into: str, work_tree: str = "", stdin: bytes = b""
    ) -> RunResult:
        """Call git, with all that it prints in a new file, byte for byte."""
        environ = {"GIT_DIR": str(self._records), **self._own_home()}
        if work_tree:
            environ["GIT_WORK_TREE"] = work_tree
        redirected = ("/bin/sh", "-c", 'into="$1"; shift; exec "$@" > "$into"', "sh", into)
        return await self._call(args, environ, cwd=work_tree, stdin=stdin, before=redirected)

    async def follows(self) -> list[tuple[str, str]]:
        """Remotes, what branches follow, and who commits, as the repository's settings have them:
        to be told, and never to be obeyed.

        Raises:
            FinalToolError: the settings cannot be read.
        """
        return await self._matching(f"{self.repository.common}/config", _FOLLOWED)

    async def user_excludes(self) -> str:
        """The user's own ignore file for every repository: all that is read of their settings."""
        asked = ("--type=path", "--default", "~/.config/git/ignore", "--get", "core.excludesFile")
        found = await self._call(
            ("config", "--global", "--no-includes", *asked), {"GIT_DIR": str(self.common)}
        )
        return "/dev/null" if found.exit_code else found.output.rstrip("\n")

    # -- the stand-in

    def _link(self) -> None:
        self._home.mkdir()
        _link_data(self.repository.common, self.common)
        (self.common / "config").write_text("[core]\n\trepositoryformatversion = 0\n")
        if self.repository.is_linked:
            _link_data(self.repository.records, self._records)
            (self._records / "commondir").write_text("../..\n")
            (self._records / "gitdir").write_text(f"{self.repository.top}/.git\n")

    async def _settings(self, file: str) -> dict[str, str]:
        """Some settings of one file, as text; what it includes is not read."""
        return dict(await self._matching(file, _READ))

    async def _matching(self, file: str, names: str) -> list[tuple[str, str]]:
        if not await anyio.to_thread.run_sync(os.path.isfile, file):
            return []
        found = await self.run(
            "config", "--file", file, "--no-includes", "-z", "--get-regexp", names
        )
        # Exit code 1 means that no setting matched, which is no failure.
        if found.exit_code > 1 or found.exit_code < 0 or found.truncated:
            raise FinalToolError(f"git cannot read {file!r}: {found.errors.strip()[-300:]}")
        pairs = (entry.partition("\n") for entry in found.output.split("\0") if entry)
        # A name without a value is true.
        return [(name, value if mark else "true") for name, mark, value in pairs]

    def _write_config(self, settings: Mapping[str, str]) -> None:
        self.settings = {
            name: value.lower() for name, value in settings.items() if _is_taken(name, value)
        }
        self.plain_settings = plain_lines(settings)
        text = f"[core]\n\trepositoryformatversion = 1\n\tbare = false\n{self.plain_settings}"
        (self.common / "config").write_text(text)

    def _check_settings(self, settings: dict[str, str]) -> None:
        elsewhere = settings.get("core.worktree", "")
        records, top = self.repository.records, self.repository.top
        if (
            elsewhere
            and not self.repository.is_linked
            and os.path.realpath(os.path.join(records, elsewhere)) != top
        ):
            raise FinalToolError(f"the repository of {top!r} has its work tree in {elsewhere!r}")
        for name in ("extensions.objectformat", "extensions.refstorage"):
            if name in settings and not _is_known(name, settings[name]):
                raise FinalToolError(f"{name} is {settings[name]!r}, which is not supported")

    # -- the call

    def _own_home(self) -> dict[str, str]:
        """A home without settings: an old git has no switch that turns them off."""
        return {**_ENVIRON, "HOME": str(self._home), "XDG_CONFIG_HOME": str(self._home)}

    async def _call(
        self,
        args: tuple[str, ...],
        environ: dict[str, str],
        cwd: str = "",
        stdin: bytes = b"",
        on_output: Callable[[str], None] | None = None,
        before: tuple[str, ...] = (),
    ) -> RunResult:
        return await self._runner.run(
            ProcessCommand(
                argv=(*before, self._program, *_SWITCHES, *args),
                cwd=cwd or str(self._home),
                env=environ,
                stdin=stdin,
                timeout_seconds=SECONDS,
                errors_apart=True,
                # A command with a `stop` event shows its watcher all output; others cut it.
                stop=None if on_output is None else anyio.Event(),
            ),
            on_output,
        )


def _link_data(real: str, stand_in: Path) -> None:
    """A git directory with the data of another one."""
    (stand_in / "info").mkdir(parents=True)
    shared = [name for name in os.listdir(real) if name.startswith("sharedindex.")]
    for name in (*_LINKED, *shared):
        path = os.path.realpath(f"{real}/{name}")
        if os.path.isdir(path) or os.path.isfile(path):
            (stand_in / name).symlink_to(path)
    for name in ("objects", "refs"):  # what makes a folder a git directory
        if not (stand_in / name).exists():
            (stand_in / name).mkdir()
    _copy_head(real, stand_in)


def _copy_head(real: str, stand_in: Path) -> None:
    """Copy HEAD.  It cannot be a link to the file: git takes a link for the branch it names."""
    head = f"{real}/HEAD"
    if os.path.islink(head) and os.readlink(head).startswith("refs/"):
        (stand_in / "HEAD").symlink_to(os.readlink(head))
    else:
        (stand_in / "HEAD").write_bytes(read_small(head) or b"")


def _is_known(name: str, value: str) -> bool:
    return re.fullmatch(_SETTINGS[name], value, re.IGNORECASE) is not None


def _is_true(value: str | None) -> bool:
    return value is not None and value.lower() in ("true", "yes", "on", "1")


def _is_taken(name: str, value: str) -> bool:
    return name in _SETTINGS and _is_known(name, value)


def plain_lines(settings: Mapping[str, str]) -> str:
    """Settings as lines of a file; those that are not on the list are left out."""
    lines: list[str] = []
    for name, value in sorted(settings.items()):
        if _is_taken(name, value):
            section, _, key = name.partition(".")
            lines.append(f"[{section}]\n\t{key} = {value.lower()}\n")
    return "".join(lines)
