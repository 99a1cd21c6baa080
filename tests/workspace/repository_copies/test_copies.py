"""A repository that is made again from its record is the same to git, and no program that one names
runs on the way.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from tests.support.hostile_git import (
    SMALL,
    TRAPS,
    commit_all,
    drop_object,
    git,
    git_version,
    make_bait,
    make_repository,
)
from weft.errors import FinalToolError, ToolError
from weft.ids import BlobId
from weft.workspace import LocalRunner, find_repository
from weft.workspace.repository_copies import copy_taker
from weft.workspace.repository_copies.copy_maker import made_repository
from weft.workspace.repository_copies.copy_record import BranchSource, RepositoryRecord
from weft.workspace.repository_copies.copy_taker import TakenRepository, stamp_of, take_repository

pytestmark = [pytest.mark.anyio, pytest.mark.process]

QUESTIONS = (
    ("status", "--porcelain", "--branch", "--untracked-files=no"),
    ("for-each-ref",),
    ("log", "--all", "--format=%H"),
    ("ls-files", "--stage"),
    ("diff", "--cached"),
    ("stash", "list"),
    ("fsck", "--no-progress", "--no-dangling"),
)


@pytest.fixture
def runner(tmp_path: Path) -> LocalRunner:
    """Programs find a home without settings."""
    return LocalRunner({**os.environ, "HOME": str(tmp_path / "home"), "XDG_CONFIG_HOME": ""})


class Journey:
    """Takes a repository time and again, and makes it once more elsewhere."""

    def __init__(self, runner: LocalRunner, project: Path) -> None:
        self.runner, self.project = runner, project
        self.scratch = project.parent / "scratch"
        self.scratch.mkdir()
        self.blobs: dict[BlobId, bytes] = {}
        self.record: RepositoryRecord | None = None

    async def take(self, inside: str = "") -> TakenRepository:
        repository = find_repository(str(self.project))
        assert repository is not None
        taken = await take_repository(self.runner, repository, inside, self.scratch, self.record)
        self.blobs |= taken.blobs
        # As it is stored.
        self.record = msgspec.json.decode(msgspec.json.encode(taken.record), type=RepositoryRecord)
        return taken

    async def load(self, blob_id: BlobId) -> bytes | None:
        return self.blobs.get(blob_id)

    async def make(self, name: str = "there") -> Path:
        there = self.project.parent / name
        there.mkdir()
        for path in self.project.rglob("*"):
            below = path.relative_to(self.project)
            if path.is_file() and ".git" not in below.parts:
                (there / below).parent.mkdir(parents=True, exist_ok=True)
                (there / below).write_bytes(path.read_bytes())
        assert self.record is not None
        made = made_repository(self.runner, str(there), self.record, self.load, self.scratch)
        async with made as copy:
            await copy.refresh()
        return there


def described(folder: Path) -> list[str]:
    return [git(folder, *question) for question in QUESTIONS]


async def test_what_was_committed_staged_and_stashed_is_there(
    runner: LocalRunner, tmp_path: Path
) -> None:
    project = make_repository(tmp_path / "project")
    journey = Journey(runner, project)
    first = await journey.take()
    git(project, "checkout", "-qb", "work")
    (project / "a.txt").write_text("two\n")
    commit_all(project, "second")
    for text in ("first stash\n", "second stash\n"):
        (project / "a.txt").write_text(text)
        git(project, "stash")
    (project / "a.txt").write_text("staged\n")
    git(project, "add", "a.txt")
    (project / "a.txt").write_text("changed\n")
    second = await journey.take()
    assert len(first.record.packs) == 1
    assert second.record.packs[:1] == first.record.packs
    assert not second.blobs.keys() & set(first.record.packs[0]), "no object travels twice"
    assert described(await journey.make()) == described(project)


async def test_many_packs_become_two(
    runner: LocalRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copy_taker, "MOST_PACKS", 3)
    project = make_repository(tmp_path / "project")
    journey = Journey(runner, project)
    counts = []
    for number in range(7):
        (project / "a.txt").write_text(f"{number}\n")
        commit_all(project, str(number))
        counts.append(len((await journey.take()).record.packs))
    assert max(counts) == 4
    assert counts[4] == 2
    assert described(await journey.make()) == described(project)


async def test_a_pack_in_pieces_is_put_together(
    runner: LocalRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copy_taker, "PIECE", 100)
    project = make_repository(tmp_path / "project")
    journey = Journey(runner, project)
    taken = await journey.take()
    assert len(taken.record.packs[0]) > 1
    assert described(await journey.make()) == described(project)


async def test_a_merge_under_way_goes_on(runner: LocalRunner, tmp_path: Path) -> None:
    project = make_repository(tmp_path / "project")
    git(project, "checkout", "-qb", "other")
    (project / "a.txt").write_text("theirs\n")
    commit_all(project, "theirs")
    git(project, "checkout", "-q", "main")
    (project / "a.txt").write_text("ours\n")
    commit_all(project, "ours")
    git(project, "merge", "other", check=False)
    journey = Journey(runner, project)
    await journey.take()
    there = await journey.make()
    assert described(there) == described(project)
    (there / "a.txt").write_text("both\n")
    commit_all(there, "merged")
    assert len(git(there, "log", "-1", "--format=%P").split()) == 2


async def test_repositories_of_other_forms(runner: LocalRunner, tmp_path: Path) -> None:
    forms = ["--object-format=sha256"]
    if git_version() >= (2, 45):
        forms.append("--ref-format=reftable")
    for number, form in enumerate(forms):
        base = tmp_path / str(number)
        project = make_repository(base / "project", SMALL, form)
        journey = Journey(runner, project)
        await journey.take()
        assert described(await journey.make()) == described(project), form


async def test_one_without_a_commit_and_a_detached_one(runner: LocalRunner, tmp_path: Path) -> None:
    empty = tmp_path / "empty" / "project"
    empty.mkdir(parents=True)
    git(empty, "init", "-q", "-b", "main")
    (empty / "a.txt").write_text("staged\n")
    git(empty, "add", "a.txt")
    detached = make_repository(tmp_path / "detached" / "project")
    git(detached, "checkout", "-q", "--detach")
    (detached / "a.txt").write_text("nowhere else\n")
    commit_all(detached, "on no branch")
    for project in (empty, detached):
        journey = Journey(runner, project)
        await journey.take()
        there = await journey.make()
        questions = QUESTIONS if project is detached else (QUESTIONS[0], QUESTIONS[3])
        for question in questions:
            assert git(there, *question) == git(project, *question)


async def test_a_linked_work_tree_becomes_a_repository(runner: LocalRunner, tmp_path: Path) -> None:
    main = make_repository(tmp_path / "main")
    linked = tmp_path / "project"
    git(main, "worktree", "add", "-q", "-b", "work", str(linked))
    (linked / "a.txt").write_text("staged\n")
    git(linked, "add", "a.txt")
    journey = Journey(runner, linked)
    await journey.take()
    there = await journey.make()
    assert described(there) == described(linked)
    assert (there / ".git").is_dir()


async def test_what_branches_follow_and_who_commits_goes_along(
    runner: LocalRunner, tmp_path: Path
) -> None:
    project = make_repository(tmp_path / "project")
    git(project, "config", "remote.origin.url", "https://ann:word@example.org/shop.git")
    git(project, "config", "branch.main.remote", "origin")
    git(project, "config", "branch.main.merge", "refs/heads/main")
    git(project, "config", "remote.odd.url", 'https://example.org/a"b#c;d')
    git(project, "config", "branch.odd.remote", "odd")
    git(project, "config", "branch.odd.merge", 'refs/heads/a"b#c;d')
    git(project, "config", "user.name", 'Ann "A" \\ B; # C')
    git(project, "config", "core.sshCommand", "touch /tmp/ran")
    git(project, "config", "remote.evil.url", "ext::sh -c true")
    journey = Journey(runner, project)
    await journey.take()
    there = await journey.make()
    assert git(there, "config", "remote.origin.url") == "https://example.org/shop.git"
    assert git(there, "config", "branch.main.merge") == "refs/heads/main"
    assert git(there, "config", "remote.odd.url") == 'https://example.org/a"b#c;d'
    assert git(there, "config", "branch.odd.merge") == 'refs/heads/a"b#c;d'
    assert git(there, "config", "--local", "user.name") == 'Ann "A" \\ B; # C'
    told = (there / ".git" / "config").read_text()
    assert "ssh" not in told
    assert "ext::" not in told
    assert b"word" not in b"".join(journey.blobs.values())


async def test_an_object_that_is_missing_is_said(runner: LocalRunner, tmp_path: Path) -> None:
    project = make_repository(tmp_path / "project")
    drop_object(project, "HEAD:a.txt")
    with pytest.raises(FinalToolError, match="packed"):
        await Journey(runner, project).take()


async def test_a_ref_whose_object_is_gone_keeps_nothing_else_from_being_made(
    runner: LocalRunner, tmp_path: Path
) -> None:
    project = make_repository(tmp_path / "project")
    (project / ".git" / "refs" / "heads" / "broken").write_text(f"{'1' * 40}\n")
    (project / ".git" / "refs" / "remotes" / "origin").mkdir(parents=True)
    (project / ".git" / "refs" / "remotes" / "origin" / "HEAD").write_text(
        "ref: refs/remotes/origin/gone\n"
    )
    journey = Journey(runner, project)
    await journey.take()
    there = await journey.make()
    assert git(there, "log", "--format=%H", "main") == git(project, "log", "--format=%H", "main")


async def test_a_piece_that_is_gone_is_said(runner: LocalRunner, tmp_path: Path) -> None:
    journey = Journey(runner, make_repository(tmp_path / "project"))
    taken = await journey.take()
    del journey.blobs[taken.record.packs[0][0]]
    with pytest.raises(FinalToolError, match="not stored any more"):
        await journey.make()


@pytest.mark.parametrize(
    "fields",
    [
        {"head": "ref: refs/../../x"},
        {"head": "/etc/passwd"},
        {"refs": {"refs/heads/../../../x": "0" * 40}},
        {"refs": {"refs/heads/x\nrefs/y": "0" * 40}},
        {"refs": {"refs/heads/x": "../x"}},
        {"symbolic": {"refs/remotes/x": "../../config"}},
        {"symbolic": {"refs/.hidden/x": "refs/heads/x"}},
        {"files": {"hooks/post-checkout": b"#!/bin/sh\n"}},
        {"files": {"config": b"[core]\n"}},
        {"inside": "../outside"},
        {"inside": ".GIT/hooks"},
        {"inside": "/etc"},
    ],
)
async def test_a_record_that_nobody_of_us_wrote_is_refused(
    fields: dict[str, object], runner: LocalRunner, tmp_path: Path
) -> None:
    journey = Journey(runner, make_repository(tmp_path / "project"))
    taken = await journey.take()
    journey.record = msgspec.structs.replace(taken.record, **fields)
    with pytest.raises(FinalToolError, match="not what Weft writes"):
        await journey.make()
    assert not (tmp_path / "there" / ".git").exists()


async def test_settings_of_a_record_that_name_programs_are_left_out(
    runner: LocalRunner, tmp_path: Path
) -> None:
    journey = Journey(runner, make_repository(tmp_path / "project"))
    taken = await journey.take()
    journey.record = msgspec.structs.replace(
        taken.record,
        settings={"core.fsmonitor": "touch x", "core.filemode": "true\n[core]\nfsmonitor=x"},
        remotes={"a\n[core]": "https://x/", "b": "ext::x", "c": "https://x/\n\tvcs = y"},
        branches={'"]\n[core]': BranchSource("b", "refs/heads/x")},
        user={"name": "x\n[core]\n\tfsmonitor = y"},
    )
    there = await journey.make()
    words = git(there, "config", "--list", "--local", "--name-only").split()
    known = {"core.repositoryformatversion", "core.bare", "core.logallrefupdates"}
    assert {*words} - known == {"remote.b.url", "remote.b.fetch"} & {*words}
    assert "ext::" not in (there / ".git" / "config").read_text()


async def test_a_remote_that_is_no_name_is_followed_by_no_branch(
    runner: LocalRunner, tmp_path: Path
) -> None:
    project = make_repository(tmp_path / "project")
    journey = Journey(runner, project)
    taken = await journey.take()
    ran = tmp_path / "ran"
    remote = f"x\n[core]\n\tfsmonitor = touch {ran}\n[x]\n\ty = z"
    journey.record = msgspec.structs.replace(
        taken.record,
        remotes={remote: "https://example.org/x.git"},
        branches={"main": BranchSource(remote, "refs/heads/main")},
    )
    there = await journey.make()
    git(there, "status")
    assert not ran.exists()
    assert "fsmonitor" not in git(there, "config", "--list", "--local")


async def test_a_change_of_refs_or_index_shows(tmp_path: Path) -> None:
    project = make_repository(tmp_path / "project")
    repository = find_repository(str(project))
    assert repository is not None
    (project / "a.txt").write_text("staged\n")
    steps = (
        ("branch", "one"),
        ("add", "a.txt"),
        ("checkout", "-q", "one"),
        ("stash",),
        ("pack-refs", "--all"),
        ("tag", "v1"),
        ("config", "remote.x.url", "https://example.org/"),
    )
    seen = [stamp_of(repository)]
    assert seen == [stamp_of(repository)]
    for step in steps:
        git(project, *step)
        seen.append(stamp_of(repository))
    assert len(set(seen)) == len(seen)


@pytest.mark.parametrize("name", TRAPS)
async def test_no_program_of_a_repository_runs_while_it_is_taken_and_made(
    name: str, runner: LocalRunner, tmp_path: Path
) -> None:
    bait = make_bait(tmp_path)
    lay, provoke = TRAPS[name]
    lay(bait)
    bait.marker.unlink(missing_ok=True)
    journey = Journey(runner, bait.repository)
    with suppress(ToolError):
        if find_repository(str(bait.repository)) is None:
            raise FinalToolError("it is none to us")
        await journey.take()
        assert not bait.marker.exists(), "while it was taken"
        there = await journey.make()
        git(there, "status")
        git(there, "checkout", "-q", "--", ".", check=False)
    assert not bait.marker.exists(), "what was made names none either"
    provoke(bait)
    assert bait.marker.exists(), "the trap does not work"


@pytest.mark.parametrize("planted", [".git/hooks/post-merge", "../t/hooks/post-merge"])
async def test_an_index_puts_nothing_outside_of_the_work_tree(
    runner: LocalRunner, tmp_path: Path, planted: str
) -> None:
    project = make_repository(tmp_path / "project")
    plain = planted.replace(".", "_")
    for name in (plain, "inner/kept.txt"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("#!/bin/sh\n")
    git(project, "add", ".")
    journey = Journey(runner, project)
    taken = await journey.take("inner")
    assert taken.record.index is not None
    # Names of one length, each the first of the index: no more of it changes than its checksum.
    index = journey.blobs[taken.record.index][:-20].replace(plain.encode(), planted.encode())
    assert planted.encode() in index
    journey.blobs[taken.record.index] = index + hashlib.sha1(index).digest()
    there = tmp_path / "there"
    there.mkdir()
    made = made_repository(runner, str(there), taken.record, journey.load, journey.scratch)
    with pytest.raises(FinalToolError, match="not what git writes"):
        async with made as copy:
            await copy.put_surroundings()
    assert not (there / planted).exists()
