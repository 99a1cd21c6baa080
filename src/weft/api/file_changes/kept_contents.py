"""File contents that are kept of a project: how much, what goes next, and what is lost with it.

No session, message, decision or setting goes by age or number.  The contents of files beyond
`history.quota` are the one exception; here it is said before, by the same order in which the store
drops them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, TypeAlias

import msgspec

from weft.events import FileTouched, WorkspaceSnapshot, decode
from weft.ids import BlobId, NodeId, SessionId
from weft.session.log.session_log import HISTORY_SLACK
from weft.store import SessionRow, Store
from weft.store.base import KeptContent
from weft.store.history_rows import HistoryRow, oldest_beyond
from weft.store.tree_names import listing_entries

MOST_NAMED: Final = 200
"""Contents that go next and are named."""
_PAGE: Final = 1000
_LOSERS: Final = ("rewind", "bisect", "blame")
"""What looks at earlier states of files; each says so where it meets one that is gone."""
_FileFact: TypeAlias = FileTouched | WorkspaceSnapshot
_KINDS: Final = frozenset({"file_touched", "workspace_snapshot"})


class LostState(msgspec.Struct, frozen=True, kw_only=True):
    """A message of which a file can not be had any more when a content is gone."""

    session: SessionId
    title: str
    message: NodeId | None
    path: str
    loses: tuple[str, ...] = _LOSERS
    """`rewind`: it cannot put the file back; `bisect` and `blame`: they cannot look at it."""


class NextContent(msgspec.Struct, frozen=True, kw_only=True):
    """A content that goes as soon as the room is needed."""

    content: BlobId
    bytes: int
    states: tuple[LostState, ...] = ()


class KeptContents(msgspec.Struct, frozen=True, kw_only=True):
    """The file contents of a project."""

    project_path: str
    sessions: int
    contents: int
    bytes: int
    quota: int
    """`history.quota`; 0 keeps none."""
    room: int
    """Bytes that may be stored before the first one goes."""
    next: tuple[NextContent, ...] = ()
    """What goes next, the first to go first; nothing while there is much room."""
    more: int = 0
    """Contents that go with them and are not named."""


async def kept_contents(store: Store, project_path: str, quota: int) -> KeptContents:
    """What is kept of a project, from the store alone; no session is started."""
    kept = await store.history_contents(project_path)
    sessions = await _sessions(store, project_path)
    facts = {row.id: await _file_facts(store, row) for row in sessions}
    needed = await _newest_files(store, [fact for found in facts.values() for fact in found])
    going = _going(kept, quota, needed)
    named = going[:MOST_NAMED]
    losses = _Losses({each.id for each in named})
    for row in sessions:
        losses.look(row, facts[row.id])
    total = sum(each.size for each in kept)
    return KeptContents(
        project_path=project_path,
        sessions=len(sessions),
        contents=len(kept),
        bytes=total,
        quota=quota,
        room=max(0, quota - quota // HISTORY_SLACK - total),
        next=tuple(losses.of(each) for each in named),
        more=len(going) - len(named),
    )


def _going(
    kept: Sequence[KeptContent], quota: int, needed: Collection[BlobId]
) -> list[KeptContent]:
    """What is dropped as soon as as much again is stored as sets a look off; the oldest first."""
    if not quota:
        return []
    rows = [
        HistoryRow(len(kept) - place, place, each.size, each.id) for place, each in enumerate(kept)
    ]
    beyond = oldest_beyond(rows, quota - 2 * (quota // HISTORY_SLACK), needed)
    return [kept[row.blob_no] for row in reversed(beyond)]


async def _sessions(store: Store, project_path: str) -> list[SessionRow]:
    found: list[SessionRow] = []
    after = None
    while page := await store.rows(
        project_path=project_path, limit=_PAGE, archived=True, children=True, after=after
    ):
        found += page
        after = page[-1].last_active, page[-1].id
    return found


async def _file_facts(store: Store, row: SessionRow) -> list[_FileFact]:
    """What a session's log says of files."""
    found: list[_FileFact] = []
    seq = 0
    while records := await store.read(row.id, after=seq, limit=_PAGE):
        for record in records:
            if record.kind in _KINDS:
                fact = decode(record.body, stream=row.id, seq=record.seq)
                if isinstance(fact, FileTouched | WorkspaceSnapshot):
                    found.append(fact)
        seq = records[-1].seq
    return found


async def _newest_files(store: Store, facts: Sequence[_FileFact]) -> set[BlobId]:
    """The contents of the project's newest tree: they stay, however old they are."""
    snapshots = [each for each in facts if isinstance(each, WorkspaceSnapshot) and each.tree]
    newest = max(snapshots, key=lambda each: each.at, default=None)
    waiting = [newest.tree] if newest is not None and newest.tree else []
    listings: set[BlobId] = set()
    contents: set[BlobId] = set()
    while waiting:
        tree = waiting.pop()
        if tree in listings:
            continue
        listings.add(tree)
        for is_folder, blob_id in listing_entries(await store.blob(tree)):
            if is_folder:
                waiting.append(blob_id)
            else:
                contents.add(blob_id)
    return contents


class _Losses:
    """Which messages lose what, by the content that goes."""

    def __init__(self, going: Collection[BlobId]) -> None:
        self._going = going
        self.found: dict[BlobId, list[LostState]] = {}

    def look(self, row: SessionRow, facts: Sequence[_FileFact]) -> None:
        """Look through what a session's log says of files."""
        node: NodeId | None = None
        # From the end: what a turn changed is of the message that its snapshot names.
        for fact in reversed(facts):
            if isinstance(fact, WorkspaceSnapshot):
                node = fact.node
                for change in fact.changes:
                    self._lose(change.content, row, node, change.path)
            else:
                self._lose(fact.before, row, node, fact.path)

    def of(self, content: KeptContent) -> NextContent:
        """A content with what is lost with it."""
        states = tuple(self.found.get(content.id, ()))
        return NextContent(content=content.id, bytes=content.size, states=states)

    def _lose(
        self,
        content: BlobId | None,
        row: SessionRow,
        node: NodeId | None,
        path: str,
    ) -> None:
        if content is None or content not in self._going:
            return
        state = LostState(session=row.id, title=row.title, message=node, path=path)
        if state not in (states := self.found.setdefault(content, [])):
            states.append(state)
