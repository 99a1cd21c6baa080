"""What a session changed, one difference for each file; hunks put back and taken."""

from __future__ import annotations

import pytest

from tests.support.rewind_project import INFO, open_world, start, write
from tests.support.world import World
from weft.api.session import Session
from weft.errors import StaleInput, UsageError
from weft.providers.script import CallTool, SayText
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio

LINES = "".join(f"line {number}\n" for number in range(1, 31))


def read(path: str) -> CallTool:
    return CallTool(name="read", args={"path": path})


def edit(path: str, old: str, new: str) -> CallTool:
    return CallTool(name="edit", args={"path": path, "old_string": old, "new_string": new})


def twice(*more: CallTool) -> ScriptedModel:
    """Two turns that change the beginning and the end of one file."""
    return ScriptedModel(
        [
            [read("a.txt")],
            [edit("a.txt", "line 2\n", "two\n")],
            [SayText(text="one")],
            [edit("a.txt", "line 29\n", "twenty-nine\n"), edit("a.txt", "two\n", "zwei\n")],
            [write("new.txt", "new\n")],
            [SayText(text="two")],
            *[[each] for each in more],
            [SayText(text="more")],
        ],
        info=INFO,
    )


async def last(session: Session) -> str:
    return [node for node, _ in await session.messages_with_ids()][-1]


@pytest.mark.requirement("session:net_changes")
async def test_a_file_that_was_changed_often_is_one_difference(world: World) -> None:
    world.write("a.txt", LINES)
    async with open_world(world, twice()) as app:
        session = await start(app)
        await session.send_message("one")
        middle = await last(session)
        await session.send_message("two")
        whole = await session.net_changes()
        assert [(each.path, each.action) for each in whole] == [
            ("a.txt", "modified"),
            ("new.txt", "created"),
        ]
        assert (whole[0].added, whole[0].removed, len(whole[0].hunks)) == (2, 2, 2)
        assert "-line 2\n+zwei\n" in whole[0].hunks[0].text
        assert len(whole[0].calls) == 3
        second = await session.net_changes(since=middle)
        assert "-two\n+zwei\n" in second[0].hunks[0].text
        first = await session.net_changes(until=middle)
        assert [each.path for each in first] == ["a.txt"]
        assert "-line 2\n+two\n" in first[0].hunks[0].text
        await session.rewind(None, conversation=False)
        assert await session.net_changes() == []


@pytest.mark.requirement("session:revert_hunk")
async def test_one_hunk_is_put_back_by_an_edit_that_a_rewind_undoes(world: World) -> None:
    world.write("a.txt", LINES)
    async with open_world(world, twice()) as app:
        session = await start(app)
        await session.send_message("one")
        await session.send_message("two")
        before = await last(session)
        hunk = (await session.net_changes())[0].hunks[0]
        # Others may have changed the file since, elsewhere in it.
        world.write("a.txt", world.read("a.txt").replace("line 15\n", "fifteen\n"))
        done = await session.revert_hunk("a.txt", hunk.id, input_id="put-back")
        assert done.is_done, done.why
        changed = LINES.replace("line 29\n", "twenty-nine\n").replace("line 15\n", "fifteen\n")
        assert world.read("a.txt") == changed
        again = await session.revert_hunk("a.txt", hunk.id, input_id="put-back")
        assert again == done
        history = await session.get_history()
        assert [each.content for each in history if each.role == "user"][-1] == (
            "Put back a change of a.txt."
        )
        await session.rewind(before)
        assert "zwei\n" in world.read("a.txt")
        with pytest.raises(StaleInput):
            await session.revert_hunk("new.txt", hunk.id, input_id="put-back")


async def test_a_hunk_of_a_new_file_put_back_removes_it(world: World) -> None:
    world.write("a.txt", LINES)
    async with open_world(world, twice()) as app:
        session = await start(app)
        await session.send_message("one")
        await session.send_message("two")
        hunk = (await session.net_changes())[1].hunks[0]
        assert (await session.revert_hunk("new.txt", hunk.id)).is_done
        assert not (world.project / "new.txt").exists()
        assert [each.path for each in await session.net_changes()] == ["a.txt"]


