"""The table of files that programs obey."""

from __future__ import annotations

import pytest

from tests.support.example_count import cases
from weft.data_tables import read_table
from weft.permissions import is_changed_by_hand, is_protected, protected

ROWS = read_table(protected.__file__, "obeyed_files.tsv", 5)


def test_the_table_is_long_and_has_no_name_twice() -> None:
    assert len(ROWS) >= 120
    assert len({name.casefold() for name, *_ in ROWS}) == len(ROWS)
    assert {who for _, who, *_ in ROWS} == {"hand", "rewind"}


@pytest.mark.parametrize(("name", "who"), cases((name, who) for name, who, *_ in ROWS))
def test_every_row_is_protected_in_any_folder_and_spelling(name: str, who: str) -> None:
    path = name.replace("*", "any")
    path += "some/file" if path.endswith("/") else ""
    for written in (path, f"below/{path}", f"/home/me/{path}", path.upper()):
        assert is_protected(written)
        assert is_changed_by_hand(written) == (who == "hand")
    if name.endswith("/"):
        assert is_protected(name.rstrip("/"))


@pytest.mark.parametrize(
    "path",
    [
        *("src/agents.py", "docs/claude.md.txt", "workflows/ci.yml", ".github/ISSUE_TEMPLATE/a.md"),
        *(
            "config.toml",
            "cargo/config.toml",
            "Makefile",
            "package.json",
            "settings.json",
            "x.pthx",
        ),
        *(".config/other/x", "notes/AGENTS.md/x", "Jenkinsfile.md", "nvim/init.lua"),
    ],
)
def test_what_only_looks_alike_is_not_protected(path: str) -> None:
    assert not is_protected(path)


@pytest.mark.parametrize("path", [".config/weft/MEMORY.md", ".local/share/weft/memory/prj_1.md"])
def test_what_every_later_session_remembers_is_changed_by_hand_only(path: str) -> None:
    """Also by a model that works in the home folder, where these lie inside the project."""
    assert is_protected(path)
    assert is_changed_by_hand(path)


@pytest.mark.parametrize(
    "path",
    [
        *("AGENTS.md", "CLAUDE.md", ".claude/skills/x/SKILL.md", ".github/workflows/ci.yml"),
        *(".gitlab-ci.yml", ".vscode/tasks.json", ".idea/workspace.xml", ".mise.toml"),
        *(".cargo/config.toml", "lefthook.yml", ".envrc", ".npmrc", ".pre-commit-config.yaml"),
        *(".husky/pre-commit", ".mcp.json", ".weft/config.toml", ".git/hooks/pre-commit"),
        *(".githooks/pre-commit", "git~1/config"),
    ],
)
def test_what_was_promised_by_name_is_in_the_table(path: str) -> None:
    # The other tests go over the table, and would not miss a row.
    assert is_protected(path)
