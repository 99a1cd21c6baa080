"""Collection of an export document from the log: reads a session's facts, those it shares with
other logs first, and puts the words in.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final, Protocol

import anyio.lowlevel
import msgspec

from weft.errors import Corrupt, SessionNotFound
from weft.events import (
    AnyFact,
    ArchitectPlan,
    AsideAnswered,
    BoundaryChanged,
    ChildStarted,
    Compacted,
    Fact,
    FileTouched,
    ForkPoint,
    LeftOutFile,
    NewMessage,
    NodeEdited,
    NodesJoined,
    NodeSplit,
    PermissionResolved,
    ResultsCleared,
    SessionCreated,
    SkillChanged,
    SystemNote,
    ToolComplete,
    TurnFinished,
    TurnStarted,
    UnknownFact,
    WorkspaceSnapshot,
    decode,
)
from weft.export.document import (
    FORMAT,
    VERSION,
    ExportDocument,
    ExportedBlob,
    ExportedClearing,
    ExportedCompaction,
    ExportedFiles,
    ExportedNode,
    ExportedNote,
    ExportedRef,
    ExportedResult,
    ExportedRevision,
    ExportedSession,
    ExportedTurn,
    kept_data,
)
from weft.ids import BlobId, CallUid, NodeId, SessionId, TurnId
from weft.messages import File, Image, Part, Text
from weft.state import SessionState, note_left_out
from weft.store import Store
from weft.tree import LogPosition

PAGE: Final = 2_000
DEEPEST_FORK: Final = 1_000

_COUNTED: dict[type[Fact], str] = {
    FileTouched: "file_history",
    ChildStarted: "children",
    BoundaryChanged: "boundaries",
    SkillChanged: "skills",
    ArchitectPlan: "plans",
    AsideAnswered: "side_questions",
}
"""Facts that are no conversation, and the name under which they are counted."""

_KEPT_SETTINGS = frozenset({"title", "model", "thinking"})
_NO_MATTER = frozenset(
    {"auto_title", "archived", "permission_mode", "imported_without", "imported_from"}
)
"""Settings that are neither written nor missed."""


class FileCollector(Protocol):
    """Gathers the listings and contents that trees of files name."""

    @property
    def held(self) -> Mapping[BlobId, bytes]:
        """All that was gathered."""
        ...

    async def add(
        self, tree: BlobId, left_out: Mapping[tuple[str, BlobId | None], str]
    ) -> tuple[LeftOutFile, ...] | None:
        """Gather a tree; returns its files whose content is not held: those that were left out, and
        what is not stored any more.  None where the tree itself is not stored.
        """
        ...


async def gather(
    session_id: SessionId, store: Store, collector: FileCollector | None = None
) -> ExportDocument:
    """The whole conversation of a stored session; with a `collector`, the project's files at the
    end of each turn too.

    Raises:
        SessionNotFound: there is no such session.
        Corrupt: its log, or one that it shares, cannot be read.
    """
    gathered = _Gathered(session_id)
    async for fact in _facts(session_id, store):
        gathered.take(fact)
    document = await _with_blobs(gathered.document(), store)
    if collector is None:
        return document
    return await _with_files(document, gathered.snapshots, collector)


# --- reading -----------------------------------------------------------------------------


async def _facts(session_id: SessionId, store: Store) -> AsyncIterator[AnyFact]:
    """All facts of the session's past and its own, oldest first."""
    logs: list[tuple[SessionId, int]] = [(session_id, 0)]
    while (fork := await _fork_of(logs[-1][0], store)) is not None:
        logs.append((fork.session_id, fork.seq))
        # Logs are data: one that names itself as its past would be followed for ever.
        if len(logs) > DEEPEST_FORK:
            raise Corrupt(session_id, "its forks go round in a circle")
    for log, upto in reversed(logs):
        async for fact in _log(log, upto, store):
            yield fact


async def _fork_of(log: SessionId, store: Store) -> ForkPoint | None:
    records = await store.read(log, limit=1)
    if not records:
        raise SessionNotFound(log)
    first = decode(records[0].body, stream=log, seq=1)
    return first.fork if isinstance(first, SessionCreated) else None


