"""The slash commands that every screen has, as data.  A Markdown file of the same name does not take their place."""

from __future__ import annotations

from typing import NamedTuple


class Slash(NamedTuple):
    """One command of the chat."""

    name: str
    about: str
    words: str = ""
    """What may stand behind it, as the help shows it."""
    aliases: tuple[str, ...] = ()
    """Other names that people know it by."""

    @property
    def shown(self) -> str:
        return f"{self.name} {self.words}".rstrip()


COMMANDS: tuple[Slash, ...] = (
    Slash("/help", "Show what can be typed", aliases=("/?",)),
    Slash("/new", "Start a new conversation; this one can be resumed", aliases=("/clear",)),
    Slash("/resume", "Go on with another conversation", "[id or title]", ("/sessions",)),
    Slash("/continue", "Go on with the turn that was interrupted or stopped"),
    Slash("/fork", "Go on in a new conversation that shares this one's past", "[title]"),
    Slash("/tree", "Show the whole conversation with its branches, and move in it"),
    Slash("/rewind", "Go back to an earlier message: the conversation, files, or both", "[name]"),
    Slash("/undo", "Take the last rewind or compaction back", "[rewind or compaction]"),
    Slash("/branch", "Go on in a new branch from here", "[name]"),
    Slash("/switch", "Go on with another branch", "[name]", ("/branches",)),
    Slash("/checkpoint", "Name this place, so that /rewind finds it", "[name]"),
    Slash("/rename", "Give this conversation a title", "TITLE", ("/title", "/name")),
    Slash(
        "/model",
        "Show or change the model; next: of your rotation",
        "[provider:model]",
        ("/models",),
    ),
    Slash("/effort", "Show or change how hard the model thinks", "[level]", ("/thinking",)),
    Slash("/mode", "Show or change what may be done without asking", "[mode]", ("/permissions",)),
    Slash("/plan", "Change nothing until another mode is set; the same as /mode plan", "[task]"),
    Slash(
        "/architect", "One model plans, you approve, another carries it out; on or off", "[task]"
    ),
    Slash("/steer", "Say something before the model's next step; the same as Enter", "TEXT"),
    Slash("/queue", "Say something after this turn; alone: show and change what waits", "[text]"),
    Slash("/agents", "Show the kinds of agents, and those that were at work"),
    Slash(
        "/tasks",
        "Show who is at work beside the conversation; stop one",
        "[number]",
        ("/bg", "/ps"),
    ),
    Slash("/context", "Show how full the model's window is", aliases=("/tokens", "/status")),
    Slash("/cost", "Show tokens and money of this conversation", aliases=("/usage", "/stats")),
    Slash("/files", "Show the files that were changed", aliases=("/diff",)),
    Slash("/todo", "Show the model's task list", aliases=("/todos",)),
    Slash(
        "/compact",
        "Tell the model the older part as a summary",
        "[focus]",
        ("/summarize", "/compress"),
    ),
    Slash("/handover", "Write a document from which somebody else can go on"),
    Slash("/pin", "Keep a message in the model's context whatever is summarised"),
    Slash("/budget", "Limit what this conversation may cost, in US dollars", "USD or off"),
    Slash("/boundary", "Hold edits of a file to some lines", "FILE 10-20, FILE off, or off"),
    Slash("/skills", "Show skills; switch one on or off", "[name]"),
    Slash("/hooks", "Show the programs that are run at certain moments"),
    Slash("/memory", "Show the instructions that the model reads", aliases=("/instructions",)),
    Slash("/trust", "Say whether you trust this folder's settings and hooks", "[off]"),
    Slash("/export", "Write this conversation to a file: .md, .html, .json or .jsonl", "[file]"),
    Slash("/quit", "Leave; the conversation can be resumed", aliases=("/exit", "/q")),
)


def find_slash(name: str) -> Slash | None:
    """The command of this name."""
    return next((each for each in COMMANDS if name in (each.name, *each.aliases)), None)


def taken_names() -> frozenset[str]:
    """Every name and other name of these commands, with its slash."""
    return frozenset(name for each in COMMANDS for name in (each.name, *each.aliases))
