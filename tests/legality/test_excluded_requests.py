"""Whatever message is taken out of a conversation, each request is one that the vendor accepts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.legality import (
    validate_anthropic,
    validate_gemini,
    validate_openai_chat,
    validate_openai_responses,
)
from tests.support.oracles.conversations import DONE, LIST, MISSING, READ, calls, say
from tests.support.oracles.request_record import RecordingWorld
from tests.support.oracles.vendor_world import ORACLE_MODELS, oracle_world
from tests.support.vendor_servers import KEY

pytestmark = pytest.mark.anyio
JUDGES: dict[str, Callable[[dict[str, Any]], list[str]]] = {
    "anthropic": validate_anthropic,
    "openai": validate_openai_responses,
    "openai-chat": validate_openai_chat,
    "google": validate_gemini,
}


@pytest.mark.parametrize("protocol", JUDGES)
async def test_a_request_without_a_message_is_legal(protocol: str, tmp_path: Path) -> None:
    async with oracle_world(tmp_path, RecordingWorld()) as (app, world):
        assert isinstance(world, RecordingWorld)
        name = f"{protocol}:{ORACLE_MODELS[protocol][0]}"
        session = await app.sessions.start_session(model=name)
        world.script = [calls(READ, MISSING), calls(LIST, text=""), DONE, DONE]
        await say(session, "look at everything")
        await say(session, "and again")
        whole = len(world.bodies)
        said = [node for node, each in await session.messages_with_ids() if each.role != "tool"]
        for node in said:
            await session.exclude(node)
            world.script = [DONE]
            await say(session, "go on")
            await session.include(node)
        for node in said:
            await session.exclude(node)
        await say(session, "nothing is left of the beginning")
        assert len(world.bodies) > whole + len(said)
        shown = await session.request(diff=True)
        assert shown.match == "equal"
        assert KEY.encode() not in msgspec.json.encode(shown)
        for number, body in enumerate(map(json.loads, world.bodies)):
            assert JUDGES[protocol](body) == [], number
