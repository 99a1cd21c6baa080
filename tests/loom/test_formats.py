"""Trees in files: what other programs write, our own format, pages; and files that mean harm."""

from __future__ import annotations

import copy
import io
import json
import zipfile
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.example_count import examples
from weft.cli.commands.table import when
from weft.errors import UsageError
from weft.loom.formats.assembly import assembled
from weft.loom.formats.basemode import dump_basemode
from weft.loom.formats.own_json import dump_own
from weft.loom.formats.plain_json import MOST_BYTES, MOST_VALUES, iso_time, seconds
from weft.loom.formats.tree_export import dump_html, dump_markdown
from weft.loom.formats.tree_file import FORMAT_NAMES, format_of, parse_trees
from weft.loom.node_record import NodeRecord, TreeRecord

FILES = Path(__file__).parent / "files"
FOREIGN = sorted(path.stem for path in FILES.glob("*.json"))


def read(name: str) -> tuple[TreeRecord, ...]:
    return parse_trees((FILES / f"{name}.json").read_bytes())


def lines(tree: TreeRecord) -> dict[str, str]:
    """The whole text of each node's line."""
    return {node.id: "".join(each.text for each in tree.line(node.id)) for node in tree.nodes}


def by_id(tree: TreeRecord) -> dict[str, NodeRecord]:
    return {node.id: node for node in tree.nodes}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_file_is_known_by_what_it_holds(name: str) -> None:
    assert format_of(json.loads((FILES / f"{name}.json").read_text())) == name
    assert {tree.source for tree in read(name)} == {name}
    assert set(FOREIGN) == set(FORMAT_NAMES) - {"weft-loom"}


def test_basemode_brings_contexts_to_where_they_begin() -> None:
    (tree,) = read("basemode")
    nodes = by_id(tree)
    assert lines(tree) == {
        "b1f0": "The lighthouse",
        "b1f1": "The lighthouse kept its lamp",
        "b1f2": "The lighthouse went dark",
        "b1f3": "The lighthouse went dark at noon.",
    }
    assert [node.context for node in tree.nodes] == ["A calm sea story.", "", "", "A storm comes."]
    assert (nodes["b1f1"].bookmarked, nodes["b1f1"].rating) == (True, 2.0)
    assert (nodes["b1f2"].model, nodes["b1f2"].strategy) == ("haiku", "prefill")
    assert nodes["b1f2"].usage == {"prompt_tokens": 9, "completion_tokens": 3}
    assert nodes["b1f2"].metadata == {"generation_id": "g1"}
    assert (nodes["b1f3"].role, nodes["b1f3"].hidden) == ("user", True)
    assert iso_time(nodes["b1f0"].created_at) == "2026-05-02T09:30:00.250000Z"
    assert [node.id for node in tree.line()] == ["b1f0", "b1f2", "b1f3"]


def test_what_basemode_gave_it_gets_back() -> None:
    trees = read("basemode")
    again = parse_trees(dump_basemode(trees))
    assert again == trees
    assert dump_basemode(again) == dump_basemode(trees)
    rows = json.loads(dump_basemode(trees))["nodes"]
    known = {row["id"]: row for row in json.loads((FILES / "basemode.json").read_text())["nodes"]}
    for row in rows:
        if row["kind"] != "context":
            assert {**row, "context_id": 0} == {**known[row["id"]], "context_id": 0}


def test_tinyloom_keeps_its_texts_through_edits_and_emoji() -> None:
    (tree,) = read("tinyloom")
    assert lines(tree) == {
        "1": "",
        "2": "The lamp 🔦 burned",
        "4": "The lamp 🔦 burned all night.",
        "5": "The lamp 🔦 shone all night.",
        "3": "Elsewhere",
    }
    nodes = by_id(tree)
    # An edit inside the text of an ancestor leaves the tree where the texts part.
    assert (nodes["5"].parent_id, nodes["5"].metadata) == ("1", {"source_parent": "4"})
    assert (nodes["4"].model, nodes["4"].bookmarked) == ("llama-3", True)
    assert (nodes["2"].model, nodes["2"].role, nodes["3"].hidden) == ("", "user", True)


