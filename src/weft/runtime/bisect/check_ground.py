"""Where the checks of a bisection run: overlays over the project as it is now, one for each check,
thrown away behind it.

The project is pinned as for fan-outs, so that what the user changes meanwhile reaches no check.
Its place on disk is locked while the process lives; what a killed one left is swept by the next.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Final, TypeVar

import anyio
import anyio.to_thread
import msgspec

from weft.errors import ToolError, UsageError, WeftError
from weft.evidence.bisection import Verdict, verdict_of
from weft.ids import new_id
from weft.runtime.bisect.state_layers import StateLayer, write_layer
from weft.runtime.fan.base_files import BaseFiles, Isolation, make_base
from weft.runtime.fan.base_watch import BaseWatch
from weft.runtime.fan.candidate_copy import apply_layer, can_clone, copy_at, make_copy, set_up
from weft.runtime.fan.fan_places import FanPlaces
from weft.runtime.services import Services
from weft.runtime.snapshots.project_snapshots import ProjectSnapshots
from weft.state import SessionState
from weft.store import Store
from weft.workspace import ProcessCommand, Runner, RunResult
from weft.workspace.disk_threads import DiskThreads
from weft.workspace.history.project_tree import ProjectTree, TreeEntry, entries_of
from weft.workspace.sandbox.client import SandboxUnavailable
from weft.workspace.views.copy_view import CopyView
from weft.workspace.views.held_view import HeldView

logger = logging.getLogger(__name__)

KIND: Final = "bisect"
"""The folder below the sandbox's own that the places lie in."""
OUTPUT_CHARACTERS: Final = 4_000
"""How much of a check's output is kept: its end."""
_NAMED: Final = 3
_LOOKS: Final = 3
"""How often the project is looked at until it stands still while it is pinned."""
T = TypeVar("T")


class CheckRun(msgspec.Struct, frozen=True):
    """How one run of the check ended."""

    verdict: Verdict
    exit_code: int | None
    detail: str
    output: str
    seconds: float


