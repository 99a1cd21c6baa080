"""Protected files: those that programs obey or run by themselves.

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
"""Where the user's own settings are, and which folders they trust."""
_FILES = frozenset(
    {
        *(
            # Start-up files: every new shell of the user runs them.
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
            # Settings that name programs to run, or the servers that code and packages come from.
            ".gitconfig",
            ".gitmodules",
            ".ripgreprc",
            ".mcp.json",
            ".envrc",
            ".npmrc",
            ".yarnrc",
            ".yarnrc.yml",
        ),
        # Passwords; hooks of git; and modules that Python imports at every start once they are on its
        # path.
        *(".netrc", ".pypirc", ".pre-commit-config.yaml", "sitecustomize.py", "usercustomize.py"),
    }
)


def is_protected(path: str) -> bool:
    """True when the path (with forward slashes) is such a file, or lies in such a folder."""
    # On Linux a backslash is a letter like any other; to take it for a separator costs a question
    # too many at worst.
    names = [_plain(name) for name in path.replace("\\", "/").split("/")]
    if names[-1] in _FILES or any(name in _FOLDERS for name in names):
        return True
    return _OURS in pairwise(names)


# Not `config`, `hooks` or `info`: settings name programs (pagers, filters, fsmonitor), hooks are
# programs, and attributes switch filters on.
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
    # git writes a file under its name with `.lock` and renames it.
    return bool(inside) and inside[0].removesuffix(".lock") in _RECORDS


def _plain(name: str) -> str:
    # What file systems take for the same name: HFS+ and APFS ignore case and Unicode forms, HFS+
    # also characters of no width (git's CVE-2014-9390), and Windows drops dots and spaces at the
    # end.
    name = unicodedata.normalize("NFKC", name).casefold().rstrip(". ")
    return "".join(letter for letter in name if unicodedata.category(letter) != "Cf")
