"""Patterns of a query for definitions, in a form that costs less than one match after the other.

A pattern captures a definition and its name.  Asked for its matches, the binding makes a table with
two lists for each of them; asked for all captures at once, two lists for the whole file.  Which
name is whose is found again by where they stand, and each pattern has captures of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from tree_sitter import Language, Node

_KIND: Final = re.compile(r"@definition\.([\w-]+)")
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|;[^\n]*|[()\[\]]')
_NAME: Final = re.compile(r"@name(?![\w.-])")

_ONE_FIELD: Final = "|".join(
    (
        *("class_declaration", "class_definition", "class_specifier", "constructor_declaration"),
        *("enum_specifier", "function_declaration", "function_declarator", "function_definition"),
        *("function_item", "interface_declaration", "method_declaration", "method_definition"),
        *("pointer_declarator", "struct_specifier"),
    )
)
"""Nodes that have each of their fields once: what is in it can be asked for, and need not be
captured.  Others, such as the declaration of several variables, have one as often as they like."""
_CHAIN: Final = re.compile(
    rf"^((?:\((?:{_ONE_FIELD})\s+\w+:\s+)+)(\(\w+\)|\[[\w()\s]*\]) @name((?: body: \(_\))?\)+ )"
)
_FIELD: Final = re.compile(r"(\w+):")


class QueryPattern(NamedTuple):
    """What a pattern finds, and by which captures."""

    kind: str
    definition: str
    name: str
    fields: tuple[int, ...]
    """Those that lead from the definition to its name, where that is not captured."""

    def named(self, captures: Mapping[str, Sequence[Node]]) -> Iterable[tuple[Node, Node]]:
        """The definitions, each with its name."""
        nodes = captures.get(self.definition)
        if nodes is None:
            return ()
        if self.fields:
            return _by_fields(nodes, self.fields)
        return _pairs(nodes, captures.get(self.name, ()))


def query_patterns(query: str, language: Language) -> tuple[list[QueryPattern], str]:
    """The patterns of a query that find definitions, and the query that is to be asked instead."""
    found: list[QueryPattern] = []
    texts: list[str] = []
    for number, text in enumerate(_split(query)):
        kind = _KIND.search(text)
        if kind is None:
            continue
        pattern = QueryPattern(
            kind[1], f"definition.{number}", f"name.{number}", _fields(text, language)
        )
        if pattern.fields:
            text = _CHAIN.sub(r"\1\2\3", text)
        found.append(pattern)
        texts.append(_NAME.sub(f"@{pattern.name}", _KIND.sub(f"@{pattern.definition}", text)))
    return found, "\n".join(texts)


def _fields(text: str, language: Language) -> tuple[int, ...]:
    chain = _CHAIN.match(text)
    names = _FIELD.findall(chain[1]) if chain else ()
    return tuple(language.field_id_for_name(name) or 0 for name in names)


def _split(query: str) -> Iterator[str]:
    """Each pattern with what is behind it: its capture, and what is asked of its nodes."""
    depth = begin = 0
    for match in _TOKEN.finditer(query):
        if match[0] in ("(", "["):
            if depth == 0 and match.start() > begin:
                yield query[begin : match.start()]
                begin = match.start()
            depth += 1
        elif match[0] in (")", "]"):
            depth -= 1
    yield query[begin:]


def _by_fields(nodes: Iterable[Node], fields: Iterable[int]) -> Iterator[tuple[Node, Node]]:
    for node in nodes:
        named: Node | None = node
        for field in fields:
            if named is not None:
                named = named.child_by_field_id(field)
        if named is not None:
            yield node, named


def _pairs(nodes: Iterable[Node], names: Iterable[Node]) -> Iterator[tuple[Node, Node]]:
    """Names, each with the innermost of the nodes that it stands in."""
    left = sorted(nodes, key=lambda node: (-node.start_byte, node.end_byte))
    around: list[Node] = []
    for named in sorted(names, key=lambda node: node.start_byte):
        while left and left[-1].start_byte <= named.start_byte:
            around.append(left.pop())
        while around and around[-1].end_byte < named.end_byte:
            around.pop()
        if around:
            yield around[-1], named
