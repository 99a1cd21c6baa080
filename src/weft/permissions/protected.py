"""Protected files: those that programs obey or run by themselves.

Writing one of them is running a program later: a hook of git, a task of an editor, a line of a
shell's start-up file.  So writing one always asks, whatever else lets files be edited.  Names are
compared as the least careful file system would: without case, in one Unicode form, without the dots
and spaces at the end that some drop.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from weft.data_tables import read_table


class ObeyedFiles:
    """The rows of `obeyed_files.tsv`, arranged by the name that a path must hold.

    A row with several names is one text with slashes, and nearly all rows have one: a list for each
    would take three times the room in every process that changes a file.
    """

    def __init__(self, names: Iterable[str]) -> None:
        files: list[str] = []
        folders: list[str] = []
        endings: list[str] = []
        self._above: dict[str, str] = {}
        """A folder that such a file, or such a folder, lies in → what lies in it."""
        for name in names:
            parts = [_plain(part) for part in name.rstrip("/").split("/")]
            for end in range(1, len(parts)):
                self._above["/".join(parts[:end])] = "/".join(parts[end:])
            if name.endswith("/"):
                folders.append("/".join(parts))
            elif name.startswith("*"):
                endings.append(name[1:].casefold())
            else:
                files.append("/".join(parts))
        self._files = frozenset(name for name in files if "/" not in name)
        self._folders = frozenset(name for name in folders if "/" not in name)
        self._deep_folders = tuple(f"/{name}/" for name in folders if "/" in name)
        self._deep_begin = frozenset(name.split("/")[1] for name in self._deep_folders)
        self._endings = (*endings, *(f"/{name}" for name in files if "/" in name))

    def hold(self, path: str) -> bool:
        """True when the path (with forward slashes) is such a file, or lies in such a folder."""
        names = [_plain(name) for name in path.replace("\\", "/").split("/")]
        if names[-1] in self._files or not self._folders.isdisjoint(names):
            return True
        whole = f"/{'/'.join(names)}"
        if whole.endswith(self._endings):
            return True
        if self._deep_begin.isdisjoint(names):
            return False
        return any(folder in f"{whole}/" for folder in self._deep_folders)

    def below(self, path: str) -> str:
        """Such a file that could lie below the path, relative to it; empty when none could."""
        names = [_plain(name) for name in path.replace("\\", "/").split("/")]
        tails = ("/".join(names[start:]) for start in range(len(names)))
        return next((found for tail in tails if (found := self._above.get(tail))), "")


@cache
def _obeyed(who: str = "") -> ObeyedFiles:
    rows = read_table(__file__, "obeyed_files.tsv", 5)
    return ObeyedFiles(name for name, restorer, *_ in rows if who in ("", restorer))


def is_protected(path: str) -> bool:
    """True when programs obey the file at this path (with forward slashes): writing it asks."""
    return _obeyed().hold(path)


def protected_below(path: str) -> str:
    """A protected file that a folder at this path could hold, relative to it; empty when none.

    A link there would give another folder, in which nothing is protected, that name.
    """
    return _obeyed().below(path)


def is_changed_by_hand(path: str) -> bool:
    """True when not even a rewind writes it: a program runs what stands in it before the user sees
    it.
    """
    return _obeyed("hand").hold(path)


_RECORDS = frozenset(
    {
        *("objects", "refs", "logs", "index", "HEAD", "packed-refs", "shallow", "lfs", "rr-cache"),
        "reftable",
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


# What git leaves between two commands (`BISECT_TERMS`, `MERGE_AUTOSTASH`), and the other half of a
# split index.  With an underscore: where the case of names does not count, CONFIG is `config`.
_STATE = r"[A-Z]+(?:_[A-Z]+)+|sharedindex\.[0-9a-f]{40,64}"


def is_git_record(path: str) -> bool:
    """True when git keeps its own records there: commits, branches, the index.  No program is run
    for what stands in them.

    Hooks, settings and attributes are none; what lies in a `.git` and is not known is none either.
    """
    names = path.split("/")
    if ".git" not in names:
        return False
    inside = names[names.index(".git") + 1 :]
    while len(inside) > 2 and inside[0] in ("worktrees", "modules"):
        inside = inside[2:]  # each of them is laid out like the whole
    if not inside:
        return False
    # git writes a file under its name with `.lock` and renames it.
    first = inside[0].removesuffix(".lock")
    if first in _RECORDS or re.fullmatch(_STATE, first):
        return True
    return inside[:2] == ["info", "refs"] and len(inside) == 2


def _plain(name: str) -> str:
    if name.isascii():
        # Nearly every name; it has one form only, and no character without width.
        return name.lower().rstrip(". ")
    import unicodedata  # few names need it, and it costs start-up time

    # What file systems take for the same name: HFS+ and APFS ignore case and Unicode forms, HFS+
    # also characters of no width (git's CVE-2014-9390), and Windows drops dots and spaces at the
    # end.
    name = unicodedata.normalize("NFKC", name).casefold().rstrip(". ")
    return "".join(letter for letter in name if unicodedata.category(letter) != "Cf")
