"""Going back: files and conversation, together or alone, to any message, and back again."""

from __future__ import annotations

import importlib
import os

import anyio
import pytest

from tests.support.rewind_project import (
    actions,
    add_submodule,
    last_id,
    make_files,
    open_world,
    project_tree,
    shell,
    start,
    turns,
    write,
)
from tests.support.role_models import agent_call, agent_calls, role_model
from tests.support.sandboxed_session import skip_without_sandbox, tool_results
from tests.support.world import World, facts, message_lines, request_lines, running, until
from weft import faults
from weft.errors import SessionBusy, UsageError
from weft.events import FileTouched, Rewound, SystemNote, ToolOutput
from weft.providers.script import SayText, Stall
from weft.providers.scripted import ScriptedModel

importlib.import_module("weft.session.rewind.work")  # loaded late; declares the points armed here

pytestmark = [pytest.mark.anyio, pytest.mark.process]

EVERYTHING = (
    "echo more >> a.txt; sed -i 's/two/2/' dos.txt; rm d/b.txt; mv d/deep elsewhere; "
    "chmod 644 secret; ln -sfn d link; rm away; rmdir empty; mkdir -p new/er; echo x > "
    "new/er/file; "
    "printf '\\0\\1' > binary; mkdir away; echo y > away/y"
)


SANDBOX = pytest.mark.parametrize("sandbox", ["off", "auto"])
"""Commands that are watched, and those in the sandbox (watched, too, where there is none)."""


@pytest.mark.requirement("session:rewind")
@SANDBOX
@pytest.mark.parametrize("kind", ["no git", "submodule"])
async def test_files_go_back_to_what_they_were_at_a_message_whichever_program_changed_them(
    world: World, kind: str, sandbox: str
) -> None:
    make_files(world)
    if kind == "submodule":
        add_submodule(world)
    script = EVERYTHING + ("; echo 2 > sub/m.txt; rm -r d" if kind == "submodule" else "")
    model = turns(write("made/by/tool.txt", "1"), shell(script), write("late.txt", "2"))
    async with open_world(world, model, sandbox=sandbox) as app:
        session = await start(app)
        seen = [project_tree(world)]
        places: list[str | None] = [None]
        for prompt in ("first", "second", "third"):
            await session.send_message(prompt)
            seen.append(project_tree(world))
            places.append(await last_id(session))
        assert len({str(each) for each in seen}) == 4
        for number in (3, 2, 1, 0, 2, 3, 0):
            plan = await session.rewind(places[number])
            assert plan.is_done
            assert project_tree(world) == seen[number], f"at {number}"
            assert not plan.conflicts


async def test_the_conversation_goes_back_too_and_the_line_that_was_left_keeps_a_name(
    world: World,
) -> None:
    model = turns(write("a", "1"), write("b", "2"), write("c", "3"))
    async with open_world(world, model) as app:
        session = await start(app)
        await session.send_message("first")
        place = await last_id(session)
        await session.send_message("second")
        left = await last_id(session)
        await session.rewind(place)
        assert await message_lines(session) == [
            "user: first",
            *(await message_lines(session))[1:3],
            "assistant: done",
        ]
        assert {branch.name: branch.node for branch in await session.list_branches()} == {
            "main": place,
            "rewound-1": left,
        }
        await session.send_message("another second")
        assert "user: second" not in request_lines(model.requests[-1])
        assert "user: another second" in request_lines(model.requests[-1])
        assert sorted(project_tree(world)) == ["a", "c"]


async def test_a_preview_names_every_file_and_touches_nothing(world: World) -> None:
    make_files(world)
    async with open_world(world, turns(shell(EVERYTHING))) as app:
        session = await start(app)
        await session.send_message("go")
        before, seq = project_tree(world), (await session.editor_snapshot()).seq
        plan = await session.rewind(None, preview=True)
        assert not plan.is_done
        assert actions(plan) == {
            "a.txt": "restore",
            "away": "restore",
            "away/y": "delete",
            "binary": "restore",
            "d/b.txt": "recreate",
            "d/deep": "recreate",
            "d/deep/c.txt": "recreate",
            "dos.txt": "restore",
            "elsewhere": "delete",
            "elsewhere/c.txt": "delete",
            "empty": "recreate",
            "link": "restore",
            "new": "delete",
            "new/er": "delete",
            "new/er/file": "delete",
            "secret": "restore",
        }
        assert (project_tree(world), (await session.editor_snapshot()).seq) == (before, seq)
        assert actions(await session.rewind(None)) == actions(plan)


