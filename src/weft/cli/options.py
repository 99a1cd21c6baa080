"""The command line as data: every option and every command, with a sentence each.

Parsing, help, completion scripts and the test that compares `docs/cli.md` all read these tables.
"""

from __future__ import annotations

from weft.cli.command_spec import JSON, CommandOption, CommandSpec, OptionSection
from weft.thinking_levels import THINKING_LEVELS

HELP = CommandOption(("-h", "--help"), "Show this help.")
FOLDER = CommandOption(("-C", "--cd"), "Work in this folder.", "text", "DIR", hidden=("--cwd",))
SET = CommandOption(("--set",), "Set a setting for this run; may be repeated.", "many", "KEY=VALUE")
SETTINGS = CommandOption(
    ("--settings",),
    "Settings for this run: a file (TOML or JSON), or JSON; rules and hooks add to yours; may be "
    "repeated.",
    "many",
    "SETTINGS",
)
PROFILE = CommandOption(
    ("--profile",),
    "Use the settings, providers and keys of this profile ([profiles.NAME] in config.toml).",
    "text",
    "NAME",
)
ALL = CommandOption(("-a", "--all"), "Of every folder, not just this one.")

MODE_WORDS = {
    "default": "asks first",
    "accept_edits": "edits allowed",
    "plan": "plan only",
    "auto": "auto in sandbox",
    "bypass": "asks nothing",
}
"""What a permission mode is called wherever the user reads of it, by its value."""
MODES = (
    *MODE_WORDS,
    *("acceptEdits", "bypassPermissions", "dontAsk"),
)

PLAIN = CommandOption(
    ("--plain",), "Chat without redrawing the screen: for screen readers and simple terminals."
)

