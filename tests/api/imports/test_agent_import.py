"""Imports from other agents through the application: shown, made once, continued, and careful."""

from __future__ import annotations

import json
import os
import shutil
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.support.foreign_sessions import FILES, agent_of, put_in_home, real_files
from tests.support.vendor_legality import VENDORS, illegal_request
from weft.api.imports.record_lines import RecordLines
from weft.app import App
from weft.errors import UsageError
from weft.providers.scripted import ScriptedModel, ScriptedProvider
from weft.store import MemoryStore

pytestmark = pytest.mark.anyio

CLAUDE = FILES / "claude-2.1.197.jsonl"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def open_app(project: Path, *models: ScriptedModel, store: Any = None) -> App:
    home = str(project.parent)
    return weft.open(
        project,
        store or MemoryStore(),
        {"model.default": "scripted:script", "sandbox.mode": "off", "lsp.enabled": False},
        environ={
            "HOME": home,
            "WEFT_HOME": home,
            "PATH": os.environ["PATH"],
            "WEFT_REPO_INDEX": "off",
        },
        providers={"scripted": ScriptedProvider({each.info.name: each for each in models})},
    )


@pytest.mark.requirement("app:import_from")
@pytest.mark.parametrize("file", real_files(), ids=lambda file: file.stem)
async def test_a_session_is_shown_then_made_then_known_again_and_goes_on_legally(
    file: Path, project: Path
) -> None:
    put_in_home(file, project.parent, str(project))
    model = ScriptedModel(["Going on."])
    async with open_app(project, model) as app:
        shown = await app.import_from(agent_of(file))
        assert [each.state for each in shown.sessions] == ["new"]
        assert await app.sessions.list_saved() == []
        made = await app.import_from(agent_of(file), preview=False)
        assert [each.state for each in made.sessions] == ["made"]
        again = await app.import_from(agent_of(file), preview=False)
        assert [(each.state, each.session) for each in again.sessions] == [
            ("there", made.sessions[0].session)
        ]
        assert len(await app.sessions.list_saved()) == 1
        session = await app.sessions.get(made.sessions[0].session)
        reply = await session.send_message("Go on.")
        assert reply.text == "Going on."
        (request,) = model.requests
        assert [rule for vendor in VENDORS for rule in illegal_request(request, vendor)] == []


async def test_what_it_used_elsewhere_is_no_cost_of_ours(project: Path) -> None:
    put_in_home(CLAUDE, project.parent, str(project))
    async with open_app(project) as app:
        made = await app.import_from("claude", preview=False)
        usage = made.sessions[0].usage
        assert usage is not None
        assert usage.total_tokens == 5_005
        session = await app.sessions.get(made.sessions[0].session)
        assert (await session.usage()).total.total_tokens == 0


async def test_its_permission_mode_and_its_model_are_not_taken(project: Path) -> None:
    """The file says `bypassPermissions`."""
    assert "bypassPermissions" in CLAUDE.read_text()
    put_in_home(CLAUDE, project.parent, str(project))
    async with open_app(project) as app:
        made = await app.import_from("claude", preview=False)
        session = await app.sessions.get(made.sessions[0].session)
        snapshot = await session.editor_snapshot()
        assert snapshot.permission_mode == "default"
        assert snapshot.model == "scripted:script"


async def test_one_that_grew_is_a_session_of_its_own(project: Path) -> None:
    path = put_in_home(CLAUDE, project.parent, str(project))
    async with open_app(project) as app:
        first = await app.import_from("claude", preview=False)
        lines = path.read_text().splitlines()
        last = json.loads(next(line for line in reversed(lines) if '"uuid"' in line))
        last |= {"uuid": "new", "parentUuid": last["uuid"], "type": "user"}
        last["message"] = {"role": "user", "content": "and more"}
        path.write_text("\n".join([*lines, json.dumps(last)]) + "\n")
        second = await app.import_from("claude", preview=False)
        assert second.sessions[0].state == "made"
        assert second.sessions[0].session != first.sessions[0].session
        assert second.sessions[0].messages == first.sessions[0].messages + 1


async def test_one_is_named_by_its_file_or_by_its_id(project: Path) -> None:
    path = put_in_home(CLAUDE, project.parent, "/somewhere/else")
    async with open_app(project) as app:
        assert (await app.import_from("claude")).sessions == ()
        by_file = await app.import_from("claude", str(path))
        by_id = await app.import_from("claude", "claude-2")
        assert by_file.sessions == by_id.sessions
        assert by_file.setup == ()
        with pytest.raises(UsageError, match="no session of claude has the id 'nothing'"):
            await app.import_from("claude", "nothing")
        with pytest.raises(UsageError, match="no agent 'clod'"):
            await app.import_from("clod")


