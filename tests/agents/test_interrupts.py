"""Interrupted during a sub-agent and during a step of a plan, by an abort, a kill and a provider
that drops: the history stays legal for every vendor, the person sees what happened, and the next
prompt works.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.role_models import RoleAnswers, agent_call, role_model
from tests.support.vendor_legality import VENDORS, illegal_request
from tests.support.world import World, crash, facts, message_lines, until_idle
from weft.api.session import Session
from weft.app import App
from weft.events import ArchitectStep, ChildFinished, ToolComplete, TurnFinished
from weft.providers.script import Break, CallTool, SayText, Stall, Step
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio

LOOK = CallTool(name="list")
STALLED: tuple[Step, ...] = (SayText(text="Half a"), Stall())
BROKEN: tuple[Step, ...] = (SayText(text="Half a"), Break())
PLAN = CallTool(
    name="submit",
    args={
        "summary": "One step.",
        "steps": [
            {"action": "create", "file": "1.txt", "description": "make file 1", "details": "1"}
        ],
    },
)


def models(during: str, second: tuple[Step, ...]) -> tuple[ScriptedModel, ScriptedModel]:
    """Who plays: the child looks first, then `second` happens to it."""
    answers: dict[str, RoleAnswers] = {
        "agent": {
            "begin": [LOOK, agent_call("work"), "Then so.", "Then so."],
            "work": [LOOK, second],
        },
        "step": {"begin": [LOOK, PLAN, *[say("Then so.")] * 3], "make file 1": [LOOK, second]},
    }
    return role_model(answers[during]), role_model(answers[during], "fast")


def say(text: str) -> CallTool:
    return CallTool(name="submit", args={"summary": text})


async def start(app: App, during: str) -> Session:
    return await app.sessions.start_session(
        session_id="s", auto_approve=True, mode="architect" if during == "step" else "normal"
    )


def opened(world: World, who: tuple[ScriptedModel, ScriptedModel], **parts: Any) -> App:
    return world.open(*who, config={"model.editor": "scripted:fast"}, **parts)


async def judge(session: Session, who: tuple[ScriptedModel, ScriptedModel]) -> None:
    """Every request that was made, and the one for the next prompt, is legal everywhere.

    And nothing is left open.
    """
    reply = await session.send_message("begin anew")
    assert (reply.finish_reason, reply.text) == ("stop", "Then so.")
    for request in (*who[0].requests, *who[1].requests):
        for vendor in VENDORS:
            assert illegal_request(request, vendor) == []
    snapshot = await session.editor_snapshot()
    assert (snapshot.status, snapshot.requests, snapshot.queue) == ("idle", (), ())
    for child in await session.children():
        assert child.reason is not None


@pytest.mark.parametrize("during", ["agent", "step"])
async def test_after_an_abort(world: World, during: str) -> None:
    who = models(during, STALLED)
    async with opened(world, who) as app:
        session = await start(app, during)
        await session.send_prompt("begin")
        gates = [model.gate() for model in who]
        await gates[during == "step"].reached.wait()
        await session.abort("enough")
        [ended] = await facts(session, ChildFinished)
        [finished] = await facts(session, TurnFinished)
        assert (ended.reason, finished.reason, finished.detail) == ("aborted", "aborted", "enough")
        child = await app.sessions.get(ended.child)
        assert (await message_lines(child))[-1] == "assistant: Half a"
        await judge(session, who)


@pytest.mark.parametrize("during", ["agent", "step"])
async def test_after_a_kill(world: World, during: str) -> None:
    who = models(during, STALLED)
    app = await opened(world, who).__aenter__()
    session = await start(app, during)
    await session.send_prompt("begin")
    await who[during == "step"].gate().reached.wait()
    await crash(app)
    who = models(during, (SayText(text="never"),))
    async with opened(world, who) as app:
        session = await start(app, during)
        assert await session.get_status() == "interrupted"
        await judge(session, who)
        [ended] = await facts(session, ChildFinished)
        assert ended.reason == "halted"
        assert (await facts(session, TurnFinished))[0].reason == "halted"


@pytest.mark.parametrize("during", ["agent", "step"])
async def test_after_a_provider_that_drops(world: World, during: str) -> None:
    who = models(during, BROKEN)
    async with opened(world, who) as app:
        session = await start(app, during)
        await session.send_prompt("begin")
        await until_idle(session)
        [ended] = await facts(session, ChildFinished)
        assert ended.reason == "provider_error"
        if during == "agent":
            told = (await facts(session, ToolComplete))[-1].result.text
            assert "did not finish (provider_error" in told
            assert "Half a" in told
        else:
            assert (await facts(session, TurnFinished))[0].reason == "provider_error"
            assert (await facts(session, ArchitectStep))[-1].status == "failed"
        await judge(session, who)
