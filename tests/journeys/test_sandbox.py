"""Commands of a session, in the sandbox and without one: what reaches the project, and what model
and person are told.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.bounded_code import CODE, edit, lines, read, write
from tests.support.rewind_project import open_world, shell, start, turns
from tests.support.sandboxed_session import skip_without_sandbox, tool_results
from tests.support.world import World, facts, running, until
from weft.cli.chat.approval_text import ApprovalPlace, permission_question
from weft.events import PermissionRequest, SystemNote, ToolComplete
from weft.providers.script import CallTool
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio

BEYOND = "sed -i 's/return 1/return 100/' code.py"
INSIDE = "sed -i 's/return 2/return 22/; s/^def b.*/&\\n    # b/' code.py"
HOOK = "mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit; echo fine > beside"


# --- boundaries


async def test_in_the_sandbox_a_command_is_held_to_the_lines(plain_world: World) -> None:
    world = plain_world
    world.write("code.py", CODE)
    model = turns([shell(INSIDE), shell(BEYOND), shell("rm code.py; echo 1 > free")])
    async with open_world(world, model, sandbox="auto") as app:
        await skip_without_sandbox(app, world)
        session = await start(app)
        await session.set_boundary("code.py", 4, 5)
        await session.send_message("go")
        assert world.read("code.py") == CODE.replace(
            "def b():\n    return 2", "def b():\n    # b\n    return 22"
        )
        assert await lines(session) == (4, 6)
    assert world.read("free") == "1\n"
    _, beyond, removed = tool_results(model)
    assert "did not reach the project" in beyond
    assert "only lines 5 to 7 (of 11) may be changed, and this change touches line 2" in beyond
    assert "it may not be removed" in removed


async def test_without_it_what_was_changed_beyond_stays_and_is_reported(plain_world: World) -> None:
    world = plain_world
    world.write("code.py", CODE)
    above = "sed -i '1i # new' code.py"
    model = turns([shell(INSIDE), shell(above), shell("true")])
    async with open_world(world, model, sandbox="off") as app:
        session = await start(app)
        await session.set_boundary("code.py", 4, 5)
        await session.send_message("go")
        assert world.read("code.py").startswith("# new\ndef a():")
        assert await lines(session) == (5, 7)
        notes = [note.text for note in await facts(session, SystemNote)]
    inside, beyond, after = tool_results(model)
    assert "boundar" not in inside + after
    assert "only lines 5 to 7 (of 11) may be changed" in beyond
    assert "Ask the user whether this may stay" in beyond
    [note] = [note for note in notes if "code.py" in note]
    assert "Nothing was put back" in note


@pytest.mark.parametrize("tool_name", ["edit", "multi_edit", "write", "shell"])
@pytest.mark.parametrize("old", ["return 1", "return 3"])
async def test_no_tool_gets_beyond_and_each_is_told_the_lines(
    plain_world: World, tool_name: str, old: str
) -> None:
    world = plain_world
    world.write("code.py", CODE)
    changed = CODE.replace(old, "return 0")
    pieces = [
        {"old_string": "return 2", "new_string": "return 22"},
        {"old_string": old, "new_string": "return 0"},
    ]
    calls = {
        "edit": edit(old, "return 0"),
        "multi_edit": CallTool(name="multi_edit", args={"path": "code.py", "edits": pieces}),
        "write": write("code.py", changed),
        "shell": shell(f"sed -i 's/{old}/return 0/' code.py"),
    }
    model = turns([read(), calls[tool_name]])
    async with open_world(world, model, sandbox="auto") as app:
        await skip_without_sandbox(app, world)
        session = await start(app)
        await session.set_boundary("code.py", 4, 5)
        await session.send_message("go")
        assert await lines(session) == (4, 5)
    assert world.read("code.py") == CODE
    assert "only lines 5 to 6 (of 10) may be changed" in tool_results(model)[-1]


# --- permissions


async def test_a_comment_does_not_turn_a_grant_into_one_for_the_whole_machine(
    plain_world: World,
) -> None:
    inside = shell("# outside the sandbox\ntouch made")
    outside = CallTool(name="shell", args={"command": "touch made", "outside_sandbox": True})
    model = turns([inside, outside])
    async with open_world(plain_world, model, sandbox="auto") as app:
        await skip_without_sandbox(app, plain_world)
        session = await app.sessions.start_session()
        await session.send_prompt("go")
        first = await until(session, PermissionRequest)
        await session.respond_to_permission("allow_always")
        second = await until(session, PermissionRequest, after=first.seq)
        assert second.reason == "it would run outside the sandbox"
        assert second.always_pattern != first.always_pattern
        await session.abort()


# --- what programs obey


async def test_in_the_sandbox_no_hook_of_git_comes_over(plain_world: World) -> None:
    world = plain_world
    world.write(".git/HEAD", "ref: refs/heads/main\n")
    model = turns(shell(HOOK))
    async with open_world(world, model, sandbox="auto") as app:
        await skip_without_sandbox(app, world)
        session = await start(app)
        await session.send_message("go")
    assert not (world.project / ".git" / "hooks" / "pre-commit").exists()
    assert world.read("beside") == "fine\n"
    assert ".git/hooks/pre-commit: programs obey" in tool_results(model)[-1]


async def test_without_it_a_file_that_programs_obey_is_reported(plain_world: World) -> None:
    world = plain_world
    model = turns(shell("echo 'alias ls=evil' > .bashrc; echo fine > beside"))
    async with open_world(world, model, sandbox="off") as app:
        session = await start(app)
        await session.send_message("go")
        [note] = [note.text for note in await facts(session, SystemNote) if ".bashrc" in note.text]
    assert world.read(".bashrc") == "alias ls=evil\n", "it is never put back"
    assert "- .bashrc: programs obey" in tool_results(model)[-1]
    assert "beside" not in note


# --- where there is none


def without_bubblewrap(world: World) -> dict[str, Any]:
    """A search path with all that a command needs but bubblewrap."""
    programs = world.base / "bin"
    programs.mkdir()
    for name in ("sh", "bash", "sed", "cat"):
        found = shutil.which(name)
        if found:
            (programs / name).symlink_to(found)
    return {"HOME": str(world.base), "WEFT_HOME": str(world.base), "PATH": str(programs)}


class Bare(World):
    """A machine without bubblewrap."""

    @property
    def environ(self) -> dict[str, str]:
        return self._bare

    def __init__(self, base: Path) -> None:
        super().__init__("memory", base)
        self._bare = without_bubblewrap(self)


async def test_a_machine_without_bubblewrap_says_so_and_asks_even_in_auto_mode(
    tmp_path: Path,
) -> None:
    world = Bare(tmp_path)
    model = turns([shell("echo 1 > a"), shell("echo 2 > b")])
    async with open_world(world, model, sandbox="auto") as app:
        session = await app.sessions.start_session(permission_mode="auto")

        async def answer() -> None:
            for _ in range(2):
                asked = await until(session, PermissionRequest, after=answered[-1])
                assert asked.preview == (
                    "# without a sandbox: bubblewrap (the program bwrap) is not installed\n"
                    + str(asked.tool_path)
                )
                answered.append(asked.seq)
                await session.respond_to_permission("allow_once", request_id=asked.request_id)

        answered = [0]
        async with running(answer):
            await session.send_message("go")
        notes = [each.text for each in await facts(session, SystemNote)]
    assert world.read("a") + world.read("b") == "1\n2\n"
    [note] = [note for note in notes if "without a sandbox" in note]
    assert "bubblewrap (the program bwrap) is not installed" in note


async def test_a_request_says_that_the_sandbox_is_switched_off(tmp_path: Path) -> None:
    world = World("memory", tmp_path)
    async with open_world(world, turns(shell("echo 1 > a")), sandbox="off") as app:
        session = await app.sessions.start_session()

        async def answer() -> None:
            asked = await until(session, PermissionRequest)
            previews.append(asked.preview)
            question = permission_question(asked, ApprovalPlace(str(world.project)))
            assert (question.danger, question.picked) == ("OUTSIDE the sandbox", -1)
            assert "sandbox" not in question.rule
            # What a grant names does not change with the sandbox.
            assert asked.tool_path == "echo 1 > a"
            await session.respond_to_permission("allow_once", request_id=asked.request_id)

        previews: list[str] = []
        async with running(answer):
            await session.send_message("go")
    assert previews == ["# without a sandbox: it is switched off\necho 1 > a"]
    assert world.read("a") == "1\n"


async def test_where_the_sandbox_is_required_nothing_runs_without_it(tmp_path: Path) -> None:
    world = Bare(tmp_path)
    model = turns(shell("echo 1 > a"))
    async with open_world(world, model, sandbox="on") as app:
        session = await start(app)
        await session.send_message("go")
        [done] = await facts(session, ToolComplete)
    assert done.result.is_error
    assert "only run in the sandbox, and there is none: bubblewrap" in done.result.text
    assert not (world.project / "a").exists()


# --- what is ours


class Apart(World):
    """A project that does not lie in the folder with our data."""

    @property
    def environ(self) -> dict[str, str]:
        home = self.base / "home"
        return {"HOME": str(home), "WEFT_HOME": str(home / "data"), "PATH": os.environ["PATH"]}

    def store(self) -> Path:
        return self.base / "elsewhere" / "weft.db"


async def test_a_command_can_read_neither_keys_nor_conversations(elsewhere: Path) -> None:
    world = Apart("sqlite", elsewhere)
    home = world.base / "home"
    for secret in (".ssh/id_ed25519", "data/keys", ".config/weft/config.toml", ".aws/credentials"):
        (home / secret).parent.mkdir(parents=True)
        (home / secret).write_text("# a secret\n")
    (world.base / "elsewhere").mkdir()
    (home / "open").write_text("no harm\n")
    model = turns(
        shell(
            f"cat ~/open; cat {elsewhere}/elsewhere/* | tr -d '\\0'; grep -rah secret {home} "
            f"{elsewhere}/elsewhere; env"
        )
    )
    async with open_world(world, model, sandbox="auto") as app:
        await skip_without_sandbox(app, world)
        session = await start(app)
        await session.send_message("this is a secret")
    [said] = tool_results(model)
    assert "no harm" in said
    assert "a secret" not in said
    for name in ("weft.db", "weft.db-wal", "run"):
        assert f"/{name}: Permission denied" in said


async def test_a_name_that_is_no_text_breaks_no_turn(plain_world: World) -> None:
    script = "mkfifo $'p\\xff'; echo 1 > $'f\\xfe'; ls"
    model = turns(shell(script))
    async with open_world(plain_world, model, sandbox="auto") as app:
        await skip_without_sandbox(app, plain_world)
        session = await start(app)
        reply = await session.send_message("go")
        assert reply.finish_reason == "stop"
    assert os.listdir(os.fsencode(plain_world.project)) == [b"f\xfe"]


# --- without a history


async def test_a_rewind_says_that_nothing_is_kept_where_the_quota_is_0(plain_world: World) -> None:
    world = plain_world
    world.write("a", "0\n")
    model = turns([shell("echo 1 > a; echo 2 > b")])
    async with open_world(world, model, sandbox="auto", history__quota=0) as app:
        await skip_without_sandbox(app, world)
        session = await start(app)
        await session.send_message("go")
        plan = await session.rewind(None, preview=True)
        assert {item.path: (item.action, item.reason) for item in plan.files} == {
            "a": (
                "unavailable",
                "what it was is gone: nothing is kept, for history.quota or history.max_file is 0",
            ),
            "b": ("delete", ""),
        }


@pytest.mark.parametrize("sandbox", ["auto", "off"])
async def test_a_project_folder_that_was_made_anew_is_writable(
    plain_world: World, sandbox: str
) -> None:
    world = plain_world
    world.write("old", "0\n")
    command = CallTool(name="shell", args={"command": "echo 1 > a; mkdir d; echo 2 > d/b"})
    write = CallTool(name="write", args={"path": "d/c", "content": "3\n"})
    model = ScriptedModel(
        [
            CallTool(name="shell", args={"command": "echo 0 > a"}),
            "One.",
            command,
            "Two.",
            write,
            "Three.",
        ]
    )
    async with world.open(model, config={"sandbox.mode": sandbox}) as app:
        session = await app.sessions.start_session(auto_approve=True)
        await session.send_message("one")
        assert world.read("a") == "0\n"
        shutil.rmtree(world.project)
        world.project.mkdir()
        await session.send_message("two")
        assert (world.read("a"), world.read("d/b")) == ("1\n", "2\n")
        await session.send_message("three")
        assert world.read("d/c") == "3\n"
        touched = {each.path for each in await session.touched_files()}
        assert {"a", "d/b", "d/c"} <= touched


@pytest.mark.process
async def test_a_link_gives_no_other_folder_the_name_of_one_that_programs_obey(
    plain_world: World,
) -> None:
    attack = (
        "mkdir -p conf/workflows && echo x > conf/config.toml && echo x > conf/workflows/ci.yml "
        "&& ln -s conf .cargo && ln -s conf .github && ln -s conf plain"
    )
    model = turns(shell(attack))
    async with open_world(plain_world, model, sandbox="auto") as app:
        await skip_without_sandbox(app, plain_world)
        await (await start(app)).send_message("go")
    here = plain_world.project
    assert (here / "plain").is_symlink()
    assert not (here / ".cargo").exists()
    assert not (here / ".github").exists()
    assert "- .cargo: " in tool_results(model)[0]


async def test_a_project_below_our_own_folder_sees_nothing_else_of_it(elsewhere: Path) -> None:
    # As that of a session that came from another host.
    world = World("sqlite", elsewhere)
    folder = world.base / "workspaces" / "ses_a" / "1" / "shop"
    folder.mkdir(parents=True)
    (folder / "own").write_text("its own\n")
    beside = world.base / "workspaces" / "ses_b"
    beside.mkdir()
    for place in (world.base / "unattended.key", beside / "other"):
        place.write_text("a secret\n")
    looks = f"cat own {world.base}/unattended.key {beside}/other; ls {beside}; echo 1 > made"
    model = turns([shell(looks)])
    app = world.open(model, config={"sandbox.mode": "auto"}, folder=str(folder))
    async with app:
        await skip_without_sandbox(app, world)
        session = await start(app)
        await session.send_message("go")
    assert (folder / "made").read_text() == "1\n"
    [told] = tool_results(model)
    assert "its own" in told
    assert "a secret" not in told
