"""Snapshots in exports: they go along when asked for, and a file is believed in nothing."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.file_tree import tree, with_git_modes
from tests.support.rewind_project import (
    last_id,
    make_files,
    open_world,
    project_tree,
    shell,
    start,
    turns,
    write,
)
from tests.support.world import World, facts
from weft.errors import Corrupt, UsageError
from weft.events import WorkspaceSnapshot
from weft.workspace.history.project_tree import TreeEntry, listing

pytestmark = [pytest.mark.anyio, pytest.mark.process]


async def exported(world: World, form: str = "json", *, files: bool = True) -> Path:
    """A session with two turns, in a file."""
    make_files(world)
    model = turns([write("new.txt", "1"), shell("rm -r d")], shell("echo 2 > new.txt"))
    path = world.base / f"session.{form}"
    async with open_world(world, model) as app:
        session = await start(app)
        await session.send_message("one")
        await session.send_message("two")
        await app.sessions.export_session("s", form, path, files=files)  # type: ignore[arg-type]
    return path


@pytest.mark.parametrize("form", ["json", "jsonl"])
async def test_an_import_has_the_files_of_every_turn(
    world: World, form: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = await exported(world, form)
    copy = project_tree(world)
    elsewhere = World(world.kind, tmp_path_factory.mktemp("e"))
    async with open_world(elsewhere, turns()) as app:
        report = await app.sessions.import_session(path)
        assert "snapshots" not in report.dropped
        session = report.session
        first, second = await facts(session, WorkspaceSnapshot)
        at = await last_id(session)
        files = await session.files_at(at)
        assert (files.tree, files.is_exact) == (second.tree, True)
        assert await session.write_files(elsewhere.base / "to", at) == []
        assert tree(elsewhere.base / "to") == with_git_modes(copy)
        assert first.node
        assert (await session.read_file("new.txt", first.node)).text == "1"


async def test_without_being_asked_an_export_only_counts_them(world: World) -> None:
    path = await exported(world, files=False)
    document = json.loads(path.read_text())
    assert document["left_out"]["snapshots"] == 2
    assert "blobs" not in document
    assert "files" not in document
    async with open_world(world, turns()) as app:
        assert (await app.sessions.import_session(path)).dropped["snapshots"] == 2
        with pytest.raises(UsageError, match="for reading"):
            await app.sessions.export_session("s", "md", files=True)


async def test_an_export_names_the_files_that_it_does_not_have(world: World) -> None:
    world.write("a.txt", "1\n")
    world.write("b.txt", "2\n")
    said: list[tuple[str, ...]] = []
    async with open_world(world, turns(shell("true"))) as app:
        session = await start(app)
        with pytest.raises(UsageError, match="no snapshot of the project's files"):
            await app.sessions.export_session("s", "json", files=True)
        await session.send_message("one")
        await app.sessions.export_session("s", "json", files=True, missing=said.append)
        assert said == []
        await app.store.trim_history(str(world.project), 2)
        path = world.base / "session.json"
        await app.sessions.export_session("s", "json", path, files=True, missing=said.append)
        ((name,),) = said
        assert name in ("a.txt (quota)", "b.txt (quota)")
        report = await app.sessions.import_session(path)
        (left,) = (await report.session.files_at(-1)).left_out
        assert f"{left.path} ({left.why})" == name


async def test_an_import_does_not_find_elsewhere_what_was_left_out(
    world: World, tmp_path_factory: pytest.TempPathFactory
) -> None:
    origin = World(world.kind, tmp_path_factory.mktemp("o"))
    (origin.project / "large.bin").write_bytes(b"x" * 3_000)
    path = world.base / "session.json"
    model = turns(shell("true"), shell("echo 1 > small.txt"))
    async with open_world(origin, model, history__max_file=2_000) as app:
        session = await start(app)
        await session.send_message("one")
        await session.send_message("two")
        await app.sessions.export_session("s", "json", path, files=True)
    assert base64.b64encode(b"x" * 300).decode() not in path.read_text()
    # Another session of the store has it.
    (world.project / "copy.bin").write_bytes(b"x" * 3_000)
    async with open_world(world, turns(shell("true"))) as app:
        other = await start(app)
        await other.send_message("one")
        assert (await other.read_file("copy.bin", -1)).text == "x" * 3_000
        report = await app.sessions.import_session(path)
        assert "snapshots" not in report.dropped
        (left,) = await report.session.write_files(world.base / "to", -1)
        assert (left.path, left.why) == ("large.bin", "too large")
        assert [each.name for each in (world.base / "to").iterdir()] == ["small.txt"]


def _names_another(document: dict[str, Any]) -> None:
    """A content that is not in the file: here it would be another session's."""
    document["blobs"] = document["blobs"][:-1]


def _leads_out(document: dict[str, Any]) -> None:
    made = listing([TreeEntry("a", 33188, "0" * 64)])
    bad = made.data.replace(b'"a"', b'"../a"')
    document["blobs"].append({"base64": base64.b64encode(bad).decode()})
    document["files"][0]["tree"] = hashlib.sha256(bad).hexdigest()


def _is_no_tree(document: dict[str, Any]) -> None:
    document["files"][0]["tree"] = document["files"][0]["changes"][0]["content"]


def _is_of_no_node(document: dict[str, Any]) -> None:
    document["files"][0]["node"] = "nod_nowhere"


def _is_no_base64(document: dict[str, Any]) -> None:
    document["blobs"][0]["base64"] = "?"


def _has_a_mode_beyond_all(document: dict[str, Any]) -> None:
    document["files"][0]["changes"][0]["mode"] = 2**40


def _changes_what_is_not_there(document: dict[str, Any]) -> None:
    document["files"][0]["changes"][0]["path"] = "../../elsewhere"


def _is_a_bomb(document: dict[str, Any]) -> None:
    data = listing([]).data
    for _ in range(64):
        document["blobs"].append({"base64": base64.b64encode(data).decode()})
        digest = hashlib.sha256(data).hexdigest()
        data = listing([TreeEntry("a", 16384, digest), TreeEntry("b", 16384, digest)]).data
    document["blobs"].append({"base64": base64.b64encode(data).decode()})
    document["files"][0] |= {"tree": hashlib.sha256(data).hexdigest(), "changes": []}


def _brings_a_repository(document: dict[str, Any]) -> None:
    inner = listing([])
    outer = listing([TreeEntry(".git", 16384, inner.digest)])
    for each in (inner, outer):
        document["blobs"].append({"base64": base64.b64encode(each.data).decode()})
    document["files"][0] |= {"tree": outer.digest, "changes": []}


@pytest.mark.parametrize(
    "spoil",
    [
        _names_another,
        _leads_out,
        _is_no_tree,
        _is_of_no_node,
        _is_no_base64,
        _has_a_mode_beyond_all,
        _changes_what_is_not_there,
        _is_a_bomb,
        _brings_a_repository,
    ],
)
async def test_a_file_whose_snapshots_are_not_sound_is_refused_whole(
    world: World, spoil: Any
) -> None:
    path = await exported(world)
    document = json.loads(path.read_text())
    document["files"].reverse()
    spoil(document)
    path.write_text(json.dumps(document))
    async with open_world(world, turns()) as app:
        with pytest.raises(Corrupt):
            await app.sessions.import_session(path)
        assert len(await app.sessions.list_saved()) == 1
