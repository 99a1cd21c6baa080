"""Parts, nodes and usage."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.support.strategies import structs
from weft.ids import CallUid, NodeId
from weft.messages import (
    NOTHING_USED,
    File,
    Image,
    Node,
    Text,
    Thinking,
    ToolCall,
    Usage,
    as_parts,
    clean_text,
)


def call(name: str) -> ToolCall:
    return ToolCall(call_uid=CallUid(f"cal_{name}"), name=name)


def test_a_node_tells_its_text_and_its_calls_in_order() -> None:
    node = Node(
        id=NodeId("n"),
        role="assistant",
        parts=(Thinking(text="hm"), Text(text="a"), call("x"), Text(text="b"), call("y")),
    )
    assert node.text == "ab"
    assert [each.name for each in node.calls] == ["x", "y"]


def test_a_node_is_partial_only_when_marked_so() -> None:
    assert not Node(id=NodeId("n"), role="assistant").is_partial
    assert not Node(id=NodeId("n"), role="assistant", metadata={"partial": False}).is_partial
    assert Node(id=NodeId("n"), role="assistant", metadata={"partial": True}).is_partial


def test_nodes_never_share_their_open_maps() -> None:
    first, second = Node(id=NodeId("a"), role="user"), Node(id=NodeId("b"), role="user")
    first.metadata["label"] = "mine"
    assert second.metadata == {}


def test_content_becomes_parts_and_empty_text_becomes_none() -> None:
    image, file = Image(media_type="image/png", data="aa"), File(name="a.txt")
    assert as_parts("hello") == (Text(text="hello"),)
    assert as_parts("") == ()
    assert as_parts((Text(text=""), image, Text(text="x"), file)) == (image, Text(text="x"), file)


@given(a=structs(Usage), b=structs(Usage))
def test_adding_usage_adds_every_count(a: Usage, b: Usage) -> None:
    total = a + b
    assert total.total_tokens == a.total_tokens + b.total_tokens
    assert total.reasoning_tokens == a.reasoning_tokens + b.reasoning_tokens
    assert total == b + a


@given(a=structs(Usage))
def test_an_unknown_cost_stays_unknown_whatever_is_added(a: Usage) -> None:
    assert (a + Usage()).cost_usd is None
    assert (Usage() + a).cost_usd is None


@given(a=structs(Usage))
def test_adding_nothing_changes_nothing(a: Usage) -> None:
    assert a + NOTHING_USED == a
    assert NOTHING_USED + a == a


def test_a_price_that_is_unknown_is_not_zero() -> None:
    assert Usage(input_tokens=10).cost_usd is None
    assert NOTHING_USED.cost_usd == 0.0


@given(text=st.text(alphabet=st.characters(codec="utf-8"), max_size=20))
def test_clean_text_leaves_text_alone(text: str) -> None:
    assert clean_text(text) is text


@given(text=st.text(max_size=20), lone=st.integers(0xD800, 0xDFFF))
def test_clean_text_can_always_be_stored(text: str, lone: int) -> None:
    cleaned = clean_text(text + chr(lone))
    assert cleaned.startswith(text)
    assert "\ufffd" in cleaned
    cleaned.encode()
