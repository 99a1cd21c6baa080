"""What can be typed in the chat: commands and keys, as data."""

from __future__ import annotations

from typing import NamedTuple


class Slash(NamedTuple):
    """One command of the chat."""

    name: str
    about: str
    words: str = ""
    aliases: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        return f"{self.name} {self.words}".rstrip()


COMMANDS: tuple[Slash, ...] = (
    Slash("/help", "Show what can be typed", aliases=("/?",)),
    Slash("/new", "Start a new conversation; this one can be resumed", aliases=("/clear",)),
    Slash("/resume", "Go on with another conversation", "[id or title]", ("/sessions",)),
    Slash("/continue", "Go on with the turn that was interrupted or stopped"),
    Slash("/fork", "Go on in a new conversation that shares this one's past", "[title]"),
    Slash("/rename", "Give this conversation a title", "TITLE", ("/title", "/name")),
    Slash("/model", "Show or change the model", "[provider:model]", ("/models",)),
    Slash("/effort", "Show or change how hard the model thinks", "[level]", ("/thinking",)),
    Slash("/mode", "Show or change what may be done without asking", "[mode]", ("/permissions",)),
    Slash("/plan", "Change nothing until another mode is set; the same as /mode plan"),
    Slash("/context", "Show how full the model's window is", aliases=("/tokens", "/status")),
    Slash("/cost", "Show tokens and money of this conversation", aliases=("/usage", "/stats")),
    Slash("/files", "Show the files that were changed", aliases=("/diff",)),
    Slash("/todo", "Show the model's task list", aliases=("/todos",)),
    Slash("/compact", "Tell the model the older part as a summary", "[focus]", ("/summarize",)),
    Slash("/export", "Write this conversation to a file: .md, .html, .json or .jsonl", "[file]"),
    Slash("/quit", "Leave; the conversation can be resumed", aliases=("/exit", "/q")),
)

KEYS: tuple[tuple[str, str], ...] = (
    ("Enter", "Send; while the model works: say it before its next step"),
    ("Alt+Enter, Ctrl+J, \\ Enter", "New line"),
    ("Esc", "Stop the turn; what it did stays"),
    ("Ctrl+C", "Stop the turn; else clear the line; twice: leave"),
    ("Ctrl+D", "Leave, when the line is empty"),
    ("Shift+Tab", "Next mode: default, accept_edits, plan"),
    ("Tab", "Complete @files and /commands"),
    ("Up, Down", "Earlier and later lines"),
    ("Ctrl+R", "Search earlier lines"),
    ("Alt+Up", "Take back what waits to be said"),
    ("Ctrl+G", "Write in $VISUAL or $EDITOR"),
    ("Ctrl+L", "Draw the screen anew"),
    ("Ctrl+Z", "Suspend"),
    ("1 2 3 4", "Answer a request: once, this turn, always in this session, no"),
)


def find_slash(name: str) -> Slash | None:
    """The command of this name."""
    return next((each for each in COMMANDS if name in (each.name, *each.aliases)), None)
