"""Choosing with the keyboard."""

from __future__ import annotations

import pytest

from weft.cli.chat.questions import permission_question
from weft.cli.chat.screens.picker import VISIBLE_ROWS, ListPicker
from weft.cli.chat.screens.screen import ChoiceQuestion, ChoiceRow
from weft.events import PermissionRequest
from weft.ids import CallUid, NodeId, RequestId


def question(count: int = 4, **fields: object) -> ChoiceQuestion:
    rows = tuple(ChoiceRow(f"row {number}", f"detail {number}") for number in range(count))
    # Fields of the struct.
    return ChoiceQuestion(title="?", rows=rows, **fields)  # type: ignore[arg-type]


def test_enter_allows_nothing_before_something_was_picked() -> None:
    choosing = ListPicker(permission_question(request("shell(ls)")))
    assert choosing.picked() is None
    choosing.move(1)
    assert choosing.picked() == 0


def test_digits_choose_and_other_letters_do_not() -> None:
    choosing = ListPicker(question())
    assert choosing.typed("3") == 2
    assert choosing.typed("9") is None
    assert choosing.typed("\u0663") in (None, 2), (
        "other scripts' digits may count, or not; nothing breaks"
    )
    assert not choosing.understands("x")
    assert not choosing.understands("0")


def test_moving_wraps_at_both_ends() -> None:
    choosing = ListPicker(question(picked=0))
    choosing.move(-1)
    assert choosing.picked() == 3
    choosing.move(1)
    assert choosing.picked() == 0


def test_typing_narrows_a_search_and_the_number_stays_that_of_the_row() -> None:
    choosing = ListPicker(question(20, is_searched=True))
    for letter in "row 17":
        assert choosing.typed(letter) is None
    assert choosing.picked() == 17
    for _ in range(6):
        choosing.erase()
    assert len(choosing.rows()) == 20


def test_the_picked_row_is_always_on_the_screen() -> None:
    choosing = ListPicker(question(40, picked=0))
    for _ in range(60):
        choosing.move(1)
        picked = choosing.picked()
        assert picked in [number for number, _ in choosing.visible()]
        assert len(choosing.visible()) == VISIBLE_ROWS


def request(pattern: str) -> PermissionRequest:
    return PermissionRequest(
        request_id=RequestId("r"),
        call_uid=CallUid("c"),
        node=NodeId("n"),
        tool_name="shell",
        always_pattern=pattern,
    )


def test_always_says_exactly_what_it_grants() -> None:
    short = permission_question(request("shell(make)"))
    assert short.rows[2] == ChoiceRow("Yes, for the rest of this session", "shell(make)")
    for pattern in ("shell(" + "x" * 100 + ")", "shell(a\nb)", "shell(\u202ea)"):
        long = permission_question(request(pattern))
        assert long.rows[2].detail == "exactly what is shown above"


@pytest.mark.parametrize("path", ["calc.py", "deep/" * 40 + "calc.py", "a\nb", "\u202ea"])
@pytest.mark.parametrize("tool", ["edit", "multi_edit", "write"])
def test_always_for_a_file_is_not_only_the_change_that_is_shown(tool: str, path: str) -> None:
    detail = permission_question(request(f"{tool}({path})")).rows[2].detail
    assert detail.startswith(f"any {tool} of ")
    assert "exactly" not in detail
    assert detail.isprintable()
    if path == "calc.py":
        assert detail == f"any {tool} of calc.py"


def test_always_for_an_agent_is_any_task_of_it() -> None:
    detail = permission_question(request("agent(reviewer)")).rows[2].detail
    assert detail == "any task for the agent reviewer"
