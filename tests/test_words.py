"""What users read says permission, approval and user: words that only we understood stay out.

Held for the string literals of the source (not for comments and docstrings), for the tables and
tool descriptions that lie beside them, for the help of every command and the man page, and for the
README, the pages of `docs/`, the notes on changes, and the source of the web page without its
comments.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from scripts.man_page import MAN_PAGE

from tests.support.example_count import cases
from tests.support.source_code import ROOT, SRC, parsed, python_files
from weft.cli.command_spec import CommandSpec
from weft.cli.help import main_help, topic_help
from weft.cli.options import VERBS

DEFINES_WORDS = {"glossary.md", "renames.md"}
"""Pages that have to name the old words."""

_BEFORE_LEAVE = (
    r"(?:your|their|its|his|our|my|whose|\w+'s|the|a|any|no|more|widens?|ask(?:s|ed|ing)?"
    r"|needs?|needed|gives?|gave|given|gets?|got|have|has|had|with|without|for|of|is"
    r"|grant(?:s|ed)?|requests?|requires?|obtains?|by)"
)

WORDS: dict[str, tuple[str, str]] = {
    # What comes back: a pattern for it, and an example that has to be found.
    "leave (permission)": (rf"\b{_BEFORE_LEAVE} leave\b(?! (?:out|it|them|alone))", "needs leave"),
    "Leave (permission), first": (
        r"\bLeave (?:that|ends|given|for)\b|\| leave \|"
        r"|\b[Ll]eave (?:is|was|granted|denied|refused)\b"
        r"|\b[Ll]eave to (?:run|edit|read|write|use)\b|\b[Ll]eave of the user\b",
        "Leave ends with the program",
    ),
    # Whatever is left, a permission among it, is followed by an object, or it is a word of a list.
    "leave (not a verb)": (
        r"(?<!we )(?<!:)\b[Ll]eave\b(?![|)]| ?[`*]"
        r"| (?:out|it|them|the|all|files|behind|alone|an?|no|nothing)\b)"
        r"|\b[Ll]eaves (?:granted|given)\b",
        "leave revoked",
    ),
    "May it?": (r"\bMay it\b", "May it run this?"),
    # Not the old value of a field, nor the Unix user: both stand as code.
    "person": (r"\b[Pp]ersons?\b(?!\"?`)", "ask the person"),
    "somebody": (r"\b(?:[Ss]ome|[Aa]ny|[Ee]very)body\b", "somebody else changed it"),
    "nobody": (r"\b[Nn]obody\b(?!`)", "nobody can be asked"),
    "whoever": (r"\b[Ww]ho(?:m)?ever\b", "whoever reads it"),
    "trespass": (r"\b[Tt]respass", "trespasses were found"),
    "workshop": (r"\b[Ww]orkshops?\b", "the workshop is closed"),
    "equipment": (r"\b[Ee]quipment\b", "the equipment of a turn"),
    "desk": (r"\b[Dd]esks?\b", "the desk of the session"),
    "door": (r"\b[Dd]oors?\b", "through the door of the workspace"),
    "family": (
        r"\b(?:the|its|a) famil(?:y|ies) of (?:the )?(?:agent|session)s?\b",
        "the family of agents",
    ),
    "strays": (r"\b[Ss]trays?\b", "strays were killed"),
    "carrier": (r"\b[Cc]arriers?\b", "the carrier of the overlay"),
    "household": (r"\b[Hh]ousehold\b", "the household of the session"),
    "errand": (r"\b[Ee]rrands?\b", "an errand ended"),
    "purse": (r"\b[Pp]urse\b", "the purse is empty"),
    "comeback": (r"\b[Cc]omeback\b", "the comeback failed"),
    "charter": (r"\b[Cc]harter\b", "the cell's charter"),
    "unclaimed": (r"\b[Uu]nclaimed\b", "unclaimed changes"),
    "beside the turns": (r"\bbeside the (?:turns?|conversation)\b", "runs beside the turns"),
    "wishes": (r"\bwish(?:es)?\b", "the wishes of the caller"),
    # The sentences of the chat and the command line.
    "again in this turn": (r"\balso again in this turn\b", "Yes, also again in this turn"),
    "no coder": (r"\bno coder\b", "it is small and no coder"),
    "keeps a key": (r"\bkeeps? (?:a|the|API) keys?\b", "keeps a key for a better one"),
    "Go on with": (r"\bGo on (?:with|in a)\b", "Go on with which branch?"),
    "Where to?": (r"\bWhere to\?", "Where to?"),
    "went back": (r"\b(?:conversation|files?) (?:went|goes) back\b", "the conversation went back"),
    "is not kept, ignored": (r"\bnot kept, ignored\b", "is not kept, ignored"),
    "keeps no list": (r"\bkeeps no list\b", "the model keeps no list"),
    "waits to be said": (r"\bwaits to be said\b", "nothing waits to be said"),
    "names no model": (r"\bnames no model\b", "'opus' names no model"),
    "that is no": (r"\b[Tt]hat is no (?!longer|more)\w+", "that is no key"),
    "wants to act": (r"\bwants to act\b", "This folder wants to act"),
    "do not count": (r"\bdo(?:es)? not count\b(?! as)", "its settings do not count"),
    "writing a call of": (r"\bwriting a call of\b", "writing a call of shell"),
    "planning anew": (r"\bplann(?:ing|ed) anew\b", "planning anew"),
    "Keep nothing": (r"\bKeep nothing\b", "Keep nothing."),
    "so many": (r"\b[Aa]t most so many\b", "At most so many."),
    "the older part": (r"\bthe older part\b", "Tell the model the older part as a summary"),
    "can go on": (r"\bfrom which .{1,20} can go on\b", "from which somebody else can go on"),
    "this place is called": (r"\bthis place is called\b", "this place is called good"),
    "it holds:": (r"\bit holds:", "it holds: bubblewrap"),
    "Held promises": (r"\b[Hh]eld promises\b", "Held promises"),
}


def found(text: str) -> list[str]:
    """The names of the words that a text has."""
    plain = " ".join(text.split())
    return [name for name, (pattern, _) in WORDS.items() if re.search(pattern, plain)]


def literals(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and text of each string of a module; an f-string is one text, with `…` for its values.

    A single word is left out: it is a key, or a stored value, and those do not change.
    """
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        text: object = None
        if isinstance(node, ast.Expr):  # a docstring, of a module, a function or a field
            skipped.add(node.value)
        elif isinstance(node, ast.JoinedStr):
            skipped.update(node.values)
            text = "".join(_piece(value) for value in node.values)
        elif isinstance(node, ast.Constant) and node not in skipped:
            text = node.value
        if isinstance(text, str) and " " in text:
            yield node.lineno, text  # type: ignore[attr-defined]  # both kinds have it


