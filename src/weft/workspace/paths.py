"""Paths: what a written path means, without looking at the disk.

Everything is compared by whole parts, never by the beginning of a string: `/ws_evil` is not in
`/ws`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import msgspec

from weft.errors import FinalToolError


class WorkspacePath(msgspec.Struct, frozen=True):
    """A name below a folder that is open to the session, or below `/` when it lies outside them
    all.
    """

    folder: str
    """Absolute."""
    name: str
    """Relative, normal, without `..`; `.` is the folder itself."""
    outside: bool = False

    @property
    def absolute(self) -> str:
        """The whole path."""
        return self.folder if self.name == "." else f"{self.folder.rstrip('/')}/{self.name}"

    @property
    def parent(self) -> str:
        """Name of the folder that holds it."""
        return self.name.rpartition("/")[0] or "."

    @property
    def leaf(self) -> str:
        """Last part of the name."""
        return self.name.rpartition("/")[2]


class WorkspaceRoots:
    """The folders that a session may work in: the project first, then those added to it."""

    def __init__(self, root: str, added: Iterable[str] = ()) -> None:
        written = [os.path.abspath(folder) for folder in (root, *added)]
        real = [os.path.realpath(folder) for folder in written]
        self.root = real[0]
        # The deepest folder that fits wins.  A folder that was named through a link is known by
        # both names.
        self._known = sorted(
            zip((*real, *written), (*real, *real), strict=True), key=lambda pair: -len(pair[0])
        )

    def place(self, path: str) -> WorkspacePath:
        """Where `path`, as written, lies.

        Raises:
            FinalToolError: no path at all, or one that the system would misread.
        """
        _check(path)
        # POSIX gives two leading slashes a meaning of their own, and `normpath` keeps them: `//etc`
        # would be compared as another path than `/etc`.
        absolute = "/" + os.path.normpath(os.path.join(self.root, path)).lstrip("/")
        for known, folder in self._known:
            if absolute == known:
                return WorkspacePath(folder, ".")
            if absolute.startswith(known.rstrip("/") + "/"):
                return WorkspacePath(folder, absolute[len(known.rstrip("/")) + 1 :])
        return WorkspacePath("/", absolute[1:] or ".", outside=True)

    def shown(self, place: WorkspacePath) -> str:
        """Relative to the project; absolute when elsewhere."""
        return place.name if place.folder == self.root and not place.outside else place.absolute


def _check(path: str) -> None:
    if not path.strip():
        raise FinalToolError("the path is empty; name a file or folder, relative to the project")
    if "\0" in path:
        raise FinalToolError(f"the path {path!r} holds a NUL character; no file has such a name")
    try:
        # A name with lone surrogates comes from bytes that are no text; it could not be stored in
        # the log.
        path.encode()
    except UnicodeEncodeError:
        raise FinalToolError(f"the path {path!r} is not valid text") from None
    # A folder called `~` in the project would otherwise be made by a model that means the home
    # folder.
    if path == "~" or path.startswith("~/"):
        raise FinalToolError(
            f"{path!r} is not expanded; write the absolute path of the home folder"
        )
