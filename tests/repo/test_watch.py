"""An indexer that watches: what changes is read and told."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from tests.support.git_history import git
from weft.repo import indexer_process
from weft.repo.index_cache import IndexCache
from weft.repo.indexer import ChangeVoice
from weft.repo.indexer_order import CACHE, FileChanges, IndexOrder
from weft.repo.indexer_process import IndexerProcess
from weft.repo.project_index import ProjectIndex
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

    @property
    def folder(self) -> Path:
        return Path(self._order.folder)

    def index(self) -> ProjectIndex:
        return ProjectIndex(str(self.project), self.folder)

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


def test_a_deleted_file_leaves_the_listing(watched: Watched) -> None:
    watched.write("notes.txt", "words")
    watched.until(lambda seen: "notes.txt" in seen.created)
    (watched.project / "notes.txt").unlink()
    (watched.project / "shop/mail.py").unlink()
    watched.until(lambda seen: {"notes.txt", "shop/mail.py"} <= {*seen.deleted})
    index = watched.index()
    assert index.files().paths() == ["cart.py"]
    assert not index.is_stale()


def test_an_edited_ignore_file_takes_files_out_and_back_in(watched: Watched) -> None:
    watched.write(".weftignore", "*.log\n")
    watched.until(lambda seen: ".weftignore" in seen.created)
    watched.write(".weftignore", "shop/\n")
    watched.until(lambda seen: "shop/mail.py" in seen.deleted)
    assert watched.names("shop/mail.py") == []
    watched.write(".weftignore", "")
    watched.until(lambda seen: "shop/mail.py" in seen.created)
    assert watched.names("shop/mail.py") == ["send"]


def test_names_that_are_no_text_are_not_told_but_that_there_are_more(watched: Watched) -> None:
    Path(os.fsdecode(os.fsencode(watched.project) + b"/odd\xff.txt")).write_text("x")
    watched.until(lambda seen: seen.is_partial)


def test_an_indexer_whose_index_was_deleted_ends(watched: Watched) -> None:
    shutil.rmtree(watched.folder)
    watched.write("cart.py", "def basket(): ...\n")
    with pytest.raises(AssertionError, match="the indexer has ended"):
        watched.until(lambda seen: False)


_WITHOUT_WATCHES = """
import os, sys
from weft.repo import indexer
from weft.workspace.history import inotify
indexer._LOOK_SECONDS = 0.05
indexer._PAUSE_FACTOR = 0
count = 0
add = inotify.InotifyWatcher.add
def limited(self, folder):
    global count
    count += 1
    if count > int(sys.argv[2]):
        raise OSError(28, "No space left on device", folder)
    return add(self, folder)
inotify.InotifyWatcher.add = limited
sys.exit(indexer.main(sys.argv[1:2]))
"""
"""An indexer that may watch so many folders."""


@pytest.mark.parametrize("most", [0, 1, 9])
def test_what_cannot_be_watched_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Folders beyond the user's limit, and ignore files that lie outside of the project."""
    program = (
        f"import sys; sys.path.append(sys.argv[1]); del sys.argv[1]; sys.argv.append('{most}')\n"
    )
    monkeypatch.setattr(indexer_process, "_PROGRAM", program + _WITHOUT_WATCHES)
    watched = Watched(tmp_path)
    watched.write("cart.py", "def basket(): ...\n")
    watched.until(lambda seen: "cart.py" in seen.modified)
    assert watched.names("cart.py") == ["basket"]
    watched.write("notes.txt", "x")
    watched.until(lambda seen: "notes.txt" in seen.created)
    watched.write(".git/info/exclude", "*.txt\n")
    watched.until(lambda seen: "notes.txt" in seen.deleted)
    watched.close()


# --- the watches alone


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[ProjectWatch]:
    (tmp_path / "src").mkdir()
    (tmp_path / ".gitignore").write_text("*.log\nout/\n")
    watch = ProjectWatch(str(tmp_path))
    watch.follow(["", "src"])
    yield watch
    watch.close()


