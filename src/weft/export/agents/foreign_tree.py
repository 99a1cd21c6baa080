"""Tree of a foreign session while it is read, and the export of ours that it becomes.

A record names another by a key of its agent's.  Ids are made here and never taken over; a record
that is no message stands for the message before it, so that what follows it has a parent.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, ClassVar, Final

import msgspec

from weft.export.agents.tool_calls import our_call
from weft.export.document import (
    FORMAT,
    VERSION,
    ExportDocument,
    ExportedCompaction,
    ExportedNode,
    ExportedRef,
    ExportedResult,
    ExportedRevision,
    ExportedSession,
)
from weft.ids import CallUid, NodeId, SessionId, new_call_uid, new_node_id
from weft.messages import Image, Part, Role, Text, ToolCall, Usage, clean_text

MOST_KEPT: Final = 64 * 1024 * 1024
"""Bytes of text and pictures that are taken of one session."""
MOST_NODES: Final = 50_000
MOST_PARTS: Final = 500_000
"""Texts, calls, results and pictures: each costs room, however little it says."""
MOST_KEYS: Final = 2_000_000
"""Records that others may name."""
LONGEST_RESULT: Final = 48 * 1024
"""Letters of a result that the model reads; the rest is kept beside it."""
LONGEST_TITLE: Final = 80
MOST_NAMES: Final = 200
_OUR_NAME: Final = "main"
"""The branch that every session has."""
_DEEPEST: Final = 50
"""Levels of arguments: what is nested deeper, few programs read."""
_LARGEST_NUMBER: Final = 2**63
_NOT_TAKEN: Final = {"input": "(not taken: it cannot be kept)"}
INTERRUPTED: Final = "interrupted: there is no result of this call in the imported session"
_END_OF_TIME: Final = 253_402_300_800
_PICTURES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]+")


class DraftNode:
    """A message that is still being read."""

    __slots__ = ("at", "id", "model", "parent", "parts", "results", "role", "usage")

    def __init__(self, made: NodeId, role: Role, parent: DraftNode | None, at: float) -> None:
        self.id = made
        self.role: Role = role
        self.parent = parent
        self.at = at
        self.model = ""
        self.parts: list[Part] = []
        self.results: dict[CallUid, ExportedResult] = {}
        self.usage: Usage | None = None


class ForeignSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session of another agent, as an export of ours."""

    document: ExportDocument
    foreign_id: str = ""
    version: str = ""
    """Of the program that wrote it."""
    folder: str = ""
    """Where it worked."""
    messages: int = 0
    branches: int = 0
    """Ends of lines, that of the present line among them."""
    calls: int = 0
    unanswered: int = 0
    """Calls without a result, which are said to be interrupted."""
    usage: Usage | None = None
    """What it used there; no part of what is counted here."""
    is_cut: bool = False
    """There was more than is taken of one session."""


