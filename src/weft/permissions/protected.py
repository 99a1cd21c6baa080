"""Files that programs obey or run by themselves.

Writing one of them is running a program later: a hook of git, a task of an editor, a line of a shell's start-up file.  So writing
one always asks, whatever else lets files be edited.  Names are compared as the least careful file system would: without case, in
one Unicode form, without the dots and spaces at the end that some drop.
"""

from __future__ import annotations

import unicodedata
from itertools import pairwise

_FOLDERS = frozenset(
    {".git", ".hg", ".svn", ".weft", ".claude", ".vscode", ".idea", ".husky", ".devcontainer"}
)
_OURS = (".config", "weft")
"""Where the person's own settings are, and whom they trust."""
_FILES = frozenset(
    {
        *(
            ".bashrc",
            ".bash_profile",
            ".bash_login",
            ".bash_logout",
            ".profile",
            ".zshrc",
            ".zshenv",
            ".zprofile",
            ".zlogin",
        ),
        *(
            ".gitconfig",
            ".gitmodules",
            ".ripgreprc",
            ".mcp.json",
            ".envrc",
            ".npmrc",
            ".yarnrc",
            ".yarnrc.yml",
        ),
        *(".netrc", ".pypirc", ".pre-commit-config.yaml", "sitecustomize.py", "usercustomize.py"),
    }
)


def is_protected(path: str) -> bool:
    """True when the path (with forward slashes) is such a file, or lies in such a folder."""
    names = [_plain(name) for name in path.replace("\\", "/").split("/")]
    if names[-1] in _FILES or any(name in _FOLDERS for name in names):
        return True
    return _OURS in pairwise(names)


_RECORDS = frozenset(
    {
        *("objects", "refs", "logs", "index", "HEAD", "packed-refs", "shallow", "lfs", "rr-cache"),
        *(
            "ORIG_HEAD",
            "FETCH_HEAD",
            "MERGE_HEAD",
            "MERGE_MSG",
            "MERGE_MODE",
            "MERGE_RR",
            "AUTO_MERGE",
        ),
        *("CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD", "BISECT_LOG", "BISECT_START"),
        *("COMMIT_EDITMSG", "SQUASH_MSG", "TAG_EDITMSG", "description", "gc.log", "gc.pid"),
        *("rebase-merge", "rebase-apply", "sequencer", "branches"),
    }
)


def is_git_record(path: str) -> bool:
    """True when git keeps its own records there: commits, branches, the index.  No program is run for what stands in them.

    Hooks, settings and attributes are none; what lies in a `.git` and is not known is none either.
    """
    names = path.split("/")
    if ".git" not in names:
        return False
    inside = names[names.index(".git") + 1 :]
    while len(inside) > 2 and inside[0] in ("worktrees", "modules"):
        inside = inside[2:]  # each of them is laid out like the whole
    return bool(inside) and inside[0].removesuffix(".lock") in _RECORDS


def _plain(name: str) -> str:
    name = unicodedata.normalize("NFKC", name).casefold().rstrip(". ")
    return "".join(letter for letter in name if unicodedata.category(letter) != "Cf")
