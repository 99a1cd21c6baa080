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

SIGNATURE_CHARS: Final = 160
_NAME_CHARS: Final = 120
_KIND: Final = "definition."
_ERROR: Final = "weft.error"
_KEYWORD: Final = re.compile(
    rb"^[ \t]*(?:[a-z]+(?:\([a-z]+\))?[ \t]+){0,3}?"
    rb"(class|struct|interface|trait|enum|def|defp|fn|func|fun|function|sub)"
    rb"[ \t]+([A-Za-z_]\w{0,119})",
    re.MULTILINE,
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
_BLANKS: Final = re.compile(rb"\s*")
_KEYWORD_KINDS: Final = {
    word.encode(): word for word in ("class", "struct", "interface", "trait", "enum")
}


_Found: TypeAlias = dict[int, tuple[int, Definition]]
"""By the place of its name, each definition with the pattern that found it."""
_Matches: TypeAlias = list[tuple[int, dict[str, list[Node]]]]


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
        # In one query: another walk through the tree takes a fifth of the time of parsing.
        self._query = Query(language, f"{query or ''}\n(ERROR) @{_ERROR}")
        captures = map(self._query.capture_name, range(self._query.capture_count))
        self._kinds = {each: each[len(_KIND) :] for each in captures if each.startswith(_KIND)}
        self._body_field = language.field_id_for_name("body")

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
        matches = cursor.matches(root)
        self._take(found, source, matches)
        if marks is not None:
            at_first = len(found)
            for node in _deeper(source, root, found, marks):
                if node == root:
                    cursor.set_max_start_depth(_ANY_DEPTH)
                self._take(found, source, cursor.matches(node))
            if len(found) > at_first:
                # Of those on the same lines, the first comes first, as in a walk through all nodes.
                found = dict(sorted(found.items()))
        if root.has_error:
            errors = [node for _, captures in matches for node in captures.get(_ERROR, ())]
            for place, definition in _by_keyword(source, errors):
                found.setdefault(place, (0, definition))
        return [definition for _, definition in sorted(found.values(), key=_place)]

    def _take(self, found: _Found, source: bytes, matches: _Matches) -> None:
        kinds, body_field = self._kinds, self._body_field
        for pattern, captures in matches:
            # An error that the parser could not read has none.
            names = captures.get("name")
            if names is None:
                continue
            for capture, nodes in captures.items():
                kind = kinds.get(capture)
                if kind is None:
                    continue
                for node, named in zip(nodes, names, strict=False):
                    place = named.start_byte
                    # One name may match twice, as a variable and as the function that it holds: the
                    # pattern that stands first in the query says what it is.
                    known = found.get(place)
                    if known is not None and known[0] <= pattern:
                        continue
                    name = source[place : named.end_byte].decode("utf-8", "replace")
                    if not name.isidentifier():
                        name = _on_one_line(name)
                    if name and len(name) <= _NAME_CHARS:
                        body = node.child_by_field_id(body_field) if body_field else None
                        found[place] = (
                            pattern,
                            Definition(
                                name,
                                kind,
                                node.start_point[0] + 1,
                                node.end_point[0] + 1,
                                _signature(source, node, body),
                            ),
                        )


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


def _place(entry: tuple[int, Definition]) -> tuple[int, int]:
    return entry[1].first, -entry[1].last


def _by_keyword(source: bytes, errors: Iterable[Node]) -> Iterator[tuple[int, Definition]]:
    """What looks like a definition in the parts that were not understood."""
    looked, counted, line = 0, 0, 1
    for begin, end in sorted((node.start_byte, node.end_byte) for node in errors):
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


def _signature(source: bytes, node: Node, body: Node | None) -> str:
    """The definition up to its body, on one line.

    It begins with its line, not with its node: `export` and `pub` may stand outside of it.
    """
    start = node.start_byte
    # Not further back than may be shown: of a thousand definitions on a long line each would look
    # through all of it.
    earliest = start - SIGNATURE_CHARS - 1 if start > SIGNATURE_CHARS else 0
    begin = source.rfind(b"\n", earliest, start) + 1
    if begin == 0 and earliest > 0:
        begin = start
    end = start if body is None else body.start_byte
    if end <= start:
        end = node.end_byte
        line_end = source.find(b"\n", start, end)
        end = line_end if line_end >= 0 else end
    elif source.find(b"\n", start, end) >= 0:
        assert body is not None
        return _shown(source, begin, _before_comments(body))
    # Nearly all are on one line, and are shown whole.
    if end - begin <= SIGNATURE_CHARS:
        return _on_one_line(source[begin:end].decode("utf-8", "replace"))
    return _shown(source, begin, end)


def _before_comments(body: Node) -> int:
    """Where the head of a definition ends, if comments stand between it and the body."""
    end, before = body.start_byte, body.prev_sibling
    while before is not None and before.type == "comment":
        end, before = before.start_byte, before.prev_sibling
    return end


def _shown(source: bytes, begin: int, end: int) -> str:
    last = begin + 4 * SIGNATURE_CHARS
    text = _on_one_line(source[begin : min(end, last)].decode("utf-8", "replace"))
    if source.find(b"\n", begin, end) >= 0:
        # A signature on several lines, as it would be written on one.
        for spread, closed in (("( ", "("), ("[ ", "["), (", )", ")"), (", ]", "]"), (" )", ")")):
            text = text.replace(spread, closed)
    if end <= last and len(text) <= SIGNATURE_CHARS:
        return text
    # What was cut off in the bytes counts as cut, however short its blanks make the rest.
    return cut_text(text, SIGNATURE_CHARS if end <= last else min(SIGNATURE_CHARS, len(text) - 1))


def _text(source: bytes, begin: int, end: int) -> str:
    text = source[begin:end].decode("utf-8", "replace")
    return text if text.isidentifier() else _on_one_line(text)


def _on_one_line(text: str) -> str:
    text = text.strip()
    # To split and join costs half of all this, and most have nothing but single blanks.
    if "  " in text or not text.isprintable():
        text = " ".join(text.split())
    return text.rstrip(" {:")