class CheckGround:
    """The pinned project, and the checks on it."""

    def __init__(
        self,
        services: Services,
        store: Store,
        project: str,
        *,
        check: str,
        timeout_seconds: float,
    ) -> None:
        self._services = services
        self._store = store
        self._check = check
        self._timeout_seconds = timeout_seconds
        self.root = services.workspaces.workspace(project).root
        self.places = bisect_places(services)
        self.id = ""
        self.why_copies = ""
        """Why the checks run in copies; empty where each has an overlay."""
        self._base: BaseFiles | None = None
        self._watch: BaseWatch | None = None
        self._count = 0
        self.now: Mapping[str, TreeEntry] = {}
        """The files of the project, once it is pinned and was looked at."""
        self.tree: ProjectTree
        """The same as a tree."""

    @property
    def runner(self) -> Runner:
        """Runs what runs outside of its views."""
        return self._services.workspaces.runner

    async def why_no_overlay(self) -> str:
        """Why the checks have no overlays here, and run in copies; empty where they have."""
        self.why_copies = await self.places.why_not(self.root)
        return self.why_copies

    async def with_pinned(self, work: Callable[[], Awaitable[T]]) -> T:
        """Have the project pinned while this works; nothing of it is left afterwards.

        Raises:
            UsageError: it cannot be pinned.
            WeftError: what the work raises, as it is.
        """
        await anyio.to_thread.run_sync(sweep_places, self.places)
        self.id = new_id("bis", self._services.clock.now())
        try:
            lock = await anyio.to_thread.run_sync(self.places.claim, self.id)
        except OSError as error:
            raise UsageError(f"there is no place for the checks: {error.strerror}") from error
        try:
            await self._pin()
            return await self._beside_watch(work)
        finally:
            with anyio.CancelScope(shield=True):
                if self._watch is not None:
                    self._watch.close()
                os.close(lock)
                await anyio.to_thread.run_sync(self.places.remove, self.id)

    async def _beside_watch(self, work: Callable[[], Awaitable[T]]) -> T:
        failed: WeftError | None = None
        found: list[T] = []
        async with anyio.create_task_group() as group:
            if self._watch is not None:
                group.start_soon(self._watch.run)
            try:
                found.append(await work())
            except WeftError as error:
                failed = error  # not in a group: callers catch it by its kind
            group.cancel_scope.cancel()
        if failed is not None:
            raise failed
        return found[0]

    async def _pin(self) -> None:
        folder, config = self.places.folder(self.id), self._services.config
        isolation: Isolation = "overlay"
        if self.why_copies:
            can = await anyio.to_thread.run_sync(can_clone, self.root, folder)
            isolation = "reflink" if can else "worktree"
        try:
            self._base = await make_base(
                *(self.runner, self.root, folder, "now"),
                links_ignored=bool(config.get("fan.pin_ignored")) and not self.why_copies,
                isolation=isolation,
                why=self.why_copies,
            )
        except OSError as error:
            raise UsageError(f"the project cannot be pinned: {error.strerror}") from error
        if not self.why_copies:
            self._watch = BaseWatch(self._base)
            await self._watch.start()

    @property
    def notes(self) -> list[str]:
        """What the checks do not see as it was."""
        assert self._base is not None
        ignored, found = self._base.record.ignored, []
        if self.why_copies:
            found.append(f"the checks ran in copies, outside the sandbox: {self.why_copies}")
            found.append("ignored files (dependencies, build products) were not in the copies")
        elif ignored.linked or ignored.shared:
            named = [*ignored.linked, *ignored.shared]
            more = len(named) - _NAMED
            rest = f" and {more} more" if more > 0 else ""
            shown = ", ".join(named[:_NAMED])
            found.append(f"ignored files were those of today: {shown}{rest}")
        if self._base.record.commit:
            found.append("git showed the checks the last commit of today")
        return found

    @property
    def moving(self) -> Collection[str]:
        """What the user changed since the project was pinned."""
        return () if self._watch is None else self._watch.changed

    async def look(self, state: SessionState, store: Store) -> set[str]:
        """Look at the project until it stands still, as it was pinned; returns what was on the move
        meanwhile.

        Raises:
            UsageError: it cannot be looked at.
        """
        project = state.about.project_path
        files = self._services.workspaces.file_history(project, store)
        if files.unknown:
            raise UsageError(f"the files of this project are not known: {files.unknown}")
        snapshots = ProjectSnapshots(files, DiskThreads.of(project), store, lambda paths: set())
        try:
            first = self.tree = await snapshots.tree()
            for _ in range(_LOOKS):
                before, self.tree = self.tree, await snapshots.tree()
                if self.tree.digest == before.digest:
                    break
        except OSError as error:
            raise UsageError(f"the files cannot be looked at: {error.strerror}") from error
        self.now = _entries(self.tree)
        return _differing(_entries(first), self.now)

    # -- one check

    async def run(self, layer: StateLayer) -> CheckRun:
        """Run the check on a state.

        Raises:
            UsageError: the state cannot be made.
        """
        begun = time.monotonic()
        async with self.view_of(layer) as view:
            command = ProcessCommand(
                argv=("/bin/sh", "-c", self._check),
                cwd=view.root,
                timeout_seconds=self._timeout_seconds,
            )
            try:
                result = await view.runner(self.runner).run(command)
            except ToolError as error:
                return CheckRun("none", None, str(error), "", time.monotonic() - begun)
            return self._judged(result, time.monotonic() - begun)

    @asynccontextmanager
    async def view_of(self, layer: StateLayer) -> AsyncIterator[HeldView | CopyView]:
        """A view of a state, which leaves nothing.

        Raises:
            UsageError: the state cannot be made.
        """
        self._count += 1
        number = self._count
        made = self.places.fresh
        folder = await anyio.to_thread.run_sync(made, self.id, f"layer-{number}")
        try:
            view = await self._made(layer, folder, f"check-{number}")
            try:
                yield view
            finally:
                if self._watch is not None and isinstance(view, HeldView):
                    self._watch.remove(view)
                with anyio.CancelScope(shield=True):
                    await view.close()
        finally:
            with anyio.CancelScope(shield=True):
                for name in (f"layer-{number}", f"check-{number}"):
                    await anyio.to_thread.run_sync(self.places.remove, self.id, name)

    async def _made(self, layer: StateLayer, folder: str, name: str) -> HeldView | CopyView:
        try:
            await write_layer(layer, folder, self.root, self._store)
            return await self._open(folder, name)
        except OSError as error:
            raise UsageError(f"it cannot be made: {error.strerror}") from error

    def _judged(self, result: RunResult, seconds: float) -> CheckRun:
        output = result.output[-OUTPUT_CHARACTERS:]
        if result.timed_out:
            detail = f"it was ended after {self._timeout_seconds:g} s"
            return CheckRun("none", None, detail, output, seconds)
        verdict, detail = verdict_of(result.exit_code)
        return CheckRun(verdict, result.exit_code, detail, output, seconds)

    async def _open(self, layer: str, name: str) -> HeldView | CopyView:
        assert self._base is not None
        if self.why_copies:
            return await self._copied(self._base, layer, name)
        view = self.places.view(
            self.id,
            name,
            root=self.root,
            pins=(layer, *self._base.layers),
            objects=self._base.record.objects,
        )
        try:
            await view.open()
        except SandboxUnavailable as error:
            raise UsageError(f"the overlay of a check cannot be opened: {error}") from error
        if self._watch is not None:
            await self._watch.add(view)
        return view

    async def _copied(self, base: BaseFiles, layer: str, name: str) -> CopyView:
        folder, config = self.places.folder(self.id, name), self._services.config
        await make_copy(base, folder, clones=base.record.isolation == "reflink")
        copy = copy_at(folder)
        await anyio.to_thread.run_sync(apply_layer, layer, copy)
        if command := str(config.get("fan.setup")):
            await set_up(copy, command, self.runner, self._timeout_seconds)
        return CopyView(copy, most_bytes=int(config.get("fan.max_disk")))


def bisect_places(services: Services) -> FanPlaces:
    """The places of all bisections of an application."""
    return FanPlaces(
        services.workspaces.sandbox,
        str(services.places.sandbox),
        most_bytes=int(services.config.get("fan.max_disk")),
        kind=KIND,
    )


def sweep_places(places: FanPlaces) -> list[str]:
    """Remove what bisections left whose process is gone.  Blocks."""
    return places.sweep(lambda _: False)


def _entries(tree: ProjectTree) -> dict[str, TreeEntry]:
    """Every path of a tree."""
    found: dict[str, TreeEntry] = {}
    for folder, listing in tree.folders.items():
        for name, entry in entries_of(listing.data).items():
            found[f"{folder}/{name}" if folder else name] = entry
    return found


def _differing(before: dict[str, TreeEntry], after: dict[str, TreeEntry]) -> set[str]:
    return {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
