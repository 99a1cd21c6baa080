"""Files of the project and blobs, read through the API under the rules of `@file` and `read`."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence

import pytest

from tests.support.image_samples import picture
from tests.support.world import World, facts
from weft.errors import UsageError
from weft.events import NewMessage, ToolComplete
from weft.ids import BlobId
from weft.messages import Text
from weft.providers.script import CallTool
from weft.providers.scripted import ScriptedModel
from weft.session import SessionPort

pytestmark = pytest.mark.anyio

KEY = "sk-ant-api03-" + "a1B2c3D4" * 12 + "-AA"
"""Shaped like a vendor's key."""


@pytest.mark.requirement("session:read_file")
async def test_a_file_is_read_with_its_secrets_masked(world: World) -> None:
    world.write("src/app.py", "print('hi')\n")
    world.write("conf.txt", f"key = {KEY}\n")
    (world.project / "pic.png").write_bytes(picture())
    async with world.open(ScriptedModel([])) as app:
        session = await app.sessions.start_session()
        read = await session.read_file("src/app.py")
        assert (read.path, read.text, read.media_type) == (
            "src/app.py",
            "print('hi')\n",
            "text/plain",
        )
        assert read.size == len("print('hi')\n")
        absolute = await session.read_file(str(world.project / "src" / "app.py"))
        assert absolute == read
        masked = (await session.read_file("conf.txt")).text
        assert masked is not None
        assert KEY not in masked
        assert masked.startswith("key = ")
        shown = await session.read_file("pic.png")
        assert (shown.text, shown.data, shown.media_type) == (None, picture(), "image/png")


@pytest.mark.parametrize("verdict", ["deny", "ask"])
async def test_what_rules_keep_from_being_read_is_refused(world: World, verdict: str) -> None:
    world.write("keys/a.key", "TOPSECRET\n")
    os.symlink("keys/a.key", world.project / "link.txt")
    config = {f"permissions.{verdict}": ["read(keys/**)"]}
    asked: list[str] = []

    async def ask(path: str) -> bool:
        asked.append(path)
        return True

    async with world.open(ScriptedModel([]), config=config) as app:
        session = await app.sessions.start_session()
        for name in ("keys/a.key", "link.txt", "src/../keys/a.key"):
            with pytest.raises(UsageError, match=f"{verdict} read"):
                await session.read_file(name)
        if verdict == "ask":
            assert (await session.read_file("keys/a.key", ask=ask)).text == "TOPSECRET\n"
            assert asked == [str(world.project / "keys" / "a.key")]
        else:
            with pytest.raises(UsageError, match="deny read"):
                await session.read_file("keys/a.key", ask=ask)
            assert asked == []


async def test_what_is_no_file_of_the_project_is_refused(world: World) -> None:
    outside = world.base / "outside.txt"
    outside.write_text("not yours\n")
    os.symlink(outside, world.project / "out.txt")
    os.mkfifo(world.project / "pipe")
    (world.project / "blob.bin").write_bytes(bytes(range(256)))
    async with world.open(ScriptedModel([])) as app:
        session = await app.sessions.start_session()
        for name, why in {
            str(outside): "outside the project",
            "../outside.txt": "outside the project",
            "out.txt": "outside the project",
            "missing.txt": "there is no file 'missing.txt'",
            ".": "is a folder",
            "pipe": "not a regular file",
            "blob.bin": "neither text nor an image",
            "a\0b": "there is no file",
            "": "there is no file",
        }.items():
            with pytest.raises(UsageError, match=why):
                await session.read_file(name)


