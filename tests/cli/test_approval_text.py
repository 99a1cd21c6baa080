"""The words of a request for approval."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from weft.cli.chat.approval_text import ApprovalPlace, answer_actions, permission_question
from weft.cli.chat.paint.diff_rows import diff_lines, read_diff
from weft.cli.chat.paint.plain_words import plain_lines
from weft.cli.chat.paint.record_lines import preview_lines
from weft.cli.chat.paint.theme import PaintTheme
from weft.cli.chat.screens.screen import ChoiceQuestion
from weft.events import PermissionRequest
from weft.ids import CallUid, NodeId, RequestId
from weft.permissions import ToolAction, grant_pattern
from weft.view import PermissionBlock

PLACE = ApprovalPlace(folder="/work/calc")
DIFF = "--- calc.py\n+++ calc.py\n@@ -10,1 +10,1 @@\n-    return a - b\n+    return a + b"


def request(tool: str, target: str = "", preview: str = "", **fields: Any) -> PermissionRequest:
    kind: Any = "edit" if tool == "edit" else "run"
    pattern = grant_pattern(ToolAction(tool=tool, kind=kind, target=target))
    return PermissionRequest(
        request_id=RequestId("r"),
        call_uid=CallUid("c"),
        node=NodeId("n"),
        tool_name=tool,
        tool_path=target,
        preview=preview or target,
        always_pattern=pattern,
        **fields,
    )


def labels(question: ChoiceQuestion) -> list[str]:
    return [f"{row.label}  {row.detail}".rstrip() for row in question.rows]


def test_an_edit_says_what_each_answer_covers() -> None:
    asked = request("edit", "calc.py", DIFF)
    question = permission_question(asked, PLACE)
    assert (question.rule, question.danger) == ("Edit calc.py ─ +1 −1", "")
    assert question.title == "Allow this edit?"
    assert labels(question) == [
        "Yes",
        "Yes, and every edit of calc.py in this session",
        "Yes, and all edits in this session",
        "No, and say what to do instead",
    ]
    assert [row.key for row in question.rows] == ["y", "a", "s-tab", "n"]
    assert question.picked == 0, "Enter says yes to an edit inside the project"
    assert answer_actions(asked) == ("allow_once", "allow_always", "all_edits", "deny")
    (preview,) = question.preview
    assert isinstance(preview, PermissionBlock)
    assert preview.preview == DIFF


def test_a_patch_of_several_files_is_shown_whole_and_granted_once_or_with_all_edits() -> None:
    preview = (
        "*** a.py (changed)\n@@ -1,1 +1,1 @@\n-one\n+two\n*** old.py (deleted)\n"
        "@@ -1,1 +0,0 @@\n-gone"
    )
    asked = request("apply_patch", "a.py, old.py", preview)
    asked = msgspec.structs.replace(asked, always_pattern="")
    question = permission_question(asked, PLACE)
    assert (question.rule, question.title) == ("Edit a.py, old.py ─ +1 −2", "Allow this edit?")
    assert labels(question) == [
        "Yes",
        "Yes, and all edits in this session",
        "No, and say what to do instead",
    ]
    assert answer_actions(asked) == ("allow_once", "all_edits", "deny")
    lines = [
        "".join(span.text for span in line.spans) for line in diff_lines(read_diff(preview), 80)
    ]
    assert lines == [
        "  a.py (changed)",
        "   1 - one",
        "   1 + two",
        "  old.py (deleted)",
        "   1 - gone",
    ]


def test_a_command_says_where_it_runs_and_its_scope_whole() -> None:
    command = "python3 -m pytest " + " ".join(f"tests/test_{number}.py" for number in range(30))
    question = permission_question(request("shell", command), PLACE)
    assert question.rule == "Run a command ─ in the sandbox, no network"
    assert question.title == "Allow this command?"
    assert labels(question) == [
        "Yes",
        f"Yes, and again in this session:  {command}",
        "No, and say what to do instead",
    ]
    assert question.picked == 0
    wide = permission_question(request("shell", command), ApprovalPlace("/work", True))
    assert wide.rule == "Run a command ─ in the sandbox, with the network"


def test_all_hosts_are_said_below_whatever_the_question_is_about() -> None:
    """The row above is cut where it is too narrow."""
    hosts = ", ".join(f"{number}.example.org" for number in range(20))

    def reason(why: str) -> str:
        asked = request("shell", f"# may reach {hosts}\ncurl x", reason=why)
        (block,) = permission_question(asked, PLACE).preview
        assert isinstance(block, PermissionBlock)
        return block.reason

    assert reason(f"it would reach {hosts}") == f"It would reach {hosts}."
    for why in ("", "it could read .env", "it would reach 1.example.org"):
        assert reason(why).endswith(f"It may reach {hosts}.")


def test_hosts_of_rules_are_said_besides_those_that_a_command_names() -> None:
    line = "# may reach pypi.org\npip download x"
    asked = request("shell", line)
    assert permission_question(asked, PLACE).rule == (
        "Run a command ─ in the sandbox, may reach pypi.org"
    )
    place = ApprovalPlace("/work", allows_hosts=True)
    assert permission_question(asked, place).rule == (
        "Run a command ─ in the sandbox, may reach pypi.org and allowed hosts"
    )


@pytest.mark.parametrize(
    ("preview", "shown", "note"),
    [
        ("# outside the sandbox\ncurl x", "curl x", ""),
        ("# without a sandbox: no bwrap\nls", "ls", "There is no sandbox: no bwrap."),
        (
            "# goes on in the background\n# outside the sandbox\nnpm run dev",
            "npm run dev",
            "It goes on in the background.",
        ),
    ],
)
def test_what_leaves_the_sandbox_is_said_in_red_and_enter_means_nothing(
    preview: str, shown: str, note: str
) -> None:
    question = permission_question(request("shell", shown, preview), PLACE)
    assert (question.rule, question.danger) == ("Run a command", "OUTSIDE the sandbox")
    assert question.picked == -1
    (block,) = question.preview
    assert isinstance(block, PermissionBlock)
    assert (block.preview, block.reason) == (shown, note)


def test_a_file_elsewhere_is_said_in_red() -> None:
    question = permission_question(
        request("edit", "/etc/hosts", DIFF, reason="/etc/hosts is outside the project"), PLACE
    )
    assert question.rule == "Edit ─ +1 −1"
    assert question.danger == "outside this folder: /etc/hosts"
    assert question.picked == -1
    inside = permission_question(request("edit", "/work/calc/calc.py", DIFF), PLACE)
    assert (inside.rule, inside.danger) == ("Edit calc.py ─ +1 −1", "")


@pytest.mark.parametrize(
    ("tool", "target", "rule"),
    [
        ("write", "notes.md", "Create notes.md ─ 2 lines"),
        ("delete", "old.py", "Delete old.py"),
        ("fetch", "https://x.org", "Fetch https://x.org"),
        ("agent", "reviewer", "Use agent reviewer"),
        ("reviewer ▸ shell", "ls", "reviewer: Run a command ─ in the sandbox, no network"),
        ("mcp__docs__get", "add", "Use mcp__docs__get add"),
        ("edit", "a\x1b[31m.py", "Edit a.py"),
    ],
)
def test_the_rule_has_a_title_for_each_tool(tool: str, target: str, rule: str) -> None:
    preview = "--- n\n+++ n\n@@ -0,0 +1,2 @@\n+a\n+b" if tool == "write" else target
    assert permission_question(request(tool, target, preview), PLACE).rule == rule


def test_several_at_once_are_counted() -> None:
    question = permission_question(request("shell", "ls"), PLACE, number=2, count=3)
    assert question.title == "Allow this command? (2 of 3)"


@pytest.mark.parametrize("path", ["calc.py", "deep/" * 40 + "calc.py", "a\nb", "\u202ea"])
@pytest.mark.parametrize("tool", ["edit", "multi_edit", "write"])
def test_always_for_a_file_is_every_edit_of_it(tool: str, path: str) -> None:
    label = permission_question(request(tool, path), PLACE).rows[1].label
    assert label.startswith("Yes, and every edit of ")
    assert label.isprintable()
    assert len(label) >= len(path)


def test_always_for_an_agent_is_any_task_of_it() -> None:
    detail = permission_question(request("agent", "reviewer"), PLACE).rows[1].detail
    assert detail == "any task for the agent reviewer"


def test_the_scope_of_a_command_that_leaves_the_sandbox_says_so() -> None:
    target = "# outside the sandbox\ncurl x"
    detail = permission_question(request("shell", target), PLACE).rows[1].detail
    assert detail == "outside the sandbox: curl x"


def test_nothing_can_hide_in_a_scope() -> None:
    question = permission_question(request("shell", "ls\nrm\u202e x\t-rf"), PLACE)
    assert question.rows[1].detail == "ls ⏎ rm<U+202E> x<TAB>-rf"


def shown_preview(block: PermissionBlock) -> str:
    lines = preview_lines(block, 80, PaintTheme())
    return "\n".join("".join(span.text for span in line.spans) for line in lines)


@pytest.mark.parametrize("begins", ["--- a\n+++ b\n", "*** a.py (changed)\n"])
def test_a_command_cannot_hide_by_looking_like_a_change(begins: str) -> None:
    block = PermissionBlock(tool="shell", target="x", preview=f"{begins}rm -rf work", reason="")
    assert "rm -rf work" in shown_preview(block)
    plain = "\n".join(plain_lines(block))
    assert "rm -rf work" in plain


def test_a_patch_of_several_files_is_shown_as_rows() -> None:
    preview = "*** a.py (changed)\n@@ -7,1 +7,1 @@\n-one\n+two"
    block = PermissionBlock(tool="reviewer ▸ apply_patch", target="a.py", preview=preview)
    assert shown_preview(block).split("\n") == ["  a.py (changed)", "   7 - one", "   7 + two"]


def test_a_request_of_an_agent_says_which_one_it_is() -> None:
    asked = msgspec.structs.replace(request("shell", "make"), tool_name="agent ▸ shell")
    question = permission_question(asked, PLACE, task="Run the tests\nof calc")
    assert question.rule == "agent: Run a command ─ in the sandbox, no network"
    (preview,) = question.preview
    assert isinstance(preview, PermissionBlock)
    # Wrapped and never cut, whatever the window's width.
    assert preview.reason == "Asked by the agent: Run the tests of calc"
