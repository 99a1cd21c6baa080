"""Recovery probe: what became, on the machine, of what a dead process left open in a session's log."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping

from weft.errors import ToolError
from weft.ids import CallUid, SessionId
from weft.loop import RecoveredCall
from weft.messages import Usage
from weft.runtime.session_workspace import SessionWorkspace
from weft.session import RecoveryProbe
from weft.workspace import Workspace


class SessionRecoveryProbe(RecoveryProbe):
    """The probe of one session."""

    def __init__(
        self,
        files: Workspace,
        workspace: SessionWorkspace,
        usage_of: Callable[[SessionId], Awaitable[Mapping[str, Usage]]],
    ) -> None:
        """`files` are the project's without the session's boundaries: a hash changes nothing."""
        self._files = files
        self._workspace = workspace
        self._usage_of = usage_of

    async def file_hashes(self, paths: Iterable[str]) -> Mapping[str, str]:
        return {path: await self._hash(path) for path in paths}

    async def recovered_calls(self, calls: Iterable[CallUid]) -> Mapping[CallUid, RecoveredCall]:
        return await self._workspace.recovered_calls(calls)

    async def children_used(
        self, children: Iterable[SessionId]
    ) -> Mapping[SessionId, Mapping[str, Usage]]:
        return {child: await self._usage_of(child) for child in children}

    async def _hash(self, path: str) -> str:
        try:
            found = await self._files.peek(path)
        except ToolError:
            # Equal to no hash and to no absence, so that the effect counts as unknown.
            return "unreadable"
        return found.hash if found is not None else ""