def _piece(value: ast.expr) -> str:
    return str(value.value) if isinstance(value, ast.Constant) else "…"


def helps(specs: tuple[CommandSpec, ...] = VERBS, before: tuple[str, ...] = ()) -> Iterator[str]:
    """The help of each command and of what is below it."""
    for spec in specs:
        yield topic_help((*before, spec.name), 100)
        yield from helps(spec.verbs, (*before, spec.name))


def pages() -> list[Path]:
    """The pages at the top, those of `docs/` with its folders, and the notes on changes."""
    below = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "changes").glob("*.md")]
    documents = [*sorted(ROOT.glob("*.md")), *sorted(below)]
    return [each for each in documents if each.name not in DEFINES_WORDS]


def page_sources() -> list[Path]:
    """The sources of the web page: its texts stand in them."""
    return sorted((ROOT / "web" / "src").rglob("*.ts*"))


def without_comments(source: str) -> list[str]:
    """The lines of a TypeScript file; those of comments are empty."""
    blanked = re.sub(r"/\*.*?\*/", lambda it: "\n" * it[0].count("\n"), source, flags=re.DOTALL)
    return [re.sub(r"(?:^|\s)//.*", "", line) for line in blanked.splitlines()]


def data_files() -> list[Path]:
    """What lies beside the modules and is read by them: tool descriptions, the catalogue."""
    return sorted([*SRC.rglob("*.json"), *SRC.rglob("*.tsv")])