def test_minihf_brings_its_ratings_and_its_place() -> None:
    (tree,) = read("minihf")
    assert lines(tree)["3"] == "Deep in the wood a bell rang"
    assert tree.current_id == "4"
    nodes = by_id(tree)
    assert (nodes["3"].rating, nodes["4"].rating, nodes["2"].rating) == (1.0, -1.0, None)
    assert nodes["3"].metadata == {"summary": "Bell"}
    assert nodes["1"].created_at == 1714640000.0


def test_a_hunk_without_a_place_is_looked_for() -> None:
    hunk = {"diffs": [[0, "Seed"], [1, " alpha"]]}
    nodes = {
        "1": {"id": 1, "parent": None, "patches": None},
        "2": {"id": 2, "parent": 1, "patches": [{"diffs": [[1, "a Seed b"]]}]},
        "3": {"id": 3, "parent": 2, "patches": [hunk]},
        "4": {"id": 4, "parent": 1, "patches": [hunk]},
    }
    (tree,) = parse_trees(json.dumps({"root": 1, "nodes": nodes}).encode())
    assert lines(tree) == {"1": "", "2": "a Seed b", "3": "a Seed alpha b", "4": " alpha"}


def test_bonsai_keeps_what_each_node_adds() -> None:
    (tree,) = read("bonsai")
    assert [node.text for node in tree.nodes] == ["Seed", " alpha", " beta"]
    nodes = by_id(tree)
    assert nodes["b"].metadata == {"source_parents": ["a"]}
    assert (nodes["a"].hidden, nodes["b"].model) == (True, "human")
    root = {"id": "r", "parentIds": [], "text": "S"}
    apart = [root, {"id": "c", "parentIds": ["r"], "text": " more"}]
    (other,) = parse_trees(json.dumps({"nodes": apart}).encode())
    assert lines(other)["c"] == "S more"


def test_chatgpt_gives_a_tree_for_each_conversation() -> None:
    knots, empty = read("chatgpt")
    assert (knots.root_id, knots.name, knots.current_id) == ("conv-1", "Knots", "m4")
    assert (knots.created_at, empty.root_id, empty.current_id) == (1700000000.5, "conv-2", "conv-2")
    assert [node.id for node in knots.nodes] == ["conv-1", "m0", "m1", "m2", "m3", "m4"]
    nodes = by_id(knots)
    assert (nodes["m0"].hidden, nodes["m1"].role, nodes["m4"].model) == (True, "user", "gpt-4o")
    assert nodes["m2"].text == "[image_asset_pointer]\nAs shown."
    assert (nodes["m3"].text, nodes["m3"].role) == ("42", "tool")
    assert [node.id for node in knots.line()] == ["conv-1", "m0", "m1", "m4"]


def test_claude_gives_a_line_or_the_branches_that_the_file_has() -> None:
    sails, branches = read("claude")
    assert [node.text for node in sails.nodes] == [
        "",
        "What is a jib?",
        "A triangular sail.\n\nIt is set ahead of the mast.",
    ]
    assert by_id(sails)["c-1"].metadata == {"files": ["sail.txt"]}
    assert [node.parent_id for node in branches.nodes] == [None, "u-2", "d-1", "d-1"]
    assert (branches.current_id, by_id(branches)["d-3"].model) == ("d-2", "claude-opus-4")


def test_an_export_is_read_from_its_archive() -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("export/user.json", "{}")
        archive.write(FILES / "chatgpt.json", "export/conversations.json")
    assert parse_trees(packed.getvalue()) == read("chatgpt")


