"""The shape of a git directory: what git needs to read it at all, as far as single files tell.

Nothing is lost where one of these does not hold, but no git finds it: a `packed-refs` with one
wrong line hides every branch, a ref that names junk stops `git log --all` and `git gc`.  And some
files make git run programs later, or believe something else than its objects say.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable
from typing import Final

from weft.workspace.git_records import (
    GitRecords,
    ends_in_checksum,
    is_derived,
    is_oid,
    leads_to,
    loose_content,
)

ALTERNATES: Final = "objects/info/alternates"
_FOLDERS: Final = ("objects", "refs")
"""Without these a folder is no git directory."""
_PLAIN: Final = ("packed-refs", "shallow", ALTERNATES)
_TODO: Final = re.compile(r"(?:worktrees/[^/]+/)?rebase-merge/git-rebase-todo(?:\.backup)?")
# Git takes blanks in front, and the short form.
_RUNS: Final = re.compile(rb"^[ \t]*(?:exec|x)[ \t]", re.MULTILINE)
_REPLACE: Final = "refs/replace/"
_NO_REF_NAME: Final = re.compile(
    r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|^\.|\.lock(?:/|$)|[./]$|^@$"
)
_MULTI_PACK_INDEX: Final = "objects/pack/multi-pack-index"


def why_not_readable(after: GitRecords, changed: Collection[str], made: Collection[str]) -> str:
    """What git could not read any more; empty when it can.  `made` names new folders."""
    if after.ref("HEAD") is None:
        return "it leaves the repository without HEAD"
    for name in _PLAIN:
        path = after.where(name)
        # Git follows such a link to wherever it leads, and gives up at a folder.
        is_link = name in changed and path is not None and os.path.islink(path)
        if is_link or name in made:
            return f"it leaves {name} with nothing that git can read"
    if "packed-refs" in changed and not after.can_read_packed():
        return "it leaves packed-refs with nothing that git can read"
    return ""


def why_not_kept_folders(unmade: Iterable[str]) -> str:
    """Which folder, without which there is no repository, was removed."""
    for name in _FOLDERS:
        if name in unmade:
            return f"it leaves the repository without its {name}"
    return ""


def why_not_work_trees(removed: Collection[str], after: GitRecords) -> str:
    """Which work tree lost its HEAD while git still lists it."""
    for name in sorted(removed):
        tree = name.removesuffix("/HEAD")
        if tree != name and tree.startswith("worktrees/") and tree.count("/") == 1:
            path = after.where(f"{tree}/gitdir")
            if path is not None and os.path.lexists(path):
                return f"it leaves {tree} without HEAD"
    return ""


def why_not_run_later(after: GitRecords) -> str:
    """Which commands `git rebase --continue` would run, outside of every sandbox."""
    for name in after.put:
        if _TODO.fullmatch(name) and _RUNS.search(after.read(name) or b""):
            return f"it leaves commands in {name} that `git rebase --continue` runs"
    return ""


def why_not_named(after: GitRecords, name: str, oid: str) -> str:
    """Why a ref cannot name an object: it is not there, or not what a branch needs.

    An object in a pack is not opened; packs are verified as a whole.
    """
    if not after.has_object(oid):
        return f"it lets {name} name an object that is not there"
    path = after.where(f"objects/{oid[:2]}/{oid[2:]}")
    if path is None or not is_loose(after, oid):
        return ""
    content = loose_content(path, oid)
    if content is None:
        return f"it lets {name} name an object that git cannot read"
    if not content.startswith(b"commit "):
        return f"it lets {name} name what is no commit" if is_branch(name) else ""
    if not content.partition(b"\0")[2].startswith(b"tree "):
        return f"it lets {name} name a commit that git cannot read"
    return next(
        (
            f"it lets {name} name a commit that lacks {needed[:12]}"
            for needed in leads_to(content)
            if not _is_cut(after, oid) and not after.has_object(needed)
        ),
        "",
    )


def why_not_replacing(before: GitRecords, name: str) -> str:
    """Whether a ref makes git show another object in the place of one that is there."""
    oid = name.removeprefix(_REPLACE)
    if oid != name and is_oid(oid) and before.has_object(oid):
        return (
            f"it lets git show another object in the place of {oid[:12]} ({_REPLACE.rstrip('/')})"
        )
    return ""


def is_ref_name(name: str) -> bool:
    """True for a name that git takes, as `git check-ref-format` has it."""
    return not _NO_REF_NAME.search(name)


def is_branch(name: str) -> bool:
    """True for a ref that must name a commit."""
    return name.startswith("refs/heads/") or name.endswith("HEAD")


def is_loose(after: GitRecords, oid: str) -> bool:
    """True for an object in a file of its own."""
    path = after.where(f"objects/{oid[:2]}/{oid[2:]}")
    return path is not None and os.path.isfile(path)


def why_not_derived(after: GitRecords, removed: Collection[str]) -> str:
    """What is wrong with files that repeat what objects say: git believes them, and stops where
    one is damaged.
    """
    for name in sorted(filter(is_derived, after.put)):
        if not ends_in_checksum(f"{after.over}/{name}"):
            return f"it damages {name}"
    # Git looks there first, and fails where it names a pack that is gone.
    gone = [os.path.basename(name) for name in removed if name.endswith(".idx")]
    if gone and (listed := after.read(_MULTI_PACK_INDEX)):
        for name in gone:
            if name.encode() in listed:
                return f"it leaves a multi-pack-index that needs {name}"
    return ""


def is_graph(name: str) -> bool:
    """True for a part of the commit graph."""
    return name.startswith(("objects/info/commit-graph", "objects/info/commit-graphs/"))


def _is_cut(after: GitRecords, oid: str) -> bool:
    """True for a commit whose parents are not there, and need not be."""
    return oid.encode() in (after.read("shallow") or b"").split()


def is_symbolic(held: str) -> bool:
    """True for a ref that names another."""
    return held.startswith("ref: refs/") and not is_oid(held)
