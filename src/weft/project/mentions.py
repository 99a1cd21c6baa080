"""File mentions: `@path` in a message attaches that file, the same way at every edge.

- **A mention is a file or it is text.**  `@alice`, `@types/node` and `@/components/x` name nothing
  and stay text; the text itself is never changed.  Only a word that is nothing but a path
  (`@notes.md`) must be there: its user meant a file.  Inside other words, what only looks like a
  path is named to the user, and the message goes out.
- **Lines.**  `@calc.py:10-20` attaches these lines, `@calc.py:10` one, where no file has that name.
- **Outside asks.**  What lies outside the project and the folders added to it is read only after
  the user allowed it; where there is no user to ask, the message is refused.  The real path
  decides, with every link followed, and it is what the user is shown.
- **Content decides.**  An image is known by its magic bytes, text by its bytes; a name is a claim.
  A PDF comes twice, as itself and as its text: which of the two a model is sent depends on it.
- **Attached whole or refused.**  What is there and cannot be attached (a pipe, a device, too
  large, neither text nor image) refuses the message with one sentence, before anything is sent.
  A folder does not: `@src` is how users say where to look, so the model learns what it is.
"""

from __future__ import annotations

import base64
import os
import re
import shlex
import stat
from collections.abc import Awaitable, Callable, Iterable
from itertools import islice
from typing import Final, NamedTuple, TypeAlias

import anyio.to_thread

from weft.errors import ToolError, UsageError
from weft.messages import (
    IMAGE_NAMES,
    MAX_IMAGE_BYTES,
    File,
    Image,
    Text,
    image_info,
)
from weft.permissions import PolicyDecision
from weft.project.masked_text import masked_in_pieces
from weft.redact import Redactor
from weft.tools.pdf import MAX_PDF_FILE, document_parts
from weft.tools.pictures import MAX_PICTURE_FILE, PictureProblem, fitted
from weft.tools.text import decode, is_binary, is_pdf
from weft.workspace import FileState, LocalRunner, Workspace
from weft.workspace.os_errors import kind_of

MOST_FILES: Final = 20
"""Files that one message attaches."""
MOST_NAMES: Final = 1_000
"""Names of one message that are looked for on the disk; those behind them stay text."""
LARGEST_TEXT: Final = 1024 * 1024
LARGEST_TOGETHER: Final = 10 * 1024 * 1024
"""Bytes of all files that one message attaches."""

_LETTER: Final = r"[^\s\"'`,;()<>\[\]{}"
MENTION: Final = rf"(?<![\w@/.])@(\"[^\"\n]+\"|{_LETTER}@]{_LETTER}]*)"
_mention: Final = re.compile(MENTION)
_lines_of: Final = re.compile(r"(.+):([0-9]{1,9})(?:-([0-9]{1,9}))?")
_suffix: Final = re.compile(r".*[^./]\.[A-Za-z][A-Za-z0-9]{0,4}")
_SENTENCE_END: Final = ".,:;!?"
_LONGEST_PATH: Final = 4096

Parts: TypeAlias = tuple[Text | Image | File, ...]
AskRead: TypeAlias = Callable[[str], Awaitable[bool]]
"""Asks the user whether the file at this real path may be read."""
JudgeRead: TypeAlias = Callable[[str], PolicyDecision]
TellMissing: TypeAlias = Callable[[tuple[str, ...]], None]
"""Takes the names that look like paths, and of which there is no file."""


class _Located(NamedTuple):
    """Something that is there."""

    name: str
    """As the message names it, without lines and without the end of a sentence."""
    said: str
    """As the message names it, letter by letter."""
    real: str
    """Absolute, with every link followed."""
    mode: int
    lines: tuple[int, int] | None = None
    """The first and the last line that are meant, from 1; None for the whole file."""


def mentions_in(text: str) -> tuple[str, ...]:
    """The paths that a text names with `@`, each once, in order; pure, so they need not be there.

    A path with spaces stands in quotes: `@"my notes.md"`.  An address (`a@b.org`) names nothing.
    """
    return tuple(dict.fromkeys(match.group(1).strip('"') for match in _mention.finditer(text)))


