"""A session goes on at a server that has none of the files of the one that had it: another folder
tree, another home, the same database.
"""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from tests.support.postgres_server import PostgresServer
from tests.support.server_cluster import ClusterServer, script, seen, server_cluster
from tests.support.weft_program import call
from tests.support.world import PATIENCE
from weft.events import (
    FactBase,
    NewMessage,
    PermissionRequest,
    SystemNote,
    ToolComplete,
    TurnFinished,
)
from weft.server.client.remote_events import RemoteEvents
from weft.server.client.remote_session import RemoteSession

pytestmark = [pytest.mark.anyio, pytest.mark.process]

WAITING = "touch started; exec sleep 1000"
PROGRAM = "def total(prices):\n    return sum(prices) - 1\n"
TEST = """\
import unittest
from shop import total

class Totals(unittest.TestCase):
    def test_it_adds_up(self):
        self.assertEqual(total([1, 2]), 3)
"""


def git(folder: Path, *words: str) -> str:
    """What git prints, with its own settings alone."""
    environ = {"PATH": "/usr/local/bin:/usr/bin:/bin", "GIT_CONFIG_GLOBAL": "/dev/null"}
    return subprocess.run(
        ["git", "-C", str(folder), *words], check=True, capture_output=True, text=True, env=environ
    ).stdout


def make_project(folder: Path) -> None:
    """A repository with a branch that nobody has pushed, something staged, and a stash."""
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.name", "Ann")
    git(folder, "config", "user.email", "ann@example.org")
    git(folder, "config", "remote.origin.url", "https://ann:secret@example.org/shop.git")
    (folder / "shop.py").write_text(PROGRAM)
    (folder / "test_shop.py").write_text(TEST)
    (folder / ".gitignore").write_text("started\nbuild/\n.env\nnode_modules/\n")
    (folder / ".worktreeinclude").write_text("build/\n.env\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "Begin")
    git(folder, "checkout", "-qb", "work")
    (folder / "more.txt").write_text("unpushed\n")
    git(folder, "add", "more.txt")
    git(folder, "commit", "-qm", "Say more")
    (folder / "shop.py").write_text("stashed\n")
    git(folder, "stash")
    (folder / "staged.txt").write_text("staged\n")
    git(folder, "add", "staged.txt")
    (folder / "staged.txt").write_text("and changed\n")
    (folder / "build").mkdir()
    (folder / "build" / "made.txt").write_text("made\n")
    (folder / "node_modules").mkdir()
    (folder / "node_modules" / "big.js").write_text("big\n")
    (folder / ".env").write_text("KEY=1\n")


QUESTIONS = (
    ("status", "--porcelain", "--branch"),
    ("log", "--all", "--format=%H %an %s"),
    ("for-each-ref",),
    ("ls-files", "--stage"),
    ("diff", "--cached"),
    ("diff",),
    ("stash", "list"),
    ("fsck", "--no-progress"),
)


def described(folder: Path) -> dict[str, str]:
    """What git says of a repository."""
    return {" ".join(each): git(folder, *each) for each in QUESTIONS}


def files_below(folder: Path) -> dict[str, str]:
    """All files but those of git."""
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".git" not in path.relative_to(folder).parts
    }


async def until_finished(session: RemoteSession, events: RemoteEvents) -> list[FactBase]:
    """The facts up to the end of the turn; what is asked for is allowed."""
    facts: list[FactBase] = []
    with anyio.fail_after(PATIENCE):
        async for event in events:
            if isinstance(event, FactBase):
                facts.append(event)
            if isinstance(event, PermissionRequest):
                await session.respond_to_permission("allow_once", request_id=event.request_id)
            if isinstance(event, TurnFinished):
                break
    return facts


def workspace_of(server: ClusterServer) -> Path:
    """The one folder that was made at a server."""
    made = sorted((server.program.data / "workspaces").glob("ses_*/*/made.json"))
    return Path(json.loads(made[-1].read_text())["path"])