async def test_a_rewind_can_be_taken_back_and_so_on(world: World) -> None:
    make_files(world)
    async with open_world(world, turns(shell(EVERYTHING), write("late.txt", "2"))) as app:
        session = await start(app)
        with pytest.raises(UsageError, match="no rewind to undo"):
            await session.undo_rewind()
        await session.send_message("first")
        place = await last_id(session)
        await session.send_message("second")
        line, after = await message_lines(session), project_tree(world)
        await session.rewind(place)
        await session.rewind(None)
        preview = await session.undo_rewind(preview=True)
        assert actions(preview)["a.txt"] == "restore"
        await session.undo_rewind()
        assert await last_id(session) == place
        await session.undo_rewind()
        assert (await message_lines(session), project_tree(world)) == (line, after)
        assert [branch.name for branch in await session.list_branches()] == ["main"]
        with pytest.raises(UsageError, match="no rewind to undo"):
            await session.undo_rewind()


async def test_files_alone_go_back_and_the_model_is_told(world: World) -> None:
    world.write("a.txt", "one\n")
    model = turns(shell("echo 2 > a.txt"), shell("true"))
    async with open_world(world, model) as app:
        session = await start(app)
        await session.send_message("first")
        line = await message_lines(session)
        await session.rewind(0, conversation=False)
        assert world.read("a.txt") == "one\n"
        assert [text for text in await message_lines(session) if text in line] == line
        await session.send_message("second")
        assert any(
            "put files back" in text and "a.txt" in text
            for text in request_lines(model.requests[-1])
        )


async def test_the_conversation_alone_goes_back_and_files_stay(world: World) -> None:
    world.write("a.txt", "one\n")
    async with open_world(world, turns(shell("echo 2 > a.txt"))) as app:
        session = await start(app)
        await session.send_message("first")
        await session.rewind(0, files=False)
        assert (world.read("a.txt"), await message_lines(session)) == ("2\n", ["user: first"])
        with pytest.raises(UsageError, match="files, the conversation or both"):
            await session.rewind(0, files=False, conversation=False)
        await session.undo_rewind()
        assert len(await message_lines(session)) == 4


@pytest.mark.requirement("session:checkpoint")
async def test_a_checkpoint_is_the_moment_it_was_set_not_only_its_message(world: World) -> None:
    world.write("a.txt", "one\n")
    model = turns(shell("echo 2 > a.txt"), shell("echo 3 > a.txt"), shell("echo 4 > a.txt"))
    async with open_world(world, model) as app:
        session = await start(app)
        await session.send_message("first")
        place = await last_id(session)
        await session.send_message("second")
        await session.branch_at(place, "other")
        await session.checkpoint("here")
        assert world.read("a.txt") == "3\n", "moving in the tree does not touch files"
        await session.send_message("third")
        await session.rewind("here")
        assert (world.read("a.txt"), await last_id(session)) == ("3\n", place)
        await session.rewind(place)
        assert world.read("a.txt") == "2\n"


async def test_switching_branches_touches_no_file(world: World) -> None:
    async with open_world(world, turns(write("a", "1"), write("b", "2"))) as app:
        session = await start(app)
        await session.send_message("first")
        await session.branch_at(0, "other")
        await session.send_message("second")
        before = project_tree(world)
        await session.switch_branch("main")
        await session.switch_branch("other")
        assert project_tree(world) == before


# --- other people's work ---------------------------------------------------------------------


