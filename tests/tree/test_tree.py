"""The tree of a conversation: acyclic, reachable, and never missing what was recorded."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.call_count import calls_made
from tests.support.history_generator import A, History
from tests.support.strategies import forks, histories
from weft.errors import UsageError
from weft.events import (
    Compacted,
    CompactionUndone,
    Fact,
    HeadMoved,
    NewMessage,
    NodeEdited,
    NodeMarked,
    NodesJoined,
    NodeSplit,
    ResultsCleared,
    Rewound,
    SubtreeDeleted,
    SubtreeRestored,
    SystemNote,
    ToolComplete,
)
from weft.ids import CallUid, NodeId, SessionId
from weft.messages import Node, Role, ToolCall, ToolResult
from weft.state import fold
from weft.tree import ConversationTree, LogPosition, NodeSkeleton

any_history = histories() | forks()


def tree_of(history: History) -> ConversationTree:
    return fold(history.facts, history.empty()).tree


# --- for every history


@given(history=any_history)
def test_every_node_has_one_way_up_and_it_ends(history: History) -> None:
    tree = tree_of(history)
    for node in tree.nodes:
        line = tree.line(node)
        assert len(line) == len(set(line)) <= len(tree.nodes)
        assert line[0] in tree.roots
        assert line[-1] == node


@given(history=any_history)
def test_every_node_is_reached_from_the_roots_exactly_once(history: History) -> None:
    tree = tree_of(history)
    found: list[NodeId] = []
    ahead = list(tree.roots)
    while ahead:
        found.append(ahead.pop())
        ahead += tree.nodes[found[-1]].children
    assert sorted(found) == sorted(tree.nodes) == sorted(history.plain.parents)


@given(history=any_history)
def test_each_node_hangs_where_it_was_said(history: History) -> None:
    tree = tree_of(history)
    assert {node: each.parent for node, each in tree.nodes.items()} == history.plain.parents


@given(history=any_history)
def test_head_and_refs_name_nodes_that_exist(history: History) -> None:
    tree = tree_of(history)
    assert tree.head == history.plain.head
    assert {name: ref.node for name, ref in tree.refs.items()} == history.plain.refs
    named = {tree.head, *(ref.node for ref in tree.refs.values())} - {None}
    assert named <= set(tree.nodes)


@given(history=any_history)
def test_no_result_is_lost_and_the_first_one_counts(history: History) -> None:
    tree = tree_of(history)
    settled = {
        uid: (place.log, place.seq)
        for node in tree.nodes.values()
        for uid, place in node.results.items()
    }
    assert settled == history.plain.settled
    for node, each in tree.nodes.items():
        calls = [uid for uid, owner in history.plain.calls.items() if owner == node]
        assert list(each.calls) == calls
        assert [uid for uid in calls if uid not in settled] == list(tree.unsettled(node))


@given(history=any_history)
def test_every_place_is_where_the_words_are(history: History) -> None:
    written = {(fact.session_id, fact.seq): fact for fact in history.facts}
    tree = tree_of(history)
    for node, each in tree.nodes.items():
        first, *later = [*each.earlier, each.at]
        born = written[first.log, first.seq]
        assert isinstance(born, NewMessage | NodeSplit)
        assert (born.node.id if isinstance(born, NewMessage) else born.tail.id) == node
        for revision, place in enumerate(later, start=1):
            edit = written[place.log, place.seq]
            assert isinstance(edit, NodeEdited | NodeSplit | NodesJoined)
            assert (edit.node, edit.revision) == (node, revision)
        for uid, place in each.results.items():
            result = written[place.log, place.seq]
            assert isinstance(result, ToolComplete)
            assert result.call_uid == uid


@given(history=any_history)
def test_marks_revisions_and_deletions_are_what_was_said_last(history: History) -> None:
    tree = tree_of(history)
    marks = {(node, m): v for node, each in tree.nodes.items() for m, v in each.marks.items()}
    assert marks == history.plain.marks
    assert {n: each.revision for n, each in tree.nodes.items()} == history.plain.revisions
    assert set(tree.deleted) == set(history.plain.deleted)


@given(history=any_history)
def test_a_node_is_hidden_exactly_when_it_or_one_above_it_is_deleted(history: History) -> None:
    tree = tree_of(history)
    for node in tree.nodes:
        assert tree.is_hidden(node) == bool(set(tree.line(node)) & set(history.plain.deleted))
    for parent in (None, *tree.nodes):
        assert set(tree.children(parent)).isdisjoint(history.plain.deleted)


@given(history=any_history, data=st.data())
def test_the_messages_below_a_node_are_counted_as_they_come_and_go(
    history: History, data: st.DataObject
) -> None:
    every = data.draw(st.integers(1, 5), label="asked after so many facts")
    state = history.empty()
    for number, fact in enumerate(history.facts):
        state.apply(fact)
        if number % every and number != len(history.facts) - 1:
            continue
        tree = state.tree
        shown = [each for each in tree.nodes if not tree.is_hidden(each)]
        lines = {each: set(tree.line(each)) - {each} for each in shown}
        for node in tree.nodes:
            below = sum(node in line for line in lines.values())
            assert tree.descendant_count(node) == below


def test_a_subtree_that_comes_back_is_counted_as_it_is_by_then() -> None:
    tree = grown(said("a"), said("b", "a"), said("c", "b"), said("d", "b"))
    steps: list[tuple[Fact, int]] = [
        (SubtreeDeleted(node=NodeId("b")), 0),
        (SubtreeDeleted(node=NodeId("c")), 0),
        (said("e", "d"), 0),
        (SubtreeRestored(node=NodeId("b")), 3),
        (SubtreeRestored(node=NodeId("c")), 4),
    ]
    assert tree.descendant_count(NodeId("a")) == 3
    for seq, (fact, below) in enumerate(steps, start=5):
        tree.apply(msgspec.structs.replace(fact, session_id=A, seq=seq))
        assert tree.descendant_count(NodeId("a")) == below, fact


def test_the_messages_below_a_node_are_not_counted_again() -> None:
    def counted(turns: int) -> int:
        tree = grown(said("top"), *(said(f"n{n}", "top") for n in range(turns)))
        assert tree.descendant_count(NodeId("top")) == turns
        added = msgspec.structs.replace(said("new", "n3"), session_id=A, seq=turns + 2)
        tree.apply(added)
        gone = SubtreeDeleted(node=NodeId("n5"), session_id=A, seq=turns + 3)
        tree.apply(gone)
        cost = calls_made(lambda: tree.descendant_count(NodeId("top")))
        assert tree.descendant_count(NodeId("top")) == turns
        return cost

    assert counted(2_000) == counted(20)


@given(history=any_history)
def test_the_compaction_of_a_line_is_the_newest_that_speaks_of_it(history: History) -> None:
    tree = tree_of(history)
    assert [(c.at.log, c.at.seq) for c in tree.compactions] == history.plain.compactions
    for tip in (None, *tree.nodes):
        fitting = [c for c in tree.compactions if c.upto in tree.line(tip)]
        assert all(((c.at.log, c.at.seq) in history.plain.clearings) is c.clears for c in fitting)
        summaries = [c for c in fitting if not c.clears]
        assert tree.compaction_for(tip) == (summaries[-1] if summaries else None)
        depth = tree.nodes[summaries[-1].upto].depth if summaries else 0
        clearings = [c for c in fitting if c.clears and tree.nodes[c.upto].depth > depth]
        assert tree.clearing_for(tip) == (clearings[-1] if clearings else None)
        newest = [c for c in fitting if c in (*summaries[-1:], *clearings[-1:])]
        assert tree.undoable_for(tip) == (newest[-1] if newest else None)


@pytest.mark.parametrize("read", ["compaction_for", "clearing_for"])
def test_what_is_compacted_is_found_at_the_same_cost_however_long_the_line_is(read: str) -> None:
    def cost(turns: int) -> int:
        tree = ConversationTree()
        place = itertools.count(1)
        tip = None
        for number in range(turns):
            tree.apply(msgspec.structs.replace(said(f"n{number}", tip), seq=next(place)))
            tip = f"n{number}"
            made: list[Fact] = []
            if number == 0:
                made = [ResultsCleared(upto=NodeId(tip), results={})]
            elif number % 20 == 9:
                made = [Compacted(upto=NodeId(tip), summary="s")]
            for fact in made:
                tree.apply(msgspec.structs.replace(fact, session_id=A, seq=next(place)))
        return calls_made(lambda: getattr(tree, read)(tree.head))

    assert cost(2_000) == cost(40)


# --- one by one


def said(name: str, parent: str | None = None, role: Role = "user", *calls: str) -> NewMessage:
    """A message by its name."""
    return NewMessage(
        node=Node(
            id=NodeId(name),
            role=role,
            parent=NodeId(parent) if parent else None,
            parts=tuple(ToolCall(call_uid=CallUid(uid), name="t") for uid in calls),
        )
    )


def grown(*facts: Fact) -> ConversationTree:
    """The tree after these facts, numbered as they come."""
    tree = ConversationTree()
    for seq, fact in enumerate(facts, start=1):
        tree.apply(msgspec.structs.replace(fact, session_id=fact.session_id or A, seq=seq))
    return tree


def test_the_head_follows_what_is_said_unless_it_is_told_not_to() -> None:
    tree = grown(said("a"), said("b", "a"))
    assert tree.head == "b"
    aside = msgspec.structs.replace(said("c", "a"), advance=False)
    assert grown(said("a"), said("b", "a"), aside).head == "b"


def test_going_back_keeps_the_line_that_was_left() -> None:
    tree = grown(said("a"), said("b", "a"), HeadMoved(node=NodeId("a")), said("c", "a"))
    assert tree.line(tree.head) == ["a", "c"]
    assert tree.children(NodeId("a")) == ("b", "c")


def test_a_rewind_of_files_alone_leaves_the_head() -> None:
    back = Rewound(to=NodeId("a"), conversation=False)
    assert grown(said("a"), said("b", "a"), back).head == "b"
    assert grown(said("a"), said("b", "a"), Rewound(to=NodeId("a"))).head == "a"


def test_a_message_that_comes_twice_counts_once() -> None:
    tree = grown(said("a"), said("b", "a"), said("b", "a"))
    assert tree.nodes[NodeId("a")].children == ("b",)


def test_a_second_result_of_a_call_changes_nothing() -> None:
    def result(text: str) -> ToolComplete:
        return ToolComplete(
            call_uid=CallUid("x"),
            node=NodeId("a"),
            result=ToolResult(call_uid=CallUid("x"), text=text),
        )

    tree = grown(said("a", None, "assistant", "x", "y"), result("one"), result("two"))
    assert tree.nodes[NodeId("a")].results == {"x": LogPosition(A, 2)}
    assert tree.unsettled(NodeId("a")) == ("y",)


def test_a_deleted_subtree_comes_back_whole() -> None:
    facts = (said("a"), said("b", "a"), said("c", "b"), SubtreeDeleted(node=NodeId("b")))
    hidden = grown(*facts)
    assert [hidden.is_hidden(NodeId(each)) for each in "abc"] == [False, True, True]
    back = grown(*facts, SubtreeRestored(node=NodeId("b")))
    assert [back.is_hidden(NodeId(each)) for each in "abc"] == [False, False, False]


def test_listing_a_deep_tree_after_a_deletion_walks_no_line() -> None:
    """The line of every node was walked: a deep tree of 9,000 nodes took seconds."""

    def listed(turns: int) -> int:
        line = [said(f"n{n}", f"n{n - 1}" if n else None) for n in range(turns)]
        tree = grown(*line, SubtreeDeleted(node=NodeId(f"n{turns - 3}")))
        shown: list[NodeId] = []
        cost = calls_made(lambda: shown.extend(n for n in tree.nodes if not tree.is_hidden(n)))
        assert len(shown) == turns - 3
        return cost

    assert listed(2_000) < 11 * listed(200)


def test_a_mark_is_taken_away_by_none() -> None:
    mark = NodeMarked(node=NodeId("a"), mark="bookmark", value=True)
    off = NodeMarked(node=NodeId("a"), mark="bookmark")
    assert grown(said("a"), mark).nodes[NodeId("a")].marks == {"bookmark": True}
    assert grown(said("a"), mark, off).nodes[NodeId("a")].marks == {}


def test_undoing_a_compaction_undoes_that_one_and_not_its_namesake_in_a_shared_log() -> None:
    source = SessionId("ses_source")
    shared = Compacted(upto=NodeId("a"), summary="shared")
    own = Compacted(upto=NodeId("a"), summary="own")
    tree = grown(said("a"))
    tree.apply(msgspec.structs.replace(shared, session_id=source, seq=5))
    tree.apply(msgspec.structs.replace(own, session_id=A, seq=5))
    undone = msgspec.structs.replace(CompactionUndone(compaction=5), session_id=A, seq=6)
    tree.apply(undone)
    assert [c.at for c in tree.compactions] == [LogPosition(source, 5)]
    tree.apply(msgspec.structs.replace(undone, seq=7, log=source))
    assert tree.compactions == []


def test_notes_are_kept_where_they_were_said() -> None:
    tree = grown(
        said("a"),
        SystemNote(text="for people", node=NodeId("a"), level="warning"),
        SystemNote(text="for the model", to_model=True, node=NodeId("a")),
    )
    assert [(note.seq, note.node, note.text, note.to_model) for note in tree.notes] == [
        (2, "a", "for people", False),
        (3, "a", "for the model", True),
    ]


def test_a_node_that_is_not_there_is_the_callers_mistake() -> None:
    with pytest.raises(UsageError, match="'nod_x'"):
        grown(said("a")).require(NodeId("nod_x"))
    assert grown(said("a")).require(NodeId("a")).role == "user"


def test_facts_about_a_node_that_is_not_there_change_nothing() -> None:
    """They are damage of somebody's making; the rest of the tree stays readable."""
    gone = NodeId("nod_x")
    strays: list[Fact] = [
        ToolComplete(call_uid=CallUid("x"), node=gone, result=ToolResult(call_uid=CallUid("x"))),
        NodeEdited(node=gone, revision=1),
        NodeMarked(node=gone, mark="pin", value=True),
    ]
    assert grown(said("a"), *strays) == grown(said("a"))


