"""No request of any conversation is one that the vendor's own types, or its rules, refuse.

Runs with `make oracles`, which brings the vendors' SDKs; without them it is skipped.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.oracles.conversation_table import EVENTS, TABLE
from tests.support.oracles.conversations import CONVERSATIONS, Conversation
from tests.support.oracles.sdk_types import SDKS
from tests.support.oracles.vendor_world import ORACLE_MODELS, oracle_world
from weft.thinking_levels import THINKING_LEVELS

# A PDF is read by a process.
pytestmark = [pytest.mark.anyio, pytest.mark.process, pytest.mark.timeout(900)]
LEAST = 60
"""Conversations for each protocol."""


@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda each: str(each.__name__))
@pytest.mark.parametrize("protocol", ORACLE_MODELS)
async def test_every_request_is_one_that_the_vendor_accepts(
    protocol: str, conversation: Conversation, tmp_path: Path
) -> None:
    for sdk in SDKS.values():
        pytest.importorskip(sdk)
    models = ORACLE_MODELS[protocol]
    async with oracle_world(tmp_path) as (app, world):
        for number, level in enumerate(THINKING_LEVELS):
            name = f"{protocol}:{models[number % len(models)]}"
            world.script = []
            session = await app.sessions.start_session(model=name, thinking=level)
            before = world.requests
            await conversation(world, session, protocol)
            assert world.requests > before
            assert world.wrong == [], f"{name} at {level}"


@pytest.mark.parametrize("first", EVENTS, ids=lambda each: str(each.__name__))
@pytest.mark.parametrize("provider", ORACLE_MODELS)
async def test_no_order_of_events_makes_a_request_that_the_vendor_refuses(
    provider: str, first: Conversation, tmp_path: Path
) -> None:
    for sdk in SDKS.values():
        pytest.importorskip(sdk)
    async with oracle_world(tmp_path) as (app, world):
        for conversation in TABLE:
            if conversation.first is not first:
                continue
            name = conversation.model(provider)
            session = await app.sessions.start_session(model=name, thinking=conversation.level)
            before = world.requests
            await conversation.hold(world, session, provider)
            assert world.requests > before
            assert world.wrong == [], f"{name}: {conversation.name}"


def test_there_are_enough_conversations_for_every_protocol() -> None:
    ends = [(each.first, each.second) for each in TABLE]
    assert len(set(ends)) == len(ends) >= LEAST
    for event in EVENTS:
        assert {each.level for each in TABLE if each.first is event} == set(THINKING_LEVELS)
    # On every level besides.
    assert len(CONVERSATIONS) * len(THINKING_LEVELS) >= LEAST
