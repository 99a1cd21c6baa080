"""Memory: what the user asked to be remembered, for every project and for one, in Markdown files.

The user's own file lies beside their `AGENTS.md`; that of a project lies with our data, under the
project's id, so that nothing appears in the repository and no repository can bring words of its own
that pass for the user's.  A repository has one memory, whichever of its folders or worktrees a
session works in.  People may write the files as they like: all of the text counts.  Secrets are
masked, and the text is bounded: it goes to the model with every request.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

import msgspec

from weft.config.paths import WeftPaths
from weft.config.project_ids import ProjectIds, repository_place
from weft.config.user_file import UserFile
from weft.errors import UsageError, did_you_mean
from weft.sha256 import sha256
from weft.workspace import printable_path, read_small_text, user_folder

MemoryScope: TypeAlias = Literal["user", "project"]
"""Whether something is remembered in every project of the user, or in one."""

SCOPES: Final = get_args(MemoryScope)
LIMIT: Final = 8 * 1024
"""Bytes of all that is remembered for a project, the user's own included, unless the settings say
otherwise.
"""
LARGEST_FILE: Final = 256 * 1024
LONGEST_NOTE: Final = 2_000
_SLACK: Final = 4 * 1024
"""Bytes that are read beyond the limit: a secret is masked before the text is cut."""
_TITLES: Final[dict[MemoryScope, str]] = {"user": "In every project", "project": "In this project"}
_ABOUT: Final = (
    "What the user asked you to remember, in earlier conversations. Follow it as if they had just "
    "said it; what they say now comes before it."
)


class MemoryNote(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is remembered."""

    id: str
    """Made from its text and scope, so that it stays when other notes are changed."""
    scope: MemoryScope
    text: str
    path: str
    """The file that it stands in."""


class MemoryText(msgspec.Struct, frozen=True):
    """What the model is given of the memory, and what is wrong with the rest."""

    text: str = ""
    problems: tuple[str, ...] = ()


class _MaskedFile(msgspec.Struct, frozen=True):
    path: str = ""
    data: bytes = b""
    is_cut: bool = False
    """Whether the file goes on behind it."""

    @property
    def size(self) -> int:
        return len(self.data)


