"""Generated logs to measure on: sessions as long as a year's work, made of realistic facts."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import islice

import msgspec

from weft.events import (
    Fact,
    FileTouched,
    ModelCallStarted,
    NewMessage,
    SessionCreated,
    ToolComplete,
    ToolExecuting,
    TurnFinished,
    TurnStarted,
    UsageRecorded,
    encode,
    kind_of,
)
from weft.ids import CallUid, NodeId, SessionId, TurnId
from weft.messages import Node, Text, ToolCall, ToolResult, Usage
from weft.session.log.append import said
from weft.store import Append, Record, SessionRow, Store

ROUNDS_A_TURN = 8
WORDS = "the cart holds what was ordered and the total is never none " * 8
OUTPUT = "    total += line.price * line.count  # in cents, so that no sum is off\n" * 12


def facts(session_id: SessionId, count: int) -> Iterator[Fact]:
    """The first `count` facts of an endless session, stamped as its actor would."""
    return stamped(session_id, islice(_endless_session(), count))


def stamped(session_id: SessionId, facts: Iterable[Fact]) -> Iterator[Fact]:
    """Facts numbered and dated, as a session's actor would."""
    for seq, fact in enumerate(facts, start=1):
        yield msgspec.structs.replace(fact, session_id=session_id, seq=seq, at=1.8e9 + seq)


def _endless_session() -> Iterator[Fact]:
    yield SessionCreated(project_path="/home/ana/shop", model="scripted:a", title="Long work")
    parent: NodeId | None = None
    for turn in range(sys.maxsize):
        turn_id, asked = TurnId(f"trn_{turn:022}"), NodeId(f"nod_{turn:020}_u")
        yield NewMessage(
            node=Node(id=asked, role="user", parts=(Text(text=WORDS[:200]),), parent=parent)
        )
        yield TurnStarted(turn_id=turn_id, node=asked)
        parent = asked
        for step in range(ROUNDS_A_TURN):
            node = NodeId(f"nod_{turn:020}_{step}")
            yield from _round(turn_id, node, parent, step)
            parent = node
        yield TurnFinished(turn_id=turn_id, reason="stop", iterations=ROUNDS_A_TURN)


def _round(turn_id: TurnId, node: NodeId, parent: NodeId, step: int) -> Iterator[Fact]:
    uid = CallUid(f"cal_{node[4:]}")
    usage = Usage(input_tokens=900, output_tokens=120, cache_read_tokens=20_000, cost_usd=0.0125)
    call = ToolCall(
        call_uid=uid,
        name="edit",
        args={"path": "shop/cart.py", "old": OUTPUT[:150], "new": OUTPUT[:160]},
        provider_id=f"toolu_{step}",
        provider="scripted",
    )
    yield ModelCallStarted(turn_id=turn_id, node=node, model="scripted:a")
    yield NewMessage(
        node=Node(
            id=node,
            role="assistant",
            parts=(Text(text=WORDS[:300]), call),
            parent=parent,
            model="scripted:a",
            usage=usage,
        )
    )
    yield UsageRecorded(usage=usage, model="scripted:a", turn_id=turn_id, node=node)
    yield ToolExecuting(
        call_uid=uid, node=node, tool_name="edit", args=call.args, effect="checkable"
    )
    result = ToolResult(call_uid=uid, text=OUTPUT[:800])
    yield ToolComplete(call_uid=uid, node=node, result=result, duration_ms=3)
    yield FileTouched(path=f"shop/part{step}.py", action="modified", call_uid=uid)


def record(fact: Fact) -> Record:
    """A fact as a store keeps it."""
    return Record(fact.seq, fact.at, kind_of(fact), encode(fact))


def row(session_id: SessionId, last_seq: int = 1) -> SessionRow:
    """What a list shows of such a session."""
    return SessionRow(
        id=session_id,
        title="Why does checkout fail when the cart is empty",
        project_path="/home/ana/shop",
        model="scripted:a",
        created=1.8e9,
        last_active=1.8e9 + last_seq,
        message_count=last_seq // 3,
        turn_count=last_seq // 50,
        first_prompt=WORDS[:200],
        cost_usd=0.5,
        last_seq=last_seq,
    )


def answered_turn(number: int, parent: NodeId | None) -> Iterator[Fact]:
    """A turn with one answer and no calls; its last node ends in `_a`."""
    turn_id = TurnId(f"trn_{number:022}")
    asked, node = NodeId(f"nod_{number:020}_u"), NodeId(f"nod_{number:020}_a")
    usage = Usage(input_tokens=900, output_tokens=120, cost_usd=0.0125)
    said = (Text(text=WORDS[:300]),)
    yield NewMessage(
        node=Node(id=asked, role="user", parts=(Text(text=WORDS[:200]),), parent=parent)
    )
    yield TurnStarted(turn_id=turn_id, node=asked)
    yield ModelCallStarted(turn_id=turn_id, node=node, model="scripted:m")
    yield NewMessage(
        node=Node(id=node, role="assistant", parts=said, parent=asked, model="scripted:m")
    )
    yield UsageRecorded(usage=usage, model="scripted:m", turn_id=turn_id, node=node)
    yield TurnFinished(turn_id=turn_id, reason="stop", iterations=1)


async def write_log(store: Store, session_id: SessionId, count: int) -> None:
    """Put a session of `count` facts into a store, and give it back."""
    await write_facts(store, session_id, facts(session_id, count))


async def write_facts(
    store: Store,
    session_id: SessionId,
    stamped: Iterable[Fact],
    *,
    mode: str = "normal",
    is_searched: bool = False,
) -> None:
    """Put a whole log into a store, a thousand facts at a time, and give it back; with
    `is_searched`, what was said can be found.
    """
    lease = await store.take_lease(session_id)
    last = 0
    for page in _pages(stamped, 1000):
        append = Append(
            stream=session_id,
            expected_seq=last,
            fence=lease.fence,
            records=tuple(record(fact) for fact in page),
            row=msgspec.structs.replace(row(session_id, page[-1].seq), mode=mode),
            said=tuple(said(page)) if is_searched else (),
        )
        await store.append(append)
        last = page[-1].seq
    await store.release_lease(lease)


def _pages(source: Iterable[Fact], size: int) -> Iterator[list[Fact]]:
    ahead = iter(source)
    while page := list(islice(ahead, size)):
        yield page
