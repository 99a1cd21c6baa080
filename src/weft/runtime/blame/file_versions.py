"""Versions of a project's files: each change that the log of a session tells of, folded into rows
that can be looked up by path, by content and by the call that made them.

What wrote a version is told apart here; what a version holds is only named by its hash.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable
from typing import Final, Literal, TypeAlias

import msgspec

from weft.errors import Corrupt
from weft.events import (
    AnyFact,
    FanCandidateStarted,
    FanKept,
    FileTouched,
    Rewound,
    SessionCreated,
    TurnStarted,
    WorkspaceSnapshot,
    decode,
)
from weft.ids import BlobId, CallUid, NodeId, SessionId, TurnId
from weft.store import Record

VersionKind: TypeAlias = Literal["call", "kept", "rewind", "outside", "unknown"]
"""`kept`: a candidate's changes; `outside`: by nothing that the session ran; `unknown`: a command
of the session may have made it."""

MOST_CALLS: Final = 200
"""Calls whose tool is remembered until they report what they changed."""
_KINDS: Final = frozenset(
    {
        *("session_created", "turn_started", "file_touched", "rewound", "workspace_snapshot"),
        *("fan_candidate_started", "fan_kept", "fan_kept@2", "tool_executing"),
    }
)
_COMMITS: Final = b'"commits":'


class FileVersion(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One change of one path."""

    session: SessionId
    seq: int
    at: float
    path: str
    kind: VersionKind
    was_there: bool
    is_there: bool
    before: BlobId | None = None
    after: BlobId | None = None
    is_certain: bool = True
    call_uid: CallUid | None = None
    tool: str = ""
    turn_id: TurnId | None = None
    turn_node: NodeId | None = None
    turn_seq: int = 0
    child: SessionId | None = None
    """Of a kept one: the candidate's session."""
    index: int = 0
    """Of a kept one: which candidate."""

    @property
    def order(self) -> tuple[float, str, int]:
        """What versions of several logs are ordered by."""
        return (self.at, self.session, self.seq)

    @property
    def group(self) -> str:
        """Equal for all that was changed in one go."""
        return self.call_uid or f"{self.kind} {self.seq}"


