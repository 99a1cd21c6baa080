"""The keys of vi in the input line: a normal mode behind Esc, for those who have set `keys = "vi"`.

What hands do by themselves: motions, `d`, `c` and `y` with a motion or a text object, counts, `f`
and its kin, `r`, `R`, `~`, `p`, `u` and `.`.  In insert mode the keys are the usual ones.  What is
cut is also in the ring of the other keys, and one command is one step to undo.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from weft.cli.chat.screens.line_input.editing_keys import edit
from weft.cli.chat.screens.line_input.line_editor import LineEditor
from weft.cli.chat.screens.line_input.vi_motions import (
    FindRequest,
    MotionTarget,
    TextSpan,
    find,
    first_dark,
    line_end,
    line_start,
    motion,
    next_word,
    run_end,
    text_object,
    word_end,
)
from weft.cli.chat.screens.line_input.word_places import kind

_NAMES = {
    "left": "h",
    "backspace": "h",
    "c-h": "h",
    "right": "l",
    "space": " ",
    "home": "0",
    "end": "$",
    "delete": "x",
    "c-r": "c-r",
}
"""Keys with a name that mean something in normal mode."""
_SHORT = {"D": "d$", "C": "c$", "Y": "y$", "S": "cc", "x": "dl", "X": "dh", "s": "cl"}
_LONGEST_COUNT = 999
_WHOLE_LINES = ("j", "k", "G", "gg")
"""Motions that take whole lines, where there are several."""


class ViCommand(NamedTuple):
    """A command of normal mode."""

    operator: str
    key: str
    argument: str
    """The character behind `f` or `r`, or the name of a text object."""
    times: int
    keys: list[str]


class ViKeys:
    """Which mode the input line is in, and what a key does in normal mode."""

    def __init__(self, editor: LineEditor) -> None:
        self._editor = editor
        self.is_normal = False
        self._pending: list[str] = []
        self._found: FindRequest | None = None
        self._change: list[str] = []
        """The keys of the last change, for `.`; with what was typed in insert mode."""
        self._records = False
        """What is typed belongs to that change."""
        self._replaces = False
        self._step = 0
        """Where in the steps to undo the command began."""
        self._actions: dict[str, Callable[[ViCommand], None]] = {
            **dict.fromkeys("iIaAoOR", self._insert),
            **dict.fromkeys("pP", self._put),
            "r": self._overwrite,
            "~": self._toggle_case,
            "J": self._join_lines,
        }

    @property
    def is_pending(self) -> bool:
        """A command was begun."""
        return bool(self._pending)

    def press(self, key: str) -> bool:
        """One key; False for one that is not for vi and keeps its usual meaning."""
        if not self.is_normal:
            return self._type(key)
        # Esc ends what was begun; a second one is the chat's own: stop, or go back.
        if key == "escape":
            had = self.is_pending
            self._pending.clear()
            return had
        if len(key) > 1 and key not in _NAMES:
            self._pending.clear()
            return False
        self._pending.append(_NAMES.get(key, key))
        command = _parsed(self._pending)
        if command is not None:
            self._pending = []
            self._run(command)
        # A letter without a meaning is swallowed: typed into the line it would be a surprise.
        return True

    def insert_mode(self) -> None:
        """Back to typing; after a line was sent."""
        self.is_normal, self._replaces, self._records = False, False, False
        self._pending, self._step = [], 0

    def settle(self) -> None:
        """In normal mode the cursor stands on a character, not behind the line."""
        editor = self._editor
        at = editor.cursor
        if self.is_normal and at == line_end(editor.text, at) > line_start(editor.text, at):
            editor.left()

    # -- insert mode

    def _type(self, key: str) -> bool:
        editor = self._editor
        if key == "escape":
            self.is_normal, self._replaces = True, False
            editor.join_steps(self._step)
            self._records = False
            if editor.cursor > line_start(editor.text, editor.cursor):
                editor.left()
            return True
        if self._records:
            self._change.append(key)
        if self._replaces and (len(key) == 1 or key == "space"):
            at = editor.cursor
            last = at + (at < line_end(editor.text, at))
            editor.replace(at, last, " " if key == "space" else key)
            return True
        return False

    # -- commands

    def _run(self, command: ViCommand) -> None:
        editor = self._editor
        if command.key == ".":
            self._repeat(command)
        elif command.key in ("u", "U", "c-r") and not command.operator:
            self._undo(command)
        elif command.operator or command.key in self._actions:
            self._do(command)
        elif (target := self._target(command)) is not None:
            editor.move_to(target.place)
        self.settle()

    def _undo(self, command: ViCommand) -> None:
        if command.key == "U":
            self._editor.revert(1)  # what was typed first stays
            return
        for _ in range(command.times):
            (self._editor.undo if command.key == "u" else self._editor.redo)()

    def _do(self, command: ViCommand) -> None:
        """A change: one step to undo, and what `.` does again."""
        self._step = self._editor.begin_step()
        if command.operator != "y":
            self._change = command.keys
        if command.operator:
            self._operate(command)
        else:
            self._actions[command.key](command)
        self._records = not self.is_normal
        if self.is_normal:
            self._editor.join_steps(self._step)

    def _repeat(self, command: ViCommand) -> None:
        keys = [*self._change]
        if len(command.keys) > 1:
            while keys and keys[0].isdecimal() and keys[0] != "0":
                del keys[0]
            keys = [*command.keys[:-1], *keys]
        for key in keys:
            if not self.press("space" if key == " " else key):
                edit(self._editor, key)
        if not self.is_normal:
            self.press("escape")
        self._change = keys

    def _target(self, command: ViCommand) -> MotionTarget | None:
        text, at = self._editor.text, self._editor.cursor
        key = command.key
        if key in "fFtT":
            self._found = FindRequest(key, command.argument)
        if key in "fFtT;,":
            if self._found is None:
                return None
            wanted = self._found
            if key == ",":
                wanted = FindRequest(wanted.key.swapcase(), wanted.character)
            return find(text, at, wanted, command.times)
        return motion(text, at, {" ": "l"}.get(key, key + command.argument), command.times)

    # -- operators

    def _operate(self, command: ViCommand) -> None:
        span = self._span(command)
        if span is None:
            return
        editor = self._editor
        piece = editor.text[span.first : span.last]
        if command.operator == "y":
            editor.keep(piece)
            if not _is_linewise(command):
                editor.move_to(span.first)
            return
        editor.kill(span.first, span.last)
        if command.operator == "c":
            self.is_normal = False
        elif _is_linewise(command):
            editor.move_to(first_dark(editor.text, editor.cursor))

    def _span(self, command: ViCommand) -> TextSpan | None:
        """What an operator takes."""
        text, at, key = self._editor.text, self._editor.cursor, command.key
        if _is_linewise(command):
            return self._lines(command)
        if key in "ia":
            return text_object(text, at, command.argument, is_around=key == "a")
        if key in "wW":
            return TextSpan(at, self._word_span(command))
        target = self._target(command)
        if target is None:
            return None
        first, last = sorted((at, target.place))
        return TextSpan(first, min(last + target.is_inclusive, len(text)))

    def _word_span(self, command: ViCommand) -> int:
        """Where `dw` or `cw` ends: `cw` leaves the spaces behind the word alone, and neither takes
        the end of the line.
        """
        text, at, is_big = self._editor.text, self._editor.cursor, command.key == "W"
        if command.operator == "c" and kind(text, at) != "space":
            last = run_end(text, at, is_big=is_big)
            for _ in range(command.times - 1):
                last = word_end(text, last - 1, is_big=is_big) + 1
            return last
        last = at
        for _ in range(command.times):
            last = next_word(text, last, is_big=is_big)
        # Behind the last word of a line stands the line break.
        words = text[at:last].rstrip()
        return at + len(words) if "\n" in text[at + len(words) : last] and words else last

    def _lines(self, command: ViCommand) -> TextSpan:
        """Whole lines, with a line break at their end for `p`; the only line is without one."""
        text, at = self._editor.text, self._editor.cursor
        first, last = line_start(text, at), line_end(text, at)
        key = command.key + command.argument
        for _ in range(command.times - (key == command.operator)):
            if key == "k":
                first = line_start(text, max(0, first - 1))
            elif key != "gg":
                last = line_end(text, min(last + 1, len(text)))
        first, last = 0 if key == "gg" else first, len(text) if key == "G" else last
        if command.operator == "c" or "\n" not in text:
            return TextSpan(first, last)
        return TextSpan(first, last + 1) if last < len(text) else TextSpan(max(0, first - 1), last)

    # -- other changes

    def _insert(self, command: ViCommand) -> None:
        editor = self._editor
        text, at = editor.text, editor.cursor
        match command.key:
            case "I":
                editor.move_to(first_dark(text, at))
            case "a":
                editor.move_to(motion_right(text, at))
            case "A":
                editor.move_to(line_end(text, at))
            case "o":
                editor.replace(line_end(text, at), line_end(text, at), "\n")
            case "O":
                editor.replace(line_start(text, at), line_start(text, at), "\n")
                editor.left()
            case "R":
                self._replaces = True
        self.is_normal = False

    def _put(self, command: ViCommand) -> None:
        editor = self._editor
        text, at, piece = editor.text, editor.cursor, editor.kept
        if not piece:
            return
        is_behind = command.key == "p"
        if "\n" in (piece[:1], piece[-1:]) and "\n" in text + piece.strip("\n"):
            self._put_lines(piece.strip("\n"), is_behind=is_behind)
            return
        at = motion_right(text, at) if is_behind else at
        editor.replace(at, at, piece * command.times)
        editor.left()

    def _put_lines(self, piece: str, *, is_behind: bool) -> None:
        editor = self._editor
        at = editor.cursor
        if is_behind:
            end = line_end(editor.text, at)
            editor.replace(end, end, f"\n{piece}")
            editor.move_to(end + 1)
        else:
            start = line_start(editor.text, at)
            editor.replace(start, start, f"{piece}\n")
            editor.move_to(start)

    def _overwrite(self, command: ViCommand) -> None:
        editor = self._editor
        span = self._characters(command.times)
        if span is not None:
            editor.replace(*span, command.argument * command.times)
            editor.left()

    def _toggle_case(self, command: ViCommand) -> None:
        editor = self._editor
        room = line_end(editor.text, editor.cursor) - editor.cursor
        span = self._characters(min(command.times, room))
        if span is not None:
            editor.replace(*span, editor.text[span.first : span.last].swapcase())

    def _characters(self, count: int) -> TextSpan | None:
        """So many characters from the cursor on; None where there are fewer."""
        text, first = self._editor.text, self._editor.cursor
        last = first
        for _ in range(count):
            if last >= line_end(text, first):
                return None
            last = motion_right(text, last)
        return TextSpan(first, last)

    def _join_lines(self, command: ViCommand) -> None:
        editor = self._editor
        for _ in range(max(1, command.times - 1)):
            end = line_end(editor.text, editor.cursor)
            if end < len(editor.text):
                rest = editor.text[end + 1 :]
                editor.replace(end, len(editor.text), f" {rest.lstrip(' ')}")
                editor.move_to(end)


def _is_linewise(command: ViCommand) -> bool:
    return command.key == command.operator or command.key + command.argument in _WHOLE_LINES


def motion_right(text: str, at: int) -> int:
    """One character on, in this line."""
    target = motion(text, at, "l", 1)
    return at if target is None else target.place


def _parsed(keys: list[str]) -> ViCommand | None:
    """The command that was typed; None while it is not whole."""
    count, place = _count(keys, 0)
    rest = [*keys[place:]]
    if rest and rest[0] in _SHORT:
        rest = [*_SHORT[rest[0]]]
    operator = rest.pop(0) if rest and rest[0] in "dcy" else ""
    again, place = _count(rest, 0) if operator else (1, 0)
    if place == len(rest):
        return None
    key, behind = rest[place], rest[place + 1 :]
    takes_another = key in "gfFtT" or (key in "ia" if operator else key == "r")
    if takes_another and not behind:
        return None
    argument = behind[0] if takes_another else ""
    number = min(count * again, _LONGEST_COUNT)
    return ViCommand(operator, key, argument, number, [*keys])


def _count(keys: list[str], place: int) -> tuple[int, int]:
    """The count that begins at a place, and the place behind it."""
    first = place
    while place < len(keys) and keys[place].isdecimal() and (keys[place] != "0" or place > first):
        place += 1
    return int("".join(keys[first:place])) if place > first else 1, place