def test_a_string_of_the_source_has_none_of_the_words() -> None:
    hits = [
        f"{file.relative_to(SRC)}:{line} {names}"
        for file in python_files()
        for line, text in literals(parsed(file))
        if (names := found(text))
    ]
    assert hits == []


def test_no_help_has_one_of_the_words() -> None:
    topics = [("slash",), ("keys",), ("exit-codes",)]
    texts = [main_help(100), *helps(), *(topic_help(topic, 100) for topic in topics)]
    assert [names for text in texts if (names := found(text))] == []


@pytest.mark.parametrize("file", [*data_files(), MAN_PAGE], ids=lambda file: file.name)
def test_a_table_a_tool_description_and_the_man_page_have_none_of_the_words(file: Path) -> None:
    lines = file.read_text("utf-8").splitlines()
    # A list of words may have the verb; a sentence about permission is found by the other patterns.
    names_in = _names_in_list if file.suffix == ".tsv" else found
    assert [(each.strip()[:80], names) for each in lines if (names := names_in(each))] == []


def _names_in_list(line: str) -> list[str]:
    return [name for name in found(line) if name != "leave (not a verb)"]


@pytest.mark.parametrize("file", cases(page_sources()), ids=lambda file: file.name)
def test_a_text_of_the_web_page_has_none_of_the_words(file: Path) -> None:
    lines = without_comments(file.read_text("utf-8"))
    assert [(each.strip()[:80], names) for each in lines if (names := found(each))] == []


def test_a_comment_of_the_web_page_is_not_what_users_read() -> None:
    source = '/** Nobody.\n * The person. */\nconst a = 1; // nobody\nconst b = "https://nobody";\n'
    assert [number for number, line in enumerate(without_comments(source)) if found(line)] == [3]


def test_the_descriptions_of_the_tools_are_among_what_is_read() -> None:
    assert {"manifest.json", "agent.json"} <= {file.name for file in data_files()}


@pytest.mark.parametrize("page", cases(pages()), ids=lambda page: page.name)
def test_a_page_of_the_documentation_has_none_of_the_words(page: Path) -> None:
    # By paragraph: a phrase may be broken over two lines, and a table row is a line of its own.
    paragraphs = re.split(r"\n(?=\s*\n|\|)", page.read_text("utf-8"))
    assert [(each[:80], names) for each in paragraphs if (names := found(each))] == []


@pytest.mark.parametrize(("name", "example"), [(name, each) for name, (_, each) in WORDS.items()])
def test_each_word_is_found_where_it_is_planted(name: str, example: str) -> None:
    assert name in found(f"weft: {example}")
    planted = ast.parse(f'"""Docstring."""\ndef f(x):\n    return f"{{x}} {example}"')
    assert [names for _, text in literals(planted) if name in (names := found(text))]


@pytest.mark.parametrize(
    "text",
    [
        "leave was granted",
        "the user granted leave",
        "requires leave",
        "leave denied",
        "leave to edit calc.py",
        "Leave to run it was given",
        "by leave of the user",
        "| leave | what the user allowed |",
        "Allow leave?",
        "No leave",
        "leave missing",
        "Leave: once",
        "you gave it leave",
        "leaves granted: 3",
    ],
)
def test_leave_is_found_wherever_it_stands_for_permission(text: str) -> None:
    assert found(text) != []


@pytest.mark.parametrize(
    "text",
    [
        "leave it as it is",
        "leave out what does not matter",
        "standard output is closed; leave it open",
        "what the user wants to leave out",
        "it leaves nothing behind",
        "a link may not leave the project",
        "in a shared folder any user can leave a file",
        "a personal file in your home",
        "Leave files as they are.",
        "that is no longer needed",
        "the bookkeeper wished",
    ],
)
def test_ordinary_sentences_are_no_hits(text: str) -> None:
    assert found(text) == []


def test_docstrings_and_comments_are_not_what_users_read() -> None:
    module = ast.parse('"""Nobody."""\nclass A:\n    x: int = 0\n    """Nobody."""\n# nobody\n')
    assert list(literals(module)) == []