async def one_of(project: Path, data: bytes) -> Any:
    """What is said of a file that a user names."""
    file = project / "session.jsonl"
    file.write_bytes(data)
    async with open_app(project) as app:
        (row,) = (await app.import_from("claude", str(file))).sessions
        return row


async def test_a_file_that_ends_in_mid_line_gives_what_was_whole(project: Path) -> None:
    row = await one_of(project, CLAUDE.read_bytes()[:-700])
    assert row.state == "new"
    assert row.messages == 6
    assert row.problems == ("it ends in the middle of a line; what was whole before it is there",)


async def test_damaged_lines_are_left_out_and_counted(project: Path) -> None:
    lines = CLAUDE.read_bytes().splitlines(keepends=True)
    row = await one_of(project, b"".join([*lines[:4], b"{\xff\n", b"[1]\n", *lines[4:]]))
    assert row.messages == 7
    assert row.problems == ("2 lines are damaged and left out, line 5 first",)


def test_damaged_lines_are_counted_and_not_kept(tmp_path: Path) -> None:
    """A file of nothing else may have a quarter of a billion of them."""
    file = tmp_path / "damaged.jsonl"
    file.write_bytes(b"x\n" * 20_000)
    lines = RecordLines(file)
    tracemalloc.start()
    try:
        assert list(lines) == []
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert lines.problems == ("20000 lines are damaged and left out, line 1 first",)
    assert kept < 200_000


@pytest.mark.parametrize("data", [b"", b"\n\n", b"\0" * 9_000, b"no json", b"{}\n" * 50])
async def test_a_file_of_another_kind_is_left_out_with_a_sentence(
    data: bytes, project: Path
) -> None:
    row = await one_of(project, data)
    assert row.state == "left out"
    assert "it is no session of this agent, or empty" in row.problems[-1]


async def test_of_a_file_of_a_gigabyte_the_first_half_is_read(project: Path) -> None:
    file = project / "session.jsonl"
    shutil.copy(CLAUDE, file)
    os.truncate(file, 1024**3 + 1)
    async with open_app(project) as app:
        (row,) = (await app.import_from("claude", str(file))).sessions
    assert row.messages == 7
    assert "only its first 512 MiB were read" in row.problems


async def test_a_line_that_is_too_long_is_passed_over(project: Path) -> None:
    lines = CLAUDE.read_bytes().splitlines(keepends=True)
    long = b'{"type":"user","uuid":"x","message":{"content":"' + b"x" * (17 << 20) + b'"}}\n'
    row = await one_of(project, b"".join([*lines, long, lines[-1]]))
    assert row.messages == 7
    assert row.problems == ("1 line is longer than 16 MiB and left out",)


async def test_links_and_pipes_are_not_read(project: Path) -> None:
    path = put_in_home(CLAUDE, project.parent, str(project))
    (path.parent / "other.jsonl").symlink_to(path)
    path.rename(project / "kept.jsonl")
    async with open_app(project) as app:
        assert (await app.import_from("claude")).sessions == ()
        os.mkfifo(project / "pipe.jsonl")
        (row,) = (await app.import_from("claude", "pipe.jsonl")).sessions
        assert row.problems == (f"{str(project / 'pipe.jsonl')!r} is not a file",)


async def test_a_database_that_is_none_is_left_out(project: Path) -> None:
    place = project.parent / ".local" / "share" / "opencode"
    place.mkdir(parents=True)
    (place / "opencode.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 5_000)
    async with open_app(project) as app:
        (row,) = (await app.import_from("opencode")).sessions
        assert row.state == "left out"
        assert "opencode.db" in row.problems[0]


async def test_one_that_was_deleted_here_can_be_taken_over_again(project: Path) -> None:
    put_in_home(CLAUDE, project.parent, str(project))
    for store in (MemoryStore(), f"{project.parent}/w.db"):
        async with open_app(project, store=store) as app:
            first = (await app.import_from("claude", preview=False)).sessions[0]
            await app.sessions.delete_session(first.session)
            again = (await app.import_from("claude", preview=False)).sessions[0]
            assert (again.state, again.session) == ("made", first.session)
            assert len((await app.sessions.read_session(again.session)).messages) == 10