def test_a_message_whose_parent_is_not_there_is_a_root() -> None:
    assert grown(said("a"), said("b", "nod_x")).roots == ["a", "b"]


def test_a_line_begins_with_a_message_whose_parent_is_not_there() -> None:
    tree = grown(said("a"), said("b", "nod_x"), said("c", "b"))
    assert tree.line(tree.head) == ["b", "c"]
    assert list(tree.ancestors(tree.head)) == ["c", "b"]
    assert NodeId("b") in tree.walk_up(tree.head)
    assert NodeId("a") not in tree.walk_up(tree.head)
    assert not tree.is_hidden(NodeId("c"))


def test_the_line_of_a_head_that_is_not_there_is_empty() -> None:
    tree = grown(said("a"), HeadMoved(node=NodeId("nod_x")))
    assert tree.line(tree.head) == []
    assert list(tree.ancestors(tree.head)) == []
    assert NodeId("a") not in tree.walk_up(tree.head)


def test_a_tree_of_an_older_snapshot_knows_such_a_message_too() -> None:
    tree = grown(said("a"), said("b"))
    tree.nodes[NodeId("b")].parent = NodeId("nod_x")
    assert tree.line(NodeId("b")) == ["b"]
    assert list(tree.ancestors(NodeId("b"))) == ["b"]