class MentionReader:
    """Reads the files that messages name; one for a workspace and the user who is asked."""

    def __init__(
        self,
        workspace: Workspace,
        *,
        redact: Redactor,
        home: str = "",
        ask: AskRead | None = None,
        judge: JudgeRead = lambda path: PolicyDecision("allow"),
    ) -> None:
        """`home` is what `~` means; without `ask`, what lies outside is refused.

        `judge` says what the rules about reading say of an absolute path.
        """
        self._workspace = workspace
        self._home = home
        self._redact = redact
        self._ask = ask
        self._judge = judge

    async def attached(self, words: Iterable[str], *, missing: TellMissing | None = None) -> Parts:
        """The files that these words name: the arguments of a command line, or a whole message.

        `missing` is called once, where names among other words look like paths of no file.

        Raises:
            UsageError: one may not be read or cannot be attached, or a word is the path of no file.
        """
        given = [word.strip() for word in words]
        found, missed = await anyio.to_thread.run_sync(self._locate_words, given)
        parts = await self._parts(found)
        if missed and missing is not None:
            missing(missed)
        return parts

    async def named(self, names: Iterable[str], *, missing: TellMissing | None = None) -> Parts:
        """The files of these names, which stand without their `@`; a name of no file gives nothing.

        `missing` is called once, where some of them look like paths of no file.

        Raises:
            UsageError: one may not be read, or cannot be attached.
        """
        given = list(names)
        found, missed = await anyio.to_thread.run_sync(self._locate_names, given, given)
        parts = await self._parts(found)
        if missed and missing is not None:
            missing(missed)
        return parts

    async def images(self, paths: Iterable[str]) -> tuple[Image | File, ...]:
        """The images and PDFs at these absolute paths.

        Nothing is asked, wherever they lie: unlike a mention, which may come out of a pasted text
        or a project's command file, such a path is an argument that the user gave for this very
        purpose.

        Raises:
            UsageError: one is neither, or cannot be read.
        """
        found: list[Image | File] = []
        for number, path in enumerate(paths):
            if number == MOST_FILES:
                raise UsageError(f"a message takes at most {MOST_FILES} images")
            located = await anyio.to_thread.run_sync(self._locate, path)
            if located is None:
                raise UsageError(f"there is no file {path!r}")
            if stat.S_ISDIR(located.mode):
                raise UsageError(f"{path!r} is a folder, not an image")
            found += await self._picked(await self._read(located), path)
        return tuple(found)

    async def content(self, path: str) -> tuple[FileState, tuple[Image | File, ...]]:
        """A file that a program asks for, under the rules of a mention: as it was read, and as what
        may be shown of it.

        Raises:
            UsageError: it may not be read, or is neither text, an image nor a PDF.
        """
        located = await anyio.to_thread.run_sync(self._meant, path)
        await self._check_allowed(located)
        state = await self._read(located)
        return state, await self._file_parts(state, path, None)

    async def allowed_name(self, path: str) -> str:
        """What a path means, by its letters alone, as the workspace names it: for a file that is
        not read from the disk.

        Raises:
            UsageError: it may not be read, or no file has such a name.
        """
        if len(path) > _LONGEST_PATH:
            raise UsageError(f"there is no file {path[:60]!r}…: the name is too long")
        try:
            name = self._workspace.relative(self._at_home(path))
        except ToolError as error:
            raise UsageError(str(error)) from error
        if name == ".":
            raise UsageError(f"{path!r} is a folder, not a file")
        absolute = name if name.startswith("/") else f"{self._workspace.root}/{name}"
        await self._check_allowed(_Located(path, path, absolute, 0))
        return name

    async def shown(self, state: FileState, path: str) -> tuple[Image | File, ...]:
        """What may be shown of a file that was read elsewhere.

        Raises:
            UsageError: it is neither text, an image nor a PDF.
        """
        return await self._file_parts(state, path, None)

    def _meant(self, path: str) -> _Located:
        found = self._located_at(path, path)
        if path and (not path.strip("./") or (found is not None and stat.S_ISDIR(found.mode))):
            raise UsageError(f"{path!r} is a folder, not a file")
        if found is not None:
            return found
        raise UsageError(f"there is no file {path!r}")

    async def _check_allowed(self, located: _Located) -> None:
        """Refuse a file that may not be read, or not without asking."""
        decision = self._judge(located.real)
        try:
            is_outside = self._workspace.is_outside(located.real)
        except ToolError as error:  # it is no path at all
            raise UsageError(f"there is no file {located.name!r}") from error
        if decision.verdict == "allow" and not is_outside:
            return
        if decision.verdict != "deny" and self._ask is not None:
            if await self._ask(located.real):
                return
            raise UsageError(f"reading {located.real!r} was not allowed")
        why = decision.reason if decision.verdict != "allow" else "it is outside the project"
        raise UsageError(f"{located.name!r} is not read: {why}")

    async def _picked(self, state: FileState, path: str) -> tuple[Image | File, ...]:
        name = os.path.basename(path)
        if is_pdf(state.data):
            return await self._document(state, path, name)
        image = await _image(state, path, name)
        if image is None:
            raise UsageError(
                f"{path!r} is not an image that models take; those are {IMAGE_NAMES}; "
                "a PDF is taken, too"
            )
        return (image,)

    # -- locating: on a thread, for a network disk may take its time

    def _locate_words(self, words: list[str]) -> tuple[list[_Located], tuple[str, ...]]:
        """What is there, and the names that look like paths of nothing."""
        found: list[_Located] = []
        texts: list[str] = []
        for word in words:
            # An argument of the command line may be a path with spaces, which no search in a text
            # could tell from words; so each word is tried as a whole first.
            whole = word[1:].strip('"') if len(word) > 1 and word[0] == "@" else ""
            located = self._locate(whole)
            if located is not None:
                found.append(located)
            elif whole and _is_path(whole):
                raise UsageError(f"there is no file {whole!r} (from {word!r})")
            else:
                texts.append(word)
        names = [name for text in texts for name in mentions_in(text)]
        meant = [name for text in texts for name in _meant_as_files(text)]
        named, missed = self._locate_names(names, meant)
        return [*found, *named], missed

    def _locate_names(
        self, names: list[str], meant: list[str]
    ) -> tuple[list[_Located], tuple[str, ...]]:
        """The same of names; only of those that are `meant` as files it is said that one is
        missing.
        """
        named = self._locate_all(names)
        there = {each.said for each in named}
        looked_for = islice(dict.fromkeys(meant), MOST_NAMES)
        missed = [name for name in looked_for if name not in there and self._is_missed(name)]
        return named, tuple(name.rstrip(_SENTENCE_END) for name in missed)

    def _is_missed(self, name: str) -> bool:
        """True for what only a path looks like.  `@types/node` is a package and `@/views/x.vue` an
        alias of one, unless there is such a folder.
        """
        path = _without_lines(name.rstrip(_SENTENCE_END))
        place = path.find("/", 1)
        is_under = place > 0 and self._locate(path[:place]) is not None
        return is_under or (not path.startswith("/") and _suffix.fullmatch(path) is not None)

    def _locate_all(self, names: list[str]) -> list[_Located]:
        # Bounded: a pasted log can hold a hundred thousand `@` signs, and each is a look at the
        # disk.
        each = map(self._locate, islice(dict.fromkeys(names), MOST_NAMES))
        return [located for located in each if located is not None]

    def _locate(self, name: str) -> _Located | None:
        """What a name means; None where nothing is.  It is only looked at, not opened."""
        # A sentence may end right behind the name.
        candidates = list(dict.fromkeys((name, name.rstrip(_SENTENCE_END))))
        for candidate in candidates:
            if (found := self._located_at(candidate, name)) is not None:
                return found
        # Last: a file whose own name ends in `:12` is that file.
        for candidate in candidates:
            if (match := _lines_of.fullmatch(candidate)) is not None:
                path, first, last = match.groups()
                if (found := self._located_at(path, name)) is not None:
                    return found._replace(lines=(int(first), int(last or first)))
        return None

    def _located_at(self, path: str, said: str) -> _Located | None:
        # `@.` is the end of a sentence, not the project.  No path is longer than the system's
        # limit, and to resolve one part by part is quadratic in its length.
        if not path.strip("./") or len(path) > _LONGEST_PATH:
            return None
        try:
            real = os.path.realpath(os.path.join(self._workspace.root, self._at_home(path)))
            # Refuses what is no path at all (NUL bytes, half characters): that stays text.
            self._workspace.is_outside(real)
            return _Located(path, said, real, os.lstat(real).st_mode)
        except (OSError, ValueError, ToolError):
            return None

    def _at_home(self, name: str) -> str:
        return f"{self._home}{name[1:]}" if self._home and name.startswith("~/") else name

    # -- judging and reading

    async def _parts(self, located: list[_Located]) -> Parts:
        found: dict[tuple[str, tuple[int, int] | None], _Located] = {}
        for each in located:
            # By real path: one file under two names is attached once.
            found.setdefault((each.real, each.lines), each)
        states: dict[str, FileState] = {}
        parts: list[Text | Image | File] = []
        files = 0
        room = LARGEST_TOGETHER
        for each in found.values():
            if stat.S_ISDIR(each.mode):
                parts.append(_folder_note(each.name.rstrip("/")))
                continue
            files += 1
            if files > MOST_FILES:
                raise UsageError(f"a message attaches at most {MOST_FILES} files; {_LET_IT_READ}")
            # Asked about once, however many of its parts are named.
            if each.real not in states:
                states[each.real] = await self._allowed(each)
            state = states[each.real]
            found_parts = await self._file_parts(state, each.name, each.lines)
            parts += found_parts
            # Of a picture, what is sent: it may have been shrunk.  Of a text, the size on disk.
            first = found_parts[0]
            room -= len(first.data) if isinstance(first, Image) else state.size
            if room < 0:
                size = LARGEST_TOGETHER // 1024**2
                raise UsageError(f"a message attaches at most {size} MB of files; {_LET_IT_READ}")
        return tuple(parts)

    async def _allowed(self, located: _Located) -> FileState:
        """The content of a file, after the user allowed it where that is needed."""
        # Before the question: what cannot be read anyhow is not worth one.
        _check_kind(located)
        await self._refuse_by_rule(located)
        if self._workspace.is_outside(located.real):
            if self._ask is None:
                folder = shlex.quote(os.path.dirname(located.real))
                raise UsageError(
                    f"{located.real!r} is outside the project; "
                    f"add its folder with --add-dir {folder} if it is to be read"
                )
            if not await self._ask(located.real):
                raise UsageError(f"reading {located.real!r} was not allowed; nothing was sent")
        return await self._read(located)

    async def _refuse_by_rule(self, located: _Located) -> None:
        decision = self._judge(located.real)
        if decision.verdict == "allow":
            return
        if decision.verdict == "ask" and self._ask is not None and await self._ask(located.real):
            return
        raise UsageError(f"{located.name!r} is not attached: {decision.reason}; nothing was sent")

    async def _read(self, located: _Located) -> FileState:
        _check_kind(located)
        try:
            state = await self._workspace.peek(located.real, limit=MAX_IMAGE_BYTES + 1)
            # Only a picture or a PDF is worth more: where those are shrunk or sent, a text of that
            # size is refused.
            if state is not None and state.truncated and image_info(state.data):
                state = await self._workspace.peek(located.real, limit=MAX_PICTURE_FILE)
            elif state is not None and state.truncated and is_pdf(state.data):
                state = await self._workspace.peek(located.real, limit=MAX_PDF_FILE)
        except ToolError as error:
            raise UsageError(str(error)) from error
        # The workspace follows a link that was put there meanwhile, and says what it came to: that
        # is another file than the one that was judged, and perhaps allowed.
        if state is None or state.path != self._workspace.relative(located.real):
            raise UsageError(f"{located.name!r} changed while it was being read; try again")
        return state

    async def _file_parts(
        self, state: FileState, name: str, lines: tuple[int, int] | None
    ) -> tuple[Image | File, ...]:
        if is_pdf(state.data):
            return await self._document(state, name, state.path)
        image = await _image(state, name, state.path)
        if image is not None:
            return (image,)
        if state.size > LARGEST_TEXT:
            raise UsageError(
                f"{name!r} is larger than {LARGEST_TEXT // 1024**2} MB; {_LET_IT_READ}"
            )
        # The file tools' own decoding, so that what is attached and what `read` shows agree.
        text = decode(state.data)
        if text is None:
            raise UsageError(
                f"{name!r} is neither text nor an image that models take ({IMAGE_NAMES}), nor a PDF"
            )
        masked = await masked_in_pieces(self._redact, text.text)
        if lines is None:
            return (File(name=state.path, text=masked),)
        # Masked before it is cut: a cut through a key of several lines would hide what it is.
        if masked.count("\n") != text.text.count("\n"):
            raise UsageError(
                f"lines of {name!r} cannot be attached, because a secret in it covers several; "
                f"{_LET_IT_READ}"
            )
        return (_cut_lines(state.path, masked, lines),)

    async def _document(self, state: FileState, name: str, shown: str) -> tuple[Image | File, ...]:
        """A PDF as itself, where any vendor takes it, and as its text, where it has one.

        Only as its text where that holds secrets: in the document they cannot be masked.
        """
        if state.truncated:
            size = MAX_PDF_FILE // 1024**2
            raise UsageError(f"{name!r} cannot be attached: it is larger than {size} MB")
        try:
            parts = await document_parts(state.data, shown, runner=LocalRunner())
        except ToolError as error:
            raise UsageError(f"{error}; nothing was sent") from error
        for part in parts:
            if isinstance(part, File):
                text = await masked_in_pieces(self._redact, part.text)
                if text != part.text:
                    # Not of the type of a document: such a text is left out of a request that
                    # shows a document of the same name.
                    return (File(name=part.name, text=text),)
        return parts


