"""Boundaries: a session is held to some lines of a file, whatever way it tries."""

from __future__ import annotations

import pytest

from tests.support.bounded_code import CODE, edit, lines, read, write
from tests.support.world import World, crash, facts, request_lines
from weft.errors import UsageError
from weft.events import BoundaryChanged, FileTouched, PermissionRequest, ToolComplete
from weft.providers.script import CallTogether, CallTool
from weft.providers.scripted import ScriptedModel
from weft.tools import ToolContext, tool

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("session:set_boundary", "session:boundary_for")
async def test_edits_inside_are_made_and_edits_outside_are_not(world: World) -> None:
    world.write("code.py", CODE)
    model = ScriptedModel(
        [
            read(),
            edit("    return 2\n", "    x = 2\n    return x\n"),
            edit("return 1", "return 100"),
            edit("return 3", "return 300"),
            edit("return x", "return x + 1"),
            "done",
        ]
    )
    async with world.open(model) as app:
        session = await app.sessions.start_session(permission_mode="bypass")
        await session.set_boundary("code.py", 4, 5)
        await session.send_message("improve b")
        assert world.read("code.py") == CODE.replace(
            "    return 2\n", "    x = 2\n    return x + 1\n"
        )
        assert await lines(session) == (4, 6)
        results = [
            line for line in request_lines(model.requests[-1]) if line.startswith("result: ")
        ]
    assert "edited code.py" in results[1]
    assert "only lines 5 to 7 (of 11) may be changed, and this change touches line 2" in results[2]
    assert "only lines 5 to 7 (of 11) may be changed, and this change touches line 11" in results[3]
    assert "edited code.py" in results[4]


async def test_what_the_user_changes_above_shifts_the_lines(world: World) -> None:
    world.write("code.py", CODE)
    model = ScriptedModel([read(), edit("return 2", "return 22"), edit("return 1", "x"), "done"])
    async with world.open(model) as app:
        session = await app.sessions.start_session(permission_mode="bypass")
        await session.set_boundary("code.py", 4, 5)
        world.write("code.py", "# by hand\n# two lines\n" + CODE)
        await session.send_message("improve b")
        assert await lines(session) == (6, 7)
    assert world.read("code.py") == "# by hand\n# two lines\n" + CODE.replace(
        "return 2", "return 22"
    )
    assert "only lines 7 to 8 (of 12)" in request_lines(model.requests[-1])[-1]


async def test_the_whole_file_cannot_be_written_over_it_nor_by_a_tool_of_ones_own(
    world: World,
) -> None:
    world.write("code.py", CODE)

    @tool
    async def rewrite(context: ToolContext) -> str:
        """Write the file anew."""
        found = await context.workspace.read("./code.py")
        await context.workspace.write("code.py", b"mine\n", expected=found.hash)
        return "written"

    new = CODE.replace("return 2", "return 22")
    model = ScriptedModel(
        [
            read(),
            write("code.py", "short\n"),
            CallTool(name="rewrite", args={}),
            write("code.py", new),
            write("other.py", "free\n"),
            "done",
        ]
    )
    async with world.open(model) as app:
        session = await app.sessions.start_session(
            permission_mode="bypass", tools=["read", "write", rewrite]
        )
        await session.set_boundary("code.py", 4, 5)
        await session.send_message("go")
    assert [world.read("code.py"), world.read("other.py")] == [new, "free\n"]
    results = [line for line in request_lines(model.requests[-1]) if line.startswith("result: ")]
    assert all("only lines 5 to 6 (of 10) may be changed" in result for result in results[1:3])


async def test_no_permission_is_asked_for_an_edit_that_would_be_refused(plain_world: World) -> None:
    plain_world.write("code.py", CODE)
    model = ScriptedModel([read(), edit("return 1", "return 100"), "done"])
    async with plain_world.open(model) as app:
        session = await app.sessions.start_session()
        await session.set_boundary("code.py", 4, 5)
        await session.send_message("go")
        assert await facts(session, PermissionRequest) == []


async def test_a_link_is_no_way_around(plain_world: World) -> None:
    plain_world.write("code.py", CODE)
    (plain_world.project / "alias.py").symlink_to("code.py")
    model = ScriptedModel([read("alias.py"), edit("return 1", "return 100", "alias.py"), "done"])
    async with plain_world.open(model) as app:
        session = await app.sessions.start_session(permission_mode="bypass")
        await session.set_boundary("alias.py", 4, 5)
        assert await lines(session) == await lines(session, "alias.py") == (4, 5)
        await session.send_message("go")
    assert plain_world.read("code.py") == CODE


