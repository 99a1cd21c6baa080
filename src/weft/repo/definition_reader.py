"""Definitions of a source file, found by tree-sitter with one query for each language.

A query's patterns capture the whole definition as `@definition.<kind>` and its name as `@name`, as
the `tags.scm` files of editors do.  A file with syntax errors is read like any other: the parser
puts what it could not read into error nodes, and the queries look inside them.  Where it gave up on
a definition altogether, the keyword before a name tells.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple, TypeAlias

from tree_sitter import Language, Node, Parser, Query, QueryCursor

from weft.repo.definitions import Definition, cut_text
from weft.repo.languages import GRAMMARS
from weft.repo.parsers.query_patterns import query_patterns

SIGNATURE_CHARS: Final = 160
_NAME_CHARS: Final = 120
_ERROR: Final = "weft.error"
_KEYWORD: Final = re.compile(
    r"^[ \t]*(?:[a-z]+(?:\([a-z]+\))?[ \t]+){0,3}?"
    r"(class|struct|interface|trait|enum|def|defp|fn|func|fun|function|sub)"
    r"[ \t]+([A-Za-z_]\w{0,119})",
    re.ASCII | re.MULTILINE,
)
_ANY_DEPTH: Final = 2**32 - 1
_MOST_STEPS: Final = 1_000_000
"""Children of the tree's root that are passed in looking for nodes by their places: some ten
milliseconds, about what a walk through all nodes of a large file takes."""


class _Marks(NamedTuple):
    """Where definitions of a language can be that lie deep in the tree."""

    keywords: tuple[str, ...]
    """One of them is in each such definition, or begins what it is a member of."""
    depth: int = 3
    """How deep in the tree the query looks first: most definitions of a file are here, and most of
    its nodes are not."""
    has_members: bool = False
    """Members have no keyword of their own: they are looked for in all that may hold some."""


_MARKS: Final = {
    "python": _Marks(("def", "class")),
    "go": _Marks(("func", "type", "interface")),
    "rust": _Marks(
        (
            *("fn", "struct", "enum", "trait", "impl", "mod", "type", "const", "static", "union"),
            "macro_rules!",
        )
    ),
    "java": _Marks(("class", "interface", "enum", "record", "new"), depth=4, has_members=True),
}
_BEFORE_BODY: Final = " {:"
_ROUND: Final = re.compile("[()]")
_BYTE_ORDER_MARK: Final = "\xef\xbb\xbf"
_ASCII_BLANKS: Final = " \t\n\r\f\v"
"""Those of Latin-1 are bytes of other letters: 타입 ends with one."""
_BLANKS: Final = re.compile(rb"\s*")
_KEYWORD_KINDS: Final = frozenset({"class", "struct", "interface", "trait", "enum"})


_Found: TypeAlias = dict[int, tuple[int, int, int, int, Definition]]
"""By the place of its name, each definition behind what it is sorted by (its first line, its last
one negated, the place) and the pattern that found it."""
_Captures: TypeAlias = dict[str, list[Node]]


class DefinitionReader:
    """Reads the definitions of one language."""

    def __init__(self, language: str | Language, query: str | None = None) -> None:
        """`language` is the name of one that Weft has a grammar for, or a grammar with a query."""
        self._marks: _Marks | None = None
        if isinstance(language, str):
            if query is None:
                query = own_query(language)
                self._marks = _MARKS.get(language)
            language = _grammar(language)
        self._parser = Parser(language)
        self._patterns, own = query_patterns(query or "", language)
        # In one query: another walk through the tree takes a fifth of the time of parsing.
        self._query = Query(language, f"{own}\n(ERROR) @{_ERROR}")
        self._body_field = language.field_id_for_name("body") or 0

    def parse(self, source: bytes) -> Node:
        """The syntax tree of a file."""
        return self._parser.parse(source).root_node

    def read(self, source: bytes) -> list[Definition]:
        """The definitions of a file, in the order of their places."""
        root = self.parse(source)
        found: _Found = {}
        cursor = QueryCursor(self._query)
        marks = None if root.has_error else self._marks
        if marks is not None:
            cursor.set_max_start_depth(marks.depth)
        captures = cursor.captures(root)
        # One character for each byte: the places of the nodes are places in it, and most parts of
        # it need not be decoded once more.
        text = source.decode("latin-1")
        self._take(found, text, captures)
        if marks is not None:
            for node in _deeper(source, root, found, marks):
                if node == root:
                    cursor.set_max_start_depth(_ANY_DEPTH)
                self._take(found, text, cursor.captures(node))
        if root.has_error:
            for place, definition in _by_keyword(text, captures.get(_ERROR, ())):
                row = (definition.first, -definition.last, place, 0, definition)
                found.setdefault(place, row)
        return [row[-1] for row in sorted(found.values())]

    def _take(self, found: _Found, text: str, captures: _Captures) -> None:
        body_field = self._body_field
        for number, pattern in enumerate(self._patterns):
            for node, named in pattern.named(captures):
                place = named.start_byte
                # One name may match twice, as a variable and as the function that it holds: the
                # pattern that stands first in the query says what it is.
                known = found.get(place)
                if known is not None and known[3] <= number:
                    continue
                name = text[place : named.end_byte]
                if not (name.isascii() and name.isidentifier()):
                    named = _own_name(named)
                    begin = named.start_byte + (named.type == _SYMBOL)
                    name = _on_one_line(_decoded(text[begin : named.end_byte]))
                if name and len(name) <= _NAME_CHARS:
                    first, last = node.start_point[0] + 1, node.end_point[0] + 1
                    body = node.child_by_field_id(body_field) if body_field else None
                    signature = _signature(text, node, body, named)
                    if name not in signature:
                        signature = _from_name(text, node, body, named)
                    definition = Definition(name, pattern.kind, first, last, signature)
                    found[place] = (first, -last, place, number, definition)


def _own_name(named: Node) -> Node:
    """The last part of a qualified name, without its arguments: `Rep` of `Table::Rep<int>`."""
    while named.type in _OUTER_NAMES and (inner := named.child_by_field_name("name")) is not None:
        named = inner
    return named


_SYMBOL: Final = "simple_symbol"
"""Ruby's name of what is defined by a call; it begins with a colon."""
_OUTER_NAMES: Final = frozenset({"qualified_identifier", "template_type"})
_MARKUP: Final = frozenset({"css", "html", "markdown"})
_SAME_QUERY: Final = {"tsx": "typescript"}
"""Languages whose grammar differs, but not in what is defined."""