# --- our own ----------------------------------------------------------------------------------

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**50), 2**50) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=4,
)
ID_LETTER = st.characters(codec="utf-8", exclude_characters="\0")
ID_TEXT = st.text(ID_LETTER, max_size=2)
TIMES = st.none() | st.floats(0, 4e9)


@st.composite
def forests(draw: st.DrawFn) -> tuple[TreeRecord, ...]:
    trees = []
    for number in range(draw(st.integers(1, 2))):
        size = draw(st.integers(1, 6))
        nodes: list[NodeRecord] = []
        for at in range(size):
            nodes.append(
                NodeRecord(
                    id=f"{number}-{draw(ID_TEXT)}-{at}",
                    parent_id=nodes[draw(st.integers(0, at - 1))].id if at else None,
                    text=draw(st.text(max_size=8)),
                    kind=draw(st.sampled_from(["text", "message"])) if at else "root",
                    model=draw(st.sampled_from(["", "a:b"])),
                    context=draw(st.sampled_from(["", "c"])),
                    created_at=draw(TIMES),
                    rating=draw(st.none() | st.floats(-5, 5)),
                    checked_out=draw(st.booleans()),
                    metadata=draw(st.dictionaries(st.text(max_size=3), PLAIN, max_size=2)),
                )
            )
        current = draw(st.sampled_from(["", nodes[-1].id]))
        trees.append(TreeRecord(root_id=nodes[0].id, nodes=tuple(nodes), current_id=current))
    return tuple(trees)


@settings(max_examples=examples(25))
@given(forests())
def test_our_own_files_are_read_as_they_were_written(trees: tuple[TreeRecord, ...]) -> None:
    data = dump_own(trees)
    assert parse_trees(data) == trees
    assert dump_own(parse_trees(data)) == data


@pytest.mark.parametrize("name", FOREIGN)
def test_what_was_imported_can_be_kept_as_our_own(name: str) -> None:
    assert parse_trees(dump_own(read(name))) == read(name)


def test_children_that_stand_before_their_parents_are_put_behind_them() -> None:
    (tree,) = read("basemode")
    turned = msgspec.structs.replace(tree, nodes=tuple(reversed(tree.nodes)))
    (again,) = parse_trees(dump_own([turned]))
    behind: set[str | None] = {None}
    for node in again.nodes:
        assert node.parent_id in behind
        behind.add(node.id)


# --- pages ------------------------------------------------------------------------------------


def test_markdown_is_the_line_as_text() -> None:
    (tree,) = read("basemode")
    assert dump_markdown(tree) == "The lighthouse went dark at noon.\n"
    assert dump_markdown(tree, "b1f1") == "The lighthouse kept its lamp\n"
    talk = read("claude")[1]
    assert dump_markdown(talk) == "## user\n\nHi\n\n## assistant\n\nHello!\n"
    with pytest.raises(KeyError):
        dump_markdown(tree, "none")


class _Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


EVIL = "</p><script>alert(1)</script><img src=x onerror=alert(1)>\"'&<style>"


def test_a_page_shows_what_was_written_and_runs_none_of_it() -> None:
    nodes = (
        NodeRecord(id=EVIL, text=EVIL, role=EVIL, model=EVIL, kind="root", metadata={EVIL: EVIL}),
        NodeRecord(id="a", parent_id=EVIL, text="one", hidden=True, rating=1.5, bookmarked=True),
        NodeRecord(id="b", parent_id=EVIL, text="two", checked_out=True, created_at=0.0),
    )
    page = dump_html(TreeRecord(root_id=EVIL, nodes=nodes, name=EVIL))
    seen = _Seen()
    seen.feed(page)
    assert set(seen.tags) <= set(
        "html head meta title style body h1 article header p a".split()  # noqa: SIM905
    )
    assert seen.text.count("alert(1)") == 2 * 5
    assert all(value.startswith("#n") for name, value in seen.attributes if name == "href")
    assert not [name for name, _ in seen.attributes if name.startswith("on")]
    assert "default-src 'none'" in page


