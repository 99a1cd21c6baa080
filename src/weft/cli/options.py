"""The command line as data: every option and every command, with a sentence each.

Parsing, help, completion scripts and the test that compares `docs/cli.md` all read these tables.  Plain tuples: this module is on the
way to `--help` and must cost nothing.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from weft.thinking import THINKING_LEVELS

Kind: TypeAlias = Literal["flag", "text", "whole", "number", "many", "maybe"]
"""`many` may be given several times; `maybe` takes the next word unless that is an option."""


class CommandOption(NamedTuple):
    """One option."""

    names: tuple[str, ...]
    """All spellings; the help shows those that are not in `hidden`."""
    about: str
    kind: Kind = "flag"
    metavar: str = ""
    choices: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    """Spellings that are taken and not advertised."""

    @property
    def key(self) -> str:
        """The name its value is kept under: the first long spelling, with underscores."""
        return next(name for name in self.names if name.startswith("--"))[2:].replace("-", "_")

    @property
    def takes_value(self) -> bool:
        return self.kind != "flag"


class OptionSection(NamedTuple):
    """Options that belong together in the help."""

    title: str
    options: tuple[CommandOption, ...]


class CommandSpec(NamedTuple):
    """One command, or one command of a command."""

    name: str
    about: str
    words: str = ""
    """The words it takes, as the help shows them."""
    options: tuple[CommandOption, ...] = ()
    verbs: tuple[CommandSpec, ...] = ()
    default: str = ""
    """Which of `verbs` is meant when none is named."""
    aliases: tuple[str, ...] = ()
    is_run: bool = False
    """It takes all options of a run."""


HELP = CommandOption(("-h", "--help"), "Show this help.")
FOLDER = CommandOption(("-C", "--cd"), "Work in this folder.", "text", "DIR", hidden=("--cwd",))
SET = CommandOption(("--set",), "Set a setting for this run; may be repeated.", "many", "KEY=VALUE")
JSON = CommandOption(("--json",), "Print JSON.")
ALL = CommandOption(("-a", "--all"), "Of every folder, not only of this one.")

MODES = (
    *("default", "plan", "accept_edits", "auto", "bypass"),
    *("acceptEdits", "bypassPermissions", "dontAsk"),
)

RUN: tuple[OptionSection, ...] = (
    OptionSection(
        "Session",
        (
            CommandOption(("-c", "--continue"), "Go on with the newest session of this folder."),
            CommandOption(
                ("-r", "--resume", "-s", "--session"),
                "Go on with a session: its id, the beginning of it, or its title; without one, pick from a list.",
                "maybe",
                "[ID]",
            ),
            CommandOption(
                ("--fork",),
                "With -c or -r: go on in a new session that shares the past; the old one stays as it is.",
                hidden=("--fork-session",),
            ),
            CommandOption(
                ("--session-id",), "Give the new session this id (or resume it).", "text", "ID"
            ),
            CommandOption(("-n", "--name"), "Title of the new session.", "text", "TITLE"),
            CommandOption(
                ("--ephemeral", "--no-session"),
                "Keep nothing.",
                hidden=("--no-session-persistence",),
            ),
        ),
    ),
    OptionSection(
        "Model",
        (
            CommandOption(
                ("-m", "--model"),
                "Model, as provider:model or provider/model, with :EFFORT behind it if you like.",
                "text",
                "MODEL",
            ),
            CommandOption(
                ("--effort",),
                "How hard it thinks: default, off, minimal, low, medium, high, xhigh or max.",
                "text",
                "LEVEL",
                THINKING_LEVELS,
                hidden=("--thinking",),
            ),
            CommandOption(
                ("--architect",), "One model plans, you approve the plan, another carries it out."
            ),
            CommandOption(
                ("--plan-model",),
                "The model that plans, in architect mode; switches it on.",
                "text",
                "MODEL",
            ),
            CommandOption(
                ("--edit-model",),
                "The model that carries the plan out, in architect mode; switches it on.",
                "text",
                "MODEL",
                hidden=("--editor-model",),
            ),
            CommandOption(
                ("--system-prompt",), "Use this system prompt instead of ours.", "text", "TEXT"
            ),
            CommandOption(("--system-prompt-file",), "The same, from a file.", "text", "FILE"),
            CommandOption(
                ("--append-system-prompt",), "Add this to the system prompt.", "text", "TEXT"
            ),
            CommandOption(
                ("--append-system-prompt-file",), "The same, from a file.", "text", "FILE"
            ),
        ),
    ),
    OptionSection(
        "What it may do",
        (
            CommandOption(
                ("--permission-mode",),
                "default, plan, accept_edits, auto or bypass (acceptEdits, bypassPermissions and dontAsk too).",
                "text",
                "MODE",
                MODES,
            ),
            CommandOption(("--plan",), "The same as --permission-mode plan."),
            CommandOption(
                ("--dangerously-skip-permissions", "--yolo"),
                "The same as --permission-mode bypass.",
            ),
            CommandOption(
                ("--no-sandbox",),
                "Run commands as they are, with the network and the whole disk; bypass alone keeps the sandbox.",
            ),
            CommandOption(
                ("--allowedTools",),
                "Rules that are allowed without asking: 'read', 'write(src/**)'; with commas or repeated.",
                "many",
                "RULES",
                hidden=("--allowed-tools",),
            ),
            CommandOption(
                ("--disallowedTools",),
                "Rules that are denied; a bare tool is taken away from the model.",
                "many",
                "RULES",
                hidden=("--disallowed-tools",),
            ),
            CommandOption(
                ("--tools",), "Only these tools, with commas; '' for none.", "many", "NAMES"
            ),
            CommandOption(
                ("--add-dir",), "A further folder it may work in; may be repeated.", "many", "DIR"
            ),
        ),
    ),
    OptionSection(
        "Limits",
        (
            CommandOption(("--max-turns",), "Answers of the model in one turn.", "whole", "N"),
            CommandOption(
                ("--max-budget-usd",), "Money for the session, in US dollars.", "number", "USD"
            ),
            CommandOption(("--max-tokens",), "Tokens for the session.", "whole", "N"),
        ),
    ),
    OptionSection(
        "Input and output",
        (
            CommandOption(
                ("-p", "--print"),
                "Answer on standard output and exit; what is piped in is added to the prompt.",
            ),
            CommandOption(
                ("-i", "--image"), "Send a picture along; may be repeated.", "many", "FILE"
            ),
            CommandOption(
                ("--output-format",),
                "With -p: text (the last answer), json (one object) or stream-json (one object a line, as it happens).",
                "text",
                "FORMAT",
                ("text", "json", "stream-json"),
            ),
            CommandOption(
                ("--input-format",),
                "With -p: text, or stream-json (one message a line, several turns).",
                "text",
                "FORMAT",
                ("text", "stream-json"),
            ),
            CommandOption(
                ("--dialect",),
                "With JSON: whose names of tools and arguments are spoken, weft or claude (the Agent "
                "SDK's); claude where a program drives Weft with --input-format stream-json and "
                "without -p.",
                "text",
                "NAME",
                ("weft", "claude"),
            ),
            CommandOption(
                ("--include-partial-messages",), "With stream-json: text as it arrives, too."
            ),
            CommandOption(
                ("--permission-prompt-tool",),
                "With stream-json in and out: 'stdio' sends what needs leave to the program on the other side.",
                "text",
                "NAME",
                ("stdio",),
            ),
            CommandOption(
                ("--json-schema",),
                "The last answer must be JSON that fits this schema (a file, or the schema itself).",
                "text",
                "SCHEMA",
                hidden=("--output-schema",),
            ),
            CommandOption(
                ("-o", "--output-last-message"),
                "Write the last answer to this file, too.",
                "text",
                "FILE",
            ),
            CommandOption(("--verbose",), "Say on standard error what is being done."),
            CommandOption(
                ("--plain",),
                "Chat without redrawing anything: for screen readers and simple terminals.",
            ),
        ),
    ),
    OptionSection(
        "Other",
        (
            FOLDER,
            SET,
            CommandOption(("-V", "--version"), "Show the version.", hidden=("-v",)),
            HELP,
        ),
    ),
)
"""What a run takes: the chat, `-p`, `run` and `exec`."""

_LIMIT = CommandOption(("--limit",), "At most so many.", "whole", "N")
_AT = CommandOption(
    ("--at",), "Up to and including this message: its id, or its number from 0.", "text", "MESSAGE"
)
_PREVIEW = CommandOption(("--preview",), "Only show what would happen to each file.")
_OVERWRITE = CommandOption(
    ("--overwrite",),
    "Put this file back even though somebody else has changed it; may be repeated.",
    "many",
    "FILE",
)

VERBS: tuple[CommandSpec, ...] = (
    CommandSpec(
        "run",
        "Answer on standard output and exit: the same as -p",
        "[prompt]",
        aliases=("exec",),
        is_run=True,
    ),
    CommandSpec(
        "session",
        "List and show sessions, move in them, shorten, export, import and delete them",
        aliases=("sessions",),
        default="list",
        verbs=(
            CommandSpec(
                "list",
                "List sessions, newest first; words search titles and what was said",
                "[words]",
                (
                    ALL,
                    CommandOption(("--archived",), "Those that were archived, too."),
                    _LIMIT,
                    JSON,
                ),
                aliases=("ls",),
            ),
            CommandSpec("show", "Show what was said in a session", "ID", (JSON,)),
            CommandSpec("rename", "Give a session another title", "ID TITLE"),
            CommandSpec(
                "fork",
                "Start a new session that shares the past of another",
                "ID",
                (
                    _AT,
                    CommandOption(("-n", "--name"), "Title of the new session.", "text", "TITLE"),
                ),
            ),
            CommandSpec("tree", "Show every turn of every branch", "ID", (JSON,)),
            CommandSpec(
                "branch",
                "Begin a branch in a session; what is said next goes there",
                "ID",
                (
                    _AT,
                    CommandOption(("-n", "--name"), "Name of the branch.", "text", "NAME"),
                ),
            ),
            CommandSpec("switch", "Let a session go on with another branch", "ID BRANCH"),
            CommandSpec("checkpoint", "Name the place where a session stands", "ID [NAME]"),
            CommandSpec(
                "rewind",
                "Let a session and its files go back to what they were",
                "ID",
                (
                    CommandOption(
                        ("--to",),
                        "Up to and including this message (its id, or its number from 0), a checkpoint's name, or start.",
                        "text",
                        "PLACE",
                    ),
                    _PREVIEW,
                    CommandOption(("--files-only",), "Leave the conversation where it is."),
                    CommandOption(("--conversation-only",), "Leave files as they are."),
                    _OVERWRITE,
                    CommandOption(("-y", "--yes"), "Do not ask."),
                    JSON,
                ),
            ),
            CommandSpec(
                "undo",
                "Take the last rewind or compaction of a session back",
                "ID [rewind or compaction]",
                (_PREVIEW, _OVERWRITE, CommandOption(("-y", "--yes"), "Do not ask."), JSON),
            ),
            CommandSpec(
                "compact", "Tell the model the older part of a session as a summary", "ID [focus]"
            ),
            CommandSpec(
                "summarize",
                "Print a document from which somebody else can go on",
                "ID",
                aliases=("handover",),
            ),
            CommandSpec(
                "archive",
                "Take sessions out of the list; nothing is deleted",
                "ID...",
                (CommandOption(("--undo",), "Put them back."),),
            ),
            CommandSpec(
                "export",
                "Write a session as md, html, json or jsonl",
                "ID",
                (
                    CommandOption(
                        ("-f", "--format"),
                        "md, html, json or jsonl; by default what the file's name says, else md.",
                        "text",
                        "FORMAT",
                        ("md", "html", "json", "jsonl"),
                    ),
                    CommandOption(
                        ("-o", "--output"),
                        "File to write; without it, standard output.",
                        "text",
                        "FILE",
                    ),
                ),
            ),
            CommandSpec(
                "import",
                "Read a session from an export; only what was said is taken over",
                "FILE",
                (CommandOption(("-n", "--name"), "Title of the new session.", "text", "TITLE"),),
            ),
            CommandSpec(
                "delete",
                "Delete sessions for good",
                "ID...",
                (CommandOption(("-y", "--yes"), "Do not ask."),),
                aliases=("rm",),
            ),
        ),
    ),
    CommandSpec(
        "models",
        "List models, or fetch an embedded one",
        default="list",
        verbs=(
            CommandSpec(
                "list",
                "List the models that can be used; words pick some",
                "[words]",
                (JSON,),
                aliases=("ls",),
            ),
            CommandSpec(
                "pull", "Fetch an embedded model for use without a key and a network", "[NAME]"
            ),
        ),
    ),
    CommandSpec("stats", "Show what was used: sessions, turns, cost", "", (ALL, JSON)),
    CommandSpec("config", "Show every setting, its value and where it came from", "[KEY]", (JSON,)),
    CommandSpec("doctor", "Find out what this machine has and what is missing", "", (JSON,)),
    CommandSpec(
        "auth",
        "Keep API keys",
        default="list",
        verbs=(
            CommandSpec(
                "list",
                "Show which providers have a key, and from where",
                "",
                (JSON,),
                aliases=("ls",),
            ),
            CommandSpec(
                "login",
                "Keep a provider's key in a file that only you can read; piped in or typed unseen",
                "PROVIDER",
            ),
            CommandSpec("logout", "Forget a provider's key", "PROVIDER"),
        ),
    ),
    CommandSpec("completion", "Print a completion script for bash, zsh or fish", "SHELL"),
    CommandSpec("help", "Explain a command, or 'exit-codes', 'slash' or 'keys'", "[topic]"),
)


def run_options() -> tuple[CommandOption, ...]:
    """All options of a run."""
    return tuple(option for section in RUN for option in section.options)


def options_of(verb: CommandSpec) -> tuple[CommandOption, ...]:
    """All options that a command takes."""
    if verb.is_run:
        return run_options()
    return (*verb.options, FOLDER, SET, HELP)


def find_verb(name: str, verbs: tuple[CommandSpec, ...] = VERBS) -> CommandSpec | None:
    """The command of this name."""
    return next((verb for verb in verbs if name in (verb.name, *verb.aliases)), None)
