"""Import of an export: from the document to the facts of a new session.

The document is untrusted.  Only the conversation comes of it: no grants, no rules, no queue, no
open requests, no file history and no money, whatever the file says.  Its parts must fit together
(parents, heads, refs, calls and results), or nothing is made at all.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, TypeAlias

import msgspec

from weft.errors import Corrupt
from weft.events import (
    Compacted,
    Fact,
    HeadMoved,
    NewMessage,
    NodeEdited,
    RefMoved,
    ResultsCleared,
    SettingChanged,
    SubtreeDeleted,
    SystemNote,
    TodoChanged,
    ToolComplete,
    TurnFinished,
    TurnStarted,
    WorkspaceSnapshot,
)
from weft.export.codec import ParsedDocument
from weft.export.document import (
    ExportDocument,
    ExportedFiles,
    ExportedNode,
    ExportedResult,
    ExportedRevision,
    kept_data,
)
from weft.ids import BlobId, CallUid, NodeId
from weft.messages import File, Image, Part, Text, ToolCall, ToolResult
from weft.messages import Node as MessageNode
from weft.sha256 import sha256
from weft.thinking_levels import THINKING_LEVELS

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}")
_MOST_NAMES: Final = 50
_END_OF_TIME: Final = 253_402_300_800
"""The year 10000, in seconds since 1970."""


class RestoredFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What an import appends behind `SessionCreated`."""

    facts: tuple[Fact, ...]
    blobs: Mapping[BlobId, bytes]
    title: str
    model: str
    created: float
    dropped: dict[str, int]
    """What the exported session had besides its conversation, by name, and how much of it."""


TreeCheck: TypeAlias = Callable[
    [Sequence[WorkspaceSnapshot], Mapping[BlobId, bytes]], Collection[BlobId]
]
"""What the trees of snapshots name, of the blobs that are held.

Raises:
    ValueError: one is no tree or names what is not there, or the rest of a snapshot does not fit.
"""


def restore(
    parsed: ParsedDocument, name: str, check_trees: TreeCheck | None = None
) -> RestoredFacts:
    """The facts that make the conversation anew; `name` is the file's, for the sentence that
    refuses it.

    `check_trees` looks into the trees of files; without it they are left where they are.

    Raises:
        Corrupt: its parts do not fit together.
    """
    document = parsed.document
    _Checks(document, name).run()
    blobs: dict[BlobId, bytes] = {}
    snapshots = {} if check_trees is None else _snapshots(document, name, check_trees, blobs)
    facts: list[Fact] = []
    for node in document.nodes:
        facts += _node_facts(node, blobs)
        facts += snapshots.get(node.id, ())
    facts += _other_facts(document)
    dropped = _dropped(document, parsed.others)
    facts.append(SettingChanged(name="imported_without", value=dropped))
    return RestoredFacts(
        facts=tuple(facts),
        blobs=blobs,
        title=document.session.title,
        model=document.session.model,
        created=document.session.created,
        dropped=dropped,
    )


def _dropped(document: ExportDocument, others: Sequence[str]) -> dict[str, int]:
    named = {name[:60]: count for name, count in document.left_out.items() if count > 0}
    named |= {name[:60]: named.get(name[:60], 1) for name in others}
    return dict(sorted(named.items())[:_MOST_NAMES])


# --- facts -------------------------------------------------------------------------------


def _node_facts(node: ExportedNode, blobs: dict[BlobId, bytes]) -> list[Fact]:
    first, *later = node.revisions
    made = MessageNode(
        id=node.id,
        role=node.role,
        parts=first.parts,
        parent=node.parent,
        parent_revision=node.parent_revision,
        model=node.model,
        usage=node.usage,
        revision=first.number,
        metadata=node.metadata,
    )
    # The head stays where it is: it moves once, at the end, to the place that the document names.
    facts: list[Fact] = [NewMessage(node=made, advance=False, at=first.at)]
    facts += [_edited(node.id, revision) for revision in later]
    facts += [_completed(node.id, result, blobs) for result in node.results]
    return facts


