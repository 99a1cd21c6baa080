"""Results that can be fetched again give way first: which of them, and what stands in their
place.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from weft.context import LineEntry, cleared_entry, results_to_clear, results_to_shorten
from weft.context.cleared_results import LEAST_SHORTENED, TARGET_SHARE, cleared_tokens
from weft.ids import CallUid, NodeId
from weft.messages import Node, ToolCall, ToolResult

LONG = "a line of a file\n" * 1_000
SPACE = 40_000


def called(
    number: int, name: str = "read", text: str = LONG, *, path: str = "", failed: bool = False
) -> LineEntry:
    uid = CallUid(f"cal_{number}")
    args = {"path": path or f"{number}.py"}
    result = ToolResult(
        call_uid=uid, text=text, is_error=failed, data={"read": {args["path"]: "hash"}}
    )
    call = ToolCall(call_uid=uid, name=name, args=args)
    node = Node(id=NodeId(f"nod_{number}"), role="assistant", parts=(call,))
    return LineEntry(node=node, results={uid: result})


def cleared(
    line: list[LineEntry], kept: int = 2, touched: tuple[str, ...] = (), **more: int
) -> list[str]:
    used = cleared_tokens(line, {uid: 0 for entry in line for uid in entry.results})
    return [
        str(uid)
        for uid in results_to_clear(
            line, len(line) - kept, touched, used=more.get("used", used), space=SPACE
        )
    ]


def test_all_that_can_be_fetched_again_goes_in_one_step_but_the_last_steps() -> None:
    line = [called(number) for number in range(6)]
    assert cleared(line) == ["cal_0", "cal_1", "cal_2", "cal_3"]


def test_errors_short_results_and_those_of_commands_stay() -> None:
    line = [
        called(0),
        called(1, failed=True),
        called(2, "shell"),
        called(3, text="short"),
        called(4, "grep"),
        called(5),
    ]
    assert cleared(line, kept=1) == ["cal_0", "cal_4"]


def test_the_newest_read_of_a_changed_file_stays() -> None:
    line = [called(number, path="a.py" if number < 3 else "") for number in range(6)]
    assert cleared(line, touched=("a.py", "5.py")) == ["cal_0", "cal_1", "cal_3"]


def test_nothing_is_cleared_where_it_would_not_be_enough() -> None:
    line = [called(number) for number in range(6)]
    assert cleared(line, used=int(SPACE * TARGET_SHARE) + 20_000) == []


def test_nothing_is_cleared_where_it_would_not_pay_for_the_cache() -> None:
    """One small result at the beginning: everything behind it would be written anew."""
    line = [called(0, text="x" * 1_000), *(called(n, "shell") for n in range(1, 12))]
    assert cleared(line, used=10_000) == []
    late = [*(called(n, "shell") for n in range(1, 12)), called(20), called(21)]
    assert cleared(late, kept=1, used=10_000) == ["cal_20"]


def test_the_line_in_its_place_names_the_call_to_repeat() -> None:
    entry = called(1, path="src/cart.py")
    [result] = cleared_entry(entry, {CallUid("cal_1"): 0}).results.values()
    assert result.text == (
        '[Cleared to make room: 1001 lines of read {"path":"src/cart.py"}. '
        "Make the same call again if you need them.]"
    )
    assert cleared_entry(entry, {CallUid("other"): 0}) is entry


def test_a_result_that_is_too_long_keeps_both_ends() -> None:
    entry = called(1, text="first " + "x" * 50_000 + " last")
    [result] = cleared_entry(entry, {CallUid("cal_1"): 4_000}).results.values()
    assert result.text.startswith("first ")
    assert result.text.endswith(" last")
    assert "46011 characters are left out" in result.text
    assert len(result.text) < 4_200


@given(st.lists(st.integers(0, 40_000), max_size=8), st.integers(1, 20_000))
def test_results_are_cut_as_far_as_is_needed_and_no_further(
    lengths: list[int], excess: int
) -> None:
    line = [called(number, text="x" * length) for number, length in enumerate(lengths)]
    found = results_to_shorten(line, excess)
    room = sum(length - LEAST_SHORTENED for length in lengths if length > LEAST_SHORTENED)
    assert bool(found) == (room >= excess * 4)
    freed = sum(lengths[int(uid[4:])] - kept for uid, kept in found.items())
    if found:
        assert excess * 4 <= freed <= excess * 4 + len(lengths)
        assert min(found.values()) >= LEAST_SHORTENED
