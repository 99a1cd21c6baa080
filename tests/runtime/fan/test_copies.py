"""Fan-outs where there is no overlay: each candidate in a copy, and the user is told."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.fan_project import git
from tests.support.fan_stage import (
    RIGHT,
    VERIFY,
    WRONG,
    candidate_model,
    cheat,
    make_stage,
    names,
    right,
    shell_call,
    write_call,
)
from tests.support.world import PATIENCE, World
from weft.api.fan import Fan
from weft.errors import UsageError
from weft.runtime.fan import base_files, candidate_copy, fan_run

pytestmark = [pytest.mark.anyio, pytest.mark.process, pytest.mark.timeout(90)]


@pytest.fixture
def stage(tmp_path: Path) -> World:
    made = World("sqlite", tmp_path)
    made.write(".gitignore", "node_modules\n.env\nbuild\n")
    make_stage(made)
    made.write("node_modules/a/index.js", "a\n")
    made.write("node_modules/b/index.js", "b\n")
    made.write(".env", "KEY=1\n")
    return made


async def waited(fan: Fan) -> None:
    with anyio.fail_after(PATIENCE):
        await fan.wait()


async def test_candidates_in_copies_are_verified_ranked_kept_and_rewound(stage: World) -> None:
    models = [cheat("cheat"), right("right")]
    stage.write("README.md", "one\n\n\nnot committed\n\n\nthree\n")
    async with stage.open(*models) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches("mend it", 2, names(*models), VERIFY)
        await waited(fan)
        (note,) = fan.notes
        assert "no overlay here (the sandbox is switched off)" in note
        best, edits = fan.candidates()
        assert (best.model, best.verify, best.base_verify) == (
            *("scripted:right", "passed", "failed"),
        )
        assert (best.isolation, best.is_best, best.files) == ("worktree", True, ("src/add.py",))
        assert (edits.verify, edits.base_tests) == ("passed", "failed")
        assert stage.read("src/add.py") == WRONG
        assert "return a + b" in await fan.diff(best.index)
        stage.write("README.md", "1\n\n\nnot committed\n\n\nthree\n")
        assert (await fan.keep(best.index)).is_kept
        assert stage.read("src/add.py") == RIGHT
        await session.rewind(None)
        assert stage.read("src/add.py") == WRONG
        assert git(stage.project, "worktree", "list").count("\n") == 1
        await fan.close()
        assert not any((stage.base / "sandbox").glob("fans/*"))
        assert not any((stage.base / "sandbox").glob("[0-9]*-*"))


@pytest.mark.parametrize("base", ["now", "head"])
async def test_copies_do_without_devices_where_those_are_refused(
    stage: World, base: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object, **more: object) -> None:
        raise PermissionError(errno.EPERM, "no devices here")

    monkeypatch.setattr(os, "mknod", refuse)
    stage.write("gone/a.txt", "a\n")
    stage.write("README.md", "")
    git(stage.project, "add", "-A")
    git(stage.project, "commit", "-qm", "more")
    stage.write("new.txt", "not committed\n")
    model = candidate_model("script", shell_call("rm -r gone; rm README.md; echo x > x"), "Done.")
    async with stage.open(model) as app:
        session = await app.sessions.start_session(auto_approve=True)
        check = "! test -e gone/a.txt && ! test -e README.md && test -e x"
        fan = await session.generate_branches("do", 1, verify=check, base=base)
        await waited(fan)
        (found,) = fan.candidates()
        assert (found.verify, found.files) == ("passed", ("README.md", "gone/a.txt", "x"))
        await fan.prune(1)
        await fan.restore(1)
        assert (await fan.keep(1)).is_kept
        assert not (stage.project / "gone/a.txt").exists()
        assert stage.read("x") == "x\n"
        await session.rewind(None)
        assert stage.read("gone/a.txt") == "a\n"


async def test_what_the_list_of_a_work_tree_names_is_copied_and_the_set_up_is_run(
    stage: World,
) -> None:
    stage.write(".worktreeinclude", "# for work trees\n.env\nnode_modules/\n!node_modules/b\n")
    config = {"fan.setup": "mkdir build; cat .env > build/env"}
    async with stage.open(right("script"), config=config) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches(
            "mend it", 1, verify="cat node_modules/a/index.js build/env; ! test -e node_modules/b"
        )
        await waited(fan)
        assert fan.candidates()[0].verify == "passed"
        assert "KEY=1" in await fan.verify_output(1)
        assert fan.candidates()[0].files == ("src/add.py",)


async def test_a_set_up_that_fails_is_told(stage: World) -> None:
    config = {"fan.setup": "echo no network here; false"}
    async with stage.open(right("script"), config=config) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches("mend it", 1)
        await waited(fan)
        (found,) = fan.candidates()
        assert found.state == "failed"
        assert "no network here" in found.detail


async def test_a_copy_that_was_never_finished_holds_no_work_and_is_pruned(stage: World) -> None:
    async with stage.open(right("script")) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches("mend it", 2, verify="true")
        await waited(fan)
        places = stage.base / "sandbox" / "fans" / fan.id
        for index in (1, 2):
            # As a process leaves it that dies while the copy is made.
            (places / f"{index}" / "stamps").unlink()
        with pytest.raises(UsageError, match="candidate 1 is gone"):
            await fan.keep(1)
        with pytest.raises(UsageError, match="candidate 1 is gone"):
            await fan.compare(1, 2)
        await fan.prune(1)
        assert not (places / "1").exists()


async def test_commands_of_a_copy_are_asked_for(stage: World) -> None:
    model = candidate_model("script", shell_call(f"echo x > {stage.project}/x"), "Done.")
    async with stage.open(model) as app:
        session = await app.sessions.start_session(asking="no")
        fan = await session.generate_branches("do", 1)
        await waited(fan)
        assert not (stage.project / "x").exists()


async def test_a_copy_goes_on_where_it_was(stage: World) -> None:
    model = candidate_model(
        "script", write_call("half.txt", "half\n"), shell_call("sleep 60"), "Done."
    )
    config = {"permissions.allow": ["shell"], "fan.setup": "echo s >> setups"}
    async with stage.open(model, config=config) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches("mend it", 1)
        with anyio.fail_after(PATIENCE):
            while len(model.requests) < 2:  # noqa: ASYNC110 - the model has no event for it
                await anyio.sleep(0.02)
        fan_id = fan.id
    async with stage.open(model, config=config) as app:
        fan = await app.fan(fan_id)
        assert "no overlay" in fan.notes[0]
        assert fan.candidates()[0].state == "interrupted"
        await fan.resume()
        await waited(fan)
        assert (await fan.keep(1)).is_kept
        assert stage.read("half.txt") == "half\n"
        assert not (stage.project / "setups").exists()


@pytest.fixture
def cloning(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that can clone.  None of the suite can; that ours cannot is what other tests show."""
    monkeypatch.setattr(candidate_copy, "clone_file", shutil.copy2)
    monkeypatch.setattr(fan_run, "can_clone", lambda root, folder: True)