def _snapshots(
    document: ExportDocument, name: str, check_trees: TreeCheck, blobs: dict[BlobId, bytes]
) -> dict[NodeId, list[Fact]]:
    """The snapshots of files, by the node that they were taken at; what they name goes to
    `blobs`."""
    held: dict[BlobId, bytes] = {}
    for blob in document.blobs:
        _keep(base64.b64decode(blob.base64), held)
    made = [_snapshot(each) for each in document.files]
    try:
        blobs.update((blob_id, held[blob_id]) for blob_id in check_trees(made, held))
    except ValueError as error:
        raise Corrupt(name, f"its files cannot be read ({error})") from error
    found: dict[NodeId, list[Fact]] = {}
    earlier: set[BlobId | None] = set()
    for each, fact in zip(document.files, made, strict=True):
        # The hash of a tree that is not in the file could be that of another session's.
        after = fact.after if fact.after in earlier else None
        found.setdefault(each.node, []).append(msgspec.structs.replace(fact, after=after))
        earlier.add(fact.tree)
    return found


def _snapshot(files: ExportedFiles) -> WorkspaceSnapshot:
    return WorkspaceSnapshot(
        node=files.node,
        tree=files.tree,
        after=files.after,
        changes=files.changes,
        left_out=files.left_out,
        at=files.at,
    )


def _edited(node: NodeId, revision: ExportedRevision) -> NodeEdited:
    return NodeEdited(node=node, revision=revision.number, parts=revision.parts, at=revision.at)


def _completed(node: NodeId, result: ExportedResult, blobs: dict[BlobId, bytes]) -> ToolComplete:
    return ToolComplete(
        call_uid=result.call_uid,
        node=node,
        is_error=result.is_error,
        duration_ms=result.duration_ms,
        at=result.at,
        result=ToolResult(
            call_uid=result.call_uid,
            text=result.text,
            images=result.images,
            is_error=result.is_error,
            status=result.status,
            full_text=_keep(_full(result), blobs),
            data=kept_data(result.data),
        ),
    )


def _full(result: ExportedResult) -> bytes | None:
    if result.full_base64 is not None:
        return base64.b64decode(result.full_base64)
    return result.full_text.encode() if result.full_text is not None else None


def _keep(data: bytes | None, blobs: dict[BlobId, bytes]) -> BlobId | None:
    if data is None:
        return None
    # Computed here and never taken from the file, which could name the content of another session.
    blob_id = BlobId(sha256(data).hexdigest())
    blobs[blob_id] = data
    return blob_id


def _other_facts(document: ExportDocument) -> list[Fact]:
    """Everything that hangs on the nodes; the head moves last."""
    facts: list[Fact] = [
        SystemNote(text=n.text, level=n.level, to_model=n.to_model, node=n.node, at=n.at)
        for n in document.notes
    ]
    facts += _room_facts(document)
    facts += _turn_facts(document)
    facts += [RefMoved(name=ref.name, node=ref.node, ref=ref.ref) for ref in document.refs]
    facts += [SubtreeDeleted(node=node) for node in document.deleted]
    if document.todos:
        facts.append(TodoChanged(items=document.todos))
    if document.session.thinking not in ("", "default"):
        facts.append(SettingChanged(name="thinking", value=document.session.thinking))
    # Last, when all that the head could lie on is there.
    facts.append(HeadMoved(node=document.head))
    return facts


def _room_facts(document: ExportDocument) -> list[Fact]:
    """What was compacted and cleared, in the order in which it was done: an undo takes the newest
    back.
    """
    made: list[tuple[int, Fact]] = [
        (
            number,
            Compacted(
                upto=each.upto,
                summary=each.summary,
                carried=each.carried,
                tokens_before=each.tokens_before,
                tokens_after=each.tokens_after,
                kept=each.kept,
                struck=each.struck,
                at=each.at,
            ),
        )
        for number, each in enumerate(document.compactions)
    ]
    made += [
        (
            each.compactions - 1,
            ResultsCleared(
                upto=each.upto,
                results=each.results,
                tokens_before=each.tokens_before,
                tokens_after=each.tokens_after,
                at=each.at,
            ),
        )
        for each in document.clearings
    ]
    return [fact for _, fact in sorted(made, key=itemgetter(0))]


def _turn_facts(document: ExportDocument) -> list[Fact]:
    facts: list[Fact] = []
    for turn in document.turns:
        facts += [
            TurnStarted(turn_id=turn.id, node=turn.node, continued=turn.continued, at=turn.at),
            TurnFinished(
                turn_id=turn.id,
                reason=turn.reason,
                exact=turn.exact,
                iterations=turn.iterations,
                retries=turn.retries,
                detail=turn.detail,
                deliverable=turn.deliverable,
                at=turn.ended,
            ),
        ]
    return facts


# --- checks ------------------------------------------------------------------------------


