"""The program that finds references: where a name is used in source files, by their syntax.

A text search finds a name in comments and strings too, and inside longer names.  Here each place
where the letters stand is looked up in the syntax tree: it counts when a node of the tree is
exactly the name, and lies in no comment and no string.  Runs in a process of its own, because a
session's process loads no grammar.
"""

from __future__ import annotations

import re
import sys

import msgspec
from tree_sitter import Node

from weft.repo.definition_reader import definition_reader
from weft.repo.definitions import MOST_BYTES, FoundReference, ReferenceOrder, cut_text
from weft.repo.languages import language_of
from weft.repo.parsers.source_reader import language_in
from weft.workspace import read_beneath

_LINE_CHARS = 200
_VARIABLES = ("variable_name", "simple_expansion")
"""Nodes that are code inside a string too: `"$total"` in PHP and in shells."""
_SYMBOLS = ("simple_symbol", "atom")
"""Nodes with a colon before the name: how Ruby and Elixir name what is to be called."""


def main() -> int:
    """Answer the order that is on standard input."""
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=ReferenceOrder)
    sys.stdout.buffer.write(msgspec.json.encode(find_references(order)))
    return 0


def find_references(order: ReferenceOrder) -> list[FoundReference]:
    """The places in the files of an order, up to its limit."""
    found: list[FoundReference] = []
    for path in order.paths:
        language, content = language_of(path), read_beneath(order.project, path, MOST_BYTES)
        if language is not None and content is not None:
            found += _in_file(path, language, content, order.name.encode())
        if len(found) > order.most:
            break
    return found[: order.most + 1]


def _in_file(path: str, language: str, content: bytes, name: bytes) -> list[FoundReference]:
    places = [
        match.start() for match in re.finditer(rb"(?<!\w)%b(?!\w)" % re.escape(name), content)
    ]
    if not places:
        return []
    reader = definition_reader(language_in(content, language))
    root = reader.parse(content)
    defined = {each.first for each in reader.read(content) if each.name.encode() == name}
    found: dict[int, FoundReference] = {}
    for place in places:
        node = root.descendant_for_byte_range(place, place + len(name))
        if node is None or not _is_name(node, place, len(name)):
            continue
        line = node.start_point[0] + 1
        begin = content.rfind(b"\n", 0, place) + 1
        end = content.find(b"\n", place)
        text = content[begin : end if end >= 0 else len(content)].decode("utf-8", "replace")
        shown = cut_text(text.strip(), _LINE_CHARS)
        found[line] = FoundReference(path, line, shown, line in defined)
    return list(found.values())


def _is_name(node: Node, place: int, length: int) -> bool:
    """Whether a node is exactly the name, and code; what a string is interpolated with is code."""
    begin = place - (node.type in _SYMBOLS)
    if (node.start_byte, node.end_byte) != (begin, place + length):
        return False
    if node.type in _VARIABLES:
        return True
    above = node.parent
    while above is not None:
        if "interpolation" in above.type or "substitution" in above.type:
            return True
        if "comment" in above.type or "string" in above.type:
            return False
        above = above.parent
    return "comment" not in node.type and "string" not in node.type


if __name__ == "__main__":
    sys.exit(main())
