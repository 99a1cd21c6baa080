"""How MCP servers are started: in the sandbox, with little of the user's environment, and so that
nothing of them outlives Weft.

In the sandbox a server sees the disk and writes only to the project and to a folder for what it
downloads.  What programs obey in the project (`.git`, settings of editors, …) is read-only for it,
and so are the repositories inside of it.
Without the sandbox it may do what the user may, but is still kept in a process namespace, or below
the keeper, so that it ends with us.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final

from weft.errors import FinalToolError
from weft.mcp import ServerEntry
from weft.permissions import is_protected, protected_below
from weft.workspace import COMMAND_KEEPER, PipedProgram
from weft.workspace.disk_threads import DiskThreads
from weft.workspace.process.piped import start_piped
from weft.workspace.process.search_path import find_program
from weft.workspace.sandbox.machine import SandboxOptions
from weft.workspace.sandbox.read_only import BoxTerms, ReadOnlySandbox
from weft.workspace.skipped_folders import SKIPPED_FOLDERS

INHERITED: Final = (
    *("HOME", "LOGNAME", "PATH", "SHELL", "USER", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ"),
    *("http_proxy", "https_proxy", "no_proxy", "all_proxy"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE"),
    *("npm_config_registry", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CONFIG_FILE"),
    *("UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX", "UV_FIND_LINKS", "PIP_FIND_LINKS"),
)
"""What servers find of the user's environment; all else an entry has to name."""
MOST_FOLDERS: Final = 5_000
"""Folders of a project that are searched for repositories before a server is started."""
MOST_REPOSITORIES: Final = 200
_CACHES: Final = ("XDG_CACHE_HOME", "npm_config_cache", "UV_CACHE_DIR", "UV_TOOL_DIR")
"""What tells programs where to keep what they download."""


def server_environment(environ: Mapping[str, str], passed: Sequence[str]) -> dict[str, str]:
    """The part of the user's environment that servers may see."""
    return {name: environ[name] for name in (*INHERITED, *passed) if name in environ}


class ServerLauncher:
    """Starts the servers of one project."""

    def __init__(
        self,
        root: str,
        *,
        environ: Mapping[str, str],
        hidden: Sequence[str],
        options: SandboxOptions,
        mode: str,
        downloads: Path,
    ) -> None:
        """`mode` is that of the sandbox: auto, on or off; `hidden` are files and folders that no
        server may see; `downloads` is where each has a folder of its own."""
        self.root = root
        self._hidden = tuple(hidden)
        self._mode = mode
        self._downloads = downloads
        self._box = ReadOnlySandbox(
            environ=server_environment(environ, options.passed), hidden=hidden, options=options
        )

    async def why_unconfined(self, entry: ServerEntry) -> str:
        """Why a server does not run in the sandbox; empty when it does."""
        if not entry.is_sandboxed:
            return "its entry says so"
        if self._mode == "off":
            return "the sandbox is off"
        return await self._box.why_not(self.root)

    async def start(self, entry: ServerEntry, folder: str, unseen: Sequence[str]) -> PipedProgram:
        """Start a server whose variables are filled in; `folder` is the name of its own one, and
        `unseen` are files that this project's rules keep from being read.

        Raises:
            FinalToolError: it cannot, or may not, be started.
        """
        cwd = self._folder(entry)
        argv = (self._program(entry.command, cwd), *entry.args)
        why = await self.why_unconfined(entry)
        if not why:
            # In a thread: a project may have thousands of folders.
            terms = await DiskThreads().run(lambda: self._terms(entry, cwd, folder))
            return await self._box.start(argv, self.root, unseen, terms)
        if self._mode == "on" and entry.is_sandboxed:
            raise FinalToolError(f"it may only run in the sandbox, and there is none: {why}")
        if unseen:
            raise FinalToolError(
                f"without a sandbox ({why}) nothing hides the files that it may not read"
            )
        return await self._unconfined(argv, cwd, {**self._box.environ, **entry.env})

    def _folder(self, entry: ServerEntry) -> str:
        cwd = os.path.realpath(os.path.join(self.root, entry.cwd))
        if not os.path.isdir(cwd):
            raise FinalToolError(f"there is no folder {entry.cwd!r} to start it in")
        return cwd

    def _program(self, command: str, cwd: str) -> str:
        if "/" in command:
            home = self._box.environ.get("HOME", "")
            plain = f"{home}{command[1:]}" if command.startswith("~/") else command
            found = os.path.join(cwd, plain)
            if os.path.isfile(found) and os.access(found, os.X_OK):
                return found
            raise FinalToolError(f"there is no program {command!r}")
        located = find_program(command, self._box.environ["PATH"])
        if located is None:
            raise FinalToolError(f"there is no program {command!r} on PATH")
        return located

    def _terms(self, entry: ServerEntry, cwd: str, folder: str) -> BoxTerms:
        own = str(self._downloads / folder)
        os.makedirs(own, mode=0o700, exist_ok=True)
        caches = {name: f"{own}/{name.lower()}" for name in _CACHES}
        return BoxTerms(
            writable=(self.root, own),
            kept=kept_paths(self.root),
            network=entry.network,
            environ={**caches, **entry.env},
            cwd=cwd,
        )

    async def _unconfined(
        self, argv: Sequence[str], cwd: str, environ: Mapping[str, str]
    ) -> PipedProgram:
        bubblewrap = find_program("bwrap", self._box.environ["PATH"], outside=[self.root])
        if bubblewrap is not None and not await self._box.why_not(self.root):
            wrapped = [
                *(bubblewrap, "--unshare-user", "--unshare-pid", "--die-with-parent"),
                *("--dev-bind", "/", "/", "--proc", "/proc", "--chdir", cwd, "--", *argv),
            ]
            return await start_piped(wrapped, cwd=cwd, environ=environ, shares_pids=False)
        return await start_piped(argv, cwd=cwd, environ=environ, keeper=COMMAND_KEEPER)


def kept_paths(root: str) -> tuple[str, ...]:
    """What programs obey at the top of a project, and the repositories in it, as far as it is
    there: no server can write it."""
    named = tuple(
        f"{root}/{name}"
        for name in sorted(os.listdir(root))
        if not os.path.islink(f"{root}/{name}")
        and (is_protected(name) or is_protected(f"{name}/x") or protected_below(name))
    )
    # Bubblewrap takes a bounded number of options, and does not start with more.
    return (*named, *islice(inner_repositories(root), MOST_REPOSITORIES))


def inner_repositories(root: str) -> Iterator[str]:
    """The `.git` of repositories below a project, which no file history holds; those nearer to its
    top first, and not beyond a bound of folders."""
    left = deque([root])
    for _ in range(MOST_FOLDERS):
        if not left:
            return
        folder = left.popleft()
        found: list[os.DirEntry[str]] = []
        with suppress(OSError), os.scandir(folder) as entries:
            found.extend(entries)
        if folder != root:
            yield from (each.path for each in found if _is_repository(each))
        left.extend(each.path for each in found if _is_entered(each))


def _is_repository(entry: os.DirEntry[str]) -> bool:
    return entry.name == ".git" and not entry.is_symlink()


def _is_entered(entry: os.DirEntry[str]) -> bool:
    if entry.name == ".git" or entry.name in SKIPPED_FOLDERS:
        return False
    return entry.is_dir(follow_symlinks=False)
