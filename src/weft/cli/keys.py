"""The keys of the chat, as data."""

from __future__ import annotations

KEYS: tuple[tuple[str, str], ...] = (
    ("Enter", "Send; while the model works: deliver before its next step"),
    ("Alt+Enter", "New line; while the model works: send after this turn"),
    ("Ctrl+J, \\ Enter", "New line"),
    ("Esc", "Stop the turn; what it did stays"),
    ("Esc Esc", "Go back to an earlier message; clear the line if it is not empty"),
    ("Ctrl+C", "Stop the turn, or clear the line; twice: quit"),
    ("Ctrl+D", "Quit, when the line is empty"),
    ("Shift+Tab", "Next mode: default, accept_edits, plan"),
    ("Tab", "Complete @files and /commands"),
    ("Up, Down", "Earlier and later lines"),
    ("Ctrl+R", "Search earlier lines"),
    ("Alt+Up", "Take queued messages back"),
    ("Ctrl+G", "Write in $VISUAL or $EDITOR"),
    ("Ctrl+V", "Paste a picture; a dropped file is pasted, too"),
    ("Ctrl+O", "Everything unfolded: search, copy, card by card; q returns"),
    ("Ctrl+L", "Redraw the screen"),
    ("Ctrl+Z", "Suspend"),
    ("1 2 3 4", "Answer a request: once, this turn, always in this session, no"),
)