async def test_what_another_program_changed_since_is_left_and_named_unless_it_may_be_overwritten(
    world: World,
) -> None:
    for name in "abcde":
        world.write(name, "0\n")
    async with open_world(
        world, turns(shell("for f in a b c d; do echo 1 > $f; done; rm e"))
    ) as app:
        session = await start(app)
        await session.send_message("go")
        world.write("a", "by hand\n")
        (world.project / "b").unlink()
        (world.project / "c").chmod(0o600)
        world.write("e", "by hand\n")
        plan = await session.rewind(None)
        assert {item.path: (item.action, item.reason) for item in plan.files} == {
            "a": ("conflict", "it was changed since"),
            "b": ("conflict", "it was removed since"),
            "c": ("conflict", "it was changed since"),
            "d": ("restore", ""),
            "e": ("conflict", "it was created outside the session since"),
        }
        assert plan.conflicts == ("a", "b", "c", "e")
        assert (world.read("a"), world.read("d"), world.read("e")) == (
            "by hand\n",
            "0\n",
            "by hand\n",
        )
        with pytest.raises(UsageError, match="'z' would not be touched"):
            await session.rewind(None, overwrite=["z"])
        await session.rewind(None, overwrite=["a", "b"])
        assert [world.read(name) for name in "abe"] == ["0\n", "0\n", "by hand\n"]
        await session.undo_rewind()
        assert world.read("a") == "by hand\n", "what was overwritten can be had back"
        assert not (world.project / "b").exists()


@SANDBOX
async def test_what_the_session_did_not_make_is_never_removed(world: World, sandbox: str) -> None:
    world.write("data/mine.bin", "mine")
    async with open_world(
        world, turns(shell("mkdir -p out/deep; touch out/x out/deep/y data/z")), sandbox=sandbox
    ) as app:
        session = await start(app)
        await session.send_message("go")
        world.write("out/deep/mine", "mine")
        plan = await session.rewind(None)
        assert {item.path: item.action for item in plan.files} == {
            "data/z": "delete",
            "out": "conflict",
            "out/deep": "conflict",
            "out/deep/y": "delete",
            "out/x": "delete",
        }
        kept = ["data", "data/mine.bin", "out", "out/deep", "out/deep/mine"]
        assert sorted(project_tree(world)) == kept


async def test_a_change_by_hand_between_two_of_the_sessions_own_is_kept_or_named(
    world: World,
) -> None:
    world.write("a", "0\n")
    async with open_world(world, turns(shell("echo 1 > a"), shell("echo 3 > a"))) as app:
        session = await start(app)
        await session.send_message("first")
        place = await last_id(session)
        world.write("a", "by hand\n")
        await session.send_message("second")
        preview = await session.rewind(None, preview=True)
        assert (
            preview.files[0].reason
            == "also takes back what was changed outside the session in between"
        )
        await session.rewind(place)
        assert world.read("a") == "by hand\n"


async def test_two_sessions_on_one_project_leave_each_others_files_alone(world: World) -> None:
    world.write("a", "0\n")
    world.write("b", "0\n")
    model = turns(shell("echo 1 > a; echo 1 > b"), shell("echo 2 > b"))
    async with open_world(world, model) as app:
        one = await start(app)
        other = await app.sessions.start_session(session_id="t", auto_approve=True)
        await one.send_message("go")
        await other.send_message("go")
        plan = await one.rewind(None)
        assert actions(plan) == {"a": "restore", "b": "conflict"}
        assert (world.read("a"), world.read("b")) == ("0\n", "2\n")
        await other.rewind(None)
        assert world.read("b") == "1\n"


async def test_files_that_programs_obey_are_not_put_back_by_us(world: World) -> None:
    world.write(".vscode/tasks.json", "{}")
    async with open_world(world, turns(shell("echo '{1}' > .vscode/tasks.json; touch x"))) as app:
        session = await start(app)
        await session.send_message("go")
        plan = await session.rewind(None, overwrite=[".vscode/tasks.json"])
        assert actions(plan) == {".vscode/tasks.json": "conflict", "x": "delete"}
        assert world.read(".vscode/tasks.json") == "{1}\n"


