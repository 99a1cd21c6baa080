"""A session of another process: what the socket tells and what the log tells may come in
any order.
"""

from __future__ import annotations

import msgspec
import pytest

from weft.actors import Supervisor
from weft.errors import Owned
from weft.events import AnyFact, SystemNote, TextDelta, TurnFinished, TurnStarted, encode
from weft.ids import NodeId, SessionId, TurnId
from weft.runtime.ports.remote import RemotePort
from weft.state import SessionState
from weft.store.memory import MemoryStore

pytestmark = pytest.mark.anyio
NODE = NodeId("nod_1")
FACTS: list[AnyFact] = [
    SystemNote(text="before"),
    TurnStarted(turn_id=TurnId("trn_1")),
    TurnFinished(turn_id=TurnId("trn_1"), reason="aborted"),
]


def record(seq: int) -> bytes:
    return encode(msgspec.structs.replace(FACTS[seq - 1], seq=seq, session_id="ses_1"))


async def test_text_in_flight_that_is_ahead_of_the_log_is_kept_until_its_turn_has_ended() -> None:
    owner = Owned("ses_1", pid=1, host="here", socket="", since=0.0)
    state = SessionState(session_id=SessionId("ses_1"))
    port = RemotePort(state, MemoryStore(), owner, Supervisor())
    signal = TextDelta(node_id=NODE, offset=0, text="Hello", after_seq=2)
    port._take_signal(msgspec.json.encode(signal))
    for seq in (1, 2):
        port._take_record(record(seq))
        assert port.draft == (NODE, "Hello")
    port._take_record(record(3))
    assert port.draft is None
