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


def _plain(name: str) -> str:
    name = unicodedata.normalize("NFKC", name).casefold().rstrip(". ")
    return "".join(letter for letter in name if unicodedata.category(letter) != "Cf")
