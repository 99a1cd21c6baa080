"""Files that programs obey."""

from __future__ import annotations

import pytest

from weft.permissions import is_protected


@pytest.mark.parametrize(
    "path",
    [
        ".git/config",
        ".git/hooks/pre-commit",
        "sub/.git/config",
        ".GIT/config",
        ".Git/config",
        "\uff0egit/config",
        ".git./config",
        ".git /config",
        ".g\u200cit/config",
        ".weft/config.toml",
        ".vscode/tasks.json",
        "/home/me/.bashrc",
        ".mcp.json",
        "sub/.envrc",
        "sub\\.git\\config",
    ],
)
def test_it_is_known_however_it_is_written(path: str) -> None:
    assert is_protected(path)


@pytest.mark.parametrize(
    "path", ["src/git/config", ".gitignore", "git", ".github/x.yml", "a.git/x", ".", ""]
)
def test_a_name_that_only_looks_alike_is_none(path: str) -> None:
    assert not is_protected(path)
