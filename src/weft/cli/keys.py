"""The keys of the chat, as data: one list for `/help`, `weft help keys` and the panel of `?`."""

from __future__ import annotations

from typing import NamedTuple


class ChatKey(NamedTuple):
    """A key, or what a line may begin with."""

    name: str
    about: str
    short: str = ""
    """In a few words, for the panel; empty for what only the whole list names."""


CHAT_KEYS = (
    ChatKey(
        "Enter",
        "Send; while the model works: deliver before its next step",
        "send; while it works: before the next step",
    ),
    ChatKey(
        "Alt+Enter",
        "New line; while the model works: send after this turn",
        "new line; while it works: after the turn",
    ),
    ChatKey("Ctrl+J, \\ Enter", "New line", "new line"),
    ChatKey(
        "Up, Down",
        "Earlier and later lines; while the model works: edit what waits",
        "earlier messages; while it works: edit what waits",
    ),
    ChatKey("Ctrl+R", "Search earlier lines", "search earlier messages"),
    ChatKey("Ctrl+G", "Write in $VISUAL or $EDITOR", "write in your editor"),
    ChatKey("Tab", "Complete @files and /commands", "complete"),
    ChatKey("Shift+Tab", "Next mode: asks first, edits allowed, plan only", "next permission mode"),
    ChatKey("Esc", "Stop the turn; what it did stays", "stop"),
    ChatKey(
        "Esc Esc", "Go back to an earlier message; clear the line if it is not empty", "rewind"
    ),
    ChatKey("Ctrl+C", "Stop the turn, or clear the line; twice: quit", "stop, clear; twice quits"),
    ChatKey(
        "Ctrl+O",
        "Everything unfolded: search, copy, card by card; q returns",
        "everything unfolded",
    ),
    ChatKey("Ctrl+T", "Unfold the to-do list, and fold it", "to-do list"),
    ChatKey("Alt+P", "Choose the model", "model"),
    ChatKey("Alt+T", "Choose the thinking level"),
    ChatKey("Ctrl+S", "Put the line aside until the next message is sent; again: bring it back"),
    ChatKey(
        "Alt+K",
        "Keep what was noted of your last correction as a decision",
        "keep what was noted",
    ),
    ChatKey("@", "Attach a file: @path", "attach a file"),
    ChatKey("/", "Commands, at the start of a line", "commands"),
    ChatKey(
        "!, !!",
        "Run a command as you, at the start of a line; !! keeps it from the model",
        "run a command as you; !! keeps it from the model",
    ),
    ChatKey(
        "#",
        "Remember something, at the start of a line: # use tabs",
        "remember something",
    ),
    ChatKey("?", "The most used keys, on an empty line"),
    ChatKey("1, 2, 3 …", "Answer a question: the number of a row answers it"),
    ChatKey("Alt+Up", "Take queued messages back"),
    ChatKey("Ctrl+V", "Paste a picture; a dropped file is pasted, too"),
    ChatKey("Ctrl+D", "Quit, when the line is empty"),
    ChatKey("Ctrl+L", "Redraw the screen"),
    ChatKey("Ctrl+Z", "Suspend"),
)
KEYS: tuple[tuple[str, str], ...] = tuple((key.name, key.about) for key in CHAT_KEYS)
"""All of them, in whole sentences."""
