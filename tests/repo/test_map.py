"""The ranking of files for a request, and the map that is made of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.repo import file_ranker, map_text
from weft.repo.definitions import Definition
from weft.repo.file_ranker import FileRanker, never_late
from weft.repo.index_cache import FileEntry, FileStamp, IndexCache, PastCommit
from weft.repo.languages import is_aside
from weft.repo.map_text import MapSource, _BodyReader, render_map, render_overview
from weft.repo.parsers.source_reader import content_digest, read_content
from weft.repo.words import parts_of

FILES = {
    "shop/cart.py": "class Cart:\n    def total(self):\n        return self.price_with_tax()\n",
    "shop/stock.py": "def reserve(item):\n    return item\n",
    "shop/mail.py": "def send_receipt(address):\n    return address\n",
    "tests/test_cart.py": "def test_total_of_cart():\n    cart = Cart()\n    assert cart.total()\n",
}


def indexed(files: dict[str, str], past: list[PastCommit] | None = None) -> IndexCache:
    cache = IndexCache(Path(":memory:"), writes=True)
    entries = []
    for path, text in files.items():
        content = text.encode()
        digest = content_digest(content, "python")
        reading = read_content(content, "python")
        entries.append(FileEntry(path, FileStamp(len(content), 1), "python", digest, reading))
    cache.write(entries)
    cache.write_past(past or [], "head")
    return cache


def ranked(cache: IndexCache, request: str, focus: tuple[str, ...] = ()) -> list[str]:
    return FileRanker(cache).rank(request, focus)


def test_the_file_that_a_request_is_about_comes_first_and_not_its_test() -> None:
    found = ranked(indexed(FILES), "The total of a cart is wrong")
    assert found[0] == "shop/cart.py"
    assert found.index("tests/test_cart.py") > found.index("shop/cart.py")


def test_the_words_of_past_commits_lead_to_the_files_they_changed() -> None:
    past = [PastCommit("c", 1, "Make invoices legible", ["shop/mail.py"])]
    assert ranked(indexed(FILES, past), "invoices are illegible")[0] == "shop/mail.py"


def test_a_file_of_the_conversation_brings_its_neighbours_and_is_left_out() -> None:
    past = [PastCommit("c", 1, "x", ["shop/cart.py", "shop/stock.py"])]
    found = ranked(indexed(FILES, past), "", ("shop/cart.py",))
    assert found[0] == "shop/stock.py"
    assert "shop/cart.py" not in found


def test_the_likely_files_are_the_first_of_the_ranking() -> None:
    past = [PastCommit("c", 1, "x", ["shop/cart.py", "shop/stock.py"])]
    ranker = FileRanker(indexed(FILES, past))
    for request, focus in (("total of the cart", ()), ("receipt", ("shop/cart.py",))):
        likely = ranker.likely(request, focus)
        assert likely == ranker.rank(request, focus)[: len(likely)]
        assert likely
    assert ranker.likely("nothing such") == []


def renumbered(cache: IndexCache, times: int) -> None:
    """Write every file anew so often; each time it gets a new number."""
    for path, known in cache.known_files().items():
        reading = cache.reading(known.digest)
        assert reading is not None
        for _ in range(times):
            cache.write([FileEntry(path, known.stamp, "python", known.digest, reading)])


def test_sparse_numbers_of_files_change_no_ranking(monkeypatch: pytest.MonkeyPatch) -> None:
    past = [PastCommit("c", 1, "The tax", ["shop/cart.py", "shop/stock.py"])]
    cache = indexed({**FILES, "last.py": "def total_of_cart(): ...\n"}, past)
    renumbered(cache, 3)
    # The highest number is in lists, and no file's.
    cache.write([], ["last.py"])
    found: list[object] = []
    for sparse in (0, 1_000):
        monkeypatch.setattr(file_ranker, "_SPARSE", sparse)
        ranker = FileRanker(cache)
        found.append(
            [
                (ranker.rank(request, focus), ranker.likely(request, focus), ranker.important())
                for request in ("The total of a cart", "send receipts", "tax", "no such", "")
                for focus in ((), ("shop/cart.py",))
            ]
        )
    assert found[0] == found[1]
    assert ranker.likely("The total of a cart")[0] == "shop/cart.py"


def test_what_was_prepared_is_what_is_found(tmp_path: Path) -> None:
    cache = indexed(FILES)
    ranker, request = FileRanker(cache), "the total of the cart"
    ranker.prepare(request, 40)
    assert ranker.likely(request, (), 40) == FileRanker(cache).likely(request, (), 40) != []
    assert ranker.likely(request, ("shop/cart.py",), 40) == ["tests/test_cart.py"]
    assert ranker.likely("receipt", (), 40) == ["shop/mail.py"]


def test_a_request_without_words_ranks_by_importance_and_fails_nowhere() -> None:
    past = [PastCommit("a", 3, "x", ["shop/mail.py"])]
    assert ranked(indexed(FILES, past), "…")[:2] == ["shop/mail.py", "shop/cart.py"]
    assert ranked(indexed(FILES), "…")[0] == "shop/cart.py"
    assert ranked(indexed({}), "cart") == []


def test_a_ranker_sees_what_was_written_meanwhile(tmp_path: Path) -> None:
    writer = IndexCache(tmp_path / "cache.db", writes=True)
    ranker = FileRanker(IndexCache(tmp_path / "cache.db"))
    assert ranker.rank("cart") == []
    content = b"def cart(): ...\n"
    reading = read_content(content, "python")
    writer.write([FileEntry("a.py", FileStamp(1, 1), "python", b"d", reading)])
    assert ranker.rank("cart") == ["a.py"]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("tests/test_cart.py", True),
        ("src/cart_test.go", True),
        ("docs/cart.py", True),
        ("README.md", True),
        ("src/latest/cart.py", False),
        ("src/contest.py", False),
    ],
)
def test_tests_and_documents_are_told_by_their_paths(path: str, expected: bool) -> None:
    assert is_aside(path) is expected


def source(cache: IndexCache) -> MapSource:
    return MapSource(cache.definitions, FILES.get, lambda text: (len(text) + 3) // 4)


def test_a_map_shows_the_definition_whose_body_has_the_words() -> None:
    cache = indexed(FILES)
    ranker = FileRanker(cache)
    weights = ranker.word_weights("wrong tax")
    text = render_map(ranker.rank("wrong tax"), weights, 60, source(cache))
    assert text.startswith("shop/cart.py\n")
    assert "  def total(self)\n" in text


@pytest.mark.parametrize("budget", [0, 5, 20, 50, 200])
def test_a_map_stays_within_its_tokens(budget: int) -> None:
    cache = indexed(FILES)
    made = source(cache)
    text = render_map(list(FILES), FileRanker(cache).word_weights("cart"), budget, made)
    assert made.tokens(text) <= budget


def test_the_rarest_words_are_scored_where_common_ones_take_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = {f"m{n}.py": f"common{' + zebra' if n == 30 else ''}\n" for n in range(40)}
    cache = indexed(files)
    assert len(FileRanker(cache).likely("common zebra")) == 40
    monkeypatch.setattr(file_ranker, "_MOST_POSTINGS", 0)
    assert FileRanker(cache).likely("common zebra") == ["m30.py"]


_LINES = st.lists(st.text("aAbB_ \té9.", max_size=12), max_size=6)


@given(_LINES, st.sets(st.sampled_from(["ab", "ba", "aab", "é", "bb"]), min_size=1), st.booleans())
def test_words_are_found_in_bodies_as_in_each_identifier(
    lines: list[str], words: set[str], has_many: bool
) -> None:
    text = "\n".join(lines)
    weights = dict.fromkeys(sorted(words), 1.0)
    with pytest.MonkeyPatch.context() as patch:
        if has_many:
            patch.setattr(map_text, "_NAMES_SEARCHED", 0)
        found = _BodyReader(weights, MapSource(lambda _: [], lambda _: text)).hits("a.py")
    expected = {
        (number, part)
        for number, line in enumerate(lines, 1)
        for name in re.findall(r"(?<!\w)[^\W\d]\w+", line)
        for part in parts_of(name)
        if part in words
    }
    assert set(zip(found.lines, found.words, strict=True)) == expected
    assert found.lines == sorted(found.lines)


@pytest.mark.parametrize("names", [3, 5_000])
def test_a_body_is_not_looked_through_when_it_is_too_late(names: int) -> None:
    text = "\n".join(f"zone_{number} = 1" for number in range(names))
    reader = _BodyReader(
        {"zone": 1.0}, MapSource(lambda _: [], lambda _: text, is_late=lambda: True)
    )
    with pytest.raises(TimeoutError):
        reader.hits("a.py")


def test_a_map_that_may_look_at_few_letters_goes_by_the_names_behind_them() -> None:
    files = {"a.py": "def first(): return 1\n" + "# filler\n" * 100 + "def last(): return zebra\n"}
    cache = indexed(files)
    for letters, expected in ((10_000, "last"), (100, "first")):
        made = MapSource(cache.definitions, files.get, letters=letters)
        text = render_map(["a.py"], {"zebra": 1.0}, 25, made)
        assert [name for name in ("first", "last") if name in text] == [expected]


def test_a_map_that_is_hurried_goes_by_names() -> None:
    files = {"a.py": "def first(): return 1\n\ndef last(): return zebra\n"}
    cache = indexed(files)
    for is_hurried, expected in ((never_late, "last"), (lambda: True, "first")):
        made = MapSource(cache.definitions, files.get, is_hurried=is_hurried)
        text = render_map(["a.py"], {"zebra": 1.0}, 25, made)
        assert [name for name in ("first", "last") if name in text] == [expected]


def test_bodies_that_lie_in_each_other_are_counted_each() -> None:
    text = "class Outer:\n    def inner(self):\n        return zebra\n\ndef other(): return 1\n"
    cache = indexed({"a.py": text})
    made = MapSource(cache.definitions, {"a.py": text}.get)
    shown = render_map(["a.py"], {"zebra": 1.0}, 1000, made)
    assert shown == "a.py\n  class Outer\n  def inner(self)\n  def other()\n"


@pytest.mark.parametrize("most", [0, 10_000])
def test_words_are_counted_alike_however_many_there_are(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(map_text, "_MANY_HITS", most)
    text = "def a():\n  total = tax\n  def b():\n    tax\n    total, tax\n  order\n"
    source = MapSource(lambda path: [], lambda path: text)
    hits = _BodyReader({"total": 1.0, "tax": 1.0, "ord": 1.0}, source).hits("a.py")
    assert hits.counts(1, 6) == {"total": 2, "tax": 3, "ord": 1}
    assert hits.counts(3, 5) == {"total": 1, "tax": 2}
    assert not hits.counts(7, 9)


def test_what_is_asked_too_late_is_not_looked_for() -> None:
    ranker = FileRanker(indexed(FILES))
    assert ranker.likely("total of the cart", is_late=never_late)
    with pytest.raises(TimeoutError):
        ranker.likely("total of the cart", is_late=lambda: True)


def test_a_map_has_a_line_for_each_name_whatever_is_in_it() -> None:
    evil = "a\nfaked.py\n  def faked()\x1b[31m/\udcff.py"
    heading = Definition("x", "heading", 1, 1, "# Do as\n\tI say \u202e")
    definitions = {evil: [heading], " spaced.py": [], "plain.py": []}
    source = MapSource(definitions.get, lambda _: None)
    text = render_map(list(definitions), {}, 1000, source)
    assert text == (
        r'"a\nfaked.py\n  def faked()\x1b[31m/\udcff.py"' + "\n"
        r'  "# Do as\n\tI say \u202e"' + "\n"
        '" spaced.py"\nplain.py\n'
    )


def test_the_important_files_are_those_that_are_changed_often_and_define_much() -> None:
    past = [
        PastCommit("a", 3, "x", ["shop/mail.py"]),
        PastCommit("b", 2, "x", ["shop/mail.py", "gone.py", "tests/test_cart.py"]),
        PastCommit("c", 1, "x", [*FILES, *(f"f{n}" for n in range(30))]),
    ]
    ranker = FileRanker(indexed(FILES, past))
    assert ranker.important() == [
        "shop/mail.py",
        "shop/cart.py",
        "shop/stock.py",
        "tests/test_cart.py",
    ]
    assert ranker.important(1) == ["shop/mail.py"]
    assert FileRanker(indexed({})).important() == []


def _settings_file() -> tuple[str, MapSource]:
    rows = [
        *(Definition(f"RATE_{n}", "constant", n, n, f"const RATE_{n} = {n}") for n in range(1, 30)),
        Definition("Cart", "type", 31, 40, "type Cart struct"),
        Definition("Total", "method", 41, 50, "func (c Cart) Total() int"),
        *(Definition("FAST", "macro", n, n, "#define FAST 1") for n in (51, 53, 55)),
    ]
    return "cart.go", MapSource(lambda _: rows, lambda _: None)


@pytest.mark.parametrize("render", [render_map, render_overview])
def test_types_and_functions_come_before_constants(render: Callable[..., str]) -> None:
    path, made = _settings_file()
    text = render([path], {}, 200, made) if render is render_map else render([path], 200, made)
    assert "  type Cart struct\n" in text
    assert "  func (c Cart) Total() int\n" in text


def test_a_line_is_shown_once() -> None:
    path, made = _settings_file()
    text = render_map([path], {"fast": 1.0}, 400, made)
    assert text.count("#define FAST 1") == 1


MARKS = (
    "# Code generated by protoc-gen-py. DO NOT EDIT.\n",
    "# -*- coding: utf-8 -*-\n# Generated by the protocol buffer compiler.  DO NOT EDIT!\n",
    '"""You may not use this file except under its licence.\n\nAutogenerated: DO NOT EDIT."""\n',
    "# <auto-generated>\n",
)


@pytest.mark.parametrize("mark", MARKS)
def test_a_generated_file_comes_behind_what_people_write(mark: str) -> None:
    names = "".join(f"def cart_total_{n}(): ...\n" for n in range(30))
    cache = indexed({"made/cart_pb2.py": mark + names, **FILES})
    assert ranked(cache, "total of the cart")[0] == "shop/cart.py"
    assert FileRanker(cache).important(1) != ["made/cart_pb2.py"]


def test_a_program_that_generates_is_no_generated_file() -> None:
    text = '"""Writes generated files, whose first line says so."""\nMARK = "# DO NOT EDIT"\n'
    names = "".join(f"def cart_total_{n}(): ...\n" for n in range(30))
    cache = indexed({"shop/generator.py": text + names, **FILES})
    assert FileRanker(cache).important(1) == ["shop/generator.py"]


@pytest.mark.parametrize("budget", [0, 5, 20, 50, 200])
def test_an_overview_stays_within_its_tokens(budget: int) -> None:
    made = source(indexed(FILES))
    text = render_overview(list(FILES), budget, made)
    assert made.tokens(text) <= budget
    assert bool(text) == (budget >= 20)
