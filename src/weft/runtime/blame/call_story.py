"""What the log of a session tells of a change: the user's message, the call with its permission and
the model's reason, and the first check that was run after it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import msgspec

from weft.decisions.sound_values import one_line
from weft.errors import Corrupt
from weft.events import (
    AnyFact,
    NewMessage,
    SessionCreated,
    ToolComplete,
    ToolExecuting,
    TurnStarted,
    decode,
)
from weft.evidence.blame import BlamedCall, BlamedCheck, LineTurn
from weft.evidence.command_kinds import checks_in, is_test
from weft.ids import CallUid, NodeId, SessionId, TurnId
from weft.messages import Text, typed_text
from weft.runtime.blame.file_versions import FileVersion, MadeCommit
from weft.runtime.user_shell import PRIVATE_SHELL, USER_SHELL
from weft.store import Store

LONGEST_WORDS: Final = 400
LONGEST_TARGET: Final = 200
PAGE: Final = 1_000
NOT_RECORDED: Final = "not recorded"
_NEAR: Final = 500
"""A message stands so near before the turn that it begins, nearly always."""
_SHELLS: Final = frozenset({"shell", USER_SHELL, PRIVATE_SHELL})
_MOST_PARENTS: Final = 5


class CallStory(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one change."""

    turn: LineTurn | None = None
    call: BlamedCall | None = None
    is_by_user: bool = False
    """The user typed the command."""


async def story_of(version: FileVersion, store: Store) -> CallStory:
    """What the log tells of a change that a session made."""
    turn = await turn_of(version, store)
    if version.call_uid is None:
        return CallStory(turn=turn)
    intent, message = await _call(version, version.call_uid, store)
    if intent is None:
        return CallStory(turn=turn)
    is_by_user = intent.tool_name in (USER_SHELL, PRIVATE_SHELL)
    permission = intent.permission
    reason = "" if message is None else _words(message)
    call = BlamedCall(
        tool_name="shell" if is_by_user else intent.tool_name,
        target=one_line(intent.target or str(intent.args.get("command", "")), LONGEST_TARGET),
        call_uid=version.call_uid,
        node=intent.node or None,
        reason=one_line(reason, LONGEST_WORDS),
        allowed_by=NOT_RECORDED if permission is None else permission.by,
        allowed_why="" if permission is None else one_line(permission.text, LONGEST_WORDS),
    )
    # What the user typed stands between turns: no message asked for it.
    return CallStory(turn=None if is_by_user else turn, call=call, is_by_user=is_by_user)


async def turn_of(found: FileVersion | MadeCommit, store: Store) -> LineTurn | None:
    """The turn in which something happened; None where that was in none."""
    if found.turn_id is None:
        return None
    prompt = "" if found.turn_node is None else await _prompt(found, found.turn_node, store)
    return LineTurn(
        session_id=found.session,
        turn_id=TurnId(found.turn_id),
        node=found.turn_node,
        at=found.at,
        prompt=one_line(prompt, LONGEST_WORDS),
    )


async def first_prompt(session: SessionId, store: Store) -> LineTurn | None:
    """The first turn of a session: of an agent or a candidate, its task."""
    prompts: dict[NodeId, str] = {}
    async for fact in _facts(store, session, {"turn_started", "new_message"}):
        if isinstance(fact, NewMessage) and fact.node.role == "user":
            prompts[fact.node.id] = typed_text(fact.node.parts)
        elif isinstance(fact, TurnStarted):
            prompt = "" if fact.node is None else prompts.get(fact.node, "")
            return LineTurn(
                session_id=session,
                turn_id=fact.turn_id,
                node=fact.node,
                at=fact.at,
                prompt=one_line(prompt, LONGEST_WORDS),
            )
    return None


async def first_check(
    session: SessionId, after: int, at: float, root: str, store: Store
) -> BlamedCheck | None:
    """The first command after a fact that tests, builds or checks, in this session or, if that
    worked for another one, in that.
    """
    for _ in range(_MOST_PARENTS):
        # In its own log the fact's place tells what came after it, in another one the time.
        since = 0.0 if after else at
        found = await _check_in(session, after, since, root, store)
        if found is not None:
            return found
        parent = await _parent(session, store)
        if parent is None:
            return None
        session, after = parent, 0
    return None


# --- reading the log ------------------------------------------------------------------------------


async def _facts(
    store: Store, session: SessionId, kinds: set[str], *, after: int = 0, upto: int | None = None
) -> AsyncIterator[AnyFact]:
    """Facts of some kinds; one that cannot be read is passed over."""
    while records := await store.read(session, after=after, limit=PAGE):
        for record in records:
            if upto is not None and record.seq > upto:
                return
            if record.kind not in kinds:
                continue
            try:
                fact = decode(record.body)
            except Corrupt:
                continue
            yield msgspec.structs.replace(fact, seq=record.seq, at=record.at)
        after = records[-1].seq


async def _prompt(found: FileVersion | MadeCommit, node: NodeId, store: Store) -> str:
    for after in dict.fromkeys((max(0, found.turn_seq - _NEAR), 0)):
        upto = found.turn_seq
        async for fact in _facts(store, found.session, {"new_message"}, after=after, upto=upto):
            if isinstance(fact, NewMessage) and fact.node.id == node:
                return typed_text(fact.node.parts) if fact.node.role == "user" else ""
    return ""


async def _call(
    version: FileVersion, uid: CallUid, store: Store
) -> tuple[ToolExecuting | None, NewMessage | None]:
    """The intent of a call, and the message that made it."""
    intent: ToolExecuting | None = None
    messages: dict[NodeId, NewMessage] = {}
    kinds = {"tool_executing", "new_message"}
    starts = (max(0, version.seq - _NEAR), max(0, version.turn_seq - 1), 0)
    for after in sorted(set(starts), reverse=True):
        async for fact in _facts(store, version.session, kinds, after=after, upto=version.seq):
            if isinstance(fact, NewMessage):
                messages[fact.node.id] = fact
            elif isinstance(fact, ToolExecuting) and fact.call_uid == uid:
                intent = fact
        if intent is not None and (not intent.node or intent.node in messages):
            break
    return intent, None if intent is None else messages.get(intent.node)


def _words(message: NewMessage) -> str:
    return " ".join(part.text for part in message.node.parts if isinstance(part, Text))


async def _check_in(
    session: SessionId, after: int, at: float, root: str, store: Store
) -> BlamedCheck | None:
    running: dict[CallUid, str] = {}
    async for fact in _facts(store, session, {"tool_executing", "tool_complete"}, after=after):
        if isinstance(fact, ToolExecuting) and fact.at >= at and fact.tool_name in _SHELLS:
            command = str(fact.args.get("command") or fact.target)
            if checks_in(command, root) or is_test(command):
                running[fact.call_uid] = command
        elif isinstance(fact, ToolComplete) and fact.call_uid in running:
            data = fact.result.data
            code = data.get("exit_code")
            has_ended = isinstance(code, int) and not data.get("timed_out")
            return BlamedCheck(
                command=one_line(running[fact.call_uid], LONGEST_TARGET),
                exit_code=code if has_ended else None,
                tree=str(data.get("tree") or ""),
                at=fact.at,
                session_id=session,
            )
    return None


async def _parent(session: SessionId, store: Store) -> SessionId | None:
    """The session that one worked for."""
    async for fact in _facts(store, session, {"session_created"}, upto=1):
        if isinstance(fact, SessionCreated) and fact.parent is not None:
            return fact.parent.session_id
    return None