class MemoryFiles:
    """The files with what is remembered."""

    def __init__(
        self, places: WeftPaths, redact: Callable[[str], str] = str, limit: int = LIMIT
    ) -> None:
        """`limit` are the bytes that models are given of it."""
        self._limit = limit
        self._places = places
        self._ids = ProjectIds(places.projects)
        self._redact = redact
        self._settled: set[str] = set()
        """Folders of which it is known whether they were moved here."""

    # -- where

    def path(self, project: str, scope: MemoryScope) -> Path | None:
        """The file of a scope, be it there or not; None for a project that has no id yet, and so
        no file.
        """
        if scope == "user":
            return self._places.user_memory
        root = memory_root(project)
        known = self._ids.written(root)
        if known is None and root not in self._settled:
            # Once: it looks at every project that is known.
            self._settled.add(root)
            known = self._ids.known(root)
        return None if known is None else self._places.memory / f"{known.id}.md"

    def _made_path(self, project: str, scope: MemoryScope, now: float) -> Path:
        path = self.path(project, scope)
        if path is not None:
            return path
        return self._places.memory / f"{self._ids.make(memory_root(project), now)}.md"

    # -- for the model

    def text(self, project: str) -> MemoryText:
        """What the model is to know of it: the user's own first, up to the limit.

        Half of it is the project's where that has so much to say: a file of the user's that grows
        without end must not silence it.
        """
        problems: list[str] = []
        found = {scope: self._masked(project, scope, problems) for scope in SCOPES}
        left = self._limit
        shares: dict[MemoryScope, int] = {"user": left - min(left // 2, found["project"].size)}
        parts: list[str] = []
        for scope in SCOPES:
            text, size = self._bounded(found[scope], shares.get(scope, left), problems)
            left -= size
            if text:
                parts.append(f"## {_TITLES[scope]}\n\n{text}")
        if not parts:
            return MemoryText(problems=tuple(problems))
        return MemoryText("\n\n".join(["# Memory", _ABOUT, *parts]), tuple(problems))

    def _masked(self, project: str, scope: MemoryScope, problems: list[str]) -> _MaskedFile:
        """What a file has for the model, with its secrets masked."""
        path = self.path(project, scope)
        if path is None or self._limit <= 0:
            return _MaskedFile()
        most = self._limit + _SLACK
        try:
            found = read_small_text(user_folder(path.parent), path.name, most, cut=True)
        except UsageError as error:
            problems.append(str(error))
            return _MaskedFile()
        if found is None or not _entries(found.text):
            return _MaskedFile()
        # Masked before it is cut: half of a key no longer looks like one and would get through.
        data = self._redact(found.text).strip().encode()
        return _MaskedFile(str(found.path), data, found.is_cut)

    def _bounded(self, found: _MaskedFile, left: int, problems: list[str]) -> tuple[str, int]:
        """The text of a file as far as there is room for it, and its size."""
        if found.size <= left and not found.is_cut:
            return found.data.decode(), found.size
        reason = f"the memory is limited to {self._limit // 1024} KiB"
        problems.append(f"{found.path}: only its beginning counts, because {reason}")
        # The limit is in bytes and may fall inside a character; "ignore" drops that half.
        kept = found.data[:left].decode("utf-8", "ignore")
        return f"{kept}\n\n[The rest is left out: {reason}.]", left

    # -- for the user

    def notes(self, project: str) -> list[MemoryNote]:
        """Everything that is remembered, the user's own first, in the order of the files.

        Raises:
            UsageError: a file is not to be read.
        """
        found: list[MemoryNote] = []
        for scope in SCOPES:
            path = self.path(project, scope)
            if path is not None:
                text = self._shown(self._file(path).read())
                found += [_note(each, scope, path) for each in _entries(text)]
        return found

    def add(self, project: str, text: str, scope: MemoryScope, now: float) -> MemoryNote:
        """Remember one thing more; it is there once, however often it is added.

        Raises:
            UsageError: it is empty or too long, there is no room for it, or the file cannot be
                changed.
        """
        said = self._checked(text, scope)
        path = self._made_path(project, scope, now)
        note = _note(said, scope, path)
        other = self._other_size(project, scope)
        heading = f"# Memory: {printable_path(_subject(project, scope))}\n"

        def added(before: str) -> str | None:
            if said in _entries(before):
                return None
            # Here, where the file is what it is replaced as: of two that add at once, the second
            # sees what the first has taken.
            self._check_room(before, said, other, path)
            body = before.rstrip() or heading.rstrip()
            gap = "\n" if _ends_with_item(body) else "\n\n"
            return f"{body}{gap}{_item(said)}\n"

        self._file(path).replace(added)
        return note

    def remove(self, project: str, note_id: str) -> MemoryNote:
        """Forget one thing; returns what it was.

        Raises:
            UsageError: there is none of this id, or the file cannot be changed.
        """
        found = self.notes(project)
        note = next((each for each in found if each.id == note_id), None)
        # The file may have lost it since the look above: then nothing is forgotten here.
        if note is None or not self._file(Path(note.path)).replace(
            lambda before: self._without(before, note)
        ):
            near = did_you_mean(note_id, [each.id for each in found if each is not note])
            raise UsageError(f"nothing with the id {note_id!r} is remembered{near}")
        return note

    def source(self, project: str, scope: MemoryScope) -> str:
        """The text of a file for an editor; a heading where there is none yet.

        Raises:
            UsageError: it is not to be read.
        """
        path = self.path(project, scope)
        text = self._file(path).read() if path is not None else ""
        return text or f"# Memory: {printable_path(_subject(project, scope))}\n\n"

    def rewrite(
        self, project: str, scope: MemoryScope, now: float, *, before: str, after: str
    ) -> Path | None:
        """Put in place what an editor has made of `before`; None where nothing was changed.

        What was remembered meanwhile is kept, and what was forgotten meanwhile stays so.

        Raises:
            UsageError: the file cannot be changed.
        """
        if after == before:
            return None
        path = self._made_path(project, scope, now)

        def merged(there: str) -> str:
            known, now = set(_entries(before)), _entries(there)
            new = [each for each in now if each not in known]
            kept = _dropped(after, known.difference(now)).rstrip()
            whole = "\n".join([kept, *map(_item, new)]) + "\n"
            return whole.replace("\r\n", "\n").replace("\n", "\r\n") if "\r\n" in after else whole

        self._file(path).replace(merged)
        return path

    def _shown(self, text: str) -> str:
        """A text of a file without secrets, and with a mark for what is not UTF-8."""
        return self._redact(text.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))

    def _file(self, path: Path) -> UserFile:
        return UserFile(path, LARGEST_FILE)

    def _checked(self, text: str, scope: str) -> str:
        if scope not in SCOPES:
            raise UsageError(f"no scope {scope!r}; there are {' and '.join(SCOPES)}")
        lines = [_printable(line).strip() for line in text.strip().splitlines()]
        said = self._redact("\n".join(filter(None, lines)).removeprefix("- "))
        if not said:
            raise UsageError("there is nothing to remember: the text is empty")
        if len(said) > LONGEST_NOTE:
            raise UsageError(
                f"that is too long to be remembered: {len(said):,} of at most {LONGEST_NOTE:,} "
                "characters; put it into AGENTS.md or a file that AGENTS.md names"
            )
        return said

    def _other_size(self, project: str, scope: MemoryScope) -> int:
        """Bytes of the file of the other scope; 0 where it cannot be read, as no model gets it."""
        paths = [self.path(project, each) for each in SCOPES if each != scope]
        try:
            return sum(_size(self._file(path).read()) for path in paths if path is not None)
        except UsageError:
            return 0

    def _check_room(self, text: str, said: str, other: int, path: Path) -> None:
        used = _size(text) + other
        if used + len(said.encode()) > self._limit:
            raise UsageError(
                f"the memory is full ({self._limit // 1024} KiB): forget something first, or "
                f"shorten {printable_path(str(path))}"
            )

    def _without(self, text: str, note: MemoryNote) -> str | None:
        lines = text.split("\n")
        for first, last in _spans(lines):
            # As in the list, where the note comes from.
            if _said(self._shown("\n".join(lines[first:last])).split("\n")) == note.text:
                return "\n".join(lines[:first] + lines[last:])
        return None


def memory_root(project: str) -> str:
    """The folder that has the memory of a project: the top of its repository."""
    return repository_place(project).root


def _subject(project: str, scope: MemoryScope) -> str:
    return "every project" if scope == "user" else memory_root(project)


# --- the form of the files ---------------------------------------------------------------


def _entries(text: str) -> list[str]:
    """What is remembered in a text: each item of a list, and each paragraph; headings are none."""
    lines = text.replace("\r\n", "\n").split("\n")
    return [_said(lines[first:last]) for first, last in _spans(lines)]


def _spans(lines: list[str]) -> list[tuple[int, int]]:
    """The first line of each entry, and the one behind its last."""
    found: list[tuple[int, int]] = []
    is_open = False
    for number, line in enumerate(lines):
        if not line.strip() or line.startswith("#"):
            is_open = False
        elif is_open and not line.startswith(("- ", "* ")):
            found[-1] = (found[-1][0], number + 1)
        else:
            found.append((number, number + 1))
            is_open = True
    return found


def _dropped(text: str, gone: Collection[str]) -> str:
    """The text without these entries."""
    lines = text.split("\n")
    for first, last in reversed(_spans(lines)):
        if _said(lines[first:last]) in gone:
            del lines[first:last]
    return "\n".join(lines)


def _said(lines: list[str]) -> str:
    first = lines[0][2:] if lines[0].startswith(("- ", "* ")) else lines[0]
    return "\n".join(line.strip() for line in [first, *lines[1:]])


def _item(text: str) -> str:
    return "- " + text.replace("\n", "\n  ")


def _ends_with_item(text: str) -> bool:
    spans = _spans(lines := text.split("\n"))
    return bool(spans) and spans[-1][1] == len(lines) and lines[spans[-1][0]][:2] in ("- ", "* ")


def _note(text: str, scope: MemoryScope, path: Path) -> MemoryNote:
    return MemoryNote(id=_id(text, scope), scope=scope, text=text, path=str(path))


def _id(text: str, scope: MemoryScope) -> str:
    # With the scope: the same may be remembered in both, and one of the two be forgotten.
    return sha256(f"{scope}\n{text}".encode("utf-8", "surrogateescape")).hexdigest()[:8]


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))


def _printable(line: str) -> str:
    return "".join(each if each.isprintable() else " " for each in line.expandtabs(4))
