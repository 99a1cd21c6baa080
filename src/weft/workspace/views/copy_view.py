"""A copy of a project for one candidate, where there is no overlay.

Its files are its own, and nothing else is: commands run as they are, on the machine's network, and
are asked for as outside the sandbox.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from weft.errors import FinalToolError
from weft.workspace.base import KEPT_BYTES, ProcessCommand, Runner, RunResult
from weft.workspace.disk_threads import DiskThreads
from weft.workspace.egress.judge import CommandEgress, no_egress
from weft.workspace.local import LocalWorkspace
from weft.workspace.sandbox.removals import folder_size

_NO_BACKGROUND: Final = "a candidate runs nothing in the background; run it without"


class CopyView:
    """One copy."""

    has_own_network: Final = False

    def __init__(self, root: str, *, most_bytes: int) -> None:
        self.root = root
        """The project in the copy."""
        self.most_bytes = most_bytes

    async def close(self) -> None:
        """Nothing of it is open; the copy stays."""

    def runner(self, inner: Runner, egress: CommandEgress = no_egress) -> CopyRunner:
        """Runs commands as they are, with the machine's network: `egress` is not asked."""
        return CopyRunner(self, inner)

    def workspace(self, *, kept_bytes: int = KEPT_BYTES) -> LocalWorkspace:
        """The files of the copy."""
        return LocalWorkspace(self.root, kept_bytes=kept_bytes)


class CopyRunner(Runner):
    """Runs the commands of a candidate that works in a copy."""

    def __init__(self, view: CopyView, inner: Runner) -> None:
        self._view = view
        self._inner = inner

    def which(self, program: str, *, not_below: str = "") -> str | None:
        return self._inner.which(program, not_below=not_below)

    def knows_changes(self, command: ProcessCommand) -> bool:
        # What it changed is found by comparing the copy with the base.
        return True

    async def run(
        self, command: ProcessCommand, on_output: Callable[[str], None] | None = None
    ) -> RunResult:
        if command.stop is not None:
            raise FinalToolError(_NO_BACKGROUND)
        view = self._view
        size = await DiskThreads.of(view.root).run(lambda: folder_size(view.root))
        if size > view.most_bytes and not command.only_reads:
            raise FinalToolError(
                f"the copy that this session works in has {size >> 20:,} MiB, and "
                f"{view.most_bytes >> 20:,} MiB is the limit; remove files with the file tools"
            )
        return await self._inner.run(command, on_output)
