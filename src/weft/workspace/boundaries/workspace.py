"""Edit boundaries of a session: every write is judged here, and the ranges move with what was
written.

`SessionBoundaries` is what one session holds; the log says which are in force.  A range is true of
one version of its file, named by its hash (`base`).  When the file has another hash by now, another
writer changed it (the user, another session, a command outside the sandbox, a write whose record
was lost in a crash), and the range is first brought along by a diff between the two.  So a range
survives changes that are never reported to it.

`BoundedWorkspace` is a workspace that asks before it writes.  What moved is handed out by `take`,
for the append that records the result which moved it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Literal

import msgspec

from weft.errors import FinalToolError, RetryableToolError
from weft.ids import BlobId
from weft.sha256 import sha256
from weft.workspace.base import ChangedFile, FileState, Workspace

if TYPE_CHECKING:  # loaded with the first boundary: it costs start-up time
    from weft.workspace.boundaries.lines import LineRange

MAX_BYTES = 4 * 1024 * 1024
"""Larger files cannot be bounded: each version is kept, so that the range can follow."""


class BoundaryRange(msgspec.Struct, frozen=True, kw_only=True):
    """A range of lines in one version of a file."""

    lines: LineRange
    base: BlobId
    """Hash of that version."""
    name: int
    """Which boundary this is: one that was set anew is another one, whatever its lines."""


class MovedRange(msgspec.Struct, frozen=True, kw_only=True):
    """A range as it is after a change, with the version that it is true of."""

    path: str
    bound: BoundaryRange
    data: bytes


class SessionBoundaries:
    """The boundaries of one session."""

    def __init__(
        self,
        in_force: Callable[[], Mapping[str, BoundaryRange]],
        load: Callable[[BlobId], Awaitable[bytes | None]],
    ) -> None:
        self._in_force = in_force
        self._load = load
        self._ahead: dict[str, BoundaryRange] = {}
        """What moved in this process; the log follows with the next append."""
        self._versions: dict[str, tuple[BlobId, bytes]] = {}
        self._moved: dict[str, MovedRange] = {}

    @property
    def paths(self) -> frozenset[str]:
        """The files that are bounded now."""
        return frozenset(self._in_force())

    def of(self, path: str) -> BoundaryRange | None:
        """The boundary of a file as it was left, None when it has none."""
        known = self._in_force().get(path)
        ahead = self._ahead.get(path)
        # A boundary that the user set anew since has another name, and what we know of the old
        # one's moves does not apply to it.
        if known is None or ahead is None or ahead.name != known.name:
            return known
        return ahead

    async def admit(
        self, path: str, before: bytes | None, after: bytes | None
    ) -> MovedRange | None:
        """Judge one change of a file, from content to content (None: no regular file there).

        Returns what `moved` is to be called with once the change was made; None for a file that is
        not bounded.

        Raises:
            FinalToolError: the change reaches beyond the boundary; says which lines may be changed.
        """
        bound = self.of(path)
        if bound is None:
            return None
        from weft.workspace.boundaries.lines import after_change, refusal  # as above

        present, lines = await self._brought_up_to(path, bound, before)
        if after is None:
            raise FinalToolError(refusal(path, present, None, lines))
        new = after_change(present, after, lines)
        if new is None:
            raise FinalToolError(refusal(path, present, after, lines))
        if len(after) > MAX_BYTES:
            raise FinalToolError(
                f"{path!r} is bounded to {lines} and would be too large to keep that up "
                f"({len(after):,} bytes)"
            )
        digest = BlobId(sha256(after).hexdigest())
        return MovedRange(
            path=path, bound=BoundaryRange(lines=new, base=digest, name=bound.name), data=after
        )

    async def present(self, path: str, now: bytes | None) -> LineRange | None:
        """The range in the file as it is now, None when it is not bounded."""
        bound = self.of(path)
        return None if bound is None else (await self._brought_up_to(path, bound, now))[1]

    def moved(self, moved: MovedRange | None) -> None:
        """The change that was admitted has been made."""
        if moved is None:
            return
        self._ahead[moved.path] = moved.bound
        self._versions[moved.path] = (moved.bound.base, moved.data)
        self._moved[moved.path] = moved

    async def noticed(self, path: str, now: bytes | None) -> None:
        """Move the range along with a change from outside, and have it recorded in the log."""
        bound = self.of(path)
        if bound is None or now is None or len(now) > MAX_BYTES:
            return
        _, lines = await self._brought_up_to(path, bound, now)
        base = BlobId(sha256(now).hexdigest())
        if base != bound.base:
            self.moved(
                MovedRange(
                    path=path,
                    bound=BoundaryRange(lines=lines, base=base, name=bound.name),
                    data=now,
                )
            )

    def take(self) -> tuple[MovedRange, ...]:
        """What moved since the last time, for the log."""
        moved, self._moved = tuple(self._moved.values()), {}
        return moved

    async def _brought_up_to(
        self, path: str, bound: BoundaryRange, now: bytes | None
    ) -> tuple[bytes, LineRange]:
        """The content to judge against and the range in it.

        A bounded file that is gone is judged by what it was, so that removing it sets nothing free.
        """
        if now is not None and sha256(now).hexdigest() == bound.base:
            return now, bound.lines
        base = await self._version(path, bound.base)
        if base is None:
            if now is None:
                raise FinalToolError(
                    f"{path!r} is bounded and not there any more; lift its boundary "
                    "before it is written anew"
                )
            return now, bound.lines
        if now is None:
            return base, bound.lines
        from weft.workspace.boundaries.lines import follow  # as above

        return now, follow(base, now, bound.lines)

    async def _version(self, path: str, base: BlobId) -> bytes | None:
        kept = self._versions.get(path)
        if kept is not None and kept[0] == base:
            return kept[1]
        data = await self._load(base)
        if data is not None:
            self._versions[path] = (base, data)
        return data


class BoundedWorkspace(Workspace):
    """A workspace in which every write keeps to the session's boundaries."""

    def __init__(
        self,
        inner: Workspace,
        boundaries: SessionBoundaries,
        seen: Callable[[str, bytes], None] = lambda path, data: None,
    ) -> None:
        """`seen` is called with each version of a file that goes through here."""
        self.root = inner.root
        self._inner = inner
        self._boundaries = boundaries
        self._seen = seen

    def relative(self, path: str) -> str:
        return self._inner.relative(path)

    def is_outside(self, path: str) -> bool:
        return self._inner.is_outside(path)

    async def resolve(self, path: str) -> str:
        return await self._inner.resolve(path)

    async def read(self, path: str, *, limit: int | None = None) -> FileState:
        state = await self._inner.read(path, limit=limit)
        if not state.truncated:
            self._seen(state.path, state.data)
        return state

    async def peek(self, path: str, *, limit: int | None = None) -> FileState | None:
        state = await self._inner.peek(path, limit=limit)
        if state is not None and not state.truncated:
            self._seen(state.path, state.data)
        return state

    async def list(self, path: str) -> list[tuple[str, Literal["file", "dir", "link", "other"]]]:
        return await self._inner.list(path)

    async def vet(self, path: str, before: FileState | None, data: bytes) -> None:
        if self._boundaries.paths:
            real = await self._inner.resolve(path)
            await self._boundaries.admit(real, None if before is None else before.data, data)
        await self._inner.vet(path, before, data)

    def missing_folders(self, path: str) -> tuple[str, ...]:
        return self._inner.missing_folders(path)

    async def write(self, path: str, data: bytes, *, expected: BlobId | None) -> ChangedFile:
        touched = await self._write(path, data, expected)
        self._seen(touched.path, data)
        return touched

    async def remove(self, path: str, *, expected: BlobId) -> ChangedFile:
        if self._boundaries.paths:
            real = await self._inner.resolve(path)
            if self._boundaries.of(real) is not None:
                raise FinalToolError(f"{real!r} may be changed only in some lines, not removed")
        return await self._inner.remove(path, expected=expected)

    async def _write(self, path: str, data: bytes, expected: BlobId | None) -> ChangedFile:
        if not self._boundaries.paths:
            return await self._inner.write(path, data, expected=expected)
        # The boundary is on the file, not on its name: a link to it is bounded as well.
        real = await self._inner.resolve(path)
        if self._boundaries.of(real) is None:
            return await self._inner.write(path, data, expected=expected)
        found = await self._inner.peek(real)
        if (None if found is None else found.hash) != expected:
            # What is judged must be what is replaced; the write itself holds it to the same hash.
            raise RetryableToolError(
                f"{real!r} was changed since it was read; nothing was written.  Read it again"
            )
        moved = await self._boundaries.admit(real, None if found is None else found.data, data)
        # The range moves only after the write: a refused or cancelled one must leave it where it
        # is.
        touched = await self._inner.write(real, data, expected=expected)
        self._boundaries.moved(moved)
        return touched
