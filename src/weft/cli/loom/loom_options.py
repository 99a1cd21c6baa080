"""The commands of `weft loom` as data; loaded when one of them is asked for."""

from __future__ import annotations

from typing import Final

from weft.cli.command_spec import JSON, CommandOption, CommandSpec

_YES: Final = CommandOption(("-y", "--yes"), "Don't ask for confirmation.")
_MODELS: Final = CommandOption(
    ("-m", "--model"), "A model that writes branches; may be repeated.", "many", "MODEL"
)
_BRANCHES: Final = CommandOption(
    ("-n", "--branches"),
    "How many branches each model writes; 3 of one model, 1 of each of several.",
    "whole",
    "N",
)
_TOKENS: Final = CommandOption(
    ("-t", "--tokens"),
    "How long a branch may get, 10 to 8000 tokens; 200, or 40 of an embedded model.",
    "whole",
    "N",
)
_TEMPERATURE: Final = CommandOption(
    ("--temperature",), "How freely words are chosen, 0 to 2; 0.9.", "text", "T"
)
_STRATEGY: Final = CommandOption(
    ("--strategy",),
    "How models are made to continue a text; by default what fits each of them.",
    "text",
    "NAME",
    ("completion", "prefill", "system", "few_shot", "fim"),
)
_CONTEXT: Final = CommandOption(
    ("--context", "--system"),
    "What models are told beside the text; @FILE reads it, '' clears it.",
    "text",
    "TEXT",
)
_STOP: Final = CommandOption(
    ("--stop-when",),
    "Stop when this comes first: first, '2 done', $0.50, or several with commas between them.",
    "text",
    "RULE",
)
_ADAPTIVE: Final = CommandOption(
    ("--adaptive",),
    "Begin all branches of a model but its first where that one was undecided, if it reports "
    "probabilities.",
)
_PLAN: Final = (_MODELS, _BRANCHES, _TOKENS, _TEMPERATURE, _STRATEGY, _CONTEXT)
_NAME: Final = CommandOption(("--name",), "What lists call the tree.", "text", "NAME")
_AFTER: Final = CommandOption(
    ("--after",), "Only what is newer than this day, as 2026-05-01.", "text", "DAY"
)
_BEFORE: Final = CommandOption(
    ("--before",), "Only what is older than this day, as 2026-05-01.", "text", "DAY"
)
_OF_MODEL: Final = CommandOption(
    ("-m", "--model"), "Only of models whose name has this in it; may be repeated.", "many", "MODEL"
)
_BOOKMARKED: Final = CommandOption(("--bookmarked",), "Only with a bookmark.")
_LIMIT: Final = CommandOption(("--limit",), "Maximum number.", "whole", "N")
_ARCHIVED: Final = CommandOption(("--archived",), "Include archived trees.")