@SANDBOX
@pytest.mark.parametrize(
    "script",
    [
        "mv cache/precious here",
        "mv cache/precious here; echo more >> here",
        "mkdir x; mv cache/precious x/y; mv x/y here; rmdir x",
        "cp -p cache/precious here; rm -r cache",
    ],
)
async def test_what_was_moved_in_from_an_ignored_folder_is_not_taken_away(
    world: World, sandbox: str, script: str
) -> None:
    if sandbox == "off" and "cp" in script:
        pytest.skip("only an overlay shows that the first copy is gone")
    world.write(".gitignore", "cache/\n")
    world.write("cache/precious", "the only copy")
    old = 1_500_000_000
    async with open_world(world, turns(shell(f"sleep 0.2; {script}")), sandbox=sandbox) as app:
        session = await start(app)
        os.utime(world.project / "cache" / "precious", (old, old))
        await anyio.sleep(0.2)  # older than the command by more than the disk's clock can err
        await session.send_message("go")
        plan = await session.rewind(None)
        # In the sandbox what an ignored file held is known.
        if sandbox == "auto":
            assert actions(plan) == {"here": "delete", "cache/precious": "recreate"}
            assert world.read("cache/precious") == "the only copy"
        else:
            assert actions(plan) == {"here": "conflict"}
            assert world.read("here").startswith("the only copy")


@pytest.mark.parametrize(
    "line",
    [
        "rm one.log; echo more >> kept.txt",
        "mv one.log two.log; echo more >> kept.txt",
        "mv one.log kept.txt",
        "cp one.log kept.txt; rm one.log",
        "mv one.log other.log; echo more >> kept.txt; mv own/a own/b",
    ],
)
async def test_a_rewind_is_whole_where_the_command_also_took_an_ignored_file_away(
    plain_world: World, line: str
) -> None:
    world = plain_world
    files = {"kept.txt": "kept\n", "other.log": "other", "own/a": "of a", "own/b": "of b"}
    for name, text in {".gitignore": "*.log\nown/\n", "one.log": "1\n", **files}.items():
        world.write(name, text)
    async with open_world(world, turns(shell(line)), sandbox="auto") as app:
        await skip_without_sandbox(app, world)
        session = await start(app)
        await session.send_message("go")
        await session.rewind(None)
    moved = {"own/a": "of a"} if "own" in line else {}
    assert {name: world.read(name) for name in (*files, *moved)} == files
    if "two.log" not in line:
        assert world.read("one.log") == "1\n"


# --- what is not there -----------------------------------------------------------------------


@SANDBOX
async def test_what_is_too_large_or_ignored_is_named_and_not_touched(
    world: World, sandbox: str
) -> None:
    world.write(".gitignore", "cache/\n")
    world.write("cache/x", "0")
    world.write("big", "x" * 5_000)
    # An ignored file that only grew has lost nothing: one that is rewritten is another matter.
    script = "echo 1 >> big; echo 1 >> cache/x; head -c 6000 /dev/zero > huge; echo 1 > small"
    async with open_world(
        world, turns(shell(script)), sandbox=sandbox, history__max_file=4_096
    ) as app:
        session = await start(app)
        await session.send_message("go")
        plan = await session.rewind(None)
        assert {item.path: (item.action, item.reason) for item in plan.files} == {
            "big": ("unavailable", "what it was is gone: too large"),
            "huge": (
                "unavailable",
                "it is too large to be kept, so taking it away could not be undone",
            ),
            "small": ("delete", ""),
        }
        assert "cache/: ignored" in plan.left_out
        assert (world.project / "huge").stat().st_size == 6_000
        assert world.read("cache/x") == "01\n"
        await session.rewind(None, overwrite=["huge"])
        assert not (world.project / "huge").exists()


async def test_a_removed_file_that_was_ignored_comes_back_and_others_are_named(
    world: World,
) -> None:
    world.write(".gitignore", "*.local\n")
    world.write("my.local", "KEY=1\n")
    world.write("big", "x" * 5_000)
    world.write(os.fsdecode(b"bad\xff"), "y")
    model = turns(shell("rm my.local big bad*"))
    async with open_world(world, model, sandbox="auto", history__max_file=4_096) as app:
        await skip_without_sandbox(app, world)
        session = await start(app)
        await session.send_message("go")
        plan = await session.rewind(None)
        assert actions(plan) == {
            "my.local": "recreate",
            "big": "unavailable",
            "bad\\xff": "unavailable",
        }
        reasons = {item.path: item.reason for item in plan.files}
        assert "what it was is gone: too large; it is kept in /" in reasons["big"]
        assert "its name is not text; it is kept in /" in reasons["bad\\xff"]
    assert world.read("my.local") == "KEY=1\n"
    [result] = tool_results(model)
    assert "a rewind does not bring them back" in result
    assert "- big (too large): /" in result