@pytest.mark.requirement("session:read_file:at")
async def test_a_file_is_read_as_it_was_at_a_node(world: World) -> None:
    world.write("a.txt", "one\n")
    world.write("same.txt", "same\n")
    answers: list[Sequence[CallTool] | str] = []
    for text in ("two\n", "three\n"):
        answers += [
            (
                CallTool(name="read", args={"path": "a.txt"}),
                CallTool(name="write", args={"path": "a.txt", "content": text}),
                CallTool(name="write", args={"path": f"new-{text.strip()}", "content": KEY}),
            ),
            "ok",
        ]
    async with world.open(ScriptedModel(answers)) as app:
        session = await app.sessions.start_session(auto_approve=True)
        await session.send_message("first")
        await session.send_message("second")
        said = {
            fact.node.text: fact.node.id
            for fact in await facts(session, NewMessage)
            if fact.node.role == "user"
        }
        assert (await session.read_file("a.txt")).text == "three\n"
        assert (await session.read_file("a.txt", at=said["second"])).text == "two\n"
        assert (await session.read_file("a.txt", at=said["first"])).text == "one\n"
        assert (await session.read_file("same.txt", at=said["first"])).text == "same\n"
        masked = (await session.read_file("new-two", at=said["second"])).text
        assert masked is not None
        assert KEY not in masked
        with pytest.raises(UsageError, match="was no file 'new-two' at"):
            await session.read_file("new-two", at=said["first"])
        for wrong in ("a\0b", "\ud800", "x" * 5_000, "."):
            with pytest.raises(UsageError):
                await session.read_file(wrong, at=said["first"])
        with pytest.raises(UsageError, match="no message 'nod_x'"):
            await session.read_file("a.txt", at="nod_x")
        (world.project / "a.txt").unlink()
        assert (await session.read_file("a.txt", at=said["second"])).text == "two\n"


async def test_what_rules_forbid_is_refused_at_a_node_too(world: World) -> None:
    world.write("keys/a.key", "one\n")
    model = ScriptedModel(
        [
            (
                CallTool(name="read", args={"path": "keys/a.key"}),
                CallTool(name="write", args={"path": "keys/a.key", "content": "two\n"}),
            ),
            "ok",
        ]
    )
    async with world.open(model) as app:
        session = await app.sessions.start_session(auto_approve=True)
        await session.send_message("go")
        [first, *_] = [node for node, _ in await session.messages_with_ids()]
        assert (await session.read_file("keys/a.key", at=first)).text == "one\n"
        port: SessionPort = await session._port()
        blob = port.state.files.originals["keys/a.key"].content
        assert blob is not None
        assert await app.read_blob(blob) == b"one\n"
        session_id = session.id
    config = {"permissions.deny": ["read(keys/**)"]}
    async with world.open(model, config=config) as app:
        session = await app.sessions.get(session_id)
        with pytest.raises(UsageError, match="deny read"):
            await session.read_file("keys/a.key", at=first)
        with pytest.raises(UsageError, match="deny read"):
            await app.read_blob(blob)
    # The rules are those of the project, whether or not a session that knows the file is open.
    async with world.open(model, config=config) as app:
        with pytest.raises(UsageError, match="deny read"):
            await app.read_blob(blob)


async def test_what_a_forbidden_file_held_between_two_changes_is_refused_too(world: World) -> None:
    world.write("keys/a.key", "one\n")
    answers: list[Sequence[CallTool] | str] = []
    for text in ("two\n", "three\n"):
        read = CallTool(name="read", args={"path": "keys/a.key"})
        edit = CallTool(name="write", args={"path": "keys/a.key", "content": text})
        answers.append((read, edit))
    async with world.open(ScriptedModel([*answers, "ok"])) as app:
        session = await app.sessions.start_session(auto_approve=True)
        await session.send_message("go")
        between = BlobId(hashlib.sha256(b"two\n").hexdigest())
        assert await app.read_blob(between) == b"two\n"
        session_id = session.id
    async with world.open(config={"permissions.deny": ["read(keys/**)"]}) as app:
        await (await app.sessions.get(session_id)).metadata()
        for _ in range(2):
            with pytest.raises(UsageError, match="deny read"):
                await app.read_blob(between)


@pytest.mark.requirement("app:read_blob")
async def test_a_blob_is_read_with_its_secrets_masked(world: World) -> None:
    long = f"{KEY} and more words\n" + "words " * 10_000
    async with world.open(ScriptedModel(["ok"])) as app:
        session = await app.sessions.start_session()
        await session.send_message(long)
        [said, _] = await facts(session, NewMessage)
        part = said.node.parts[0]
        assert isinstance(part, Text)
        assert part.blob is not None
        data = (await app.read_blob(part.blob)).decode()
        assert KEY not in data
        assert data.endswith("words ")
        assert len(data) > 50_000
        for wrong in ("0" * 64, "x", "", "../../etc/passwd"):
            with pytest.raises(UsageError, match="there is no blob"):
                await app.read_blob(BlobId(wrong))
        assert not await facts(session, ToolComplete)
