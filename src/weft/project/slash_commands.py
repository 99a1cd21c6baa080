"""The slash commands that every screen has, as data.  A Markdown file of the same name does not take their place."""

from __future__ import annotations

from typing import NamedTuple


class SlashCommand(NamedTuple):
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


COMMANDS: tuple[SlashCommand, ...] = (
    SlashCommand("/help", "Show what can be typed", aliases=("/?",)),
    SlashCommand("/new", "Start a new conversation; this one can be resumed", aliases=("/clear",)),
    SlashCommand("/resume", "Go on with another conversation", "[id or title]", ("/sessions",)),
    SlashCommand("/continue", "Go on with the turn that was interrupted or stopped"),
    SlashCommand("/fork", "Go on in a new conversation that shares this one's past", "[title]"),
    SlashCommand("/tree", "Show the whole conversation with its branches, and move in it"),
    SlashCommand(
        "/rewind", "Go back to an earlier message: the conversation, files, or both", "[name]"
    ),
    SlashCommand("/undo", "Take the last rewind or compaction back", "[rewind or compaction]"),
    SlashCommand("/branch", "Go on in a new branch from here", "[name]"),
    SlashCommand("/switch", "Go on with another branch", "[name]", ("/branches",)),
    SlashCommand("/checkpoint", "Name this place, so that /rewind finds it", "[name]"),
    SlashCommand("/rename", "Give this conversation a title", "TITLE", ("/title", "/name")),
    SlashCommand(
        "/model",
        "Show or change the model; next: of your rotation",
        "[provider:model]",
        ("/models",),
    ),
    SlashCommand("/effort", "Show or change how hard the model thinks", "[level]", ("/thinking",)),
    SlashCommand(
        "/mode", "Show or change what may be done without asking", "[mode]", ("/permissions",)
    ),
    SlashCommand(
        "/plan", "Change nothing until another mode is set; the same as /mode plan", "[task]"
    ),
    SlashCommand(
        "/architect", "One model plans, you approve, another carries it out; on or off", "[task]"
    ),
    SlashCommand("/steer", "Say something before the model's next step; the same as Enter", "TEXT"),
    SlashCommand(
        "/queue", "Say something after this turn; alone: show and change what waits", "[text]"
    ),
    SlashCommand("/agents", "Show the kinds of agents, and those that were at work"),
    SlashCommand(
        "/tasks",
        "Show who is at work beside the conversation; stop one",
        "[number]",
        ("/bg", "/ps"),
    ),
    SlashCommand("/context", "Show how full the model's window is", aliases=("/tokens", "/status")),
    SlashCommand(
        "/cost", "Show tokens and money of this conversation", aliases=("/usage", "/stats")
    ),
    SlashCommand("/files", "Show the files that were changed", aliases=("/diff",)),
    SlashCommand("/todo", "Show the model's task list", aliases=("/todos",)),
    SlashCommand(
        "/compact",
        "Tell the model the older part as a summary",
        "[focus]",
        ("/summarize", "/compress"),
    ),
    SlashCommand("/handover", "Write a document from which somebody else can go on"),
    SlashCommand("/pin", "Keep a message in the model's context whatever is summarised"),
    SlashCommand("/budget", "Limit what this conversation may cost, in US dollars", "USD or off"),
    SlashCommand("/boundary", "Hold edits of a file to some lines", "FILE 10-20, FILE off, or off"),
    SlashCommand("/skills", "Show skills; switch one on or off", "[name]"),
    SlashCommand("/hooks", "Show the programs that are run at certain moments"),
    SlashCommand(
        "/memory", "Show the instructions that the model reads", aliases=("/instructions",)
    ),
    SlashCommand("/trust", "Say whether you trust this folder's settings and hooks", "[off]"),
    SlashCommand(
        "/export", "Write this conversation to a file: .md, .html, .json or .jsonl", "[file]"
    ),
    SlashCommand("/quit", "Leave; the conversation can be resumed", aliases=("/exit", "/q")),
)


def find_slash(name: str) -> SlashCommand | None:
    """The command of this name."""
    return next((each for each in COMMANDS if name in (each.name, *each.aliases)), None)


def taken_names() -> frozenset[str]:
    """Every name and other name of these commands, with its slash."""
    return frozenset(name for each in COMMANDS for name in (each.name, *each.aliases))
