"""Retrieval: what matters for a request or a file, and the measures of 30 pairs of sessions."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.decisions import (
    DecisionChanged,
    DecisionEntry,
    DecisionGraph,
    DecisionOption,
    fold_decisions,
    log_entry,
)
from weft.decisions.graph_index import TextIndex, index_of
from weft.decisions.note import TOKEN, note_line, path_note
from weft.decisions.pulse import returning_options
from weft.decisions.relevance import nodes_for_path, relevant_nodes, search
from weft.decisions.scope import covers, folder_of, is_symbol
from weft.decisions.scope_index import ScopeIndex
from weft.decisions.words import root_of, small_letters, words_of
from weft.ids import DecisionId

DATA = msgspec.json.decode(
    (Path(__file__).parent / "data" / "pairs.json").read_bytes(), type=dict[str, Any]
)
NOW = 1_800_000_000.0


def add(graph: DecisionGraph, title: str, **fields: Any) -> DecisionId:
    given = {"title": title, "status": "active", "at": NOW, **fields}
    logged = log_entry(DecisionEntry(**given), graph, seed="s")
    fold_decisions(logged.facts, start=graph)
    return logged.node.id


def decided(graph: DecisionGraph, pair: dict[str, Any]) -> DecisionId:
    """What session A decides."""
    options = (
        DecisionOption(title=pair["chosen"], verdict="chosen"),
        DecisionOption(title=pair["rejected"], why=pair["reason"]),
    )
    return add(graph, pair["title"], why=pair["why"], scope=tuple(pair["scope"]), options=options)


@pytest.fixture(scope="module")
def project() -> tuple[DecisionGraph, list[DecisionId]]:
    """One project in which all 30 decisions were made."""
    graph = DecisionGraph()
    return graph, [decided(graph, pair) for pair in DATA["pairs"]]


def test_the_rejection_is_returned_in_at_least_95_percent_of_the_pairs(
    project: tuple[DecisionGraph, list[DecisionId]],
) -> None:
    graph, names = project
    returned = 0
    for pair, name in zip(DATA["pairs"], names, strict=True):
        found = relevant_nodes(graph, pair["request"], now=NOW, most=6)
        lines = [note_line(graph, each.node) for each in found]
        returned += any(pair["rejected"] in line and name in line for line in lines)
    assert len(names) == 30
    assert returned / len(names) >= 0.95


def test_an_unrelated_request_gets_one_node_at_most(
    project: tuple[DecisionGraph, list[DecisionId]],
) -> None:
    for request in DATA["unrelated"]:
        assert len(relevant_nodes(project[0], request, now=NOW)) <= 1, request


def test_the_notes_of_a_request_are_few_tokens(
    project: tuple[DecisionGraph, list[DecisionId]],
) -> None:
    spent = [
        sum(
            len(note_line(project[0], each.node)) // TOKEN
            for each in relevant_nodes(project[0], pair["request"], now=NOW, most=6)
        )
        for pair in DATA["pairs"]
    ]
    assert max(spent) <= 400
    assert sum(spent) / len(spent) <= 200


def test_what_is_in_scope_comes_before_what_has_the_words() -> None:
    graph = DecisionGraph()
    words = add(graph, "Cache lookups in memory")
    scope = add(graph, "Keys are tuples", scope=("src/cache.py",))
    found = relevant_nodes(graph, "make the cache lookups in src/cache.py faster", now=NOW)
    assert [each.node.id for each in found] == [scope, words]
    [file] = relevant_nodes(graph, "and now this", paths=["src/cache.py"], now=NOW)
    assert file.in_scope


def test_a_goal_in_reach_and_a_younger_age_decide_between_equals() -> None:
    graph = DecisionGraph()
    old = add(graph, "Queue mails in a table", at=NOW - 700 * 86_400)
    new = add(graph, "Queue jobs in a table", at=NOW)
    assert [each.node.id for each in relevant_nodes(graph, "a queue table", now=NOW)] == [new, old]
    goal = add(graph, "Mails arrive", kind="goal")
    near = add(graph, "Queue pages in a table", parent=goal)
    assert relevant_nodes(graph, "a queue table", now=NOW)[0].node.id == near


def test_a_standing_order_counts_for_every_request_and_what_is_over_for_none() -> None:
    graph = DecisionGraph()
    order = add(graph, "Never push to main", kind="constraint")
    add(graph, "Cache everything", status="superseded")
    given_up = add(graph, "Rewrite the cache in C", kind="action", status="abandoned")
    found = relevant_nodes(graph, "speed up the cache", now=NOW)
    assert {each.node.id for each in found} == {order, given_up}


def test_the_decisions_of_a_file_begin_with_what_was_rejected() -> None:
    graph = DecisionGraph()
    plain = add(graph, "Newest", scope=("src/**",), at=NOW + 5)
    rejecting = add(graph, "Older", scope=("src/a.py",), options=(DecisionOption(title="No"),))
    add(graph, "Elsewhere", scope=("web/**",))
    add(graph, "Everywhere")
    assert [node.id for node in nodes_for_path(graph, "src/a.py")] == [rejecting, plain]


def test_search_finds_what_is_over_too() -> None:
    graph = DecisionGraph()
    name = add(graph, "Store blobs in S3", status="superseded")
    add(graph, "Another thing")
    assert [node.id for node in search(graph, "blob storage in s3", now=NOW)] == [name]
    assert search(graph, "nothing like it", now=NOW) == []


# --- notes


def test_a_line_says_what_was_rejected_first_and_why() -> None:
    graph = DecisionGraph()
    name = decided(graph, DATA["pairs"][0])
    assert note_line(graph, graph.nodes[name]) == (
        "Rejected: Redis (we do not want another service to run). Decided: Cache session lookups "
        "in process (an LRU in memory): one machine, no service to run. "
        f"[{name}, by the user, src/sessions/**]"
    )


def test_an_attempt_that_was_given_up_is_told_as_such() -> None:
    graph = DecisionGraph()
    name = add(graph, "Port to Rust", kind="action", status="abandoned", why="It took too long.")
    line = note_line(graph, graph.nodes[name])
    assert line.startswith("Tried and given up: Port to Rust: It took too long. [")


@pytest.mark.parametrize("length", [10, 120])
def test_a_note_inside_a_result_keeps_to_its_tokens(length: int) -> None:
    graph = DecisionGraph()
    for number in range(5):
        title = f"{number} {'w' * length}"[:120]
        add(graph, title, why="because " * 60, options=(DecisionOption(title=title),))
    text, told = path_note(graph, graph.nodes.values(), 120)
    assert 0 < len(text) <= 120 * TOKEN
    assert told
    assert path_note(graph, [], 120) == ("", [])
    assert path_note(graph, graph.nodes.values(), 10) == ("", [])


# --- scopes and words


@pytest.mark.parametrize(
    ("scope", "path", "is_covered"),
    [
        ("src/**", "src/a/b.py", True),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/a/b.py", False),
        ("src/store", "src/store/a.py", True),
        ("src/store/", "src/store/a.py", True),
        ("src/store", "src/storeroom.py", False),
        ("*.md", "docs/deep/a.md", True),
        ("**/test_*.py", "test_a.py", True),
        ("**/test_*.py", "x/y/test_a.py", True),
        ("src/{a,b}.py", "src/b.py", True),
        ("src/{a,b}.py", "src/c.py", False),
        ("a?.py", "ab.py", True),
        ("Makefile", "Makefile", True),
        ("Makefile", "sub/Makefile", True),
        ("src/a.py", "src/a.pyc", False),
        ("src/[x].py", "src/[x].py", True),
        (".", "anything", True),
    ],
)
def test_a_scope_covers_paths(scope: str, path: str, is_covered: bool) -> None:
    assert covers((scope,), path) is is_covered


def test_a_scope_that_would_take_a_matcher_long_takes_none() -> None:
    assert not covers(("*a" * 30 + "b",), "a" * 200)
    assert not covers(("**/a/" * 30 + "b",), "a/" * 200 + "c")


@pytest.mark.parametrize(
    ("scope", "is_one"),
    [
        ("SessionStore", True),
        ("store.open()", True),
        ("Store::open", True),
        ("parse()", True),
        ("a.py", False),
        ("src/x", False),
        ("*.py", False),
    ],
)
def test_symbols_are_told_from_paths(scope: str, is_one: bool) -> None:
    assert is_symbol(scope) is is_one


def test_a_request_mentions_a_scope_by_path_folder_or_symbol() -> None:
    index: ScopeIndex[int] = ScopeIndex()
    for number, scope in enumerate(("web/**", "src/a.py", "Store::open")):
        index.add(number, (scope,))
    assert list(index.mentioned("the page in web/ is empty")) == [0]
    assert list(index.mentioned("look at @src/a.py.")) == [1]
    assert list(index.mentioned("why does open fail?")) == [2]
    assert not index.mentioned("the website is empty")
    assert folder_of("src/**/a.py") == "src"


def test_a_note_on_a_file_looks_no_further_than_it_has_room() -> None:
    graph = DecisionGraph()
    for number in range(300):
        add(graph, f"{number} {'x' * (number % 50)}", scope=("a.py",), at=NOW + number)
    nodes = nodes_for_path(graph, "a.py")
    assert nodes_for_path(graph, "a.py", most=5) == nodes[:5]
    assert nodes_for_path(graph, "a.py", most=1, accepts=lambda node: node.at == NOW) == nodes[-1:]
    waiting = iter(nodes)
    _, taken = path_note(graph, waiting, 120)
    assert len(taken) > 3
    assert len(list(waiting)) > 200


def test_a_request_in_a_wide_scope_weighs_few_of_its_decisions() -> None:
    graph = DecisionGraph()
    for number in range(1_000):
        add(graph, f"Rule {number}", scope=("**",), at=NOW + number)
    old = add(graph, "Use Kafka", scope=("**",), at=NOW - 5)
    found = relevant_nodes(graph, "What about Kafka?", paths=["a.py"], now=NOW, most=3)
    assert found[0].node.id == old
    assert all(each.in_scope for each in found)
    weighed = [each for each in index_of(graph).nodes.values() if each.counts is not None]
    assert len(weighed) < 400


@given(
    texts=st.lists(st.text("abc-. \n", max_size=40), max_size=8), part=st.text("abc-.", min_size=1)
)
def test_an_index_finds_the_texts_that_have_some_letters(texts: list[str], part: str) -> None:
    index = TextIndex()
    for number, text in enumerate(texts):
        index.add(number, text)
    assert index.having(part) == {number for number, text in enumerate(texts) if part in text}


def test_what_was_written_anew_is_found_by_its_new_words_alone() -> None:
    graph = DecisionGraph()
    name = add(graph, "Use Redis")
    for number in range(1_100):
        word = "Kafka" if number % 2 else "Redis"
        graph.apply(DecisionChanged(id=name, title=f"Use {word}"))
        if number % 100 < 2:
            found = [len(search(graph, each, now=NOW)) for each in ("kafka", "redis")]
            assert found == [number % 2, 1 - number % 2]
        else:
            index_of(graph)


def test_words_are_compared_by_their_stems() -> None:
    assert words_of("Retries of the HTTPClient") == words_of("retry http clients")
    assert words_of("sorting") == words_of("sortable") == words_of("sorted")
    assert words_of("the of and") == ()


@pytest.mark.parametrize(
    ("title", "rejected", "request_text", "query"),
    [
        (
            "Кэш хранится в памяти процесса",
            "Мемкэш",
            "Давай хранить кэш в мемкэш",
            "память кэши",
        ),
        ("Schlüssel für Benutzer kürzen", "Präfixbäume", "Bau Präfixbäume", "schlüssel"),
        ("Η κρυφή μνήμη μένει στη διεργασία", "Διακομιστής", "Φτιάξε διακομιστής", "μνήμη"),
        ("缓存保存在进程内存中", "分布式缓存", "我们用分布式缓存吧", "内存缓存"),
        ("SQLite用于会话", "分布式缓存", "把会话放进SQLite", "sqlite 会话"),
        ("キャッシュはメモリに置く", "サーバー", "サーバーを使おう", "メモリのキャッシュ"),
        ("캐시는 프로세스 메모리에 둔다", "분산 저장소", "분산 저장소를 쓰자", "메모리 캐시"),
        ("कैश को मेमोरी में रखें", "सर्वर", "सर्वर बनाओ", "मेमोरी कैश"),
    ],
)
def test_decisions_in_other_scripts_are_told_and_found(
    title: str, rejected: str, request_text: str, query: str
) -> None:
    graph = DecisionGraph()
    name = add(graph, title, options=(DecisionOption(title=rejected),))
    assert [each.node.id for each in relevant_nodes(graph, request_text, now=NOW)] == [name]
    assert name in [node.id for node in search(graph, query, now=NOW)]
    assert returning_options(graph, f"{request_text} {rejected}")
    unrelated = ("Нарисуй кнопку для входа", "把按钮画成蓝色", "ボタンを青くする", "버튼을 파랗게")
    for other in unrelated:
        assert relevant_nodes(graph, other, now=NOW) == []
        assert returning_options(graph, other) == []


@given(text=st.text("aZ9é缓存クをИßΣ한\u0301 -.,。\n", max_size=40))
def test_every_word_of_a_text_is_in_its_index(text: str) -> None:
    index = TextIndex()
    index.add(7, small_letters(text))
    assert all(index.having(root_of(word)) == {7} for word in words_of(text))


def test_the_words_that_are_kept_between_two_searches_weigh_at_most_two_megabytes() -> None:
    """Numbers and names in requests are new words for ever, in a process that lives long."""
    words_of("the tables are loaded")
    tracemalloc.start()
    try:
        for number in range(6_000):
            words_of(f"Have {number}.{number} of seat{number} in a title that is {'longer ' * 18}")
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 2_000_000
