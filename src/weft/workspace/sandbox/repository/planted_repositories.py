"""Repositories that a command plants under another name than `.git`.

`git init --bare` and `git clone --bare` have to work, so what git writes by itself is let through:
settings that name nothing, samples of hooks.  Anything else that git would obey stays out, and so
does what would make a repository of a folder that holds such files already.

Everything here blocks, and only looks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Final

from weft.workspace.bare_repositories import OBEYED, is_repository, parts_of_repositories
from weft.workspace.git_repository import LARGEST_SMALL, read_small
from weft.workspace.git_settings import only_plain
from weft.workspace.sandbox.overlay_plan import ApplyStep

_SAMPLE: Final = re.compile(r"[a-z-]{1,64}\.sample")
# What only bare repositories have; to the rest the rules of other new ones apply.
_BARE: Final = re.compile(rb"^\tbare = true$", re.MULTILINE)
_MIRROR: Final = re.compile(rb"^\t(?:mirror = true|fetch = \+refs/\*:refs/\*)\n", re.MULTILINE)


def planted(root: str, upper: str, steps: Sequence[ApplyStep]) -> set[str]:
    """The paths that may not be put into the project; none costs a look at names."""
    found = [
        (step, folder, part)
        for step in steps
        if step.do in ("put", "make")
        for folder, part in parts_of_repositories(step.path)
    ]
    return _Planted(root, upper, steps).among(found) if found else set()


class _Planted:
    def __init__(self, root: str, upper: str, steps: Sequence[ApplyStep]) -> None:
        self._root, self._upper = root, upper
        self._made: set[str] = set()
        for step in steps:
            if step.do in ("put", "make"):
                path = step.path
                while path and path not in self._made:
                    self._made.add(path)
                    path = path.rpartition("/")[0]
        self._known: dict[str, tuple[bool, bool]] = {}

    def among(self, found: Sequence[tuple[ApplyStep, str, str]]) -> set[str]:
        """Those of some steps, with folder and part, that are to stay out."""
        return {step.path for step, folder, part in found if self._is_obeyed(step, folder, part)}

    def _is_obeyed(self, step: ApplyStep, folder: str, part: str) -> bool:
        will_be, is_dangerous = self._about(folder)
        if not will_be:
            return False
        if part not in OBEYED:
            return is_dangerous
        if step.after is not None and step.after.kind == "link":
            return True
        if part == "hooks":
            return step.do == "put" and not _SAMPLE.fullmatch(os.path.basename(step.path))
        return part == "commondir" or not self._is_plain(step.path, folder)

    def _about(self, folder: str) -> tuple[bool, bool]:
        """Whether a folder will be a repository, and whether that would make git obey what lies
        there already.
        """
        if folder not in self._known:
            will_be = is_repository(folder, self._will_exist)
            is_new = will_be and not is_repository(folder, self._exists)
            self._known[folder] = (will_be, is_new and self._has_traps(folder))
        return self._known[folder]

    def _exists(self, path: str) -> bool:
        return os.path.lexists(f"{self._root}/{path}")

    def _will_exist(self, path: str) -> bool:
        # What the command removed counts as there: better one repository too many.
        return path in self._made or self._exists(path)

    def _has_traps(self, folder: str) -> bool:
        """True when a folder holds settings or hooks that no git wrote, from before."""
        here = f"{self._root}/{folder}"
        for name in ("config", "config.worktree"):
            if os.path.lexists(f"{here}/{name}") and not self._is_first(
                read_small(f"{here}/{name}")
            ):
                return True
        hooks = f"{here}/hooks"
        if os.path.islink(hooks):
            return True
        names = os.listdir(hooks) if os.path.isdir(hooks) else []
        return any(not _SAMPLE.fullmatch(name) for name in names)

    def _is_plain(self, path: str, folder: str) -> bool:
        after = read_small(f"{self._upper}/{path}")
        if not self._exists(path):
            return self._is_first(after)
        before = read_small(f"{self._root}/{path}")
        if before is None or after is None or max(len(before), len(after)) >= LARGEST_SMALL:
            return False  # what was not read may say anything
        return only_plain(before, after) or (
            not is_repository(folder, self._exists) and self._is_first(after)
        )

    def _is_first(self, data: bytes | None) -> bool:
        """True for settings of a new bare repository, which may say where it was cloned from."""
        if data is None or len(data) >= LARGEST_SMALL:
            return False
        text = _MIRROR.sub(b"", _BARE.sub(b"\tbare = false", data))
        return only_plain(b"", text, self._is_within)

    def _is_within(self, path: str) -> bool:
        real = os.path.realpath(self._root)
        return f"{os.path.realpath(path)}/".startswith(f"{real}/")
