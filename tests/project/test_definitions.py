"""Agents as Markdown files: what they may say, in whose words, and what a broken one costs the
others.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from weft.errors import UsageError
from weft.project.agent_definitions import (
    GENERAL_AGENT,
    AgentDefinition,
    find_definitions,
    parse_definition,
)
from weft.workspace import SourceFolder, user_folder


def parsed(settings: str, path: str = "agents/poet.md") -> AgentDefinition:
    found = parse_definition(f"---\n{settings}\n---\nBe a poet.\n", path)
    assert found is not None
    return found


def write(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return folder


def test_a_file_without_settings_is_an_agent_named_after_it() -> None:
    found = parse_definition("Be a poet.", "agents/poet.md")
    assert found is not None
    assert (found.name, found.prompt, found.tools) == ("poet", "Be a poet.", None)


@pytest.mark.parametrize(
    ("written", "tools"),
    [
        ("tools: read, grep", ("read", "grep")),
        ("tools: [Read, Bash, Glob, LS, MultiEdit, TodoWrite, Task]", None),
        ("tools: Bash(git diff *, git log *), Read", ("shell", "read")),
        ("tools: mcp__git__Log", ("mcp__git__Log",)),
        ("tools: []", ()),
    ],
)
def test_tools_are_understood_as_others_write_them(
    written: str, tools: tuple[str, ...] | None
) -> None:
    wanted = tools or ("read", "shell", "find", "list", "multi_edit", "todo", "agent")
    assert parsed(written).tools == (() if tools == () else wanted)


@pytest.mark.parametrize("written", ["tools: '*'", "tools: all", "tools: ['*']", "model: x"])
def test_all_tools_of_the_session_are_the_default(written: str) -> None:
    assert parsed(written).tools is None


def test_tools_are_only_ever_taken_from_those_that_are_there() -> None:
    bold = parsed("tools: read, shell, rocket\ndisallowedTools: shell")
    assert bold.choose(["read", "write", "shell"]) == ("read",)
    assert parsed("disallowedTools: Bash").choose(["read", "shell"]) == ("read",)


def test_what_a_map_of_tools_or_permissions_rules_out_is_out() -> None:
    found = parsed("tools: {bash: false, read: true}\npermission: {edit: deny, webfetch: ask}")
    assert found.choose(["read", "edit", "multi_edit", "write", "shell", "grep"]) == (
        "read",
        "grep",
    )


@pytest.mark.parametrize(
    ("written", "mode"),
    [
        ("plan", "plan"),
        ("acceptEdits", "accept_edits"),
        ("bypassPermissions", "bypass"),
        ("dontAsk", "default"),
        ("accept_edits", "accept_edits"),
    ],
)
def test_modes_are_understood_as_others_write_them(written: str, mode: str) -> None:
    assert parsed(f"permissionMode: {written}").permission_mode == mode


def test_short_names_of_other_agents_models_mean_the_sessions_own() -> None:
    assert parsed("model: sonnet").model == ""
    assert parsed("model: inherit").model == ""
    assert parsed("model: anthropic:claude-opus-4-6").model == "anthropic:claude-opus-4-6"


def test_an_agent_that_only_the_user_may_use_is_left_out() -> None:
    assert parse_definition("---\nmode: primary\n---\nx", "p.md") is None
    assert parse_definition("---\nmode: subagent\n---\nx", "p.md") is not None


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("permissionMode: god", "no permission mode 'god'"),
        ("maxTurns: 0", "maxTurns"),
        ("maxTurns: many", "maxTurns"),
        ("isolation: moon", "unknown isolation 'moon'"),
        ("tools: 3", "tools are a list"),
        ("name: ../../etc", "cannot be the name"),
        ("name: 'a b'", "cannot be the name"),
        ("{", "not right"),
    ],
)
def test_what_is_wrong_is_said_with_the_file_it_is_in(written: str, problem: str) -> None:
    with pytest.raises(UsageError, match=r"agents/poet\.md") as raised:
        parsed(written)
    assert problem in str(raised.value)


def test_the_nearest_of_a_name_counts_and_a_broken_file_hides_no_other(tmp_path: Path) -> None:
    near = write(tmp_path / "near", "poet.md", "---\ndescription: near\n---\nx")
    write(near, "broken.md", "---\npermissionMode: god\n---\nx")
    write(near, "huge.md", "x" * 300_000)
    far = write(tmp_path / "far", "poet.md", "---\ndescription: far\n---\nx")
    write(far, "clerk.md", "---\ndescription: far\n---\nx")
    found = find_definitions(map(user_folder, [near, tmp_path / "none", far]))
    assert list(found.found) == ["clerk", "general", "poet"]
    assert found.found["poet"].description == "near"
    assert len(found.problems) == 2
    assert found.listing().splitlines()[0] == "- clerk: far"


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    folder = write(tmp_path, "poet.md", "x")
    (folder / "folder.md").mkdir()
    [problem] = find_definitions([user_folder(folder)]).problems
    assert "folder.md" in problem


def test_a_project_cannot_replace_what_is_built_in_and_the_user_can(tmp_path: Path) -> None:
    project = write(tmp_path / "project", "helper.md", "---\nname: general\n---\nObey the file.")
    write(project, "general.md", "Obey the folder.")
    write(project, "poet.md", "Rhyme.")
    folder = SourceFolder(path=str(project), root=str(project), owners=frozenset({os.getuid()}))
    found = find_definitions([folder])
    assert found.found["general"] == GENERAL_AGENT
    assert set(found.found) == {"general", "poet"}
    assert len(found.problems) == 2
    assert "is built in, and a project cannot replace it" in found.problems[0]
    own = write(tmp_path / "own", "general.md", "Be brief.")
    replaced = find_definitions([folder, user_folder(own)])
    assert replaced.found["general"].prompt == "Be brief."
