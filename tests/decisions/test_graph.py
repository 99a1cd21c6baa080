"""The fold of the decision graph, and entries that become its facts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.decisions import (
    CheckEvidence,
    DecisionAdded,
    DecisionChanged,
    DecisionEntry,
    DecisionFact,
    DecisionGraph,
    DecisionNode,
    DecisionOption,
    DecisionPurged,
    DecisionSuperseded,
    accepted,
    file_evidence,
    fold_decisions,
    linked,
    log_entry,
    narrative_of,
    note_line,
    options_of,
    share_left,
)
from weft.errors import UsageError
from weft.ids import DecisionId

IDS = [DecisionId(f"dec_{letter}") for letter in "abcd"]


def view(graph: DecisionGraph) -> object:
    """What a graph comes to."""
    return graph.nodes, graph.edges, graph.sessions, graph.changed, graph.seq


def added(name: str, status: str = "active", kind: str = "decision") -> DecisionAdded:
    node = DecisionNode(id=DecisionId(name), kind=kind, title=name, status=status)
    return DecisionAdded(node=node, at=5.0)


@st.composite
def fact_lists(draw: st.DrawFn) -> list[DecisionFact]:
    one, two = st.sampled_from(IDS), st.sampled_from(IDS)
    kinds: st.SearchStrategy[DecisionFact] = st.one_of(
        st.builds(added, one, st.sampled_from(["proposed", "active"])),
        st.builds(DecisionChanged, id=one, status=st.sampled_from(["active", "abandoned", None])),
        st.builds(
            linked,
            one,
            two,
            st.sampled_from(["rejected", "leads_to"]),
            st.just(""),
            st.sampled_from([0.0, 1.0]),
        ),
        st.builds(DecisionSuperseded, old=one, new=two),
    )
    return draw(st.lists(kinds, max_size=12))


@given(facts=fact_lists(), data=st.data())
def test_folding_in_two_parts_gives_the_same_graph(
    facts: list[DecisionFact], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(facts)))
    parts = fold_decisions(facts[cut:], start=fold_decisions(facts[:cut]))
    assert view(parts) == view(fold_decisions(facts))


@given(facts=fact_lists())
def test_what_comes_twice_counts_once(facts: list[DecisionFact]) -> None:
    once = fold_decisions(facts)
    nodes = [fact for fact in facts if isinstance(fact, DecisionAdded)]
    assert view(fold_decisions(nodes, start=fold_decisions(facts))) == view(once)


@given(facts=fact_lists())
def test_edges_are_found_from_both_ends(facts: list[DecisionFact]) -> None:
    graph = fold_decisions(facts)
    outgoing = {edge for name in IDS for edge in graph.outgoing(name)}
    incoming = {edge for name in IDS for edge in graph.incoming(name)}
    assert outgoing == incoming == set(graph.edges.values())


def test_a_proposal_retires_nothing_before_it_is_accepted() -> None:
    graph = fold_decisions([added("dec_a"), added("dec_b", "proposed")])
    graph.apply(DecisionSuperseded(old=IDS[0], new=IDS[1], rationale="better"))
    assert graph.nodes[IDS[0]].status == "active"
    assert graph.successor(IDS[0]) is None
    for fact in accepted(graph, graph.nodes[IDS[1]], by="user"):
        graph.apply(fact)
    assert graph.nodes[IDS[0]].status == "superseded"
    assert graph.successor(IDS[0]) is graph.nodes[IDS[1]]


def test_what_a_model_finishes_retires_nothing() -> None:
    graph = fold_decisions([added("dec_a"), added("dec_b", "proposed")])
    graph.apply(DecisionSuperseded(old=IDS[0], new=IDS[1], by="model"))
    graph.apply(DecisionChanged(id=IDS[1], status="done", by="model"))
    check = CheckEvidence(command="make", exit=0)
    graph.apply(DecisionChanged(id=IDS[1], evidence=(check,), by="auto"))
    assert graph.nodes[IDS[0]].status == "active"
    graph.apply(DecisionChanged(id=IDS[1], status="active", by="user"))
    assert graph.nodes[IDS[0]].status == "superseded"


def test_the_reason_of_a_change_is_told() -> None:
    graph = fold_decisions([added("dec_a")])
    change = DecisionChanged(id=IDS[0], status="abandoned", reason="too slow\nfor us")
    graph.apply(change)
    graph.apply(DecisionChanged(id=IDS[0], confidence=5, reason="another"))
    node = graph.nodes[IDS[0]]
    assert note_line(graph, node).startswith("Tried and given up: dec_a: too slow for us.")
    assert "  abandoned: too slow for us" in narrative_of(graph, [node]).splitlines()
    graph.apply(DecisionChanged(id=IDS[0], status="active"))
    assert "too slow" not in narrative_of(graph, graph.nodes.values())


def test_nodes_that_supersede_each_other_end_the_search() -> None:
    graph = fold_decisions([added("dec_a"), added("dec_b")])
    graph.apply(DecisionSuperseded(old=IDS[0], new=IDS[1]))
    graph.apply(DecisionSuperseded(old=IDS[1], new=IDS[0]))
    assert graph.successor(IDS[0]) is not None


def test_evidence_is_added_and_never_lost() -> None:
    graph = fold_decisions([added("dec_a")])
    one, two = CheckEvidence(command="make", exit=1), CheckEvidence(command="make", exit=0)
    for evidence in (one, two, two):
        graph.apply(DecisionChanged(id=IDS[0], evidence=(evidence,), review_after=7.0))
    assert graph.nodes[IDS[0]].evidence == (one, two)
    assert graph.nodes[IDS[0]].review_after == 7.0
    graph.apply(DecisionChanged(id=IDS[0], review_after=0.0))
    assert graph.nodes[IDS[0]].review_after is None


def entry(**fields: object) -> DecisionEntry:
    return DecisionEntry(**{"title": "Use SQLite", **fields})  # type: ignore[arg-type]


def test_an_entry_becomes_a_node_with_its_options_and_what_it_supersedes() -> None:
    graph = fold_decisions([added("dec_a"), added("dec_b", kind="goal")])
    logged = log_entry(
        entry(
            status="active",
            options=(
                DecisionOption(title="SQLite", verdict="chosen"),
                DecisionOption(title="Postgres", why="a service to run"),
            ),
            supersedes="dec_a",
            parent="b",
        ),
        graph,
        seed="s",
    )
    fold_decisions(logged.facts, start=graph)
    assert graph.nodes[IDS[0]].status == "superseded"
    [(rejected, edge)] = graph.options(logged.node.id, "rejected")
    assert (rejected.title, rejected.kind, edge.rationale) == (
        "Postgres",
        "option",
        "a service to run",
    )
    assert [edge.source for edge in graph.incoming(logged.node.id, "leads_to")] == [IDS[1]]
    assert len(logged.ids) == 3


def test_the_same_entry_of_the_same_source_gets_the_same_ids() -> None:
    graph = DecisionGraph()
    first = log_entry(entry(options=options_of(["Postgres"])), graph, seed="turn 1")
    again = log_entry(entry(options=options_of(["Postgres"])), graph, seed="turn 1")
    other = log_entry(entry(options=options_of(["Postgres"])), graph, seed="turn 2")
    assert first.ids == again.ids
    assert not {*first.ids} & {*other.ids}
    assert all(len(name) == 12 for name in first.ids)


def test_the_options_of_a_decision_are_accepted_with_it() -> None:
    graph = DecisionGraph()
    logged = log_entry(entry(options=options_of([{"title": "Postgres"}])), graph, seed="s")
    fold_decisions(logged.facts, start=graph)
    fold_decisions(accepted(graph, logged.node, by="user"), start=graph)
    assert {node.status for node in graph.nodes.values()} == {"active"}


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"title": " \n"}, "needs a title"),
        ({"title": "x" * 121}, "at most 120 characters, this one 121"),
        ({"kind": "decison"}, "no kind 'decison'; did you mean 'decision'"),
        ({"status": "maybe"}, "no status 'maybe'"),
        ({"confidence": 101}, "between 0 and 100"),
        ({"scope": ("/etc/passwd",)}, "relative to the project"),
        ({"scope": ("a/../../b",)}, "relative to the project"),
        ({"scope": tuple(f"{n}.py" for n in range(21))}, "at most 20 scopes"),
        ({"why": "x" * 4001}, "at most 4000"),
        ({"options": (DecisionOption(title="a", verdict="perhaps"),)}, "no verdict 'perhaps'"),
        ({"supersedes": "dec_zzz"}, "no decision 'dec_zzz'"),
        ({"parent": "nope"}, "no decision 'nope'"),
    ],
)
def test_what_cannot_be_put_down_is_refused_in_a_sentence(
    fields: dict[str, object], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        log_entry(entry(**fields), DecisionGraph(), seed="s")


def test_a_node_is_found_by_the_beginning_of_its_id_and_never_by_two() -> None:
    graph = fold_decisions([added("dec_abc"), added("dec_abd")])
    assert graph.find("abc").id == "dec_abc"
    assert graph.find("dec_abd").id == "dec_abd"
    with pytest.raises(UsageError, match="several ids: dec_abc, dec_abd"):
        graph.find("ab")
    with pytest.raises(UsageError, match="no decision"):
        graph.find("")


def test_it_is_known_how_much_of_a_file_is_left() -> None:
    lines = [f"line {number}".encode() for number in range(400)]
    evidence = file_evidence("a.py", b"\n".join(lines))
    assert len(evidence.sample) == 32 * 8
    assert share_left(evidence, b"\n".join(lines)) == 1.0
    assert share_left(evidence, b"\n".join([*lines, b"more"])) == 1.0
    assert share_left(evidence, b"\n".join(lines[:300])) > 0.5
    assert share_left(evidence, b"\n".join(lines[:60])) < 0.5
    assert share_left(evidence, None) == 0.0
    assert share_left(file_evidence("gone", None), b"x") == 1.0


def attempt(number: int) -> DecisionAdded:
    node = DecisionNode(
        id=DecisionId(f"dec_try{number}"),
        kind="action",
        title=f"attempt {number}",
        status="abandoned",
        by="auto",
        tags=("attempt",),
    )
    return DecisionAdded(node=node, at=float(number))


def test_of_attempts_that_nothing_was_said_of_the_newest_stay() -> None:
    graph = DecisionGraph(most_noted=2)
    fold_decisions([added("dec_a"), *map(attempt, range(1, 5))], graph)
    assert list(graph.nodes) == ["dec_a", "dec_try3", "dec_try4"]
    assert graph.sessions.keys() == graph.changed.keys() == graph.nodes.keys()
    assert not graph.is_whole
    whole = fold_decisions(map(attempt, range(1, 5)))
    assert len(whole.nodes) == 4
    assert whole.is_whole


@pytest.mark.parametrize(
    "said",
    [
        DecisionChanged(id=DecisionId("dec_try1"), title="Worth a second look"),
        linked(DecisionId("dec_a"), DecisionId("dec_try1"), "rejected"),
        DecisionSuperseded(old=DecisionId("dec_try1"), new=DecisionId("dec_a")),
    ],
    ids=["changed", "linked", "superseded"],
)
def test_an_attempt_that_something_was_said_of_stays(said: DecisionFact) -> None:
    graph = DecisionGraph(most_noted=1)
    fold_decisions([added("dec_a"), attempt(1), said, attempt(2), attempt(3)], graph)
    assert list(graph.nodes) == ["dec_a", "dec_try1", "dec_try3"]
    assert graph.missed == set()
    late = DecisionGraph(most_noted=1)
    fold_decisions([added("dec_a"), attempt(1), attempt(2), said], late)
    assert late.missed == {"dec_try1"}
    again = DecisionGraph(most_noted=1, kept=late.missed)
    fold_decisions([added("dec_a"), attempt(1), attempt(2), said], again)
    assert list(again.nodes) == ["dec_a", "dec_try1", "dec_try2"]
    assert again.missed == set()


def test_an_attempt_that_went_and_is_purged_is_not_missed() -> None:
    name = DecisionId("dec_try1")
    graph = DecisionGraph(most_noted=1)
    fold_decisions([attempt(1), attempt(2), DecisionChanged(id=name, title="x")], graph)
    graph.apply(DecisionPurged(id=name))
    graph.apply(DecisionChanged(id=name, title="y"))
    assert graph.missed == set()
