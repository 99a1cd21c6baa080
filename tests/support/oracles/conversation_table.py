"""Conversations from a table: two events of a day's work, one behind the other, in every order.

What one event leaves in the history is what the requests after the next one carry, so the orders
differ: a branch of what was compacted is not a compaction of a branch.
"""

from __future__ import annotations

from itertools import permutations
from typing import NamedTuple

import anyio

from tests.support.oracles.conversations import (
    DONE,
    LIST,
    MISSING,
    PAPER,
    PICTURE,
    READ,
    SCAN,
    SEE,
    STUDY,
    THINK,
    WORDS,
    Conversation,
    calls,
    say,
)
from tests.support.oracles.vendor_world import ORACLE_MODELS, PATIENCE, OracleWorld
from tests.support.world import until, until_idle
from weft.api.session import Session
from weft.events import PermissionRequest
from weft.messages import Text
from weft.providers.script import (
    Break,
    CallTool,
    EndEarly,
    Fail,
    Finish,
    SayText,
    Stall,
    Step,
)
from weft.thinking_levels import THINKING_LEVELS, ThinkingLevel

WRITE = CallTool(name="write", args={"path": "b.txt", "content": "x"})
AGENT = CallTool(name="agent", args={"prompt": "Read a.txt.", "description": "read"})
UNKNOWN = CallTool(name="no_such_tool", args={"x": [1, None, {"y": "ü"}]})
WRONG = CallTool(name="read", args={"wrong": True, "path": 5})


async def stopped_writing(world: OracleWorld, session: Session, provider: str) -> None:
    await _stopped(world, session, (THINK, SayText(text="Half a"), Stall()))


async def stopped_thinking(world: OracleWorld, session: Session, provider: str) -> None:
    await _stopped(world, session, (THINK, Stall()))


async def _stopped(world: OracleWorld, session: Session, last: tuple[Step, ...]) -> None:
    world.script = [calls(READ, LIST), last]
    before = world.requests
    await session.send_prompt("look")
    await world.asked(before + 2)
    with anyio.fail_after(PATIENCE):
        await session.abort("enough")


async def stopped_calling(world: OracleWorld, session: Session, provider: str) -> None:
    world.script = [calls(READ, WRITE, LIST)]
    await session.send_prompt("write it down")
    await until(session, PermissionRequest)
    with anyio.fail_after(PATIENCE):
        await session.abort()


async def steered(world: OracleWorld, session: Session, provider: str) -> None:
    gate = world.gate = anyio.Event()
    world.script = [calls(READ, MISSING), DONE]
    before = world.requests
    await session.send_prompt("look")
    await world.asked(before + 1)
    await session.queue_steering([Text(text="with this"), PICTURE])
    world.gate = None
    gate.set()
    await until_idle(session)


async def another_vendor(world: OracleWorld, session: Session, provider: str) -> None:
    """For one turn, the provider behind this one in the list."""
    own = (await session.metadata()).model
    names = list(ORACLE_MODELS)
    other = names[(names.index(provider) + 1) % len(names)]
    await session.update_model(f"{other}:{ORACLE_MODELS[other][0]}")
    world.script = [calls(READ, LIST), DONE]
    await say(session, "now you")
    await session.update_model(own)


async def another_model(world: OracleWorld, session: Session, provider: str) -> None:
    """From here on, a sister that is told in another way how much to think."""
    own = (await session.metadata()).model
    models = [f"{provider}:{name}" for name in ORACLE_MODELS[provider]]
    await session.update_model(models[(models.index(own) + 1) % len(models)])
    world.script = [calls(READ), DONE]
    await say(session)


async def another_level(world: OracleWorld, session: Session, provider: str) -> None:
    for level in ("max", "off"):
        await session.set_thinking_level(level)
        world.script = [calls(READ), DONE]
        await say(session)


async def compacted(world: OracleWorld, session: Session, provider: str) -> None:
    for _ in range(2):
        world.script = [calls(READ, LIST), DONE]
        await say(session)
    with anyio.fail_after(PATIENCE):
        await session.compact()


async def compaction_undone(world: OracleWorld, session: Session, provider: str) -> None:
    await compacted(world, session, provider)
    world.script = [DONE]
    await say(session)
    with anyio.fail_after(PATIENCE):
        await session.undo_compaction()


async def branched(world: OracleWorld, session: Session, provider: str) -> None:
    world.script = [calls(READ, LIST), DONE]
    await say(session, "one way")
    await session.branch_at(0, "other")


async def worked_by_agents(world: OracleWorld, session: Session, provider: str) -> None:
    world.script = [calls(AGENT), calls(READ), DONE, calls(LIST), DONE]
    await say(session, "let an agent look")


async def pictures(world: OracleWorld, session: Session, provider: str) -> None:
    world.script = [calls(SEE, READ), calls(SEE, text=""), DONE]
    await say(session, [Text(text="see"), PICTURE, PICTURE])


async def documents(world: OracleWorld, session: Session, provider: str) -> None:
    world.script = [calls(STUDY), DONE]
    await say(session, [PAPER, WORDS, SCAN])


async def mistaken_calls(world: OracleWorld, session: Session, provider: str) -> None:
    world.script = [calls(UNKNOWN, READ), calls(WRONG, text=""), DONE]
    await say(session, "try")


async def cut_off(world: OracleWorld, session: Session, provider: str) -> None:
    half: tuple[Step, ...] = (THINK, SayText(text="Half an answer"), Finish(reason="length"))
    world.script = [calls(READ), half, DONE]
    await say(session, "tell me all")


async def outage(world: OracleWorld, session: Session, provider: str) -> None:
    world.script = [
        (Fail(status=529, message="overloaded"),),
        calls(READ),
        (THINK, SayText(text="broken"), Break()),
        (SayText(text="early"), EndEarly()),
        DONE,
    ]
    await say(session, "try hard")
    world.script = [(Fail(status=400, message="no"),)]
    await say(session, "again")


async def rewound(world: OracleWorld, session: Session, provider: str) -> None:
    await session.checkpoint("here")
    world.script = [calls(LIST), DONE]
    await say(session, "two")
    with anyio.fail_after(PATIENCE):
        await session.rewind("here")


EVENTS: tuple[Conversation, ...] = (
    stopped_writing,
    stopped_thinking,
    stopped_calling,
    steered,
    another_vendor,
    another_model,
    another_level,
    compacted,
    compaction_undone,
    branched,
    worked_by_agents,
    pictures,
    documents,
    mistaken_calls,
    cut_off,
    outage,
    rewound,
)


class TabledConversation(NamedTuple):
    """A turn, an event, another one, and a turn with calls at their end."""

    first: Conversation
    second: Conversation
    level: ThinkingLevel
    number: int

    @property
    def name(self) -> str:
        return f"{self.first.__name__}, {self.second.__name__} at {self.level}"

    def model(self, provider: str) -> str:
        models = ORACLE_MODELS[provider]
        return f"{provider}:{models[self.number % len(models)]}"

    async def hold(self, world: OracleWorld, session: Session, provider: str) -> None:
        world.script = [calls(READ, MISSING, LIST), DONE]
        await say(session, "begin")
        await self.first(world, session, provider)
        await self.second(world, session, provider)
        world.script = [calls(LIST, READ), (SayText(text="Grüße, 世界 🎈"),)]
        await say(session, "and now?")


TABLE: tuple[TabledConversation, ...] = tuple(
    TabledConversation(first, second, THINKING_LEVELS[number % len(THINKING_LEVELS)], number)
    for number, (first, second) in enumerate(permutations(EVENTS, 2))
)
