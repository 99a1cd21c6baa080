"""The keys of vi in the input line: a normal mode behind Esc, for those who have set `keys = "vi"`.

A small part of vi, the one that hands do by themselves: motions with a count, `d`, `c` and `y` with
a motion, `x`, `p`, `u`, and the ways into insert mode.  In insert mode the keys are the usual ones.
"""

from __future__ import annotations

from collections.abc import Callable

from weft.cli.chat.screens.line_input.line_editor import LineEditor

_Motion = Callable[[LineEditor], object]


def _first_dark(editor: LineEditor) -> None:
    editor.line_start()
    while editor.text[editor.cursor : editor.cursor + 1] in (" ", "\t"):
        editor.right()


def _new_line(editor: LineEditor) -> None:
    editor.insert("\n")


def _next_word(editor: LineEditor) -> None:
    text, at = editor.text, editor.cursor
    kind = _kind(text[at : at + 1])
    while at < len(text) and _kind(text[at]) == kind != "space":
        at += 1
    while at < len(text) and _kind(text[at]) == "space":
        at += 1
    editor.move_to(at)


def _word_end(editor: LineEditor) -> None:
    text, at = editor.text, editor.cursor + 1
    while at < len(text) and _kind(text[at]) == "space":
        at += 1
    while at + 1 < len(text) and _kind(text[at + 1]) == _kind(text[at]):
        at += 1
    editor.move_to(min(at, max(0, len(text) - 1)))


def _kind(character: str) -> str:
    if not character or character.isspace():
        return "space"
    return "word" if character.isalnum() or character == "_" else "mark"


_MOTIONS: dict[str, _Motion] = {
    "h": LineEditor.left,
    "left": LineEditor.left,
    "backspace": LineEditor.left,
    "l": LineEditor.right,
    "right": LineEditor.right,
    "space": LineEditor.right,
    "0": LineEditor.line_start,
    "home": LineEditor.line_start,
    "^": _first_dark,
    "$": LineEditor.line_end,
    "end": LineEditor.line_end,
    "w": _next_word,
    "W": _next_word,
    "b": LineEditor.word_left,
    "B": LineEditor.word_left,
    "e": _word_end,
    "G": LineEditor.end,
}
_WAYS_IN: dict[str, tuple[_Motion, ...]] = {
    "i": (),
    "I": (_first_dark,),
    "a": (LineEditor.right,),
    "A": (LineEditor.line_end,),
    "o": (LineEditor.line_end, _new_line),
    "O": (LineEditor.line_start, _new_line, LineEditor.left),
    "s": (LineEditor.delete,),
    "C": (LineEditor.kill_line_end,),
    "S": (LineEditor.line_start, LineEditor.kill_line_end),
}
"""What leads to insert mode."""
_ACTIONS: dict[str, tuple[_Motion, ...]] = {
    "x": (LineEditor.delete,),
    "X": (LineEditor.backspace,),
    "D": (LineEditor.kill_line_end,),
    "p": (LineEditor.right, LineEditor.yank),
    "P": (LineEditor.yank,),
    "u": (LineEditor.undo,),
    "c-r": (LineEditor.redo,),
    "j": (LineEditor.line_down,),
    "k": (LineEditor.line_up,),
}
_INCLUSIVE = ("e",)
"""Motions whose last character belongs to what an operator takes."""


class ViKeys:
    """Which mode the input line is in, and what a key does in normal mode."""

    def __init__(self, editor: LineEditor) -> None:
        self._editor = editor
        self.is_normal = False
        self._count = ""
        self._operator = ""

    def press(self, key: str) -> bool:
        """One key; False for one that is not for vi and keeps its usual meaning."""
        if not self.is_normal:
            if key != "escape":
                return False
            self.is_normal = True
            self._editor.left()
            return True
        if key.isdecimal() and (key != "0" or self._count):
            self._count += key
            return True
        # Esc ends what was begun; a second one is the chat's own: stop, or go back.
        if key == "escape":
            had, self._operator, self._count = self._operator or self._count, "", ""
            return bool(had)
        return self._command(key)

    def insert_mode(self) -> None:
        """Back to typing; after a line was sent."""
        self.is_normal, self._count, self._operator = False, "", ""

    def _command(self, key: str) -> bool:
        count = min(int(self._count or 1), 999)
        if self._operator:
            return self._operate(key, count)
        if key in ("d", "c", "y"):
            self._operator = key
            return True
        self._count = ""
        if key in _MOTIONS:
            for _ in range(count):
                _MOTIONS[key](self._editor)
            return True
        return self._act(key, count)

    def _operate(self, key: str, count: int) -> bool:
        editor, operator = self._editor, self._operator
        self._operator = self._count = ""
        start = editor.cursor
        if key == operator:
            editor.line_start()
            start = editor.cursor
            editor.line_end()
        elif key in _MOTIONS:
            # As in vi: `cw` leaves the space behind the word alone.
            motion = "e" if operator == "c" and key in "wW" else key
            for _ in range(count):
                _MOTIONS[motion](editor)
            if motion in _INCLUSIVE:
                editor.right()
        first, last = sorted((start, editor.cursor))
        editor.kill(first, last)
        if operator == "y":
            editor.undo()
            editor.move_to(first)
        if operator == "c":
            self.insert_mode()
        return True

    def _act(self, key: str, count: int) -> bool:
        if key in _WAYS_IN:
            for step in _WAYS_IN[key]:
                step(self._editor)
            self.insert_mode()
            return True
        if key in _ACTIONS:
            for _ in range(count):
                for step in _ACTIONS[key]:
                    step(self._editor)
            return True
        # A letter without a meaning is swallowed: typed into the line it would be a surprise.
        return len(key) == 1
