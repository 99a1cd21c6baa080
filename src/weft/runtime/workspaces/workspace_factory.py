"""Workspaces, runners, the sandbox and file history, as the settings of one application
want them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from weft.config.paths import WeftPaths
from weft.config.settings import Config
from weft.runtime.workspaces.file_history import FileHistoryRunner, HistoryPlaces
from weft.store import Store
from weft.workspace import Runner, Workspace
from weft.workspace.local import LocalWorkspace

if TYPE_CHECKING:  # loaded with the first command: it costs start-up time
    from weft.runtime.workspaces.sandbox import SandboxFactory


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
        self.added = tuple(added)
        """Further folders that sessions may work in."""
        self._own_runner = runner
        self._workspaces: dict[str, Workspace] = {}
        self._hidden: list[Path] = []
        self._sandbox: SandboxFactory | None = None

    @cached_property
    def runner(self) -> Runner:
        """Runs programs as they are."""
        if self._own_runner is not None:
            return self._own_runner
        from weft.workspace import LocalRunner  # with the first command

        return LocalRunner(self._environ, passed=self._config.get("environment.pass"))

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
        from weft.workspace.sandbox.scratch import KEPT, KEPT_DAYS

        folder = self._places.sandbox / KEPT
        if not folder.is_dir() or not any(folder.iterdir()):
            return ""
        return f"files that commands removed are kept in {folder} for {KEPT_DAYS} days"

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
                store=self._hidden,
                added=self.added,
            )
        return self._sandbox

    def hide(self, files: Sequence[Path]) -> None:
        """Keep commands from seeing these files and folders, from now on."""
        self._hidden += files
        if self._sandbox is not None:
            self._sandbox.hide(files)

    async def aclose(self) -> None:
        """End the sandbox, with every command in it."""
        if self._sandbox is not None:
            await self._sandbox.aclose()


def holds_home(path: str, home: Path) -> bool:
    """True for the user's home folder and what is above it: neither is a project."""
    real = os.path.realpath(home)
    return real == path or real.startswith(f"{path.rstrip('/')}/")
