"""The store in memory, which keeps nothing: for tests and runs that save no session.

It keeps the whole contract but durability.  What it holds is a `MemoryData`; a second `MemoryStore`
on the same data behaves like a second process on the same file.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from typing import Self

import msgspec

from weft.clock import Clock, SystemClock
from weft.errors import Corrupt, StoreUnavailable, UsageError
from weft.ids import BlobId, NodeId, SessionId, new_id
from weft.store import search_text as words
from weft.store.address import check_address
from weft.store.base import (
    Append,
    Draft,
    DraftChunk,
    KeptContent,
    Lease,
    NodePlace,
    Owner,
    Record,
    RowPlace,
    SearchHit,
    SearchText,
    SessionRow,
    Snapshot,
    Store,
    due_rows,
    files_stream,
    path_of_files,
)
from weft.store.checks import (
    check_appends,
    check_leasable,
    check_overwritable,
    check_place,
    check_reader,
    owned_error,
)
from weft.store.drafts import DraftPiece, ends_draft, joined_drafts
from weft.store.follower import FollowerBell, RecordFollower
from weft.store.liveness import this_process
from weft.store.session_rows import RowQuery, found_ids, hits
from weft.store.text import check_text, check_texts_of, storable_draft


class _Stream:
    """One stream and what is kept beside it."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.fence = 0
        self.owner: Owner | None = None
        self.taken = 0.0
        self.row: SessionRow | None = None
        self.hidden_parent: SessionId | None = None
        self.is_hidden = False
        self.said: list[tuple[SearchText, str]] = []
        self.blobs: set[BlobId] = set()
        self.history: dict[BlobId, int] = {}
        """Blobs that are file history, each with its number in the order they came."""
        self.drafts: list[DraftChunk] = []
        self.snapshot: Snapshot | None = None

    def clear(self) -> None:
        """Forget everything but the fence, which must never go back."""
        fence = self.fence
        self.__init__()  # type: ignore[misc]  # starting anew is exactly what is meant
        self.fence = fence


class MemoryData:
    """What one or several memory stores hold."""

    def __init__(self) -> None:
        self.streams: dict[str, _Stream] = {}
        self.blobs: dict[BlobId, bytes] = {}
        self.kept = itertools.count()
        self.living: dict[str, Owner] = {}
        self.bell = FollowerBell()

    def stream(self, name: str) -> _Stream:
        """The stream called `name`, made when it is new."""
        return self.streams.setdefault(name, _Stream())