class ForeignReader(ABC):
    """Takes the records of one session, in their order."""

    agent: ClassVar[str]

    def __init__(self, now: float) -> None:
        self.now = now
        self.foreign_id = ""
        self.version = ""
        self.folder = ""
        self.title = ""
        self.tip: DraftNode | None = None
        """Where the line ends."""
        self._nodes: list[DraftNode] = []
        self._keys: dict[str, DraftNode | None] = {}
        self._calls: dict[str, tuple[DraftNode, CallUid]] = {}
        self._names: dict[str, DraftNode] = {}
        self._summaries: list[ExportedCompaction] = []
        self._kept = 0
        self._parts = 0
        self.is_full = False

    @abstractmethod
    def take(self, record: Mapping[str, Any]) -> None:
        """Read one record; what it does not know it passes over."""

    # -- building

    def key_of(self, key: Any) -> DraftNode | None:
        """The message that a key stands for."""
        return self._keys.get(key) if isinstance(key, str) else None

    def stand_for(self, key: Any, node: DraftNode | None) -> None:
        """Have a key stand for a message."""
        if isinstance(key, str):
            self._keys[key] = node
            self.is_full = self.is_full or len(self._keys) >= MOST_KEYS

    def add(self, role: Role, parent: DraftNode | None, at: float) -> DraftNode:
        """A new message behind another."""
        # None is later than the import: it would stand above all of the user's own for ever.
        node = DraftNode(new_node_id(self.now), role, parent, min(at, self.now))
        if len(self._nodes) < MOST_NODES:
            self._nodes.append(node)
        else:
            self.is_full = True
        return node

    def say(self, node: DraftNode, text: Any, *, typed: str = "") -> None:
        """Add text to a message."""
        if isinstance(text, str) and text.strip() and self._has_room(len(text)):
            node.parts.append(Text(text=clean_text(text), typed=clean_text(typed)))

    def show(self, node: DraftNode, media_type: Any, data: Any) -> None:
        """Add a picture to a message."""
        if picture := self.picture(media_type, data):
            node.parts.append(picture)

    def picture(self, media_type: Any, data: Any) -> Image | None:
        """A picture, where it is one that models take."""
        if not isinstance(media_type, str) or media_type not in _PICTURES:
            return None
        if not isinstance(data, str) or not data:
            return None
        data = re.sub(r"\s+", "", data)
        if re.fullmatch(r"[A-Za-z0-9+/]+={0,2}", data) is None or len(data) % 4:
            return None
        return Image(media_type=media_type, data=data) if self._has_room(len(data)) else None

    def call(self, node: DraftNode, key: Any, name: Any, args: Any) -> None:
        """Add a tool call to a message."""
        size = _size(args)
        if size is None:
            args, size = _NOT_TAKEN, 0
        if not isinstance(name, str) or not self._has_room(size):
            return
        ours, words = our_call(name, args if isinstance(args, dict) else {"input": args})
        uid = new_call_uid(self.now)
        node.parts.append(ToolCall(call_uid=uid, name=ours, args=words))
        if isinstance(key, str):
            # Vendors use an id again: the newest call of it is the one that is answered.
            self._calls[key] = (node, uid)

    def answer(
        self,
        key: Any,
        text: str,
        *,
        images: Iterable[Image | None] = (),
        is_error: bool = False,
        at: float = 0.0,
    ) -> DraftNode | None:
        """Put a result to its call; returns the message of the call."""
        node, uid = self._calls.get(key, (None, None)) if isinstance(key, str) else (None, None)
        if node is None or uid is None or uid in node.results:
            return node
        if not self._has_room(len(text)):
            text = ""
        text = clean_text(text)
        node.results[uid] = ExportedResult(
            call_uid=uid,
            at=min(at, self.now) or node.at,
            text=text[:LONGEST_RESULT],
            images=tuple(each for each in images if each is not None),
            is_error=is_error,
            full_text=text if len(text) > LONGEST_RESULT else None,
        )
        return node

    def summarize(self, upto: DraftNode | None, text: Any, at: float) -> None:
        """A summary in the place of the line up to a message."""
        if upto is not None and isinstance(text, str) and self._has_room(len(text)):
            said, at = clean_text(text), min(at, self.now)
            self._summaries.append(ExportedCompaction(upto=upto.id, summary=said, at=at))

    def name(self, label: str, node: DraftNode) -> None:
        """Name the end of a branch."""
        label = one_line(label, 60) or "branch"
        free = (f"{label} {number}" if number > 1 else label for number in range(1, MOST_NAMES + 3))
        taken = {*self._names, _OUR_NAME}
        if len(self._names) < MOST_NAMES:
            self._names[next(each for each in free if each not in taken)] = node

    def count(self, node: DraftNode | None, usage: Usage) -> None:
        """What a message used."""
        if node is not None:
            node.usage = usage

    def _has_room(self, size: int) -> bool:
        is_more = self._kept + size > MOST_KEPT or self._parts >= MOST_PARTS
        self.is_full = self.is_full or is_more
        self._kept += 0 if self.is_full else size
        self._parts += 1
        return not self.is_full

    # -- the end

    def finish(self) -> ForeignSession:
        """What was read, as an export."""
        said = [node for node in self._nodes if node.parts]
        known = {node.id for node in said}
        above = _said_above(self._nodes, known)
        parents = {node.id: above[node.id] for node in said}
        tip = self.tip.id if self.tip is not None else None
        head_id = tip if tip in known or tip is None else above.get(tip)
        open_calls = sum(len(_open(node)) for node in said)
        usage = [node.usage for node in said if node.usage is not None]
        document = ExportDocument(
            format=FORMAT,
            version=VERSION,
            session=ExportedSession(
                id=SessionId(""),
                title=self._title(said),
                created=min((node.at for node in said if node.at), default=self.now),
            ),
            head=head_id or (said[-1].id if said else None),
            nodes=tuple(_exported(node, parents[node.id]) for node in said),
            refs=tuple(
                ExportedRef(name=name, node=node.id)
                for name, node in self._names.items()
                if node.id in known
            ),
            compactions=tuple(each for each in self._summaries if each.upto in known),
        )
        return ForeignSession(
            document=document,
            foreign_id=one_line(self.foreign_id, 128),
            version=one_line(self.version, 40),
            folder=self.folder,
            messages=len(said),
            branches=len(known - {parent for parent in parents.values() if parent}),
            calls=sum(len(_calls(node)) for node in said),
            unanswered=open_calls,
            usage=sum(usage[1:], usage[0]) if usage else None,
            is_cut=self.is_full,
        )

    def _title(self, said: Iterable[DraftNode]) -> str:
        texts = (
            part.typed or part.text
            for node in said
            if node.role == "user"
            for part in node.parts
            if isinstance(part, Text)
        )
        return one_line(self.title, LONGEST_TITLE) or one_line(next(texts, ""), LONGEST_TITLE)


