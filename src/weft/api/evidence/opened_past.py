"""`Session.open_at`: the project's files as they were at a message, to be looked at and run in.

They are a layer over the project, pinned as for a bisection: what is written in them goes with
them, and nothing of it reaches the project.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

import anyio

from weft.api.evidence.session_bisection import AskCopies
from weft.api.handle import SessionBase, path_of
from weft.errors import UsageError, WeftError
from weft.ids import NodeId
from weft.runtime.bisect.check_ground import CheckGround
from weft.runtime.bisect.state_layers import state_layer
from weft.runtime.snapshots.node_files import files_at
from weft.state import SessionState
from weft.store import Store
from weft.workspace import RunResult

if TYPE_CHECKING:
    from weft.workspace.views.copy_view import CopyView
    from weft.workspace.views.held_view import HeldView

RUN_SECONDS: Final = 600.0


class OpenedPast:
    """Files as they were, open; `aclose` (or leaving it) takes them away."""

    def __init__(
        self, ground: CheckGround, state: SessionState, store: Store, node: NodeId
    ) -> None:
        self._ground = ground
        self._state = state
        self._store = store
        self.node: str = node
        """The message."""
        self.notes: tuple[str, ...] = ()
        """What is not as it was."""
        self._view: HeldView | CopyView | None = None
        self._ready = anyio.Event()
        self._closing = anyio.Event()
        self._closed = anyio.Event()
        self._failed: WeftError | None = None

    async def hold(self) -> None:
        """Have it open until it is closed; the task of it."""
        try:
            await self._ground.with_pinned(self._held)
        except WeftError as error:
            self._failed = error
        finally:
            self._view = None
            self._ready.set()
            self._closed.set()

    async def _held(self) -> None:
        found = await files_at(NodeId(self.node), self._state, self._store)
        moving = await self._ground.look(self._state, self._store)
        moving |= set(self._ground.moving)
        hides = not self._ground.why_copies
        layer = state_layer(found, self._ground.now, moving, hides_secrets=hides)
        if layer.why_not:
            raise UsageError(layer.why_not)
        self.notes = (*self._ground.notes, *((found.why,) if found.why else ()))
        async with self._ground.view_of(layer) as self._view:
            self._ready.set()
            await self._closing.wait()

    async def ready(self) -> None:
        """Wait until it is open.

        Raises:
            UsageError: it cannot be.
        """
        await self._ready.wait()
        if self._failed is not None:
            raise self._failed

    async def read(self, path: str) -> bytes:
        """What a file held.

        Raises:
            UsageError: there was no such file.
        """
        from weft.errors import ToolError

        view = self._open()
        try:
            found = await view.workspace().peek(path_of("file", path), limit=1 << 30)
        except (ToolError, OSError) as error:
            raise UsageError(f"{path!r:.200} cannot be read there: {error}") from error
        if found is None:
            raise UsageError(f"there was no file {path!r:.200}")
        return found.data

    async def run(self, argv: Sequence[str], *, timeout_seconds: float = RUN_SECONDS) -> RunResult:
        """Run a program in them, in the sandbox.

        Raises:
            UsageError: it is closed, or names no program.
        """
        from weft.workspace import ProcessCommand

        words = tuple(argv)
        if isinstance(argv, str) or not words or not all(isinstance(each, str) for each in words):
            raise UsageError('a program is given as words: ["make", "test"]')
        view = self._open()
        command = ProcessCommand(argv=words, cwd=view.root, timeout_seconds=timeout_seconds)
        return await view.runner(self._ground.runner).run(command)

    def _open(self) -> HeldView | CopyView:
        if self._view is None:
            raise UsageError("these files are closed; open_at() opens them again")
        return self._view

    async def aclose(self) -> None:
        """Take them away, with all that was written in them."""
        self._closing.set()
        with anyio.CancelScope(shield=True):
            await self._closed.wait()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


async def opened_past(
    session: SessionBase, state: SessionState, node: NodeId, in_copies: bool | AskCopies
) -> OpenedPast:
    """Open them."""
    if state.settings.get("place"):
        raise UsageError("a candidate of a fan-out has files of its own, and no states of them")
    project, services = state.about.project_path, session._host.services
    if not await anyio.Path(project).is_dir():
        raise UsageError(f"the project is not on this machine: {project}")
    async with session._host.registry.reading(session.id) as store:
        ground = CheckGround(services, store, project, check="", timeout_seconds=RUN_SECONDS)
        if why := await ground.why_no_overlay():
            allowed = await in_copies(why) if callable(in_copies) else in_copies
            if not allowed:
                raise UsageError(
                    f"there is no overlay for the files here: {why}. They can be opened in a copy, "
                    "outside the sandbox, where you allow that (`in_copies=True`)"
                )
        past = OpenedPast(ground, state, store, node)
        services.supervisor.start(past.hold, "open the past")
        try:
            await past.ready()
        except BaseException:
            await past.aclose()
            raise
    return past
