"""Commands that make a repository lie: what looks like git's own work and is not, also in steps."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest

from tests.support.git_history import (
    EVERY_OBJECT,
    FALSE_PACK,
    GIT,
    git,
    make_history,
    reached,
    refs,
)
from tests.support.sandboxed_project import SandboxedProject, sandboxed_project
from weft.permissions import is_git_record, is_protected

pytestmark = pytest.mark.anyio

_REMOVE = (
    "rm -rf .git/objects/??; find .git/objects/pack -type f ! -name '*00001.*' -delete; "
    "rm -rf .git/objects/info/commit-graph*"
)
_LOOSE_JUNK = (
    f"for o in $({EVERY_OBJECT}); do f=.git/objects/${{o:0:2}}/${{o:2}}; mkdir -p $(dirname $f); "
    "[ -e $f ] || echo junk > $f; done"
)
_AGE_LOGS = (
    "sed -i -E 's/> [0-9]{10}/> 1500000000/' $(find .git/logs -type f ! -name stash); "
    "find .git/objects -type f -exec touch -d '40 days ago' {} +"
)

FORGERIES = [
    (f"{FALSE_PACK}{EVERY_OBJECT} | python3 /tmp/false_pack.py $P sums",),
    (f"{FALSE_PACK}{EVERY_OBJECT} | python3 /tmp/false_pack.py $P junk", _REMOVE),
    (f"{FALSE_PACK}{EVERY_OBJECT} | python3 /tmp/false_pack.py $P sums", _REMOVE),
    (f"{FALSE_PACK}{EVERY_OBJECT} | python3 /tmp/false_pack.py $P sums; {_REMOVE}",),
    (_LOOSE_JUNK, "rm -f .git/objects/pack/*"),
    (_AGE_LOGS, "find .git/logs -type f ! -name stash -delete"),
    (
        _AGE_LOGS,
        "git reflog expire --expire=30.days --expire-unreachable=30.days HEAD main apart",
        "git gc -q --prune=now",
    ),
    ("git symbolic-ref refs/heads/apart refs/heads/nowhere",),
    (
        "git symbolic-ref refs/heads/apart refs/heads/merged; "
        "git symbolic-ref refs/heads/merged refs/heads/apart",
    ),
    (
        "mkdir -p .git/objects/00; echo junk > .git/objects/00/$(printf '%038d' 1); "
        "printf '%040d\\n' 1 > .git/refs/heads/apart",
    ),
    ("echo new > new; git hash-object -w new > .git/refs/heads/apart",),
    ("git rev-parse HEAD:one0 > .git/refs/heads/apart",),
    (
        "printf 'tree %040d\\nparent %s\\nauthor a <a> 1 +0000\\ncommitter a <a> 1 +0000\\n\\n' 1 "
        "$(git rev-parse HEAD) | git hash-object -t commit -w --literally --stdin "
        "> .git/refs/heads/main",
    ),
    ("git pack-refs --all", "echo junk > .git/packed-refs"),
    ("git pack-refs --all", "truncate -s -1 .git/packed-refs"),
    ("git pack-refs --all", "sed -i 's/$/\\r/' .git/packed-refs"),
    (
        "git pack-refs --all",
        "(head -1 .git/packed-refs; grep -v '^[#^]' .git/packed-refs | tac) > /tmp/p; "
        "cat /tmp/p > .git/packed-refs",
    ),
    ("mv .git/packed-refs /tmp/p; ln -s /tmp/p .git/packed-refs",),
    ("rm -f .git/packed-refs; mkdir .git/packed-refs",),
    ("echo $PWD/elsewhere > .git/objects/info/alternates",),
    (
        "git repack -dq; git multi-pack-index write",
        "p=$(ls .git/objects/pack/*.pack | head -1); cp $p ${p%.pack}.idx /tmp; "
        "git unpack-objects -q < /tmp/$(basename $p); rm -f ${p%.pack}.*",
    ),
    (
        "mkdir .git/rebase-merge; echo 'exec touch /tmp/x' > .git/rebase-merge/git-rebase-todo; "
        "git rev-parse HEAD | tee .git/rebase-merge/onto > .git/rebase-merge/orig-head",
    ),
    ("git replace -f HEAD HEAD~1",),
    ("git replace --graft HEAD",),
    ("git replace -f HEAD:one0 $(echo other | git hash-object -w --stdin)",),
    ("cp .git/refs/heads/apart '.git/refs/heads/a..b'",),
    ("cp .git/refs/heads/apart '.git/refs/heads/a b'",),
    (
        "printf 'author a <a> 1 +0000\\n\\nx' | git hash-object -t commit -w --literally --stdin "
        "> .git/refs/heads/apart",
    ),
]


def _judged(there: SandboxedProject) -> None:
    """Let the project have the rules of a session."""
    there.forbids = lambda path: (  # type: ignore[method-assign]  # what a session answers
        "protected" if is_protected(path) and not is_git_record(path) else ""
    )


@pytest.mark.parametrize("lines", FORGERIES)
async def test_a_forgery_does_not_reach_the_repository(
    tmp_path: Path, lines: tuple[str, ...]
) -> None:
    async with sandboxed_project(tmp_path) as there:
        make_history(there.project)
        before, named = reached(there.project), refs(there.project)
        remarks = [remark for line in lines for remark in (await there.shell(line)).remarks]
        assert any("- .git: " in remark for remark in remarks), remarks
        assert reached(there.project) == before
        assert refs(there.project) == named
        git(there.project, "fsck", "--full")


async def test_a_large_pack_that_lies_is_found_out_by_some_of_its_objects(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        make_history(there.project)
        for number in range(8):
            there.write(f"large{number}", os.urandom(64 * 1024))
        git(there.project, "add", ".")
        git(there.project, "commit", "-qm", "large")
        git(there.project, "gc", "-q")
        before = reached(there.project)
        # The length of a stored block decides the size: one junk object is as large as all.
        line = FALSE_PACK.replace('zlib.compress(b"x")', 'zlib.compress(b"x" * 16, 0)').replace(
            "body, places =", "import os; body, places ="
        )
        padded = line.replace(
            "made = hashlib.sha1(body).digest()",
            "body += os.urandom(200_000)\nmade = hashlib.sha1(body).digest()",
        )
        result = await there.shell(
            f"{padded}{EVERY_OBJECT} | python3 /tmp/false_pack.py $P sums; {_REMOVE}"
        )
        assert "it leaves a damaged pack" in result.remarks[-1]
        assert reached(there.project) == before
        result = await there.shell("git gc -q --aggressive --prune=now")
        assert not result.is_held_back, result.remarks
        assert reached(there.project) == before


async def test_a_commit_graph_that_lies_does_not_reach_the_repository(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        make_history(there.project)
        git(there.project, "commit-graph", "write", "--reachable")
        before = git(there.project, "rev-list", "main")
        # A commit without parents has 0x70000000 in the place of the first one.
        line = (
            "chmod 600 .git/objects/info/commit-graph; python3 - <<'END'\n"
            "import hashlib, struct, subprocess\n"
            "path = '.git/objects/info/commit-graph'\n"
            "data = bytearray(open(path, 'rb').read()[:-20])\n"
            "toc = {bytes(data[8 + 12 * i : 12 + 12 * i]):"
            " struct.unpack('>Q', data[12 + 12 * i : 20 + 12 * i])[0] for i in range(data[6])}\n"
            "count = struct.unpack('>I', data[toc[b'OIDF'] + 1020 : toc[b'OIDF'] + 1024])[0]\n"
            "for i in range(count):\n"
            "    at = toc[b'CDAT'] + 36 * i + 20\n"
            "    data[at : at + 8] = struct.pack('>II', 0x70000000, 0x70000000)\n"
            "open(path, 'wb').write(bytes(data) + hashlib.sha1(data).digest())\n"
            "END"
        )
        result = await there.shell(line)
        assert "commit-graph that does not fit" in result.remarks[-1], result
        assert git(there.project, "rev-list", "main") == before


async def test_a_bitmap_stays_out_and_the_rest_of_the_repack_does_not(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        make_history(there.project)
        before = reached(there.project)
        result = await there.shell("git repack -adbq && ls .git/objects/pack/*.bitmap")
        assert result.exit_code == 0, result.output
        assert not result.is_held_back, result.remarks
        assert not list(there.project.glob(".git/objects/pack/*.bitmap"))
        assert reached(there.project) == before
        git(there.project, "fsck", "--full")


async def test_no_object_looks_older_than_it_is(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        make_history(there.project)
        result = await there.shell("find .git/objects -type f -exec touch -d '40 days ago' {} +")
        assert not result.is_held_back, result.remarks
        oldest = min(path.stat().st_mtime for path in _object_files(there.project))
        assert time.time() - oldest < 3600


async def test_git_that_only_renews_the_time_of_a_pack_is_not_held_up(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        make_history(there.project)
        _judged(there)
        for path in _object_files(there.project):
            os.utime(path, (1, 1))
        # The content of `one1` is in a pack; git does not store it again, and renews the pack.
        line = f"cp one1 copy; git add copy; {GIT} commit -qm copy"
        result = await there.shell(line)
        assert not result.is_held_back, result.remarks
        assert git(there.project, "log", "-1", "--format=%s") == "copy"


@pytest.mark.parametrize(
    "lines",
    [
        ("git gc -q",),
        ("git repack -adq; git update-server-info",),
        ("git update-index --split-index", "git status; echo 1 > x; git add x"),
        ("git bisect start HEAD HEAD~2", "git bisect good", "git bisect reset"),
        ("echo 1 > one0; git merge -q --autostash apart -m m",),
        ("git branch -q --track follower main", "git branch -qm follower f2; git branch -qd f2"),
        ("git commit-graph write --reachable", f"{GIT} commit -q --allow-empty -m x"),
        ("git commit-graph write --reachable --split", "git commit-graph write --reachable"),
    ],
)
async def test_what_git_keeps_between_two_commands_reaches_the_project(
    tmp_path: Path, lines: tuple[str, ...]
) -> None:
    async with sandboxed_project(tmp_path) as there:
        make_history(there.project)
        there.write(
            ".git/config",
            (there.project / ".git/config").read_text() + "[user]\n\tname=a\n\temail=a@b.c\n",
        )
        _judged(there)
        for line in lines:
            result = await there.shell(line)
            assert result.exit_code == 0, result.output
            assert not result.is_held_back, result.remarks
        git(there.project, "status")
        git(there.project, "fsck", "--full")


SET_UP = [
    ("git worktree add -q -b side side", "cd side && git status && git rev-parse side"),
    ("git worktree add -q --detach deep/side", "git worktree remove deep/side"),
    ("git worktree add -q side apart", "git worktree lock --reason x side", "git worktree list"),
    ("git worktree add -q side apart", "rm -rf side; git worktree prune"),
    ("git init -q sub", f"cd sub && echo 1 > a && git add a && {GIT} commit -qm x"),
    (f"git init -q -b x sub && cd sub && echo 1 > a && git add a && {GIT} commit -qm x",),
    (
        f"mkdir d; echo 1 > d/f; git add d; {GIT} commit -qm d",
        "git sparse-checkout set d",
        "git sparse-checkout disable",
    ),
    ("git sparse-checkout init --no-cone; git sparse-checkout set '/one*'", "git checkout -q ."),
    (
        "git clone -q --no-hardlinks . copy",
        f"cd copy && git pull -q && echo 1 > a && git add a && {GIT} commit -qm x",
        "git clone -q --no-local --depth=1 -o up --branch v1 . other",
    ),
    ("git clone -q --bare --no-hardlinks . bare.git", "git clone -q --no-hardlinks bare.git copy"),
    ("git init -q sub && git -C sub remote add origin https://example.com/x.git",),
    ("git init -q sub && git -C sub remote add origin git@example.com:a/b.git",),
    (
        "git worktree add -q side apart",
        "mv side deep && git worktree repair deep && git -C deep status",
        "cd deep && git switch -q -c more",
        "git worktree remove deep",
    ),
]


@pytest.mark.parametrize("lines", SET_UP)
async def test_what_git_sets_up_reaches_the_project(tmp_path: Path, lines: tuple[str, ...]) -> None:
    async with sandboxed_project(tmp_path) as there:
        make_history(there.project)
        _judged(there)
        for line in lines:
            result = await there.shell(line)
            assert result.exit_code == 0, result.output
            assert not result.is_held_back, result.remarks
            assert not result.remarks
        git(there.project, "status")
        git(there.project, "worktree", "list")
        git(there.project, "fsck", "--full")


@pytest.mark.parametrize(
    ("line", "said", "instead"),
    [
        ("git clone -q . copy", "`git clone --no-hardlinks`", "git clone -q --no-hardlinks . copy"),
        ("git worktree move side b", "`mv OLD NEW && git", "mv side b && git worktree repair b"),
        ('python3 -c \'import os; os.rename("a", "b")\'', "`mv` copies it", "mv a b"),
    ],
)
async def test_what_an_overlay_cannot_do_is_said_with_what_to_do_instead(
    tmp_path: Path, line: str, said: str, instead: str
) -> None:
    async with sandboxed_project(tmp_path) as there:
        make_history(there.project)
        git(there.project, "worktree", "add", "-q", "side", "apart")
        there.write("a/file", "text")
        before = reached(there.project)
        _judged(there)
        result = await there.shell(line)
        assert result.exit_code
        assert said in result.remarks[-1]
        result = await there.shell(instead)
        assert (result.exit_code, result.remarks) == (0, ()), result
        assert reached(there.project) >= before


SET_TRAPS = [
    ("git init -q sub; git -C sub config core.fsmonitor ./x", "sub/.git/config"),
    ("git init -q sub; echo x > sub/.git/hooks/pre-commit", "sub/.git/hooks/pre-commit"),
    ("git init -q sub; ln -s /tmp sub/.git/hooks/x.sample", "sub/.git/hooks/x.sample"),
    ("git init -q sub; echo /tmp > sub/.git/commondir", "sub/.git/commondir"),
    ("git init -q sub; echo '* filter=x' > sub/.git/info/attributes", "sub/.git/info/attributes"),
    (
        "git worktree add -q side apart; echo /tmp > .git/worktrees/side/commondir",
        ".git/worktrees/side/commondir",
    ),
    ("git worktree add -q side apart; echo 'gitdir: /tmp/x' > side/.git", "side/.git"),
    ('mkdir side; echo "gitdir: $PWD/.git/worktrees/../../sub" > side/.git', "side/.git"),
    ('mkdir side; echo "gitdir: $PWD/.git/worktrees/none" > side/.git', "side/.git"),
    (
        "git worktree add -q side apart; echo /tmp/x/.git > .git/worktrees/side/gitdir",
        ".git/worktrees/side/gitdir",
    ),
    (
        "git sparse-checkout init; git config --worktree core.fsmonitor ./x",
        ".git/config.worktree",
    ),
    (
        "git init -q sub; for i in $(seq 9000); do echo '[index]'; done >> sub/.git/config; "
        "echo '[core] fsmonitor=x' >> sub/.git/config",
        "sub/.git/config",
    ),
    *(
        (f"git clone -q --no-hardlinks . sub; git -C sub config {setting}", "sub/.git/config")
        for setting in (
            "remote.origin.url 'ext::sh -c x'",
            "remote.origin.url /elsewhere",
            "remote.origin.url $PWD/../elsewhere",
            "remote.origin.url ssh://-oProxyCommand=x/y",
            "remote.origin.url ./-x",
            "remote.origin.url 'https://example.com/x y'",
            "remote.origin.uploadpack ./x",
            "remote.origin.vcs x",
            "remote.origin.promisor true",
            "remote.origin.fetch '+refs/*:refs/*'",
            "branch.main.remote ./x",
            "url./.insteadOf https://example.com/",
        )
    ),
    ("git config remote.origin.url https://example.com/x", ".git/config"),
    ("git config core.worktree /tmp", ".git/config"),
    ("git config core.bare true", ".git/config"),
]


@pytest.mark.parametrize(("line", "path"), SET_TRAPS)
async def test_what_programs_would_obey_later_is_held_back(
    tmp_path: Path, line: str, path: str
) -> None:
    async with sandboxed_project(tmp_path) as there:
        make_history(there.project)
        before = there.read(".git/config")
        _judged(there)
        result = await there.shell(line)
        assert f"- {path}: protected" in "\n".join(result.remarks)
        assert not os.path.lexists(there.project / path) or path == ".git/config"
        assert path != ".git/config" or there.read(path) == before


@pytest.mark.parametrize(
    ("then", "refused"),
    [
        ("", ["two/.git", ".git/worktrees/side/gitdir"]),
        # The place is free; of two new ones, the records go to the one that they name.
        ("; mv side three", ["three/.git"]),
    ],
)
async def test_records_of_a_work_tree_that_is_there_are_not_given_to_another(
    tmp_path: Path, then: str, refused: list[str]
) -> None:
    async with sandboxed_project(tmp_path) as there:
        make_history(there.project)
        git(there.project, "worktree", "add", "-q", "side", "apart")
        before = git(there.project, "worktree", "list")
        _judged(there)
        line = "mkdir two; cp side/.git two; echo $PWD/two/.git > .git/worktrees/side/gitdir"
        result = await there.shell(f"{line}{then}")
        said = re.findall(r"^- (.+): protected$", "\n".join(result.remarks), re.MULTILINE)
        assert sorted(said) == sorted(refused)
        moved = before.replace("/side", "/two") if then else before
        assert git(there.project, "worktree", "list").split() == moved.split()


async def test_settings_of_a_repository_that_programs_obey_are_held_back(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        make_history(there.project)
        before = there.read(".git/config")
        _judged(there)
        for line in ("git config core.fsmonitor ./x", "git config branch.main.remote ./elsewhere"):
            result = await there.shell(line)
            assert "- .git/config: protected" in result.remarks[-1]
            assert there.read(".git/config") == before
        there.forbidden[".git/config"] = "a rule of the user"
        result = await there.shell("git branch -q --track follower main")
        assert "- .git/config: a rule of the user" in result.remarks[-1]


async def test_a_shallow_repository_keeps_its_end_until_the_rest_is_there(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        source, clone = there.project / "source", there.project / "clone"
        source.mkdir()
        make_history(source)
        git(tmp_path, "clone", "-q", "--depth=1", f"file://{source}", str(clone))
        before = git(clone, "rev-list", "HEAD")
        result = await there.shell("rm clone/.git/shallow")
        assert ".git/shallow" in result.remarks[-1]
        assert git(clone, "rev-list", "HEAD") == before
        result = await there.shell("cd clone && git fetch -q --unshallow")
        assert result.exit_code == 0, result.output
        assert not result.is_held_back, result.remarks
        assert len(git(clone, "rev-list", "HEAD").split()) == 3


@pytest.mark.parametrize("line", ["rm HEAD", "git pack-refs --all; rm -rf refs", "rm -rf refs"])
async def test_the_git_directory_of_a_submodule_keeps_what_makes_it_one(
    tmp_path: Path, line: str
) -> None:
    async with sandboxed_project(tmp_path) as there:
        git(there.project, "init", "-q", ".")
        (there.project / "work").mkdir()
        make_history(there.project / "work")
        (there.project / ".git/modules").mkdir()
        os.rename(there.project / "work/.git", there.project / ".git/modules/sub")
        result = await there.shell(f"cd .git/modules/sub && {line}")
        assert "- .git/modules/sub: " in result.remarks[-1]
        git(there.project / ".git/modules/sub", "--git-dir=.", "log", "-1", "main")


def _object_files(folder: Path) -> list[Path]:
    found = [*folder.glob(".git/objects/??/*"), *folder.glob(".git/objects/pack/*.pack")]
    return [path for path in found if path.is_file()]


async def test_git_that_writes_the_settings_of_a_submodule_again_is_not_held_up(
    tmp_path: Path,
) -> None:
    async with sandboxed_project(tmp_path) as there:
        make_history(there.project)
        other = tmp_path / "other"
        other.mkdir()
        make_history(other)
        git(
            there.project,
            *("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "sub"),
        )
        git(there.project, "commit", "-qm", "sub")
        _judged(there)
        line = "cd sub && git checkout -q HEAD~1 && cd .. && git submodule update"
        result = await there.shell(line)
        assert result.exit_code == 0, result.output
        assert not result.is_held_back, result.remarks
        result = await there.shell("git -C sub config core.fsmonitor ./x")
        assert "- .git/modules/sub/config: protected" in result.remarks[-1]


async def test_locks_that_a_command_leaves_behind_do_not_reach_the_project(tmp_path: Path) -> None:
    locks = ("index.lock", "HEAD.lock", "packed-refs.lock", "refs/heads/main.lock")
    async with sandboxed_project(tmp_path) as there:
        make_history(there.project)
        there.write(".git/shallow.lock", "")
        await there.shell(f"cd .git; touch {' '.join(locks)}; rm shallow.lock; cd ..; touch x.lock")
        assert there.read("x.lock") == ""
        assert not [*(there.project / ".git").rglob("*.lock")]
