"""Imported rules of other agents: none allows more than it did there, and no file is a crash."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from weft.api.permissions.rule_import import ImportedRule, read_foreign_rules
from weft.errors import UsageError
from weft.permissions import ToolAction, decide, read_rule


def read(folder: Path, text: str, name: str = "x.rules") -> list[ImportedRule]:
    path = folder / name
    path.write_text(text)
    return read_foreign_rules(path)


def settings(folder: Path, **rules: list[object]) -> list[ImportedRule]:
    return read(folder, json.dumps({"permissions": rules}), "settings.json")


@pytest.mark.parametrize("rule", ["Edit(**)", "Edit(*)", "Edit(/**)", "Edit(./**)"])
def test_every_file_of_the_project_is_not_every_file_of_the_disk(tmp_path: Path, rule: str) -> None:
    [found] = settings(tmp_path, allow=[rule])
    assert found.state == "new"
    rules = read_rule("allow", found.rule)
    outside = ToolAction(tool="edit", kind="edit", target="/etc/x", place="/etc/x", outside=True)
    inside = ToolAction(tool="edit", kind="edit", target="src/x", place="/p/src/x")
    assert decide(outside, mode="default", rules=rules).verdict == "ask"
    assert decide(inside, mode="default", rules=rules).verdict == "allow"


def test_a_rule_for_all_tools_at_once_is_left_out_where_it_allows(tmp_path: Path) -> None:
    found = settings(tmp_path, allow=["*", "mcp__*", "mcp__docs__*"], deny=["mcp__*"])
    assert [(each.rule, each.state) for each in found] == [
        ("mcp__*", "new"),
        ("*", "left out"),
        ("mcp__*", "left out"),
        ("mcp__docs__*", "new"),
    ]


def test_what_is_no_text_is_listed_and_left_out(tmp_path: Path) -> None:
    [found] = settings(tmp_path, deny=[{"tool": "Bash"}])
    assert found.state == "left out"
    assert found.why


@pytest.mark.parametrize(
    "words",
    [
        'pattern=["ls"], when="never"',
        'pattern=["ls"], **{"x": 1}',
        'pattern=["ls"], decision=["allow"]',
        'pattern=["ls"], match=[1]',
        'pattern=["ls"], match={[]: 1}',
        "pattern=[1, 2]",
        f"pattern={[list('abcdefghij')] * 20}",
        f"pattern={'[' * 150}{']' * 150}",
    ],
)
def test_a_rule_of_codex_that_is_not_understood_is_left_out(tmp_path: Path, words: str) -> None:
    found = read(tmp_path, f'prefix_rule({words})\nprefix_rule(pattern=["rm"])\n')
    assert [each.state for each in found] == ["left out", "new"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.rules", "-" * 100_000 + "1"),
        ("x.rules", "(" * 1_000),
        ("x.rules", "\0"),
        ("x.json", "[" * 100_000),
    ],
)
def test_a_file_that_is_none_of_rules_is_said_to_be_so(
    tmp_path: Path, name: str, text: str
) -> None:
    with pytest.raises(UsageError):
        read(tmp_path, text, name)
