"""The record in words: what a screen reader reads out."""

from __future__ import annotations

import pytest

from tests.support.tool_cards import card, edit, read, shell
from weft.cli.chat.paint.plain_words import plain_lines, whole_plain_lines, wrapped_words
from weft.cli.chat.screens.plain_screen import still_working
from weft.events import Todo
from weft.ids import CallUid
from weft.messages import ToolResult
from weft.view import (
    AgentEnd,
    AgentsCard,
    AnswerBlock,
    AnyBlock,
    LookupCard,
    NoteBlock,
    PermissionBlock,
    QuestionBlock,
    TableBlock,
    ThinkingBlock,
    TodoBlock,
    ToolCard,
    TurnEndBlock,
    UserBlock,
)

DIFF = "--- calc.py\n+++ calc.py\n@@ -10,1 +10,1 @@\n-    return a - b\n+    return a + b"
SAID: list[tuple[AnyBlock, list[str]]] = [
    (UserBlock(text="fix it", attached=("a.py",)), ["You: fix it", "Attached: a.py."]),
    (LookupCard(cards=(read("calc.py"),)), ["Read calc.py."]),
    (ThinkingBlock(text="Hm", seconds=9.0), ["Thought for 9 s."]),
    (NoteBlock(text="It is down", level="error", advice="Try."), ["Error: It is down", "Try."]),
    (QuestionBlock(text="Which?", answer="a"), ["Question: Which? Answer: a"]),
    (TodoBlock(items=(Todo(id="1", text="Fix", status="done"),)), ["Done: Fix"]),
    (TableBlock(title="Cost", rows=(("in", "1k", "$1"),)), ["Cost:", "in: 1k, $1"]),
    (
        TurnEndBlock(seconds=25, ended_at=1, calls=4, cost_usd=0.03),
        ["Done in 25 s, 4 calls, $0.03."],
    ),
    (
        AgentsCard(agents=(AgentEnd(name="g", title="Find", calls=2, text="Found."),)),
        ["1 agent ended.", "Find, 2 calls: Found."],
    ),
    (PermissionBlock(tool="shell", target="ls", preview="ls -l"), ["Command: ls -l"]),
    (
        PermissionBlock(tool="edit", target="calc.py", preview=DIFF),
        ["Removed line 10: return a - b", "Added line 10: return a + b"],
    ),
]


@pytest.mark.parametrize(("block", "lines"), SAID, ids=lambda each: type(each).__name__)
def test_every_block_is_said_in_words(block: AnyBlock, lines: list[str]) -> None:
    assert plain_lines(block) == lines


def test_an_edit_is_read_line_by_line() -> None:
    assert plain_lines(edit(), "/work/calc") == [
        "Edited calc.py, 1 line added, 1 removed.",
        "Removed line 10: return a - b",
        "Added line 10: return a + b",
    ]
    assert plain_lines(edit(was_shown=True), "/work/calc") == [
        "Edited calc.py, 1 line added, 1 removed, you allowed it."
    ], "its lines were read out with the question"


def test_commands_say_how_they_ended() -> None:
    assert plain_lines(shell("make", "done", duration_ms=800)) == ["Ran make, 0.8 s.", "done"]
    failed = shell("make", "boom\n(exit code 2)", code=2)
    assert plain_lines(failed) == ["Failed: make, exit 2.", "boom"]
    said = "Denied by the user. They said: not today"
    denied = card("shell", said, args={"command": "rm x"}, status="denied")
    assert plain_lines(denied) == ['Not allowed: rm x — "not today".']


def test_an_answer_has_no_marks_and_its_tables_are_read_row_by_row() -> None:
    text = (
        "# Title\n\nSome **bold** `code`.\n\n1. one\n2. two\n\n- point\n\n"
        "```python\nx = 1\n```\n\n| file | lines |\n|---|---|\n| a.py | 3 |\n| b.py | 4 |"
    )
    assert plain_lines(AnswerBlock(text=text)) == [
        "Weft:",
        "Heading: Title",
        "Some bold code.",
        "1. one",
        "2. two",
        "point",
        "Code, python:",
        "x = 1",
        "End of code.",
        "Row 1: file a.py, lines 3.",
        "Row 2: file b.py, lines 4.",
    ]


def test_words_are_not_cut_at_the_edge_of_the_window_and_code_stays_as_it_is() -> None:
    code = "x = 'a line of code that is longer than the window is wide'"
    said = f"A sentence that is longer than forty columns.\n\n```py\n{code}\n```\n\nThe end."
    rows = wrapped_words(plain_lines(AnswerBlock(text=said)), 40)
    assert rows == [
        *("Weft:", "A sentence that is longer than forty", "columns."),
        *("Code, py:", code, "End of code.", "The end."),
    ]
    command = PermissionBlock(tool="shell", target="x", preview=f"echo  {'word ' * 20}")
    assert wrapped_words(plain_lines(command), 40) == plain_lines(command), "what is allowed"


def test_a_change_of_nothing_but_spaces_is_heard() -> None:
    diff = (
        "--- a.py\n+++ a.py\n@@ -1,2 +1,2 @@\n-    return x\n-y = 1\n+        return x\n+y = 1  \n"
    )
    assert plain_lines(PermissionBlock(tool="edit", target="a.py", preview=diff)) == [
        "Removed line 1, indented by 4: return x",
        "Removed line 2, indented by 0: y = 1",
        "Added line 1, indented by 8: return x",
        "Added line 2, indented by 0, with 2 spaces at its end: y = 1",
    ]


def test_a_long_turn_is_said_to_work_at_thirty_seconds_and_then_every_minute() -> None:
    told = [(now, still_working(now - 1, now)) for now in range(1, 200)]
    assert [each for each in told if each[1]] == [
        (30, "Still working, 30 seconds."),
        (60, "Still working, 1 minute."),
        (120, "Still working, 2 minutes."),
        (180, "Still working, 3 minutes."),
    ]


def edited(count: int) -> ToolCard:
    lines = "".join(f"+line {number}\n" for number in range(1, count + 1))
    diff = f"--- a.txt\n+++ a.txt\n@@ -1,1 +1,{count} @@\n-old\n{lines}"
    result = ToolResult(call_uid=CallUid("c"), text="", data={"diff": diff})
    return ToolCard(name="edit", args={"path": "a.txt"}, result=result)


def test_a_change_is_read_out_whole_where_it_is_asked_for() -> None:
    change = edited(50)
    assert plain_lines(change)[-1] == "11 more lines not shown."
    lines = whole_plain_lines(change)
    assert lines[0] == plain_lines(change)[0]
    assert lines[-1] == "Added line 50: line 50"
    assert len(lines) == 52, "no sign of the diff's own notation"


def test_output_is_read_out_whole_where_it_is_asked_for() -> None:
    printed = "\n".join(map(str, range(20)))
    result = ToolResult(call_uid=CallUid("c"), text=printed)
    ran = ToolCard(name="shell", args={"command": "seq"}, result=result)
    assert whole_plain_lines(ran) == ["Ran seq.", *map(str, range(20))]
