"""A line followed back through the versions of its file, to the change that wrote it.

Each step goes from a content to the one before it, and the line with it while both have it.  Which
content came before is told by hashes and never by time alone: a version whose hash was there before
(after a rewind, a checkout or a stash) leads to that one, and what stands between two versions that
do not follow on each other was changed from outside.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

import msgspec
from anyio.to_thread import run_sync as in_thread

from weft.evidence.blame import LineWriter
from weft.ids import BlobId
from weft.runtime.blame.file_versions import FileVersion
from weft.runtime.blame.line_map import likeness, lines_of, place_before
from weft.runtime.blame.version_index import VersionIndex

MOST_STEPS: Final = 20_000
LEAST_LIKE: Final = 0.5
"""How much of a file must be the same for another one to have been renamed to it."""
MOST_LIKE: Final = 100
"""Files that are compared for that."""
VersionOrder: TypeAlias = tuple[float, str, int]
_WRITERS: Final = frozenset({"write", "edit", "multi_edit", "apply_patch"})
"""Tools of which each change is meant: others may bring back what was there."""


class TracePlace(msgspec.Struct, frozen=True):
    """A line of one version of a file."""

    path: str
    content: BlobId
    line: int
    """From 0."""


class TraceEnd(msgspec.Struct, frozen=True, kw_only=True):
    """Where a line comes from."""

    made_by: LineWriter
    place: TracePlace
    version: FileVersion | None = None
    """The change that wrote it."""
    kept: FileVersion | None = None
    """The change that brought it into the project, where a candidate wrote it."""
    since: float | None = None
    until: float | None = None
    is_first: bool = False
    """It is older than all that is known of its file."""


class LineTrace:
    """Follows one line; `exists` says whether a path of the project is there now."""

    def __init__(
        self,
        index: VersionIndex,
        load: Callable[[BlobId], Awaitable[bytes | None]],
        exists: Callable[[str], Awaitable[bool]],
    ) -> None:
        self._index = index
        self._load = load
        self._exists = exists
        self.steps: list[str] = []
        self.notes: list[str] = []

    async def run(self, place: TracePlace) -> TraceEnd:
        """Follow a line of a file as it is now."""
        versions = await self._index.of_path(place.path)
        return await _FileWalk(self, place, versions, len(versions), None).run()

    # -- what the walks need

    async def lines(self, content: BlobId | None) -> list[bytes] | None:
        """The lines of a content; None where it is not stored."""
        data = None if content is None else await self._load(content)
        return None if data is None else await in_thread(lines_of, data)

    async def renamed_in(
        self, version: FileVersion, content: BlobId, lines: Sequence[bytes]
    ) -> FileVersion | None:
        """The file that was removed in one go with the making of this one, if it is the same."""
        beside = await self._index.beside(version)
        removed = [each for each in beside if each.path != version.path and not each.is_there]
        found = [(each, await self._content_of(each)) for each in removed]
        return await self._most_like(found, content, lines)

    async def renamed_outside(
        self, place: TracePlace, before: VersionOrder | None, lines: Sequence[bytes]
    ) -> FileVersion | None:
        """The same, where nothing was told of it: a file that is not there any more."""
        same = await self._index.with_content(place.content)
        paths = dict.fromkeys(each.path for each in reversed(same))
        paths |= dict.fromkeys(await self._index.last_paths(MOST_LIKE))
        found: list[tuple[FileVersion, BlobId | None]] = []
        for path in paths:
            if path == place.path or await self._exists(path):
                continue
            known = await self._index.of_path(path)
            known = [each for each in known if before is None or each.order < before]
            if known and known[-1].is_there:
                found.append((known[-1], known[-1].after))
        return await self._most_like(found, place.content, lines)

    async def _content_of(self, removal: FileVersion) -> BlobId | None:
        """What a removed file held."""
        if removal.before is not None:
            return removal.before
        versions = await self._index.of_path(removal.path)
        there = [each.after for each in versions if each.order < removal.order and each.is_there]
        return there[-1] if there else None

    async def _most_like(
        self,
        found: Sequence[tuple[FileVersion, BlobId | None]],
        content: BlobId,
        lines: Sequence[bytes],
    ) -> FileVersion | None:
        best, most = None, LEAST_LIKE
        for version, held in found:
            if held == content:
                return msgspec.structs.replace(version, before=held)
            old = await self.lines(held)
            if old is not None and (like := await in_thread(likeness, old, lines)) >= most:
                best, most = msgspec.structs.replace(version, before=held), like
        return best


class _FileWalk:
    """The way back through the versions of one file after the other."""

    def __init__(
        self,
        trace: LineTrace,
        place: TracePlace,
        versions: Sequence[FileVersion],
        bound: int,
        until: float | None,
    ) -> None:
        self._trace = trace
        self._place = place
        self._versions = versions
        self._bound = bound
        """Versions from here on are later than the place."""
        self._until = until
        self._floor: VersionOrder | None = None
        """The oldest version that was passed: a rename leads to what was there before it."""

    async def run(self) -> TraceEnd:
        for _ in range(MOST_STEPS):
            if (end := await self._step()) is not None:
                return end
        self._trace.notes.append(f"it was followed through {MOST_STEPS:,} changes and no further")
        return TraceEnd(made_by="unknown", place=self._place)

    async def _step(self) -> TraceEnd | None:
        """One step back; None where there is another one."""
        found = self._last(lambda each: each.is_there and each.after == self._place.content)
        if found is None:
            seen = self._last(lambda each: each.was_there and each.before == self._place.content)
            if seen is None:
                return await self._outside()
            self._go_before(seen)
            return None
        version = self._versions[found]
        if version.kind == "rewind" or (self._may_bring_back(version) and self._was_before(found)):
            self._go_before(found)
            return None
        match version.kind:
            case "kept":
                return await self._at_kept(found, version)
            case "call":
                return await self._at_call(found, version)
            case _:
                return await self._at_snapshot(found, version)

    # -- where it stands

    def _last(self, is_it: Callable[[FileVersion], bool]) -> int | None:
        found = (n for n in range(self._bound - 1, -1, -1) if is_it(self._versions[n]))
        return next(found, None)

    def _go_before(self, number: int) -> None:
        self._bound, self._until = number, self._versions[number].at
        self._pass(self._versions[number])

    def _pass(self, version: FileVersion) -> None:
        order = version.order
        self._floor = order if self._floor is None else min(self._floor, order)

    def _was_before(self, number: int) -> bool:
        """Whether the content was there before this version."""
        content = self._place.content
        return any(
            (each.is_there and each.after == content) or (each.was_there and each.before == content)
            for each in self._versions[:number]
        )

    def _may_bring_back(self, version: FileVersion) -> bool:
        return version.kind != "call" or version.tool not in _WRITERS

    async def _lines(self) -> list[bytes]:
        return await self._trace.lines(self._place.content) or []

    async def _moved_to(self, content: BlobId | None, path: str = "") -> bool | None:
        """Go to an earlier content, if it has the line; None where that content is not stored."""
        old = await self._trace.lines(content)
        if old is None or content is None:
            return None
        line = await in_thread(place_before, old, await self._lines(), self._place.line)
        if line is not None:
            self._place = TracePlace(path or self._place.path, content, line)
        return line is not None

    # -- the kinds of changes

    async def _at_call(self, number: int, version: FileVersion) -> TraceEnd | None:
        if not version.was_there:
            return await self._at_making(number, version)
        has_line = await self._moved_to(version.before)
        if has_line:
            self._go_before(number)
            return None
        if has_line is None:
            self._note_gone(f"what {self._place.path} held before this change")
        return self._made(version)

    async def _at_making(self, number: int, version: FileVersion) -> TraceEnd | None:
        """A file that was not there before: new, or another one's new name."""
        self._pass(version)
        lines = await self._lines()
        origin = await self._trace.renamed_in(version, self._place.content, lines)
        if origin is not None and await self._renamed(origin):
            return None
        return self._made(version)

    async def _renamed(self, origin: FileVersion) -> bool:
        """Go on at the file that this one was, if that one had the line."""
        path, before = self._place.path, origin.before
        if not await self._moved_to(before, origin.path):
            return False
        self._trace.steps.append(f"{path} was {origin.path} before")
        self._versions = await self._trace._index.of_path(origin.path)
        places = [each.order for each in self._versions]
        self._bound = bisect_left(places, origin.order)
        # The last version that is there is the one that was renamed, not a later one.
        self._bound += origin.is_there
        if not origin.is_there:
            self._until = origin.at
            self._pass(origin)
        return True

    def _made(self, version: FileVersion) -> TraceEnd:
        made_by: LineWriter = "session" if version.is_certain else "unknown"
        return TraceEnd(made_by=made_by, place=self._place, version=version, until=version.at)

    async def _at_snapshot(self, number: int, version: FileVersion) -> TraceEnd | None:
        """A change that was found between two effects of a session, and is none of its own."""
        made_by: LineWriter = "user" if version.kind == "outside" else "unknown"
        before = self._versions[number - 1] if number else None
        self._until = version.at
        self._pass(version)
        if before is None or not before.is_there:
            lines = await self._lines()
            origin = await self._trace.renamed_in(version, self._place.content, lines)
            if origin is not None and await self._renamed(origin):
                return None
            since = None if before is None else before.at
            return self._by(made_by, version, since, is_first=before is None)
        return await self._from_known(number, made_by, version)

    async def _from_known(
        self, number: int, made_by: LineWriter, version: FileVersion | None
    ) -> TraceEnd | None:
        """Go on at the last version before `number` whose content is known, if it has the line."""
        for earlier in range(number - 1, -1, -1):
            before = self._versions[earlier]
            if not before.is_there:
                break
            has_line = await self._moved_to(before.after)
            if has_line:
                self._bound = earlier + 1
                return None
            if has_line is not None:
                is_next = earlier == number - 1
                return self._by(made_by if is_next else "unknown", version, before.at)
            self._note_gone(f"what a session left in {self._place.path}")
        return self._by("unknown" if number else made_by, version, None)

    async def _outside(self) -> TraceEnd | None:
        """A content that no version tells of."""
        number = self._bound
        before = self._versions[number - 1] if number else None
        if before is not None and before.is_there:
            return await self._from_known(number, "user", None)
        lines = await self._lines()
        origin = await self._trace.renamed_outside(self._place, self._floor, lines)
        if origin is not None and await self._renamed(origin):
            return None
        since = None if before is None else before.at
        return self._by("user", None, since, is_first=before is None)

    def _by(
        self,
        made_by: LineWriter,
        version: FileVersion | None,
        since: float | None,
        *,
        is_first: bool = False,
    ) -> TraceEnd:
        return TraceEnd(
            made_by=made_by,
            place=self._place,
            version=version,
            since=since,
            until=self._until,
            is_first=is_first,
        )

    def _note_gone(self, what: str) -> None:
        note = f"{what} is not stored any more"
        if note not in self._trace.notes:
            self._trace.notes.append(note)

    # -- candidates

    async def _at_kept(self, number: int, version: FileVersion) -> TraceEnd | None:
        """What a candidate brought: by its own session, as far as that wrote it."""
        end = await self._in_candidate(version)
        if end is not None and not end.is_first:
            return msgspec.structs.replace(end, kept=version)
        if end is not None:
            # Older than the candidate's own edits: of the project that it began with, or of a
            # command that ran in it.
            known = self._place
            self._place = end.place
            if end.place.content == version.before or self._was_before(number):
                self._go_before(number)
                return None
            if not version.was_there:
                self._place = known
        if version.was_there and await self._moved_to(version.before):
            self._go_before(number)
            return None
        if not version.was_there:
            self._pass(version)
            lines = await self._lines()
            origin = await self._trace.renamed_in(version, self._place.content, lines)
            if origin is not None and await self._renamed(origin):
                return None
        return msgspec.structs.replace(self._made(version), kept=version)

    async def _in_candidate(self, version: FileVersion) -> TraceEnd | None:
        """Where the line comes from in the candidate; None where that has no such line."""
        if version.child is None:
            return None
        versions = await self._trace._index.of_candidate(version.child, version.path)
        there = [each.after for each in versions if each.is_there]
        content = self._place.content
        place = self._place
        if content not in there:
            last = there[-1] if there else None
            old = await self._trace.lines(last)
            line = None
            if old is not None and last is not None:
                line = await in_thread(place_before, old, await self._lines(), place.line)
            if line is None or last is None:
                return None
            place = TracePlace(place.path, last, line)
        return await _CandidateWalk(self._trace, place, versions, len(versions), None).run()


class _CandidateWalk(_FileWalk):
    """The way back in what one candidate wrote, up to the files that it began with."""

    async def _outside(self) -> TraceEnd | None:
        if self._bound and self._versions[self._bound - 1].is_there:
            # Between two of its edits a command of its own changed the file.
            return await self._from_known(self._bound, "session", self._versions[self._bound - 1])
        return self._by("user", None, None, is_first=True)
