"""`--agent NAME` and `--settings`: a run that is started as something else, or set otherwise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.weft_program import WeftProgram, call, text
from weft.project.agent_definitions import AgentDefinition

REVIEWER = """---
description: Reviews a change.
tools: Read, Grep, Bash
model: {model}
permissionMode: {mode}
maxTurns: 1
---
You review code and nothing else.
"""


@pytest.fixture
def reviewer(weft: WeftProgram) -> str:
    """An agent of the project; returns its model."""
    as_reviewer = {"when": {"system_says": "You review code"}, "steps": [text("Looks good.")]}
    model = weft.script(as_reviewer, "I am Weft.")
    agents = weft.project / ".weft/agents"
    agents.mkdir(parents=True)
    (agents / "reviewer.md").write_text(REVIEWER.format(model=model, mode="plan"))
    return model


def started(weft: WeftProgram, *flags: str) -> dict[str, Any]:
    """What the first line of a stream says of the session."""
    done = weft.call("-p", "--output-format", "stream-json", *flags, "hi")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[0])
    return found


def test_a_session_is_started_as_an_agent(weft: WeftProgram, reviewer: str) -> None:
    assert weft.call("-p", "-m", reviewer, "hi").stdout == "I am Weft.\n"
    assert weft.call("-p", "--agent", "reviewer", "hi").stdout == "Looks good.\n"
    assert weft.call("-p", "-c", "and now?").stdout == "Looks good.\n", "it stays what it is"
    first = started(weft, "--agent", "reviewer")
    assert first["tools"] == ["read", "grep", "shell"]
    assert (first["model"], first["permissionMode"]) == (reviewer, "plan")


def test_the_command_line_counts_more_than_the_agent(weft: WeftProgram, reviewer: str) -> None:
    other = weft.script("Another model.")
    flags = ("--agent", "reviewer", "-m", other, "--tools", "read,write")
    first = started(weft, *flags, "--permission-mode", "acceptEdits")
    assert first["tools"] == ["read"], "only what both have"
    assert (first["model"], first["permissionMode"]) == (other, "accept_edits")


def test_an_agent_has_the_turns_that_it_names(weft: WeftProgram, reviewer: str) -> None:
    (weft.project / "a.txt").write_text("x")
    model = weft.script([call("read", path="a.txt")], "Never said.")
    done = weft.call("-p", "--agent", "reviewer", "-m", model, "hi")
    assert (done.returncode, "Never said." in done.stdout) == (1, False)
    more = weft.call("-p", "--agent", "reviewer", "-m", model, "--max-turns", "5", "hi")
    assert more.stdout == "Never said.\n"


@pytest.mark.parametrize(("folder", "mode"), [("project", "default"), ("own", "bypass")])
def test_a_projects_agent_cannot_allow_itself_more(
    weft: WeftProgram, reviewer: str, folder: str, mode: str
) -> None:
    places = {"project": weft.project / ".weft/agents", "own": weft.config / "agents"}
    places[folder].mkdir(parents=True, exist_ok=True)
    definition = REVIEWER.format(model=reviewer, mode="bypassPermissions")
    (places[folder] / "bold.md").write_text(definition)
    assert started(weft, "--agent", "bold")["permissionMode"] == mode


def test_an_agent_that_only_users_talk_to(weft: WeftProgram, reviewer: str) -> None:
    folder = weft.project / ".opencode/agents"
    folder.mkdir(parents=True)
    (folder / "builder.md").write_text("---\nmode: primary\n---\nYou review code and build it.\n")
    done = weft.call("-p", "-m", reviewer, "--agent", "builder", "hi")
    assert done.stdout == "Looks good.\n"
    assert "builder" not in started(weft, "-m", reviewer)["agents"], "no helper of other agents"


@pytest.mark.parametrize("flag", ["-c", "-r=x"])
def test_a_resumed_session_stays_what_it_is(weft: WeftProgram, reviewer: str, flag: str) -> None:
    weft.call("-p", "-m", reviewer, "-n", "x", "hi")
    done = weft.call("-p", flag, "--agent", "reviewer", "hi")
    assert done.returncode == 2
    assert done.stderr.startswith("weft: --agent can be given to a new session only")


@pytest.mark.parametrize(
    ("tools", "refused", "available", "chosen"),
    [
        (("read", "mcp__a__x"), (), ["read", "write", "mcp__*"], ["read", "mcp__a__x"]),
        (("read", "mcp__a__x"), (), ["read", "write"], ["read"]),
        (("mcp__a",), (), ["read", "mcp__a__x", "mcp__b__y"], ["mcp__a__x"]),
        (("mcp__a__x", "mcp__b__y"), (), ["mcp__b"], ["mcp__b__y"]),
        (None, (), ["read", "mcp__*"], ["read", "mcp__*"]),
        (None, ("mcp__a__x", "read"), ["read", "write", "mcp__*"], ["write"]),
        (("mcp__a__*", "mcp__b__*"), ("mcp__a__x",), ["mcp__*"], ["mcp__b__*"]),
        (("mcp__a__x",), ("mcp__a",), ["mcp__*"], []),
    ],
)
def test_an_agent_has_no_tools_of_servers_but_those_that_both_sides_name(
    tools: tuple[str, ...] | None, refused: tuple[str, ...], available: list[str], chosen: list[str]
) -> None:
    """Nor any that it may not have."""
    definition = AgentDefinition(name="a", tools=tools, disallowed=refused)
    assert definition.choose_to_begin(available) == chosen


def setting(weft: WeftProgram, name: str, *flags: str) -> str:
    done = weft.call("config", "get", *flags, name)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_settings_come_from_a_file_or_as_json(weft: WeftProgram, tmp_path: Path) -> None:
    toml, other = tmp_path / "a.toml", tmp_path / "b.json"
    toml.write_text('theme = "light"\n[model]\neffort = "low"\n')
    other.write_text('{"theme": "dark", "permissions": {"defaultMode": "acceptEdits"}}')
    assert setting(weft, "theme", "--settings", str(toml)) == "light"
    assert setting(weft, "theme", "--settings", '{"theme": "none"}') == "none"
    both = ("--settings", str(toml), "--settings", str(other))
    assert setting(weft, "theme", *both) == "dark", "the last one counts"
    assert setting(weft, "model.effort", *both) == "low"
    assert setting(weft, "permissions.mode", *both) == "accept_edits"
    assert setting(weft, "theme", *both, "--set", "theme=auto") == "auto"


def test_rules_of_settings_are_added_to_the_configured_ones(weft: WeftProgram) -> None:
    weft.config.mkdir(parents=True)
    (weft.config / "config.toml").write_text('permissions.deny = ["write(a.txt)"]\n')
    model = weft.script([call(*("write",), path=f"{name}.txt", content="x") for name in "abcd"])
    more = '{"permissions": {"deny": ["write(b.txt)"]}}'
    flags = ("--settings", more, "--disallowedTools", "write(c.txt)")
    weft.call("-p", "-m", model, "--yolo", *flags, "hi")
    assert [each for each in "abcd" if (weft.project / f"{each}.txt").exists()] == ["d"]


def test_a_model_of_claude_codes_settings_is_taken(weft: WeftProgram) -> None:
    model = weft.script("As set.")
    done = weft.call("-p", "--settings", json.dumps({"model": model}), "hi")
    assert done.stdout == "As set.\n"
