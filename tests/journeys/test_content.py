"""What people send: very long, with pictures and files, and not always well formed."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import weft
from tests.support.image_samples import picture
from tests.support.world import World, crash, facts, message_lines, request_lines, until_idle
from weft.api.session import Session
from weft.errors import UsageError
from weft.events import ErrorRaised, NewMessage, SessionRestarted, SystemNote
from weft.ids import BlobId
from weft.messages import File, Image, Text
from weft.providers import ChatMessage, ModelInfo
from weft.providers.script import CallTool, SayText, Stall
from weft.providers.scripted import ScriptedModel
from weft.runtime.session_host import SessionHost
from weft.sha256 import sha256

pytestmark = pytest.mark.anyio

LONG = "".join(f"word {i}\n" for i in range(20_000))
"""Far longer than what a log keeps in place."""
PICTURE = Image(
    media_type="image/png",
    data=base64.b64encode(picture("PNG", 200, 170, noisy=True)).decode(),
    name="cat.png",
)


async def test_a_huge_prompt_reaches_the_model_whole_and_survives(world: World) -> None:
    model = ScriptedModel(["Long.", "Still long."])
    async with world.open(model) as app:
        session = await app.sessions.start_session(session_id="s")
        await session.send_message(LONG)
        [new] = [each for each in await facts(session, NewMessage) if each.node.role == "user"]
        assert len(new.node.text) < 2_000
        assert (await session.messages())[0].content == LONG
    async with world.open(model) as app:
        session = await app.sessions.get("s")
        assert (await session.messages())[0].content == LONG
        assert (await app.sessions.read_session("s")).messages[0].content == LONG
        await session.send_message("still?")
    for request in model.requests:
        assert request_lines(request)[0] == f"user: {LONG}"


async def test_huge_steering_reaches_the_model_whole(world: World) -> None:
    model = ScriptedModel([(Stall(gate="g"), CallTool(name="list")), "Long."])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_prompt("go")
        await model.gate("g").reached.wait()
        await session.queue_steering(LONG)
        model.gate("g").opened.set()
        await until_idle(session)
    assert request_lines(model.last_request)[-1] == f"user: {LONG}"


async def test_a_huge_follow_up_reaches_the_model_whole(world: World) -> None:
    model = ScriptedModel([(Stall(gate="g"), SayText(text="one")), "two"])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_prompt("go")
        await session.queue_follow_up(LONG)
        model.gate("g").opened.set()
        await until_idle(session)
    assert request_lines(model.last_request)[-1] == f"user: {LONG}"


async def test_what_is_taken_back_from_the_queue_comes_back_whole(world: World) -> None:
    app = await world.open(ScriptedModel([Stall()])).__aenter__()
    session = await app.sessions.start_session(session_id="s")
    await session.send_prompt("go")
    await session.queue_steering(LONG)
    await session.queue_follow_up((Text(text=LONG), PICTURE))
    await crash(app)
    async with world.open() as app:
        session = await app.sessions.get("s")
        steering, follow_up = await session.get_queued_messages()
        assert (steering[0].text, follow_up[0].parts) == (LONG, (Text(text=LONG), PICTURE))
        (taken,) = await session.dequeue_steering()
        assert taken.text == LONG
        _, follow_up = await session.recall_queues()
        assert follow_up[0].parts == (Text(text=LONG), PICTURE)


@pytest.mark.requirement("session:send_message:parts")
async def test_pictures_and_files_reach_the_model_and_survive(world: World) -> None:
    notes = File(name="notes.md", text="# Notes\n")
    content = (Text(text="What is this?"), PICTURE, notes)
    model = ScriptedModel(["A cat.", "Still a cat."])
    async with world.open(model) as app:
        session = await app.sessions.start_session(session_id="s")
        await session.send_message(content)
    async with world.open(model) as app:
        session = await app.sessions.get("s")
        await session.send_message("And now?")
    for request in model.requests:
        first = request.messages[0]
        assert isinstance(first, ChatMessage)
        assert first.parts == content


async def test_a_content_named_by_its_hash_is_the_messages_own(world: World) -> None:
    """It is there when the session that brought it is gone."""
    long = "word " * 20_000
    model = ScriptedModel(["One.", "Two.", "Three."])
    async with world.open(model) as app:
        first = await app.sessions.start_session(session_id="first")
        await first.send_message(long)
        blob = BlobId(sha256(long.encode()).hexdigest())
        second = await app.sessions.start_session(session_id="second")
        await second.send_message((File(name="a.txt", blob=blob), Text(text="?", blob=blob)))
        await app.sessions.delete_session("first")
    async with world.open(model) as app:
        await (await app.sessions.get("second")).send_message("And now?")
        exported = await app.sessions.export_session("second", "md")
    first_message = model.requests[-1].messages[0]
    assert isinstance(first_message, ChatMessage)
    assert [getattr(part, "text", "") for part in first_message.parts] == [long, long]
    assert long in exported


async def test_contents_that_a_message_names_are_bounded_and_read_once(
    plain_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A short message may name a large content thousands of times."""
    reads: list[BlobId] = []
    read = SessionHost.read_blob

    async def counted(host: SessionHost, blob: BlobId) -> bytes:
        reads.append(blob)
        return await read(host, blob)

    monkeypatch.setattr(SessionHost, "read_blob", counted)
    long = "word " * 20_000
    async with plain_world.open(ScriptedModel(["One.", "Two."])) as app:
        session = await app.sessions.start_session()
        await session.send_message(long)
        part = File(name="a.txt", blob=BlobId(sha256(long.encode()).hexdigest()))
        assert (await session.send_message((part, part, part))).text == "Two."
        assert reads == [part.blob]
        with pytest.raises(UsageError, match="more than 64 MB"):
            await session.send_message((part,) * 10_000)
        assert reads == [part.blob] * 2