_LET_IT_READ: Final = "name it without the @, and the model reads the parts that it needs"


def _cut_lines(path: str, text: str, lines: tuple[int, int]) -> File:
    """Some lines of a file, with their numbers in its name."""
    all_lines = text.split("\n")
    if not all_lines[-1]:
        del all_lines[-1]
    first, last = lines
    if not 1 <= first <= min(last, len(all_lines)):
        asked = f"{first}-{last}" if last != first else f"{first}"
        raise UsageError(
            f"{path!r} has lines 1-{len(all_lines)}, not {asked}; nothing was sent"
            if all_lines
            else f"{path!r} is empty and has no line {asked}; nothing was sent"
        )
    last = min(last, len(all_lines))
    said = f"lines {first}-{last}" if last != first else f"line {first}"
    return File(name=f"{path} ({said})", text="\n".join(all_lines[first - 1 : last]) + "\n")


def _without_lines(name: str) -> str:
    match = _lines_of.fullmatch(name)
    return match.group(1) if match is not None else name


def _meant_as_files(text: str) -> Iterable[str]:
    """The names of a text without those that are a decorator of pasted code, such as `@app.get(`
    or a line that holds nothing else.
    """
    for match in _mention.finditer(text):
        starts_line = not text[text.rfind("\n", 0, match.start()) + 1 : match.start()].strip()
        ends_line = text[match.end() : match.end() + 1] in ("", "\n", "\r")
        if text[match.end() : match.end() + 1] != "(" and not (starts_line and ends_line):
            yield match.group(1).strip('"')


