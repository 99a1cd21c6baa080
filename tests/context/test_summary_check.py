"""A summary may be wrong in many ways; finished work never comes back as open."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.context import LineEntry, bounded_summary, checked, step_list
from weft.ids import CallUid, NodeId
from weft.messages import Node, Text, ToolCall, ToolResult

TASK = "add the parser for dates"


@pytest.mark.parametrize(
    "line",
    [
        "- add the parser for dates",
        "- [ ] Add the parser for dates",
        "We still must add the dates parser.",
        "The parser for dates was not finished; add it next.",
        "TODO: parser for dates, add tests",
    ],
)
@pytest.mark.parametrize("heading", ["## Next", "**Open**", "", "## Done"])
def test_a_line_that_shows_a_finished_task_as_open_is_struck(heading: str, line: str) -> None:
    if heading == "## Done" and line.startswith("- add"):
        return  # there it says that it is done
    summary, struck = checked(f"All is well.\n{heading}\n{line}\n- write the docs", [TASK])
    assert line not in summary
    assert "parser" not in summary
    assert struck
    assert "- write the docs" in summary
    assert "All is well." in summary


@pytest.mark.parametrize(
    "text",
    [
        "## Done\n- add the parser for dates",
        "The parser for dates was added.",
        "- [x] Add the parser for dates",
        "## Next\n- remove the parser of numbers",
        "## Next\n- add docs",
    ],
)
def test_what_is_told_as_done_or_is_about_something_else_stays(text: str) -> None:
    assert checked(text, [TASK, "docs"]) == (text, ())


@pytest.mark.parametrize(
    "text",
    [
        "## Decisions\n- The parser adds dates by the calendar of the shop, for speed",
        "## State\n- the parser for dates, as it was add-on, fails on leap years: error 29",
        "## Task\nadd the parser for dates",
        "## Erledigt\n- add the parser for dates: erledigt",
        "## Next\n## Decisions\n- the parser for dates may add no rows",
    ],
)
def test_what_is_known_of_finished_work_stays(text: str) -> None:
    assert checked(text, [TASK]) == (text, ())


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("**TODO:** Add the parser for dates, then ship.\nrest", "rest"),
        ("**Next:** Ship it. Add the parser for dates.", "**Next:** Ship it."),
        ("## Next\n### Add the parser for dates\n- rest", "## Next\n- rest"),
        ("## Next\n**Add the parser for dates**\n- rest", "## Next\n- rest"),
        ("## Next\n### Part two\n- add the parser for dates", "## Next\n### Part two"),
        ("## Done\n**Remaining:**\n- add the parser for dates", "## Done\n**Remaining:**"),
    ],
)
def test_headings_and_what_begins_in_bold_are_checked_too(text: str, left: str) -> None:
    summary, struck = checked(text, [TASK])
    assert (summary, len(struck)) == (left, 1)


def test_only_the_wrong_sentence_of_a_paragraph_goes() -> None:
    said = f"It began well. Next, {TASK}. Then the door opened."
    assert checked(said, [TASK]) == (
        "It began well. Then the door opened.",
        (f"Next, {TASK}.",),
    )


@given(st.text(max_size=400), st.lists(st.text(max_size=40), max_size=4))
def test_any_summary_can_be_checked(text: str, finished: list[str]) -> None:
    summary, struck = checked(text, finished)
    assert len(summary) <= len(text)
    assert bool(struck) or summary == "\n".join(text.splitlines()).strip()


@pytest.mark.parametrize("fill", [" ", " :", "**", "# "])
@pytest.mark.parametrize("start", ["# a", "** a"])
def test_a_heading_with_a_long_gap_holds_up_nothing(start: str, fill: str) -> None:
    """A pattern that goes back over the gap would not come to an end here."""
    line = f"{start}{fill * 50_000}b"
    assert checked(line, [TASK]) == (line, ())


@given(st.text(max_size=9_000), st.integers(100, 10_000))
def test_a_summary_has_a_bound(text: str, space: int) -> None:
    bounded = bounded_summary(text, space)
    assert bounded == text or bounded.endswith("ends here]")
    assert len(bounded) <= max(2_100, space * 4 // 10 + 100)


def test_the_steps_stand_in_for_a_summary_that_could_not_be_had() -> None:
    uid = CallUid("c")
    call = ToolCall(call_uid=uid, name="read", args={"path": "a.py"})
    result = ToolResult(call_uid=uid, text="no such file", is_error=True)
    line = [
        LineEntry(node=Node(id=NodeId("1"), role="user", parts=(Text(text="mend\nit"),))),
        LineEntry(
            node=Node(id=NodeId("2"), role="assistant", parts=(Text(text="I look."), call)),
            results={uid: result},
        ),
    ]
    assert step_list(line, "They met.", 1_000, "it timed out") == (
        "No summary could be written: it timed out.\n\nThe summary before it said:\nThey met.\n\n"
        "The steps since, from the record:\n- user: mend it\n- agent: I look.\n- read a.py: failed"
    )
    many = step_list(line * 500, "b" * 90_000, 1_000, "no")
    assert len(many) <= 1_700
    assert "earlier steps are left out)" in many
    assert many.endswith("- read a.py: failed")