async def _log(log: SessionId, upto: int, store: Store) -> AsyncIterator[AnyFact]:
    after = 0
    while records := await store.read(log, after=after, limit=PAGE):
        for record in records:
            # The past that a fork shares ends where it forked; what the parent did later is not
            # part of it.
            if upto and record.seq > upto:
                return
            yield decode(record.body, stream=log, seq=record.seq)
        after = records[-1].seq
        # Memory stores answer without waiting, and a long log would hold up every other session.
        await anyio.lowlevel.checkpoint()


# --- folding -----------------------------------------------------------------------------


class _Gathered:
    """What a pass over the facts leaves: the folds, and the words by the node they belong to."""

    def __init__(self, session_id: SessionId) -> None:
        self._state = SessionState(session_id=session_id)
        self._nodes: dict[NodeId, NewMessage] = {}
        self._edits: dict[NodeId, list[NodeEdited]] = {}
        self._results: dict[CallUid, ToolComplete] = {}
        self._notes: list[SystemNote] = []
        self._compactions: dict[LogPosition, Compacted | ResultsCleared] = {}
        self._started: dict[TurnId, TurnStarted] = {}
        self._turns: list[ExportedTurn] = []
        self._others: Counter[str] = Counter()
        self._is_cut = False
        """Messages were split or joined, and may come before their parents."""
        self.snapshots: list[WorkspaceSnapshot] = []

    def take(self, fact: AnyFact) -> None:
        """Take one more fact in."""
        self._state.apply(fact)
        match fact:
            case NewMessage(node=node):
                self._nodes.setdefault(node.id, fact)
            case NodeEdited(node=node_id):
                self._edits.setdefault(node_id, []).append(fact)
            case NodeSplit() | NodesJoined():
                self._take_cut(fact)
            case ToolComplete(call_uid=call_uid):
                self._results.setdefault(call_uid, fact)
            case SystemNote(environment=told) if told:
                pass  # it tells of this machine; a session that is imported tells of its own
            case SystemNote():
                self._notes.append(fact)
            case Compacted() | ResultsCleared():
                self._compactions[LogPosition(fact.session_id, fact.seq)] = fact
            case TurnStarted(turn_id=turn_id):
                self._started[turn_id] = fact
            case TurnFinished():
                self._turn_finished(fact)
            case PermissionResolved(pattern=pattern, session_id=log):
                # A fork has none of the grants that were given before it.
                self._others["grants"] += bool(pattern) and log == self._state.session_id
            case WorkspaceSnapshot(tree=tree) if tree is not None:
                self.snapshots.append(fact)
                self._others["snapshots"] += 1
            case UnknownFact():
                self._others["unknown_facts"] += 1
            case _:
                if (name := _COUNTED.get(type(fact))) is not None:
                    self._others[name] += 1

    def _take_cut(self, fact: NodeSplit | NodesJoined) -> None:
        """A node that was split or joined: a revision of it, and of a split one more message."""
        edited = NodeEdited(node=fact.node, revision=fact.revision, parts=fact.parts, at=fact.at)
        self._edits.setdefault(fact.node, []).append(edited)
        if isinstance(fact, NodeSplit):
            self._nodes.setdefault(fact.tail.id, NewMessage(node=fact.tail, at=fact.at))
        self._is_cut = True

    def _messages(self) -> list[NewMessage]:
        """All messages, each after its parent."""
        found = list(self._nodes.values())
        if self._is_cut:
            nodes = self._state.tree.nodes
            found.sort(key=lambda fact: nodes[fact.node.id].depth)
        return found

    def _turn_finished(self, finished: TurnFinished) -> None:
        started = self._started.pop(finished.turn_id, None)
        if started is None:
            return
        self._turns.append(
            ExportedTurn(
                id=finished.turn_id,
                reason=finished.reason,
                exact=finished.exact,
                at=started.at,
                ended=finished.at,
                node=started.node,
                continued=started.continued,
                iterations=finished.iterations,
                retries=finished.retries,
                detail=finished.detail,
                deliverable=finished.deliverable,
            )
        )

    def document(self) -> ExportDocument:
        """The document, long parts still as blobs."""
        state, tree = self._state, self._state.tree
        compactions, clearings = self._room_made()
        return ExportDocument(
            format=FORMAT,
            version=VERSION,
            session=ExportedSession(
                id=state.session_id,
                title=state.title,
                model=state.settings.model,
                thinking=self._thinking(),
                created=state.about.created,
            ),
            head=tree.head,
            nodes=tuple(self._node(fact) for fact in self._messages()),
            refs=tuple(
                ExportedRef(name=name, node=r.node, ref=r.ref) for name, r in tree.refs.items()
            ),
            deleted=tuple(tree.deleted),
            notes=tuple(_note(fact) for fact in self._notes),
            compactions=compactions,
            clearings=clearings,
            turns=tuple(self._turns),
            todos=state.todos.items,
            left_out=self._left_out(),
        )

    def _room_made(self) -> tuple[tuple[ExportedCompaction, ...], tuple[ExportedClearing, ...]]:
        """The summaries and the clearings that hold, each oldest first."""
        compactions: list[ExportedCompaction] = []
        clearings: list[ExportedClearing] = []
        for each in self._state.tree.compactions:
            fact = self._compactions[each.at]
            if isinstance(fact, Compacted):
                compactions.append(_compaction(fact))
            else:
                clearings.append(_clearing(fact, len(compactions)))
        return tuple(compactions), tuple(clearings)

    def _thinking(self) -> str:
        level = self._state.settings.thinking
        return "" if level == "default" else level

    def _node(self, fact: NewMessage) -> ExportedNode:
        node = fact.node
        held = self._state.tree.nodes[node.id]
        first = ExportedRevision(number=node.revision, at=fact.at, parts=node.parts)
        later = (
            ExportedRevision(number=edit.revision, at=edit.at, parts=edit.parts)
            for edit in self._edits.get(node.id, ())
        )
        answered = (self._results.get(call.call_uid) for call in node.calls)
        return ExportedNode(
            id=node.id,
            role=node.role,
            revisions=(first, *later),
            parent=held.parent if self._is_cut else node.parent,
            parent_revision=held.parent_revision,
            model=node.model,
            usage=node.usage,
            metadata=dict(held.marks),
            results=tuple(_result(done) for done in answered if done is not None),
        )

    def _left_out(self) -> dict[str, int]:
        """What the session has besides the conversation.

        An imported one passes on what its own export had left out.
        """
        state = self._state
        counted = Counter(state.settings.get("imported_without") or {})
        counted.update(self._others)
        others = set(state.settings.values) - _KEPT_SETTINGS - _NO_MATTER
        counted.update(
            queue=len(state.queue.entries),
            goals=int(state.goal.is_open),
            schedules=len(state.schedules.open),
            requests=len(state.turn.requests),
            usage=state.ledger.calls,
            open_turn=int(state.turn.open is not None),
            settings=len(others),
            rules=int(state.settings.permission_mode != "default" and not state.about.imported),
        )
        return {name: counted[name] for name in sorted(counted) if counted[name]}