async def test_an_ignored_file_that_was_emptied_comes_back(plain_world: World) -> None:
    world = plain_world
    world.write(".gitignore", "*.db\n")
    world.write("a.db", "important\n")
    world.write("b.db", "important\n")
    model = turns(shell(": > a.db; ln -sf a.db b.db"))
    async with open_world(world, model, sandbox="auto") as app:
        await skip_without_sandbox(app, world)
        session = await start(app)
        await session.send_message("go")
        assert world.read("a.db") == ""
        plan = await session.rewind(None)
        assert actions(plan) == {"a.db": "restore", "b.db": "restore"}
    assert (world.read("a.db"), world.read("b.db")) == ("important\n", "important\n")


async def test_an_ignored_file_that_was_rewritten_comes_back_and_a_large_one_is_named(
    world: World,
) -> None:
    world.write(".gitignore", "*.local\n")
    world.write("my.local", "KEY=1\n")
    world.write("big.local", "x" * 5_000)
    world.write("other.local", "as it is\n")
    model = turns(shell("echo KEY=2 > my.local; echo y > big.local"))
    async with open_world(world, model, sandbox="auto", history__max_file=4_096) as app:
        await skip_without_sandbox(app, world)
        session = await start(app)
        await session.send_message("go")
        plan = await session.rewind(None)
        assert actions(plan) == {"my.local": "restore", "big.local": "unavailable"}
        # What the plan speaks of is not said to be left out of it.
        assert plan.left_out == ("other.local: ignored",)
    assert world.read("my.local") == "KEY=1\n"
    [result] = tool_results(model)
    assert "rewritten and a rewind does not bring back" in result
    assert "- big.local (ignored)" in result


async def test_without_a_sandbox_removed_files_that_are_ignored_are_named(
    plain_world: World,
) -> None:
    world = plain_world
    world.write(".gitignore", "*.db\ndata/\nnode_modules/\n")
    for name in ("b.db", "data/stays", "node_modules/x.js"):
        world.write(name, "x")
    for name in ("a.db", "data/deep/c"):
        world.write(name, "x" * 1_100_000)
    gone = "rm -r a.db data/deep node_modules; mv b.db c.db; mv data/stays data/moved"
    model = turns(shell(gone), shell("true"))
    async with open_world(world, model, sandbox="off") as app:
        session = await start(app)
        await session.send_message("go")
        result = tool_results(model)[-1]
        assert "removed and nothing brings them back" in result
        assert "- a.db (ignored)\n- data/deep/c (ignored)" in result
        assert "node_modules" not in result
        plan = await session.rewind(None, preview=True)
        assert actions(plan) == {"a.db": "unavailable", "data/deep/c": "unavailable"}
        await session.send_message("again")
        assert "removed" not in tool_results(model)[-1]


async def test_without_a_sandbox_ignored_files_come_back_and_large_ones_are_named(
    plain_world: World,
) -> None:
    world = plain_world
    world.write(".gitignore", "*.db\n*.log\n")
    for name in ("emptied.db", "rewritten.db", "removed.db", "run.log"):
        world.write(name, "important\n")
    world.write("large.db", "x" * 1_100_000)
    line = ": > emptied.db; echo other > rewritten.db; rm removed.db; echo more >> run.log"
    model = turns(shell(f"{line}; : > large.db"))
    async with open_world(world, model, sandbox="off") as app:
        session = await start(app)
        await session.send_message("go")
        [result] = tool_results(model)
        assert "rewritten and a rewind does not bring back what they held:\n- large.db" in result
        assert "run.log" not in result
        plan = await session.rewind(None)
        assert actions(plan) == {
            "emptied.db": "restore",
            "rewritten.db": "restore",
            "removed.db": "recreate",
            "large.db": "unavailable",
        }
    for name in ("emptied.db", "rewritten.db", "removed.db"):
        assert world.read(name) == "important\n"
    assert world.read("run.log") == "important\nmore\n"


async def test_without_a_sandbox_a_removed_file_that_is_too_large_is_named(world: World) -> None:
    world.write("big", "x" * 5_000)
    model = turns(shell("rm big"))
    async with open_world(world, model, sandbox="off", history__max_file=4_096) as app:
        session = await start(app)
        await session.send_message("go")
        plan = await session.rewind(None)
        assert actions(plan) == {"big": "unavailable"}
    [result] = tool_results(model)
    assert "nothing brings them back:\n- big (too large)" in result


