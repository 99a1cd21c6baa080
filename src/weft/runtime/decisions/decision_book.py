"""The decision graph of a project as it stands in a store: read on, and added to.

All sessions and processes on a project share its stream.  A book reads only what came since the
last look; what others add meanwhile is found by the end of the stream.

Other folders and worktrees of the same repository have streams of their own.  They are read, too:
what was decided in one counts in all.  What is added goes to the stream of the project where that
happens, whichever one it is about.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from math import inf
from operator import itemgetter
from typing import Final, TypeAlias

import msgspec

from weft.clock import Clock
from weft.config.project_ids import RelatedProject
from weft.decisions import (
    DecisionAdded,
    DecisionFact,
    DecisionGraph,
    DecisionNode,
    DecisionPurged,
    FileEvidence,
    decode_decision,
    file_evidence,
)
from weft.decisions.scope import is_symbol
from weft.errors import Conflict, Corrupt, StoreError, StoreUnavailable, ToolError
from weft.events import DecisionLogged, encode, kind_of
from weft.ids import CallUid, DecisionId, NodeId, SessionId, derived_id
from weft.loop import Commit, ProjectFacts
from weft.session.log.append import project_append
from weft.store import PROJECT_STREAM, Record, Store, append_once, project_stream
from weft.workspace import Workspace

logger = logging.getLogger(__name__)

PAGE: Final = 1_000
LARGEST_FILE: Final = 1_000_000
"""Bytes of a file that is noted as evidence."""
MOST_FILES: Final = 8
MOST_BOOKS: Final = 16
"""Books that are kept for the next session: those that were used last."""
MOST_TRIES: Final = 1_000
"""How often an append is tried that others come before: each time one of them has got its own
in."""
MOST_NOTED: Final = 200
"""Attempts, and corrections, of a project that nothing was said of since, in the graph that its
sessions share: the newest.  Each takes some 5 kB, and every rewind makes one."""
RelatedSource: TypeAlias = Callable[[], Awaitable[tuple[str, Sequence[RelatedProject]]]]
"""The folder of a project in its repository, and the other projects of that."""


class DecisionBook:
    """The graph of one project in one store."""

    def __init__(
        self,
        store: Store,
        project_id: str,
        clock: Clock,
        related: RelatedSource | None = None,
        most_noted: int | None = None,
    ) -> None:
        """`related` says which other projects of the repository there are; `most_noted` is for
        the graph.
        """
        self._store = store
        self.project_id = project_id
        self._clock = clock
        self._related = related
        self._folder = ""
        """Of this project in its repository."""
        self._folders: dict[str, str] = {}
        """Of the related projects, by their streams."""
        self._stream = project_stream(project_id)
        self._read_to: dict[str, int] = {}
        """By stream."""
        self._most_noted = most_noted
        self._kept: frozenset[DecisionId] = frozenset()
        """Attempts that something was said of after they had gone from the graph."""
        self.graph = DecisionGraph(most_noted)
        """As it was at the last `refresh`."""

    async def refresh(self) -> DecisionGraph:
        """Read what was added since, by whomever."""
        if self._related is not None:
            self._folder, others = await self._related()
            self._folders = {project_stream(each.id): each.inside for each in others}
        await self._read_on(self.graph, self._read_to)
        while missed := self.graph.missed - self._kept:
            # Aside, and from the beginning: meanwhile other sessions look at the graph there is.
            kept = frozenset(self._kept | missed)
            graph, read_to = DecisionGraph(self._most_noted, kept), dict[str, int]()
            await self._read_on(graph, read_to)
            self._kept, self.graph, self._read_to = kept, graph, read_to
            await self._read_on(graph, read_to)
        return self.graph

    async def _read_on(self, graph: DecisionGraph, read_to: dict[str, int]) -> None:
        """Have a graph take in what was stored since."""
        found: list[tuple[float, str, Record]] = []
        for stream in (*self._folders, self._stream):
            time = -inf
            for record in await self._new(stream, read_to.get(stream, 0)):
                # Each stream keeps its own order, be it that the clock was set back meanwhile.
                time = max(time, record.at)
                found.append((time, stream, record))
        # A fact about a node may stand in another stream than the node itself.  Of the same time,
        # those of the other streams come first: what is added here is about what was there.
        found.sort(key=itemgetter(0))
        for _, stream, record in found:
            # Sessions share the book: another one may have taken some of these in meanwhile.
            if record.seq > read_to.get(stream, 0):
                read_to[stream] = record.seq
                self._take(graph, stream, record)

    async def _new(self, stream: str, after: int) -> list[Record]:
        found: list[Record] = []
        while records := await self._store.read(stream, after=after, limit=PAGE):
            found += records
            after = records[-1].seq
        return found

    async def refresh_after_append(self) -> None:
        """Read what was added.  That it is stored does not change when it cannot be read yet: an
        error here would have it logged again.
        """
        try:
            await self.refresh()
        except StoreError:
            logger.warning("the project's decisions cannot be read on", exc_info=True)

    def _take(self, graph: DecisionGraph, stream: str, record: Record) -> None:
        try:
            fact = decode_decision(record.kind, record.body)
        except Corrupt as error:
            # One fact that cannot be read must not hide all the others.
            logger.warning("a decision cannot be read: %s", error, extra={"seq": record.seq})
            return
        if fact is not None and stream != self._stream:
            fact = _related_fact(fact, self._folders.get(stream, ""), self._folder)
        if fact is not None:
            graph.apply(fact)

    async def add(self, facts: Sequence[DecisionFact], session_id: str = "") -> None:
        """Put facts onto the project's stream that belong to no append of a session.

        All of them or none; a cancel leaves one or the other.

        Raises:
            StoreError: they cannot be stored.
        """
        batch = ProjectFacts(project_id=self.project_id, facts=tuple(facts))
        await self._append(batch, session_id)
        await self.refresh_after_append()

    async def _append(self, batch: ProjectFacts, session_id: str = "") -> None:
        end = await self._store.last_seq(project_stream(batch.project_id))
        for _ in range(MOST_TRIES):
            append = project_append(
                batch, end, session_id=SessionId(session_id), now=self._clock.now()
            )
            try:
                await append_once(self._store, append)
            except Conflict as conflict:
                end = conflict.actual
            else:
                return
        raise StoreUnavailable("the project's stream is written to without end; try again later")

    async def purge(self, ids: Collection[DecisionId]) -> None:
        """Take the words of these nodes out of the stream for good, and the nodes out of the graph.

        Raises:
            StoreError: it cannot be stored; what has gone until then is gone.
        """
        # The words first: when this is cut short, the nodes are still there, to be purged again.
        # The new facts tell the processes that have read the old ones.
        facts = tuple(DecisionPurged(id=name) for name in ids)
        for stream in self._folders:
            if records := await self._purged_records(stream, ids):
                await self._store.overwrite(stream, records)
                project_id = stream.removeprefix(PROJECT_STREAM)
                await self._append(ProjectFacts(project_id=project_id, facts=facts))
        await self._store.overwrite(self._stream, await self._purged_records(self._stream, ids))
        await self.add(facts)

    async def _purged_records(self, stream: str, ids: Collection[DecisionId]) -> list[Record]:
        found: list[Record] = []
        after = 0
        while records := await self._store.read(stream, after=after, limit=PAGE):
            after = records[-1].seq
            found += [new for old in records if (new := _purged(old, ids)) is not None]
        return found


def _purged(record: Record, ids: Collection[DecisionId]) -> Record | None:
    """A record without the words of these nodes; None where it has none."""
    from weft.runtime.decisions.decision_purge import (
        purged_fact,  # hardly ever needed: start-up time
    )

    try:
        fact = decode_decision(record.kind, record.body)
    except Corrupt:
        # Whatever it says, it is of no use; of these nodes, it must not say it any longer.
        named = next((name for name in ids if name.encode() in record.body), None)
        if named is None:
            return None
        lost = DecisionPurged(id=named, seq=record.seq, at=record.at)
        return Record(record.seq, record.at, kind_of(lost), encode(lost))
    new = None if fact is None else purged_fact(fact, ids)
    if new is None or new == fact:
        return None
    return Record(record.seq, record.at, record.kind, encode(new))


def _related_fact(fact: DecisionFact, there: str, here: str) -> DecisionFact | None:
    from weft.decisions.related_facts import related_fact  # few repositories have several projects

    return related_fact(fact, there, here)


def shared_book(
    books: dict[tuple[int, str], DecisionBook],
    store: Store,
    project_id: str,
    clock: Clock,
    related: RelatedSource | None = None,
) -> DecisionBook:
    """The one book of a project in a store: a graph of thousands of nodes is kept once for all
    sessions.
    """
    # A session may have a store of its own.  A book holds its store, so that no other store gets
    # the same number while the book is here.
    key = (id(store), project_id)
    book = books.pop(key, None)
    if book is None:
        book = DecisionBook(store, project_id, clock, related, MOST_NOTED)
    books[key] = book
    while len(books) > MOST_BOOKS:
        del books[next(iter(books))]
    return book


def logged_commit(
    project_id: str,
    facts: Sequence[DecisionFact],
    *,
    ids: Sequence[DecisionId],
    summary: str,
    node: NodeId | None = None,
    call_uid: CallUid | None = None,
) -> Commit:
    """What a session adds to its project's graph, and its own fact that says so: one append."""
    logged = DecisionLogged(
        ids=tuple(ids), project_id=project_id, summary=summary, node=node, call_uid=call_uid
    )
    added = ProjectFacts(project_id=project_id, facts=tuple(facts))
    return Commit(facts=(logged,), projects=(added,))


