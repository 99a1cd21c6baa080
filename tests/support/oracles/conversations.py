"""Conversations as users have them, for every protocol: what is said, stopped, switched, compacted
and branched.
"""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from tests.support.oracles.vendor_world import ORACLE_MODELS, PATIENCE, OracleWorld, png
from tests.support.pdf_samples import pdf
from tests.support.world import until, until_idle
from weft.api.session import Session
from weft.events import PermissionRequest
from weft.messages import PDF_TYPE, File, Image, Text
from weft.providers.script import (
    Break,
    CallTogether,
    CallTool,
    EndEarly,
    Fail,
    Finish,
    SayText,
    Stall,
    Step,
    Think,
)

Conversation = Callable[[OracleWorld, Session, str], Awaitable[None]]
"""Drives a session of a protocol; the world has what its vendors answer."""

READ = CallTool(name="read", args={"path": "a.txt"})
MISSING = CallTool(name="read", args={"path": "nowhere.txt"})
SEE = CallTool(name="read", args={"path": "picture.png"})
LIST = CallTool(name="list", args={})
THINK = Think(text="Let me see.")
STUDY = CallTool(name="read", args={"path": "paper.pdf"})
PAPER = Image(
    media_type=PDF_TYPE,
    data=base64.b64encode(pdf("Hello")).decode(),
    name="folder/paper.pdf",
    pages=1,
    text_beside=True,
)
WORDS = File(name=PAPER.name, media_type=PDF_TYPE, text="--- page 1 of 1\nHello\n")
SCAN = Image(media_type=PDF_TYPE, data=base64.b64encode(pdf("", "")).decode())
PICTURE = Image(media_type="image/png", data=base64.b64encode(png()).decode(), name="picture.png")


def calls(*each: CallTool, text: str = "I look.") -> tuple[Step, ...]:
    said: tuple[Step, ...] = (SayText(text=text),) if text else ()
    return (THINK, *said, CallTogether(calls=each))


DONE: tuple[Step, ...] = (THINK, SayText(text="Done."))


async def say(session: Session, content: Any = "go on") -> None:
    """One message, to the end of its turn, whatever that is."""
    with anyio.fail_after(PATIENCE):
        await session.send_message(content)


async def words_only(world: OracleWorld, session: Session, protocol: str) -> None:
    world.script = [DONE, (SayText(text="Grüße, 世界 🎈 \u200d"),)]
    await say(session, "hi")
    await say(session, "héllo\n\n\t 🎈")


async def parallel_tools(world: OracleWorld, session: Session, protocol: str) -> None:
    world.script = [calls(READ, MISSING, LIST), calls(READ, READ, text=""), DONE]
    await say(session, "look at everything")
    await say(session)


async def many_rounds(world: OracleWorld, session: Session, protocol: str) -> None:
    world.script = [calls(READ), calls(LIST, text=""), calls(MISSING), calls(READ), DONE]
    await say(session, "look around")


async def stopped_in_mid_stream(world: OracleWorld, session: Session, protocol: str) -> None:
    world.script = [calls(READ), (THINK, SayText(text="Half a"), Stall())]
    before = world.requests
    await session.send_prompt("look")
    await world.asked(before + 2)
    with anyio.fail_after(PATIENCE):
        await session.abort("enough")
    world.script = [calls(LIST), DONE]
    await say(session, "something else")


async def stopped_at_a_call(world: OracleWorld, session: Session, protocol: str) -> None:
    # A request for permission that no one answers.
    write = CallTool(name="write", args={"path": "b.txt", "content": "x"})
    world.script = [calls(READ, write, LIST)]
    await session.send_prompt("write it down")
    await until(session, PermissionRequest)
    with anyio.fail_after(PATIENCE):
        await session.abort()
    world.script = [DONE]
    await say(session, "never mind")


async def steered(world: OracleWorld, session: Session, protocol: str) -> None:
    world.gate = anyio.Event()
    world.script = [calls(READ), calls(LIST), DONE]
    before = world.requests
    await session.send_prompt("look")
    await world.asked(before + 1)
    await session.queue_steering("and be quick")
    await session.queue_steering([Text(text="with this"), PICTURE])
    gate, world.gate = world.gate, None
    gate.set()
    await until_idle(session)
    await say(session)


async def switched_to_other_vendors(world: OracleWorld, session: Session, protocol: str) -> None:
    own = (await session.metadata()).model
    world.script = [calls(READ, LIST), DONE]
    await say(session, [Text(text="look"), PICTURE])
    for other, models in ORACLE_MODELS.items():
        if other == protocol:
            continue
        await session.update_model(f"{other}:{models[0]}")
        world.script = [calls(READ), DONE]
        await say(session, f"now you, {other}")
    await session.update_model(own)
    world.script = [calls(MISSING), DONE]
    await say(session, "and again")