def test_a_line_of_many_nodes_is_written_without_recursion() -> None:
    nodes = [NodeRecord(id="0", text="x")]
    nodes += [NodeRecord(id=str(n), parent_id=str(n - 1), text="x") for n in range(1, 5_000)]
    (tree,) = assembled(nodes, "test")
    assert len(dump_markdown(tree)) == 5_001
    assert dump_html(tree).count("<article") == 5_000
    assert parse_trees(dump_own([tree]))[0].root_id == "0"


# --- files that mean harm ---------------------------------------------------------------------


def basemode(*rows: dict[str, Any]) -> bytes:
    return json.dumps({"version": 1, "nodes": rows}).encode()


ROOT = {"id": "r", "parent_id": None, "text": "x"}


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b"Once upon a time", "not JSON"),
        (b"[" * 100_000, "nested too deep"),
        (b'{"a":' * 100_000, "nested too deep"),
        (b"[]", "not a tree that is known; there are weft-loom, minihf"),
        (b"3", "not a tree that is known"),
        (b'{"nodes": []}', "not a tree that is known"),
        (b'{"nodes": {}}', "has no nodes"),
        (b"PK\x03\x04 no archive", "archive cannot be read"),
        (basemode(ROOT, ROOT), "two nodes of the id 'r'"),
        (basemode(ROOT, {"id": "a", "parent_id": "gone"}), "'gone', that is not in the file"),
        (basemode(ROOT, {"id": "a", "parent_id": "a"}), "'a' is its own ancestor"),
        (basemode(ROOT, {"id": "", "parent_id": None}), "a node has no id"),
        (basemode(ROOT, {"id": "a" * 600, "parent_id": "r"}), "id of 600 characters"),
        (basemode(ROOT, {"id": "a", "parent_id": "r", "text": 3}), "text of node 'a' is a number"),
        (basemode(ROOT, {"id": ["a"], "parent_id": "r"}), "a node has no id"),
        (b'{"version": 2, "nodes": [{"parent_id": null}]}', "version 2 of basemode-loom"),
        (b'{"format": "weft-loom", "version": 9}', "version 9; this program reads 1"),
        (b'{"format": "weft-loom", "version": 1, "trees": 3}', "trees should be a list"),
        (
            b'{"format": "weft-loom", "version": 1, "trees": [{"root_id": "x", "nodes": '
            b'[{"id": "a", "kind": "odd"}]}]}',
            "not a tree as Weft writes it",
        ),
        (
            b'{"format": "weft-loom", "version": 1, "trees": [{"root_id": "x", "nodes": '
            b'[{"id": "a"}]}]}',
            "'x' has other nodes than its root leads to",
        ),
        (b'{"nodes": {"1": {"parent": "1"}}}', "no root leads to node '1'"),
        (b'{"nodes": {"1": {"parent": null, "patches": "x"}}}', "should be a list of hunks"),
        (b'{"nodes": {"1": {"parent": null, "patches": [{"diffs": [[7, "x"]]}]}}}', "no pair"),
        (b'[{"mapping": {"a": 3}}]', "message 'a' should be an object, and is a number"),
        (b'[{"chat_messages": [{"uuid": "m"}]}]', "a conversation has no id"),
    ],
)
def test_a_file_that_is_no_tree_gets_one_clear_sentence(data: bytes, says: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_trees(data)
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_file_of_very_many_small_values_is_refused_before_they_take_the_memory() -> None:
    # Decoded, each of these takes twenty times the room that it has in the file.
    data = b"[" + b"[]," * (MOST_VALUES // 2) + b"[]]"
    assert len(data) < MOST_BYTES
    with pytest.raises(UsageError, match=f"more than {MOST_VALUES} values"):
        parse_trees(data)


def test_an_archive_that_unpacks_to_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", b" " * 100_000)
    monkeypatch.setattr("weft.loom.formats.tree_file.MOST_BYTES", 50_000)
    with pytest.raises(UsageError, match="larger than 50000 bytes"):
        parse_trees(packed.getvalue())


def test_half_an_emoji_does_not_spoil_a_file() -> None:
    data = b'{"version":1,"nodes":[{"id":"r","parent_id":null,"text":"a\\ud83d"}]}'
    assert parse_trees(data)[0].nodes[0].text.rstrip("\ufffd") == "a"
    own = (
        b'{"format":"weft-loom","version":1,"trees":[{"root_id":"r","name":"\\ud83d","nodes":'
        b'[{"id":"r","text":"a\\ud83d","role":"\\ud83d","metadata":{"\\ud83d":["\\ud83d"]}}]}]}'
    )
    (tree,) = parse_trees(own)
    assert tree.nodes[0].text.rstrip("\ufffd") == "a"
    assert parse_trees(dump_own([tree])) == (tree,)


@pytest.mark.parametrize(
    "data",
    [
        {"format": "weft-loom", "version": ["x" * 9_000]},
        {"version": {"x" * 9_000: 1}, "nodes": [ROOT]},
        {
            "format": "weft-loom",
            "version": 1,
            "trees": [
                {"root_id": "r", "nodes": [{"id": "r"}, {"id": "a", "parent_id": "x" * 900}]}
            ],
        },
    ],
)
def test_what_a_file_says_does_not_fill_the_sentence_that_refuses_it(data: Any) -> None:
    with pytest.raises(UsageError) as raised:
        parse_trees(json.dumps(data).encode())
    assert len(str(raised.value)) < 400


@pytest.mark.parametrize(
    ("said", "at"),
    [
        (1714640000, 1714640000.0),
        (1714640000000, 1714640000.0),
        ("2024-05-02T08:53:20Z", 1714640000.0),
        ("2024-05-02T10:53:20+02:00", 1714640000.0),
        ("now", None),
        (-5, None),
        (True, None),
        (10**40, None),
        (float("inf"), None),
        ("0001-01-01T00:00:00+14:00", None),
        (None, None),
    ],
)
def test_times_are_read_or_left_out(said: object, at: float | None) -> None:
    assert seconds(said) == at


@pytest.mark.parametrize("at", [1e17, -1e17, 1e300, float("inf"), float("nan")])
def test_a_time_that_no_calendar_has_is_shown_as_none(at: float) -> None:
    """Logs of earlier versions may have some."""
    assert (iso_time(at), when(at)) == (None, "")


JUNK: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, -1, 0, 3, 1e300, "", "x", "1", [], {}, ["x"], {"0": 1}, [[]]]
)


@settings(max_examples=examples(60))
@given(st.sampled_from(FOREIGN), st.data())
def test_a_file_with_anything_at_any_place_is_read_or_refused(
    name: str, data: st.DataObject
) -> None:
    """A value of a real file is replaced by junk: no other error than a sentence may come."""
    value = json.loads((FILES / f"{name}.json").read_text())
    for _ in range(data.draw(st.integers(1, 3))):
        _spoil(value, data)
    try:
        trees = parse_trees(json.dumps(value).encode())
    except UsageError:
        return
    assert parse_trees(dump_own(trees)) == trees
    for tree in trees:
        dump_html(tree)
        dump_markdown(tree)
        assert len(parse_trees(dump_basemode([tree]))) == 1


def _spoil(value: Any, data: st.DataObject) -> None:
    while True:
        keys = list(value) if isinstance(value, dict) else range(len(value))
        key = data.draw(st.sampled_from(list(keys)))
        inner = value[key]
        if not isinstance(inner, dict | list) or not inner or data.draw(st.integers(0, 4)) == 0:
            # A copy: what is spoiled next may lie in it, and the next example draws it again.
            value[key] = copy.deepcopy(data.draw(JUNK))
            return
        value = inner