@cache
def definition_reader(language: str) -> DefinitionReader:
    """The reader of a language; made once, because a query takes milliseconds to compile."""
    return DefinitionReader(language)


def own_query(language: str) -> str:
    """The query that Weft brings for a language."""
    folder = files("weft.repo") / "queries"
    place = folder / "markup" if language in _MARKUP else folder
    return (place / f"{_SAME_QUERY.get(language, language)}.scm").read_text("utf-8")


def _deeper(
    source: bytes, root: Node, found: Mapping[int, object], marks: _Marks
) -> Iterator[Node]:
    """Nodes that may be, or may hold, definitions that were not found; the root where there are too
    many.

    A walk through all nodes takes a quarter of the time of parsing, and few of them are in the
    head of a definition.
    """
    left = _MOST_STEPS // (root.child_count + 1)
    for keyword in marks.keywords:
        for begin, end in _occurrences(source, keyword.encode()):
            # A name that is known.
            if not marks.has_members and _behind_blanks(source, end) in found:
                continue
            if left == 0:
                yield root
                return
            left -= 1
            node = root.descendant_for_byte_range(begin, end)
            # Not the words of a comment or a string; `@interface` is one word to its parser.
            if node is None or node.type.lstrip("@") != keyword or (above := node.parent) is None:
                continue
            if not marks.has_members or _may_hold_more(source, keyword, above, root):
                yield above


def _occurrences(source: bytes, keyword: bytes) -> Iterator[tuple[int, int]]:
    """Where a keyword stands, and not only the end or the beginning of a longer word."""
    begin = source.find(keyword)
    while begin >= 0:
        end = begin + len(keyword)
        if not (source[begin - 1 : begin].isalnum() or source[end : end + 1].isalnum()):
            yield begin, end
        begin = source.find(keyword, end)


def _behind_blanks(source: bytes, place: int) -> int:
    if source[place + 1 : place + 2].isspace() or not source[place : place + 1].isspace():
        found = _BLANKS.match(source, place)
        return place if found is None else found.end()
    return place + 1


def _may_hold_more(source: bytes, keyword: str, node: Node, root: Node) -> bool:
    """Whether members of a node may lie too deep for the first look: those of what the file itself
    holds do not, but for those of the constants of an enum.
    """
    if keyword == "new":
        return source[node.end_byte - 1 : node.end_byte] == b"}"
    return keyword == "enum" or node.parent != root


def _grammar(language: str) -> Language:
    grammar = GRAMMARS[language]
    module = importlib.import_module(grammar.module)
    return Language(getattr(module, grammar.function)())


