"""A fan-out of a server: the calls of `weft.Fan` that travel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.api import FanCandidate, KeepOutcome
from weft.server.client.server_link import ServerLink


class RemoteFan:
    """A handle on a fan-out, as the server told of it last."""

    def __init__(self, link: ServerLink, view: Any) -> None:
        self._link = link
        self._view = view

    @property
    def id(self) -> str:
        """Its id."""
        return str(self._view.id)

    @property
    def session_id(self) -> str:
        """The session that it began in."""
        return str(self._view.session_id)

    @property
    def is_settled(self) -> bool:
        """Whether nothing of it was at work when it was read last."""
        return bool(self._view.is_settled)

    def _path(self, **more: str) -> dict[str, str]:
        return {"id": self.session_id, "fan": self.id, **more}

    async def candidates(self) -> list[FanCandidate]:
        """The candidates as they are now, best first."""
        self._view = await self._link.call("fan", self._path())
        found: list[FanCandidate] = self._view.candidates
        return found

    async def diff(self, index: int) -> str:
        """What a candidate changed."""
        return str(await self._link.call("fan_diff", self._path(index=str(index))))

    async def verify_output(self, index: int) -> str:
        """What the check of a candidate wrote."""
        return str(await self._link.call("fan_output", self._path(index=str(index))))

    async def compare(self, first: int, second: int) -> str:
        """What is different between two candidates."""
        asked = {"first": first, "second": second}
        return str(await self._link.call("fan_compare", self._path(), query=asked))

    async def keep(self, index: int, preview: bool = False, *, force: bool = False) -> KeepOutcome:
        """Bring what a candidate changed into the project; with `preview`, only look."""
        body = {"index": index, "preview": preview, "force": force}
        outcome: KeepOutcome = await self._link.call("fan_keep", self._path(), body=body)
        return outcome

    async def prune(self, index: int) -> None:
        """Stop a candidate, and drop what it made."""
        await self._link.call("fan_prune", self._path(), body={"index": index})

    async def resume(self, indices: Sequence[int] | None = None) -> None:
        """Go on with candidates that were interrupted."""
        body = {"indices": None if indices is None else list(indices)}
        self._view = await self._link.call("fan_resume", self._path(), body=body)

    async def stop(self) -> None:
        """Stop what is at work."""
        self._view = await self._link.call("fan_stop", self._path())