async def test_text_and_pictures_may_be_listed_as_they_come(world: World) -> None:
    model = ScriptedModel(["A cat."])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_message(["What is ", "this? ", PICTURE])
        assert (await message_lines(session))[0] == "user: What is this? [image: cat.png]"


@pytest.mark.requirement("fault:picture-crashes")
async def test_a_picture_alone_is_a_message(world: World) -> None:
    model = ScriptedModel(["A cat."])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_message(PICTURE)
        assert await message_lines(session) == ["user: [image: cat.png]", "assistant: A cat."]


@pytest.mark.requirement("fault:surrogates")
@pytest.mark.parametrize("input_id", [None, "i"])
async def test_lone_surrogates_are_replaced_where_text_enters(
    world: World, input_id: str | None
) -> None:
    model = ScriptedModel(["Odd."])
    async with world.open(model) as app:
        session = await app.sessions.start_session(
            title="t\udcff", system_prompt="be \ud800 good", messages=[
                {"role": "user", "content": "s\ud800"},
                {"role": "assistant", "content": "", "tool_calls": [
                    {"id": "1\ud800", "name": "x\ud800", "args": {"a\ud800": ["\ud800"]}}
                ]},
            ]
        )  # fmt: skip
        first = await session.send_message("a\ud800b", input_id=input_id)
        if input_id:
            assert await session.send_message("a\ud800b", input_id=input_id) == first
        assert any(line.startswith("user: a\ufffd") for line in await message_lines(session))
        await session.add_system_message("n\ud800")
        await app.sessions.rename_session(session.id, "u\ud800")
        assert (await session.metadata()).title.startswith("u")
        assert await facts(session, ErrorRaised, SessionRestarted) == []
    assert model.last_request.system.startswith("be ")
    repr(model.last_request).encode()


Change = Callable[[Session], Awaitable[Any]]

