"""Definitions of a source file, found by tree-sitter with one query for each language.

A query's patterns capture the whole definition as `@definition.<kind>` and its name as `@name`, as
the `tags.scm` files of editors do.  A file with syntax errors is read like any other: the parser
puts what it could not read into error nodes, and the queries look inside them.  Where it gave up on
a definition altogether, the keyword before a name tells.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Final

from tree_sitter import Language, Node, Parser, Query, QueryCursor

from weft.repo.definitions import Definition, cut_text
from weft.repo.languages import GRAMMARS

SIGNATURE_CHARS: Final = 160
_NAME_CHARS: Final = 120
_KIND: Final = "definition."
_KEYWORD: Final = re.compile(
    rb"^[ \t]*(?:[a-z]+(?:\([a-z]+\))?[ \t]+){0,3}?"
    rb"(class|struct|interface|trait|enum|def|defp|fn|func|fun|function|sub)"
    rb"[ \t]+([A-Za-z_]\w{0,119})",
    re.MULTILINE,
)
_KEYWORD_KINDS: Final = {
    word.encode(): word for word in ("class", "struct", "interface", "trait", "enum")
}


class DefinitionReader:
    """Reads the definitions of one language."""

    def __init__(self, language: str | Language, query: str | None = None) -> None:
        """`language` is the name of one that Weft has a grammar for, or a grammar with a query."""
        if isinstance(language, str):
            query = own_query(language) if query is None else query
            language = _grammar(language)
        self._parser = Parser(language)
        self._errors = Query(language, "(ERROR) @error")
        self._query = Query(language, query or "")

    def parse(self, source: bytes) -> Node:
        """The syntax tree of a file."""
        return self._parser.parse(source).root_node

    def read(self, source: bytes) -> list[Definition]:
        """The definitions of a file, in the order of their places."""
        tree = self._parser.parse(source)
        found: dict[int, tuple[int, Definition]] = {}
        for pattern, captures in QueryCursor(self._query).matches(tree.root_node):
            for place, definition in _definitions(source, captures):
                # One name may match twice, as a variable and as the function that it holds: the
                # pattern that stands first in the query says what it is.
                if place not in found or pattern < found[place][0]:
                    found[place] = pattern, definition
        if tree.root_node.has_error:
            for place, definition in _by_keyword(source, self._errors, tree.root_node):
                found.setdefault(place, (0, definition))
        return [definition for _, definition in sorted(found.values(), key=_place)]


@cache
def definition_reader(language: str) -> DefinitionReader:
    """The reader of a language; made once, because a query takes milliseconds to compile."""
    return DefinitionReader(language)


def own_query(language: str) -> str:
    """The query that Weft brings for a language."""
    return (files("weft.repo") / "queries" / f"{language}.scm").read_text("utf-8")


def _grammar(language: str) -> Language:
    grammar = GRAMMARS[language]
    module = importlib.import_module(grammar.module)
    return Language(getattr(module, grammar.function)())


def _place(entry: tuple[int, Definition]) -> tuple[int, int]:
    return entry[1].first, -entry[1].last


def _definitions(
    source: bytes, captures: dict[str, list[Node]]
) -> Iterator[tuple[int, Definition]]:
    names = captures.get("name", ())
    for capture, nodes in captures.items():
        if not capture.startswith(_KIND):
            continue
        for node, named in zip(nodes, names, strict=False):
            name = _text(source, named.start_byte, named.end_byte)
            if name and len(name) <= _NAME_CHARS:
                yield (
                    named.start_byte,
                    Definition(
                        name,
                        capture.removeprefix(_KIND),
                        node.start_point[0] + 1,
                        node.end_point[0] + 1,
                        _signature(source, node),
                    ),
                )


def _by_keyword(source: bytes, errors: Query, root: Node) -> Iterator[tuple[int, Definition]]:
    """What looks like a definition in the parts that were not understood."""
    nodes = QueryCursor(errors).captures(root).get("error", ())
    looked, counted, line = 0, 0, 1
    for begin, end in sorted((node.start_byte, node.end_byte) for node in nodes):
        # Such parts lie in one another: each byte is looked at once, and each line counted once.
        for match in _KEYWORD.finditer(source, max(begin, looked), end):
            line += source.count(b"\n", counted, match.start(2))
            counted = match.start(2)
            most = counted + 4 * SIGNATURE_CHARS
            line_end = source.find(b"\n", counted, most)
            text = _shown(source, match.start(), line_end if line_end >= 0 else len(source))
            name = _text(source, *match.span(2))
            kind = _KEYWORD_KINDS.get(match[1], "function")
            yield counted, Definition(name, kind, line, line, text)
        looked = max(looked, end)


def _signature(source: bytes, node: Node) -> str:
    """The definition up to its body, on one line.

    It begins with its line, not with its node: `export` and `pub` may stand outside of it.
    """
    # Not further back than may be shown: of a thousand definitions on a long line each would look
    # through all of it.
    earliest = max(0, node.start_byte - SIGNATURE_CHARS - 1)
    begin = source.rfind(b"\n", earliest, node.start_byte) + 1
    if begin == 0 and earliest > 0:
        begin = node.start_byte
    body = node.child_by_field_name("body")
    end = node.end_byte if body is None else body.start_byte
    if body is None or end <= node.start_byte:
        line_end = source.find(b"\n", node.start_byte, node.end_byte)
        end = min(node.end_byte, line_end) if line_end >= 0 else node.end_byte
    return _shown(source, begin, end)


def _shown(source: bytes, begin: int, end: int) -> str:
    last = begin + 4 * SIGNATURE_CHARS
    text = _text(source, begin, min(end, last))
    # A signature on several lines, as it would be written on one.
    for spread, closed in (("( ", "("), ("[ ", "["), (", )", ")"), (", ]", "]"), (" )", ")")):
        text = text.replace(spread, closed)
    # What was cut off in the bytes counts as cut, however short its blanks make the rest.
    return cut_text(text, SIGNATURE_CHARS if end <= last else min(SIGNATURE_CHARS, len(text) - 1))


def _text(source: bytes, begin: int, end: int) -> str:
    return " ".join(source[begin:end].decode("utf-8", "replace").split()).rstrip(" {:")
