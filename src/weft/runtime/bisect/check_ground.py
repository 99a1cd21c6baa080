"""Where the checks of a bisection run: overlays over the project as it is now, one for each check,
thrown away behind it.

The project is pinned as for fan-outs, so that what the user changes meanwhile reaches no check.
Its place on disk is locked while the process lives; what a killed one left is swept by the next.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
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
from weft.store import Store
from weft.workspace import ProcessCommand, Runner, RunResult
from weft.workspace.history.project_tree import TreeEntry
from weft.workspace.sandbox.client import SandboxUnavailable
from weft.workspace.views.copy_view import CopyView
from weft.workspace.views.held_view import HeldView

logger = logging.getLogger(__name__)

KIND: Final = "bisect"
"""The folder below the sandbox's own that the places lie in."""
OUTPUT_CHARACTERS: Final = 4_000
"""How much of a check's output is kept: its end."""
_NAMED: Final = 3
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
        """The files of the project, once it is pinned."""

    @property
    def _runner(self) -> Runner:
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
                *(self._runner, self.root, folder, "now"),
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

    # -- one check

    async def run(self, layer: StateLayer) -> CheckRun:
        """Run the check on a state.

        Raises:
            UsageError: the state cannot be made.
        """
        self._count += 1
        number, begun = self._count, time.monotonic()
        made = self.places.fresh
        folder = await anyio.to_thread.run_sync(made, self.id, f"layer-{number}")
        try:
            await write_layer(layer, folder, self.root, self._store)
            return await self._on(folder, f"check-{number}", begun)
        except OSError as error:
            raise UsageError(f"it cannot be made: {error.strerror}") from error
        finally:
            with anyio.CancelScope(shield=True):
                for name in (f"layer-{number}", f"check-{number}"):
                    await anyio.to_thread.run_sync(self.places.remove, self.id, name)

    async def _on(self, layer: str, name: str, begun: float) -> CheckRun:
        view = await self._open(layer, name)
        command = ProcessCommand(
            argv=("/bin/sh", "-c", self._check),
            cwd=view.root,
            timeout_seconds=self._timeout_seconds,
        )
        try:
            result = await view.runner(self._runner).run(command)
        except ToolError as error:
            return CheckRun("none", None, str(error), "", time.monotonic() - begun)
        finally:
            if self._watch is not None and isinstance(view, HeldView):
                self._watch.remove(view)
            with anyio.CancelScope(shield=True):
                await view.close()
        return self._judged(result, time.monotonic() - begun)

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
            await set_up(copy, command, self._runner, self._timeout_seconds)
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
