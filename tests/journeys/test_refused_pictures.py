"""A picture that a vendor refuses is left out and named from then on; it bricks no session."""

from __future__ import annotations

import base64

import pytest

from tests.support.image_samples import PIXEL_DATA, picture
from tests.support.pdf_samples import pdf
from tests.support.world import World, facts
from weft.errors import UsageError
from weft.events import ErrorRaised
from weft.messages import PDF_TYPE, Image, Text
from weft.providers.script import CallTool, Fail
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio

REFUSAL = Fail(error="RequestRefused", message="anthropic: Could not process image", status=400)
SHOT = Image(media_type="image/png", data=PIXEL_DATA, name="shot.png")
NOTE = "[image 'shot.png' left out: the vendor refused it]"


async def test_the_turn_goes_on_without_it_and_so_does_every_later_one(world: World) -> None:
    model = ScriptedModel([[REFUSAL], "I cannot see it.", "Still not.", "Nor now."])
    async with world.open(model) as app:
        session = await app.sessions.start_session(session_id="s")
        reply = await session.send_message([Text(text="What is this?"), SHOT])
        assert (reply.finish_reason, reply.text) == ("stop", "I cannot see it.")
        await session.send_message("And now?")
        [error] = await facts(session, ErrorRaised)
    async with world.open(model) as app:
        await (await app.sessions.get("s")).send_message("And after a restart?")
    assert error.message.endswith("from now on these are left out: shot.png")
    assert [PIXEL_DATA in repr(each.messages) for each in model.requests] == [
        *(True, False, False, False)
    ]
    assert all(NOTE in repr(each.messages) for each in model.requests[1:])


async def test_a_picture_that_a_tool_showed_is_left_out_too(world: World) -> None:
    (world.project / "shot.png").write_bytes(picture())
    read = CallTool(name="read", args={"path": "shot.png"})
    model = ScriptedModel([[read], [REFUSAL], "I cannot see it."])
    async with world.open(model) as app:
        session = await app.sessions.start_session(session_id="s")
        reply = await session.send_message("Look.")
    assert reply.text == "I cannot see it."
    assert NOTE in repr(model.last_request.messages)


async def test_the_newest_goes_first_and_older_ones_stay(world: World) -> None:
    model = ScriptedModel(["A pixel.", [REFUSAL], "Only the first."])
    other = Image(media_type="image/png", data=SHOT.data, name="other.png")
    async with world.open(model) as app:
        session = await app.sessions.start_session(session_id="s")
        await session.send_message([other])
        await session.send_message([SHOT])
    assert PIXEL_DATA in repr(model.last_request.messages)
    assert NOTE in repr(model.last_request.messages)


@pytest.mark.parametrize(
    "message",
    [
        "bad tool schema",
        "bad tool schema; see the documentation",
        "bad tool schema: https://vendor.example/docs/guides/images",
        "max_tokens is too large; read the files under docs/ for limits of pages",
    ],
)
async def test_a_refusal_of_something_else_ends_the_turn(world: World, message: str) -> None:
    model = ScriptedModel([[Fail(error="RequestRefused", message=message)], "never"])
    async with world.open(model) as app:
        session = await app.sessions.start_session(session_id="s")
        reply = await session.send_message([SHOT])
    assert reply.finish_reason == "provider_error"


@pytest.mark.process
async def test_a_refused_document_is_named_and_its_text_stays(world: World) -> None:
    refusal = Fail(error="RequestRefused", message="openai: Invalid file_data", status=400)
    model = ScriptedModel([[refusal], "I read the text."])
    data = base64.b64encode(pdf("Hello there")).decode()
    paper = Image(media_type=PDF_TYPE, data=data, name="paper.pdf")
    async with world.open(model) as app:
        session = await app.sessions.start_session(session_id="s")
        reply = await session.send_message([Text(text="Read."), paper])
    assert reply.text == "I read the text."
    first, last = (repr(each.messages) for each in model.requests)
    assert data in first
    assert data not in last
    assert "[document 'paper.pdf' left out: the vendor refused it]" in last
    assert "Hello there" in last


async def test_what_is_no_pdf_is_refused_before_anything_is_sent(world: World) -> None:
    model = ScriptedModel([])
    fake = Image(media_type=PDF_TYPE, data=PIXEL_DATA, name="paper.pdf")
    async with world.open(model) as app:
        session = await app.sessions.start_session(session_id="s")
        with pytest.raises(UsageError, match=r"paper\.pdf is not a PDF"):
            await session.send_message([fake])
    assert model.requests == []
