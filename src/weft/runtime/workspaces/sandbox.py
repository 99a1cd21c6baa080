"""The sandbox as the settings want it; shared by all sessions of an application."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from weft.config.paths import WeftPaths
from weft.config.settings import Config
from weft.permissions import PermissionRule
from weft.workspace import ProcessCommand, Runner, SessionBoundaries
from weft.workspace.disk_threads import DiskThreads
from weft.workspace.sandbox.machine import ProcessSandbox, SandboxOptions, SandboxReport
from weft.workspace.sandbox.overlay_commit import ChangeJudge, OverlayCommit
from weft.workspace.sandbox.overlay_recovery import RecoveredCommand, forget_records, settle
from weft.workspace.sandbox.runner import SandboxRunner
from weft.workspace.sandbox.scratch import ScratchPlace

if TYPE_CHECKING:  # few commands may reach anything
    from weft.workspace.egress.judge import EgressJudge

LEAST_KEPT: Final = 64 * 1024 * 1024
"""Bytes of half-done work that are kept whatever the quota is."""


class SandboxFactory:
    """The sandbox of one application."""

    def __init__(
        self,
        config: Config,
        *,
        environ: Mapping[str, str],
        places: WeftPaths,
        store: Sequence[Path] = (),
        added: Sequence[str] = (),
    ) -> None:
        """`store` names what a store is made of, files and folders.

        It may lie elsewhere than the rest of our data.
        """
        self._is_required = config.get("sandbox.mode") == "on"
        is_kept = config.get("history.quota") > 0
        self._kept_bytes = max(0, config.get("history.max_file")) if is_kept else 0
        self._aside_bytes = max(0, config.get("history.quota")) // 2
        self._added = tuple(added)
        self._folder = os.path.realpath(places.sandbox)
        # Keys, trust and conversations: a command that a model wrote must neither read nor change
        # them.
        hidden = [places.home, places.config, *store]
        self._sandbox = ProcessSandbox(
            environ=environ,
            folder=self._folder,
            hidden=[str(folder.resolve()) for folder in hidden],
            options=SandboxOptions(
                network=config.get("sandbox.network"),
                unix_sockets=config.get("sandbox.unix_sockets"),
                shown=tuple(config.get("sandbox.show")),
                passed=tuple(config.get("environment.pass")),
                # Never less: what a kill left half done is asked for at the next start.
                kept_bytes=max(self._aside_bytes, LEAST_KEPT),
            ),
        )

    def hide(self, files: Sequence[Path]) -> None:
        """Commands do not see these files and folders either, from now on."""
        self._sandbox.hide([str(file.resolve()) for file in files])

    def runner(
        self,
        inner: Runner,
        *,
        root: str,
        judge: ChangeJudge,
        boundaries: SessionBoundaries,
        base_of: Callable[[str], bytes | None],
        egress: Callable[[ProcessCommand], EgressJudge | None],
    ) -> Runner:
        """The runner of a session; `inner` runs what cannot, or need not, run in the sandbox."""
        return SandboxRunner(
            self._sandbox,
            inner,
            root=root,
            added=self._added,
            judge=judge,
            boundaries=boundaries,
            base_of=base_of,
            egress=egress,
            is_required=self._is_required,
            kept_bytes=self._kept_bytes,
            aside_bytes=self._aside_bytes,
        )

    @property
    def machine(self) -> ProcessSandbox:
        """The sandbox itself."""
        return self._sandbox

    def commit_of(
        self,
        place: ScratchPlace,
        *,
        judge: ChangeJudge,
        boundaries: SessionBoundaries,
        base_of: Callable[[str], bytes | None],
        started_ns: int,
        label: str,
        inner: Runner,
    ) -> OverlayCommit:
        """Brings what lies in a place into the project, under the same checks as a command's
        changes; what a crash leaves of it is found by the label.
        """
        from weft.workspace.sandbox.git_guard import GitGuard  # few sessions keep a candidate

        scratch, root = self._sandbox.scratch, place.roots[0]
        threads = DiskThreads.of(root)
        return OverlayCommit(
            place,
            started_ns=started_ns,
            judge=judge,
            boundaries=boundaries,
            shown=lambda _, path: path,
            base_of=base_of,
            aside=scratch.aside(),
            threads=threads,
            guard=lambda: GitGuard(inner, threads, lambda: scratch.folder),
            kept_bytes=self._kept_bytes,
            aside_bytes=self._aside_bytes,
            tidy=lambda: scratch.settle(place, label),
        )

    @property
    def is_in_use(self) -> bool:
        """True when it is known already that commands run in it."""
        return self._sandbox.is_in_use

    async def recovered(self, label: str) -> RecoveredCommand | None:
        """What a dead process left of a command, finished as far as it can be.

        None when there is nothing of it.  Handed out once.
        """
        return await DiskThreads().run(lambda: settle(self._folder, label))

    async def forget_records(self) -> None:
        """Remove what was written down of commands, for no session will ask for it."""
        own = self._sandbox.scratch.folder
        await DiskThreads().run(lambda: forget_records(self._folder, own))

    async def probe(self, root: str, rules: Sequence[PermissionRule] = ()) -> SandboxReport:
        """Try it on a project; the report says which hosts these rules let commands reach."""
        from weft.permissions.network_rules import reachable_domains  # only for those who ask

        hosts = reachable_domains(rules)
        return await self._sandbox.probe((root, *self._added), hosts)

    async def aclose(self) -> None:
        """End it, with every command."""
        await self._sandbox.aclose()
