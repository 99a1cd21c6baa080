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
