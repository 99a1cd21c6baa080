"""An indexer that watches: what changes is read and told."""

from __future__ import annotations

import os
import select
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from tests.support.git_history import git
from weft.repo.index_cache import IndexCache
from weft.repo.indexer_order import CACHE, FileChanges, IndexOrder
from weft.repo.indexer_process import IndexerProcess
from weft.repo.project_watch import ProjectWatch

pytestmark = pytest.mark.process
ENVIRON = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}


class Watched:
    """A project with an indexer that watches it."""

    def __init__(self, base: Path) -> None:
        self.project = base / "p"
        self.project.mkdir()
        self.write("cart.py", "def total(): ...\n")
        self.write("shop/mail.py", "def send(): ...\n")
        git(self.project, "init", "-q")
        git(self.project, "add", "-A")
        git(self.project, "commit", "-qm", "x")
        self._order = IndexOrder(
            project=str(self.project), folder=str(base / "i"), environ=ENVIRON, watch=True
        )
        self._indexer = IndexerProcess(self._order)
        self._rest = b""
        assert self.next() == FileChanges()

    def write(self, path: str, text: str) -> None:
        file = self.project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def next(self) -> FileChanges:
        """The next batch of changes."""
        while b"\n" not in self._rest:
            output = self._indexer.output
            assert output is not None
            assert select.select([output], [], [], 30)[0], "nothing was told"
            data = os.read(output, 65536)
            assert data, "the indexer has ended"
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return msgspec.json.decode(line, type=FileChanges)

    def until(self, holds: Callable[[FileChanges], bool]) -> None:
        """Read batches until all of them together hold."""
        seen = FileChanges()
        while not holds(seen):
            more = self.next()
            seen = FileChanges(
                created=seen.created + more.created,
                modified=seen.modified + more.modified,
                deleted=seen.deleted + more.deleted,
                is_partial=seen.is_partial or more.is_partial,
            )

    def names(self, path: str) -> list[str]:
        cache = IndexCache(Path(self._order.folder) / CACHE)
        found = [each.name for each in cache.definitions(path) or ()]
        cache.close()
        return found

    def close(self) -> None:
        self._indexer.stop()


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    watched = Watched(tmp_path)
    yield watched
    watched.close()


def test_an_edit_is_read_and_told(watched: Watched) -> None:
    watched.write("cart.py", "def basket(): ...\n")
    watched.until(lambda seen: "cart.py" in seen.modified)
    assert watched.names("cart.py") == ["basket"]


def test_new_renamed_and_deleted_files_are_told_and_ignored_ones_are_not(
    watched: Watched,
) -> None:
    watched.write(".gitignore", "out/\n")
    watched.write("out/made.py", "def made(): ...\n")
    watched.write("new/deep/rate.py", "def rate(): ...\n")
    watched.until(lambda seen: {".gitignore", "new/deep/rate.py"} <= {*seen.created})
    assert watched.names("new/deep/rate.py") == ["rate"]
    assert watched.names("out/made.py") == []
    (watched.project / "shop").rename(watched.project / "store")
    watched.until(lambda seen: "store/mail.py" in seen.created and "shop/mail.py" in seen.deleted)
    assert watched.names("store/mail.py") == ["send"]
    shutil.rmtree(watched.project / "store")
    watched.until(lambda seen: "store/mail.py" in seen.deleted)
    watched.write("new/deep/rate.py", "def other(): ...\n")
    watched.until(lambda seen: "new/deep/rate.py" in seen.modified)
    assert watched.names("new/deep/rate.py") == ["other"]


def test_a_branch_that_is_switched_to_and_back_is_followed(watched: Watched) -> None:
    git(watched.project, "checkout", "-qb", "other")
    for number in range(150):
        watched.write(f"many/m{number}.py", f"def name_{number}(): ...\n")
    watched.write("cart.py", "def basket(): ...\n")
    git(watched.project, "add", "-A")
    git(watched.project, "commit", "-qm", "y")
    watched.until(lambda seen: len(seen.created) == 150)
    git(watched.project, "checkout", "-q", "-")
    watched.until(lambda seen: len(seen.deleted) == 150 and "cart.py" in seen.modified)
    assert watched.names("cart.py") == ["total"]


def test_a_queue_that_overflowed_means_that_the_project_is_listed_again(tmp_path: Path) -> None:
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    watch = ProjectWatch(str(tmp_path))
    watch.follow([""])
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_text("")
    # Two names in turn: the kernel joins events that are the same.
    for _ in range(limit // 4 + 10):
        os.rename(first, second)
        os.rename(second, first)
    watch.collect({"a", "b"}, lambda seconds, fd: False)
    was_unsure = watch.is_unsure
    assert watch.take() <= {"a", "b"}
    assert (was_unsure, watch.is_unsure) == (True, False)
    watch.close()
