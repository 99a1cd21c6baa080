"""A composer that is asked again and again says what a new one would, and does not start over."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.call_count import calls_made
from weft.context import ContextTarget, LineEntry, MessageComposer
from weft.ids import CallUid, NodeId
from weft.messages import Image, Node, Text, ToolCall, ToolResult

HERE = ContextTarget("anthropic", "claude")
UID = CallUid("u")


def answer(number: int, result: str | None = None) -> LineEntry:
    """An answer with one call, settled or not."""
    call = ToolCall(call_uid=UID, name="read", provider="anthropic", provider_id=f"p{number}")
    node = Node(id=NodeId(f"nod_{number}"), role="assistant", parts=(call,))
    settled = {} if result is None else {UID: ToolResult(call_uid=UID, text=result)}
    return LineEntry(node=node, results=settled)


def question(number: int) -> LineEntry:
    node = Node(id=NodeId(f"nod_{number}"), role="user", parts=(Text(text=f"q{number}"),))
    return LineEntry(node=node, results={})


def line_of(length: int) -> list[LineEntry]:
    return [question(0), *(answer(number, "done") for number in range(1, length))]


Steps = st.lists(
    st.tuples(
        st.sampled_from(["ask", "call", "settle", "note", "cut", "summarize", "replace"]),
        st.integers(min_value=0, max_value=12),
    ),
    max_size=30,
)


@given(Steps)
def test_a_composer_says_what_a_new_one_would_say(steps: list[tuple[str, int]]) -> None:
    kept = MessageComposer(HERE)
    line: list[LineEntry] = []
    notes: dict[NodeId | None, list[str]] = {}
    summary, upto = "", None
    for count, (step, place) in enumerate(steps):
        match step:
            case "ask":
                line.append(question(count))
            case "call":
                line.append(answer(count))
            case "settle" | "replace" if line:
                # "settle" is what a turn does; "replace" any entry, as a line that was read anew.
                at = len(line) - 1 if step == "settle" else place % len(line)
                line[at] = LineEntry(
                    node=line[at].node, results={UID: ToolResult(call_uid=UID, text=f"r{count}")}
                )
            case "note":
                node = line[place % len(line)].node.id if line and place else None
                notes = {key: [*said] for key, said in notes.items()}
                notes.setdefault(node, []).append(f"n{count}")
            case "cut":
                del line[place:]
            case "summarize" if line:
                summary, upto = f"s{count}", line[0].node.id
                del line[0]
            case _:
                pass
        about = {"summary": summary, "upto": upto, "notes": notes}
        again = kept.compose(line, **about)  # type: ignore[arg-type]
        anew = MessageComposer(HERE).compose(line, **about)  # type: ignore[arg-type]
        assert again == anew


def test_one_more_round_is_composed_without_a_step_for_each_one_before() -> None:
    calls = {}
    for length in (10, 1_000):
        composer, line = MessageComposer(HERE), line_of(length)
        composer.compose(line)
        line.append(answer(length))
        composer.compose(line)
        line[-1] = answer(length, "done")
        calls[length] = calls_made(lambda c=composer, one=line: c.compose(one))
    assert calls[10] == calls[1_000]


def test_a_picture_that_is_left_out_is_gone_from_what_was_composed() -> None:
    composer, line = MessageComposer(HERE), line_of(3)
    picture = Image(media_type="image/png", data="aGk=", name="cat.png")
    line[0] = LineEntry(node=msgspec.structs.replace(line[0].node, parts=(picture,)), results={})
    assert "cat.png" not in str(composer.compose(line).messages[0]).partition("Text(")[2]
    composer.leave_out_pictures(line[0].node.id)
    assert "cat.png" in str(composer.compose(line).messages[0]).partition("Text(")[2]


@pytest.mark.parametrize("length", [0, 1, 2])
def test_a_short_line_is_composed_twice_alike(length: int) -> None:
    composer, line = MessageComposer(HERE), line_of(2)[:length]
    assert composer.compose(line) == composer.compose(line)