def _by_keyword(text: str, errors: Iterable[Node]) -> Iterator[tuple[int, Definition]]:
    """What looks like a definition in the parts that were not understood."""
    looked, counted, line = 0, 0, 1
    for begin, end in sorted((node.start_byte, node.end_byte) for node in errors):
        # Such parts lie in one another: each byte is looked at once, and each line counted once.
        for match in _KEYWORD.finditer(text, max(begin, looked), end):
            line += text.count("\n", counted, match.start(2))
            counted = match.start(2)
            most = counted + 4 * SIGNATURE_CHARS
            line_end = text.find("\n", counted, most)
            signature = _shown(text, match.start(), line_end if line_end >= 0 else len(text))
            kind = match[1] if match[1] in _KEYWORD_KINDS else "function"
            yield counted, Definition(match[2], kind, line, line, signature)
        looked = max(looked, end)


def _signature(text: str, node: Node, body: Node | None, named: Node) -> str:
    """The definition up to its body, on one line.

    It begins with its line, not with its node: `export` and `pub` may stand outside of it.
    """
    start = node.start_byte
    begin = _line_begin(text, start)
    end = start if body is None else body.start_byte
    if end <= start:
        body = None
        end = _line_end(text, node, named)
    if text.find("\n", start, end) >= 0:
        return _shown(text, begin, end if body is None else _before_comments(body))
    if end - begin > SIGNATURE_CHARS:
        return _shown(text, begin, end)
    # Nearly all are on one line, and are shown whole: what a call takes counts here.
    head = text[begin:end].strip(_ASCII_BLANKS)
    if head.isascii() and head.isprintable() and "  " not in head:
        return head.rstrip(_BEFORE_BODY)
    return _on_one_line(_decoded(head))


def _from_name(text: str, node: Node, body: Node | None, named: Node) -> str:
    """A definition from the line of its name on: annotations before it left no room for it."""
    begin = _line_begin(text, named.start_byte)
    if body is None or body.start_byte <= named.start_byte:
        return _shown(text, begin, _line_end(text, node, named))
    return _shown(text, begin, _before_comments(body))


def _line_begin(text: str, place: int) -> int:
    # Not further back than may be shown: of a thousand definitions on a long line each would look
    # through all of it.
    earliest = place - SIGNATURE_CHARS - 1 if place > SIGNATURE_CHARS else 0
    begin = text.rfind("\n", earliest, place) + 1
    if begin == 0:
        return place if earliest > 0 else len(_BYTE_ORDER_MARK) * text.startswith(_BYTE_ORDER_MARK)
    return begin


def _line_end(text: str, node: Node, named: Node) -> int:
    """Where the line of a name ends, or the definition on it; with all of its parameters."""
    begin, end = named.end_byte, node.end_byte
    line_end = text.find("\n", begin, end)
    if line_end < 0:
        return end
    if text[line_end - 1] == "(" and "=" not in text[begin:line_end]:
        closed = _closing(text, line_end, min(end, line_end + 4 * SIGNATURE_CHARS))
        found = text.find("\n", closed, end)
        return found if found >= 0 else end
    return line_end


def _closing(text: str, begin: int, end: int) -> int:
    """Where a bracket that is open at `begin` is closed, or `end`."""
    depth = 1
    for match in _ROUND.finditer(text, begin, end):
        depth += 1 if match[0] == "(" else -1
        if depth == 0:
            return match.end()
    return end


def _before_comments(body: Node) -> int:
    """Where the head of a definition ends, if comments stand between it and the body."""
    end, before = body.start_byte, body.prev_sibling
    while before is not None and before.type == "comment":
        end, before = before.start_byte, before.prev_sibling
    return end


def _shown(text: str, begin: int, end: int) -> str:
    last = begin + 4 * SIGNATURE_CHARS
    shown = _on_one_line(_decoded(text[begin : min(end, last)]))
    if text.find("\n", begin, end) >= 0:
        # A signature on several lines, as it would be written on one.
        for spread, closed in (("( ", "("), ("[ ", "["), (", )", ")"), (", ]", "]"), (" )", ")")):
            shown = shown.replace(spread, closed)
    if end <= last and len(shown) <= SIGNATURE_CHARS:
        return shown
    # What was cut off in the bytes counts as cut, however short its blanks make the rest.
    return cut_text(shown, SIGNATURE_CHARS if end <= last else min(SIGNATURE_CHARS, len(shown) - 1))


def _decoded(text: str) -> str:
    """What was decoded byte by byte, as the text that it is."""
    return text if text.isascii() else text.encode("latin-1").decode("utf-8", "replace")


def _on_one_line(text: str) -> str:
    text = text.strip()
    # To split and join costs half of all this, and most have nothing but single blanks.
    if "  " in text or not text.isprintable():
        text = " ".join(text.split())
    return text.rstrip(_BEFORE_BODY)
