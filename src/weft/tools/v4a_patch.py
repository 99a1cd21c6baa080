"""The V4A patch format, in which GPT models write their edits: parsed, and applied to a text.

Pure.  A patch names files and holds, for each that it changes, pieces of it: lines that stay, go
and come, without line numbers.  A piece is found by the lines that stay and go; `@@` lines before
it name a class or function behind which to look.  Where a piece fits in more than one place, it is
refused and not applied to the first: the model is asked for more context instead.

    *** Begin Patch
    *** Update File: src/a.py
    *** Move to: src/b.py
    @@ class Basket:
     def total(self):
    -    return 0
    +    return sum(self.prices)
    *** Add File: notes.txt
    +one line
    *** Delete File: old.txt
    *** End Patch
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, Literal

import msgspec

from weft.errors import FinalToolError
from weft.tools.text import line_end

_BEGIN: Final = "*** Begin Patch"
_END: Final = "*** End Patch"
_EOF: Final = "*** End of File"
_FILE: Final = re.compile(r"\*\*\* (Add|Update|Delete) File: *(.*?)\s*")
_MOVE: Final = re.compile(r"\*\*\* Move to: *(.*?)\s*")
_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\n|\r|$)")
_SHOWN: Final = 200
"""Characters of a line that an error repeats."""
# How alike lines have to be, the strictest first: models lose blanks at the ends of lines, and
# sometimes the indentation. What stays of a file keeps its own blanks in any case.
_VIEWS: Final[tuple[Callable[[str], str], ...]] = (str, str.rstrip, str.strip)


class PatchPiece(msgspec.Struct, frozen=True, kw_only=True):
    """Lines of a file that are changed together, with those around them."""

    headings: tuple[str, ...] = ()
    """Lines behind which it stands, the outermost first."""
    lines: tuple[tuple[Literal[" ", "-", "+"], str], ...] = ()
    is_at_end: bool = False
    """It is the end of the file."""

    @property
    def old(self) -> list[str]:
        """What the file must hold."""
        return [text for mark, text in self.lines if mark != "+"]


class PatchedFile(msgspec.Struct, frozen=True, kw_only=True):
    """What a patch does to one file."""

    action: Literal["add", "update", "delete"]
    path: str
    move_to: str = ""
    content: str = ""
    """Of a file that is added."""
    pieces: tuple[PatchPiece, ...] = ()


def parse_patch(text: str) -> tuple[PatchedFile, ...]:
    """The files of a patch, in its order.

    Raises:
        FinalToolError: it is no patch; the sentence names the line.
    """
    return _Parser(_body(text)).files()


def _body(text: str) -> list[tuple[int, str]]:
    """The numbered lines between begin and end.

    Models wrap a patch into a here-document or a code block, and forget its end.
    """
    # Only blanks behind a mark are let go: with one before it, it is a line of a file that stays.
    lines = list(enumerate(text.replace("\r\n", "\n").split("\n"), 1))
    marks = [at for at, (_, line) in enumerate(lines) if line.rstrip() == _BEGIN]
    if not marks:
        raise FinalToolError(f"the patch must begin with the line {_BEGIN!r}")
    body = lines[marks[0] + 1 :]
    for at, (_, line) in enumerate(body):
        if line.rstrip() == _END:
            _refuse_more(body[at + 1 :])
            return body[:at]
    raise FinalToolError(f"the patch must end with the line {_END!r}; it may have been cut off")


def _refuse_more(behind: list[tuple[int, str]]) -> None:
    """What is left of a second patch, or of one with its end in the middle, is not dropped: the
    first half alone would look like a success.
    """
    for number, line in behind:
        if line.rstrip() in (_BEGIN, _END) or _FILE.fullmatch(line):
            raise FinalToolError(
                f"line {number} of the patch stands behind {_END!r}; put all files into one patch, "
                f"with one such line at its end; it is {line[:_SHOWN]!r}"
            )


class _Parser:
    def __init__(self, lines: list[tuple[int, str]]) -> None:
        self._lines = lines
        self._at = 0

    def files(self) -> tuple[PatchedFile, ...]:
        found: list[PatchedFile] = []
        while (line := self._peek()) is not None:
            if not line.strip():
                self._at += 1
                continue
            head = _FILE.fullmatch(line)
            if head is None or not head[2]:
                wanted = "'*** Add File: ', '*** Update File: ' or '*** Delete File: ' and a path"
                raise self._wrong(f"should be {wanted}")
            self._at += 1
            found.append(self._file(head[1], head[2]))
        if not found:
            raise FinalToolError("the patch names no file")
        return tuple(found)

    def _file(self, what: str, path: str) -> PatchedFile:
        if what == "Delete":
            return PatchedFile(action="delete", path=path)
        if what == "Add":
            return PatchedFile(action="add", path=path, content=self._content())
        move = _MOVE.fullmatch(self._peek() or "")
        self._at += move is not None
        pieces = self._pieces()
        if not pieces and move is None:
            raise FinalToolError(f"the patch says nothing of what to change in {path!r}")
        return PatchedFile(
            action="update", path=path, move_to=move[1] if move else "", pieces=tuple(pieces)
        )

    def _content(self) -> str:
        added: list[str] = []
        blanks = 0
        while (line := self._peek()) is not None and not _FILE.fullmatch(line):
            # The + of an empty line is often lost. Only a later line of the file tells that it is
            # one: those at the end separate files.
            if not line.strip():
                blanks += 1
            elif line.startswith("+"):
                added += ["\n"] * blanks
                added.append(f"{line[1:]}\n")
                blanks = 0
            else:
                raise self._wrong("of a new file must begin with +")
            self._at += 1
        return "".join(added)

    def _pieces(self) -> list[PatchPiece]:
        pieces: list[PatchPiece] = []
        while (line := self._peek()) is not None and not _FILE.fullmatch(line):
            piece = self._piece()
            if piece.lines:
                pieces.append(piece)
            elif line == self._peek():
                raise self._wrong("should begin with @@, a space, + or -")
        return pieces

    def _piece(self) -> PatchPiece:
        headings: list[str] = []
        while (line := self._peek()) is not None and line.startswith("@@"):
            # Some models write the line numbers of a unified diff there, which mean nothing here.
            heading = re.sub(r"^(?: *-\d+(?:,\d+)? \+\d+(?:,\d+)?)? *(?:@@)? ?", "", line[2:])
            headings += [heading] if heading.strip() else []
            self._at += 1
        lines: list[tuple[Literal[" ", "-", "+"], str]] = []
        is_at_end = False
        while (line := self._peek()) is not None and not line.startswith("@@"):
            if line.rstrip() == _EOF:
                self._at += 1
                is_at_end = True
                break
            if _FILE.fullmatch(line):
                break
            lines.append(self._marked(line))
            self._at += 1
        # An empty line before the next file separates the two, and is none of the file's.
        while lines and lines[-1] == (" ", "") and not is_at_end:
            lines.pop()
        return PatchPiece(headings=tuple(headings), lines=tuple(lines), is_at_end=is_at_end)

    def _marked(self, line: str) -> tuple[Literal[" ", "-", "+"], str]:
        if not line:
            return " ", ""  # the blank in front of an empty line is often lost
        match line[0]:
            case " ":
                return " ", line[1:]
            case "-":
                return "-", line[1:]
            case "+":
                return "+", line[1:]
            case _:
                raise self._wrong("must begin with a space, + or -")

    def _peek(self) -> str | None:
        return self._lines[self._at][1] if self._at < len(self._lines) else None

    def _wrong(self, why: str) -> FinalToolError:
        number, line = self._lines[self._at]
        return FinalToolError(f"line {number} of the patch {why}; it is {line[:_SHOWN]!r}")


# --- applying ----------------------------------------------------------------------------


def patched(text: str, pieces: Sequence[PatchPiece]) -> str:
    """The text with all pieces applied, in their order; line ends stay the file's.

    Raises:
        FinalToolError: one fits nowhere, or in more than one place.
    """
    found = [match[0] for match in _LINE.finditer(text) if match[0]]
    ends = [re.search(r"[\r\n]*$", line)[0] for line in found]  # type: ignore[index]  # always fits
    lines = [line[: len(line) - len(end)] for line, end in zip(found, ends, strict=True)]
    new_end = line_end(text) if text else "\n"
    result: list[str] = []
    done = 0
    for number, piece in enumerate(pieces, 1):
        where = f"piece {number} of {len(pieces)}" if len(pieces) > 1 else "the piece"
        begin = _place(lines, piece, done, where)
        result += _whole(lines, ends, done, begin)
        done = begin
        for mark, line in piece.lines:
            if mark == "+":
                _end_last(result, new_end)
                result.append(f"{line}{new_end}")
                continue
            if mark == " ":
                result += _whole(lines, ends, done, done + 1)
            done += 1
    result += _whole(lines, ends, done, len(lines))
    made = "".join(result)
    # A file without a line end at its end stays so, and one with keeps it.
    if text and not ends[-1] and done >= len(lines) and made.endswith(new_end):
        return made.removesuffix(new_end)
    return made


def _whole(lines: list[str], ends: list[str], first: int, last: int) -> list[str]:
    return [f"{lines[at]}{ends[at]}" for at in range(first, last)]


def _end_last(result: list[str], end: str) -> None:
    """Lines that come behind the last one of a file without a line end there need one."""
    if result and not result[-1].endswith(("\n", "\r")):
        result[-1] += end


def _place(lines: list[str], piece: PatchPiece, done: int, where: str) -> int:
    """The line at which a piece begins."""
    first = done
    for heading in piece.headings:
        first = _heading(lines, heading, first, where) + 1
    old = piece.old
    if not old:
        return first if piece.headings and not piece.is_at_end else len(lines)
    for view in _VIEWS:
        places = _places(lines, old, first, view)
        if piece.is_at_end:
            places = [at for at in places if at + len(old) == len(lines)] or places
        # Behind a heading the first is meant; without one, nothing tells which.
        if len(places) == 1 or (places and piece.headings):
            return places[0]
        if places:
            raise FinalToolError(_ambiguous(where, places))
    raise FinalToolError(_miss(lines, old, first, where))


def _heading(lines: list[str], heading: str, first: int, where: str) -> int:
    for view in _VIEWS:
        for at in range(first, len(lines)):
            if view(lines[at]) == view(heading):
                return at
    raise FinalToolError(
        f"{where}: there is no line {heading[:_SHOWN]!r}"
        + (f" behind line {first}" if first else "")
        + ", which the patch names after @@"
    )


def _places(lines: list[str], old: list[str], first: int, view: Callable[[str], str]) -> list[int]:
    seen, wanted = list(map(view, lines)), list(map(view, old))
    last = len(lines) - len(old)
    return [at for at in range(first, last + 1) if seen[at : at + len(old)] == wanted]


def _ambiguous(where: str, places: list[int]) -> str:
    shown = ", ".join(str(at + 1) for at in places[:5])
    return (
        f"{where} fits in {len(places)} places (lines {shown}); add lines that stay around it, or "
        "@@ with the line of its function"
    )


def _miss(lines: list[str], old: list[str], first: int, where: str) -> str:
    """What is missing, in the words of the patch alone: the file may be one that is not shown."""
    there = set(map(str.strip, lines[first:]))
    gone = next((line for line in old if line.strip() not in there), "")
    if gone:
        behind = f" behind line {first}" if first else ""
        return (
            f"{where} fits nowhere: the file has no line {gone[:_SHOWN]!r}{behind}; "
            "read it again, and patch what is there"
        )
    return (
        f"{where} fits nowhere: its lines are there, but not one after the other as in the patch; "
        "read the file again, and patch what is there"
    )