def told(watch: ProjectWatch, *known: str) -> tuple[set[str], bool]:
    """What has changed, and whether the project has to be listed again."""
    watch.collect({".gitignore", *known}, lambda seconds, fd: False)
    was_unsure = watch.is_unsure
    return watch.take(), was_unsure


def test_what_is_ignored_is_not_told(watch: ProjectWatch, tmp_path: Path) -> None:
    (tmp_path / "src" / "app.log").write_text("x")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "made.py").write_text("x")
    assert told(watch) == (set(), False)
    (tmp_path / "src" / "a.py").write_text("x")
    assert told(watch) == ({"src/a.py"}, True)
    (tmp_path / ".gitignore").write_text("")
    assert told(watch) == ({".gitignore"}, True)
    (tmp_path / "src" / "app.log").write_text("y")
    assert told(watch) == ({"src/app.log"}, True)


def test_what_a_listing_left_out_is_not_told_again(watch: ProjectWatch, tmp_path: Path) -> None:
    """Ignored by a setting of git's that we do not read."""
    (tmp_path / ".a.py.swp").write_text("x")
    assert told(watch) == ({".a.py.swp"}, True)
    watch.leave_out([".a.py.swp"])
    (tmp_path / ".a.py.swp").write_text("y")
    assert told(watch) == (set(), False)
    (tmp_path / ".gitignore").write_text("*.log\n")
    assert told(watch) == ({".gitignore"}, True)
    (tmp_path / ".a.py.swp").write_text("z")
    assert told(watch) == ({".a.py.swp"}, True)


def test_a_folder_counts_when_it_holds_something(watch: ProjectWatch, tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp").rmdir()
    assert told(watch) == (set(), False)
    (tmp_path / "new").mkdir()
    assert told(watch) == (set(), False)
    (tmp_path / "new" / "a.py").write_text("x")
    assert told(watch) == ({"new/a.py"}, True)
    (tmp_path / "src").rename(tmp_path / "source")
    assert told(watch)[1]


def test_a_project_that_is_gone_is_looked_for(watch: ProjectWatch, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path)
    assert told(watch)[1]
    assert (watch.fd, watch.is_whole) == (None, False)


# --- telling


def test_a_parent_that_does_not_listen_is_told_later_that_there_was_more() -> None:
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    voice = ChangeVoice(writer)
    changes = FileChanges(modified=tuple(f"file{number}.py" for number in range(1_000)))
    for _ in range(100):
        voice.say(changes)
    said, is_behind = b"", voice.is_behind
    assert is_behind
    while is_behind:
        said += os.read(reader, 65536)
        voice.go_on()
        is_behind = voice.is_behind
    said += os.read(reader, 65536)
    *some, last = [msgspec.json.decode(line, type=FileChanges) for line in said.splitlines()]
    assert set(some) == {changes}
    assert last == FileChanges(is_partial=True)
    os.close(reader)
    voice.say(changes)
    assert not voice.is_behind
    os.close(writer)


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


def test_what_is_printed_in_the_indexer_is_not_taken_for_its_voice(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    order = IndexOrder(
        project=str(tmp_path / "p"), folder=str(tmp_path / "i"), environ=ENVIRON, watch=True
    )
    argv = [sys.executable, "-c", _PRINTS, msgspec.json.encode(order).decode()]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as indexer:
        assert indexer.stdout is not None
        assert indexer.stdout.readline() == msgspec.json.encode(FileChanges()) + b"\n"
        assert indexer.stdin is not None
        indexer.stdin.close()


_PRINTS = """
import os, sys
from weft.repo import indexer

made = indexer.index_project

def printing(*given):
    print("looking", flush=True)
    os.write(1, b"noise\\n")
    return made(*given)

indexer.index_project = printing
sys.exit(indexer.main(sys.argv[1:]))
"""
"""An indexer in which something prints, as extractors of others may."""


@pytest.mark.parametrize("line", [b"debug: looking", b"\xff", b"", b"[]", b'{"created": 5}'])
def test_a_line_that_cannot_be_read_means_that_anything_may_have_changed(line: bytes) -> None:
    assert FileChanges.read(line) == FileChanges(is_partial=True)
    named = FileChanges(created=("a.py",))
    assert FileChanges.read(msgspec.json.encode(named)) == named
