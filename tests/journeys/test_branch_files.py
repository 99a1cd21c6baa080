"""Files of two branches: compared by their snapshots, and woven into one child of both."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import anyio
import pytest

from tests.support.rewind_project import INFO, open_world, shell, start, write
from tests.support.world import World, crash, until_status
from weft.api.branch_files import FileWeave
from weft.api.branch_files.comparison import FileVersion, compared
from weft.api.session import Session
from weft.errors import SessionStopped, StaleInput, UsageError
from weft.events import PermissionAction
from weft.ids import BlobId
from weft.providers.script import CallTool, SayText, Step
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio

LINES = "".join(f"line {number}\n" for number in range(1, 10))


def parted(*branches: Sequence[CallTool]) -> ScriptedModel:
    """A model that says hello, and then makes the calls of one branch after the other."""
    answers: list[list[Step]] = [[SayText(text="hello")]]
    for calls in branches:
        # A file that is there is written over only by those who have read it.
        reads = [
            CallTool(name="read", args={"path": c.args["path"]})
            for c in calls
            if c.args.get("path")
        ]
        answers += [list(reads)] if reads else []
        answers += [list(calls), [SayText(text="done")]]
    return ScriptedModel(answers, info=INFO)


async def two_branches(session: Session, *, stays: bool = False) -> tuple[str, str, str]:
    """The message where two branches part, and their ends.  The files of the first are taken back
    before the second begins, unless they are to stay.
    """
    await session.send_message("hi")
    above = [node for node, _ in await session.messages_with_ids()][-1]
    await session.send_message("go one way")
    first = [node for node, _ in await session.messages_with_ids()][-1]
    await session.rewind(above, files=not stays)
    await session.send_message("go another way")
    second = [node for node, _ in await session.messages_with_ids()][-1]
    return above, first, second


def changed(path: str, old: str, new: str) -> CallTool:
    return write(path, LINES.replace(old, new))


@pytest.mark.requirement("session:compare_files")
async def test_files_of_two_branches_are_compared_from_where_they_part(world: World) -> None:
    world.write("a.txt", LINES)
    world.write("both.txt", LINES)
    model = parted(
        [changed("both.txt", "line 2\n", "two\n"), write("one.txt", "first\n")],
        [changed("both.txt", "line 2\n", "zwei\n"), changed("a.txt", "line 1\n", "uno\n")],
    )
    async with open_world(world, model) as app:
        session = await start(app)
        above, first, second = await two_branches(session)
        found = await session.compare_files(first, second)
        assert (found.ancestor, found.first, found.second) == (above, first, second)
        assert {file.path: file.origin for file in found.files} == {
            "a.txt": "second",
            "both.txt": "conflict",
            "one.txt": "first",
        }
        assert "-line 1\n+uno\n" in found.diff
        assert "-two\n+zwei\n" in found.diff
        assert "+++ /dev/null" in found.diff
        # The same by the number of a message, and the other way round.
        turned = await session.compare_files(second, first)
        assert [file.origin for file in turned.files] == ["first", "conflict", "second"]


@pytest.mark.process
async def test_each_branch_says_what_it_took_and_how_its_commands_ended(
    plain_world: World,
) -> None:
    plain_world.write("a.txt", LINES)
    model = parted(
        [changed("a.txt", "line 2\n", "two\ntwice\n"), shell("echo 3 passed"), shell("false")],
        [write("one.txt", "first\n"), shell("echo 2 failed; exit 1"), shell("true")],
    )
    async with open_world(plain_world, model) as app:
        session = await start(app)
        _, first, second = await two_branches(session)
        one, two = (await session.compare_files(first, second)).sides
        assert (one.files, one.added, one.removed) == (1, 2, 1)
        assert (two.files, two.added, two.removed) == (1, 1, 0)
        assert [(each.command, each.exit_code, each.last_line) for each in one.commands] == [
            ("echo 3 passed", 0, "3 passed"),
            ("false", 1, ""),
        ]
        assert [(each.command, each.exit_code, each.last_line) for each in two.commands] == [
            ("echo 2 failed; exit 1", 1, "2 failed"),
            ("true", 0, ""),
        ]
        assert one.model == two.model == "scripted:script"
        assert one.seconds > 0


@pytest.mark.parametrize(
    ("base", "one", "two", "origin"),
    [
        ("small", "a" * 3_000, "b" * 3_000, "conflict"),
        ("b" * 3_000, "a" * 3_000, "small", "conflict"),
        ("b" * 3_000, "small", "a" * 3_000, "conflict"),
        ("small", "a" * 3_000, "a" * 3_000, "same"),
        ("a" * 3_000, "a" * 3_000, "small", "second"),
    ],
    ids=["both", "first", "second", "alike", "one"],
)
@pytest.mark.process
async def test_contents_that_are_not_stored_are_told_apart(
    plain_world: World, base: str, one: str, two: str, origin: str
) -> None:
    world = plain_world
    world.write("big.txt", base)
    model = parted(
        [shell(f"printf {one} > big.txt; echo 1 > 1.txt")],
        [shell(f"printf {two} > big.txt; echo 2 > 2.txt")],
    )
    async with open_world(world, model, history__max_file=2_000) as app:
        session = await start(app)
        _, first, second = await two_branches(session, stays=True)
        found = await session.compare_files(first, second)
        assert {file.path: file.origin for file in found.files}["big.txt"] == origin
        if origin == "conflict":
            with pytest.raises(UsageError, match=r"big\.txt; choose a side"):
                await session.weave_files(first, second)
            assert world.read("big.txt") == two


async def test_contents_that_nobody_knows_are_a_conflict() -> None:
    known = FileVersion(mode=0o100644, data=b"x", content=BlobId("x"))
    unknown = FileVersion(mode=0o100644)
    for sides in ((known, unknown, unknown), (unknown, unknown, known), (unknown, known, unknown)):
        assert compared("a.txt", *sides).shown.origin == "conflict"


@pytest.mark.requirement("session:weave_files")
async def test_files_of_both_branches_are_woven_into_a_child_that_names_both(
    world: World,
) -> None:
    world.write("both.txt", LINES)
    world.write("gone.txt", "old\n")
    removal = "*** Begin Patch\n*** Delete File: gone.txt\n*** End Patch"
    model = parted(
        [changed("both.txt", "line 2\n", "two\n"), write("new/one.txt", "first\n")],
        [
            changed("both.txt", "line 8\n", "eight\n"),
            CallTool(name="apply_patch", args={"patch": removal}),
        ],
    )
    async with open_world(world, model) as app:
        session = await start(app, tools=["read", "write", "apply_patch"])
        above, first, second = await two_branches(session)
        assert not (world.project / "new/one.txt").exists()
        plan = await session.weave_files(first, second, preview=True)
        assert plan.node is None
        assert set(plan.written) == {"both.txt", "new/one.txt"}
        done = await session.weave_files(first, second)
        assert world.read("both.txt") == LINES.replace("line 2\n", "two\n").replace(
            "line 8\n", "eight\n"
        )
        assert world.read("new/one.txt") == "first\n"
        assert not (world.project / "gone.txt").exists()
        assert (set(done.written), done.removed, done.left) == (set(plan.written), (), ())
        line = [node for node, _ in await session.messages_with_ids()]
        assert line[-1] == done.node
        assert line[1] == above
        node = await app.loom.get(done.node or "")
        assert node.metadata["parents"] == [first, second]
        # And all of it goes back.
        await session.rewind(second)
        assert world.read("both.txt") == LINES.replace("line 8\n", "eight\n")
        assert not (world.project / "new/one.txt").exists()
        assert [node for node, _ in await session.messages_with_ids()][-1] == second


async def test_what_branches_do_not_agree_about_is_chosen(plain_world: World) -> None:
    world = plain_world
    world.write("both.txt", LINES)
    model = parted(
        [changed("both.txt", "line 2\n", "two\n")], [changed("both.txt", "line 2\n", "zwei\n")]
    )
    async with open_world(world, model) as app:
        session = await start(app)
        _, first, second = await two_branches(session)
        before = [node for node, _ in await session.messages_with_ids()]
        with pytest.raises(UsageError, match=r"both\.txt; choose a side"):
            await session.weave_files(first, second)
        with pytest.raises(UsageError, match="the same in both"):
            await session.weave_files(first, second, {"none.txt": "first"})
        assert (await session.weave_files(first, second, preview=True)).conflicts == ("both.txt",)
        assert [node for node, _ in await session.messages_with_ids()] == before
        done = await session.weave_files(first, second, {"both.txt": "first"})
        assert world.read("both.txt") == LINES.replace("line 2\n", "two\n")
        assert [(file.path, file.origin) for file in done.files] == [("both.txt", "first")]


async def test_what_others_changed_since_is_left_unless_it_is_named(plain_world: World) -> None:
    world = plain_world
    world.write("a.txt", LINES)
    model = parted([changed("a.txt", "line 2\n", "two\n")], [write("b.txt", "b\n")])
    async with open_world(world, model) as app:
        session = await start(app)
        _, first, second = await two_branches(session)
        world.write("a.txt", "mine\n")
        with pytest.raises(UsageError, match=r"a\.txt was changed since"):
            await session.weave_files(first, second)
        assert world.read("a.txt") == "mine\n"
        await session.weave_files(first, second, overwrite=["a.txt"])
        assert world.read("a.txt") == LINES.replace("line 2\n", "two\n")


async def test_woven_files_pass_the_gate_of_the_session(plain_world: World) -> None:
    world = plain_world
    world.write("a.txt", LINES)
    model = parted([changed("a.txt", "line 2\n", "two\n")], [write("b.txt", "b\n")])
    async with open_world(world, model) as app:
        session = await start(app)
        _, first, second = await two_branches(session)
        await session.set_permission_mode("plan")
        done = await session.weave_files(first, second)
        assert world.read("a.txt") == LINES
        assert [each.partition(":")[0] for each in done.left] == ["a.txt"]
        assert done.written == ()


async def test_messages_that_are_no_two_branches_are_refused(plain_world: World) -> None:
    model = parted([write("a.txt", "a\n")], [write("b.txt", "b\n")])
    async with open_world(plain_world, model) as app:
        session = await start(app)
        above, first, _ = await two_branches(session)
        with pytest.raises(UsageError, match="above the other"):
            await session.compare_files(above, first)
        with pytest.raises(UsageError):
            await session.compare_files(first, "nod_none")


async def test_a_weave_that_comes_again_changes_nothing_and_answers_the_same(
    plain_world: World,
) -> None:
    world = plain_world
    world.write("a.txt", LINES)
    model = parted([changed("a.txt", "line 2\n", "two\n")], [write("b.txt", "b\n")])
    async with open_world(world, model) as app:
        session = await start(app)
        _, first, second = await two_branches(session)
        done = await session.weave_files(first, second, input_id="i")
        before = (await session.editor_snapshot()).seq
        again = await session.weave_files(first, second, input_id="i")
        assert (again.node, again.written, again.parents) == (done.node, ("a.txt",), done.parents)
        assert [each.path for each in again.files] == [each.path for each in done.files]
        with pytest.raises(StaleInput):
            await session.weave_files(second, first, input_id="i")
        assert (await session.editor_snapshot()).seq == before


async def test_woven_files_wait_for_the_user_where_the_session_asks(plain_world: World) -> None:
    world = plain_world
    world.write("a.txt", LINES)
    model = parted([changed("a.txt", "line 2\n", "two\n")], [write("b.txt", "b\n")])
    async with open_world(world, model) as app:
        session = await start(app)
        _, first, second = await two_branches(session)
        asking = await app.sessions.fork_session(session.id)
        await asking.set_permission_mode("default")
        woven = LINES.replace("line 2\n", "two\n")
        answers: list[tuple[PermissionAction, str]] = [("deny", LINES), ("allow_once", woven)]
        for answer, text in answers:
            results: list[FileWeave] = []

            async def weave(found: list[FileWeave] = results) -> None:
                found.append(await asking.weave_files(first, second))

            async with anyio.create_task_group() as group:
                group.start_soon(weave)
                await until_status(asking, "awaiting_permission")
                assert (await asking.editor_snapshot()).pending_approval is not None
                assert world.read("a.txt") == LINES
                await asking.respond_to_permission(answer)
            assert world.read("a.txt") == text
            assert results[0].written == (() if answer == "deny" else ("a.txt",))


async def test_a_weave_that_a_crash_cut_off_leaves_a_session_that_goes_on(world: World) -> None:
    world.write("a.txt", LINES)
    model = parted([changed("a.txt", "line 2\n", "two\n")], [write("b.txt", "b\n")])
    app = open_world(world, model)
    async with anyio.create_task_group() as group:
        await app.__aenter__()
        session = await app.sessions.start_session(session_id="s", permission_mode="accept_edits")
        _, first, second = await two_branches(session)
        await session.set_permission_mode("default")

        async def weave() -> None:
            with suppress(SessionStopped):
                await session.weave_files(first, second)

        group.start_soon(weave)
        await until_status(session, "awaiting_permission")
        await crash(app)
    async with open_world(world, ScriptedModel(["Hello again."], info=INFO)) as app:
        session = await app.sessions.get("s")
        await session.abort()
        assert (await session.send_message("Are you there?")).text == "Hello again."
        assert world.read("a.txt") == LINES
        done = await session.compare_files(first, second)
        assert [file.path for file in done.files] == ["a.txt", "b.txt"]


async def cut_off_weave(world: World) -> tuple[str, str]:
    """Two branches, of which a weave under the id `i` has written one file of two when the program
    died.
    """
    model = parted([write("one.txt", "1\n"), write("two.txt", "2\n")], [write("b.txt", "b\n")])
    app = open_world(world, model)
    async with anyio.create_task_group() as group:
        await app.__aenter__()
        session = await app.sessions.start_session(session_id="s", permission_mode="accept_edits")
        _, first, second = await two_branches(session)
        await session.set_permission_mode("default")

        async def weave() -> None:
            with suppress(SessionStopped):
                await session.weave_files(first, second, input_id="i")

        group.start_soon(weave)
        await until_status(session, "awaiting_permission")
        asked = (await session.editor_snapshot()).pending_approval
        await session.respond_to_permission("allow_once")
        while (await session.editor_snapshot()).pending_approval in (None, asked):
            await anyio.lowlevel.checkpoint()
        await crash(app)
    assert (world.project / "one.txt").exists() != (world.project / "two.txt").exists()
    return first, second


@pytest.mark.parametrize("before", ["nothing", "abort", "continue", "message"])
async def test_a_weave_that_a_crash_cut_off_is_completed_under_its_id(
    world: World, before: str
) -> None:
    first, second = await cut_off_weave(world)
    async with open_world(world, ScriptedModel(["Hello again."], info=INFO)) as app:
        session = await app.sessions.get("s")
        await session.set_permission_mode("accept_edits")
        if before == "continue":
            with pytest.raises(UsageError):
                await session.continue_turn()
        if before in ("abort", "continue"):
            await session.abort()
        if before == "message":
            assert (await session.send_message("Are you there?")).text == "Hello again."
        with pytest.raises(StaleInput):
            await session.weave_files(second, first, input_id="i")
        done = await session.weave_files(first, second, input_id="i")
        assert (world.read("one.txt"), world.read("two.txt")) == ("1\n", "2\n")
        # Also what was written before the crash.
        assert (set(done.written), done.left) == ({"one.txt", "two.txt"}, ())
        line = [node for node, _ in await session.messages_with_ids()]
        assert line[-1] == done.node
        assert line[1] == done.ancestor
        above = await app.loom.get(done.ancestor)
        assert not [name for name in above.metadata if name.startswith("weav")]
        seq = (await session.editor_snapshot()).seq
        again = await session.weave_files(first, second, input_id="i")
        assert (again.node, again.written) == (done.node, done.written)
        assert (await session.editor_snapshot()).seq == seq


async def test_a_weave_that_a_crash_cut_off_is_gone_on_with_by_no_other_model(
    world: World,
) -> None:
    first, second = await cut_off_weave(world)
    other = ScriptedModel(["I put them together."], info=INFO)
    async with open_world(world, other, model__fallback=["scripted:script"]) as app:
        session = await app.sessions.get("s")
        await session.set_permission_mode("accept_edits")
        before = [node for node, _ in await session.messages_with_ids()]
        for go_on in (session.continue_turn, session.continue_and_wait):
            with pytest.raises(UsageError, match="call weave_files again under the same input_id"):
                await go_on()
        assert [node for node, _ in await session.messages_with_ids()] == before
        done = await session.weave_files(first, second, input_id="i")
        assert set(done.written) == {"one.txt", "two.txt"}


async def test_a_weave_that_is_aborted_is_not_done(plain_world: World) -> None:
    world = plain_world
    world.write("a.txt", LINES)
    model = parted([changed("a.txt", "line 2\n", "two\n")], [write("b.txt", "b\n")])
    async with open_world(world, model) as app:
        session = await app.sessions.start_session(session_id="s", permission_mode="accept_edits")
        _, first, second = await two_branches(session)
        await session.set_permission_mode("default")
        results: list[FileWeave] = []

        async def weave() -> None:
            results.append(await session.weave_files(first, second, input_id="i"))

        async with anyio.create_task_group() as group:
            group.start_soon(weave)
            await until_status(session, "awaiting_permission")
            await session.abort()
        assert (results[0].written, results[0].left) == (
            (),
            ("a.txt: the turn ended before (aborted)",),
        )
        await session.set_permission_mode("accept_edits")
        done = await session.weave_files(first, second, input_id="i")
        assert (done.written, done.left) == (("a.txt",), ())
        assert world.read("a.txt") == LINES.replace("line 2\n", "two\n")


async def test_a_weave_that_comes_again_while_it_runs_waits_for_the_same_turn(
    plain_world: World,
) -> None:
    world = plain_world
    world.write("a.txt", LINES)
    model = parted([changed("a.txt", "line 2\n", "two\n")], [write("b.txt", "b\n")])
    async with open_world(world, model) as app:
        session = await app.sessions.start_session(session_id="s", permission_mode="accept_edits")
        _, first, second = await two_branches(session)
        await session.set_permission_mode("default")
        results: list[FileWeave] = []

        async def weave() -> None:
            results.append(await session.weave_files(first, second, input_id="i"))

        async with anyio.create_task_group() as group:
            group.start_soon(weave)
            await until_status(session, "awaiting_permission")
            group.start_soon(weave)
            await anyio.wait_all_tasks_blocked()
            await session.respond_to_permission("allow_once")
        assert [each.written for each in results] == [("a.txt",), ("a.txt",)]
        assert results[0].node == results[1].node
        said = [message.role for _, message in await session.messages_with_ids()]
        # It reads, writes and says so, once each.
        assert said[2:] == ["user", "assistant", "tool", "assistant", "tool", "assistant"]


async def test_an_id_of_something_else_is_none_of_a_weave(plain_world: World) -> None:
    model = parted([write("a.txt", "a\n")], [write("b.txt", "b\n")])
    async with open_world(plain_world, model) as app:
        session = await start(app)
        _, first, second = await two_branches(session)
        await session.branch_at(first, input_id="i")
        for _ in range(2):
            with pytest.raises(StaleInput):
                await session.weave_files(first, second, input_id="i")
        assert not (plain_world.project / "a.txt").exists()
