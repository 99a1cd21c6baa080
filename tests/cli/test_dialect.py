"""The dialect of the Claude Agent SDK: every call has its names there, and what comes back means
what was meant."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import UsageError
from weft.permissions import CLAUDE_NAMES
from weft.protocol.agent_sdk_dialect import ClaudeDialect, ToolDialect, dialect_of

ROOT = "/work/project"
SDK = ClaudeDialect(ROOT)

CALLS: list[tuple[str, dict[str, Any], str, dict[str, Any]]] = [
    (
        "read",
        {"path": "a.py", "offset": 2, "limit": 3},
        "Read",
        {"file_path": "/work/project/a.py", "offset": 2, "limit": 3},
    ),
    (
        "write",
        {"path": "/tmp/a.py", "content": "x"},
        "Write",
        {"file_path": "/tmp/a.py", "content": "x"},
    ),
    (
        "edit",
        {"path": "./a.py", "old_string": "a", "new_string": "b", "replace_all": True},
        "Edit",
        {
            "file_path": "/work/project/a.py",
            "old_string": "a",
            "new_string": "b",
            "replace_all": True,
        },
    ),
    (
        "multi_edit",
        {"path": "a.py", "edits": [{"old_string": "a", "new_string": "b"}]},
        "MultiEdit",
        {"file_path": "/work/project/a.py", "edits": [{"old_string": "a", "new_string": "b"}]},
    ),
    ("apply_patch", {"patch": "*** Begin Patch"}, "ApplyPatch", {"patch": "*** Begin Patch"}),
    (
        "lsp",
        {"path": "a.py", "action": "hover", "symbol": "x"},
        "LSP",
        {"file_path": "/work/project/a.py", "action": "hover", "symbol": "x"},
    ),
    (
        "rename",
        {"path": "a.py", "symbol": "x", "new_name": "y"},
        "RenameSymbol",
        {"file_path": "/work/project/a.py", "symbol": "x", "new_name": "y"},
    ),
    ("list", {}, "LS", {}),
    ("list", {"path": "src"}, "LS", {"path": "/work/project/src"}),
    (
        "find",
        {"pattern": "*.py", "path": "."},
        "Glob",
        {"pattern": "*.py", "path": "/work/project"},
    ),
    (
        "grep",
        {"pattern": "x", "ignore_case": True, "context": 2, "files_only": True, "limit": 9},
        "Grep",
        {
            "pattern": "x",
            "-i": True,
            "-C": 2,
            "output_mode": "files_with_matches",
            "head_limit": 9,
        },
    ),
    (
        "shell",
        {"command": "ls", "timeout_seconds": 1.5, "background": True, "outside_sandbox": True},
        "Bash",
        {
            "command": "ls",
            "timeout": 1500,
            "run_in_background": True,
            "dangerouslyDisableSandbox": True,
        },
    ),
    ("shell", {"command": "ls", "cwd": "a b"}, "Bash", {"command": "cd 'a b' && ls"}),
    ("check", {"command": "make"}, "Bash", {"command": "make"}),
    ("general ▸ shell", {"command": "ls"}, "Bash", {"command": "ls"}),
    ("shell_output", {"id": "bg_1"}, "BashOutput", {"bash_id": "bg_1"}),
    ("shell_stop", {"id": "bg_1"}, "KillShell", {"shell_id": "bg_1"}),
    (
        "todo",
        {"todos": [{"text": "a", "status": "done", "id": "1"}, {"text": "b"}]},
        "TodoWrite",
        {
            "todos": [
                {"content": "a", "activeForm": "a", "status": "completed", "id": "1"},
                {"content": "b", "activeForm": "b", "status": "pending"},
            ]
        },
    ),
    (
        "agent",
        {"prompt": "look", "description": "d", "agent": "general", "background": False},
        "Task",
        {
            "prompt": "look",
            "description": "d",
            "subagent_type": "general",
            "run_in_background": False,
        },
    ),
    ("skill", {"name": "tidy"}, "Skill", {"skill": "tidy"}),
    ("wait_for", {"seconds": 5}, "WaitFor", {"seconds": 5}),
    ("fetch", {"url": "https://a.example/"}, "WebFetch", {"url": "https://a.example/"}),
    ("web_search", {"query": "a", "count": 3}, "WebSearch", {"query": "a", "count": 3}),
    ("find_symbol", {"name": "Cart"}, "FindSymbol", {"name": "Cart"}),
    ("references", {"name": "Cart"}, "References", {"name": "Cart"}),
    ("outline", {"path": "a.py"}, "Outline", {"path": "a.py"}),
    ("map", {"request": "carts"}, "Map", {"request": "carts"}),
    ("decision_log", {"title": "Use X"}, "DecisionLog", {"title": "Use X"}),
    ("decision_query", {"text": "cache"}, "DecisionQuery", {"text": "cache"}),
    ("decision_update", {"id": "dec_1"}, "DecisionUpdate", {"id": "dec_1"}),
    (
        "ask",
        {"question": "Which?", "options": ["a", "b"]},
        "AskUserQuestion",
        {
            "questions": [
                {
                    "question": "Which?",
                    "header": "Question",
                    "options": [
                        {"label": "a", "description": ""},
                        {"label": "b", "description": ""},
                    ],
                    "multiSelect": False,
                }
            ]
        },
    ),
    ("mcp__git__log", {"path": "a"}, "mcp__git__log", {"path": "a"}),
]


@pytest.mark.parametrize(("name", "args", "theirs", "told"), CALLS)
def test_a_call_is_told_in_the_names_of_the_sdk(
    name: str, args: dict[str, Any], theirs: str, told: dict[str, Any]
) -> None:
    assert (SDK.tool(name), SDK.input(name, args)) == (theirs, told)


@pytest.mark.parametrize(("name", "args", "theirs", "told"), CALLS)
def test_an_input_that_comes_back_as_it_was_told_is_the_input_of_the_model(
    name: str, args: dict[str, Any], theirs: str, told: dict[str, Any]
) -> None:
    assert SDK.args(name, args, told) == args


def test_every_tool_with_a_name_there_is_among_the_calls() -> None:
    assert set(CLAUDE_NAMES) <= {call[0] for call in CALLS}


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)
keys = st.sampled_from(
    ["path", "command", "cwd", "timeout_seconds", "todos", "question", "options", "id", "name"]
)


@given(st.sampled_from(sorted(CLAUDE_NAMES)), st.dictionaries(keys, json_values, max_size=4))
def test_whatever_a_model_writes_can_be_told_and_comes_back_the_same(
    name: str, args: dict[str, Any]
) -> None:
    assert SDK.args(name, args, SDK.input(name, args)) == args
    assert ToolDialect().args(name, args, ToolDialect().input(name, args)) == args


@pytest.mark.parametrize(
    ("name", "args", "given", "read"),
    [
        (
            "write",
            {"path": "a.py", "content": "x"},
            {"file_path": "/work/project/b.py", "content": "x"},
            {"path": "/work/project/b.py", "content": "x"},
        ),
        ("write", {"path": "a.py"}, {"path": "b.py"}, {"path": "b.py"}),
        (
            "shell",
            {"command": "ls"},
            {"command": "ls", "timeout": 500},
            {"command": "ls", "timeout_seconds": 0.5},
        ),
        (
            "shell",
            {"command": "ls"},
            {"command": "pwd", "description": "Where"},
            {"command": "pwd"},
        ),
        (
            "shell",
            {"command": "ls", "cwd": "src"},
            {"command": "cd src && pwd"},
            {"command": "cd src && pwd"},
        ),
        (
            "shell",
            {"command": "ls", "cwd": "src"},
            {"command": "cd src && ls", "timeout": 500},
            {"command": "ls", "cwd": "src", "timeout_seconds": 0.5},
        ),
        (
            "grep",
            {"pattern": "x"},
            {"pattern": "y", "output_mode": "content", "-n": True},
            {"pattern": "y", "files_only": False},
        ),
        (
            "todo",
            {"todos": []},
            {"todos": [{"content": "a", "status": "completed", "activeForm": "doing a"}]},
            {"todos": [{"text": "a", "status": "done"}]},
        ),
        (
            "ask",
            {"question": "A?"},
            {"questions": [{"question": "B?", "options": [{"label": "x"}]}]},
            {"question": "B?", "options": ["x"]},
        ),
        (
            "edit",
            {"path": "a"},
            {"file_path": "/work/project/a", "unheard": 1},
            {"path": "a", "unheard": 1},
        ),
    ],
)
def test_an_input_that_comes_back_changed_has_our_names(
    name: str, args: dict[str, Any], given: dict[str, Any], read: dict[str, Any]
) -> None:
    assert SDK.args(name, args, given) == read


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("write", {"file_path": "/a", "path": "/b"}),
        ("grep", {"pattern": "x", "output_mode": "count"}),
        ("ask", {"questions": []}),
        ("ask", {"questions": "A?"}),
    ],
)
def test_an_input_that_has_no_meaning_here_is_refused(name: str, given: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        SDK.args(name, {}, given)


def test_an_argument_under_the_others_name_does_not_hide_the_one_that_counts() -> None:
    told = SDK.input("write", {"path": "/etc/passwd", "file_path": "/work/project/ok.txt"})
    assert told["file_path"] == "/etc/passwd"


def test_a_path_that_climbs_out_is_told_where_it_leads() -> None:
    assert SDK.input("read", {"path": "../../etc/passwd"})["file_path"] == "/etc/passwd"


def test_the_result_of_a_command_has_the_fields_that_are_expected_there() -> None:
    response = {"text": "hello", "is_error": False, "status": "done"}
    told = SDK.response("shell", {"command": "x"}, response)
    assert (told["stdout"], told["stderr"], told["interrupted"]) == ("hello", "", False)
    assert SDK.response("write", {"path": "a"}, response)["filePath"] == "/work/project/a"


def test_modes_have_their_names_there() -> None:
    modes = ["default", "plan", "accept_edits", "auto", "bypass"]
    assert [SDK.mode(mode) for mode in modes] == [
        *("default", "plan", "acceptEdits", "auto", "bypassPermissions")
    ]


def test_our_own_dialect_changes_nothing() -> None:
    ours = dialect_of("weft", ROOT)
    for name, args, _, _ in CALLS:
        assert (ours.tool(name), ours.input(name, args)) == (name, args)
    assert ours.mode("bypass") == "bypass"
