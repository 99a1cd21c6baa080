"""What an index answers: symbols, outlines, maps, and whether it is current."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread

import apsw
import pytest

from tests.support.permission_bits import bits_that_hold
from weft.repo.freshness import TICK_NS, is_stale
from weft.repo.index_cache import VERSION_NOTE, IndexCache, PastCommit
from weft.repo.index_update import update_index
from weft.repo.indexer import ParentLink, folder_times, folders_of, index_project
from weft.repo.indexer_order import CACHE, IndexOrder
from weft.repo.indexer_process import IndexerProcess
from weft.repo.project_files import rule_stamps, walk_project
from weft.repo.project_index import MOST_SYMBOLS, ProjectIndex
from weft.repo.project_watch import ProjectWatch

pytestmark = pytest.mark.process

FILES = {
    "shop/cart.py": "class Cart:\n    def total(self):\n        return 1\n\n\ndef total(x): ...\n",
    "shop/stock.py": "class Stock:\n    def Total(self): ...\n    def reserveItem(self): ...\n",
    "notes.txt": "words\n",
}
LATER = 4_000_000_000_000_000_000
"""A listing that was begun so late has seen everything."""


def bring_up_to_date(cache: IndexCache, project: Path) -> None:
    listing = walk_project(str(project))
    update_index(cache, str(project), listing)
    rules = rule_stamps(str(project), folders_of(listing), "")
    cache.write_listing(listing.text, folder_times(str(project), listing, LATER), rules)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for path, text in FILES.items():
        file = tmp_path / "p" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path / "p"


@pytest.fixture
def cache(tmp_path: Path, project: Path) -> IndexCache:
    cache = IndexCache(tmp_path / "index" / CACHE, writes=True)
    bring_up_to_date(cache, project)
    cache.write_past([PastCommit("c", 1, "x", ["shop/cart.py"])], "c")
    return cache


@pytest.fixture
def index(cache: IndexCache, project: Path, tmp_path: Path) -> ProjectIndex:
    return ProjectIndex(str(project), tmp_path / "index")


def found(index: ProjectIndex, name: str) -> list[tuple[str, int]]:
    return [(each.path, each.definition.first) for each in index.symbols(name)]


def test_a_symbol_is_found_by_its_exact_name_before_other_letters(index: ProjectIndex) -> None:
    assert found(index, "total") == [("shop/cart.py", 2), ("shop/cart.py", 6)]
    assert found(index, "TOTAL") == [
        ("shop/cart.py", 2),
        ("shop/cart.py", 6),
        ("shop/stock.py", 2),
    ]


def test_a_qualified_name_means_the_one_inside(index: ProjectIndex) -> None:
    assert found(index, "Stock.total") == [("shop/stock.py", 2)]
    assert found(index, "Stock::Total") == [("shop/stock.py", 2)]


def test_a_qualified_name_is_looked_for_in_one_look_at_a_file(tmp_path: Path) -> None:
    project = tmp_path / "many"
    project.mkdir()
    # Each beside each of the others, or the file read for each of them, would take minutes.
    text = "".join(f"def total(): {number}\nclass Shop: {number}\n" for number in range(8_000))
    (project / "a.py").write_text(f"{text}class Cart:\n    def total(self): ...\n")
    cache = IndexCache(tmp_path / "of" / CACHE, writes=True)
    bring_up_to_date(cache, project)
    index = ProjectIndex(str(project), tmp_path / "of")
    assert found(index, "Cart.total") == [("a.py", 16_002)]
    assert len(found(index, "total")) == MOST_SYMBOLS


def test_a_name_that_is_nowhere_is_found_by_its_words(index: ProjectIndex) -> None:
    assert found(index, "reserve_item") == [("shop/stock.py", 3)]
    assert found(index, "absent") == found(index, "") == found(index, "...") == []


def test_the_outline_of_a_file_is_in_its_order(index: ProjectIndex) -> None:
    outline = index.outline("shop/cart.py")
    assert outline is not None
    assert [each.name for each in outline] == ["Cart", "total", "total"]
    assert index.outline("notes.txt") is None


def test_the_status_counts_files_sources_and_commits(index: ProjectIndex) -> None:
    status = index.status()
    assert (status.files, status.sources, status.commits, status.is_there) == (3, 2, 1, True)


def test_a_map_shows_nothing_of_a_file_that_may_not_be_read(index: ProjectIndex) -> None:
    assert "cart" in index.map("total of the cart")
    assert "cart" not in index.map("total of the cart", allows=lambda path: "cart" not in path)


def test_a_map_reads_no_file_through_a_link_that_took_its_place(
    index: ProjectIndex, project: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret.py").write_text("password\n")
    (project / "shop" / "cart.py").unlink()
    (project / "shop" / "cart.py").symlink_to(tmp_path / "secret.py")
    assert index._text("shop/cart.py") is None


def test_without_an_index_there_are_no_answers(tmp_path: Path) -> None:
    index = ProjectIndex(str(tmp_path), tmp_path / "none")
    assert (index.symbols("x"), index.map("x"), index.files().paths()) == ([], "", [])
    assert index.is_stale()
    assert not index.status().is_there


def test_an_index_that_is_damaged_answers_nothing(tmp_path: Path, cache: IndexCache) -> None:
    cache.close()
    file = tmp_path / "index" / CACHE
    file.write_bytes(b"no database, but long enough to be looked at as one" * 100)
    index = ProjectIndex(str(tmp_path), tmp_path / "index")
    assert index.symbols("total") == []
    assert index.is_stale()
    assert IndexCache(file, writes=True).count() == 0


def test_an_answer_is_of_one_state_while_an_indexer_writes(
    cache: IndexCache, index: ProjectIndex, project: Path
) -> None:
    """A file gets a new number with each write; an answer that saw both would fail."""
    stop = Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            (project / "shop" / "cart.py").write_text(f"class Cart:\n    n = {number}\n")
            update_index(cache, str(project), ["shop/cart.py"], is_whole=False)

    thread = Thread(target=write)
    thread.start()
    try:
        for _ in range(200):
            assert index.hint("the cart", (), 100).startswith("shop/cart.py")
            assert [each.path for each in index.symbols("Cart")] == ["shop/cart.py"]
    finally:
        stop.set()
        thread.join()


# --- freshness


def test_an_index_is_current_after_its_update(cache: IndexCache, project: Path) -> None:
    assert not is_stale(cache, str(project))


@pytest.mark.parametrize(
    "change",
    [
        lambda p: (p / "shop/cart.py").write_text("def other(): ...\n"),
        lambda p: (p / "shop/cart.py").unlink(),
        lambda p: (p / "shop/new.py").write_text(""),
        lambda p: shutil.copytree(p / "shop", p / "new" / "deep"),
        lambda p: os.utime(p / "shop/cart.py", ns=(5, 5)),
        lambda p: (p / "shop/more.txt").write_text("x"),
        lambda p: (p / "notes.txt").unlink(),
        lambda p: (p / ".weftignore").write_text("shop/\n"),
        lambda p: (p / "shop/.gitignore").write_text("*\n"),
    ],
    ids=[
        *("edit", "removal", "new file", "new folder", "new time"),
        *("new text", "removed text", "own ignore file", "ignore file that ignores itself"),
    ],
)
def test_what_changes_files_or_which_are_listed_makes_an_index_stale(
    cache: IndexCache, project: Path, change: object
) -> None:
    assert callable(change)
    change(project)
    assert is_stale(cache, str(project))
    bring_up_to_date(cache, project)
    assert not is_stale(cache, str(project))


def test_an_ignore_file_that_is_edited_makes_an_index_stale(
    cache: IndexCache, project: Path
) -> None:
    """An edit in place leaves the time of its folder as it was."""
    for name in (".gitignore", "shop/.weftignore"):
        (project / name).write_text("*.log\n")
        bring_up_to_date(cache, project)
        assert not is_stale(cache, str(project))
        (project / name).write_text("cart.py\n")
        assert is_stale(cache, str(project))
        bring_up_to_date(cache, project)
        assert not is_stale(cache, str(project))


def test_a_file_that_was_just_ignored_is_in_no_hint(index: ProjectIndex, project: Path) -> None:
    assert "cart" in index.hint("the cart", (), 100)
    (project / ".weftignore").write_text("cart.py\n")
    assert index.hint("the cart", (), 100) == index.overview(100) == ""


def test_an_overview_takes_the_order_that_the_indexer_has_kept(
    index: ProjectIndex, cache: IndexCache, project: Path, tmp_path: Path
) -> None:
    ranked = index.overview(1000)
    assert ranked.index("shop/cart.py") < ranked.index("shop/stock.py"), "none is kept yet"
    cache.keep_important(["gone.py", "shop/stock.py", "shop/cart.py"])
    assert index.overview(1000).startswith("shop/stock.py\n")
    order = IndexOrder(project=str(project), folder=str(tmp_path / "index"))
    index_project(cache, order, ParentLink(None))
    assert index.overview(1000) == ranked


def test_what_is_ignored_or_no_source_makes_no_index_stale(
    cache: IndexCache, project: Path
) -> None:
    (project / ".gitignore").write_text("*.log\nout/\n")
    (project / ".weftignore").write_text("shop/made*\n")
    bring_up_to_date(cache, project)
    (project / "shop" / "more.log").write_text("x")
    (project / "shop" / "made.py").write_text("x")
    (project / "notes.txt").write_text("other")
    (project / "__pycache__").mkdir()
    (project / "out").mkdir()
    (project / "empty" / "deep").mkdir(parents=True)
    (project / "empty" / "deep" / "x.log").write_text("x")
    assert not is_stale(cache, str(project))


def test_a_file_that_came_while_files_were_listed_makes_an_index_stale(
    cache: IndexCache, project: Path
) -> None:
    began = 0
    listing = walk_project(str(project))
    (project / "shop" / "late.py").write_text("def late(): ...\n")
    cache.write_listing(listing.text, folder_times(str(project), listing, began), {})
    assert is_stale(cache, str(project))


def test_an_index_of_older_readers_is_stale(cache: IndexCache, project: Path) -> None:
    cache.keep(VERSION_NOTE, 1)
    assert is_stale(cache, str(project))


# --- an index that is replaced or damaged


def test_an_index_that_was_made_anew_is_noticed(
    cache: IndexCache, index: ProjectIndex, project: Path, tmp_path: Path
) -> None:
    assert index.outline("shop/cart.py")
    cache.close()
    shutil.rmtree(tmp_path / "index")
    assert index.outline("shop/cart.py") is None
    (project / "shop" / "cart.py").write_text("def renamed(): ...\n")
    bring_up_to_date(IndexCache(tmp_path / "index" / CACHE, writes=True), project)
    assert [each.name for each in index.outline("shop/cart.py") or ()] == ["renamed"]


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE lengths SET ids = x'', parts = x'', whole = x'', names = x''",
        "UPDATE lengths SET ids = x'01'",
        "UPDATE reading SET definitions = x'00'",
        "UPDATE posting SET data = x'0102'",
        "DROP TABLE reading",
    ],
    ids=["rows gone", "half a number", "no stream", "cut short", "table gone"],
)
def test_an_index_that_is_damaged_inside_answers_nothing_and_is_made_anew(
    cache: IndexCache, index: ProjectIndex, tmp_path: Path, damage: str
) -> None:
    cache.close()
    connection = apsw.Connection(str(tmp_path / "index" / CACHE))
    connection.execute(damage)
    connection.close()
    assert index.hint("the cart", (), 100) == ""
    assert index.is_stale()
    order = IndexOrder(
        project=index.project, folder=str(tmp_path / "index"), environ={"PATH": os.environ["PATH"]}
    )
    assert IndexerProcess(order).wait()
    assert index.hint("the cart", (), 100) != ""
    assert not index.is_stale()


def test_a_question_that_is_no_text_damages_nothing(index: ProjectIndex) -> None:
    assert index.symbols("\udcff_total") == []
    assert not index.is_stale()


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[Path]:
    """A project with a folder that may not be looked into."""
    project, closed = tmp_path / "project", tmp_path / "project" / "shop"
    closed.mkdir(parents=True)
    (project / "cart.py").write_text("def total(): ...\n")
    (closed / "mail.py").write_text("def send(): ...\n")
    closed.chmod(0)
    with bits_that_hold():
        yield project
    closed.chmod(0o755)


@pytest.mark.parametrize("has_git", [True, False])
def test_a_folder_that_is_opened_makes_an_index_stale(locked: Path, *, has_git: bool) -> None:
    if has_git:
        subprocess.run(["git", "init", "-q"], cwd=locked, check=True)
    folder = locked.parent / "index"
    folder.mkdir()
    order = IndexOrder(project=str(locked), folder=str(folder), environ=dict(os.environ))
    cache, watch = IndexCache(folder / CACHE, writes=True), ProjectWatch(str(locked))
    try:
        index_project(cache, order, ParentLink(None), watch)
        watch.take()
        assert "shop/mail.py" not in cache.listing()
        # A time that is a tick old is told from the next one.
        wait_for_tick(folder / "tick")
        index_project(cache, order, ParentLink(None), watch)
        watch.take()
        assert not is_stale(cache, str(locked))
        (locked / "shop").chmod(0o755)
        assert is_stale(cache, str(locked))
        watch.collect(frozenset({"cart.py"}), lambda *_: False)
        assert watch.is_unsure
        listing, _ = index_project(cache, order, ParentLink(None), watch)
        assert "shop/mail.py" in listing.paths()
    finally:
        watch.close()
        cache.close()


def wait_for_tick(file: Path) -> None:
    """Until what is changed has another time than what was changed before, by far."""
    file.touch()
    first = file.stat().st_ctime_ns
    while file.stat().st_ctime_ns < first + 2 * TICK_NS:
        file.touch()
    file.unlink()