def _result(fact: ToolComplete) -> ExportedResult:
    """The result; `full_text` still names the blob."""
    result = fact.result
    return ExportedResult(
        call_uid=fact.call_uid,
        at=fact.at,
        text=result.text,
        images=result.images,
        is_error=result.is_error,
        status=result.status,
        full_text=result.full_text,
        data=kept_data(result.data),
        duration_ms=fact.duration_ms,
    )


def _note(fact: SystemNote) -> ExportedNote:
    return ExportedNote(
        text=fact.text, at=fact.at, node=fact.node, level=fact.level, to_model=fact.to_model
    )


def _compaction(fact: Compacted) -> ExportedCompaction:
    return ExportedCompaction(
        upto=fact.upto,
        summary=fact.summary,
        at=fact.at,
        carried=fact.carried,
        tokens_before=fact.tokens_before,
        tokens_after=fact.tokens_after,
        kept=fact.kept,
        struck=fact.struck,
    )


def _clearing(fact: ResultsCleared, compactions: int) -> ExportedClearing:
    return ExportedClearing(
        upto=fact.upto,
        results=fact.results,
        at=fact.at,
        tokens_before=fact.tokens_before,
        tokens_after=fact.tokens_after,
        compactions=compactions,
    )


# --- files ------------------------------------------------------------------------------