@given(history=any_history)
def test_a_walk_up_knows_the_nodes_of_its_line_and_its_pins(history: History) -> None:
    tree = tree_of(history)
    for tip in (None, *tree.nodes):
        line = tree.line(tip)
        walk = tree.walk_up(tip)
        assert [node for node in tree.nodes if node in walk] == [
            node for node in tree.nodes if node in line
        ]
        assert tip is None or tree.nodes[tip].depth == len(line)
        assert tree.pinned_on(tip) == [node for node in line if tree.nodes[node].marks.get("pin")]


def test_the_newest_compaction_is_found_without_walking_the_whole_line() -> None:
    tree = ConversationTree()
    for number in range(1, 1_001):
        node = Node(id=NodeId(f"n{number}"), role="user", parent=_above(number))
        tree.apply(NewMessage(session_id=A, seq=number, node=node))
    tree.apply(Compacted(session_id=A, seq=1_001, upto=NodeId("n990"), summary="so far"))
    visited: list[NodeId] = []

    class Counted(dict[NodeId, NodeSkeleton]):
        def __getitem__(self, node: NodeId) -> NodeSkeleton:
            visited.append(node)
            return super().__getitem__(node)

    tree.nodes = Counted(tree.nodes)
    found = tree.compaction_for(tree.head)
    assert found is not None
    assert found.upto == "n990"
    assert len(visited) <= 12


def _above(number: int) -> NodeId | None:
    return NodeId(f"n{number - 1}") if number > 1 else None