RUN: tuple[OptionSection, ...] = (
    OptionSection(
        "Session",
        (
            CommandOption(("-c", "--continue"), "Resume the newest session of this folder."),
            CommandOption(
                ("-r", "--resume", "-s", "--session"),
                "Resume a session by its id, the beginning of its id, or its title; "
                "without one, pick from a list.",
                "maybe",
                "[ID]",
            ),
            CommandOption(
                ("--fork",),
                "With -c or -r: continue in a new session that shares the history; the "
                "old one stays as it is.",
                hidden=("--fork-session",),
            ),
            CommandOption(
                ("--session-id",), "Give the new session this id (or resume it).", "text", "ID"
            ),
            CommandOption(("-n", "--name"), "Title of the new session.", "text", "TITLE"),
            CommandOption(
                ("--ephemeral", "--no-session"),
                "Don't save the session.",
                hidden=("--no-session-persistence",),
            ),
        ),
    ),
    OptionSection(
        "Model",
        (
            CommandOption(
                ("-m", "--model"),
                "Model, as provider:model or provider/model, optionally followed by :EFFORT.",
                "text",
                "MODEL",
            ),
            CommandOption(
                ("--fallback-model",),
                "Models that answer while the model cannot be reached, comma-separated.",
                "text",
                "MODELS",
            ),
            CommandOption(
                ("--effort",),
                "Thinking level: default, off, minimal, low, medium, high, xhigh or max.",
                "text",
                "LEVEL",
                THINKING_LEVELS,
                hidden=("--thinking",),
            ),
            CommandOption(
                ("--agent",),
                "Start as an agent of the project or of yours: with its system prompt, model and "
                "tools.",
                "text",
                "NAME",
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
        "Permissions",
        (
            CommandOption(
                ("--permission-mode",),
                f"{', '.join(f'{value} ({words})' for value, words in MODE_WORDS.items())}; "
                "acceptEdits, bypassPermissions and dontAsk too.",
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
                "Run commands without the sandbox, with the network and the whole disk; "
                "bypass alone keeps the sandbox.",
            ),
            CommandOption(
                ("--allowedTools",),
                "Rules to allow without asking: 'read', 'write(src/**)'; comma-separated "
                "or repeated.",
                "many",
                "RULES",
                hidden=("--allowed-tools",),
            ),
            CommandOption(
                ("--disallowedTools",),
                "Rules to deny; a bare tool name removes that tool.",
                "many",
                "RULES",
                hidden=("--disallowed-tools",),
            ),
            CommandOption(
                ("--tools",), "Only these tools, comma-separated; '' for none.", "many", "NAMES"
            ),
            CommandOption(
                ("--add-dir",), "Another folder to work in; may be repeated.", "many", "DIR"
            ),
            CommandOption(
                ("--mcp-config",),
                "MCP servers besides the configured ones: a file, or JSON; may be repeated.",
                "many",
                "SERVERS",
            ),
            CommandOption(
                ("--strict-mcp-config",), "Use the MCP servers of --mcp-config and no others."
            ),
        ),
    ),
    OptionSection(
        "Limits",
        (
            CommandOption(
                ("--max-turns",), "Maximum number of model answers in one turn.", "whole", "N"
            ),
            CommandOption(
                ("--max-time",),
                "Maximum time of work in one turn, also in a command: 90s, 30m, 2h.",
                "text",
                "TIME",
            ),
            CommandOption(
                ("--max-tool-calls",), "Maximum number of tool calls in one turn.", "whole", "N"
            ),
            CommandOption(
                ("--max-budget-usd",),
                "Maximum cost of the session, in US dollars.",
                "number",
                "USD",
            ),
            CommandOption(
                ("--max-tokens",), "Maximum number of tokens for the session.", "whole", "N"
            ),
        ),
    ),
    OptionSection(
        "Input and output",
        (
            CommandOption(
                ("-p", "--print"),
                "Answer on standard output and exit; piped input is added to the prompt.",
            ),
            CommandOption(
                ("--bg",),
                "Work in the background, in a server of this machine; prints the session's id.",
            ),
            CommandOption(
                ("-i", "--image"), "Attach an image or a PDF; may be repeated.", "many", "FILE"
            ),
            CommandOption(
                ("--output-format",),
                "With -p: text (the last answer), json (one object) or stream-json (one "
                "object per line, as it happens).",
                "text",
                "FORMAT",
                ("text", "json", "stream-json"),
            ),
            CommandOption(
                ("--input-format",),
                "With -p: text, or stream-json (one message per line, several turns).",
                "text",
                "FORMAT",
                ("text", "stream-json"),
            ),
            CommandOption(
                ("--dialect",),
                "With JSON: which names tools and arguments have, weft or claude (the Agent "
                "SDK's); claude by default where a program drives Weft with "
                "--input-format stream-json and "
                "without -p.",
                "text",
                "NAME",
                ("weft", "claude"),
            ),
            CommandOption(
                ("--include-partial-messages",), "With stream-json: also text as it arrives."
            ),
            CommandOption(
                ("--permission-prompt-tool",),
                "With stream-json in and out: 'stdio' sends permission requests to the "
                "program on the other side.",
                "text",
                "NAME",
                ("stdio",),
            ),
            CommandOption(
                ("--json-schema",),
                "The last answer must be JSON that matches this schema (a file, or the "
                "schema itself).",
                "text",
                "SCHEMA",
                hidden=("--output-schema",),
            ),
            CommandOption(
                ("-o", "--output-last-message"),
                "Also write the last answer to this file.",
                "text",
                "FILE",
            ),
            CommandOption(("--verbose",), "Report progress on standard error."),
            PLAIN,
        ),
    ),
    OptionSection(
        "Other",
        (
            FOLDER,
            SETTINGS,
            SET,
            PROFILE,
            CommandOption(("-V", "--version"), "Show the version.", hidden=("-v",)),
            HELP,
        ),
    ),
)
"""What a run takes: the chat, `-p`, `run` and `exec`."""

_USER = CommandOption(("--user",), "In every project of yours, not in this one.")
_LIMIT = CommandOption(("--limit",), "Maximum number.", "whole", "N")
_AT = CommandOption(
    ("--at",), "Up to and including this message: its id, or its number from 0.", "text", "MESSAGE"
)
_PREVIEW = CommandOption(("--preview",), "Only show what would happen to each file.")
_OVERWRITE = CommandOption(
    ("--overwrite",),
    "Restore this file even though it was changed outside the session; may be repeated.",
    "many",
    "FILE",
)

_YES = CommandOption(("-y", "--yes"), "Don't ask for confirmation.")
_WHY = CommandOption(("--why",), "The reasons.", "text", "TEXT")
_KIND = CommandOption(
    ("--kind",),
    "goal, decision, option, action, outcome, observation, revisit or constraint.",
    "text",
    "KIND",
)
_STATUS = CommandOption(
    ("--status",),
    "proposed, active, superseded, abandoned or done.",
    "text",
    "STATUS",
    ("proposed", "active", "superseded", "abandoned", "done"),
)

_FAN = (
    CommandOption(("-n", "--candidates"), "How many; 4 without it.", "whole", "N"),
    CommandOption(
        ("-m", "--model"), "A model for candidates; several are taken in turn.", "many", "MODEL"
    ),
    CommandOption(
        ("--verify",), "The command that shows whether a candidate is right.", "text", "CMD"
    ),
    CommandOption(("--verify-runs",), "How often it is run for each.", "whole", "N"),
    CommandOption(
        ("--base",),
        "Begin with the project as it is (now), or as the last commit has it (head).",
        "text",
        "BASE",
        ("now", "head"),
    ),
    CommandOption(
        ("--stop-when",),
        "Stop the others when one is verified, or all when so much is used, as $0.50.",
        "text",
        "RULE",
    ),
    CommandOption(
        ("--judge",),
        "A model that is asked which is better where candidates stand equal by the check.",
        "text",
        "MODEL",
    ),
    CommandOption(("--session",), "Branch off this session; without it, a new one.", "text", "ID"),
    JSON,
)

_PORT = CommandOption(("--port",), "The port; 7717 without it.", "whole", "N")
_SERVE = (
    _PORT,
    CommandOption(("--host",), "The address to listen on; 127.0.0.1 without it.", "text", "HOST"),
    CommandOption(("--unix",), "Listen on a unix socket at this path instead.", "text", "FILE"),
    CommandOption(
        ("--public",),
        "Let other machines in; needs --cert, --key and a password (WEFT_SERVER_PASSWORD).",
    ),
    CommandOption(("--cert",), "The certificate, as PEM.", "text", "FILE"),
    CommandOption(("--key",), "Its private key, as PEM.", "text", "FILE"),
    CommandOption(("--password-file",), "A file with the password.", "text", "FILE"),
    CommandOption(
        ("--name",),
        "A name that the server is reached by, and the port of a load balancer; may be repeated.",
        "many",
        "NAME",
    ),
    CommandOption(("--forget",), "Forget the tokens of all pages and programs."),
    CommandOption(
        ("--cluster-secret-file",),
        "The secret that the servers of one Postgres share (or WEFT_CLUSTER_SECRET).",
        "text",
        "FILE",
    ),
    CommandOption(
        ("--advertise",),
        "Where the other servers reach this one; its own address without it.",
        "text",
        "URL",
    ),
    CommandOption(
        ("--cluster-ca",), "Certificates by which other servers are known, as PEM.", "text", "FILE"
    ),
    CommandOption(
        ("--drain",),
        "When it ends, hand requests to the other servers for so many seconds; 1 without it.",
        "number",
        "SECONDS",
    ),
    CommandOption(
        ("--otel",), "Send traces of turns to OpenTelemetry; needs pip install 'weft[otel]'."
    ),
    CommandOption(
        ("--log-format",),
        "json: requests and errors on standard error, one JSON object a line.",
        "text",
        "FORMAT",
        ("text", "json"),
    ),
)


def _loom_verbs() -> tuple[CommandSpec, ...]:
    from weft.cli.loom.loom_options import LOOM_VERBS  # most who start the program grow no tree

    return LOOM_VERBS


def _mcp_verbs() -> tuple[CommandSpec, ...]:
    from weft.cli.mcp.mcp_options import MCP_VERBS  # as above

    return MCP_VERBS


_OUTSIDE_SANDBOX = CommandOption(
    ("--outside-sandbox",), "Where there is no sandbox, let the check run with all your rights."
)
_GOAL_VERBOSE = CommandOption(("-v", "--verbose"), "Also name each call of a tool.")
_GOAL_LIMITS = (
    CommandOption(("--check",), "A command line; exit code 0: it is reached.", "text", "CMD"),
    CommandOption(
        ("--judge",),
        "A model that is asked, where the check passes or there is none.",
        "text",
        "MODEL",
    ),
    CommandOption(("--max-budget-usd",), "End it when so much was spent for it.", "number", "USD"),
    CommandOption(("--max-time",), "End it after so much work: 30m, 2h.", "text", "TIME"),
    CommandOption(("--max-rounds",), "End it after so many rounds; 25.", "whole", "N"),
    _OUTSIDE_SANDBOX,
)
_GOAL_RUN = (
    *_GOAL_LIMITS,
    CommandOption(("-s", "--session"), "In this session, not in a new one.", "text", "ID"),
    CommandOption(("--bg",), "In a server, and leave the terminal."),
    CommandOption(("-m", "--model"), "The model of a new session.", "text", "MODEL"),
    CommandOption(
        ("--permission-mode",), "The permission mode of a new session.", "text", "MODE", MODES
    ),
    _GOAL_VERBOSE,
    JSON,
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
        "List, show, branch, rewind, compact, export, import and delete sessions",
        aliases=("sessions",),
        default="list",
        verbs=(
            CommandSpec(
                "list",
                "List sessions, newest first; words search titles and messages",
                "[words]",
                (
                    ALL,
                    CommandOption(("--archived",), "Include archived sessions."),
                    _LIMIT,
                    JSON,
                ),
                aliases=("ls",),
            ),
            CommandSpec("show", "Show the messages of a session", "ID", (JSON,)),
            CommandSpec("rename", "Rename a session", "ID TITLE"),
            CommandSpec(
                "fork",
                "Start a new session that shares the history of another",
                "ID",
                (
                    _AT,
                    CommandOption(("-n", "--name"), "Title of the new session.", "text", "TITLE"),
                ),
            ),
            CommandSpec("tree", "Show every turn of every branch", "ID", (JSON,)),
            CommandSpec(
                "branch",
                "Start a branch in a session; the next message goes there",
                "ID",
                (
                    _AT,
                    CommandOption(("-n", "--name"), "Name of the branch.", "text", "NAME"),
                ),
            ),
            CommandSpec("switch", "Switch a session to another branch", "ID BRANCH"),
            CommandSpec("checkpoint", "Save a checkpoint of a session", "ID [NAME]"),
            CommandSpec(
                "rewind",
                "Rewind a session and its files to an earlier state",
                "ID",
                (
                    CommandOption(
                        ("--to",),
                        "Up to and including this message (its id, or its number from "
                        "0), a checkpoint's name, or start.",
                        "text",
                        "PLACE",
                    ),
                    _PREVIEW,
                    CommandOption(("--files-only",), "Leave the conversation where it is."),
                    CommandOption(("--conversation-only",), "Leave files as they are."),
                    _OVERWRITE,
                    _YES,
                    JSON,
                ),
            ),
            CommandSpec(
                "differences",
                "Show the files that are not what a session's log tells of; the newest session "
                "without an ID",
                "[ID]",
                (JSON,),
            ),
            CommandSpec(
                "undo",
                "Undo the last rewind or compaction of a session",
                "ID [rewind or compaction]",
                (
                    _PREVIEW,
                    _OVERWRITE,
                    _YES,
                    JSON,
                ),
            ),
            CommandSpec(
                "exclude",
                "Send a message to the model no more, with the results of its tool calls; it "
                "stays in the history",
                "ID MESSAGE",
                (JSON,),
            ),
            CommandSpec("include", "Send a message again that was excluded", "ID MESSAGE"),
            CommandSpec("compact", "Summarize older messages of a session", "ID [focus]"),
            CommandSpec(
                "summarize",
                "Print a handover document",
                "ID",
                aliases=("handover",),
            ),
            CommandSpec(
                "archive",
                "Hide sessions from the list; nothing is deleted",
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
                    CommandOption(
                        ("--files",),
                        "Take the project's files at the end of each turn along, secrets in them "
                        "too (json and jsonl).",
                    ),
                ),
            ),
            CommandSpec(
                "import",
                "Read a session from an export; only its messages are imported",
                "FILE",
                (CommandOption(("-n", "--name"), "Title of the new session.", "text", "TITLE"),),
            ),
            CommandSpec(
                "delete",
                "Delete sessions permanently",
                "ID...",
                (_YES,),
                aliases=("rm",),
            ),
        ),
    ),
    CommandSpec(
        "models",
        "List models, or download an embedded one",
        default="list",
        verbs=(
            CommandSpec(
                "list",
                "List available models; words filter the list",
                "[words]",
                (JSON,),
                aliases=("ls",),
            ),
            CommandSpec(
                "pull", "Download an embedded model that needs no key and no network", "[NAME]"
            ),
        ),
    ),
    CommandSpec(
        "map",
        "Show the files and definitions of a project, those first that a request is about",
        "[paths]",
        (
            CommandOption(("--request",), "What the map is for, in words.", "text", "TEXT"),
            CommandOption(
                ("--request-file",),
                "The same, from a file; its path is from where you are, also with -C.",
                "text",
                "FILE",
            ),
            CommandOption(
                ("--focus",),
                "Files you know already, comma-separated: they are left out, and those that change "
                "together with them come up.",
                "maybe",
                "[FILES]",
            ),
            CommandOption(("--tokens",), "How long it may get; 1024.", "whole", "N"),
            CommandOption(
                ("--history",),
                "The past of a project without git, from a file as above: lines of [time, [files], "
                "subject].",
                "text",
                "FILE",
            ),
        ),
    ),
    CommandSpec(
        "context",
        "Show who uses what of the model's window: the last session here, or the one named",
        "[ID]",
        (CommandOption(("--diff",), "What the last compaction took, and what it put there."), JSON),
    ),
    CommandSpec(
        "receipts",
        "Show what the last answer claims, beside what was run; the newest session without an ID",
        "[ID] [MESSAGE]",
        (JSON,),
    ),
    CommandSpec(
        "request",
        "Show what the model was sent in a turn: cost by part, what changed, why the cache was "
        "missed; the last turn of the newest session without an ID",
        "[ID] [TURN]",
        (
            CommandOption(
                ("--call",),
                "A call of the turn by its number from 0; the last by default.",
                "index",
                "N",
            ),
            CommandOption(("--diff",), "What changed since the request before, line by line."),
            CommandOption(("--raw",), "The body of the request, byte for byte."),
            JSON,
        ),
    ),
    CommandSpec(
        "bisect",
        "Find the turn at which a check began to fail: it runs on the files of some turns, in "
        "overlays that leave nothing; the newest session without an ID",
        "[ID] -- CMD",
        (
            CommandOption(
                ("--good",),
                "A turn after which it passed, by its number or a message of it; without it, "
                "before the first.",
                "text",
                "TURN",
            ),
            CommandOption(
                ("--bad",),
                "A turn after which it failed; without it, the files as they are now.",
                "text",
                "TURN",
            ),
            CommandOption(("--jobs",), "Checks that run at once; 1 without it.", "whole", "N"),
            CommandOption(
                ("--timeout",), "How long one check may take; 600 without it.", "number", "SECONDS"
            ),
            CommandOption(("--note",), "Note what was found as an observation."),
            CommandOption(
                ("--yes",),
                "Without overlays, run the checks in copies, outside the sandbox.",
            ),
            JSON,
        ),
    ),
    CommandSpec(
        "blame",
        "Say what wrote a line: the message, the decision, who allowed it, the first check after "
        "it, and the commit",
        "FILE:LINE",
        (
            CommandOption(("--trailers",), "Print its session and turn as trailers of a commit."),
            CommandOption(
                ("--notes",),
                "Write them as a note on the commit of the line (refs/notes/weft), after a yes.",
            ),
            CommandOption(("--yes",), "Write the note without a question."),
            JSON,
        ),
    ),
    CommandSpec(
        "import",
        "Take over sessions and set-up of another agent; it shows first what that would be",
        "--from AGENT [FILE|ID]",
        (
            CommandOption(
                ("--from",),
                "The agent.",
                "text",
                "AGENT",
                choices=("claude", "codex", "pi", "opencode"),
            ),
            CommandOption(("--yes", "-y"), "Take over what is new without asking."),
            CommandOption(("--dry-run",), "Show what is there, and take over nothing."),
            CommandOption(("--no-setup",), "Only sessions."),
            JSON,
        ),
        examples=(
            "weft import --from claude               # what there is of this folder; asks",
            "weft import --from codex 01a1f62f --yes # one session, by its id there",
        ),
    ),
    CommandSpec(
        "memory",
        "Show what is remembered for this project and for every one; add, edit, forget",
        options=(JSON,),
        default="list",
        verbs=(
            CommandSpec("list", "Show what is remembered", "", (JSON,), aliases=("ls",)),
            CommandSpec("add", "Remember something in this project", "TEXT", (_USER,)),
            CommandSpec("edit", "Open the file in $VISUAL or $EDITOR", "", (_USER,)),
            CommandSpec("forget", "Forget something", "ID...", aliases=("rm",)),
        ),
    ),
    CommandSpec(
        "permissions",
        "Permission rules: list, add and remove them, and explain what they say of a command",
        options=(JSON,),
        default="list",
        verbs=(
            CommandSpec("list", "List the rules that count here", "", (JSON,), aliases=("ls",)),
            CommandSpec(
                "add",
                "Keep a rule in your settings",
                "allow|ask|deny RULE",
                (
                    CommandOption(
                        ("--match",), "What it has to cover; may be repeated.", "many", "EXAMPLE"
                    ),
                    CommandOption(
                        ("--not-match",),
                        "What it must not cover; may be repeated.",
                        "many",
                        "EXAMPLE",
                    ),
                ),
            ),
            CommandSpec(
                "import",
                "Take over rules of Claude Code (settings.json) and codex (*.rules)",
                "[FILE...]",
                (CommandOption(("--dry-run",), "Say what would be taken, and keep nothing."), JSON),
            ),
            CommandSpec(
                "remove",
                "Take a rule out of your settings",
                "allow|ask|deny RULE",
                aliases=("rm",),
            ),
            CommandSpec(
                "explain",
                "Say what would be decided of a command, and why; nothing is run",
                "-- COMMAND",
                (
                    CommandOption(("--mode",), "The permission mode; default.", "text", "MODE"),
                    CommandOption(
                        ("--tool",), "The tool, for a path or an address; shell.", "text", "TOOL"
                    ),
                    JSON,
                ),
            ),
            CommandSpec(
                "simulate",
                "Say what a rule would have changed in the sessions of this project",
                "[allow|ask|deny] RULE",
                (
                    CommandOption(("--mode",), "The permission mode; default.", "text", "MODE"),
                    CommandOption(("--all",), "The sessions of every project."),
                    JSON,
                ),
            ),
        ),
    ),
    CommandSpec(
        "decisions",
        "What was decided in this project and why: list, log, check and export it",
        aliases=("decision",),
        default="list",
        verbs=(
            CommandSpec(
                "list",
                "List decisions, newest first; words search them, nearest first",
                "[words]",
                (_KIND, _STATUS, JSON),
                aliases=("ls",),
            ),
            CommandSpec("show", "Show a decision with its options and evidence", "ID", (JSON,)),
            CommandSpec(
                "why",
                "Say why a file or a line is as it is: its commit, the turn that made it, and what "
                "was decided",
                "PATH[:LINE]",
                (JSON,),
            ),
            CommandSpec(
                "log",
                "Log a decision",
                "TITLE",
                (
                    _KIND,
                    _WHY,
                    CommandOption(
                        ("--scope",),
                        "A path, a glob or a symbol that it is about; may be repeated.",
                        "many",
                        "SCOPE",
                    ),
                    CommandOption(
                        ("--chosen",), "An option that was chosen: 'TITLE: WHY'.", "many", "OPTION"
                    ),
                    CommandOption(
                        ("--rejected",),
                        "An option that was rejected: 'TITLE: WHY'.",
                        "many",
                        "OPTION",
                    ),
                    CommandOption(
                        ("--supersedes",), "The decision that it replaces.", "text", "ID"
                    ),
                    CommandOption(("--parent",), "The goal that leads to it.", "text", "ID"),
                    CommandOption(("--tag",), "A word to find it by.", "many", "TAG"),
                    CommandOption(
                        ("--confidence",), "How sure you are, 0 to 100.", "text", "NUMBER"
                    ),
                    JSON,
                ),
            ),
            CommandSpec("supersede", "Let one decision replace another", "OLD NEW", (_WHY, JSON)),
            CommandSpec("accept", "Accept what was proposed", "ID...", (_WHY, JSON)),
            CommandSpec("abandon", "Give decisions up", "ID...", (_WHY, JSON)),
            CommandSpec(
                "purge",
                "Take decisions out for good, such as a secret that was logged by mistake",
                "ID...",
                (_YES, JSON),
            ),
            CommandSpec(
                "pulse",
                "Check the decisions for what is missing, stale or at odds",
                "",
                (CommandOption(("--check",), "Exit with 1 where something was found."), JSON),
            ),
            CommandSpec(
                "narrative",
                "Tell what was decided, oldest first",
                "",
                (
                    CommandOption(("--goal",), "Only what a goal led to.", "text", "ID"),
                    CommandOption(("--session",), "Only of a session.", "text", "ID"),
                    JSON,
                ),
            ),
            CommandSpec(
                "export",
                "Write the decisions as JSON, DOT, Mermaid or ADR files",
                "",
                (
                    CommandOption(
                        ("-f", "--format"),
                        "json (the default), dot, mermaid, or adr: a record for each decision.",
                        "text",
                        "FORMAT",
                        ("json", "dot", "mermaid", "adr"),
                    ),
                    CommandOption(
                        ("-o", "--output"),
                        "File (for adr: folder) to write; without it, standard output.",
                        "text",
                        "PATH",
                    ),
                ),
            ),
            CommandSpec(
                "import-adr",
                "Log architecture decision records (Markdown) of files or folders",
                "PATH...",
                (JSON,),
            ),
        ),
    ),
    CommandSpec(
        "fan",
        "Let several candidates work on one task, each in an overlay; verify, rank, keep one",
        "PROMPT",
        options=_FAN,
        default="run",
        default_takes_words=True,
        verbs=(
            CommandSpec("run", "Begin a fan-out, and show it until all have ended", "PROMPT", _FAN),
            CommandSpec("list", "List the fan-outs of this project", "", (JSON,), aliases=("ls",)),
            CommandSpec(
                "show",
                "Show the candidates of one, the best first",
                "ID",
                (
                    CommandOption(("--live",), "Keep the table, with its keys, on a terminal."),
                    JSON,
                ),
            ),
            CommandSpec("diff", "Show what a candidate changed", "ID NUMBER"),
            CommandSpec("compare", "Show how two candidates differ", "ID NUMBER NUMBER"),
            CommandSpec(
                "keep",
                "Put a candidate's changes into the project, merged with yours and verified",
                "ID NUMBER",
                (
                    CommandOption(("--dry-run",), "Only show what would happen to each file."),
                    CommandOption(("--force",), "Also where the check fails on the result."),
                    CommandOption(
                        ("--conflicts",),
                        "Where you and the candidate changed the same lines: keep yours (mine), or "
                        "put both there between conflict markers (markers).",
                        "text",
                        "HOW",
                        ("mine", "markers"),
                    ),
                    JSON,
                ),
            ),
            CommandSpec(
                "prune",
                "Remove the overlays of candidates",
                "ID NUMBER...",
                (CommandOption(("--force",), "Also where work is lost that cannot be stored."),),
            ),
            CommandSpec("restore", "Undo a prune", "ID NUMBER..."),
            CommandSpec(
                "resume",
                "Continue candidates that were interrupted or stopped",
                "ID [NUMBER...]",
                (JSON,),
            ),
            CommandSpec("open", "Continue a candidate's conversation in the chat", "ID NUMBER"),
            CommandSpec("close", "End a fan-out, and remove its overlays", "ID"),
        ),
    ),
    CommandSpec(
        "loom",
        "Grow trees of text: several continuations at once, by several models; read, compare, "
        "weave, search and export them",
        default="list",
        verbs=_loom_verbs,
        examples=(
            "weft loom new 'Once upon a time' -n 3   # a tree with three branches",
            "weft loom continue -b 2                 # continue with the second",
            "weft loom show                          # the text so far",
        ),
    ),
    CommandSpec("stats", "Show usage: sessions, turns, cost", "", (ALL, JSON)),
    CommandSpec(
        "audit",
        "List every effect of a session with who allowed it and why: the last one here, or the one "
        "named",
        "[ID]",
        (CommandOption(("--changes",), "Only what may change something, not what reads."), JSON),
    ),
    CommandSpec(
        "config",
        "Show settings, or change your own",
        options=(JSON,),
        default="list",
        default_takes_words=True,
        verbs=(
            CommandSpec(
                "list",
                "Show every setting, its value and where it came from",
                "[KEY]",
                (JSON,),
                aliases=("ls",),
            ),
            CommandSpec("get", "Print the value of a setting", "KEY", (JSON,)),
            CommandSpec(
                "set",
                "Set a setting in your config.toml; comments and order stay as they are",
                "KEY VALUE",
            ),
            CommandSpec("unset", "Take a setting out of your config.toml", "KEY"),
        ),
    ),
    CommandSpec("doctor", "Check what this machine has and what is missing", "", (JSON,)),
    CommandSpec(
        "auth",
        "Save API keys",
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
                "Save a provider's key in a file that only you can read; piped in or "
                "typed at a hidden prompt",
                "PROVIDER",
            ),
            CommandSpec("logout", "Delete a provider's key", "PROVIDER"),
            CommandSpec(
                "status",
                "Say whether any provider has a key; exit code 1 when none has",
                "",
                (JSON,),
            ),
        ),
    ),
    CommandSpec(
        "lsp",
        "Show language servers, or restart them",
        default="status",
        verbs=(
            CommandSpec(
                "status",
                "Show the language servers for this project, and those that run",
                "",
                (JSON,),
            ),
            CommandSpec("restart", "Stop all that run; they start again when they are needed"),
        ),
    ),
    CommandSpec(
        "mcp",
        "Show MCP servers, or add, allow and remove them",
        options=(JSON,),
        default="list",
        verbs=_mcp_verbs,
        examples=(
            "weft mcp add time -- uvx mcp-server-time   # for you, in this folder",
            "weft mcp list                              # what there is, and its state",
        ),
    ),
    CommandSpec(
        "serve",
        "Serve sessions over HTTP to programs and to the page",
        options=(
            *_SERVE,
            CommandOption(("--detach",), "Go on in the background."),
        ),
        default="start",
        verbs=(
            CommandSpec(
                "start",
                "Serve until it is stopped",
                "",
                (
                    *_SERVE,
                    CommandOption(("--detach",), "Go on in the background."),
                ),
            ),
            CommandSpec("status", "Show the servers that run", "", (JSON,)),
            CommandSpec("stop", "Stop the server; turns that run are suspended", "", (_PORT,)),
        ),
    ),
    CommandSpec(
        "cluster",
        "Try several servers on one database out",
        verbs=(
            CommandSpec(
                "demo",
                "Run Postgres and several servers on this machine until Ctrl-C",
                "",
                (
                    CommandOption(("--servers",), "How many; 3 without it.", "whole", "N"),
                    CommandOption(("--port",), "Of the first one; 7717 without it.", "whole", "N"),
                ),
            ),
        ),
    ),
    CommandSpec(
        "web",
        "Open the page in a browser, with a server of its own if none runs",
        "",
        (*_SERVE, CommandOption(("--no-open",), "Only print the link.")),
    ),
    CommandSpec(
        "attach",
        "Chat in a session of a running server, beside other chats, pages and programs",
        "[url] [session]",
        (PLAIN,),
    ),
    CommandSpec(
        "ps",
        "Show the sessions of all folders at a glance, those that need you first",
        "",
        (
            CommandOption(("--watch", "-w"), "Go on, and show what changes."),
            _LIMIT,
            JSON,
        ),
    ),
    CommandSpec(
        "logs",
        "Print what happened in a session",
        "ID",
        (
            CommandOption(("--follow", "-f"), "Print what happens from now on, too."),
            CommandOption(("--json",), "Print each fact as a line of JSON."),
        ),
    ),
    CommandSpec("queue", "Show what waits to be sent to a session, or send more", "ID [text]"),
    CommandSpec("stop", "Stop the turn of a session; it can be continued", "ID"),
    CommandSpec(
        "goal",
        "Work turn after turn until a check passes",
        "TEXT --check CMD",
        _GOAL_RUN,
        default="set",
        default_takes_words=True,
        verbs=(
            CommandSpec("set", "Work for a goal, in a session of its own", "TEXT", _GOAL_RUN),
            CommandSpec("show", "Show a goal, and what its checks came to", "[session]", (JSON,)),
            CommandSpec("pause", "Let the present step end, and begin no more", "[session]"),
            CommandSpec(
                "resume",
                "Continue a goal that is paused, or whose process is gone",
                "[session]",
                (_OUTSIDE_SANDBOX, _GOAL_VERBOSE, JSON),
            ),
            CommandSpec(
                "edit", "Change a goal from its next round on", "SESSION [text]", _GOAL_LIMITS
            ),
            CommandSpec("clear", "End a goal", "[session]"),
        ),
        examples=(
            "weft goal 'make the tests pass' --check 'make test' --permission-mode auto",
            "weft goal 'port it to the new API' --check 'make check' --max-budget-usd 5 "
            "--max-time 2h --bg",
        ),
    ),
    CommandSpec(
        "at",
        "Send a prompt at a time (17:00, 2027-01-31T17:00, +2h), in a session of its own",
        "TIME PROMPT",
        (
            CommandOption(("-s", "--session"), "In this session.", "text", "ID"),
            CommandOption(
                ("--every",), "Again and again, so often: 30s, 5m, 1h30m, 2d.", "text", "EVERY"
            ),
            CommandOption(("--max-rounds",), "With --every: how often at most; 100.", "whole", "N"),
            CommandOption(
                ("--until",), "With --every: no round after this time; 7 days.", "text", "TIME"
            ),
            CommandOption(("-m", "--model"), "The model of a new session.", "text", "MODEL"),
            CommandOption(
                ("--permission-mode",),
                "The permission mode of a new session.",
                "text",
                "MODE",
                MODES,
            ),
            JSON,
        ),
        examples=(
            "weft at 17:00 'run the tests and fix what fails'",
            "weft at +10m --every 1h 'look for new issues'",
        ),
    ),
    CommandSpec(
        "btw",
        "Ask a session a side question: answered from where it is, in none of its later requests",
        "SESSION QUESTION",
        (JSON,),
        examples=("weft btw ses_06b3 'which file was that in?'",),
    ),
    CommandSpec(
        "sandbox",
        "Run a command in the sandbox; what it changed is shown, and carried over on a yes",
        "-- CMD",
        (
            CommandOption(("--yes",), "Carry over what it may change without a question."),
            JSON,
        ),
        examples=(
            "weft sandbox -- npm install left-pad",
            "weft sandbox --yes 'make format && git diff --stat'",
        ),
    ),
    CommandSpec(
        "waits",
        "Show what sessions wait for, and what is to be sent to them",
        options=(JSON,),
        default="list",
        default_takes_words=True,
        verbs=(
            CommandSpec("list", "Show it", "[session]", (JSON,), aliases=("ls",)),
            CommandSpec("cancel", "End a wait, or a schedule", "ID", aliases=("rm",)),
        ),
    ),
    CommandSpec(
        "store",
        "Show what is kept and what goes next; back up, check, shrink and copy the store",
        default="show",
        options=(JSON,),
        verbs=(
            CommandSpec(
                "show",
                "Show the file contents of this project, which go next, and what is lost with them",
                "",
                (JSON,),
            ),
            CommandSpec("backup", "Copy the store as it is at one moment", "FILE", (JSON,)),
            CommandSpec(
                "verify",
                "Check the file, every content and every log; or a copy",
                "[file]",
                (JSON,),
            ),
            CommandSpec("vacuum", "Give back the room that is not needed", "", (JSON,)),
            CommandSpec("migrate", "Make or update the schema of a Postgres store", "[address]"),
            CommandSpec(
                "copy",
                "Copy a whole store between a SQLite file and Postgres, and compare both",
                "FROM TO",
                (JSON,),
            ),
            CommandSpec("path", "Print where the file is"),
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
    return (*verb.options, FOLDER, SETTINGS, SET, PROFILE, HELP)


def find_verb(name: str, verbs: tuple[CommandSpec, ...] = VERBS) -> CommandSpec | None:
    """The command of this name."""
    return next((verb for verb in verbs if name in (verb.name, *verb.aliases)), None)