class MadeCommit(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A commit that a call made."""

    session: SessionId
    seq: int
    at: float
    commit: str
    turn_id: TurnId | None
    turn_node: NodeId | None
    turn_seq: int


class LogFold(msgspec.Struct):
    """What has to be known of a log to read it on."""

    latest: float = 0.0
    """The latest time so far: a clock may be set back, and its log goes on."""
    place: bool = False
    """Its session works in an overlay or a copy of its own."""
    turn_id: TurnId | None = None
    turn_node: NodeId | None = None
    turn_seq: int = 0
    tools: dict[CallUid, str] = {}
    candidates: dict[str, SessionId] = {}


class _Intent(msgspec.Struct):
    """The little that is needed of an intent: its arguments may be a whole file."""

    call_uid: CallUid
    tool_name: str


class _Ended(msgspec.Struct):
    result: _Result


class _Result(msgspec.Struct):
    data: _Data


class _Data(msgspec.Struct):
    commits: list[str] = []


class VersionFold:
    """Reads one log on."""

    def __init__(self, session: SessionId, known: LogFold) -> None:
        self.session = session
        self.known = known
        self.versions: list[FileVersion] = []
        self.commits: list[MadeCommit] = []

    def take(self, records: Iterable[Record]) -> None:
        """Take more records in; what cannot be read is passed over, as `weft store verify` tells
        of it.
        """
        for record in records:
            try:
                if record.kind == "tool_complete":
                    self._committed(record)
                elif record.kind in _KINDS:
                    self.known.latest = max(self.known.latest, record.at)
                    self._take(msgspec.structs.replace(record, at=self.known.latest))
            except (Corrupt, msgspec.MsgspecError):
                continue

    def _take(self, record: Record) -> None:
        if record.kind == "tool_executing":
            intent = msgspec.json.decode(record.body, type=_Intent)
            self.known.tools[intent.call_uid] = intent.tool_name
            while len(self.known.tools) > MOST_CALLS:
                del self.known.tools[next(iter(self.known.tools))]
            return
        self._fact(record, decode(record.body))

    def _fact(self, record: Record, fact: AnyFact) -> None:
        match fact:
            case FileTouched():
                self._touched(record, fact)
            case Rewound():
                self._rewound(record, fact)
            case WorkspaceSnapshot():
                self._snapshot(record, fact)
            case TurnStarted():
                self.known.turn_id, self.known.turn_node = fact.turn_id, fact.node
                self.known.turn_seq = record.seq
            case SessionCreated(settings=settings):
                self.known.place = bool(settings.get("place"))
            case FanCandidateStarted():
                self.known.candidates[f"{fact.fan_id} {fact.index}"] = fact.child
            case FanKept():
                self._kept(fact)
            case _:
                pass

    def _touched(self, record: Record, fact: FileTouched) -> None:
        if stat.S_ISDIR(fact.mode_after or fact.mode_before) or fact.path.startswith("/"):
            return
        uid = fact.call_uid
        self.versions.append(
            FileVersion(
                session=self.session,
                seq=record.seq,
                at=record.at,
                path=fact.path,
                kind="call",
                was_there=fact.action != "created",
                is_there=fact.action != "deleted",
                before=fact.before,
                after=fact.after,
                is_certain=fact.is_certain,
                call_uid=uid,
                tool="" if uid is None else self.known.tools.get(uid, ""),
                turn_id=self.known.turn_id,
                turn_node=self.known.turn_node,
                turn_seq=self.known.turn_seq,
            )
        )

    def _rewound(self, record: Record, fact: Rewound) -> None:
        for each in fact.files:
            if stat.S_ISDIR(each.mode_after or each.mode_before):
                continue
            self.versions.append(
                FileVersion(
                    session=self.session,
                    seq=record.seq,
                    at=record.at,
                    path=each.path,
                    kind="rewind",
                    was_there=bool(each.before or each.mode_before),
                    is_there=bool(each.after or each.mode_after),
                    before=each.before,
                    after=each.after,
                )
            )

    def _snapshot(self, record: Record, fact: WorkspaceSnapshot) -> None:
        for each in fact.changes:
            # What the session did is told by its calls.
            if each.by == "session" or stat.S_ISDIR(each.mode):
                continue
            self.versions.append(
                FileVersion(
                    session=self.session,
                    seq=record.seq,
                    at=record.at,
                    path=each.path,
                    kind="outside" if each.by == "outside" else "unknown",
                    was_there=True,
                    is_there=bool(each.mode),
                    after=each.content,
                    turn_id=self.known.turn_id,
                    turn_node=self.known.turn_node,
                    turn_seq=self.known.turn_seq,
                )
            )

    def _kept(self, fact: FanKept) -> None:
        """The changes that stand before it, in the same append, are a candidate's."""
        child = self.known.candidates.get(f"{fact.fan_id} {fact.index}")
        left = set(fact.files)
        for place in range(len(self.versions) - 1, -1, -1):
            version = self.versions[place]
            if not left or version.kind != "call" or version.path not in left:
                break
            left.discard(version.path)
            self.versions[place] = msgspec.structs.replace(
                version,
                kind="kept",
                child=child,
                index=fact.index,
                turn_node=fact.node or version.turn_node,
            )

    def _committed(self, record: Record) -> None:
        if _COMMITS not in record.body:
            return  # results are large, and few calls commit
        found = msgspec.json.decode(record.body, type=_Ended).result.data.commits
        self.commits += [
            MadeCommit(
                self.session,
                record.seq,
                record.at,
                commit,
                self.known.turn_id,
                self.known.turn_node,
                self.known.turn_seq,
            )
            for commit in found
        ]