@pytest.mark.requirement("event:WorkspaceSaved")
async def test_a_session_goes_on_where_none_of_its_files_are(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    model = script(
        tmp_path,
        [call("write", path="notes.txt", content="noted\n")],
        [call("shell", command="sed -i 's/ - 1//' shop.py && git commit -qm 'Add up' shop.py")],
        [call("shell", command=WAITING)],
        [call("shell", command="python3 -B -m unittest -q 2>&1; pwd")],
        "Done.",
    )
    async with server_cluster(postgres_server, tmp_path, model=model, shared=False) as (one, two):
        make_project(one.project)
        async with one.connect() as first, two.connect() as second:
            made = await first.sessions.start_session(auto_approve=True)
            session = await second.sessions.get(made.id)
            events = await session.subscribe(after=0)
            await session.send_prompt("Go.")
            await seen((one.project / "started").exists)
            expected, files = described(one.project), files_below(one.project)
            one.kill()
            gone = tmp_path / "gone"
            one.project.rename(gone)
            facts = await until_finished(session, events)
            rows = await second.sessions.list_saved()
        assert two.errors == ""
        here = workspace_of(two)
    assert here.name == one.project.name
    assert described(here) == expected
    ignored = {"started", ".env", "node_modules/big.js"}
    there = files_below(here)
    assert there.keys() == files.keys() - ignored
    assert all(files[path] == text for path, text in there.items())
    assert "secret" not in (here / ".git" / "config").read_text()
    said = " ".join(str(fact) for fact in facts)
    assert "OK" in said, "its tests ran there"
    assert str(here) in said
    notes = [fact.text for fact in facts if isinstance(fact, SystemNote) and fact.to_model]
    assert any("another host" in text and ".env (secret)" in text for text in notes), notes
    assert "node_modules" in str(notes)
    assert [row.project_path for row in rows] == [str(one.project)]
    last = [fact for fact in facts if isinstance(fact, NewMessage)][-1]
    assert "Done." in str(last.node)


async def test_a_folder_of_the_same_path_that_is_another_one_is_left_alone(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    model = script(tmp_path, [call("write", path="a.txt", content="ours\n")], "One.", "Two.")
    async with server_cluster(postgres_server, tmp_path, model=model, shared=False) as (one, two):
        make_project(one.project)
        async with one.connect() as first, two.connect() as second:
            made = await first.sessions.start_session(auto_approve=True)
            await made.send_prompt("Go.")
            await until_finished(made, await made.subscribe(after=0))
            one.kill()
            one.project.rename(tmp_path / "gone")
            one.project.mkdir()
            (one.project / "a.txt").write_text("a stranger's\n")
            session = await second.sessions.get(made.id)
            events = await session.subscribe()
            await session.send_prompt("And?")
            await until_finished(session, events)
            here = workspace_of(two)
            assert (here / "a.txt").read_text() == "ours\n"
            assert [path.name for path in one.project.iterdir()] == ["a.txt"]
            assert (one.project / "a.txt").read_text() == "a stranger's\n"
        assert two.errors == ""


async def test_a_session_that_comes_back_leaves_its_first_folder_to_the_user(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    model = script(
        tmp_path,
        *([call("write", path="a.txt", content="at one\n")], "One."),
        *([call("shell", command="echo at two > b.txt; git add b.txt")], "Two."),
        *([call("shell", command="cat a.txt b.txt; git ls-files")], "Three."),
    )
    async with server_cluster(postgres_server, tmp_path, model=model, shared=False) as (one, two):
        make_project(one.project)
        async with two.connect() as second:
            async with one.connect() as first:
                made = await first.sessions.start_session(auto_approve=True)
                await made.send_prompt("Go.")
                await until_finished(made, await made.subscribe(after=0))
            await end(one)
            # Server two must not see it for a moment, as on a machine of its own.
            aside = tmp_path / "aside"
            one.project.rename(aside)
            session = await second.sessions.get(made.id)
            events = await session.subscribe()
            await session.send_prompt("On.")
            await until_finished(session, events)
            assert (workspace_of(two) / "b.txt").read_text() == "at two\n"
            aside.rename(one.project)
            (one.project / "a.txt").write_text("the user's\n")
            await anyio.to_thread.run_sync(one.start)
        await end(two)
        workspace_of(two).rename(tmp_path / "gone")
        async with one.connect() as first:
            session = await first.sessions.get(made.id)
            events = await session.subscribe()
            await session.send_prompt("Back.")
            facts = await until_finished(session, events)
        assert (one.project / "a.txt").read_text() == "the user's\n"
        assert not (one.project / "b.txt").exists()
        here = workspace_of(one)
        assert one.errors == ""
    assert (here / "a.txt").read_text() == "at one\n"
    said = str([fact for fact in facts if isinstance(fact, ToolComplete)])
    assert "at one\\nat two" in said
    assert "b.txt" in git(here, "ls-files")


async def test_a_project_below_the_top_of_its_repository_has_all_of_it(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    model = script(
        tmp_path,
        *([call("write", path="in.txt", content="in\n")], "One."),
        *([call("shell", command="cat ../beside.txt && git status --porcelain")], "Two."),
    )
    async with server_cluster(postgres_server, tmp_path, model=model, shared=False) as (one, two):
        make_project(one.project)
        inner = one.project / "packages" / "inner"
        inner.mkdir(parents=True)
        (one.project / "packages" / "beside.txt").write_text("beside\n")
        (inner / "kept.txt").write_text("kept\n")
        git(one.project, "add", "packages")
        async with one.connect() as first, two.connect() as second:
            made = await first.sessions.start_session(auto_approve=True, project_path=str(inner))
            await made.send_prompt("Go.")
            await until_finished(made, await made.subscribe(after=0))
            one.kill()
            one.project.rename(tmp_path / "gone")
            session = await second.sessions.get(made.id)
            events = await session.subscribe()
            await session.send_prompt("And?")
            facts = await until_finished(session, events)
            here = workspace_of(two)
        assert two.errors == ""
    assert here.parts[-3:] == (one.project.name, "packages", "inner")
    assert files_below(here) == {"in.txt": "in\n", "kept.txt": "kept\n"}
    assert "beside\\n" in str([fact for fact in facts if isinstance(fact, ToolComplete)])


async def test_a_new_folder_is_made_fit_for_work_and_what_ran_behind_is_on_record(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    model = script(
        tmp_path,
        [call("write", path="a.txt", content="a\n")],
        [call("shell", command="sleep 1000", background=True)],
        [call("shell", command=WAITING)],
        "Done.",
    )
    environ = {"WEFT_FAN_SETUP": "mkdir node_modules && pwd > node_modules/.ready"}
    async with server_cluster(
        postgres_server, tmp_path, model=model, shared=False, environ=environ
    ) as (one, two):
        async with one.connect() as first, two.connect() as second:
            made = await first.sessions.start_session(auto_approve=True)
            session = await second.sessions.get(made.id)
            events = await session.subscribe(after=0)
            await session.send_prompt("Go.")
            await seen((one.project / "started").exists)
            one.kill()
            one.project.rename(tmp_path / "gone")
            facts = await until_finished(session, events)
            here = workspace_of(two)
        assert two.errors == ""
    # A project that is in no repository comes along, too.
    assert (here / "a.txt").read_text() == "a\n"
    assert (here / "node_modules" / ".ready").read_text() == f"{here}\n"
    notes = [fact for fact in facts if isinstance(fact, SystemNote)]
    assert any("has run in it" in note.text for note in notes)
    ends = [note.background for note in notes if note.background is not None]
    assert [(end.id, end.why) for end in ends] == [("bg_1", "lost")]


async def end(server: ClusterServer) -> None:
    """Let a server end as for a deploy."""
    server.signal(signal.SIGTERM)
    assert server.process is not None
    await anyio.to_thread.run_sync(server.process.wait)
    server.close()