NONSENSE: dict[str, Change] = {
    "no text": lambda s: s.send_message(Text(text=5)),  # type: ignore[arg-type]
    "text part of no text": lambda s: s.send_message((Text(text=5),)),  # type: ignore[arg-type]
    "a list of numbers": lambda s: s.send_message([1, 2]),  # type: ignore[list-item]
    "nothing": lambda s: s.send_message(None),  # type: ignore[arg-type]
    "bytes": lambda s: s.send_message(b"hello"),  # type: ignore[arg-type]
    "a picture that is no base64": lambda s: s.send_message(
        (Image(media_type="image/png", data="ab!c" * 20_000 + "x"),)
    ),
    "a picture by a content that is not stored": lambda s: s.send_message(
        (Image(media_type="image/png", blob=BlobId("")),)
    ),
    "a text by a content that is not stored": lambda s: s.queue_follow_up(
        (Text(text="x", blob=BlobId("0" * 64)),)
    ),
    "a file by a content that is not stored": lambda s: s.send_prompt(
        (File(name="a.md", blob=BlobId("0" * 64)),)
    ),
    "a picture without content": lambda s: s.send_message((Image(media_type="image/png"),)),
    "a picture without a type": lambda s: s.send_message((Image(media_type="", data="aGVsbG8="),)),
    "a limit that is no number": lambda s: s.send_message("x", max_turns="three"),  # type: ignore[arg-type]
    "a limit below nothing": lambda s: s.send_message("x", max_turns=-1),
    "no limit at all": lambda s: s.send_message("x", max_turns=0),
    "an unknown option": lambda s: s.send_message("x", max_turn=3),  # type: ignore[call-arg]
    "an unknown thinking level": lambda s: s.send_message("x", thinking="very"),  # type: ignore[arg-type]
    "an unknown tool": lambda s: s.send_message("x", tools=["nope"]),
    "tools that are no list": lambda s: s.send_message("x", tools="everything"),
    "an unknown provider": lambda s: s.send_message("x", model="nope:model"),
    "a model without provider": lambda s: s.send_message("x", model="nope"),
    "a function as a model": lambda s: s.send_message("x", model=print),  # type: ignore[arg-type]
    "an unknown model for the session": lambda s: s.update_model("nope:model"),
    "a thinking level": lambda s: s.set_thinking_level("very"),
    "an empty note": lambda s: s.add_system_message("  "),
    "a level of no kind": lambda s: s.add_system_message("x", "loud"),  # type: ignore[arg-type]
    "a role of no kind": lambda s: s.attach("boss"),  # type: ignore[arg-type]
    "a message that is not there": lambda s: s.pin("nod_nope"),
    "a budget that is no number": lambda s: s.set_budget(usd="much"),  # type: ignore[arg-type]
}


@pytest.mark.requirement("command:errors", "session:set_thinking_level")
@pytest.mark.parametrize("change", NONSENSE.values(), ids=NONSENSE)
async def test_a_wrong_call_is_refused_with_a_sentence_and_changes_nothing(
    plain_world: World, change: Change
) -> None:
    async with plain_world.open(ScriptedModel(["Fine."])) as app:
        session = await app.sessions.start_session()
        before = (await session.editor_snapshot()).seq
        with pytest.raises(UsageError) as caught:
            await change(session)
        assert len(str(caught.value)) > 15
        assert (await session.editor_snapshot()).seq == before
        assert await session.get_status() == "idle"
        assert (await session.send_message("and now?")).text == "Fine."


@pytest.mark.parametrize(
    "option",
    [{"model": "nope:model"}, {"tools": ["nope"]}, {"max_turns": "three"}, {"tools": [print]}],
)
async def test_a_wrong_option_is_refused_when_it_is_queued_not_when_it_is_sent(
    plain_world: World, option: dict[str, Any]
) -> None:
    async with plain_world.open(ScriptedModel([Stall(), "Fine."])) as app:
        session = await app.sessions.start_session()
        await session.send_prompt("go")
        with pytest.raises(UsageError):
            await session.send_message("later", **option)
        assert await session.get_queued_messages() == ((), ())