_GROW: Final = (
    CommandSpec(
        "new",
        "Make a tree that begins with a text, and grow branches of it",
        "[TEXT | @FILE | -]",
        (
            *_PLAN,
            _NAME,
            CommandOption(("--file",), "The text, from a file.", "text", "FILE"),
            CommandOption(("--empty",), "Grow nothing yet."),
            _ADAPTIVE,
            _STOP,
            JSON,
        ),
        aliases=("run",),
        examples=(
            "weft loom new 'Once upon a time' -n 3 -m local:smollm2   # no key, no network",
            "weft loom new @draft.txt -m haiku -m gpt-5-mini -n 2     # two models, two each",
            "git log -5 | weft loom new - --context 'Release notes'   # the text from a pipe",
        ),
    ),
    CommandSpec(
        "continue",
        "Continue at the active node, or at another: down to where the tree ends or forks",
        "[ID]",
        (
            CommandOption(
                ("-b", "--branch"), "Continue with the child of this number.", "whole", "N"
            ),
            CommandOption(("--here",), "More branches at this very node, beside its children."),
            *_PLAN,
            _ADAPTIVE,
            _STOP,
            JSON,
        ),
        aliases=("grow",),
        examples=(
            "weft loom continue             # where you are",
            "weft loom continue -b 2 -n 5   # five branches of the second child",
            "weft loom continue .. --here   # more beside this one",
        ),
    ),
    CommandSpec(
        "select",
        "Go to a node: it becomes the active one, and the line to it the chosen one",
        "ID",
        (JSON,),
        aliases=("checkout",),
        examples=(
            "weft loom select 2      # the second child of the active node",
            "weft loom select ..     # its parent",
            "weft loom select ../1   # the first of its siblings",
        ),
    ),
    CommandSpec(
        "open",
        "Open a tree at a node in the view with keys",
        "[ID]",
        examples=("weft loom open 5dg5czt9",),
    ),
    CommandSpec(
        "view",
        "Open a tree in the view with keys: by id, from a file, or by the text it begins with",
        "[ID | FILE | TEXT]",
        examples=(
            "weft loom view                      # the tree that was used last",
            "weft loom view story.json           # imported first, if it is not known",
            "weft loom view 'Once upon a time'   # found by its text, or new",
        ),
    ),
)
_READ: Final = (
    CommandSpec(
        "active",
        "Show the active node: where the tree that was used last was left",
        "[ID]",
        (JSON,),
        examples=("weft loom active --json",),
    ),
    CommandSpec(
        "list",
        "List trees, last used first; words search their names and texts",
        "[words]",
        (
            _OF_MODEL,
            _BOOKMARKED,
            _AFTER,
            _BEFORE,
            CommandOption(
                ("--sort",),
                "updated (the default), created, oldest, name, nodes or cost.",
                "text",
                "ORDER",
                ("updated", "created", "oldest", "name", "nodes", "cost"),
            ),
            _ARCHIVED,
            _LIMIT,
            JSON,
        ),
        aliases=("ls",),
        examples=(
            "weft loom list --sort nodes --limit 5",
            "weft loom list --model haiku --after 2026-05-01 --json",
        ),
    ),
    CommandSpec(
        "roots",
        "List the texts that trees begin with, newest first",
        "",
        (_ARCHIVED, _LIMIT, JSON),
        examples=("weft loom roots --limit 10",),
    ),
    CommandSpec(
        "show",
        "Print the text from the root down to a node (the active one)",
        "[ID]",
        (
            CommandOption(("--segment",), "Only what this node adds."),
            CommandOption(("--tree",), "The whole tree as an outline."),
            JSON,
        ),
        examples=(
            "weft loom show                  # the text so far",
            "weft loom show 2 --segment      # what the second child adds",
            "weft loom show / --tree         # all branches of the tree",
        ),
    ),
    CommandSpec(
        "children",
        "List the children of a node (the active one) by number",
        "[ID]",
        (JSON,),
        examples=("weft loom children", "weft loom children .. --json"),
    ),
    CommandSpec(
        "compare",
        "Show word by word how two branches differ, from where they part",
        "A B",
        (JSON,),
        aliases=("diff",),
        examples=("weft loom compare 1 3",),
    ),
    CommandSpec(
        "stats",
        "Show how well each model did in a tree: share kept, wins among siblings, cost",
        "[ID]",
        (
            CommandOption(("-a", "--all"), "Of all trees together."),
            CommandOption(("--file",), "Of the trees in a file.", "text", "FILE"),
            JSON,
        ),
        examples=("weft loom stats --all", "weft loom stats --file story.json --json"),
    ),
    CommandSpec(
        "search",
        "Find nodes by words, by the beginning of an id or by the name of their tree, best first",
        "QUERY",
        (_OF_MODEL, _BOOKMARKED, _AFTER, _BEFORE, _LIMIT, JSON),
        aliases=("find",),
        examples=(
            "weft loom search storm --model haiku --bookmarked",
            "weft loom search 'storm -model:gpt after:2026-05-01'",
        ),
    ),
)
_CHANGE: Final = (
    CommandSpec(
        "edit",
        "Give a node another text: in $VISUAL or $EDITOR, by --text, or from a pipe",
        "[ID] [-]",
        (
            CommandOption(
                ("--text",), "The new text of this node; @FILE reads it.", "text", "TEXT"
            ),
            CommandOption(("--fork",), "Leave the node as it is, and make a sibling."),
            JSON,
        ),
        examples=(
            "weft loom edit 2                        # in your editor",
            "weft loom edit 2 --text ' a dark road'  # what stands there from now on",
        ),
    ),
    CommandSpec(
        "bookmark",
        "Bookmark a node (the active one)",
        "[ID]",
        (CommandOption(("--off",), "Take the bookmark away."), JSON),
        examples=("weft loom bookmark 2", "weft loom bookmark 2 --off"),
    ),
    CommandSpec(
        "rate",
        "Rate a node by a whole number; up is 1, down is -1",
        "ID [NUMBER]",
        (CommandOption(("--off",), "Take the rating away."), JSON),
        examples=("weft loom rate 2 up", "weft loom rate 2 --off"),
    ),
    CommandSpec(
        "weave",
        "Make one child out of paragraphs of two branches, where they part; it becomes active",
        "A B",
        (
            CommandOption(
                ("--paragraphs",),
                "Which, in this order: a1,b2 is the first of A and the second of B; by default all "
                "of A and what only B has.",
                "text",
                "LIST",
            ),
            CommandOption(("--list",), "Only show the paragraphs of both by their names."),
            JSON,
        ),
        examples=(
            "weft loom weave 1 3 --list               # what there is to choose from",
            "weft loom weave 1 3 --paragraphs a1,b2   # the beginning of one, the end of the other",
        ),
    ),
    CommandSpec(
        "delete",
        "Delete nodes with all below them, or whole trees; they can be restored",
        "ID...",
        (
            CommandOption(("--purge",), "Remove a whole tree for good; nothing restores it."),
            _YES,
            JSON,
        ),
        aliases=("rm",),
        examples=("weft loom delete 3", "weft loom delete 5dg5czt9 --purge --yes"),
    ),
    CommandSpec(
        "restore",
        "Bring back what was deleted with a node",
        "ID...",
        (JSON,),
        examples=("weft loom restore 5dg5czt9",),
    ),
    CommandSpec(
        "settings",
        "Show or change what a tree is called and how it is grown",
        "[ID]",
        (
            *_PLAN,
            _NAME,
            CommandOption(
                ("--logprobs",),
                "Ask for so many alternatives of each token; off asks for none.",
                "text",
                "K",
            ),
            CommandOption(("--archive",), "Leave it out of lists."),
            CommandOption(("--unarchive",), "Show it in lists again."),
            JSON,
        ),
        examples=(
            "weft loom settings",
            "weft loom settings --name 'the loom' -m haiku -n 4 --tokens 80",
        ),
    ),
)
_FILES: Final = (
    CommandSpec(
        "export",
        "Write a tree as json, html or basemode, or the line to a node as md",
        "[ID]",
        (
            CommandOption(
                ("-f", "--format"),
                "json, md, html or basemode; by default what the file's name says, else json.",
                "text",
                "FORMAT",
                ("json", "md", "html", "basemode"),
            ),
            CommandOption(
                ("-o", "--output"), "File to write; without it, standard output.", "text", "FILE"
            ),
        ),
        examples=(
            "weft loom export -o story.md           # the chosen line, to read",
            "weft loom export / -o story.html       # all branches on one page",
            "weft loom export 5dg5czt9 > t.json     # all of it, to be imported again",
        ),
    ),
    CommandSpec(
        "import",
        "Read trees from files of Weft, basemode, tinyloom, minihf, bonsai, ChatGPT or Claude; "
        "what is known is left as it is",
        "FILE...",
        (JSON,),
        examples=("weft loom import story.json conversations.zip", "weft loom import - < t.json"),
    ),
)
LOOM_VERBS: Final[tuple[CommandSpec, ...]] = (*_GROW, *_READ, *_CHANGE, *_FILES)
