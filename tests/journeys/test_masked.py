"""Secrets do not get into results, events or stored facts."""

from __future__ import annotations

import msgspec
import pytest

from tests.support.pdf_samples import pdf
from tests.support.world import World, facts, until
from weft.config.api_keys import KeyFile
from weft.events import PermissionRequest, ToolComplete
from weft.providers.script import CallTool, ScriptedAnswer
from weft.testing import ScriptedModel

pytestmark = pytest.mark.anyio

TOKEN = "ghp_" + "a1B2" * 9
KEPT = "kept-key-without-any-shape"


async def test_a_key_that_is_kept_by_login_is_masked(plain_world: World) -> None:
    world = plain_world
    async with world.open(ScriptedModel(["x"])) as app:
        KeyFile(app.places.config).keep("openai", KEPT)
    world.write("notes.txt", f"the key is {KEPT}\n")
    read = CallTool(name="read", args={"path": "notes.txt"})
    model = ScriptedModel([ScriptedAnswer(steps=(read,)), "ok"])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_message("go")
        [done] = await facts(session, ToolComplete)
    assert "the key is [redacted]" in done.result.text
    assert KEPT not in msgspec.json.encode(done).decode()


async def test_a_key_that_another_process_keeps_meanwhile_is_masked_at_once(
    plain_world: World,
) -> None:
    world = plain_world
    world.write("notes.txt", f"the key is {KEPT}\n")
    read = ScriptedAnswer(steps=(CallTool(name="read", args={"path": "notes.txt"}),))
    model = ScriptedModel([read, "ok", read, "ok", read, "ok"])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_message("before")
        # As `weft auth login` does it in another terminal.
        KeyFile(app.places.config).keep("openai", KEPT)
        await session.send_message("after")
        # What was once a key may still be in a file when it was replaced.
        KeyFile(app.places.config).keep("openai", "another-key-without-shape")
        await session.send_message("later")
        texts = [done.result.text for done in await facts(session, ToolComplete)]
    assert ["[redacted]" in text for text in texts] == [False, True, True]


async def test_diffs_of_requests_and_results_are_masked(plain_world: World) -> None:
    world = plain_world
    world.write("config.py", f"TOKEN = '{TOKEN}'\nx = 1\n")
    read = CallTool(name="read", args={"path": "config.py"})
    edit = CallTool(
        name="edit", args={"path": "config.py", "old_string": "x = 1", "new_string": "x = 2"}
    )
    model = ScriptedModel([ScriptedAnswer(steps=(read,)), ScriptedAnswer(steps=(edit,)), "ok"])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_prompt("go")
        asked = await until(session, PermissionRequest)
        await session.respond_to_permission("allow_once")
        done = await until(session, ToolComplete, after=asked.seq)
        stored = [msgspec.json.encode(each).decode() for each in await facts(session, object)]
    assert world.read("config.py") == f"TOKEN = '{TOKEN}'\nx = 2\n"
    assert "+x = 2" in asked.preview
    assert "[redacted github token]" in asked.preview
    assert "+x = 2" in done.result.data["diff"]
    assert not [each for each in stored if TOKEN in each]


@pytest.mark.process
@pytest.mark.parametrize("page", ["Hello there", f"Hello {TOKEN}"])
async def test_a_pdf_with_a_secret_is_read_as_its_masked_text_alone(
    plain_world: World, page: str
) -> None:
    world = plain_world
    (world.project / "paper.pdf").write_bytes(pdf("first", page))
    read = CallTool(name="read", args={"path": "paper.pdf"})
    model = ScriptedModel([ScriptedAnswer(steps=(read,)), "ok"])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_message("go")
        [done] = await facts(session, ToolComplete)
    has_secret = TOKEN in page
    assert [image.name for image in done.result.images] == ([] if has_secret else ["paper.pdf"])
    assert ("secrets are masked" in done.result.text) == has_secret
    assert TOKEN not in done.result.text
    assert "Hello" in done.result.text
