"""Workspaces, runners, the sandbox and file history, as the settings of one application
want them.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio

from weft.actors import Supervisor
from weft.clock import Clock
from weft.config.paths import WeftPaths
from weft.config.settings import Config
from weft.runtime.workspaces.file_history import FileHistoryRunner, HistoryPlaces
from weft.store import Store
from weft.workspace import Runner, Workspace
from weft.workspace.local import LocalWorkspace

if TYPE_CHECKING:  # loaded with the first command: it costs start-up time
    from weft.runtime.workspaces.language_servers import LanguageRegistry
    from weft.runtime.workspaces.sandbox import SandboxFactory
    from weft.workspace.views.copy_view import CopyView
    from weft.workspace.views.held_view import HeldView

_PYTHON_SERVERS = (
    "ty",
    "pyright-langserver",
    "basedpyright-langserver",
    "pyrefly",
    "ruff",
)
_SCRIPT_SERVERS = ("typescript-language-server", "vtsls")
SERVER_PROGRAMS: Final = {
    **dict.fromkeys((".py", ".pyi"), _PYTHON_SERVERS),
    **dict.fromkeys((".ts", ".mts", ".cts", ".tsx"), _SCRIPT_SERVERS),
    **dict.fromkeys((".js", ".mjs", ".cjs", ".jsx"), _SCRIPT_SERVERS),
    **dict.fromkeys((".c", ".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx", ".m"), ("clangd",)),
    ".go": ("gopls",),
    ".rs": ("rust-analyzer",),
    ".zig": ("zls",),
    ".lua": ("lua-language-server",),
    ".php": ("intelephense",),
    **dict.fromkeys((".sh", ".bash"), ("bash-language-server",)),
}
"""The programs of known language servers by suffix.  Here, because most runs have none of them on
PATH and must not load what knows more; a test holds it equal to `lsp.programs_by_suffix`.
"""
# Without ruff, which only lints, and without what may be a stand-in.
_MAIN_PROGRAMS: Final = sorted(
    {each for all in SERVER_PROGRAMS.values() for each in all} - {"ruff", "rust-analyzer"}
)


class WorkspaceFactory:
    """What all sessions of an application reach the machine through."""

    def __init__(
        self,
        config: Config,
        *,
        environ: Mapping[str, str],
        places: WeftPaths,
        added: Sequence[str] = (),
        runner: Runner | None = None,
    ) -> None:
        """`added` names further folders that sessions may work in.

        A `runner` that is handed in runs all commands as they are: there is no sandbox then.
        """
        self._config = config
        self._environ = environ
        self._places = places
        # Put together once: every turn looks at it several times.
        self._restart = str(places.servers_restart)
        self.added = tuple(added)
        """Further folders that sessions may work in."""
        self._own_runner = runner
        self._workspaces: dict[str, Workspace] = {}
        self.views: dict[str, HeldView | CopyView] = {}
        """The overlays of candidates that are open here, by their names."""
        self.hidden: list[Path] = []
        """What no command may see; it may grow."""
        self._sandbox: SandboxFactory | None = None
        self._languages: LanguageRegistry | None = None
        self._has_servers: bool | None = None
        self._restarted = 0
        self._served: dict[tuple[str, str], bool] = {}

    @property
    def environ(self) -> Mapping[str, str]:
        """The variables of the application."""
        return self._environ

    @cached_property
    def runner(self) -> Runner:
        """Runs programs as they are."""
        if self._own_runner is not None:
            return self._own_runner
        from weft.workspace import COMMAND_KEEPER, LocalRunner  # with the first command

        passed = self._config.get("environment.pass")
        return LocalRunner(self._environ, passed=passed, keeper=COMMAND_KEEPER)

    async def why_no_keeper(self) -> str:
        """Why commands outside the sandbox have no keeper; empty where they have one, which is
        tried."""
        from weft.workspace import COMMAND_KEEPER

        link = await COMMAND_KEEPER.take(self._environ)
        if link is not None:
            link.give_back()
        return COMMAND_KEEPER.why_not if link is None else ""

    def workspace(self, project: str) -> Workspace:
        """The files of a project."""
        if project not in self._workspaces:
            kept = int(self._config.get("history.max_file"))
            self._workspaces[project] = LocalWorkspace(project, self.added, kept_bytes=kept)
        return self._workspaces[project]

    async def forget_files(self, project: str, *, is_needed: bool) -> None:
        """Remove the copies of files that commands in a project could have changed.

        `is_needed`: a turn there may have to be made up for with them; then later.
        """
        from weft.workspace.history.shared_histories import forget_preimages

        folder = str(self._places.home / "files")
        for root in (project, *self.added):
            work = partial(forget_preimages, root, folder, is_needed=is_needed)
            await anyio.to_thread.run_sync(work)

    def kept_files(self) -> str:
        """Where files are that commands removed and no rewind brings back; empty without any."""
        from weft.workspace.sandbox.scratch import KEPT

        folder = self._places.sandbox / KEPT
        if not folder.is_dir() or not any(folder.iterdir()):
            return ""
        return f"files that commands removed are kept in {folder}, up to half of history.quota"

    async def forget_records(self) -> None:
        """Remove what the sandbox wrote down of commands, for no session will ask for it."""
        if self._places.sandbox.is_dir() and (sandbox := self.sandbox()) is not None:
            await sandbox.forget_records()

    def file_history(self, project: str, store: Store) -> FileHistoryRunner:
        """What a session of a store needs to know what its commands changed, and to take
        it back.
        """
        # History on disk is found again through the log; with a store in memory there is no log
        # later.
        is_home = holds_home(project, self._places.user)
        places = HistoryPlaces(
            quota=max(0, int(self._config.get("history.quota"))),
            max_file=max(0, int(self._config.get("history.max_file"))),
            folder=self._places.home / "files" if store.is_lasting else None,
            skip=(str(self._places.home),),
            # To watch a whole home folder would take more inotify watches and room than there are.
            unwatched=f"{project} is not a project" if is_home else "",
        )
        return FileHistoryRunner(project, self.added, lambda: self.runner, places)

    @property
    def may_be_sandboxed(self) -> bool:
        """Whether commands run in a sandbox where this machine has one; it is not asked here."""
        return self._own_runner is None and self._config.get("sandbox.mode") != "off"

    @property
    def is_sandboxed(self) -> bool:
        """Whether it is known that commands run in a sandbox; the first one shows it."""
        return self._sandbox is not None and self._sandbox.is_in_use

    def sandbox(self) -> SandboxFactory | None:
        """The sandbox that commands run in; None where they run as they are."""
        if not self.may_be_sandboxed:
            return None
        if self._sandbox is None:
            from weft.runtime.workspaces.sandbox import SandboxFactory  # with the first command

            self._sandbox = SandboxFactory(
                self._config,
                environ=self._environ,
                places=self._places,
                store=self.hidden,
                added=self.added,
            )
        return self._sandbox

    def may_be_served(self, path: str, project: str) -> bool:
        """Whether a language server may be there for this file; a few looks at `PATH`, once a
        suffix.
        """
        self._heed_restart()
        suffix = os.path.splitext(path)[1].lower()
        key = (suffix, project)
        if key not in self._served:
            self._served[key] = self._config.get("lsp.enabled") and self._has_server(
                suffix, project
            )
        return self._served[key]

    def _heed_restart(self) -> None:
        """Look for programs again if the user has asked for that, here or in another process."""
        try:
            asked = os.stat(self._restart).st_mtime_ns
        except OSError:
            asked = 0
        if asked != self._restarted:
            self._restarted, self._has_servers = asked, None
            self._served.clear()

    def _has_server(self, suffix: str, project: str) -> bool:
        if self._config.get("lsp.servers"):
            return True
        from weft.workspace.skipped_folders import PROJECT_PROGRAMS  # with the first edit

        folders = [f"{project}/{folder}" for folder in PROJECT_PROGRAMS]
        path = ":".join([*folders, self._environ.get("PATH", "")])
        return _is_any_on(path, SERVER_PROGRAMS.get(suffix, ()))

    @property
    def _rustup(self) -> str:
        return self._environ.get("RUSTUP_HOME") or f"{self._places.user}/.rustup"

    def has_servers(self) -> bool:
        """Whether some language server that can be asked about code is on PATH, or configured."""
        self._heed_restart()
        if self._has_servers is None:
            path = self._environ.get("PATH", "")
            self._has_servers = self._config.get("lsp.enabled") and (
                bool(self._config.get("lsp.servers"))
                or _is_any_on(path, _MAIN_PROGRAMS)
                or _has_rust_analyzer(path, self._rustup)
            )
        return self._has_servers

    def languages(
        self, supervisor: Supervisor, clock: Clock, is_trusted: Callable[[str], Awaitable[bool]]
    ) -> LanguageRegistry:
        """The language servers of the application."""
        if self._languages is None:
            from weft.runtime.workspaces.language_servers import LanguageRegistry

            self._languages = LanguageRegistry(
                self._config,
                environ=self._environ,
                places=self._places,
                hidden=self.hidden,
                is_sandboxed=self.may_be_sandboxed,
                supervisor=supervisor,
                clock=clock,
                is_trusted=is_trusted,
            )
        return self._languages

    def hide(self, files: Sequence[Path]) -> None:
        """Keep commands from seeing these files and folders, from now on."""
        self.hidden += files
        if self._sandbox is not None:
            self._sandbox.hide(files)
        if self._languages is not None:
            self._languages.hide(files)

    async def aclose(self) -> None:
        """End the sandbox, with every command in it."""
        if self._languages is not None:
            self._languages.close()
        if self._sandbox is not None:
            await self._sandbox.aclose()


def _is_any_on(path: str, programs: Sequence[str]) -> bool:
    # One system call for each, and no exception where there is nothing: this is on the way to the
    # first request.  Which of them may be started is decided elsewhere.
    folders = dict.fromkeys(path.split(":"))
    return any(os.access(f"{folder}/{each}", os.X_OK) for folder in folders for each in programs)


def _has_rust_analyzer(path: str, rustup: str) -> bool:
    """Whether there is one behind the program of that name: rustup puts a stand-in on PATH for
    every component, installed or not."""
    if not _is_any_on(path, ["rust-analyzer"]):
        return False
    if not _is_any_on(path, ["rustup"]):
        return True
    toolchains = f"{rustup}/toolchains"
    found = os.listdir(toolchains) if os.path.isdir(toolchains) else []
    return _is_any_on(":".join(f"{toolchains}/{each}/bin" for each in found), ["rust-analyzer"])


def holds_home(path: str, home: Path) -> bool:
    """True for the user's home folder and what is above it: neither is a project."""
    real = os.path.realpath(home)
    return real == path or real.startswith(f"{path.rstrip('/')}/")
