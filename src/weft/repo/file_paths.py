"""File listing: the paths of a project's files as one value.

They are held as one text: a hundred thousand objects would cost more than the listing itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator


class FileListing:
    """The paths of a project's files, relative to it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        """`text` has a NUL behind each path."""
        self._text = text

    @classmethod
    def of(cls, paths: Iterable[str]) -> FileListing:
        """A listing of these paths."""
        return cls("".join(f"{path}\0" for path in paths))

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
