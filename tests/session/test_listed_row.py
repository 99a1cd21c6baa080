"""The row of a list, before an append: what the folded state says after it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from weft.events import (
    BranchesStarted,
    ChildFinished,
    ChildStarted,
    Fact,
    NewMessage,
    NodeEdited,
    NodesJoined,
    NodeSplit,
    SessionCreated,
    SystemNote,
    ToolComplete,
    TurnFinished,
    TurnStarted,
    TurnWaiting,
    TurnWoken,
    UnknownFact,
    UsageRecorded,
    WaitSubject,
    decode,
)
from weft.ids import CallUid, NodeId, SessionId, TurnId, WaitId
from weft.messages import Node, Text, ToolResult, Usage
from weft.session.log.append import LISTED_EVERY_SECONDS, due_row, is_row_due, row_after
from weft.state import SessionState, fold
from weft.store import LOOKS_READER, READER_VERSION, SessionRow

SESSION, TURN, CALL, WAIT = SessionId("ses_1"), TurnId("trn_1"), CallUid("cal_1"), WaitId("wai_1")
GOLDEN = Path(__file__).parent.parent / "golden" / "facts" / "v1.jsonl"
USED = Usage(input_tokens=5, cost_usd=0.5)

HISTORY: tuple[Fact, ...] = (
    SessionCreated(title="T", model="a:b"),
    TurnStarted(turn_id=TURN),
    UsageRecorded(usage=USED, model="a:b", turn_id=TURN),
    TurnWaiting(
        wait_id=WAIT, turn_id=TURN, on=WaitSubject(kind="time"), until=900.0, call_uid=CALL
    ),
    TurnWoken(wait_id=WAIT, turn_id=TURN, by="time"),
    ToolComplete(
        call_uid=CALL, node=NodeId("nod_1"), result=ToolResult(call_uid=CALL, text="awake")
    ),
    ChildStarted(child=SessionId("ses_2")),
    ChildFinished(child=SessionId("ses_2"), reason="stop", usage=USED, models={"c:d": USED}),
    TurnFinished(turn_id=TURN, reason="stop"),
)


def stamped() -> list[Fact]:
    return [
        msgspec.structs.replace(fact, session_id=SESSION, seq=number, at=100.0 + number)
        for number, fact in enumerate(HISTORY, 1)
    ]


def test_a_row_is_the_same_however_its_facts_were_cut_into_appends() -> None:
    facts = stamped()
    for end in range(1, len(facts) + 1):
        rows = []
        for start in range(end):
            state = fold(facts[:start], SessionState(session_id=SESSION))
            before = msgspec.json.encode(state.turn)
            rows.append(row_after(state, facts[start:end]))
            assert msgspec.json.encode(state.turn) == before, "looking ahead changes nothing"
        assert all(row == rows[0] for row in rows), f"after {type(facts[end - 1]).__name__}"
        state = fold(facts[:end], SessionState(session_id=SESSION))
        assert rows[0].turn_open == (state.turn.open is not None)
        assert rows[0].cost_usd == state.ledger.total.cost_usd


def test_a_turn_that_waits_is_due_at_its_time_and_at_once_when_woken() -> None:
    facts = stamped()
    due = [row_after(SessionState(session_id=SESSION), facts[:end]).wake_at for end in (3, 4, 5, 6)]
    assert due == [None, 900.0, 105.0, None]


def test_a_row_that_is_not_made_would_not_have_been_due() -> None:
    kinds: set[type[Fact]] = set()
    for state, listed in _situations():
        for fact in _every_kind_of_fact():
            late = msgspec.structs.replace(fact, seq=50, at=listed.last_active + 1)
            row = row_after(state, [late])
            expected = row if is_row_due(listed, row) else None
            assert due_row(state, [late], listed) == expected, f"{late!r} of {listed!r}"
            kinds |= {type(fact)} if expected is None else set()
    assert {NewMessage, ToolComplete, UsageRecorded} <= kinds, "and most of a turn's are not"


def test_the_counts_of_a_turn_that_runs_are_listed_every_minute() -> None:
    state, listed = next(_situations())
    fact = UsageRecorded(usage=USED, model="a:b", turn_id=TURN, session_id=SESSION, seq=50)
    at = listed.last_active + LISTED_EVERY_SECONDS
    assert due_row(state, [msgspec.structs.replace(fact, at=at - 1)], listed) is None
    due = due_row(state, [msgspec.structs.replace(fact, at=at)], listed)
    assert due is not None
    assert due.cost_usd == 2 * 0.5


def test_a_session_with_nodes_that_were_cut_or_generated_is_not_for_older_readers() -> None:
    node = NodeId("nod_1")
    said = NewMessage(node=Node(id=node, role="user", parts=(Text(text="hello"),)))
    tail = Node(id=NodeId("nod_2"), role="user", parent=node)
    for newer in (
        NodeSplit(node=node, revision=1, tail=tail),
        NodesJoined(node=node, revision=1, child=tail.id),
        NodeEdited(node=node, revision=1, carries=(tail.id,)),
        BranchesStarted(gen_id="gen_1", source=node),
    ):
        history = (HISTORY[0], said, NodeEdited(node=node, revision=1), newer, *HISTORY[1:3])
        facts = [
            msgspec.structs.replace(fact, session_id=SESSION, seq=number, at=100.0 + number)
            for number, fact in enumerate(history, 1)
        ]
        state = SessionState(session_id=SESSION)
        needed: list[int] = []
        for fact in facts:
            needed.append(row_after(state, [fact]).min_reader)
            state.apply(fact)
        assert needed == [1, 1, 1, 2, 2, 2], type(newer).__name__
        fork = state.fork(SessionId("ses_2"))
        assert row_after(fork, facts[:1]).min_reader == 2


def test_a_turn_that_waits_for_what_is_looked_at_is_not_for_older_readers_while_it_sleeps() -> None:
    for kind in ("time", "command", "agent", "file", "port"):
        history = (
            HISTORY[0],
            TurnStarted(turn_id=TURN),
            TurnWaiting(wait_id=WAIT, turn_id=TURN, on=WaitSubject(kind=kind)),
            SystemNote(text="meanwhile"),
            TurnWoken(wait_id=WAIT, turn_id=TURN, by=kind),
        )
        state = SessionState(session_id=SESSION)
        needed: list[int] = []
        for number, fact in enumerate(history, 1):
            stored = msgspec.structs.replace(fact, session_id=SESSION, seq=number, at=100.0)
            needed.append(row_after(state, [stored]).min_reader)
            state.apply(stored)
        asleep = 1 if kind in ("time", "command") else LOOKS_READER
        assert needed == [1, 1, asleep, asleep, 1], kind
        assert asleep <= READER_VERSION


def _situations() -> Iterator[tuple[SessionState, SessionRow]]:
    """A turn that runs, one that waits, one that has ended and one without a word; each with its
    row, and with one that says of the turn what is not so any more.
    """
    said = NewMessage(
        node=Node(id=NodeId("nod_0"), role="user", parts=(Text(text="hello"),)), advance=True
    )
    start = HISTORY[0]
    for facts in (
        (start, said, *HISTORY[1:3]),
        (start, said, *HISTORY[1:4]),
        (start, said, *HISTORY[1:]),
        HISTORY[:2],
    ):
        dated = [
            msgspec.structs.replace(fact, session_id=SESSION, seq=number, at=100.0 + number)
            for number, fact in enumerate(facts, 1)
        ]
        state = fold(dated, SessionState(session_id=SESSION))
        row = row_after(fold(dated[:-1], SessionState(session_id=SESSION)), dated[-1:])
        yield state, row
        yield state, msgspec.structs.replace(row, turn_open=not row.turn_open)


def _every_kind_of_fact() -> Iterator[Fact]:
    yield from stamped()
    for line in GOLDEN.read_bytes().splitlines():
        fact = decode(line)
        if not isinstance(fact, UnknownFact):
            yield msgspec.structs.replace(fact, session_id=SESSION)