async def test_the_oldest_history_goes_when_there_is_too_much_and_is_named(world: World) -> None:
    for name in "abcdefgh":
        world.write(name, name * 1_000)
    commands = [shell(f"echo 1 > {name}") for name in "abcdefgh"]
    async with open_world(world, turns(*commands), history__quota=40_000) as app:
        session = await start(app)
        for name in "abcdefgh":
            await session.send_message(name)
        await app.store.trim_history(str(world.project), 5_000)
        plan = await session.rewind(None)
        gone = [item.path for item in plan.files if item.action == "unavailable"]
        assert gone == ["a", "b", "c"]
        assert (
            plan.files[0].reason == "what it was is gone: it was dropped to stay within the quota"
        )
        assert (world.read("a"), world.read("d")) == ("1\n", "d" * 1_000)


async def test_a_session_holds_its_project_to_the_quota_by_itself(world: World) -> None:
    commands = [shell("head -c 4000 /dev/urandom > f") for _ in range(30)]
    async with open_world(world, turns(*commands), history__quota=100_000) as app:
        session = await start(app)
        for number in range(30):
            await session.send_message(str(number))
        touched = [fact.before for fact in await facts(session, FileTouched) if fact.before]
        with anyio.fail_after(5):
            while True:
                held = [each for each in touched if await app.store.blob(each) is not None]
                if len(held) * 4_000 <= 50_000:
                    break
                await anyio.sleep(0.01)
        assert held == touched[-len(held) :], "the newest are kept"
        assert len(held) >= 10


async def test_without_a_quota_commands_are_not_watched_and_edits_still_go_back(
    world: World,
) -> None:
    world.write("a", "0\n")
    async with open_world(
        world, turns([shell("echo 1 > a"), write("b", "1")]), history__quota=0
    ) as app:
        session = await start(app)
        await session.send_message("go")
        plan = await session.rewind(None)
        assert actions(plan) == {"b": "delete"}
        assert plan.left_out == (".: what commands changed is not known: history.quota is 0",)
        assert world.read("a") == "1\n"


# --- the session around it -------------------------------------------------------------------


async def test_nothing_is_put_back_while_a_turn_runs(world: World) -> None:
    model = ScriptedModel([[SayText(text="one"), Stall(), SayText(text="two")]])
    async with open_world(world, model) as app:
        session = await start(app)
        await session.send_prompt("go")
        for preview in (True, False):
            with pytest.raises(SessionBusy):
                await session.rewind(None, preview=preview)
        await session.abort()


async def test_what_an_aborted_command_had_changed_goes_back_too(world: World) -> None:
    world.write("a", "0\n")
    model = turns(shell("echo 1 > a; echo 2 > b; echo ready; sleep 60"))
    async with open_world(world, model) as app:
        session = await start(app)

        async def abort_when_ready() -> None:
            await until(session, ToolOutput)
            await session.abort()

        async with running(abort_when_ready):
            reply = await session.send_message("go")
        assert reply.finish_reason == "aborted"
        assert {each.path for each in await session.touched_files()} == {"a", "b"}
        await session.rewind(None)
        assert (world.read("a"), (world.project / "b").exists()) == ("0\n", False)


@SANDBOX
async def test_what_a_command_had_changed_when_the_app_was_closed_goes_back_too(
    world: World, sandbox: str
) -> None:
    world.write("a", "0\n")
    model = turns(shell("echo 1 > a; echo 2 > b; echo ready; sleep 60"))
    async with open_world(world, model, sandbox=sandbox) as app:
        session = await start(app)
        await session.send_prompt("go")
        await until(session, ToolOutput)
    async with open_world(world, model, sandbox=sandbox) as app:
        session = await app.sessions.get("s")
        await session.rewind(None)
        assert (world.read("a"), (world.project / "b").exists()) == ("0\n", False)


