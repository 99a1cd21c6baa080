"""The index on disk: what is written is found, by whole batches."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.repo import index_cache
from weft.repo.definitions import EMPTY, Definition, FileReading
from weft.repo.index_cache import FileEntry, FileStamp, IndexCache, PastCommit
from weft.repo.posting_lists import NAME, PART, SUBJECT


def entry(path: str, *words: str, names: tuple[str, ...] = ()) -> FileEntry:
    definitions = [Definition(name, "function", 1, 2, f"def {name}()") for name in names]
    pieces = dict.fromkeys(words)
    counts = [words.count(word) for word in pieces]
    reading = FileReading(definitions, " ".join(pieces).encode(), counts)
    return FileEntry(path, FileStamp(1, 2), "python", repr((path, words)).encode(), reading)


def paths_of(cache: IndexCache, kind: str, word: str) -> dict[str, int]:
    """The files that a word leads to, with how often it is in each."""
    files = {id: path for path, id in cache.ids().items()}
    found = cache.lists(kind, [word]).get(word)
    if found is None:
        return {}
    return {files[id]: n for id, n in zip(*found, strict=True) if id in files}


@pytest.fixture
def cache(tmp_path: Path) -> IndexCache:
    return IndexCache(tmp_path / "deep" / "cache.db", writes=True)


def test_a_word_leads_to_its_files(cache: IndexCache) -> None:
    cache.write([entry("a.py", "cart", "cart"), entry("b.py", "rate", names=("Total",))])
    assert paths_of(cache, PART, "cart") == {"a.py": 2}
    assert paths_of(cache, NAME, "total") == {"b.py": 1}
    assert cache.lists(PART, ["absent"]) == {}


def test_a_file_that_changed_is_found_by_its_new_words_alone(cache: IndexCache) -> None:
    cache.write([entry("a.py", "cart")])
    cache.write([entry("a.py", "rate")])
    assert paths_of(cache, PART, "cart") == {}
    assert paths_of(cache, PART, "rate") == {"a.py": 1}


def test_a_file_that_is_gone_is_not_found(cache: IndexCache) -> None:
    cache.write([entry("a.py", "cart"), entry("b.py", "cart")])
    cache.write([], removed=["a.py"])
    assert paths_of(cache, PART, "cart") == {"b.py": 1}
    assert cache.definitions("a.py") is None


def test_content_that_was_read_before_is_known(cache: IndexCache) -> None:
    written = entry("a.py", "cart", names=("total",))
    cache.write([written])
    cache.write([], removed=["a.py"])
    assert cache.reading(written.digest) == written.reading
    assert cache.reading(b"other") is None


def test_the_past_is_replaced_as_a_whole(cache: IndexCache) -> None:
    cache.write_past([PastCommit("c1", 1, "Price the cart", ["a.py"])], "c1")
    cache.write_past([PastCommit("c2", 2, "Name the rate", ["b.py"])], "c2")
    assert cache.lists(SUBJECT, ["cart"]) == {}
    assert list(cache.lists(SUBJECT, ["rate"])["rate"].ids) == [0]
    assert list(cache.past_of(["b.py"])) == [["b.py"]]
    assert cache.note("past head") == "c2"


def test_a_reader_sees_that_another_has_written(tmp_path: Path) -> None:
    writer = IndexCache(tmp_path / "cache.db", writes=True)
    reader = IndexCache(tmp_path / "cache.db")
    before = reader.state
    writer.write([entry("a.py", "cart")])
    assert reader.state != before
    assert list(reader.ids()) == ["a.py"]


def test_an_index_of_another_version_is_refused_by_readers_and_made_anew_by_writers(
    tmp_path: Path,
) -> None:
    path = tmp_path / "cache.db"
    writer = IndexCache(path, writes=True)
    writer.write([entry("a.py", "cart")])
    writer.close()
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA user_version = 999")
    connection.close()
    with pytest.raises(apsw.Error):
        IndexCache(path)
    assert IndexCache(path, writes=True).ids() == {}


def test_there_is_no_reader_without_an_index(tmp_path: Path) -> None:
    with pytest.raises(apsw.Error):
        IndexCache(tmp_path / "cache.db")


def test_segments_are_merged_without_what_is_gone(
    cache: IndexCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_cache, "MOST_SEGMENTS", 3)
    cache.write_past([PastCommit("c1", 1, "Price the cart", ["a.py"])], "c1")
    for word in ("cart", "rate", "total"):
        cache.write([entry("a.py", word), entry(f"{word}.py", "tax")])
    assert cache.merge()
    assert not cache.merge()
    assert cache.lists(PART, ["cart", "rate"]) == {}
    assert set(paths_of(cache, PART, "tax")) == {"cart.py", "rate.py", "total.py"}
    assert set(cache.lists(SUBJECT, ["cart"])) == {"cart"}


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["cart", "rate", ""]))))
def test_whatever_was_written_in_which_order_the_last_words_of_each_file_count(
    writes: list[tuple[str, str]],
) -> None:
    cache = IndexCache(Path(":memory:"), writes=True)
    last: dict[str, str] = {}
    for path, word in writes:
        last[path] = word
        cache.write([entry(path, word)] if word else [], removed=[] if word else [path])
    for word in ("cart", "rate"):
        assert set(paths_of(cache, PART, word)) == {p for p, w in last.items() if w == word}


def test_more_files_than_a_statement_has_variables_can_be_asked_for() -> None:
    cache = IndexCache(Path(":memory:"), writes=True)
    cache.write([FileEntry("a.py", FileStamp(1, 1), "python", b"d", EMPTY)])
    assert cache.paths(range(40_000)) == ["a.py"]
