"""The paths of a project's files: the listing of all of them, and what is left out of it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from weft.workspace import IgnoreFile, IgnoreRules

GIT_IGNORE: Final = ".gitignore"
OWN_IGNORE: Final = ".weftignore"
IGNORE_FILES: Final = frozenset({GIT_IGNORE, OWN_IGNORE})


class FileListing:
    """The paths of a project's files, relative to it.

    Held as one text: a hundred thousand objects would cost more than the listing itself.
    """

    __slots__ = ("_text", "closed")

    def __init__(self, text: str, closed: Iterable[str] = ()) -> None:
        """`text` has a NUL behind each path."""
        self._text = text
        self.closed = tuple(closed)
        """Folders that may not be looked into."""

    @classmethod
    def of(cls, paths: Iterable[str], closed: Iterable[str] = ()) -> FileListing:
        """A listing of these paths."""
        return cls("".join(f"{path}\0" for path in paths), closed)

    def __len__(self) -> int:
        return self._text.count("\0")

    def __iter__(self) -> Iterator[str]:
        return iter(self.paths())

    @property
    def text(self) -> str:
        """All paths, with a NUL behind each."""
        return self._text

    def paths(self) -> list[str]:
        """All paths."""
        return self._text.split("\0")[:-1]


class PlainFolders:
    """Which folders of a project are reached through no symbolic link.

    Git names the files of a folder that a link has taken the place of as long as it tracks them.
    """

    def __init__(self, project: str) -> None:
        self._project = project
        self._verdicts: dict[str, bool] = {"": True}

    def hold(self, path: str) -> bool:
        """Whether the folder of a file is one; a look at the disk for each folder, once."""
        waiting: list[str] = []
        folder = path.rpartition("/")[0]
        while folder not in self._verdicts:
            waiting.append(folder)
            folder = folder.rpartition("/")[0]
        is_plain = self._verdicts[folder]
        for each in reversed(waiting):
            is_plain = is_plain and _is_folder(f"{self._project}/{each}")
            self._verdicts[each] = is_plain
        return is_plain


def _is_folder(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return False


class IgnoredPaths:
    """What the ignore files of a project leave out, as far as they lie in it or above it.

    Reads them when they are first needed; after a change of one, make another.
    """

    def __init__(self, project: str) -> None:
        self._project = project
        self._rules: dict[str, IgnoreRules] = {}
        self._own: dict[str, IgnoreFile] = {}
        self._verdicts: dict[str, bool] = {}

    def holds(self, path: str, *, is_folder: bool) -> bool:
        """Whether a path, or a folder that it lies in, is left out."""
        *folders, name = path.split("/")
        folder, rules = "", self._root()
        for each in folders:
            inner = f"{folder}/{each}" if folder else each
            if inner not in self._verdicts:
                self._verdicts[inner] = self._judge(inner, rules, each, is_folder=True)
            if self._verdicts[inner]:
                return True
            if inner not in self._rules:
                self._read(inner, rules.below(each, f"{self._project}/{inner}"))
            folder, rules = inner, self._rules[inner]
        return self._judge(path, rules, name, is_folder=is_folder)

    def _judge(self, path: str, rules: IgnoreRules, name: str, *, is_folder: bool) -> bool:
        return rules.ignores(name, is_folder=is_folder) or (
            bool(self._own) and is_left_out(path, self._own, is_folder=is_folder)
        )

    def _root(self) -> IgnoreRules:
        if "" not in self._rules:
            from weft.workspace import ignore_of  # most answers need no rules

            self._read("", ignore_of(self._project))
        return self._rules[""]

    def _read(self, folder: str, rules: IgnoreRules) -> None:
        from weft.workspace import read_ignore_file

        self._rules[folder] = rules
        place = f"{folder}/" if folder else ""
        if (own := read_ignore_file(f"{self._project}/{place}{OWN_IGNORE}")) is not None:
            self._own[place] = own


def is_left_out(path: str, own: Mapping[str, IgnoreFile], *, is_folder: bool) -> bool:
    """What the `.weftignore` files say of a path whose folder they do not leave out.

    `own` has them by their folders, which end with a slash.
    """
    below = path.rfind("/") + 1
    end = below
    # The nearest file that has something to say decides.
    while True:
        if (rules := own.get(path[:end])) is not None:
            verdict = rules.judge(path[end:below], path[below:], is_folder=is_folder)
            if verdict is not None:
                return verdict
        if end == 0:
            return False
        end = path.rfind("/", 0, end - 1) + 1