@pytest.mark.requirement("session:touched_files")
async def test_touched_files_counts_commands_and_forgets_what_went_back(world: World) -> None:
    make_files(world)
    async with open_world(
        world, turns(shell("echo 1 > a.txt; rm d/b.txt"), write("new/x", "1"))
    ) as app:
        session = await start(app)
        await session.send_message("first")
        place = await last_id(session)
        await session.send_message("second")
        touched = {each.path: each.action for each in await session.touched_files()}
        assert touched == {"new/x": "created", "d/b.txt": "deleted", "a.txt": "modified"}
        await session.rewind(place)
        touched = {each.path: each.action for each in await session.touched_files()}
        assert touched == {"d/b.txt": "deleted", "a.txt": "modified"}
        await session.rewind(None)
        assert await session.touched_files() == []
        await session.undo_rewind()
        touched = {each.path: each.action for each in await session.touched_files()}
        assert touched == {"d/b.txt": "deleted", "a.txt": "modified"}


async def test_a_fork_has_the_file_history_of_its_past(world: World) -> None:
    world.write("a", "0\n")
    async with open_world(world, turns(shell("echo 1 > a"), shell("echo 2 > a; touch b"))) as app:
        session = await start(app)
        await session.send_message("first")
        place = await last_id(session)
        await session.send_message("second")
        fork = await app.sessions.fork_session("s")
        assert actions(await fork.rewind(place)) == {"a": "restore", "b": "delete"}
        assert world.read("a") == "1\n"
        await fork.rewind(None)
        assert (sorted(project_tree(world)), world.read("a")) == (["a"], "0\n")
        assert (await session.rewind(place, preview=True)).conflicts == ("a",)
        await fork.undo_rewind()
        assert world.read("a") == "1\n"


async def test_what_agents_changed_goes_back_with_the_call_they_worked_for(world: World) -> None:
    world.write("a", "0\n")
    model = role_model(
        {
            "Lead": [
                agent_calls("Helper one", "Helper two"),
                "half done",
                shell("echo 4 > d"),
                "done",
            ],
            "one": [shell("echo 1 > a; touch b"), agent_call("Deeper"), "ok"],
            "Deeper": [write("deep/c", "3"), "ok"],
            "two": ["ok"],
        }
    )
    async with open_world(world, model) as app:
        session = await start(app)
        await session.send_message("Lead")
        working = project_tree(world)
        rows = await session.messages_with_ids()
        call = next(each for each, message in rows if message.tool_calls)
        await session.send_message("go on")
        assert sorted(project_tree(world)) == ["a", "b", "d", "deep", "deep/c"]
        await session.rewind(call)
        assert project_tree(world) == working, "what the call's own agents did stays"
        plan = await session.rewind(None)
        assert not plan.conflicts
        assert (sorted(project_tree(world)), world.read("a")) == (["a"], "0\n")
        assert await session.touched_files() == []
        await session.undo_rewind()
        assert project_tree(world) == working


async def test_the_same_rewind_sent_twice_is_one(world: World) -> None:
    world.write("a", "0\n")
    async with open_world(world, turns(shell("echo 1 > a"))) as app:
        session = await start(app)
        await session.send_message("go")
        one = await session.rewind(None, input_id="x")
        world.write("a", "by hand\n")
        assert await session.rewind(None, input_id="x") == one
        assert len([each for each in await facts(session, Rewound) if not each.settles]) == 1


async def test_the_past_is_known_to_the_next_process_too(shared_world: World) -> None:
    world = shared_world
    make_files(world)
    before = project_tree(world)
    async with open_world(world, turns(shell(EVERYTHING))) as app:
        await (await start(app)).send_message("go")
        after = project_tree(world)
    async with open_world(world, turns()) as app:
        session = await app.sessions.get("s")
        await session.rewind(None)
        assert project_tree(world) == before
    async with open_world(world, turns()) as app:
        session = await app.sessions.get("s")
        await session.undo_rewind()
        assert project_tree(world) == after


async def test_a_session_that_another_process_owns_is_rewound_by_it(shared_world: World) -> None:
    world = shared_world
    world.write("a", "0\n")
    async with (
        open_world(world, turns(shell("echo 1 > a"))) as owner,
        open_world(world, turns()) as other,
    ):
        await (await start(owner)).send_message("go")
        session = await other.sessions.get("s")
        assert actions(await session.rewind(None, preview=True)) == {"a": "restore"}
        plan = await session.rewind(None)
        assert (plan.is_done, world.read("a")) == (True, "0\n")
        await session.undo_rewind()
        assert world.read("a") == "1\n"