class _Checks:
    """Whether the parts of a document fit together."""

    def __init__(self, document: ExportDocument, name: str) -> None:
        self._document = document
        self._name = name
        self._nodes: set[NodeId] = set()
        self._calls: set[CallUid] = set()

    def run(self) -> None:
        for node in self._document.nodes:
            self._check_node(node)
        document = self._document
        self._check_known("the head", [document.head])
        self._check_known("a ref", [ref.node for ref in document.refs])
        self._check_known("a deleted subtree", document.deleted)
        self._check_known("a note", [note.node for note in document.notes])
        self._check_known("a compaction", [each.upto for each in document.compactions])
        self._check_known("a clearing", [each.upto for each in document.clearings])
        self._check_cleared()
        self._check_known("a turn", [turn.node for turn in document.turns])
        self._check_known("a snapshot of files", [each.node for each in document.files])
        for blob in document.blobs:
            self._check_base64(blob.base64)
        for turn in document.turns:
            self._check_id(turn.id)
        self._check_times()
        names = [ref.name for ref in document.refs]
        if len(names) != len(set(names)):
            raise self._bad("two refs have the same name")
        if document.session.thinking not in ("", *THINKING_LEVELS):
            raise self._bad(f"there is no thinking level {document.session.thinking!r}")

    def _check_cleared(self) -> None:
        for uid in (uid for each in self._document.clearings for uid in each.results):
            if uid not in self._calls:
                where = f"{str(uid)[:60]!r}"
                raise self._bad(f"it clears the result of a call that is not there: {where}")

    def _check_times(self) -> None:
        """Times are shown to people, so they must be times."""
        document = self._document
        times = [document.session.created]
        times += [revision.at for node in document.nodes for revision in node.revisions]
        times += [result.at for node in document.nodes for result in node.results]
        times += [note.at for note in document.notes]
        times += [each.at for each in document.files]
        times += [compaction.at for compaction in document.compactions]
        times += [clearing.at for clearing in document.clearings]
        times += [time for turn in document.turns for time in (turn.at, turn.ended)]
        for time in times:
            if not 0 <= time < _END_OF_TIME:
                raise self._bad(f"{time} is not a time")

    def _check_node(self, node: ExportedNode) -> None:
        self._check_id(node.id)
        if node.id in self._nodes:
            raise self._bad(f"the node {node.id!r} is there twice")
        # Before the node itself is known: parents come first in the file, so no node can be its own
        # ancestor.
        self._check_known(f"the node {node.id!r}", [node.parent])
        if not node.revisions:
            raise self._bad(f"the node {node.id!r} says nothing")
        self._nodes.add(node.id)
        calls = {call.call_uid for revision in node.revisions for call in _calls(revision.parts)}
        for call in _calls(node.revisions[0].parts):
            self._check_id(call.call_uid)
            if call.call_uid in self._calls:
                raise self._bad(f"the call {call.call_uid!r} is there twice")
            self._calls.add(call.call_uid)
        if calls and node.role != "assistant":
            raise self._bad(f"the node {node.id!r} of the {node.role} calls tools")
        self._check_results(node)
        for revision in node.revisions:
            self._check_parts(revision.parts)

    def _check_results(self, node: ExportedNode) -> None:
        waiting = {call.call_uid for call in _calls(node.revisions[0].parts)}
        for result in node.results:
            if result.call_uid not in waiting:
                raise self._bad(f"a result of the node {node.id!r} answers no call of it")
            waiting.remove(result.call_uid)
            self._check_parts(result.images)
            self._check_base64(result.full_base64 or "")

    def _check_parts(self, parts: Iterable[Part]) -> None:
        for part in parts:
            if isinstance(part, Text | File | Image) and part.blob is not None:
                # The hash of a blob in this store would bring the content of another session into
                # this one.
                raise self._bad("a part names content that is not in the file")
            if isinstance(part, Image):
                self._check_base64(part.data)

    def _check_base64(self, data: str) -> None:
        try:
            base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError) as error:
            raise self._bad(f"an image or an output is not base64 ({error})") from error

    def _check_known(self, what: str, nodes: Iterable[NodeId | None]) -> None:
        for node in nodes:
            if node is not None and node not in self._nodes:
                raise self._bad(f"{what} names a node that is not there: {str(node)[:60]!r}")

    def _check_id(self, given: Any) -> None:
        if not _ID.fullmatch(given):
            raise self._bad(f"{str(given)[:60]!r} is not an id")

    def _bad(self, why: str) -> Corrupt:
        return Corrupt(self._name, why)


def _calls(parts: Iterable[Part]) -> list[ToolCall]:
    return [part for part in parts if isinstance(part, ToolCall)]
