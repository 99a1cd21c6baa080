"""The base of a fan-out does not move, and what a candidate changed is told from it alone."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from tests.support.fan_project import ViewedProject, git, viewed_project
from weft.errors import UsageError
from weft.runtime.fan import base_files, base_watch, ignored_trees
from weft.runtime.fan.base_files import make_base
from weft.runtime.fan.base_watch import BaseWatch
from weft.runtime.fan.candidate_changes import candidate_diff, touches_checks

pytestmark = [pytest.mark.anyio, pytest.mark.process]

SEEN = "cat src/*.txt; ls; git status --short; git log --oneline | wc -l"


@asynccontextmanager
async def watched(at: ViewedProject) -> AsyncIterator[BaseWatch]:
    watch = BaseWatch(at.base)
    await watch.start()
    for view in at.views:
        await watch.add(view)
    try:
        yield watch
    finally:
        watch.close()


async def settle(watch: BaseWatch) -> None:
    """Take in what the kernel has told by now: it queues an event before a change returns."""
    kernel = watch._watch
    assert kernel is not None
    while kernel.is_whole and kernel.fd is not None and base_watch._is_readable(0, kernel.fd):
        collect = partial(kernel.collect, watch._known, base_watch._is_readable)
        await anyio.to_thread.run_sync(collect)
        await watch._take(kernel)
    if not kernel.is_whole:
        await watch.look()


async def test_while_the_user_edits_commits_and_switches_no_candidate_sees_it(
    tmp_path: Path,
) -> None:
    async with viewed_project(tmp_path) as at, watched(at) as watch:
        before = await at.shell(0, SEEN)
        (at.project / "src/two.txt").write_text("the user's\n")
        (at.project / "src/five.txt").write_text("five\n")
        (at.project / "folder").mkdir()
        (at.project / "folder/file").write_text("new\n")
        git(at.project, "add", "-A")
        git(at.project, "commit", "-qm", "the user's")
        git(at.project, "checkout", "-q", "other")
        await settle(watch)
        assert await at.shell(0, SEEN) == before
        assert (await candidate_diff(at.base, at.views[0].place.upper)).changes == ()


async def test_what_changed_while_no_process_watched_is_found_by_the_next(tmp_path: Path) -> None:
    async with viewed_project(tmp_path, views=2) as at:
        before = await at.shell(0, SEEN)
        (at.project / "src/two.txt").write_text("the user's\n")
        (at.project / "src/three.txt").unlink()
        (at.project / "later.txt").write_text("later\n")
        async with watched(at):
            assert await at.shell(1, SEEN) == before


async def test_a_file_that_the_candidate_has_touched_stays_its_own(tmp_path: Path) -> None:
    async with viewed_project(tmp_path) as at, watched(at) as watch:
        await at.shell(0, "echo mine >> src/two.txt; rm src/three.txt")
        (at.project / "src/two.txt").write_text("the user's\n")
        (at.project / "src/three.txt").write_text("the user's\n")
        await settle(watch)
        assert await at.shell(0, "cat src/two.txt; ls src") == (0, "two\nmine\none.txt\ntwo.txt\n")


async def test_a_base_of_the_last_commit_has_nothing_that_is_uncommitted(tmp_path: Path) -> None:
    async with viewed_project(tmp_path, kind="head") as at:
        code, said = await at.shell(0, "cat src/*.txt; ls; git status --short")
        assert (code, said) == (0, "four\none\nthree\ntwo\nnode_modules\nsrc\n")
        assert (at.project / "src/one.txt").read_text() == "one\nchanged\n"


async def test_a_reinstall_of_dependencies_is_seen_by_no_candidate(tmp_path: Path) -> None:
    async with viewed_project(tmp_path, views=2) as at:
        modules = at.project / "node_modules"
        seen = "cat node_modules/*.js; ls node_modules; stat -c %s node_modules/dependency.js"
        assert "dependency\n" in (before := await at.shell(0, seen))[1]
        # As npm does: away with all of it, and anew; the second view looks only then.
        shutil.rmtree(modules)
        modules.mkdir()
        (modules / "dependency.js").write_text("another version\n")
        (modules / "new.js").write_text("new\n")
        for number in (0, 1):
            assert await at.shell(number, seen) == before
        assert await at.shell(0, "echo mine > node_modules/dependency.js") == (0, "")
        assert (modules / "dependency.js").read_text() == "another version\n"
        assert await at.shell(1, seen) == before
        # As package managers that rename a folder into place do.
        modules.rename(at.project / "node_modules.old")
        assert await at.shell(1, seen) == before
        assert at.base.changed_in_place() == (0, [])


async def test_what_is_written_in_place_is_told(tmp_path: Path) -> None:
    async with viewed_project(tmp_path) as at:
        assert at.base.changed_in_place() == (0, [])
        with (at.project / "node_modules" / "dependency.js").open("a") as file:
            file.write("more\n")
        assert at.base.changed_in_place() == (1, ["node_modules/dependency.js"])
        assert not os.path.lexists(f"{at.base.layers[1]}/.env")


async def test_trees_that_cannot_be_linked_are_shared_and_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with viewed_project(tmp_path) as at:
        root, place = str(at.project), str(tmp_path / "again")
        base = await make_base(at.runner, root, place, "now", links_ignored=False)
        assert base.layers == (base.pin,)
        assert base.record.ignored.shared == ("node_modules",)
        (at.project / "node_modules" / "more.js").touch()
        monkeypatch.setattr(ignored_trees, "MOST_LINKED", 1)
        base = await make_base(at.runner, root, str(tmp_path / "more"), "now")
        assert base.record.ignored.shared == ("node_modules",)
        assert "more than" in base.record.ignored.why
        assert not os.path.exists(f"{base.folder}/ignored/node_modules")
        os.mkfifo(at.project / "node_modules" / "pipe")
        monkeypatch.undo()
        base = await make_base(at.runner, root, str(tmp_path / "pipe"), "now")
        linked = sorted(os.listdir(f"{base.layers[1]}/node_modules"))
        assert linked == ["dependency.js", "more.js"]  # a pipe would lead out


async def test_a_candidate_commits_for_itself_and_the_project_s_repository_stays_clean(
    tmp_path: Path,
) -> None:
    async with viewed_project(tmp_path) as at:
        hook = at.project / ".git/hooks/pre-commit"
        hook.write_text("#!/bin/sh\nexit 1\n")
        hook.chmod(0o755)
        before = git(at.project, "log", "--oneline", "--all")
        assert (await at.shell(0, "git add -A && git commit -qm mine && git log --oneline"))[0] == 0
        assert git(at.project, "log", "--oneline", "--all") == before
        git(at.project, "fsck", "--strict")


async def test_the_diff_has_the_candidate_s_work_and_nothing_else(tmp_path: Path) -> None:
    async with viewed_project(tmp_path) as at:
        await at.shell(
            0,
            "echo mine >> src/two.txt; echo n > made.txt; rm -r src/three.txt; "
            "echo cache > node_modules/cache; git add -A; git commit -qm mine; "
            "echo x > src/one.txt; printf 'one\\nchanged\\n' > src/one.txt; printf 'a\\0b' > bin",
        )
        diff = await candidate_diff(at.base, at.views[0].place.upper)
        assert [change.path for change in diff.changes] == [
            *("bin", "made.txt", "src/three.txt", "src/two.txt")
        ]
        assert diff.left_out == ("1 ignored files",)
        assert (diff.added, diff.removed) == (2, 1)
        assert "--- /dev/null\n+++ made.txt" in diff.text
        assert "(binary: 0 to 3 bytes)" in diff.text


async def test_a_folder_that_was_replaced_takes_away_all_that_the_base_had_in_it(
    tmp_path: Path,
) -> None:
    async with viewed_project(tmp_path) as at:
        await at.shell(0, "rm -r src; mkdir src; echo again > src/two.txt")
        diff = await candidate_diff(at.base, at.views[0].place.upper)
        gone = [change.path for change in diff.changes if change.after is None]
        assert gone == ["src/one.txt", "src/three.txt"]


async def test_a_project_without_a_repository_is_pinned_whole(tmp_path: Path) -> None:
    async with viewed_project(tmp_path) as at:
        shutil.rmtree(at.project / ".git")
        base = await make_base(at.runner, str(at.project), str(tmp_path / "plain"), "now")
        assert await base.paths() == {"src/one.txt", "src/two.txt", "src/three.txt"} | {
            *(".gitignore", "new.txt")
        }
        assert not os.path.exists(f"{base.pin}/.env")


async def test_more_than_can_be_pinned_is_refused_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with viewed_project(tmp_path) as at:
        monkeypatch.setattr(base_files, "MOST_PINNED", 3)
        with pytest.raises(UsageError, match="gitignore"):
            await make_base(at.runner, str(at.project), str(tmp_path / "again"), "now")


@pytest.mark.parametrize(
    "path", ["tests/test_a.py", "conftest.py", "src/a.test.ts", "package.json", "lib/run.sh"]
)
def test_tests_their_settings_and_files_of_the_command_are_checks(path: str) -> None:
    assert touches_checks([path, "src/contest.py"], "sh ./lib/run.sh") == [path]
