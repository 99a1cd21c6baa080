"""Tables that lie beside a module as text: one row a line, columns parted by tabs, `#` for
comments.

A list that is extended with knowledge of other programs (their files, their tokens) is data: a
row names its source, and needs no Python.  A table is read when it is first used, not on import.
"""

from __future__ import annotations


def read_table(module_file: str, name: str, columns: int) -> tuple[tuple[str, ...], ...]:
    """The rows of the table `name` beside a module, whose `__file__` is given.

    Not kept: a reader needs a few columns, and the sources are most of it.

    Raises:
        ValueError: a row has another number of columns; a broken table must not protect half.
    """
    path = f"{module_file.rpartition('/')[0]}/{name}"
    with open(path, encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in file]
    rows = tuple(tuple(line.split("\t")) for line in lines if line and not line.startswith("#"))
    for row in rows:
        if len(row) != columns or not all(row):
            raise ValueError(f"{name}: {row[0]!r} needs {columns} columns, none of them empty")
    return rows