class MemoryStore(Store):
    """A `Store` in memory.  Nothing waits, so a cancelled call has happened whole or not at all."""

    def __init__(self, *, data: MemoryData | None = None, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        now = self._clock.now()
        self.owner = this_process(new_id("prc", now), started=now)
        self.is_lasting = False
        self.data = data or MemoryData()
        self.data.living[self.owner.process_id] = self.owner
        self._is_closed = False

    # -- the core

    async def append(self, *appends: Append) -> None:
        self._check_open()
        check_appends(appends)
        for append in appends:
            check_texts_of(append)
        # All checks before the first change: the batch is added whole or not at all.
        self._check_places(appends)
        self._check_blobs(appends)
        for append in appends:
            self._add(append)
        self.data.bell.ring(append.stream for append in appends)

    def _check_places(self, appends: Sequence[Append]) -> None:
        ends: dict[str, int] = {}
        for append in appends:
            stream = self.data.streams.get(append.stream) or _Stream()
            check_place(
                append,
                last_seq=ends.get(append.stream, len(stream.records)),
                fence=stream.fence,
                is_held=self._is_mine(stream),
            )
            # An append may follow on another one to the same stream in this batch.
            ends[append.stream] = append.expected_seq + len(append.records)

    def _check_blobs(self, appends: Sequence[Append]) -> None:
        handed_in = {blob.id for append in appends for blob in append.blobs}
        for append in appends:
            for blob_id in append.names_blobs:
                if blob_id not in self.data.blobs and blob_id not in handed_in:
                    raise UsageError(f"blob {blob_id!r} is not stored; hand its content in")

    def _add(self, append: Append) -> None:
        stream = self.data.stream(append.stream)
        stream.records.extend(append.records)
        stream.said.extend((said, words.indexed(said.text)) for said in append.said)
        in_trees = {*append.tree_listings, *append.tree_contents}
        for blob in append.blobs:
            self.data.blobs.setdefault(blob.id, blob.data)
            if blob.id in append.history:
                stream.history.setdefault(blob.id, next(self.data.kept))
            elif blob.id not in in_trees:
                stream.blobs.add(blob.id)
        stream.blobs.update(append.names_blobs)
        if append.row is not None:
            stream.row = append.row
            stream.is_hidden = False
        if append.trees or in_trees:
            self._add_trees(append, stream)
        ended = append.ends_drafts
        stream.drafts[:] = [
            kept for kept in stream.drafts if not append.drop_draft and kept.node not in ended
        ]

    def _add_trees(self, append: Append, stream: _Stream) -> None:
        path = stream.row.project_path if stream.row is not None else ""
        files = self.data.stream(files_stream(path))
        files.blobs.update(append.tree_listings)
        for blob_id in append.tree_contents:
            files.history.setdefault(blob_id, next(self.data.kept))
        stream.blobs.update(tree for tree in append.trees if tree in self.data.blobs)

    async def read(self, stream: str, *, after: int = 0, limit: int = 1000) -> list[Record]:
        self._check_open()
        known = self.data.streams.get(stream)
        start = max(0, after)
        return known.records[start : start + limit] if known is not None else []

    async def read_at(self, stream: str, seqs: Sequence[int]) -> list[Record]:
        return self.read_now(stream, seqs)

    def read_now(self, stream: str, seqs: Sequence[int]) -> list[Record]:
        self._check_open()
        known = self.data.streams.get(stream)
        records = known.records if known is not None else []
        for seq in seqs:
            if not 1 <= seq <= len(records):
                raise Corrupt(stream, "there is no such record", seq=seq)
        return [records[seq - 1] for seq in seqs]

    def blob_now(self, blob_id: BlobId) -> bytes | None:
        return self.data.blobs.get(blob_id)

    async def last_seq(self, stream: str) -> int:
        self._check_open()
        known = self.data.streams.get(stream)
        return len(known.records) if known is not None else 0

    def follow(self, stream: str, *, after: int = 0) -> RecordFollower:
        return RecordFollower(self.read, self.data.bell, stream, after)

    async def take_lease(self, stream: str, *, steal: bool = False) -> Lease:
        return (await self.take_leases([stream], steal=steal))[0]

    async def take_leases(self, streams: Sequence[str], *, steal: bool = False) -> list[Lease]:
        self._check_open()
        wanted = list(dict.fromkeys(streams))
        for stream in wanted:
            check_leasable(stream)
            check_text(stream)
            known = self.data.streams.get(stream)
            if known is not None:
                check_reader(known.row)
                if not steal:
                    self._check_free(stream, known)
        return [self._take(stream) for stream in wanted]

    def _take(self, stream: str) -> Lease:
        known = self.data.stream(stream)
        known.fence += 1
        known.owner = self.owner
        known.taken = self._clock.now()
        return Lease(stream, known.fence, self.owner)

    async def release_lease(self, lease: Lease) -> None:
        self._check_open()
        known = self.data.streams.get(lease.stream)
        if known is not None and known.fence == lease.fence and self._is_mine(known):
            known.owner = None

    async def lease_of(self, stream: str) -> Lease | None:
        self._check_open()
        known = self.data.streams.get(stream)
        owner = self._living_owner(known) if known is not None else None
        return Lease(stream, known.fence, owner) if known is not None and owner else None

    def _is_mine(self, stream: _Stream) -> bool:
        return stream.owner is not None and stream.owner.process_id == self.owner.process_id

    def _living_owner(self, stream: _Stream) -> Owner | None:
        return self.data.living.get(stream.owner.process_id) if stream.owner else None

    def _check_free(self, name: str, stream: _Stream) -> None:
        owner = self._living_owner(stream)
        if owner is not None and not self._is_mine(stream):
            raise owned_error(name, owner, stream.taken)

    # -- lists and search

    async def row(self, session_id: SessionId) -> SessionRow | None:
        self._check_open()
        known = self.data.streams.get(session_id)
        return known.row if known is not None else None

    async def rows(
        self,
        *,
        project_path: str | None = None,
        query: str | None = None,
        limit: int = 100,
        archived: bool = False,
        children: bool = False,
        after: RowPlace | None = None,
    ) -> list[SessionRow]:
        self._check_open()
        wanted = RowQuery(
            project_path=project_path,
            query=query,
            limit=limit,
            archived=archived,
            children=children,
            after=after,
        )
        return wanted.page(self._rows(), lambda name: [i for _, i in self.data.streams[name].said])

    def _rows(self) -> Iterator[SessionRow]:
        return (stream.row for stream in self.data.streams.values() if stream.row is not None)

    async def due(
        self, before: float, *, project_path: str | None = None, limit: int = 100
    ) -> list[SessionRow]:
        self._check_open()
        return due_rows(self._rows(), before, project_path)[:limit]

    async def ids_with_prefix(self, prefix: str, *, limit: int = 10) -> list[SessionId]:
        self._check_open()
        return found_ids(self._rows(), prefix, limit)

    async def nodes_with_prefix(self, prefix: str, *, limit: int = 10) -> list[NodePlace]:
        self._check_open()
        found = {
            NodePlace(said.node, SessionId(name)): None
            for name, stream in self.data.streams.items()
            for said, _ in stream.said
            if said.node.startswith(prefix)
        }
        newest = list(reversed(found))
        newest.sort(key=lambda place: place.node != prefix)
        return newest[:limit]

    async def nodes_named(self, nodes: Collection[NodeId]) -> list[NodePlace]:
        self._check_open()
        wanted = frozenset(nodes)
        found = {
            NodePlace(said.node, SessionId(name)): None
            for name, stream in self.data.streams.items()
            for said, _ in stream.said
            if said.node in wanted
        }
        return list(found)

    async def search(self, query: str, *, limit: int = 20) -> list[SearchHit]:
        self._check_open()
        said = (
            (SessionId(name), each, index)
            for name, stream in self.data.streams.items()
            for each, index in stream.said
        )
        return hits(query, limit, said)

    async def mark_damaged(self, session_id: SessionId, reason: str) -> None:
        self._check_open()
        check_text(session_id, reason)
        stream = self.data.stream(session_id)
        if not stream.is_hidden:
            row = stream.row or SessionRow(id=session_id)
            stream.row = msgspec.structs.replace(row, damaged=reason)

    async def overwrite(self, stream: str, records: Sequence[Record]) -> None:
        self._check_open()
        check_overwritable(stream)
        held = self.data.stream(stream).records
        for record in records:
            if not 1 <= record.seq <= len(held):
                raise Corrupt(stream, "there is no such record", seq=record.seq)
        for record in records:
            held[record.seq - 1] = record

    async def delete(self, session_id: SessionId) -> None:
        self._check_open()
        stream = self.data.streams.get(session_id)
        if stream is None:
            return
        self._check_free(session_id, stream)
        files = files_stream(stream.row.project_path if stream.row is not None else "")
        parent = stream.row.parent_id if stream.row is not None else stream.hidden_parent
        stream.owner = None
        if self._is_named_by_forks(session_id):
            stream.row, stream.snapshot = None, None
            stream.is_hidden, stream.hidden_parent = True, parent
            stream.said.clear()
            stream.drafts.clear()
            return
        stream.clear()
        if parent is not None:
            self._remove_if_unnamed(parent)
        if files in self.data.streams:
            self._drop_unnamed_files(self.data.streams[files])
        await self.sweep_blobs()

    def _drop_unnamed_files(self, files: _Stream) -> None:
        """Forget the files of a project that no tree names any more."""
        from weft.store.tree_names import named_by_trees  # not for a run without snapshots

        streams = [each for each in self.data.streams.values() if each is not files]
        trees = files.blobs & set[BlobId]().union(*(each.blobs for each in streams))
        named = named_by_trees(trees, self.data.blobs.get)
        files.blobs &= named.listings
        files.history = {
            each: kept for each, kept in files.history.items() if each in named.contents
        }

    def _is_named_by_forks(self, session_id: SessionId) -> bool:
        return any(
            (other.row is not None and other.row.parent_id == session_id)
            or (other.is_hidden and other.hidden_parent == session_id)
            for other in self.data.streams.values()
        )

    def _remove_if_unnamed(self, session_id: SessionId) -> None:
        stream = self.data.streams.get(session_id)
        if stream is not None and stream.is_hidden and not self._is_named_by_forks(session_id):
            parent = stream.hidden_parent
            stream.clear()
            if parent is not None:
                self._remove_if_unnamed(parent)

    # -- beside the log

    def save_draft(self, chunk: DraftChunk) -> None:
        chunk = storable_draft(chunk)
        stream = self.data.streams.get(chunk.stream)
        if self._is_closed or stream is None:
            return
        if stream.fence == chunk.fence and self._is_mine(stream):
            stream.drafts[:] = [kept for kept in stream.drafts if not ends_draft(chunk, kept.node)]
            if chunk.chunk:
                stream.drafts.append(chunk)

    async def load_drafts(self, stream: str) -> list[Draft]:
        self._check_open()
        known = self.data.streams.get(stream)
        return joined_drafts(
            DraftPiece(each.node, each.part, each.chunk, each.index, each.tool)
            for each in (known.drafts if known is not None else ())
        )

    async def blob(self, blob_id: BlobId) -> bytes | None:
        self._check_open()
        return self.data.blobs.get(blob_id)

    async def missing_blobs(
        self, blob_ids: Collection[BlobId], *, project_path: str | None = None
    ) -> set[BlobId]:
        self._check_open()
        if project_path is None:
            return set(blob_ids) - self.data.blobs.keys()
        files = self.data.streams.get(files_stream(project_path)) or _Stream()
        return set(blob_ids) - files.blobs - files.history.keys()

    async def sessions_with(self, blob_id: BlobId) -> list[SessionId]:
        self._check_open()
        streams = self.data.streams.items()
        named = [
            name for name, stream in streams if blob_id in stream.blobs or blob_id in stream.history
        ]
        paths = {path for name in named if (path := path_of_files(name)) is not None}
        found = [SessionId(name) for name in named if path_of_files(name) is None]
        found += [row.id for row in self._rows() if row.project_path in paths]
        return list(dict.fromkeys(found))

    async def sweep_blobs(self) -> int:
        self._check_open()
        streams = self.data.streams.values()
        named = {blob_id for stream in streams for blob_id in (*stream.blobs, *stream.history)}
        dead = [blob_id for blob_id in self.data.blobs if blob_id not in named]
        return sum(len(self.data.blobs.pop(blob_id)) for blob_id in dead)

    async def history_contents(self, project_path: str) -> list[KeptContent]:
        self._check_open()
        kept = self._history_of(project_path)
        return [
            KeptContent(each, len(self.data.blobs[each]))
            for each in dict.fromkeys(blob_id for _, blob_id, _ in kept)
        ]

    async def trim_history(
        self, project_path: str, most_bytes: int, newest: BlobId | None = None
    ) -> int:
        self._check_open()
        kept = self._history_of(project_path)
        from weft.store.tree_names import named_by_trees  # as below

        needed = set(named_by_trees([newest] if newest else [], self.data.blobs.get).contents)
        total = sum(len(self.data.blobs[each]) for each in needed & {each[1] for each in kept})
        if total > most_bytes:
            total, needed = 0, set()
        seen = set[BlobId]()
        for _, blob_id, stream in kept:
            if blob_id in needed:
                continue
            total += 0 if blob_id in seen else len(self.data.blobs[blob_id])
            seen.add(blob_id)
            if total > most_bytes:
                del stream.history[blob_id]
        return await self.sweep_blobs()

    def _history_of(self, project_path: str) -> list[tuple[int, BlobId, _Stream]]:
        """What the streams of a project name as file history, the newest first."""
        files = files_stream(project_path)
        streams = [
            stream
            for name, stream in self.data.streams.items()
            if name == files or (stream.row is not None and stream.row.project_path == project_path)
        ]
        found = (
            (number, blob_id, stream)
            for stream in streams
            for blob_id, number in stream.history.items()
        )
        return sorted(found, key=lambda each: each[0], reverse=True)

    async def save_snapshot(self, stream: str, snapshot: Snapshot) -> None:
        self._check_open()
        known = self.data.streams.get(stream)
        if known is None or snapshot.seq > len(known.records):
            return
        kept = known.snapshot
        if kept is None or kept.version != snapshot.version or kept.seq <= snapshot.seq:
            known.snapshot = snapshot

    async def load_snapshot(self, stream: str, version: str) -> Snapshot | None:
        self._check_open()
        known = self.data.streams.get(stream)
        snapshot = known.snapshot if known is not None else None
        return snapshot if snapshot is not None and snapshot.version == version else None

    async def register_address(self, address: str, *, accepting: bool = True) -> None:
        check_address(address)
        self._check_open()
        self.owner = msgspec.structs.replace(self.owner, address=address, accepting=accepting)
        self.data.living[self.owner.process_id] = self.owner

    # -- life

    async def aclose(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self.data.living.pop(self.owner.process_id, None)
        for stream in self.data.streams.values():
            if self._is_mine(stream):
                stream.owner = None
        self.data.bell.ring_all()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreUnavailable("the store is closed")