async def switched_to_its_sisters(world: OracleWorld, session: Session, protocol: str) -> None:
    for model in (*ORACLE_MODELS[protocol], ORACLE_MODELS[protocol][0]):
        await session.update_model(f"{protocol}:{model}")
        world.script = [calls(READ, LIST), calls(READ), DONE]
        await say(session)


async def levels_changed(world: OracleWorld, session: Session, protocol: str) -> None:
    for level in ("high", "off", "low", "max", "minimal", "default"):
        await session.set_thinking_level(level)
        world.script = [calls(READ), DONE]
        await say(session)


async def compacted(world: OracleWorld, session: Session, protocol: str) -> None:
    for _ in range(3):
        world.script = [calls(READ, LIST), DONE]
        await say(session)
    with anyio.fail_after(PATIENCE):
        await session.compact()
    world.script = [calls(READ), DONE]
    await say(session)
    with anyio.fail_after(PATIENCE):
        await session.undo_compaction()
    world.script = [calls(LIST), DONE]
    await say(session)


async def branched(world: OracleWorld, session: Session, protocol: str) -> None:
    world.script = [calls(READ), DONE, calls(LIST), DONE]
    await say(session, "one")
    await say(session, "two")
    await session.branch_at(0, "other")
    world.script = [calls(READ, LIST), DONE]
    await say(session, "another way")
    await session.branch_at(1, "third")
    world.script = [DONE]
    await say(session, "a third way")


async def worked_by_agents(world: OracleWorld, session: Session, protocol: str) -> None:
    agent = CallTool(name="agent", args={"prompt": "Read a.txt.", "description": "read"})
    world.script = [calls(agent), calls(READ), DONE, calls(LIST), DONE]
    await say(session, "let an agent look")
    await say(session)


async def pictures_and_documents(world: OracleWorld, session: Session, protocol: str) -> None:
    notes = File(name="notes.md", media_type="text/markdown", text="# Notes")
    world.script = [calls(SEE, READ), calls(SEE, text=""), DONE]
    await say(session, [Text(text="see"), PICTURE, notes, PAPER, WORDS, PICTURE])
    await say(session, [PICTURE])


async def pdfs(world: OracleWorld, session: Session, protocol: str) -> None:
    world.script = [calls(STUDY, SEE), calls(STUDY, text=""), DONE, DONE, calls(STUDY), DONE]
    await say(session, [PAPER, WORDS])
    await say(session, [Text(text="compare"), PICTURE, PAPER, WORDS, SCAN])
    other = "ollama" if protocol != "ollama" else "google"
    await session.update_model(f"{other}:{ORACLE_MODELS[other][0]}")
    await say(session, [PAPER, WORDS])
    await session.update_model(f"{protocol}:{ORACLE_MODELS[protocol][-1]}")
    await say(session, "and once more")


async def mistaken_calls(world: OracleWorld, session: Session, protocol: str) -> None:
    unknown = CallTool(name="no_such_tool", args={"x": [1, None, {"y": "ü"}]})
    wrong = CallTool(name="read", args={"wrong": True, "path": 5})
    world.script = [calls(unknown, READ), calls(wrong, text=""), DONE]
    await say(session, "try")
    await say(session)


async def cut_off(world: OracleWorld, session: Session, protocol: str) -> None:
    half: tuple[Step, ...] = (THINK, SayText(text="Half an answer"), Finish(reason="length"))
    world.script = [calls(READ), half, half, DONE]
    await say(session, "tell me all")
    await say(session)


async def failing_service(world: OracleWorld, session: Session, protocol: str) -> None:
    world.script = [
        (Fail(status=529, message="overloaded"),),
        calls(READ),
        (THINK, SayText(text="broken"), Break()),
        (SayText(text="early"), EndEarly()),
        (),
        DONE,
    ]
    await say(session, "try hard")
    world.script = [(Fail(status=400, message="no"),)]
    await say(session, "again")
    await say(session)


async def steps_back(world: OracleWorld, session: Session, protocol: str) -> None:
    world.script = [calls(READ, LIST), DONE]
    await say(session, "one")
    await session.checkpoint("here")
    world.script = [calls(LIST), DONE]
    await say(session, "two")
    with anyio.fail_after(PATIENCE):
        await session.rewind("here")
    world.script = [DONE]
    await say(session, "three")
    with anyio.fail_after(PATIENCE):
        await session.continue_and_wait()


CONVERSATIONS: tuple[Conversation, ...] = (
    words_only,
    parallel_tools,
    many_rounds,
    stopped_in_mid_stream,
    stopped_at_a_call,
    steered,
    switched_to_other_vendors,
    switched_to_its_sisters,
    levels_changed,
    compacted,
    branched,
    worked_by_agents,
    pictures_and_documents,
    pdfs,
    mistaken_calls,
    cut_off,
    failing_service,
    steps_back,
)
