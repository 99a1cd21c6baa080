"""Definitions of each language that many projects are written in, against its bare parser and
query: alone, and with all else that an index keeps of a file.

The sources are made here: classes or types with methods whose bodies do something, as much of it
for each definition as projects have.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec
from tree_sitter import Parser, Query, QueryCursor

from bench.table import Row
from weft.repo.definition_reader import _grammar, definition_reader, own_query
from weft.repo.parsers.source_reader import content_digest, read_content

REPEATS = 15
METHODS = 600

_BODY = """
    {let} total = first + second * {n};
    if (total > limit(first)) {{
        total = total - discount(second, total, {n});
        report("order", total, first, second);
    }}
    while (total > {n}) {{ total = total / 2; }}
    return total;
"""
_SHAPES = {
    "typescript": "export class Order{n} {{\n  total(first: number, second: number): number {{"
    + _BODY
    + "  }}\n}}\n",
    "javascript": "export class Order{n} {{\n  total(first, second) {{" + _BODY + "  }}\n}}\n",
    "java": "class Order{n} {{\n  public int total(int first, int second) {{"
    + _BODY
    + "  }}\n}}\n",
    "c": "static int total_{n}(int first, int second) {{" + _BODY + "}}\n",
    "cpp": "class Order{n} {{\n public:\n  int total(int first, int second) {{"
    + _BODY
    + "}}\n}};\n",
    "go": "func (o *Order) Total{n}(first int, second int) int {{\n"
    "\ttotal := first + second*{n}\n\tif total > limit(first) {{\n"
    '\t\ttotal -= discount(second, total, {n})\n\t\treport("order", total, first, second)\n\t}}\n'
    "\tfor total > {n} {{\n\t\ttotal = total / 2\n\t}}\n\treturn total\n}}\n",
    "rust": "pub fn total_{n}(first: i64, second: i64) -> i64 {{\n"
    "    let mut total = first + second * {n};\n    if total > limit(first) {{\n"
    "        total -= discount(second, total, {n});\n"
    '        report("order", total, first);\n    }}\n'
    "    while total > {n} {{\n        total /= 2;\n    }}\n    total\n}}\n",
    "python": "class Order{n}:\n    def total(self, first, second):\n"
    "        total = first + second * {n}\n        if total > limit(first):\n"
    "            total -= discount(second, total, {n})\n"
    '            report("order", total, first, second)\n'
    "        while total > {n}:\n            total /= 2\n        return total\n\n",
}
_LET = {"typescript": "let", "javascript": "let"}


def run() -> list[Row]:
    """Two rows for each language."""
    return [row for language, shape in _SHAPES.items() for row in _rows(language, shape)]


def _rows(language: str, shape: str) -> list[Row]:
    let = _LET.get(language, "int")
    source = "".join(shape.format(n=number, let=let) for number in range(METHODS)).encode()
    reader = definition_reader(language)
    assert not reader.parse(source).has_error
    assert len(reader.read(source)) >= METHODS
    parser, query = Parser(_grammar(language)), Query(_grammar(language), own_query(language))

    def bare() -> object:
        return QueryCursor(query).matches(parser.parse(source).root_node)

    def ours() -> object:
        return msgspec.msgpack.encode(reader.read(source))

    def with_words() -> object:
        return msgspec.msgpack.encode(
            (content_digest(source, language), read_content(source, language))
        )

    best: dict[Callable[[], object], float] = {bare: 9.0, ours: 9.0, with_words: 9.0}
    for _ in range(REPEATS):
        for work in best:
            before = time.process_time()
            work()
            best[work] = min(best[work], time.process_time() - before)
    floor, alone, whole = (len(source) / 1e6 / each for each in best.values())
    return [
        Row(f"symbols: {language}", alone, "MB/s", floor, 0.85, "ratio", "more"),
        Row(f"symbols: {language}, with words", whole, "MB/s", floor, 0.85, "ratio", "more"),
    ]