START: dict[str, dict[str, Any]] = {
    "an unknown setting": {"colour": "red"},
    "an unknown tool": {"tools": ["nope"]},
    "tools that are no list": {"tools": "some"},
    "a tool that is none": {"tools": [5]},
    "a model without provider": {"model": "nope"},
    "an unknown provider": {"model": "nope:model"},
    "an id with a slash": {"session_id": "../etc"},
    "an id that hides": {"session_id": ".hidden"},
    "an endless id": {"session_id": "x" * 500},
    "a thinking level": {"thinking": "very"},
    "a limit that is no number": {"max_turns": "three"},
    "a message without role": {"messages": [{"content": "hello"}]},
    "a message of no role": {"messages": [{"role": "boss", "content": "hello"}]},
    "a result without call": {"messages": [{"role": "tool", "content": "x", "tool_call_id": "1"}]},
    "a project that is not there": {"project_path": "/nowhere/at/all"},
    "a budget of no kind": {"budget": "much"},
}


@pytest.mark.requirement("command:errors")
@pytest.mark.parametrize("settings", START.values(), ids=START)
async def test_a_wrong_start_is_refused_with_a_sentence_and_leaves_nothing_behind(
    plain_world: World, settings: dict[str, Any]
) -> None:
    async with plain_world.open(ScriptedModel(["Fine."])) as app:
        with pytest.raises(UsageError) as caught:
            await app.sessions.start_session(**settings)
        assert len(str(caught.value)) > 15
        assert await app.sessions.list_saved() == []
        assert await app.sessions.list_active() == []


@pytest.mark.requirement("session:send_message:options", "session:set_thinking_level")
async def test_options_hold_for_one_message(world: World) -> None:
    model = ScriptedModel(["one", "two"])
    other = ScriptedModel(["other"], info=weft_info("other"))
    async with world.open(model, other) as app:
        session = await app.sessions.start_session()
        reply = await session.send_message(
            "x", model="scripted/other", tools=["read"], thinking="high"
        )
        assert reply.model == "scripted:other"
        await session.send_message("y")
    assert [tool.name for tool in other.last_request.tools] == ["read"]
    assert other.last_request.thinking == "high"
    assert len(model.last_request.tools) > 1
    assert model.last_request.thinking == "default"


def weft_info(name: str) -> Any:
    """A model of this name."""
    from weft.providers import ModelInfo

    return ModelInfo(provider="scripted", name=name)


async def test_a_function_can_be_a_tool_for_one_message(world: World) -> None:
    """A callable stays in this process, so it is named in the log and known here."""

    async def roll() -> int:
        return 4

    model = ScriptedModel([CallTool(name="roll"), "Four."])
    async with world.open(model) as app:
        session = await app.sessions.start_session(permission_mode="bypass")
        reply = await session.send_message("roll", tools=[weft.tool(roll)])
        assert reply.text == "Four."
    assert "result: 4" in request_lines(model.last_request)


@pytest.mark.requirement("session:set_thinking_level", "session:cycle_thinking_level")
async def test_a_model_without_thinking_says_so(plain_world: World) -> None:
    plain = ScriptedModel(["ok"], info=ModelInfo(provider="scripted", name="plain"))
    async with plain_world.open(plain, ScriptedModel([])) as app:
        session = await app.sessions.start_session(model=plain)
        await session.set_thinking_level("high")
        [note] = await facts(session, SystemNote)
        assert (
            note.text == "scripted:plain has no thinking levels; the setting takes effect with a "
            "model that has them."
        )
        await session.set_thinking_level("off")
        assert await session.cycle_thinking_level() == "minimal"
        assert len(await facts(session, SystemNote)) == 2
        await session.update_model("scripted:script")
        assert await session.cycle_thinking_level() == "low"
        assert len(await facts(session, SystemNote)) == 2
