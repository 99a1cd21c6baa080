"""The indexer's process: it makes the index, and it ends with its parent."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import select
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.support.git_history import git
from weft.errors import UsageError
from weft.repo.index_cache import IndexCache
from weft.repo.indexer import ParentLink, index_project
from weft.repo.indexer_order import CACHE, FINISH, IndexOrder
from weft.repo.indexer_process import IndexerProcess, take_lock
from weft.repo.past_commits import read_history_file
from weft.repo.posting_lists import SUBJECT
from weft.repo.project_files import walk_project
from weft.repo.project_index import ProjectIndex

pytestmark = pytest.mark.process
ENVIRON = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}


@pytest.fixture
def order(tmp_path: Path) -> IndexOrder:
    project = tmp_path / "p"
    project.mkdir()
    (project / "cart.py").write_text("def total(): ...\n")
    git(project, "init", "-q")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "Price the basket")
    return IndexOrder(project=str(project), folder=str(tmp_path / "index" / "one"), environ=ENVIRON)


def cache_of(order: IndexOrder, *, writes: bool = False) -> IndexCache:
    return IndexCache(Path(order.folder) / CACHE, writes=writes)


def test_an_indexer_makes_the_index_of_a_project(order: IndexOrder) -> None:
    process = IndexerProcess(order)
    process.wait()
    assert not process.is_running()
    cache = cache_of(order)
    assert [each.name for each in cache.definitions("cart.py") or ()] == ["total"]
    assert set(cache.lists(SUBJECT, ["basket"])) == {"basket"}
    assert (Path(order.folder).stat().st_mode & 0o777) == 0o700


def test_only_the_index_of_a_project_that_has_been_gone_for_long_is_removed(
    order: IndexOrder, tmp_path: Path
) -> None:
    places = {}
    for name, project, is_old in (
        ("lost", b"/nonexistent/project", True),
        ("unmounted", b"/nonexistent/disk", False),
        ("bytes", b"/nonexistent/\xff", True),
        ("busy", b"/nonexistent/other", True),
        ("living", os.fsencode(tmp_path), True),
    ):
        places[name] = folder = Path(order.folder).parent / name
        folder.mkdir(parents=True)
        for file, content in (("project", project), ("lock", b"")):
            (folder / file).write_bytes(content)
            if is_old:
                os.utime(folder / file, (1, 1))
    lock = take_lock(places["busy"])
    assert IndexerProcess(order).wait()
    kept = {name for name, folder in places.items() if folder.exists()}
    assert kept == {"unmounted", "busy", "living"}
    os.close(lock or -1)


def test_a_lock_of_an_index_that_was_removed_locks_nothing(tmp_path: Path) -> None:
    first = take_lock(tmp_path / "i")
    shutil.rmtree(tmp_path / "i")
    second = take_lock(tmp_path / "i")
    assert first is not None
    assert second is not None
    assert take_lock(tmp_path / "i") is None
    os.close(first)
    os.close(second)


def test_a_project_whose_path_is_no_text_has_an_index(tmp_path: Path) -> None:
    project = os.fsdecode(os.fsencode(tmp_path) + b"/p\xff")
    os.mkdir(project)
    Path(project, "cart.py").write_text("def total(): ...\n")
    order = IndexOrder(project=project, folder=str(tmp_path / "i"), environ=ENVIRON)
    assert IndexerProcess(order).wait()
    assert [each.name for each in cache_of(order).definitions("cart.py") or ()] == ["total"]


def test_files_whose_names_are_no_text_cost_no_others(tmp_path: Path) -> None:
    project = tmp_path / "p"
    (project / "deep").mkdir(parents=True)
    for number in range(60):
        (project / f"m{number}.py").write_text(f"def name_{number}(): ...\n")
    os.mkdir(os.fsencode(project) + b"/d\xff")
    for name in (b"/aa\xff.py", b"/d\xff/x.py", b"/notes\xff.txt"):
        Path(os.fsdecode(os.fsencode(project) + name)).write_text("def odd(): ...\n")
    order = IndexOrder(project=str(project), folder=str(tmp_path / "i"), environ=ENVIRON)
    assert IndexerProcess(order).wait()
    index = ProjectIndex(str(project), tmp_path / "i")
    assert index.status().sources == 60
    assert index.status().files == 63
    assert not index.is_stale()


def test_a_commit_may_have_any_subject(order: IndexOrder) -> None:
    git(Path(order.project), "commit", "-q", "--allow-empty", "-m", "Name \x01 the \x02invoice")
    assert IndexerProcess(order).wait()
    cache = cache_of(order)
    assert set(cache.lists(SUBJECT, ["basket", "invoice"])) == {"basket", "invoice"}
    assert cache.note("past commits") == 2


def test_a_second_run_parses_nothing_and_a_new_commit_is_read(order: IndexOrder) -> None:
    cache = cache_of(order, writes=True)
    assert index_project(cache, order, ParentLink(None))[1].parsed == ("cart.py",)
    assert index_project(cache, order, ParentLink(None))[1].parsed == ()
    git(Path(order.project), "commit", "-q", "--allow-empty", "-m", "Name the invoice")
    index_project(cache, order, ParentLink(None))
    assert set(cache.lists(SUBJECT, ["invoice"])) == {"invoice"}


def test_a_commit_makes_the_index_stale_and_so_does_another_branch(order: IndexOrder) -> None:
    project = Path(order.project)
    index = ProjectIndex(order.project, Path(order.folder))
    cache = cache_of(order, writes=True)

    def is_seen(word: str) -> bool:
        assert index.is_stale()
        index_project(cache, order, ParentLink(None))
        assert not index.is_stale()
        return bool(cache.lists(SUBJECT, [word]))

    assert is_seen("basket")
    git(project, "commit", "-q", "--allow-empty", "-m", "Name the invoice")
    assert is_seen("invoice")
    git(project, "checkout", "-q", "-b", "older", "HEAD~1")
    assert not is_seen("invoice")
    git(project, "-c", "core.logAllRefUpdates=false", "commit", "-q", "--allow-empty", "-m", "Ship")
    assert is_seen("ship")
    git(project, "pack-refs", "--all")
    assert is_seen("ship")


def test_a_file_that_comes_is_seen_though_the_time_of_its_folder_is_set_back(
    order: IndexOrder,
) -> None:
    index = ProjectIndex(order.project, Path(order.folder))
    about = os.stat(order.project)
    index_project(cache_of(order, writes=True), order, ParentLink(None))
    assert not index.is_stale()
    (Path(order.project) / "new.py").write_text("def brand_new(): ...\n")
    os.utime(order.project, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert index.is_stale()


def test_a_project_that_becomes_a_repository_gets_a_past(tmp_path: Path) -> None:
    project = tmp_path / "p"
    project.mkdir()
    (project / "cart.py").write_text("def total(): ...\n")
    order = IndexOrder(project=str(project), folder=str(tmp_path / "i"), environ=ENVIRON)
    index = ProjectIndex(order.project, Path(order.folder))
    cache = cache_of(order, writes=True)
    index_project(cache, order, ParentLink(None))
    assert not index.is_stale()
    git(project, "init", "-q")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "Price the basket")
    assert index.is_stale()
    index_project(cache, order, ParentLink(None))
    assert cache.lists(SUBJECT, ["basket"])


def test_a_project_without_git_has_its_past_from_a_file(tmp_path: Path) -> None:
    project = tmp_path / "p"
    project.mkdir()
    (project / "cart.py").write_text("def total(): ...\n")
    history = tmp_path / "history.jsonl"
    history.write_text('[5, ["cart.py"], "Price the basket"]\n')
    order = IndexOrder(project=str(project), folder=str(tmp_path / "i"), history=str(history))
    cache = cache_of(order, writes=True)
    index_project(cache, order, ParentLink(None))
    assert list(cache.past_of(["cart.py"])) == [["cart.py"]]
    index = ProjectIndex(order.project, Path(order.folder))
    assert index.has_history(history)
    history.write_text('[5, ["cart.py"], "Name the basket"]\n')
    assert not index.has_history(history)
    assert not index.has_history(tmp_path / "nowhere")


def test_a_history_of_another_form_is_refused_in_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    with pytest.raises(UsageError, match="cannot read the history"):
        read_history_file(file, "")
    file.write_text('{"subject": "x"}\n')
    with pytest.raises(UsageError, match="each line is"):
        read_history_file(file, "")


def test_an_indexer_whose_parent_died_ends_without_working_on(order: IndexOrder) -> None:
    parent = subprocess.run(
        [sys.executable, "-c", _DIES, msgspec.json.encode(order).decode()],
        capture_output=True,
        check=True,
        timeout=60,
    )
    _await_end(int(parent.stdout))
    assert not (Path(order.folder) / CACHE).exists()


_DIES = """
import fcntl, os, sys, msgspec
from pathlib import Path
from weft.repo.indexer_order import IndexOrder
from weft.repo.indexer_process import IndexerProcess, take_lock
order = msgspec.json.decode(sys.argv[1], type=IndexOrder)
Path(order.folder).mkdir(parents=True)
lock = os.open(Path(order.folder) / "lock", os.O_RDWR | os.O_CREAT, 0o600)
fcntl.flock(lock, fcntl.LOCK_EX)
process = IndexerProcess(order)
print(process.pid, flush=True)
os._exit(0)
"""
"""Holds the lock, so that the indexer has to wait, and dies without a word."""


def _await_end(pid: int) -> None:
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    assert select.select([process], [], [], 30)[0], "the indexer outlived its parent"
    os.close(process)


def test_a_parent_that_closes_in_good_order_lets_it_finish() -> None:
    reader, writer = os.pipe()
    link = ParentLink(reader)
    assert link.is_wanted()
    os.write(writer, FINISH)
    os.close(writer)
    assert link.is_wanted()
    assert link.is_finishing


def test_a_parent_that_is_gone_wants_nothing_more() -> None:
    reader, writer = os.pipe()
    link = ParentLink(reader)
    os.close(writer)
    assert not link.is_wanted()


def test_a_listing_that_is_not_wanted_any_more_is_given_up_and_changes_nothing(
    tmp_path: Path,
) -> None:
    project = tmp_path / "p"
    for number in range(30):
        (project / f"f{number}").mkdir(parents=True)
        (project / f"f{number}" / "a.py").write_text("def a(): ...\n")
    order = IndexOrder(project=str(project), folder=str(tmp_path / "i" / "one"), environ=ENVIRON)
    Path(order.folder).mkdir(parents=True)
    with contextlib.closing(cache_of(order, writes=True)) as cache:
        index_project(cache, order, ParentLink(None))
        asked = iter([True] * 5)
        walked = walk_project(order.project, lambda: next(asked, False))
        assert len(walked.paths()) == 4  # the folder itself, and four in it
        reader, writer = os.pipe()
        os.close(writer)
        index_project(cache, order, ParentLink(reader))
        assert cache.listing().count("a.py") == 30


def test_a_lock_that_another_has_is_waited_for_and_one_that_cannot_be_had_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = take_lock(tmp_path)
    assert held is not None
    assert take_lock(tmp_path) is None
    os.close(held)

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match="locks"):
        take_lock(tmp_path)
    assert len(os.listdir("/proc/self/fd")) == before
