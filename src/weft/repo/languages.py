"""Languages by the names of files, and the grammars that read them.

A grammar is a wheel of its own.  None is imported before a file of its language is read, and never
in a session's process: a grammar is up to 10 MB of tables.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from typing import Final

import msgspec


class Grammar(msgspec.Struct, frozen=True):
    """Where a language's grammar comes from."""

    module: str
    function: str = "language"


GRAMMARS: Final[Mapping[str, Grammar]] = {
    "python": Grammar("tree_sitter_python"),
    "javascript": Grammar("tree_sitter_javascript"),
    "typescript": Grammar("tree_sitter_typescript", "language_typescript"),
    "tsx": Grammar("tree_sitter_typescript", "language_tsx"),
    "go": Grammar("tree_sitter_go"),
    "rust": Grammar("tree_sitter_rust"),
    "java": Grammar("tree_sitter_java"),
    "c": Grammar("tree_sitter_c"),
    "cpp": Grammar("tree_sitter_cpp"),
    "c_sharp": Grammar("tree_sitter_c_sharp"),
    "ruby": Grammar("tree_sitter_ruby"),
    "php": Grammar("tree_sitter_php", "language_php"),
    "elixir": Grammar("tree_sitter_elixir"),
    "bash": Grammar("tree_sitter_bash"),
    "kotlin": Grammar("tree_sitter_kotlin"),
    "swift": Grammar("tree_sitter_swift"),
    "scala": Grammar("tree_sitter_scala"),
    "lua": Grammar("tree_sitter_lua"),
    "zig": Grammar("tree_sitter_zig"),
    "html": Grammar("tree_sitter_html"),
    "css": Grammar("tree_sitter_css"),
    "sql": Grammar("tree_sitter_sql"),
    "markdown": Grammar("tree_sitter_markdown"),
}
"""Language → its grammar."""

SUFFIXES: Final[Mapping[str, str]] = {
    ".py": "python",
    ".pyi": "python",
    ".js": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
    ".jsx": "javascript",
    ".ts": "typescript",
    ".mts": "typescript",
    ".cts": "typescript",
    ".tsx": "tsx",
    ".go": "go",
    ".rs": "rust",
    ".java": "java",
    ".c": "c",
    # Of C++ too: what is in them tells.
    ".h": "c",
    ".cc": "cpp",
    ".cpp": "cpp",
    ".cxx": "cpp",
    ".hpp": "cpp",
    ".hh": "cpp",
    ".hxx": "cpp",
    ".cs": "c_sharp",
    ".rb": "ruby",
    ".rake": "ruby",
    ".php": "php",
    ".ex": "elixir",
    ".exs": "elixir",
    ".sh": "bash",
    ".bash": "bash",
    ".kt": "kotlin",
    ".kts": "kotlin",
    ".swift": "swift",
    ".scala": "scala",
    ".sc": "scala",
    ".lua": "lua",
    ".zig": "zig",
    ".html": "html",
    ".htm": "html",
    ".css": "css",
    ".sql": "sql",
    ".md": "markdown",
    ".markdown": "markdown",
}
"""Ending of a file's name → its language."""

_FOLDERS: Final = (
    "tests?|specs?|__tests__|testing|testdata|fixtures?|androidTest|e2e|bench(es|marks?)?"
    "|_?examples?|samples?|docs?|fuzz|demos?"
)
_NAMES: Final = (
    r"test_[^/]*|[^/]*_(test|spec)\.\w+|[^/]*\.(test|spec)\.\w+|[^/]*Tests?\.(java|kt|cs|php)"
    r"|conftest\.py|[^/]*\.(md|markdown)"
)

_MARK_BYTES: Final = 1_000
"""A file says in its head that it is generated, which a licence may make longer."""

PROSE: Final = frozenset({"html", "css", "sql", "markdown"})
"""Languages whose symbols are found by name, and whose files come behind code in a map."""


def language_of(path: str) -> str | None:
    """The language of a file, by its name; None for one that has no grammar."""
    return SUFFIXES.get(os.path.splitext(path)[1].lower())


def is_aside(path: str) -> bool:
    """True for tests, documents and examples, by their paths."""
    return _aside_path().search(path) is not None


def is_generated(pieces: bytes) -> bool:
    """True for what programs write, and say so, by the first words of a file, each once."""
    return _generated().match(pieces, 0, _MARK_BYTES) is not None


@cache
def _generated() -> re.Pattern[bytes]:
    marks = rb"(?:[Gg]enerated by|[Cc]ode generated|[Aa]utogenerated|automatically generated)"
    return re.compile(rb"auto generated\b|(?:\S+ )*?%b(?: \S+){0,25}? EDIT\b" % marks)


@cache
def _aside_path() -> re.Pattern[str]:
    # Not with the module: whoever only reads an index has no use for it.
    return re.compile(rf"(?i)(^|/)({_FOLDERS})/|(^|/)({_NAMES})$")
