"""Blame of a line names the change that wrote it: the session's call, or the user."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from typing import Any

import pytest

from tests.support.rewind_project import last_id, open_world, shell, start, turns, write
from tests.support.world import World
from weft.errors import UsageError
from weft.providers.script import CallTool

pytestmark = [pytest.mark.anyio, pytest.mark.process]


Turn = Sequence[CallTool] | CallTool


def edit(path: str, old: str, new: str) -> list[CallTool]:
    args = {"path": path, "old_string": old, "new_string": new}
    return [CallTool(name="read", args={"path": path}), CallTool(name="edit", args=args)]


def repository(world: World) -> None:
    subprocess.run(["git", "init", "-q", world.project], check=True)


def commit(world: World, message: str) -> str:
    git = ["git", "-C", str(world.project), "-c", "user.name=Ada", "-c", "user.email=a@b"]
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", message], check=True)
    done = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.mark.requirement("project:blame")
async def test_a_line_leads_to_its_message_call_permission_check_decision_and_commit(
    world: World,
) -> None:
    repository(world)
    world.write("auth.py", "a = 1\nb = 2\n")
    world.write("Makefile", "test:\n\t@true\n")
    commit(world, "Begin")
    plan: list[Turn] = [
        [*edit("auth.py", "b = 2", "b = 3"), shell("make test")],
        write("other.py", "x\n"),
    ]
    async with open_world(world, turns(*plan)) as app:
        session = await start(app)
        await session.send_message("make b three")
        world.clock.advance(10)
        await app.decisions.log(
            "Three is enough", why="measured", options=["four"], session=session.id
        )
        await session.send_message("another file")
        head = commit(world, "Three")
        found = await app.blame("auth.py", 2)
        assert (found.made_by, found.text) == ("session", "b = 3")
        assert found.turn is not None
        assert (found.turn.session_id, found.turn.prompt) == (session.id, "make b three")
        assert found.call is not None
        assert (found.call.tool_name, found.call.target) == ("edit", "auth.py")
        assert found.call.allowed_by == "auto_approve"
        assert found.can_open
        assert found.check is not None
        assert (found.check.command, found.check.exit_code) == ("make test", 0)
        assert found.check.tree
        assert found.commit is not None
        assert (found.commit.commit, found.commit.author) == (head, "Ada")
        assert found.sentence == "`edit auth.py` wrote it, asked for with “make b three”"
        old = await app.blame("auth.py", 1)
        assert (old.made_by, old.turn) == ("user", None)
        assert "before a session first changed the file" in old.sentence
        why = await app.decisions.why("auth.py", 2)
        assert why.turn == found.turn
        assert why.commit == found.commit


async def test_lines_of_the_user_are_named_as_theirs_and_a_rewind_leads_to_who_wrote_it(
    world: World,
) -> None:
    repository(world)
    plan: list[Turn] = [
        write("a.txt", "one\ntwo\nthree\n"),
        edit("a.txt", "two", "TWO"),
        edit("a.txt", "three", "THREE"),
        shell("mv a.txt b.txt"),
    ]
    async with open_world(world, turns(*plan)) as app:
        session = await start(app)
        await session.send_message("write it")
        first = await last_id(session)
        world.clock.advance(10)
        world.write("a.txt", "one\ntwo\nmine\nthree\n")
        await session.send_message("upper two")
        world.clock.advance(10)
        assert (await app.blame("a.txt", 3)).made_by == "user"
        assert (await app.blame("a.txt", 2)).turn is not None
        await session.rewind(first)
        world.clock.advance(10)
        text = world.read("a.txt").split("\n")
        assert "two" in text
        two = await app.blame("a.txt", text.index("two") + 1)
        assert two.turn is not None
        assert two.turn.prompt == "write it"
        await session.send_message("upper three")
        world.clock.advance(10)
        await session.send_message("rename it")
        text = world.read("b.txt").split("\n")
        prompts = {"one": "write it", "THREE": "upper three"}
        for word, prompt in prompts.items():
            found = await app.blame("b.txt", text.index(word) + 1)
            assert found.turn is not None
            assert found.turn.prompt == prompt
            assert found.steps == ("b.txt was a.txt before",)


async def test_what_is_no_line_of_a_file_of_the_project_is_one_sentence(world: World) -> None:
    repository(world)
    world.write("a.txt", "one\n")
    world.write("gone.txt", "one\n")
    (world.project / "bin").write_bytes(b"a\0b\n")
    (world.project / "folder").mkdir()
    async with open_world(world, turns(shell("rm gone.txt"))) as app:
        found = await app.blame("a.txt", 1)
        assert found.made_by == "user"
        assert found.sentence.startswith("no session has ever changed this file")
        session = await start(app)
        await session.send_message("remove it")
        for path, line, says in (
            ("a.txt", 2, "a.txt has no line 2, it has 1 line"),
            ("a.txt", 0, "lines are counted from 1, not 0"),
            ("none.txt", 1, "no file 'none.txt' in this project"),
            ("../x", 1, "not in this project"),
            ("/etc/passwd", 1, "not in this project"),
            ("gone.txt", 1, "'gone.txt' was deleted by session s; blame needs a file"),
            ("bin", 1, "bin is binary: it has no lines"),
            ("folder", 1, "is a folder; name a file and a line of it"),
            ("", 1, "there is no file ''"),
        ):
            with pytest.raises(UsageError, match=says):
                await app.blame(path, line)


async def test_a_file_that_a_rule_denies_is_not_blamed_and_one_it_asks_about_not_shown(
    world: World,
) -> None:
    for name in ("denied.txt", "asked.txt"):
        world.write(name, "one\n")
    (world.project / "link.txt").symlink_to("denied.txt")
    rules: dict[str, Any] = {
        "permissions__deny": ["read(denied.txt)"],
        "permissions__ask": ["read(asked.txt)"],
    }
    async with open_world(world, turns(), **rules) as app:
        for name in ("denied.txt", "link.txt"):
            with pytest.raises(UsageError, match="must not be read: a permission rule denies it"):
                await app.blame(name, 1)
        assert (await app.blame("asked.txt", 1)).text == ""


@pytest.mark.requirement("session:open_at")
async def test_the_past_of_a_line_is_opened_in_an_overlay_that_leaves_nothing(
    shared_world: World,
) -> None:
    world = shared_world
    repository(world)
    world.write("a.txt", "one\n")
    plan = [write("b.txt", "first\n"), write("c.txt", "second\n")]
    async with open_world(world, turns(*plan), sandbox="auto") as app:
        session = await start(app)
        await session.send_message("make b")
        world.clock.advance(10)
        await session.send_message("make c")
        world.write("b.txt", "first\nmine\n")
        found = await app.blame("b.txt", 1)
        assert found.open_node is not None
        assert found.open_session == session.id
        async with await session.open_at(found.open_node, in_copies=True) as past:
            assert await past.read("b.txt") == b"first\n"
            done = await past.run(["sh", "-c", "ls *.txt; echo changed > a.txt; cat a.txt"])
            assert done.output.split() == ["a.txt", "b.txt", "changed"]
            with pytest.raises(UsageError, match="there was no file"):
                await past.read("c.txt")
            with pytest.raises(UsageError, match="given as words"):
                await past.run("ls")
        assert world.read("a.txt") == "one\n"
        assert list((world.base / "sandbox").glob("bisect/*")) == []
        with pytest.raises(UsageError, match="these files are closed"):
            await past.read("b.txt")
        with pytest.raises(UsageError, match="nod_none"):
            await session.open_at("nod_none")


async def test_a_deleted_session_and_a_damaged_index_are_no_obstacle(world: World) -> None:
    repository(world)
    plan = [write("a.txt", "one\n"), write("b.txt", "two\n")]
    async with open_world(world, turns(*plan)) as app:
        session = await start(app)
        await session.send_message("make a")
        assert (await app.blame("a.txt", 1)).made_by == "session"
        for path in world.base.rglob("changes.db"):
            path.write_bytes(b"no database at all, and long enough to be read as one" * 40)
        await session.send_message("make b")
        assert (await app.blame("a.txt", 1)).made_by == "session"
        assert (await app.blame("b.txt", 1)).made_by == "session"
        await session.stop()
        await app.sessions.delete_session(session.id)
        found = await app.blame("a.txt", 1)
        assert (found.made_by, found.turn) == ("user", None)


async def test_files_that_were_renamed_to_each_others_names_lead_in_no_circle(
    world: World,
) -> None:
    repository(world)
    world.write("a.txt", "one\ntwo\nthree\nfour\n")
    plan = [shell("mv a.txt b.txt"), shell("mv b.txt a.txt"), shell("mv a.txt b.txt")]
    async with open_world(world, turns(*plan)) as app:
        session = await start(app)
        for number in range(3):
            world.clock.advance(10)
            await session.send_message(f"rename {number}")
        (world.project / "b.txt").rename(world.project / "c.txt")
        found = await app.blame("c.txt", 1)
        assert (found.made_by, found.notes) == ("user", ())
        assert len(found.steps) <= 4


async def test_a_commit_of_a_session_leads_to_the_turn_that_made_it(world: World) -> None:
    repository(world)
    identity = "-c user.name=Weft -c user.email=w@b"
    commits = f"git add -A && git {identity} commit -qm 'By the session'"
    plan = [write("a.txt", "one\n"), shell(commits)]
    async with open_world(world, turns(*plan)) as app:
        session = await start(app)
        await session.send_message("write it")
        world.clock.advance(10)
        await session.send_message("commit it")
        found = await app.blame("a.txt", 1)
        assert found.turn is not None
        assert found.turn.prompt == "write it"
        assert found.commit is not None
        assert found.committed_by is not None
        assert found.committed_by.prompt == "commit it"


async def test_a_check_in_a_later_turn_counts_and_one_before_the_line_does_not(
    world: World,
) -> None:
    repository(world)
    world.write("Makefile", "test:\n\t@false\n")
    plan = [shell("make test"), write("a.txt", "one\n"), shell("ls"), shell("make test")]
    async with open_world(world, turns(*plan)) as app:
        session = await start(app)
        for number in range(3):
            world.clock.advance(10)
            await session.send_message(f"turn {number}")
        assert (await app.blame("a.txt", 1)).check is None
        world.clock.advance(10)
        await session.send_message("test it")
        check = (await app.blame("a.txt", 1)).check
        assert check is not None
        assert (check.command, check.exit_code) == ("make test", 2)


async def test_a_clock_that_is_set_back_between_two_edits_makes_no_line_the_users(
    world: World,
) -> None:
    repository(world)
    plan: list[Turn] = [write("a.txt", "one\ntwo\n"), edit("a.txt", "two", "TWO")]
    async with world.open(turns(*plan), clock=world.clock) as app:
        session = await start(app)
        world.clock.advance(100)
        await session.send_message("write it")
        world.clock.advance(-50)
        await session.send_message("upper two")
        found = await app.blame("a.txt", 1)
        assert found.turn is not None
        assert found.turn.prompt == "write it"


async def test_a_file_whose_name_is_no_text_is_one_sentence(world: World) -> None:
    name = os.fsdecode(b"a\xff.txt")
    (world.project / name).write_bytes(b"one\n")
    (world.project / "link.txt").symlink_to(name)
    async with open_world(world, turns()) as app:
        for path in (name, "link.txt"):
            with pytest.raises(UsageError, match="its name is no text, so no log names it"):
                await app.blame(path, 1)
            assert (await app.decisions.why(path)).path == name


async def test_why_takes_a_folder_and_blame_does_not(world: World) -> None:
    repository(world)
    world.write("src/a.txt", "one\n")
    head = commit(world, "Begin")
    async with open_world(world, turns()) as app:
        await app.decisions.log("Small files", scope=["src/**"])
        why = await app.decisions.why("src")
        assert why.commit is not None
        assert why.commit.commit == head
        for line in (1, 2):
            with pytest.raises(UsageError, match="is a folder"):
                await app.decisions.why("src", line)


async def test_sessions_of_a_folder_around_or_below_are_named_where_they_changed_the_file(
    world: World,
) -> None:
    repository(world)
    world.write("src/other.txt", "one\n")
    outer = open_world(world, turns(write("src/a.txt", "one\n")))
    async with outer as app:
        session = await start(app)
        await session.send_message("write it")
    inner = str(world.project / "src")
    plan = turns(write("b.txt", "one\n"))
    config = {"sandbox.mode": "off"}
    async with world.open(plan, config=config, folder=inner) as app:
        found = await app.blame("a.txt", 1)
        assert (found.made_by, found.turn) == ("unknown", None)
        assert found.sentence == (
            f"no session of this folder wrote it, but sessions of {world.project} changed this "
            "file: ask there"
        )
        assert (await app.blame("other.txt", 1)).made_by == "user"
        session = await app.sessions.start_session(session_id="t", auto_approve=True)
        await session.send_message("write b")
    async with open_world(world, turns()) as app:
        found = await app.blame("src/b.txt", 1)
        assert found.made_by == "unknown"
        assert f"sessions of {inner} changed this file" in found.sentence