async def _with_files(
    document: ExportDocument, snapshots: Sequence[WorkspaceSnapshot], collector: FileCollector
) -> ExportDocument:
    """The document with the snapshots whose trees are stored.  Each names all of its files whose
    content is not in the document: under its hash, that could be the content of another session
    where it is imported.
    """
    files: list[ExportedFiles] = []
    left_out: dict[tuple[str, BlobId | None], str] = {}
    lost = 0
    for fact in snapshots:
        note_left_out(left_out, fact)
        # One before an effect is of no message, and all that it has is in the next one's tree.
        if fact.tree is None or fact.node is None:
            continue
        missing = await collector.add(fact.tree, left_out)
        if missing is None:
            lost += 1
            continue
        files.append(
            ExportedFiles(
                node=fact.node,
                tree=fact.tree,
                after=fact.after,
                changes=fact.changes,
                # All of the tree, and not only what is new in it: the snapshot that named the
                # others may not be in the file.
                left_out=missing,
                at=fact.at,
            )
        )
    dropped = {name: count for name, count in document.left_out.items() if name != "snapshots"}
    if lost:
        dropped["snapshots"] = lost
    encoded = (
        ExportedBlob(base64=base64.b64encode(data).decode()) for data in collector.held.values()
    )
    return msgspec.structs.replace(
        document, files=tuple(files), blobs=tuple(encoded), left_out=dropped
    )


# --- blobs -------------------------------------------------------------------------------


async def _with_blobs(document: ExportDocument, store: Store) -> ExportDocument:
    nodes = tuple([await _node_with_blobs(node, store) for node in document.nodes])
    return msgspec.structs.replace(document, nodes=nodes)


async def _node_with_blobs(node: ExportedNode, store: Store) -> ExportedNode:
    revisions = tuple(
        [
            msgspec.structs.replace(each, parts=await _parts_in_full(each.parts, store))
            for each in node.revisions
        ]
    )
    results = tuple([await _result_in_full(each, store) for each in node.results])
    return msgspec.structs.replace(node, revisions=revisions, results=results)


async def _parts_in_full(parts: Sequence[Part], store: Store) -> tuple[Part, ...]:
    return tuple([await _part_in_full(part, store) for part in parts])


async def _part_in_full(part: Part, store: Store) -> Part:
    match part:
        case Text(blob=blob) | File(blob=blob) if blob is not None:
            text = (await _blob(blob, store)).decode("utf-8", "replace")
            return msgspec.structs.replace(part, text=text, blob=None)
        case Image(blob=blob) if blob is not None:
            data = base64.b64encode(await _blob(blob, store)).decode()
            return msgspec.structs.replace(part, data=data, blob=None)
        case _:
            return part


async def _result_in_full(result: ExportedResult, store: Store) -> ExportedResult:
    images = tuple([await _part_in_full(image, store) for image in result.images])
    result = msgspec.structs.replace(result, images=images)
    if result.full_text is None:
        return result
    data = await _blob(BlobId(result.full_text), store)
    try:
        return msgspec.structs.replace(result, full_text=data.decode())
    except UnicodeDecodeError:
        # Output of a command need not be text, and an export must give back the same bytes.
        encoded = base64.b64encode(data).decode()
        return msgspec.structs.replace(result, full_text=None, full_base64=encoded)


async def _blob(blob_id: BlobId, store: Store) -> bytes:
    data = await store.blob(blob_id)
    if data is None:
        raise Corrupt("blobs", f"the content {blob_id} is missing")
    return data