async def test_the_move_is_on_record_with_the_result_that_caused_it(world: World) -> None:
    """One append: whoever sees the one sees the other."""
    world.write("code.py", CODE)
    inside = edit("    return 2\n", "    x = 2\n    return x\n")
    model = ScriptedModel([read(), inside, "done"])
    async with world.open(model) as app:
        session = await app.sessions.start_session(permission_mode="bypass")
        await session.set_boundary("code.py", 4, 5)
        await session.send_message("go")
        settled = await facts(session, ToolComplete, FileTouched, BoundaryChanged)
        assert [type(fact) for fact in settled[-3:]] == [
            ToolComplete,
            FileTouched,
            BoundaryChanged,
        ]
        assert [fact.seq for fact in settled[-3:]] == list(
            range(settled[-3].seq, settled[-3].seq + 3)
        )
        moved = settled[-1]
        assert isinstance(moved, BoundaryChanged)
        assert (moved.first, moved.last) == (4, 6)
        assert moved.moves == settled[0].seq


async def test_boundaries_outlive_the_process_and_follow_what_happened_meanwhile(
    world: World,
) -> None:
    world.write("code.py", CODE)
    async with world.open(ScriptedModel([])) as app:
        session = await app.sessions.start_session(permission_mode="bypass")
        session_id = session.id
        await session.set_boundary("code.py", 4, 5)
        await crash(app)
    world.write("code.py", "# new\n" + CODE)
    model = ScriptedModel([read(), edit("return 2", "return 22"), edit("return 3", "x"), "done"])
    async with world.open(model) as app:
        session = await app.sessions.start_session(session_id=session_id, permission_mode="bypass")
        await session.send_message("go")
        assert await lines(session) == (5, 6)
    assert world.read("code.py") == "# new\n" + CODE.replace("return 2", "return 22")


async def test_several_edits_of_one_answer_move_the_range_one_after_the_other(
    plain_world: World,
) -> None:
    plain_world.write("code.py", CODE)
    more = [edit("def b():\n", f"def b():\n    {n}\n") for n in range(3)]
    model = ScriptedModel([read(), CallTogether(calls=tuple(more)), "done"])
    async with plain_world.open(model) as app:
        session = await app.sessions.start_session(permission_mode="bypass")
        await session.set_boundary("code.py", 4, 5)
        await session.send_message("go")
        assert await lines(session) == (4, 8)


@pytest.mark.requirement("session:clear_boundary", "session:clear_all_boundaries")
async def test_a_lifted_boundary_is_lifted(world: World) -> None:
    world.write("code.py", CODE)
    world.write("more.py", CODE)
    model = ScriptedModel([read(), edit("return 1", "return 100"), "done"])
    async with world.open(model) as app:
        session = await app.sessions.start_session(permission_mode="bypass")
        await session.set_boundary("code.py", 4, 5)
        await session.set_boundary("more.py", 0, 0)
        await session.clear_boundary("./code.py")
        assert [await lines(session), await lines(session, "more.py")] == [None, (0, 0)]
        await session.clear_boundary("code.py")
        await session.clear_all_boundaries()
        assert await lines(session, "more.py") is None
        await session.send_message("go")
    assert "return 100" in world.read("code.py")


async def test_a_fork_is_held_to_the_same_lines_and_a_new_session_to_none(world: World) -> None:
    world.write("code.py", CODE)
    model = ScriptedModel([read(), edit("return 1", "return 100"), "done", "done"])
    async with world.open(model) as app:
        session = await app.sessions.start_session(permission_mode="bypass")
        await session.set_boundary("code.py", 4, 5)
        fork = await app.sessions.fork_session(session.id)
        assert await lines(fork) == (4, 5)
        await fork.send_message("go")
        fresh = await session.new_session()
        assert await lines(fresh) is None
    assert world.read("code.py") == CODE


@pytest.mark.parametrize(
    ("path", "first", "last", "said"),
    [
        ("code.py", 3, 2, "no range of lines"),
        ("code.py", -1, 2, "no range of lines"),
        ("code.py", 10, 12, "has only 10 lines"),
        ("missing.py", 0, 1, "there is no file 'missing.py'"),
        ("../elsewhere.py", 0, 1, "outside the project"),
        (".", 0, 1, "folder"),
        ("", 0, 1, "empty"),
    ],
)
async def test_a_boundary_that_cannot_be_is_refused_with_a_reason(
    plain_world: World, path: str, first: int, last: int, said: str
) -> None:
    plain_world.write("code.py", CODE)
    async with plain_world.open(ScriptedModel([])) as app:
        session = await app.sessions.start_session()
        with pytest.raises(UsageError, match=said):
            await session.set_boundary(path, first, last)
        assert await facts(session, BoundaryChanged) == []


async def test_a_last_line_beyond_the_end_means_the_end(plain_world: World) -> None:
    plain_world.write("code.py", CODE)
    async with plain_world.open(ScriptedModel([])) as app:
        session = await app.sessions.start_session()
        await session.set_boundary("code.py", 8, 99)
        assert await lines(session) == (8, 9)