def _is_path(name: str) -> bool:
    """True for what only a path looks like; `@alice` may be anything."""
    return not any(letter.isspace() for letter in name) and ("/" in name or "." in name)


def _check_kind(located: _Located) -> None:
    """Refuse what must not even be opened: a device may act on it, a pipe may wait for ever."""
    if stat.S_ISLNK(located.mode):
        raise UsageError(f"{located.name!r} is a symbolic link that cannot be followed")
    if not stat.S_ISREG(located.mode):
        raise UsageError(f"{located.name!r} is {kind_of(located.mode)}, not a regular file")


async def _image(state: FileState, name: str, shown: str) -> Image | None:
    """The image that a file holds; None when it holds none."""
    if image_info(state.data) is None or not is_binary(state.data):
        return None
    if state.truncated:
        size = MAX_PICTURE_FILE // 1024**2
        raise UsageError(f"{name!r} cannot be attached: it is larger than {size} MB")
    found = await fitted(state.data)
    if isinstance(found, PictureProblem):
        raise UsageError(f"{name!r} cannot be attached: it {found.text}")
    data = base64.b64encode(found.data).decode()
    return Image(media_type=found.info.media_type, data=data, name=shown)


def _folder_note(name: str) -> Text:
    return Text(
        text=f"\n[{name} is a folder, so nothing of it is attached; list it with your tools.]"
    )
