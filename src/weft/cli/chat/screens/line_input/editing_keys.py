"""The keys of the line editor, as in a shell: which key does what to the text."""

from __future__ import annotations

from collections.abc import Callable

from weft.cli.chat.screens.line_input.line_editor import LineEditor

_Action = Callable[[LineEditor], object]

_ACTIONS: dict[str, _Action] = {
    "left": LineEditor.left,
    "c-b": LineEditor.left,
    "right": LineEditor.right,
    "c-f": LineEditor.right,
    "c-left": LineEditor.word_left,
    "m-left": LineEditor.word_left,
    "m-b": LineEditor.word_left,
    "c-right": LineEditor.word_right,
    "m-right": LineEditor.word_right,
    "m-f": LineEditor.word_right,
    "home": LineEditor.line_start,
    "c-a": LineEditor.line_start,
    "end": LineEditor.line_end,
    "c-e": LineEditor.line_end,
    "c-home": LineEditor.start,
    "m-<": LineEditor.start,
    "c-end": LineEditor.end,
    "m->": LineEditor.end,
    "backspace": LineEditor.backspace,
    "c-h": LineEditor.backspace,
    "s-backspace": LineEditor.backspace,
    "delete": LineEditor.delete,
    "c-d": LineEditor.delete,
    "c-k": LineEditor.kill_line_end,
    "c-u": LineEditor.kill_line_start,
    "c-w": LineEditor.kill_word_left,
    "m-backspace": LineEditor.kill_word_back,
    "c-backspace": LineEditor.kill_word_back,
    "m-d": LineEditor.kill_word_right,
    "c-delete": LineEditor.kill_word_right,
    "c-y": LineEditor.yank,
    "m-y": LineEditor.yank_older,
    "c-t": LineEditor.transpose,
    "c-_": LineEditor.undo,
    "c-z": LineEditor.undo,
    "m-_": LineEditor.redo,
    "m-r": LineEditor.revert,
    "m-\\": LineEditor.delete_spaces,
    "m-u": lambda editor: editor.change_case(str.upper),
    "m-l": lambda editor: editor.change_case(str.lower),
    "m-c": lambda editor: editor.change_case(str.capitalize),
}
"""`c-z` and `c-t` mean something else in the input of the chat, which looks first."""


def edit(editor: LineEditor, key: str) -> bool:
    """Do what the key means; False for one that means nothing here."""
    if key in _ACTIONS:
        _ACTIONS[key](editor)
        return True
    if key == "space":
        editor.insert(" ")
        return True
    # One character, or several code points of one: a name of more letters is a key without meaning.
    if len(key) == 1 and key >= " ":
        editor.insert(key)
        return True
    return False


_LONGEST_COUNT = 999
_BACKWARDS = {
    "m-b": "m-f",
    "m-f": "m-b",
    "c-b": "c-f",
    "c-f": "c-b",
    "left": "right",
    "right": "left",
    "m-d": "m-backspace",
    "m-backspace": "m-d",
    "c-d": "backspace",
    "delete": "backspace",
    "backspace": "delete",
}
"""What a key does with a negative count."""


class ShellKeys:
    """Keys of a shell that others follow: a count (Alt+3), a character to go to (Ctrl+]), Ctrl+X
    Ctrl+U.
    """

    def __init__(self, editor: LineEditor) -> None:
        self._editor = editor
        self._count = ""
        self._looks = 0
        """How many such characters ahead to go, with the next key; 0 when no key was pressed."""
        self._had_prefix = False

    @property
    def notice(self) -> str:
        """The count as far as it is typed, as a shell shows it."""
        return f"(arg: {self._count})" if self._count else ""

    def forget(self) -> None:
        """A key of the chat's own ends what was begun."""
        self._count, self._looks, self._had_prefix = "", 0, False

    def press(self, key: str) -> bool:
        """One key; False for one that means nothing here.  It ends a count then."""
        had_prefix, self._had_prefix = self._had_prefix, key == "c-x"
        if self._looks:
            ahead, self._looks = self._looks, 0
            self._editor.find(" " if key == "space" else key, ahead)
            return True
        if key == "c-x" or self._counts(key):
            return True
        count, self._count = _number(self._count), ""
        if key in ("c-]", "m-c-]"):
            self._looks = count if key == "c-]" else -count
            return True
        if had_prefix and key == "c-u":
            self._editor.undo()
            return True
        return self._repeated(key, count)

    def _counts(self, key: str) -> bool:
        digit = key.removeprefix("m-")
        if digit == "-" and key != "-" and not self._count:
            self._count = "-"
        elif len(digit) == 1 and digit in "0123456789" and (key != digit or self._count):
            self._count += digit
        else:
            return False
        return True

    def _repeated(self, key: str, count: int) -> bool:
        if count < 0:
            key = _BACKWARDS.get(key, key)
        return all(edit(self._editor, key) for _ in range(abs(count)))


def _number(count: str) -> int:
    """A count as typed: none is one, and a lone minus is one back."""
    if count in ("", "-"):
        return -1 if count else 1
    number = max(-_LONGEST_COUNT, min(int(count), _LONGEST_COUNT))
    return number or 1