@pytest.mark.usefixtures("cloning")
async def test_where_files_can_be_cloned_ignored_ones_are(stage: World) -> None:
    async with stage.open(right("script")) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches("mend it", 1, verify="cat node_modules/b/index.js")
        await waited(fan)
        (found,) = fan.candidates()
        assert (found.isolation, found.verify) == ("reflink", "passed")
        assert "clones" in fan.notes[0]


@pytest.mark.usefixtures("cloning")
@pytest.mark.parametrize("included", ["", ".env\n"])
async def test_secrets_are_cloned_only_where_the_list_of_a_work_tree_names_them(
    stage: World, included: str
) -> None:
    stage.write("node_modules/a/.env.local", "KEY=2\n")
    stage.write(".worktreeinclude", included)
    verify = "ls -A . node_modules/a; cat node_modules/b/index.js"
    async with stage.open(right("script")) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches("mend it", 1, verify=verify)
        await waited(fan)
        assert fan.candidates()[0].verify == "passed"
        said = (await fan.verify_output(1)).split()
        assert ".env.local" not in said
        assert (".env" in said) == bool(included)


@pytest.mark.usefixtures("cloning")
async def test_an_ignored_tree_that_cannot_be_cloned_is_left_out_and_said_to_be(
    stage: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.write("build/one.o", "1\n")
    stage.write("build/two.o", "2\n")
    stage.write("node_modules/a/passing.tmp", "soon gone\n")

    def clone(source: str, target: str) -> None:
        if source.endswith("two.o"):
            raise PermissionError(errno.EACCES, "Permission denied", source)
        if source.endswith(".tmp"):
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", source)
        shutil.copy2(source, target)

    monkeypatch.setattr(candidate_copy, "clone_file", clone)
    verify = "cat node_modules/a/index.js node_modules/b/index.js; ! ls build/*"
    async with stage.open(right("script")) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches("mend it", 1, verify=verify)
        await waited(fan)
        assert fan.candidates()[0].verify == "passed"
        _, note = fan.notes
        assert "build (Permission denied)" in note
        assert "node_modules" not in note


async def test_more_than_can_be_copied_is_refused(
    stage: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base_files, "MOST_FILES", 0)
    stage.write("new.txt", "new\n")
    async with stage.open(right("script")) as app:
        session = await app.sessions.start_session()
        with pytest.raises(UsageError, match="gitignore"):
            await session.generate_branches("mend it", 1)
        assert not any((stage.base / "sandbox").glob("fans/*"))
