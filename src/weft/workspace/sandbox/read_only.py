"""A sandbox for programs that run beside us: language servers, formatters and MCP servers.

They see the disk as it is, and nothing of it can be written but what `BoxTerms` name.  An overlay,
as commands have it, would not do: it may go on showing a file that was replaced underneath, and
these programs run for hours beside the edits that they are asked about.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec

from weft.errors import FinalToolError
from weft.workspace.process.environment import scrubbed
from weft.workspace.process.piped import PipedProgram, run_filter, start_piped
from weft.workspace.process.search_path import find_program
from weft.workspace.sandbox.hidden import HiddenPaths
from weft.workspace.sandbox.machine import SandboxOptions
from weft.workspace.sandbox.seccomp import program

_TRIAL_SECONDS = 10.0
MOST_FILE_BYTES = 512 * 1024 * 1024
"""In each of these folders; clangd keeps what it made of headers there."""
_TEMPORARY = ("/tmp", "/var/tmp")
"""Empty folders of their own in these places, which go with the program."""


class BoxTerms(msgspec.Struct, frozen=True, kw_only=True):
    """What one program may do besides looking at the disk."""

    writable: tuple[str, ...] = ()
    """Folders that it may write to."""
    kept: tuple[str, ...] = ()
    """What lies in those and cannot be written all the same."""
    network: bool | None = None
    """None: as the settings have it for commands."""
    environ: Mapping[str, str] = {}
    """Besides the scrubbed environment; of the program alone, and not of what puts it into the
    sandbox, which is outside of it and would obey `LD_PRELOAD`."""
    cwd: str = ""
    """Empty: the project."""


class ReadOnlySandbox:
    """What such programs of one application run in."""

    def __init__(
        self,
        *,
        environ: Mapping[str, str],
        hidden: Sequence[str] = (),
        options: SandboxOptions | None = None,
        machine: str = "",
        max_files: int = MOST_FILE_BYTES,
    ) -> None:
        """`machine` is the kind of processor; empty: this one.  `max_files` bounds what a program
        can write into each of its own temporary folders, which take memory."""
        self._max_files = max_files
        self._machine = machine or os.uname().machine
        self._options = options or SandboxOptions()
        self.environ = scrubbed(environ, self._options.passed)
        home = environ.get("HOME", "")
        shown = self._options.shown
        self._hidden = HiddenPaths(os.path.realpath(home) if home else "", shown=shown)
        self._hidden.add(hidden)
        self._why_not: dict[str, str] = {}
        self._knows_sizes = True

    def hide(self, paths: Iterable[str]) -> None:
        """Hide these as well, from programs that are started from now on."""
        self._hidden.add(paths)

    def forget_trials(self) -> None:
        """Try again whether programs can run in it."""
        self._why_not.clear()

    async def why_not(self, root: str) -> str:
        """Why programs cannot run in it; empty when they can.  Found out by trying, once."""
        if root not in self._why_not:
            self._why_not[root] = await self._try(root)
        return self._why_not[root]

    async def _try(self, root: str) -> str:
        try:
            trial = await self.start(["/bin/true"], root)
        except FinalToolError as error:
            return str(error)
        result = await run_filter(trial, b"", seconds=_TRIAL_SECONDS, most=0)
        if result.exit_code == 0:
            return ""
        if self._knows_sizes and "--size" in result.errors:
            self._knows_sizes = False  # a bubblewrap before 0.6.3
            return await self._try(root)
        said = result.errors.splitlines()
        return said[-1] if said else f"bubblewrap ends with {result.exit_code}"

    async def start(
        self,
        argv: Sequence[str],
        root: str,
        hidden: Sequence[str] = (),
        terms: BoxTerms = BoxTerms(),  # noqa: B008  # frozen
    ) -> PipedProgram:
        """Start a program in it that is spoken to.

        Raises:
            FinalToolError: it cannot be started.
        """
        bubblewrap = self._bubblewrap(root)
        if bubblewrap is None:
            raise FinalToolError("bubblewrap (the program bwrap) is not installed")
        code = program(self._machine, secrets.randbits(63), unix_sockets=False)
        # The network namespace does not hold back unix sockets: they are reached by their paths,
        # and whoever listens on one may do anything.
        if code is None:
            raise FinalToolError(f"no filter of system calls is known for {self._machine}")
        options = self._wrapper(root, hidden, argv[0], terms)
        with _handed_over(code) as code_file, _handed_over(_set_inside(terms.environ)) as variables:
            wrapped = [bubblewrap, "--seccomp", str(code_file), "--args", str(variables)]
            return await start_piped(
                [*wrapped, *options, *argv],
                cwd=root,
                environ=self.environ,
                pass_fds=(code_file, variables),
                shares_pids=False,
            )

    def _bubblewrap(self, root: str) -> str | None:
        # One in the project could be replaced by a command.
        return find_program("bwrap", self.environ["PATH"], outside=[root])

    def _wrapper(
        self, root: str, hidden: Sequence[str], started: str, terms: BoxTerms
    ) -> list[str]:
        """The options of bubblewrap; what is mounted later lies over what was before."""
        network = self._options.network if terms.network is None else terms.network
        words = [
            # As root `--unshare-all` alone keeps every capability, and a remount could make the
            # disk writable.
            *("--unshare-all", "--unshare-user", "--cap-drop", "ALL"),
            *(["--share-net"] if network else []),
            *("--new-session", "--die-with-parent"),
            *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
            *self._folder("/dev/shm", self._max_files),
            # Else it is one more folder without a bound; devices can be written to all the same.
            *("--remount-ro", "/dev"),
        ]
        for place in _TEMPORARY:
            if os.path.isdir(place):
                words += self._folder(place, self._max_files)
        # A project or a program that lies in one of those folders has to be seen all the same.
        words += ["--ro-bind", root, root]
        real = os.path.dirname(os.path.realpath(started))
        if any(real.startswith(f"{place}/") for place in _TEMPORARY):
            words += ["--ro-bind", real, real]
        before = [path for path in terms.writable if path.startswith(f"{root}/") or path == root]
        for path in before:
            words += ["--bind", path, path]
        for path in terms.kept:
            words += ["--ro-bind", path, path]
        for path in self._secrets(root, hidden):
            is_folder = os.path.isdir(path)
            words += self._folder(path, 1) if is_folder else ["--ro-bind", "/dev/null", path]
        # After what is hidden: a folder of its own may lie in ours, which no program sees.
        for path in terms.writable:
            words += [] if path in before else ["--bind", path, path]
        return [*words, "--setenv", "TMPDIR", "/tmp", "--chdir", terms.cwd or root, "--"]

    def _folder(self, path: str, most: int) -> list[str]:
        """An empty folder in memory of at most so many bytes, in whole pages."""
        size = ["--size", str(most)] if self._knows_sizes else []
        return [*size, "--tmpfs", path]

    def _secrets(self, root: str, hidden: Sequence[str]) -> list[str]:
        self._hidden.stamp()
        named = [*self._hidden.of_machine([root]), *self._hidden.of_projects([root]), *hidden]
        # By their real names: bubblewrap does not mount over a link.
        real = dict.fromkeys(os.path.realpath(path) for path in named)
        return [path for path in real if os.path.exists(path)]


@contextmanager
def _handed_over(data: bytes) -> Iterator[int]:
    """A file without a name that a program can inherit and read from its beginning."""
    handle = os.memfd_create("options", 0)
    try:
        with open(handle, "wb", closefd=False) as file:
            file.write(data)
        os.lseek(handle, 0, os.SEEK_SET)
        yield handle
    finally:
        os.close(handle)


def _set_inside(environ: Mapping[str, str]) -> bytes:
    """Options of bubblewrap that set variables, as it reads them from a file: on its command line
    every user of the machine could see their values."""
    words = (("--setenv", name, value) for name, value in environ.items())
    return b"".join(os.fsencode(word) + b"\0" for three in words for word in three)
