"""The work of a session, seen by its actor: how it ends arrives, whatever else waits."""

from __future__ import annotations

import anyio
import pytest

from tests.support.idle_loop import all_tasks_blocked
from weft.actors import Mailbox, Supervisor
from weft.events import FinishReason
from weft.ids import SessionId, TurnId
from weft.loop import Commit
from weft.session.commands import RecallQueues
from weft.session.turns.scheduler import SessionTurnJournal
from weft.session.work.mailbox_messages import Message, TurnEnded
from weft.session.work.running_work import RunningWork
from weft.state import SessionState

pytestmark = pytest.mark.anyio


class BrokenWork:
    """A turn that fails at once."""

    def __init__(self) -> None:
        self.turn_id = TurnId("t")
        self.scope = anyio.CancelScope()
        self.abort_reason = ""
        self.ends_as: FinishReason = "aborted"
        self.is_suspended = False
        self.is_compaction = False
        self.stops_after_step = False

    async def run(self) -> None:
        raise RuntimeError("broken")

    def settled(self, state: SessionState) -> Commit:
        return Commit(facts=())


async def test_the_end_of_a_turn_is_not_lost_behind_a_full_mailbox() -> None:
    mailbox: Mailbox[Message] = Mailbox("s", capacity=1)
    await mailbox.post(RecallQueues())
    supervisor = Supervisor()
    await supervisor.open()
    try:
        work, state = BrokenWork(), SessionState(session_id=SessionId("s"))
        journal = SessionTurnJournal(None, None)  # type: ignore[arg-type]  # it writes nothing
        RunningWork(mailbox, supervisor, 1.0).start(work, journal, state)
        await all_tasks_blocked()
        assert len(mailbox) == 2, "it does not wait for room"
        await mailbox.take()
        ended = (await mailbox.take()).message
    finally:
        await supervisor.aclose()
    assert isinstance(ended, TurnEnded)
    assert str(ended.error) == "broken"
