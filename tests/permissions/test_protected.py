"""Files that programs obey."""

from __future__ import annotations

import pytest

from weft.permissions import is_git_record, is_protected, protected_below


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


@pytest.mark.parametrize(
    "path",
    [
        ".git/objects/ab/cdef",
        ".git/refs/heads/main",
        ".git/index",
        ".git/index.lock",
        "sub/.git/HEAD",
        ".git/modules/lib/objects/pack/pack-1.idx",
        ".git/worktrees/two/HEAD",
        ".git/modules/lib/modules/deep/refs/heads/main",
    ],
)
def test_what_git_keeps_for_itself_is_a_record(path: str) -> None:
    assert is_git_record(path)
    assert is_protected(path)


@pytest.mark.parametrize(
    "path",
    [
        ".git",
        ".git/config",
        ".git/config.lock",
        ".git/config.worktree",
        ".git/hooks/pre-commit",
        ".git/info/attributes",
        ".git/commondir",
        ".git/modules/lib/config",
        ".git/modules/lib/hooks/post-checkout",
        ".git/worktrees/two/config.worktree",
        ".GIT/objects/ab",
        "objects/ab",
        ".git/something-new",
    ],
)
def test_what_git_obeys_or_we_do_not_know_is_none(path: str) -> None:
    assert not is_git_record(path)


@pytest.mark.parametrize(
    ("path", "below"),
    [
        (".github", True),
        ("packages/a/.GitHub", True),
        (".config", True),
        ("src", False),
        ("github", False),
        (".github/workflows", False),
    ],
)
def test_a_folder_that_could_hold_a_protected_file_is_known(path: str, below: bool) -> None:
    found = protected_below(path)
    assert bool(found) == below
    assert not found or is_protected(f"{path}/{found}")
