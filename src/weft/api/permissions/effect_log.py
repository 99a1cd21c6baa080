"""Audit of a session: every effect that its log tells of, with who allowed it and why.

Read from the facts alone; nothing is started.  A call of a tool is written down before it takes
effect, with what allowed it, so no effect of a tool is missing here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import msgspec

from weft.errors import Corrupt
from weft.events import (
    AnyFact,
    ChildStarted,
    FanKept,
    FileTouched,
    PermissionRequest,
    PermissionResolved,
    Rewound,
    SettingChanged,
    ToolComplete,
    ToolExecuting,
    decode,
)
from weft.ids import CallUid, RequestId, SessionId
from weft.store import Store

PAGE: Final = 1_000
NOT_RECORDED: Final = "not recorded"
"""Who allowed a call in a log that is older than the record of it."""
_USER: Final = "person"
"""What logs call a user who answered."""


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One effect, or one that was refused."""

    session: SessionId
    """The session that did it: the one that was asked for, or an agent of it."""
    seq: int
    at: float
    what: str
    """The tool; or `rewind`, `permission mode`, `keep candidate`."""
    target: str = ""
    """The command, the path, the address."""
    effect: str = "unknown"
    """`read`, `idempotent`, `mutating` or `unknown`, as the tool says of itself."""
    outcome: str = "unknown"
    """`done`, `failed`, `denied`; `unknown` where the log ends before the result."""
    by: str = NOT_RECORDED
    """`user`, `grant`, `rule`, `mode`, `hook`, `plan` or `auto_approve`."""
    why: str = ""
    """The rule or grant itself; else the reason in one sentence."""
    files: tuple[str, ...] = ()
    """Files that it changed."""


async def read_audit(store: Store, session_id: SessionId) -> list[AuditEntry]:
    """The effects of a session and of the agents that worked for it, in their order."""
    found: list[AuditEntry] = []
    waiting, seen = [session_id], {session_id}
    while waiting:
        current = waiting.pop(0)
        fold = _EffectFold(current)
        async for fact in facts_of(store, current):
            fold.take(fact)
            if isinstance(fact, ChildStarted) and fact.child not in seen:
                seen.add(fact.child)
                waiting.append(fact.child)
        found += fold.entries()
    return sorted(found, key=lambda each: (each.at, each.session, each.seq))


async def facts_of(store: Store, session_id: SessionId) -> AsyncIterator[AnyFact]:
    """The facts of a log; what cannot be read is passed over (`weft store verify` tells of it)."""
    after = 0
    while records := await store.read(session_id, after=after, limit=PAGE):
        for record in records:
            after = record.seq
            try:
                fact = decode(record.body)
            except Corrupt:
                continue
            yield msgspec.structs.replace(fact, seq=record.seq, at=record.at)
        if len(records) < PAGE:
            return


class _EffectFold:
    """The effects of one log."""

    def __init__(self, session_id: SessionId) -> None:
        self._session = session_id
        self._calls: dict[CallUid, AuditEntry] = {}
        self._others: list[AuditEntry] = []
        self._asked: dict[RequestId, PermissionRequest] = {}

    def take(self, fact: AnyFact) -> None:
        match fact:
            case ToolExecuting():
                self._executing(fact)
            case ToolComplete(call_uid=call) if call in self._calls:
                outcome = "failed" if fact.is_error else "done"
                if self._calls[call].outcome != "denied":
                    self._change(call, outcome=outcome)
            case FileTouched(call_uid=call, path=path) if call is not None and call in self._calls:
                self._change(call, files=(*self._calls[call].files, path))
            case PermissionRequest():
                self._asked[fact.request_id] = fact
            case PermissionResolved():
                self._resolved(fact)
            case Rewound(files=files, settles=0) if files:
                self._other(fact, "rewind", files=tuple(each.path for each in files))
            case SettingChanged(name="permission_mode"):
                self._other(fact, "permission mode", target=str(fact.value))
            case FanKept():
                self._other(fact, "keep candidate")
            case _:
                pass

    def entries(self) -> list[AuditEntry]:
        return [*self._calls.values(), *self._others]

    def _executing(self, fact: ToolExecuting) -> None:
        permission = fact.permission
        by = NOT_RECORDED if permission is None else permission.by
        why = "" if permission is None else permission.text
        self._calls[fact.call_uid] = AuditEntry(
            session=self._session,
            seq=fact.seq,
            at=fact.at,
            what=fact.tool_name,
            target=fact.target,
            effect=fact.effect,
            by=by,
            why=why,
        )

    def _resolved(self, fact: PermissionResolved) -> None:
        asked = self._asked.pop(fact.request_id, None)
        if asked is None or fact.action != "deny":
            return
        self._calls[asked.call_uid] = AuditEntry(
            session=self._session,
            seq=fact.seq,
            at=fact.at,
            what=asked.tool_name,
            target=asked.tool_path or asked.preview,
            outcome="denied",
            by="user" if fact.by in ("", _USER) else fact.by,
            why=fact.reason,
        )

    def _other(
        self, fact: AnyFact, what: str, *, target: str = "", files: tuple[str, ...] = ()
    ) -> None:
        self._others.append(
            AuditEntry(
                session=self._session,
                seq=fact.seq,
                at=fact.at,
                what=what,
                target=target,
                effect="mutating",
                outcome="done",
                by="user",
                files=files,
            )
        )

    def _change(self, call: CallUid, **changes: object) -> None:
        self._calls[call] = msgspec.structs.replace(self._calls[call], **changes)
