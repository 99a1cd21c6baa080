"""What the model sees is legal, whatever happened before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.context import (
    CONTINUE_PROMPT,
    CUT_OFF,
    NO_RESULT,
    ContextTarget,
    LineEntry,
    build,
    notes_for_model,
    told_on,
)
from weft.ids import CallUid, NodeId
from weft.messages import (
    CallResults,
    ChatMessage,
    File,
    Image,
    Message,
    Node,
    Part,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from weft.tree import ConversationTree, TreeNote

HERE = ContextTarget("anthropic", "claude")
SIGNED = Thinking(text="hm", signature="sig", provider="anthropic", model="claude")


def entry(
    number: int, role: Role, *parts: Part, partial: bool = False, **results: str
) -> LineEntry:
    node = Node(
        id=NodeId(f"nod_{number}"),
        role=role,
        parts=parts,
        metadata={"partial": True} if partial else {},
    )
    kept = {
        CallUid(uid): ToolResult(call_uid=CallUid(uid), text=text) for uid, text in results.items()
    }
    return LineEntry(node=node, results=kept)


def call(uid: str, provider: str = "anthropic") -> ToolCall:
    return ToolCall(call_uid=CallUid(uid), name="act", provider_id=f"p_{uid}", provider=provider)


def texts(messages: Sequence[Message]) -> list[str]:
    """Each message in short."""
    short: list[str] = []
    for message in messages:
        match message:
            case ChatMessage(role=role, parts=parts):
                short.append(f"{role}: " + "".join(p.text for p in parts if isinstance(p, Text)))
            case CallResults(results=results):
                short.append("results: " + ", ".join(result.text for result in results))
    return short


# --- one rule at a time --------------------------------------------------------------------


def test_results_stand_behind_their_answer_in_call_order() -> None:
    line = [
        entry(1, "user", Text(text="go")),
        entry(2, "assistant", call("a"), call("b"), b="second", a="first"),
    ]
    assert texts(build(line, HERE)) == ["user: go", "assistant: ", "results: first, second"]


def test_a_call_without_a_result_is_told_as_unknown() -> None:
    line = [entry(1, "user", Text(text="go")), entry(2, "assistant", call("a"), call("b"), a="x")]
    assert texts(build(line, HERE))[-1] == f"results: x, {NO_RESULT}"


def test_a_result_without_words_says_so() -> None:
    line = [entry(1, "user", Text(text="go")), entry(2, "assistant", call("a"), a="")]
    assert texts(build(line, HERE))[-1] == "results: (no output)"


def test_a_partial_answer_is_shown_with_a_note_and_without_its_reasoning() -> None:
    line = [
        entry(1, "user", Text(text="go")),
        entry(2, "assistant", SIGNED, Text(text="half"), partial=True),
    ]
    built = build(line, HERE)
    assert texts(built) == ["user: go", "assistant: half", f"user: {CUT_OFF}"]
    assert not any(isinstance(part, Thinking) for part in parts_of(built))


def parts_of(messages: Sequence[Message]) -> list[Part]:
    return [
        part for message in messages if isinstance(message, ChatMessage) for part in message.parts
    ]


@pytest.mark.requirement("session:update_model:thinking")
@pytest.mark.parametrize(
    ("target", "shown"),
    [
        (HERE, True),
        (ContextTarget("anthropic", "another"), False),
        (ContextTarget("openai", "claude"), False),
    ],
)
def test_reasoning_is_shown_only_to_the_model_that_signed_it(
    target: ContextTarget, shown: bool
) -> None:
    line = [entry(1, "user", Text(text="go")), entry(2, "assistant", SIGNED, Text(text="ok"))]
    assert any(isinstance(part, Thinking) for part in parts_of(build(line, target))) == shown


def test_reasoning_without_proof_is_not_sent_back() -> None:
    bare = Thinking(text="hm", provider="anthropic", model="claude")
    line = [entry(1, "user", Text(text="go")), entry(2, "assistant", bare, Text(text="ok"))]
    assert not any(isinstance(part, Thinking) for part in parts_of(build(line, HERE)))


def test_an_answer_of_reasoning_alone_is_no_message() -> None:
    line = [entry(1, "user", Text(text="go")), entry(2, "assistant", SIGNED)]
    assert texts(build(line, HERE)) == ["user: go"]


def test_a_providers_id_goes_back_to_that_provider_alone() -> None:
    line = [entry(1, "user", Text(text="go")), entry(2, "assistant", call("a"), a="x")]
    for target, expected in ((HERE, "p_a"), (ContextTarget("openai", "gpt"), "")):
        results = build(line, target)[-1]
        assert isinstance(results, CallResults)
        assert results.results[0].provider_id == expected


def test_notes_stand_where_they_were_said() -> None:
    line = [entry(1, "user", Text(text="go")), entry(2, "assistant", call("a"), a="x")]
    notes = {None: ["before"], NodeId("nod_1"): ["one", "two"], NodeId("nod_2"): ["after"]}
    assert texts(build(line, HERE, notes=notes)) == [
        "user: before",
        "user: go",
        "user: one",
        "user: two",
        "assistant: ",
        "results: x",
        "user: after",
    ]


def test_the_last_word_is_the_users_or_a_result() -> None:
    line = [entry(1, "user", Text(text="go")), entry(2, "assistant", Text(text="done"))]
    assert texts(build(line, HERE))[-1] == f"user: {CONTINUE_PROMPT}"


def test_the_first_word_is_the_users() -> None:
    assert texts(build([entry(1, "assistant", Text(text="hi"))], HERE))[0].startswith("user: ")
    assert len(build([], HERE)) == 1


def test_a_summary_comes_first() -> None:
    assert texts(build([entry(1, "user", Text(text="go"))], HERE, summary="so far")) == [
        "user: so far",
        "user: go",
    ]


# --- all rules, for every line -----------------------------------------------------------------


@st.composite
def lines(draw: st.DrawFn) -> list[LineEntry]:
    """A line with everything that happens to real ones.

    Most of it would be illegal if sent as it is.
    """
    found: list[LineEntry] = []
    calls = 0
    for number in range(draw(st.integers(0, 8))):
        role: Role = draw(st.sampled_from(["user", "assistant", "assistant", "system"]))
        parts: list[Part] = []
        for _ in range(draw(st.integers(0, 3))):
            kind = draw(st.sampled_from(["text", "thinking", "call", "image", "file"]))
            if kind == "text":
                parts.append(Text(text=draw(st.sampled_from(["hello", "", " \n"]))))
            elif kind == "thinking" and role == "assistant":
                provider = draw(st.sampled_from(["anthropic", "openai"]))
                signature = draw(st.sampled_from(["", "sig"]))
                parts.append(
                    Thinking(text="hm", signature=signature, provider=provider, model="claude")
                )
            elif kind == "call" and role == "assistant":
                calls += 1
                parts.append(call(f"c{calls}", draw(st.sampled_from(["anthropic", "openai"]))))
            elif kind == "image" and role == "user":
                parts.append(
                    Image(media_type="image/png", data=draw(st.sampled_from(["", "aGk="])))
                )
            elif kind == "file" and role == "user":
                parts.append(File(name="a", text=draw(st.sampled_from(["", "x"]))))
        made = [part.call_uid for part in parts if isinstance(part, ToolCall)]
        answered = [uid for uid in made if draw(st.booleans())]
        results = {str(uid): draw(st.sampled_from(["ok", ""])) for uid in reversed(answered)}
        found.append(entry(number, role, *parts, partial=draw(st.booleans()), **results))
    return found


@given(line=lines(), data=st.data())
def test_whatever_happened_before_the_messages_are_legal(
    line: list[LineEntry], data: st.DataObject
) -> None:
    noted: dict[NodeId | None, list[str]] = {
        each.node.id: ["a note"] for each in line if data.draw(st.booleans())
    }
    messages = build(line, HERE, notes=noted, summary=data.draw(st.sampled_from(["", "summary"])))
    first, last = messages[0], messages[-1]
    assert isinstance(first, ChatMessage)
    assert first.role == "user"
    assert isinstance(last, CallResults) or last.role == "user"
    open_calls: list[str] = []
    for message in messages:
        if isinstance(message, CallResults):
            assert [result.call_uid for result in message.results] == open_calls
            assert all(result.text for result in message.results)
            open_calls = []
            continue
        assert open_calls == []
        assert message.parts
        assert any(not isinstance(part, Thinking) for part in message.parts)
        for part in message.parts:
            assert not (isinstance(part, Text) and not part.text.strip())
            assert not (isinstance(part, Image) and not part.data and part.blob is None)
            if isinstance(part, Thinking):
                assert (part.provider, part.model) == (HERE.provider, HERE.model)
                assert part.signature or part.redacted
        open_calls = [part.call_uid for part in message.parts if isinstance(part, ToolCall)]
    assert open_calls == []


@given(line=lines())
def test_every_call_of_the_line_is_answered_exactly_once(line: list[LineEntry]) -> None:
    messages = build(line, HERE)
    made = [each.call_uid for entry in line for each in entry.node.calls]
    answered = [
        result.call_uid
        for message in messages
        if isinstance(message, CallResults)
        for result in message.results
    ]
    assert answered == made


class CountedNotes(list[TreeNote]):
    """Counts the notes that are read of it."""

    read = 0

    def __iter__(self) -> Iterator[TreeNote]:
        self.read += len(self)
        return super().__iter__()

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        self.read += len(found) if isinstance(place, slice) else 1
        return found


def test_a_turn_reads_only_the_notes_that_are_new() -> None:
    node = NodeId("nod_1")
    kept = [
        TreeNote(node=node, text=f"{n}", to_model=True, order=n, environment={"date": f"{n}"})
        for n in range(200)
    ]
    notes = CountedNotes(kept)
    tree = ConversationTree(environments=notes)
    assert notes_for_model(tree)[node] == tuple(str(n) for n in range(200))
    told_on(tree, node)
    notes.read = 0
    notes.append(TreeNote(node=node, text="new", to_model=True, order=200, environment={"a": "b"}))
    assert notes_for_model(tree)[node][-1] == "new"
    told_on(tree, node)
    assert notes.read <= 1
