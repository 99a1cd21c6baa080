"""What the messages of a history hold besides their words: parts, reasoning, model, usage, time."""

from __future__ import annotations

import base64

import msgspec
import pytest

from tests.support.image_samples import picture
from tests.support.world import World
from weft.api.session import Session
from weft.ids import SessionId
from weft.messages import Image, Text, Thinking, ToolCall, Usage
from weft.providers.script import CallTool, SayText, Spend, Think
from weft.providers.scripted import ScriptedModel
from weft.store import Append, MemoryStore, Record, SessionRow
from weft.tools import FunctionTool
from weft.view.snapshot import HistoryMessage

pytestmark = pytest.mark.anyio

PICTURE = Image(media_type="image/png", data=base64.b64encode(picture()).decode())
SPENT = Usage(input_tokens=7, output_tokens=3)


async def look(where: str) -> str:
    """Look somewhere."""
    return f"nothing at {where}"


async def talked(session: Session, world: World) -> None:
    """A turn with a picture, reasoning and a call, and then a note."""
    await session.send_message([Text(text="See this."), PICTURE])
    world.clock.advance(5)
    await session.add_system_message("noted")


def model() -> ScriptedModel:
    """Thinks, calls, answers."""
    first = (Think(text="hmm"), SayText(text="So."), CallTool(name="look", args={"where": "a"}))
    return ScriptedModel([(*first, Spend(usage=SPENT)), "Done."])


def check(said: list[HistoryMessage], began: float) -> None:
    """The conversation of `talked`."""
    user, answer, result, last, note = said
    assert [type(part) for part in user.parts] == [Text, Image]
    assert isinstance(user.parts[1], Image)
    assert user.parts[1].data
    assert (user.model, user.usage, user.at) == ("", None, began)
    assert [type(part) for part in answer.parts] == [Thinking, Text, ToolCall]
    assert (answer.thinking, answer.model) == ("hmm", "scripted:script")
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (7, 3)
    assert (result.parts, result.at) == ((Text(text="nothing at a"),), began)
    assert (last.parts, last.at) == ((Text(text="Done."),), began)
    assert (note.parts, note.at) == ((Text(text="noted"),), began + 5)


@pytest.mark.requirement("session:messages:details")
async def test_messages_hold_parts_thinking_model_usage_and_time(world: World) -> None:
    began = world.clock.now()
    async with world.open(model(), clock=world.clock) as app:
        session = await app.sessions.start_session(tools=[FunctionTool(look, effect="pure")])
        await talked(session, world)
        check(await session.get_history(), began)
        check([message for _, message in (await session.line()).items], began)
        session_id = session.id
    async with world.open(model(), clock=world.clock) as app:
        check(list((await app.sessions.read_session(session_id)).messages), began)
        check(await (await app.sessions.get(session_id)).messages(), began)


async def test_messages_go_over_a_wire_and_come_back_the_same(plain_world: World) -> None:
    world = plain_world
    async with world.open(model(), clock=world.clock) as app:
        session = await app.sessions.start_session(tools=[FunctionTool(look, effect="pure")])
        await talked(session, world)
        said = await session.messages()
    raw = msgspec.json.encode(said)
    assert msgspec.json.decode(raw, type=list[HistoryMessage]) == said


OLD_LOG = [
    b'{"kind":"session_created","session_id":"ses_old","seq":1,"at":10.0,"title":"Old",'
    b'"model":"scripted:script","project_path":"/p"}',
    b'{"kind":"new_message","session_id":"ses_old","seq":2,"at":11.0,'
    b'"node":{"id":"nod_1","role":"user","parts":[{"type":"text","text":"Hi."}]}}',
    b'{"kind":"system_note","session_id":"ses_old","seq":3,"at":12.0,"text":"noted","node":"nod_1"}',
    b'{"kind":"new_message","session_id":"ses_old","seq":4,"at":13.0,"node":{"id":"nod_2",'
    b'"role":"assistant","parent":"nod_1","model":"scripted:script",'
    b'"usage":{"input_tokens":2},"parts":[{"type":"thinking","text":"hm"},'
    b'{"type":"text","text":"Hello."}]}}',
]


async def test_the_messages_of_an_old_log_have_them_too(plain_world: World) -> None:
    store, session_id = MemoryStore(), SessionId("ses_old")
    lease = await store.take_lease(session_id)
    kinds = ("session_created", "new_message", "system_note", "new_message")
    lines = zip(kinds, OLD_LOG, strict=True)
    await store.append(
        Append(
            stream=session_id,
            expected_seq=0,
            fence=lease.fence,
            records=tuple(
                Record(seq, 9.0 + seq, kind, body) for seq, (kind, body) in enumerate(lines, 1)
            ),
            row=SessionRow(id=session_id, title="Old"),
        )
    )
    await store.release_lease(lease)
    async with plain_world.open(model(), store=store) as app:
        user, note, answer = (await app.sessions.read_session(session_id)).messages
    assert (user.at, note.at, answer.at) == (11.0, 12.0, 13.0)
    assert (answer.model, answer.thinking) == ("scripted:script", "hm")
    assert answer.usage is not None
    assert answer.usage.input_tokens == 2
    assert answer.parts[1] == Text(text="Hello.")
