"""Commands and their answers: one type each, however far the answer has travelled."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from tests.support.world import World, until_idle
from weft.errors import SessionError, UsageError
from weft.ids import InputId, SessionId
from weft.messages import Text
from weft.providers.scripted import ScriptedModel
from weft.session import (
    AbortTurn,
    Accepted,
    AnyCommand,
    AttachClient,
    Branch,
    BranchAt,
    Command,
    DequeueSteering,
    DetachClient,
    ForwardRequest,
    RecallQueues,
    ReportChild,
    Reserve,
    RewindTo,
    SendPrompt,
    SessionPort,
    SetCheckpoint,
    Settle,
    StopAfterStep,
    StopSession,
    UndoRewind,
    answer_of,
)
from weft.session.decide import DECIDERS, DecisionContext, decide
from weft.state import SessionState

EMPTY = SessionState(session_id=SessionId("s"))
IDLE = DecisionContext(now=1.0, running=False)


@pytest.fixture
def shared_world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A project and an SQLite file, which several applications can open at once."""
    return World("sqlite", tmp_path_factory.mktemp("w"))


@pytest.mark.parametrize("kind", get_args(AnyCommand))
def test_every_command_says_the_type_of_its_answer(kind: type[Command[Any]]) -> None:
    [base] = vars(kind)["__orig_bases__"]
    [answer] = get_args(base)
    assert answer is not Any
    assert issubclass(kind, Command)


def test_every_command_is_decided_or_the_actors_own() -> None:
    own: set[type] = {AbortTurn, AttachClient, DetachClient, StopSession, RewindTo, UndoRewind}
    own |= {ReportChild, ForwardRequest, Reserve, Settle, StopAfterStep}
    assert own.isdisjoint(DECIDERS)
    assert own | set(DECIDERS) == set(get_args(AnyCommand))


def test_a_command_that_no_one_decides_is_refused() -> None:
    class Unheard(Command[None], frozen=True, tag="unheard"):
        pass

    with pytest.raises(UsageError, match="no session knows the command Unheard"):
        decide(Unheard(), EMPTY, IDLE)


def test_an_answer_that_is_none_of_the_command_is_refused_in_a_sentence() -> None:
    with pytest.raises(SessionError, match="answer to SendPrompt cannot be read"):
        answer_of(SendPrompt(parts=()), {"status": "flying"})
    with pytest.raises(SessionError, match="answer to SetCheckpoint"):
        answer_of(SetCheckpoint(), None)


async def check_types(port: SessionPort) -> None:
    """Each answer has its type; the checker knows it, and so does the process."""
    node = next(iter(port.state.tree.nodes))
    branch = await port.call(BranchAt(node=node, name="side", input_id=InputId("b")))
    assert isinstance(branch, Branch)
    assert branch.name == "side"
    assert await port.call(DequeueSteering()) == ()
    assert (await port.call(RecallQueues())).steering == ()
    assert await port.call(SetCheckpoint(label="here", input_id=InputId("c"))) == "here"
    accepted = await port.call(SendPrompt(parts=(Text(text="hi"),), input_id=InputId("s")))
    assert isinstance(accepted, Accepted)
    assert accepted.status == "started"


@pytest.mark.anyio
async def test_an_answer_through_another_process_has_the_commands_type(
    shared_world: World,
) -> None:
    model = ScriptedModel(["one", "two"])
    async with shared_world.open(model) as owner, shared_world.open() as guest:
        session = await owner.sessions.start_session(session_id="s")
        await session.send_message("hi")
        await check_types(await guest.host.port(session.id))


@pytest.mark.anyio
async def test_a_repeat_after_a_restart_answers_with_the_same_type(shared_world: World) -> None:
    model = ScriptedModel(["one", "two"])
    async with shared_world.open(model) as app:
        session = await app.sessions.start_session(session_id="s")
        await session.send_message("hi")
        await check_types(await app.host.port(session.id))
        await until_idle(session)
    async with shared_world.open() as app:
        await check_types(await app.host.port(session.id))
