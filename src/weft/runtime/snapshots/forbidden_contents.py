"""Contents of files that rules keep from being read, found by their hash.

A blob has no path, so the question is which files of a session ever had it: those that the session
changed, and all in its snapshots.  What is known is kept while the session is open, so that each
change and each listing is looked at once, and an answer costs what is new since the last one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import anyio

from weft.errors import UsageError
from weft.ids import BlobId
from weft.permissions import PermissionRule
from weft.project.mentions import JudgeRead
from weft.session.log.stored_line import read_places
from weft.session.rewind.plan import spans
from weft.state import SessionState
from weft.store import Store
from weft.workspace.history.project_tree import MOST_PATHS, entries_of

_PLACES_AT_ONCE: Final = 500


class ForbiddenContents:
    """What one session knows of files that may not be read."""

    def __init__(self) -> None:
        self._lock = anyio.Lock()
        self._rules: Sequence[PermissionRule] = ()
        self._forget()

    def _forget(self) -> None:
        self._paths: dict[BlobId, str] = {}
        """Content → a path that had it and may not be read."""
        self._changes = 0
        """How many of the session's changes are in it."""
        self._snapshots = 0
        self._walked: set[tuple[str, BlobId]] = set()

    async def refuse(
        self,
        blob_id: BlobId,
        state: SessionState,
        store: Store,
        rules: Sequence[PermissionRule],
        judge: JudgeRead,
        root: str,
    ) -> None:
        """Refuse a blob that is what a file held which these rules keep from being read.

        Raises:
            UsageError: it is one.
        """
        async with self._lock:
            if rules != self._rules:
                self._forget()  # all of it was judged by others
                self._rules = rules
            reader = _ForbiddenReader(self._paths, judge, root)
            await self._take_changes(state, store, reader)
            await self._take_snapshots(state, store, reader)
        if (path := self._paths.get(blob_id)) is not None:
            why = reader.why(path)
            raise UsageError(f"this blob is of {path!r}, which is not read: {why}")

    async def _take_changes(
        self, state: SessionState, store: Store, reader: _ForbiddenReader
    ) -> None:
        while places := state.files.places[self._changes : self._changes + _PLACES_AT_ONCE]:
            facts = await read_places(places, store)
            for place in places:
                for path, span in spans([facts[place]]).items():
                    reader.note(path, span.target.content, span.left.content)
            self._changes += len(places)

    async def _take_snapshots(
        self, state: SessionState, store: Store, reader: _ForbiddenReader
    ) -> None:
        # Known only at the end: a cancel in between must not leave folders that count as seen and
        # whose own were not.
        walked: set[tuple[str, BlobId]] = set()
        new = state.files.snapshots[self._snapshots :]
        waiting = [("", each.tree) for each in new if each.tree is not None]
        while waiting:
            folder = waiting.pop()
            if folder in self._walked or folder in walked:
                continue
            if len(walked) > MOST_PATHS:
                raise UsageError("blobs of this session are not read: its trees are too large")
            walked.add(folder)
            data = await store.blob(folder[1])
            for name, entry in entries_of(data or b"[]").items():
                path = f"{folder[0]}/{name}" if folder[0] else name
                if entry.is_folder and entry.hash:
                    waiting.append((path, BlobId(entry.hash)))
                elif entry.hash:
                    reader.note(path, BlobId(entry.hash))
        self._walked |= walked
        self._snapshots += len(new)


class _ForbiddenReader:
    """Judges paths, and notes what those held that may not be read."""

    def __init__(self, paths: dict[BlobId, str], judge: JudgeRead, root: str) -> None:
        self._paths = paths
        self._judge = judge
        self._root = root

    def note(self, path: str, *contents: BlobId | None) -> None:
        held = [each for each in contents if each is not None and each not in self._paths]
        if held and self.why(path):
            self._paths.update(dict.fromkeys(held, path))

    def why(self, path: str) -> str:
        """Why a path may not be read; empty where it may."""
        decision = self._judge(path if path.startswith("/") else f"{self._root}/{path}")
        return "" if decision.verdict == "allow" else decision.reason or "a rule forbids it"