async def with_file_evidence(
    facts: Sequence[DecisionFact],
    workspace: Workspace,
    forbids: Callable[[str], object] = lambda path: False,
) -> list[DecisionFact]:
    """The same facts; nodes that name files as their scope carry those files as they are now, but
    for files that may not be read.
    """
    return [
        DecisionAdded(node=await _with_files(fact.node, workspace, forbids))
        if isinstance(fact, DecisionAdded) and fact.node.kind != "option"
        else fact
        for fact in facts
    ]


async def _with_files(
    node: DecisionNode, workspace: Workspace, forbids: Callable[[str], object]
) -> DecisionNode:
    known = {each.path for each in node.evidence if isinstance(each, FileEvidence)}
    plain = [scope for scope in node.scope if not is_symbol(scope) and not set(scope) & set("*?[{")]
    found = []
    for path in plain[:MOST_FILES]:
        if path in known or forbids(path):
            continue
        content = await file_content(workspace, path, forbids)
        if content is not None:
            found.append(file_evidence(path, content))
    if not found:
        return node
    return msgspec.structs.replace(node, evidence=(*node.evidence, *found))


async def file_content(
    workspace: Workspace, path: str, forbids: Callable[[str], object] = lambda path: False
) -> bytes | None:
    """What a file of the project holds; None where there is none, or it is too large."""
    try:
        state = await workspace.peek(path, limit=LARGEST_FILE)
    except (ToolError, OSError):
        return None
    # By the name that it really has, too: a link may lead to a file that must not be read.
    if state is None or state.truncated or forbids(state.path):
        return None
    return state.data


def key_of(project_id: str | None, project_path: str) -> str:
    """What a project's stream is named by, as `SessionSummary.project_key` has it."""
    return project_id or derived_id("prj", project_path)
