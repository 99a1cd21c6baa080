"""What commands in the sandbox do to a repository: everyday git works, and no history is lost."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.git_history import GIT, git, make_history, reached, refs
from tests.support.sandboxed_project import sandboxed_project
from weft.workspace import LocalRunner, ProcessCommand, RunResult
from weft.workspace.git_records import GitRecords, loose_object
from weft.workspace.sandbox.overlay_plan import ApplyStep, FoundEntry, identity
from weft.workspace.sandbox.repository.repository_change import RepositoryChange

pytestmark = pytest.mark.anyio

ATTACKS = [
    "rm -rf .git/objects/pack",
    "rm -f .git/objects/pack/*.idx",
    "rm -rf .git/objects/[0-9a-f][0-9a-f]",
    "for f in .git/objects/pack/*.pack; do chmod 600 $f; echo junk > $f; done",
    "for f in .git/objects/??/*; do chmod 600 $f; : > $f; done",
    "p=$(ls .git/objects/pack/*.pack); chmod 600 $p; "
    "printf X | dd of=$p bs=1 seek=40 conv=notrunc status=none",
    "cd .git/objects/pack && p=$(basename *.pack .pack) && chmod 600 * && "
    "printf X | dd of=$p.pack bs=1 seek=40 conv=notrunc status=none && "
    "mv $p.pack pack-$(printf '%040d' 1).pack && mv $p.idx pack-$(printf '%040d' 1).idx",
    "chmod 600 .git/objects/info/commit-graph; : > .git/objects/info/commit-graph",
    "rm -rf .git/refs/heads/* .git/packed-refs .git/logs",
    "rm -rf .git/logs .git/refs/heads/apart",
    "echo junk > .git/HEAD",
    "echo 1234567890123456789012345678901234567890 > .git/refs/heads/main",
    ": > .git/refs/heads/main",
    "git branch -D apart",
    "git update-ref -d refs/heads/apart",
    "git reflog expire --expire=now --expire-unreachable=now --all",
    "git reflog expire --expire=now --expire-unreachable=now --all; git gc -q --prune=now",
    "git reflog expire --expire=now --expire-unreachable=now HEAD main apart",
    "find .git/logs -type f ! -name stash -delete",
    "git checkout -q --orphan new; git branch -D main apart merged; "
    "find .git/logs -type f ! -name stash -delete",
    "git update-ref -d refs/stash; git gc -q --prune=now",
    "git stash clear",
    "rm .git/refs/stash",
    "f=$(ls .git/objects/??/* | head -1); chmod 600 $f; echo x >> $f",
    "git stash drop -q; git stash drop -q",
    "git rev-parse HEAD > .git/shallow",
    "git rev-parse HEAD > .git/shallow; git gc -q --prune=now",
    "git checkout -q --orphan new; git branch -D main apart merged; rm -rf .git/logs",
    "git checkout -q --orphan new; git branch -D main; rm .git/logs/refs/heads/main",
    "git rev-parse main~1 > .git/refs/heads/main; git rev-parse main > .git/refs/heads/apart; "
    "git rev-parse HEAD > .git/ORIG_HEAD; rm -rf .git/refs/heads/apart; git pack-refs --all",
    "rm -rf .git/objects; ln -s /tmp .git/objects",
    "mkdir -p /tmp/o; cp -r .git/objects/. /tmp/o; echo /tmp/o > .git/objects/info/alternates; "
    "rm -rf .git/objects/pack/* .git/objects/??",
]


@pytest.mark.parametrize("attack", ATTACKS)
async def test_a_command_that_would_lose_history_changes_nothing_in_the_repository(
    tmp_path: Path, attack: str
) -> None:
    async with sandboxed_project(tmp_path) as there:
        make_history(there.project)
        before, named = reached(there.project), refs(there.project)
        result = await there.shell(f"{attack}; echo beside > {there.project}/beside")
        assert refs(there.project) == named
        assert reached(there.project) == before
        git(there.project, "fsck", "--full", "--strict")
        assert result.is_held_back
        assert "- .git: " in result.remarks[-1]
        assert "could not be checked" not in result.remarks[-1]
        assert "outside_sandbox asks" in result.remarks[-1]
        assert there.read("beside") == "beside\n"


EVERYDAY = [
    f"echo 1 > x && git add x && {GIT} commit -qm x",
    f"{GIT} commit -q --amend -m amended",
    f"git checkout -q apart && {GIT} rebase -q main && git checkout -q main",
    f"{GIT} merge -q apart -m merge && git branch -d apart",
    "git branch -d merged",
    "git branch -m apart away",
    "git tag -d v1",
    "echo 2 > one1 && git stash -q && git stash pop -q",
    "git stash pop -q",
    "git gc -q",
    "git gc -q --aggressive",
    "git repack -adq && git pack-refs --all && git prune-packed",
    "git reset -q --hard HEAD~1",
    "git checkout -q -b new && git checkout -q main",
    f"git checkout -q --detach && {GIT} commit -q --allow-empty -m alone && git checkout -q main",
    f"git checkout -q --orphan empty; {GIT} commit -qm root",
    f"git worktree add -q -b side side && cd side && {GIT} commit -q --allow-empty -m s && cd .. "
    "&& git worktree remove side",
    "git clone -q . /tmp/clone && git remote add o /tmp/clone && git fetch -q o && "
    "git -C /tmp/clone branch -q more && git fetch -q o && git -C /tmp/clone branch -q -D more && "
    "git fetch -q --prune o",
    "git bisect start HEAD HEAD~2 >/dev/null; git bisect reset >/dev/null",
    f"{GIT} cherry-pick apart >/dev/null && {GIT} revert --no-edit HEAD >/dev/null",
]


@pytest.mark.parametrize("line", EVERYDAY)
async def test_everyday_git_reaches_the_project_without_a_question(
    tmp_path: Path, line: str
) -> None:
    async with sandboxed_project(tmp_path) as there:
        make_history(there.project)
        there.write(".git/config", (there.project / ".git/config").read_text() + _USER)
        result = await there.shell(f"set -e; {line}; git for-each-ref; git rev-parse HEAD")
        assert result.exit_code == 0, result.output
        assert not result.is_held_back, result.remarks
        inside = result.output.strip().splitlines()
        assert git(there.project, "rev-parse", "HEAD") == inside[-1]
        git(there.project, "fsck", "--full", "--strict")
        assert reached(there.project)


_USER = "[user]\n\tname = a\n\temail = a@b.c\n"


async def test_a_commit_asks_git_nothing(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        make_history(there.project)
        # A git that we would start ourselves is not found any more; that of the sandbox is.
        there.local.which = _finds_nothing  # type: ignore[method-assign]  # one of two runners
        line = f"echo 1 > x; git add x; {GIT} commit -qm x; {GIT} commit -q --amend -m y"
        result = await there.shell(line)
        assert not result.is_held_back, result.remarks
        assert git(there.project, "log", "-1", "--format=%s") == "y"


async def test_without_a_git_to_ask_a_branch_is_not_removed(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        make_history(there.project)
        there.local.which = _finds_nothing  # type: ignore[method-assign]  # one of two runners
        named = refs(there.project)
        result = await there.shell("git branch -D apart")
        assert "could not be checked (there is no git on this machine)" in result.remarks[-1]
        assert refs(there.project) == named


async def test_a_prune_takes_what_is_old_and_unreachable_and_nothing_else(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        make_history(there.project)
        garbage = git(there.project, "commit-tree", "-m", "x", "HEAD^{tree}")
        _age_objects(there.project, 20)
        before = reached(there.project)
        result = await there.shell("git gc -q --prune=now")
        assert not result.is_held_back, result.remarks
        assert reached(there.project) == before
        assert garbage not in git(there.project, "cat-file", "--batch-all-objects", "--batch-check")


async def test_old_objects_that_are_reachable_do_not_go(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        make_history(there.project)
        _age_objects(there.project, 20)
        before = reached(there.project)
        tree = git(there.project, "rev-parse", "HEAD^{tree}")
        result = await there.shell(f"rm -f .git/objects/{tree[:2]}/{tree[2:]}")
        assert "it removes objects of the history" in result.remarks[-1]
        assert reached(there.project) == before


@pytest.mark.parametrize("where", ["", "side"])
@pytest.mark.parametrize("and_then", ["", "; git reset -q --hard"])
async def test_what_is_staged_does_not_go_however_old_it_is(
    tmp_path: Path, where: str, and_then: str
) -> None:
    async with sandboxed_project(tmp_path) as there:
        make_history(there.project)
        git(there.project, "worktree", "add", "-q", "--detach", "side")
        tree = there.project / where
        (tree / "staged").write_text("staged once\n")
        git(tree, "add", "staged")
        (tree / "staged").write_text("later\n")
        _age_objects(there.project, 20)
        result = await there.shell(
            f"cd ./{where}; o=$(git rev-parse :staged); d=$(git rev-parse --git-common-dir); "
            f"rm -f $d/objects/${{o:0:2}}/${{o:2}}{and_then}"
        )
        assert "- .git: it removes what is staged" in result.remarks[-1]
        assert git(tree, "cat-file", "blob", ":staged") == "staged once"


async def test_reflog_entries_that_git_would_forget_may_go(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        make_history(there.project)
        for log in (there.project / ".git/logs").rglob("*"):
            if log.is_file() and log.name != "stash":
                now = str(int(time.time()))[:6]
                log.write_text(log.read_text().replace(f"> {now}", "> 150000"))
        result = await there.shell("git reflog expire --expire-unreachable=30.days --all")
        assert not result.is_held_back, result.remarks


async def test_a_removed_branch_and_a_dropped_stash_are_handed_to_the_history(
    tmp_path: Path,
) -> None:
    async with sandboxed_project(tmp_path) as there:
        make_history(there.project)
        named = refs(there.project)
        stash = (there.project / ".git/logs/refs/stash").read_bytes()
        result = await there.shell("git branch -d merged; git stash drop -q")
        changes = {change.path: change for change in result.changes or ()}
        lost = changes[".git/refs/heads/merged"]
        assert (lost.action, lost.data_before) == (
            "deleted",
            f"{named['refs/heads/merged']}\n".encode(),
        )
        assert changes[".git/logs/refs/stash"].data_before == stash
        assert f"git stash store {named['refs/stash']}" in result.remarks[0]


async def test_a_repository_in_the_project_and_that_of_a_submodule_are_guarded_too(
    tmp_path: Path,
) -> None:
    async with sandboxed_project(tmp_path) as there:
        for name in ("inner", ".git/modules/sub"):
            (there.project / name).mkdir(parents=True)
        git(there.project, "init", "-q", "-b", "main", ".")
        make_history(there.project / "inner")
        os.rename(there.project / "inner/.git", there.project / ".git/modules/sub/x")
        make_history(there.project / "inner")
        result = await there.shell("rm -rf inner/.git/objects/pack .git/modules/sub/x/objects/pack")
        assert "- inner/.git: " in result.remarks[-1]
        assert "- .git/modules/sub/x: " in result.remarks[-1]
        git(there.project / "inner", "fsck", "--full")


@pytest.mark.parametrize(
    "line",
    [
        "rm -rf store/objects/pack store/objects/??",
        "rm -rf store",
        "git --git-dir=store update-ref -d refs/heads/apart; rm -rf store/logs",
        ": > store/HEAD",
    ],
)
async def test_a_bare_repository_of_any_name_is_guarded(tmp_path: Path, line: str) -> None:
    async with sandboxed_project(tmp_path) as there:
        make_history(there.project)
        git(there.project, "clone", "-q", "--mirror", "--no-hardlinks", ".", "store")
        named, before = refs(there.project / "store"), reached(there.project / "store")
        result = await there.shell(line)
        assert "- store: " in result.remarks[-1], result.remarks
        assert refs(there.project / "store") == named
        assert reached(there.project / "store") == before
        result = await there.shell(
            "git --git-dir=store gc -q; git push -q store main:new; rm -rf new.git; "
            "git init -q --bare new.git; rm -rf new.git"
        )
        assert not result.is_held_back, result.remarks
        assert "refs/heads/new" in refs(there.project / "store")


@pytest.mark.parametrize(
    "line",
    [
        "rm -rf objects/pack objects/??",
        "rm -rf *",
        "git --git-dir=. update-ref -d refs/heads/apart; rm -rf logs",
        "rm packed-refs",
        ": > HEAD",
        "git --git-dir=. rev-parse HEAD > shallow",
    ],
)
async def test_a_project_that_is_a_bare_repository_is_guarded(tmp_path: Path, line: str) -> None:
    origin = tmp_path / "origin"
    origin.mkdir()
    make_history(origin)
    git(tmp_path, "clone", "-q", "--mirror", "--no-hardlinks", "origin", "project")
    async with sandboxed_project(tmp_path) as there:
        named, before = refs(there.project), reached(there.project)
        result = await there.shell(line)
        assert "- .: " in result.remarks[-1], result.remarks
        assert "could not be checked" not in result.remarks[-1]
        assert refs(there.project) == named
        assert reached(there.project) == before
        result = await there.shell(
            "mkdir -p more/logs; export GIT_DIR=.; git gc -q; git branch new main; "
            "git branch -D merged; echo 1 > more/logs/x; echo 2 > beside"
        )
        assert not result.is_held_back, result.remarks
        assert "refs/heads/new" in refs(there.project)
        assert there.read("beside") == "2\n"
        [lost] = [each.path for each in result.changes or () if "merged" in each.path]
        assert lost == "refs/heads/merged"


async def test_a_repository_with_reftables_is_left_as_it_is_and_the_reason_said(
    tmp_path: Path,
) -> None:
    async with sandboxed_project(tmp_path) as there:
        make_history(there.project)
        there.write(".git/reftable/tables.list", "one\n")
        result = await there.shell("echo two > .git/reftable/tables.list; echo 1 > beside")
        assert (
            "- .git: its refs are stored as reftables, which Weft cannot check"
            in (result.remarks[-1])
        )
        assert "outside_sandbox asks" in result.remarks[-1]
        assert there.read(".git/reftable/tables.list") == "one\n"
        assert there.read("beside") == "1\n"


async def test_what_a_gc_replaces_is_kept_for_a_while(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        make_history(there.project)
        packs = {path.name for path in (there.project / ".git/objects/pack").iterdir()}
        result = await there.shell("git gc -q")
        assert not result.is_held_back, result.remarks
        kept = {path.name for path in (tmp_path / "sandbox/kept").rglob("*") if path.is_file()}
        assert packs & kept
        assert packs - kept <= {path.name for path in (there.project / ".git").rglob("*.*")} | {
            name for name in packs if not name.endswith((".pack", ".idx"))
        }


async def test_a_new_repository_is_the_commands_own(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        line = f"git init -q . && {GIT} commit -q --allow-empty -m x && rm -rf .git/logs"
        result = await there.shell(line)
        assert not result.is_held_back, result.remarks
        assert git(there.project, "log", "--format=%s") == "x"


def _finds_nothing(program: str, *, not_below: str = "") -> str | None:
    return None


def _age_objects(folder: Path, days: int) -> None:
    then = time.time() - days * 24 * 3600
    for path in (folder / ".git/objects").rglob("*"):
        if path.is_file():
            os.utime(path, (then, then))


class CountingRunner(LocalRunner):
    """A runner that counts what it runs, and how many at once."""

    def __init__(self) -> None:
        super().__init__({"PATH": os.environ["PATH"]})
        self.started: list[str] = []
        self.most = 0
        self._running = 0

    async def run(
        self, command: ProcessCommand, on_output: Callable[[str], None] | None = None
    ) -> RunResult:
        self.started.append(" ".join(command.argv))
        self._running += 1
        self.most = max(self.most, self._running)
        try:
            return await super().run(command, on_output)
        finally:
            self._running -= 1


async def test_git_is_asked_everything_about_a_change_at_once(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        make_history(there.project)
        counting = CountingRunner()
        there.local.run = counting.run  # type: ignore[method-assign]  # one of two runners
        result = await there.shell("git gc -q; git commit-graph write --reachable")
        assert not result.is_held_back, result.remarks
        asked = [line.rpartition(" advice.detachedHead=false ")[2] for line in counting.started]
        assert sorted(line.split()[0] for line in asked) == ["commit-graph", "index-pack"]
        assert counting.most == 2


async def test_what_git_is_shown_after_a_gc_does_not_grow_with_the_objects_that_are_gone(
    tmp_path: Path,
) -> None:
    make_history(tmp_path)
    for number in range(100):
        (tmp_path / f"{number}").write_text(str(number))
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "many")
    folder = f"{tmp_path}/.git"
    loose = {name for name in GitRecords(folder).names("objects") if loose_object(name)}
    change = RepositoryChange(
        GitRecords(folder), GitRecords(folder, f"{tmp_path}/over", (), loose), changed=loose
    )
    change.make_view(f"{tmp_path}/view")
    assert sorted(os.listdir(tmp_path / "view/objects")) == ["info", "pack"]


def test_what_the_steps_know_of_removed_objects_is_not_looked_up_again(tmp_path: Path) -> None:
    """A `git gc` removes thousands of files; each look at one is a system call."""
    make_history(tmp_path)
    _age_objects(tmp_path, 40)
    loose = {name for name in GitRecords(f"{tmp_path}/.git").names("objects") if loose_object(name)}
    change = RepositoryChange.of_steps(
        str(tmp_path), f"{tmp_path}/upper", ".git", [_removal(tmp_path, name) for name in loose]
    )
    for name in loose:
        (tmp_path / ".git" / name).unlink()
    # A file that cannot be looked at counts as new; the steps say that these are old.
    assert change.why_not() == "it removes commits that refs or reflogs name"


def test_a_folder_that_a_gc_took_away_is_not_listed(tmp_path: Path) -> None:
    make_history(tmp_path)
    loose = {name for name in GitRecords(f"{tmp_path}/.git").names("objects") if loose_object(name)}
    folders = {name.rpartition("/")[0] for name in loose}
    change = RepositoryChange(
        GitRecords(f"{tmp_path}/.git"),
        GitRecords(f"{tmp_path}/.git", f"{tmp_path}/upper", (), loose),
        changed=loose,
        unmade=folders,
    )
    listed: list[str] = []
    is_over = False

    def watch(event: str, args: tuple[object, ...]) -> None:
        if event == "os.listdir" and not is_over:
            listed.append(str(args[0]))

    sys.addaudithook(watch)
    change.make_view(f"{tmp_path}/view")
    is_over = True
    assert len(folders) > 5
    assert sorted(os.path.basename(each) for each in listed) == ["objects"]


def _removal(root: Path, name: str) -> ApplyStep:
    about = os.lstat(root / ".git" / name)
    before = FoundEntry(kind="file", mode=about.st_mode, identity=identity(about))
    return ApplyStep(path=f".git/{name}", do="remove", before=before)