def _said_above(nodes: Iterable[DraftNode], known: set[NodeId]) -> dict[NodeId, NodeId | None]:
    """For each message the nearest one above that says something; parents come first."""
    found: dict[NodeId, NodeId | None] = {}
    for node in nodes:
        parent = node.parent.id if node.parent is not None else None
        found[node.id] = parent if parent in known or parent is None else found.get(parent)
    return found


def _calls(node: DraftNode) -> list[ToolCall]:
    return [part for part in node.parts if isinstance(part, ToolCall)]


def _open(node: DraftNode) -> list[CallUid]:
    return [call.call_uid for call in _calls(node) if call.call_uid not in node.results]


def _exported(node: DraftNode, parent: NodeId | None) -> ExportedNode:
    # A vendor refuses a call without a result, whatever became of it.
    lost = tuple(
        ExportedResult(
            call_uid=uid, at=node.at, text=INTERRUPTED, is_error=True, status="interrupted"
        )
        for uid in _open(node)
    )
    return ExportedNode(
        id=node.id,
        role=node.role,
        parent=parent,
        model=node.model,
        usage=node.usage,
        revisions=(ExportedRevision(at=node.at, parts=tuple(node.parts)),),
        metadata={"imported": True},
        results=(*node.results.values(), *lost),
    )


# --- values of records -------------------------------------------------------------------


def time_of(given: Any) -> float:
    """Seconds since 1970 of an ISO time or of milliseconds; 0 where it is no time."""
    seconds = 0.0
    if isinstance(given, str):
        try:
            seconds = datetime.fromisoformat(given[:40]).timestamp()
        except (ValueError, OverflowError):
            return 0.0
    elif isinstance(given, int | float) and not isinstance(given, bool):
        seconds = given / 1000 if abs(given) < 1000 * _END_OF_TIME else 0.0
    return seconds if 0 <= seconds < _END_OF_TIME else 0.0


def number(given: Any) -> int:
    """A count of tokens; 0 where it is none."""
    is_count = isinstance(given, int) and not isinstance(given, bool) and 0 <= given < 2**40
    return given if is_count else 0


def table(given: Any) -> Mapping[str, Any]:
    """An object, empty where it is none."""
    return given if isinstance(given, dict) else {}


def rows(given: Any) -> list[Mapping[str, Any]]:
    """The objects of a list."""
    return [each for each in given if isinstance(each, dict)] if isinstance(given, list) else []


def text_of(given: Any, wanted: Callable[[Mapping[str, Any]], bool] = lambda _: True) -> str:
    """The text of a content, which is text or a list of parts."""
    if isinstance(given, str):
        return given
    texts = (each.get("text") for each in rows(given) if wanted(each))
    return "\n".join(each for each in texts if isinstance(each, str))


def one_line(text: Any, most: int) -> str:
    """Text as one line without control characters, cut to so many letters."""
    if not isinstance(text, str):
        return ""
    # Cut first: what is shown of a huge text needs no look at all of it.
    return clean_text(" ".join(_CONTROL.sub(" ", text[: 20 * most]).split())[:most].rstrip())


def _size(value: Any) -> int | None:
    """Bytes of plain data; None for what a store could not hold or not read again."""
    level, depth = [value], 0
    while level:
        depth += 1
        inner: list[Any] = []
        for each in level:
            if isinstance(each, int | float) and not abs(each) < _LARGEST_NUMBER:  # nor no number
                return None
            inner += each.values() if isinstance(each, dict) else each if _is_list(each) else ()
        level = inner
        if depth > _DEEPEST:
            return None
    try:
        return len(msgspec.json.encode(value))
    except (msgspec.MsgspecError, OverflowError, TypeError, ValueError):
        return None


def _is_list(value: Any) -> bool:
    return isinstance(value, list)