async def test_a_hunk_whose_lines_were_changed_since_is_left_alone(world: World) -> None:
    world.write("a.txt", LINES)
    async with open_world(world, twice()) as app:
        session = await start(app)
        await session.send_message("one")
        await session.send_message("two")
        hunk = (await session.net_changes())[0].hunks[0]
        mine = world.read("a.txt").replace("zwei\n", "mine\n")
        world.write("a.txt", mine)
        with pytest.raises(UsageError, match="changed since"):
            await session.revert_hunk("a.txt", hunk.id)
        with pytest.raises(UsageError, match="no such hunk"):
            await session.revert_hunk("a.txt", "0" * 16)
        with pytest.raises(UsageError, match="was not changed"):
            await session.revert_hunk("b.txt", hunk.id)
        assert world.read("a.txt") == mine


async def test_a_rule_that_forbids_edits_holds_for_a_hunk_too(world: World) -> None:
    world.write("a.txt", LINES)
    async with open_world(world, twice()) as app:
        session = await start(app)
        await session.send_message("one")
        hunk = (await session.net_changes())[0].hunks[0]
        await session.set_permission_mode("plan")
        done = await session.revert_hunk("a.txt", hunk.id, input_id="not-allowed")
        assert not done.is_done
        assert "not allowed" in done.why
        again = await session.revert_hunk("a.txt", hunk.id, input_id="not-allowed")
        assert not again.is_done
        assert "not allowed" in again.why
        assert "two\n" in world.read("a.txt")


@pytest.mark.parametrize("text", ["one\x0c\ntwo\nthree\n", "one\r\ntwo\r\nthree\r\n", "x\n" * 9])
async def test_a_hunk_is_put_back_in_a_file_with_odd_lines(text: str, world: World) -> None:
    """Form feeds, the ends of Windows, and lines that are all equal."""
    world.write("a.txt", "")
    (world.project / "a.txt").write_bytes(text.encode())
    model = ScriptedModel(
        [[read("a.txt")], [write("a.txt", text + "added\n")], [SayText(text="done")]], info=INFO
    )
    async with open_world(world, model) as app:
        session = await start(app)
        await session.send_message("one")
        (change,) = await session.net_changes()
        assert (change.added, change.removed) == (1, 0)
        done = await session.revert_hunk("a.txt", change.hunks[0].id)
        assert done.is_done, done.why
        assert (world.project / "a.txt").read_bytes() == text.encode()


@pytest.mark.requirement("session:take_hunk")
async def test_one_hunk_of_another_branch_is_taken(world: World) -> None:
    world.write("a.txt", LINES)
    model = ScriptedModel(
        [
            [SayText(text="hello")],
            [read("a.txt")],
            [edit("a.txt", "line 2\n", "two\n"), edit("a.txt", "line 29\n", "last\n")],
            [write("one.txt", "1\n")],
            [SayText(text="first")],
            [write("other.txt", "2\n")],
            [SayText(text="second")],
        ],
        info=INFO,
    )
    async with open_world(world, model) as app:
        session = await start(app)
        await session.send_message("hi")
        above = await last(session)
        await session.send_message("one way")
        theirs = await last(session)
        await session.rewind(above)
        await session.send_message("another way")
        mine = await last(session)
        files = {each.path: each for each in (await session.compare_files(mine, theirs)).files}
        assert len(files["a.txt"].hunks) == 2
        done = await session.take_hunk("a.txt", files["a.txt"].hunks[1].id, mine, theirs)
        assert done.is_done, done.why
        assert world.read("a.txt") == LINES.replace("line 29\n", "last\n")
        done = await session.take_hunk("one.txt", files["one.txt"].hunks[0].id, mine, theirs)
        assert done.is_done
        assert world.read("one.txt") == "1\n"
