"""Built-in slash commands, as data.

A Markdown file of the same name takes the place of those that yield, and of no others.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Final, NamedTuple

from weft.errors import did_you_mean


class SlashCommand(NamedTuple):
    """One command of the chat."""

    name: str
    about: str
    words: str = ""
    """What may stand behind it, as the help shows it."""
    aliases: tuple[str, ...] = ()
    """Other names that people know it by."""
    yields: bool = False
    """A Markdown file of its name takes its place: people have written their own."""

    @property
    def shown(self) -> str:
        return f"{self.name} {self.words}".rstrip()


COMMANDS: tuple[SlashCommand, ...] = (
    SlashCommand("/help", "Show commands and keys", aliases=("/?",)),
    SlashCommand("/keys", "Show the keys", "", ("/keybindings", "/hotkeys", "/keymap"), True),
    SlashCommand("/new", "Start a new conversation; this one can be resumed", aliases=("/clear",)),
    SlashCommand("/resume", "Resume another conversation", "[id or title]", ("/sessions",)),
    SlashCommand("/continue", "Continue the turn that was interrupted or stopped"),
    SlashCommand(
        "/fork", "Continue in a new conversation that shares this one's history", "[title]"
    ),
    SlashCommand("/tree", "Show the conversation with its branches, and jump to a message"),
    SlashCommand(
        "/rewind", "Rewind to an earlier message: the conversation, files, or both", "[name]"
    ),
    SlashCommand(
        "/undo",
        "Undo the last rewind or compaction, else the last message",
        "[rewind or compaction]",
    ),
    SlashCommand("/branch", "Start a new branch here", "[name]"),
    SlashCommand("/switch", "Switch to another branch", "[name]", ("/branches",)),
    SlashCommand("/checkpoint", "Save a checkpoint that /rewind can return to", "[name]"),
    SlashCommand("/rename", "Rename this conversation", "TITLE", ("/title", "/name")),
    SlashCommand(
        "/model",
        "Show or change the model; next: of your rotation",
        "[provider:model]",
        ("/models",),
    ),
    SlashCommand(
        "/login",
        "Add an API key, or use a model on this machine",
        "[provider]",
        ("/connect",),
    ),
    SlashCommand("/logout", "Delete a saved API key", "[provider]", yields=True),
    SlashCommand(
        "/config",
        "Show settings, or change your own",
        "[name], NAME VALUE, or unset NAME",
        ("/settings",),
    ),
    SlashCommand("/theme", "Show or change the colors", "[theme]", yields=True),
    SlashCommand(
        "/doctor", "Check what this machine has and what is missing", "", ("/debug",), True
    ),
    SlashCommand("/effort", "Show or change the thinking level", "[level]", ("/thinking",)),
    SlashCommand("/mode", "Show or change the permission mode", "[mode]"),
    SlashCommand(
        "/permissions",
        "Show permission rules; add or remove one, explain a command, try a rule on past calls",
        "[add, remove, explain or simulate]",
        ("/rules",),
    ),
    SlashCommand(
        "/plan",
        "Plan without changing anything, as /mode plan; go: carry the plan out, edits allowed",
        "[task or go]",
    ),
    SlashCommand(
        "/architect", "One model plans, you approve, another carries it out; on or off", "[task]"
    ),
    SlashCommand(
        "/steer",
        "Send a message before the model's next step, in another process's turn too",
        "TEXT",
    ),
    SlashCommand(
        "/queue", "Send a message after this turn; alone: show and edit the queue", "[text]"
    ),
    SlashCommand(
        "/goal",
        "Work turn after turn until a check passes; show, pause, resume, edit or clear it",
        "[TEXT --check CMD]",
    ),
    SlashCommand("/at", "Send a prompt at a time", "TIME TEXT", yields=True),
    SlashCommand("/loop", "Send a prompt now, and again and again", "[5m] TEXT", ("/every",), True),
    SlashCommand(
        "/btw",
        "Ask a side question, also while a turn runs: it never enters the conversation",
        "TEXT",
        yields=True,
    ),
    SlashCommand("/waits", "Show what this conversation waits for, and cancel it", yields=True),
    SlashCommand(
        "/fan",
        "Let several candidates work on a task, each in an overlay; compare and keep one",
        "[task, or diff, keep, prune, resume, stop and a number]",
    ),
    SlashCommand("/drive", "Take over a session that another client drives"),
    SlashCommand("/agents", "Show the available agents, and those that ran"),
    SlashCommand(
        "/tasks",
        "Show background tasks; stop one",
        "[number]",
        ("/bg", "/ps"),
    ),
    SlashCommand("/stop", "Stop the turn; without one, all background tasks", yields=True),
    SlashCommand("/store", "Show what is kept of the files here, and what goes next"),
    SlashCommand("/context", "Show how full the context window is", aliases=("/tokens", "/status")),
    SlashCommand(
        "/cost", "Show tokens and cost of this conversation", aliases=("/usage", "/stats")
    ),
    SlashCommand("/files", "Show the files that were changed"),
    SlashCommand("/diff", "Show what this conversation changed, file by file"),
    SlashCommand("/differences", "Show the files that are not what the log tells of"),
    SlashCommand("/receipts", "Show what the last answer claims, beside what was run"),
    SlashCommand(
        "/request",
        "Show what the model was sent, what each part cost, and why the cache was missed",
        "[TURN] [diff]",
    ),
    SlashCommand("/bisect", "Find the turn at which a check began to fail", "CMD, or stop"),
    SlashCommand("/blame", "Say what wrote a line, and why", "FILE:LINE"),
    SlashCommand("/todo", "Show the model's to-do list", aliases=("/todos",)),
    SlashCommand(
        "/compact",
        "Summarize older messages",
        "[focus]",
        ("/summarize", "/compress"),
    ),
    SlashCommand("/handover", "Write a handover document"),
    SlashCommand("/keep", "Keep what was noted of your last correction as a decision"),
    SlashCommand(
        "/exclude", "Send a message to the model no more, with the results of its tool calls"
    ),
    SlashCommand("/include", "Send a message again that was excluded"),
    SlashCommand("/pin", "Keep a message in the model's context through compaction"),
    SlashCommand("/budget", "Limit what this conversation may cost, in US dollars", "USD or off"),
    SlashCommand(
        "/boundary", "Limit edits of a file to some lines", "FILE 10-20, FILE off, or off"
    ),
    SlashCommand(
        "/skills", "Show skills; switch one on or off; /skill:NAME TEXT: on, and send", "[name]"
    ),
    SlashCommand("/hooks", "Show the hooks"),
    SlashCommand(
        "/mcp",
        "Show MCP servers; allow or refuse one that this project names, or restart",
        "[allow NAME, refuse NAME or restart]",
    ),
    SlashCommand(
        "/review",
        "Have the model review your changes, a commit, a branch or files",
        "[what]",
        yields=True,
    ),
    SlashCommand("/init", "Have the model write AGENTS.md, or improve it", "[what to add]"),
    SlashCommand(
        "/memory",
        "Show and edit what is remembered, and show the instructions; add and forget",
        "[add TEXT, edit or forget]",
        ("/instructions",),
    ),
    SlashCommand(
        "/trust", "Trust this folder's settings and hooks, or stop trusting them", "[off]"
    ),
    SlashCommand(
        "/export", "Write this conversation to a file: .md, .html, .json or .jsonl", "[file]"
    ),
    SlashCommand(
        "/import",
        "Continue a conversation from an export, or from another agent",
        "FILE or AGENT [id]",
        yields=True,
    ),
    SlashCommand("/editor", "Write the next message in $VISUAL or $EDITOR", yields=True),
    SlashCommand("/copy", "Copy the last answer, or its last code block", "[code]"),
    SlashCommand("/show", "Print the last card in full, or the one so many before", "[number]"),
    SlashCommand("/quit", "Quit; the conversation can be resumed", aliases=("/exit", "/q")),
)


ELSEWHERE: Final = {
    "redo": "/undo takes a rewind back",
    "add-dir": "`weft -c --add-dir DIR` continues this conversation with another folder",
    "cd": "`weft -C DIR` starts in another folder",
    "ask": "/plan asks and changes nothing",
    "code": "/mode goes back from planning to work",
    "share": "/export chat.html writes a page that you can send; nothing is put on a server",
    "unshare": "nothing is ever put on a server",
    "feedback": "/export writes the conversation, to go with a report",
    "bug": "/export writes the conversation, to go with a report",
    "reload": "files of the project are read as they are with each message; "
    "`weft -c` starts again with changed settings",
    "plugin": "/skills, /hooks and /mcp show what Weft is extended with",
    "plugins": "/skills, /hooks and /mcp show what Weft is extended with",
    "bashes": "/tasks shows the commands and agents in the background",
    "approvals": "/permissions shows what is allowed, and /mode what is asked",
    "output-style": "/config model.style explanatory has answers explain more",
    "fast": "/effort sets how long the model thinks, and /model another one",
    "vim": "/config keys vi has vi's keys in the input",
}
"""Names that other agents have for something, and what does it here."""


def find_slash(name: str) -> SlashCommand | None:
    """The command of this name."""
    return next((each for each in COMMANDS if name in (each.name, *each.aliases)), None)


def taken_names() -> frozenset[str]:
    """Every name and other name of the commands that no file can replace, with its slash."""
    kept = [each for each in COMMANDS if not each.yields]
    return frozenset(name for each in kept for name in (each.name, *each.aliases))


def is_note(text: str) -> bool:
    """Whether a line asks to remember what stands behind its `# `.

    More than one line is Markdown with a heading, and `#12` an issue: both are messages.
    """
    return text.startswith("# ") and "\n" not in text


def command_problem(name: str, from_files: Collection[str], *, in_chat: bool) -> str:
    """What is wrong with a line that begins with `/name`; empty when it may be carried out, and
    when it is text: a path of this machine (`/tmp is full`) is no command.
    """
    if name in from_files:
        return ""
    # Before the paths: `/init` is both in many a container.
    if find_slash(f"/{name.lower()}") is not None:
        return "" if in_chat else f"/{name} works in the chat only; start it with `weft`"
    if os.path.lexists(f"/{name}"):
        return ""
    # Without the slash, which would make any two short names alike.
    if in_chat and name.lower() in ELSEWHERE:
        return f"there is no command /{name}; {ELSEWHERE[name.lower()]}"
    known = [each[1:] for command in COMMANDS for each in (command.name, *command.aliases)]
    near = did_you_mean(name, [*known, *from_files])
    listed = "/help shows" if in_chat else "`weft help slash` lists"
    hint = near.replace(" '", " /").replace("'", "") or f"; {listed} those there are"
    return f"there is no command /{name}{hint}"