# --- when it is cut short --------------------------------------------------------------------


class Cut(Exception):
    """Stands for whatever ends the work in the middle."""


def cut(name: str) -> None:
    raise Cut(name)


@pytest.mark.parametrize(
    ("point", "at", "is_begun"),
    [
        ("session.rewind.before", 1, False),
        ("session.rewind.after", 1, True),
        ("session.rewind.between_files", 1, True),
        ("session.rewind.between_files", 5, True),
        ("session.rewind.between_files", 9, True),
        ("workspace.restore.before_rename", 3, True),
        ("workspace.restore.after_rename", 3, True),
        ("session.rewound.before", 1, True),
        ("session.rewound.after", 1, True),
    ],
)
async def test_a_rewind_that_was_cut_short_is_finished_or_never_was(
    world: World, point: str, at: int, is_begun: bool
) -> None:
    make_files(world)
    before = project_tree(world)
    async with open_world(world, turns(shell(EVERYTHING), shell("true"))) as app:
        session = await start(app)
        await session.send_message("go")
        after = project_tree(world)
        faults.arm(point, at=at, action=cut)
        try:
            with pytest.raises(Exception, match=point):
                await session.rewind(None)
        finally:
            faults.disarm_all()
        await session.add_system_message("the next command")
        assert project_tree(world) == (before if is_begun else after)
        rewinds = await facts(session, Rewound)
        assert [bool(each.settles) for each in rewinds] == ([False, True] if is_begun else [])
        await session.rewind(None)
        assert project_tree(world) == before


async def test_a_folder_that_cannot_be_looked_at_when_it_is_closed_is_named_and_blocks_nothing(
    world: World,
) -> None:
    """A rewind that stayed unsettled would fail every later command, which has to finish it."""
    world.write("d/closed/file", "0\n")
    (world.project / "d/closed").chmod(0o555)
    async with open_world(world, turns(shell("chmod u+w d/closed; rm -r d"), shell("true"))) as app:
        session = await start(app)
        await session.send_message("go")

        def take_the_project_away(name: str) -> None:
            world.project.rename(world.base / "away")

        faults.arm("session.rewind.between_files", at=3, action=take_the_project_away)
        try:
            plan = await session.rewind(None)
        finally:
            faults.disarm_all()
        assert "d/closed" in plan.conflicts
        await session.add_system_message("the next command")
        rewinds = await facts(session, Rewound)
        assert [bool(each.settles) for each in rewinds] == [False, True]


async def test_what_another_program_did_while_a_rewind_was_cut_short_is_left_and_named(
    world: World,
) -> None:
    for name in "abc":
        world.write(name, "0\n")
    async with open_world(world, turns(shell("for f in a b c; do echo 1 > $f; done"))) as app:
        session = await start(app)
        await session.send_message("go")
        faults.arm("session.rewind.between_files", at=2, action=cut)
        try:
            with pytest.raises(Exception, match="between_files"):
                await session.rewind(None)
        finally:
            faults.disarm_all()
        world.write("c", "by hand\n")
        await session.add_system_message("the next command")
        assert [world.read(name) for name in "abc"] == ["0\n", "0\n", "by hand\n"]
        notes = [each.text for each in await facts(session, SystemNote) if each.level == "warning"]
        assert any("c: it was changed while the rewind was interrupted" in text for text in notes)
        await session.undo_rewind()
        assert [world.read(name) for name in "abc"] == ["1\n", "1\n", "by hand\n"]


@SANDBOX
async def test_names_that_differ_in_case_only_are_two_files(world: World, sandbox: str) -> None:
    world.write("Readme", "old\n")
    script = "mv Readme README; echo new >> README; echo other > readme"
    async with open_world(world, turns(shell(script)), sandbox=sandbox) as app:
        session = await start(app)
        before = project_tree(world)
        await session.send_message("go")
        after = project_tree(world)
        assert set(after) == {"README", "readme"}
        await session.rewind(None)
        assert project_tree(world) == before
        await session.undo_rewind()
        assert project_tree(world) == after
