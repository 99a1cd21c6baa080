"""What git writes when it sets up a repository, a work tree or a sparse checkout.

Programs obey these files, so a command may not write them; but `git init`, `git clone`, `git
worktree add` and `git sparse-checkout` have to.  What is let through is known by its place and its
content: settings that name nothing, where a new repository came from, samples of hooks, which git
never runs, and pointers from a work tree to the repository that it belongs to and back.  Anything
else is left to the rule that forbids it.

Everything here blocks, and only looks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Final

from weft.workspace.git_repository import LARGEST_SMALL, read_small
from weft.workspace.git_settings import only_plain
from weft.workspace.sandbox.overlay_changes import is_gone
from weft.workspace.sandbox.overlay_plan import ApplyStep

_NAME: Final = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}"
_POINTER: Final = re.compile(rf"gitdir: (/[^\n\0]+)/\.git/worktrees/({_NAME})\n")
_SAMPLE: Final = re.compile(r"[a-z-]{1,64}\.sample")


class GitSetup:
    """What one command did to a project, as far as git set something up."""

    def __init__(self, root: str, upper: str) -> None:
        self._root = root
        self._upper = upper

    def is_gits_own(self, step: ApplyStep) -> bool:
        """True when a step in a git directory is what git does by itself, and harmless."""
        names = step.path.split("/")
        if ".git" not in names or (step.after is not None and step.after.kind == "link"):
            return False
        place = names.index(".git")
        top, inside = "/".join(names[:place]), names[place + 1 :]
        if not inside:
            return self._is_new_or_pointer(step, top)
        if inside[0] == "worktrees":
            return self._is_of_work_tree(step, inside[1:])
        if step.do == "make":
            return step.before is None and inside in (["hooks"], ["info"])
        return self._is_of_repository(step, inside)

    def _is_of_repository(self, step: ApplyStep, inside: Sequence[str]) -> bool:
        match inside:
            case ["config" | "config.worktree"]:
                return step.do == "put" and self._is_plain(step)
            case ["modules", *_, "config"]:
                # Every `git submodule update` writes the settings of a submodule again.
                return step.do == "put" and step.before is not None and self._is_plain(step)
            case ["info", "sparse-checkout" | "sparse-checkout.lock"]:
                return step.do in ("put", "remove")
            case ["info", "exclude"]:
                return step.do == "put" and step.before is None
            case ["hooks", name]:
                is_new = step.do == "put" and step.before is None
                return is_new and _SAMPLE.fullmatch(name) is not None
            case _:
                return False

    def _is_new_or_pointer(self, step: ApplyStep, top: str) -> bool:
        """True for the folder of a new repository, and for the pointer of a work tree."""
        if step.do == "make":
            return step.before is None and not os.path.lexists(f"{self._root}/{step.path}")
        if step.do == "put" and step.before is None:
            return self._leads_back(self._content(f"{self._upper}/{step.path}"), top)
        return step.do == "remove" and self.is_pointer(step.path)

    def is_pointer(self, path: str) -> bool:
        """True for the file `.git` of a work tree of a repository of the project."""
        here = f"{self._root}/{path}"
        if os.path.islink(here) or not os.path.isfile(here):
            return False
        found = _POINTER.fullmatch(self._content(here))
        return found is not None and self._is_within(found[1])

    def _leads_back(self, text: str, top: str) -> bool:
        """True for a pointer to records that point back to the same work tree."""
        found = _POINTER.fullmatch(text)
        if found is None or not self._is_within(found[1]):
            return False
        records = f"{found[1]}/.git/worktrees/{found[2]}"
        made = f"{self._upper}{records.removeprefix(self._root)}"
        if self._content(f"{made}/gitdir") != f"{self._root}/{top}/.git\n":
            return False
        if os.path.lexists(f"{made}/commondir"):
            return self._content(f"{made}/commondir") == "../..\n"
        # Records that were there belong to another work tree, unless that one was moved here.
        return self._content(f"{records}/commondir") == "../..\n" and self._is_moved(records)

    def _is_moved(self, records: str) -> bool:
        """True when the work tree that records belonged to is no longer where it was."""
        was = self._content(f"{records}/gitdir").removesuffix("\n")
        inside = was.removeprefix(f"{self._root}/")
        return inside != was and is_gone(self._upper, inside)

    def _is_of_work_tree(self, step: ApplyStep, inside: Sequence[str]) -> bool:
        match inside:
            case [] | [_]:
                return step.do in ("make", "remove_folder")
            case [_, "commondir" | "gitdir" | "locked"] if step.do == "remove":
                return True
            case [_, "commondir"]:
                text = self._content(f"{self._upper}/{step.path}")
                return step.do == "put" and step.before is None and text == "../..\n"
            case [_, "gitdir"]:
                text = self._content(f"{self._upper}/{step.path}")
                is_whole = text.endswith("/.git\n") and "\n" not in text[:-1]
                is_free = step.before is None or self._is_moved(
                    os.path.dirname(f"{self._root}/{step.path}")
                )
                return step.do == "put" and is_whole and is_free and self._is_within(text[:-6])
            case [_, "locked"]:
                return step.do == "put" and step.before is None
            case [_, "config.worktree"]:
                return step.do == "put" and self._is_plain(step)
            case [_, "info"]:
                return step.do in ("make", "remove_folder")
            case [_, "info", "sparse-checkout" | "sparse-checkout.lock"]:
                return step.do in ("put", "remove")
            case _:
                return False

    def _is_plain(self, step: ApplyStep) -> bool:
        before: bytes | None = b""
        if step.before is not None:
            is_file = step.before.kind == "file"
            before = read_small(f"{self._root}/{step.path}") if is_file else None
        after = read_small(f"{self._upper}/{step.path}")
        if before is None or after is None or max(len(before), len(after)) >= LARGEST_SMALL:
            return False  # what was not read may say anything
        # A repository that was there does not get a remote: the user may push to it.
        is_new = not os.path.lexists(os.path.dirname(f"{self._root}/{step.path}"))
        return only_plain(before, after, self._may_clone if is_new else None)

    def _may_clone(self, path: str) -> bool:
        """True for a path in the project, as `git clone` writes it."""
        return self._is_within(path.removesuffix("/.").rstrip("/"))

    def _is_within(self, path: str) -> bool:
        """True for the project and a folder in it, by its plain name, with no link on the way."""
        if path != self._root and not path.startswith(f"{self._root}/"):
            return False
        return os.path.normpath(path) == path and os.path.realpath(path) in (
            path,
            f"{os.path.realpath(self._root)}{path.removeprefix(self._root)}",
        )

    @staticmethod
    def _content(path: str) -> str:
        return (read_small(path) or b"").decode(errors="replace")
