"""A group of commits as the arguments of one call of the database: parallel arrays, built from the
appends and drafts that wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from weft.errors import Conflict, Fenced, UsageError, WeftError
from weft.store import search_text as words
from weft.store.base import Append, Blob, DraftChunk, SearchText
from weft.store.postgres.text_codec import loaded, stored

APPEND: Final = f"select * from append_v1({', '.join(f'${n}' for n in range(1, 49))})"

_LONGEST_TOKEN = 500
"""A lexeme has at most 2 KB."""
_MOST_TOKEN_BYTES = 500_000
"""Of one text; a tsvector has at most 1 MB."""
_encode_row = msgspec.json.Encoder().encode


class ColumnArrays:
    """Rows that become parallel arrays."""

    def __init__(self, width: int) -> None:
        self._rows: list[tuple[Any, ...]] = []
        self._width = width

    def add(self, *row: object) -> None:
        """One more row."""
        self._rows.append(row)

    def arrays(self) -> list[Sequence[Any]]:
        """A sequence for each column."""
        return list(zip(*self._rows, strict=True)) if self._rows else [()] * self._width


class CommitGroup:
    """Appends and drafts in the order in which they were handed in."""

    def __init__(self) -> None:
        self._streams: dict[str, int] = {}
        self._appends = ColumnArrays(6)
        self._count = 0
        self._facts = ColumnArrays(5)
        self._rows = ColumnArrays(10)
        self._said = ColumnArrays(5)
        self._blobs = ColumnArrays(4)
        self._names = ColumnArrays(2)
        self._trees = ColumnArrays(3)
        self._ends = ColumnArrays(2)
        self._drafts = ColumnArrays(7)

    def add_job(self, job: int, appends: Sequence[Append]) -> None:
        """One call of `append`."""
        for one in appends:
            self._count += 1
            self._appends.add(
                job,
                self._which(one.stream),
                one.expected_seq,
                len(one.records),
                one.fence,
                one.drop_draft,
            )
            self._add_contents(self._count, one)

    def add_draft(self, chunk: DraftChunk) -> None:
        """One more chunk, behind the appends that are there."""
        self._drafts.add(
            self._count,
            self._which(chunk.stream),
            chunk.fence,
            stored(chunk.node),
            part_column(chunk),
            chunk.chunk.encode(),
            chunk.restart,
        )

    def arguments(self, tenant: int, process_no: int, commit: int) -> list[Any]:
        """The arguments of `APPEND`."""
        columns = (
            self._appends, self._facts, self._rows, self._said, self._blobs, self._names,
            self._trees, self._ends, self._drafts,
        )  # fmt: skip
        names = [stored(name) for name in self._streams]
        return [tenant, process_no, commit, names, *(a for each in columns for a in each.arrays())]

    def refusals(self, outcome: bytes | str) -> dict[int, WeftError]:
        """Jobs that were refused, each with its error."""
        if outcome == "[]":
            return {}
        names = list(self._streams)
        rows: list[list[Any]] = msgspec.json.decode(outcome)
        return {row[0]: _refusal(names[row[2] - 1], row) for row in rows}

    def _which(self, stream: str) -> int:
        """The place of a stream in the group, counted from one as the database does."""
        return self._streams.setdefault(stream, len(self._streams) + 1)

    def _add_contents(self, app: int, one: Append) -> None:
        for record in one.records:
            self._facts.add(app, record.seq, record.at, stored(record.kind), record.body)
        if one.row is not None:
            row = one.row
            wake_at = None if row.damaged else row.wake_at
            self._rows.add(
                app,
                None if row.parent_id is None else stored(row.parent_id),
                stored(row.project_path),
                row.last_active,
                row.is_child,
                row.archived,
                row.min_reader,
                wake_at,
                words.indexed(row.title),
                _encode_row(row),
            )
        for said in one.said:
            self._said.add(app, *said_columns(said))
        for blob, ref in _named_blobs(one):
            self._blobs.add(app, stored(blob.id), blob.data, ref)
        for blob_id in one.names_blobs:
            self._names.add(app, stored(blob_id))
        for kind, ids in (
            ("tree", one.trees), ("listing", one.tree_listings), ("content", one.tree_contents)
        ):  # fmt: skip
            for blob_id in ids:
                self._trees.add(app, stored(blob_id), kind)
        for node in one.ends_drafts:
            self._ends.add(app, stored(node))


def said_columns(said: SearchText) -> tuple[str, bytes, str, str]:
    """What is kept of a text: its node, itself, its words in order, and each of them once."""
    index = words.indexed(said.text)
    return stored(said.node), said.text.encode(), index, " ".join(_tokens(index.split()))


def _tokens(found: Iterable[str]) -> Iterator[str]:
    room = _MOST_TOKEN_BYTES
    for token in dict.fromkeys(cut_token(each) for each in found):
        room -= len(token.encode()) + 8
        if room < 0:
            return
        yield token


def cut_token(token: str) -> str:
    """A token as the index keeps it."""
    return token[:_LONGEST_TOKEN]


def part_column(chunk: DraftChunk) -> str:
    """What a chunk is part of; of arguments, which call, too."""
    is_call = chunk.part == "arguments"
    return stored(f"{chunk.part}:{chunk.index}:{chunk.tool}") if is_call else chunk.part


def _named_blobs(one: Append) -> Iterator[tuple[Blob, str]]:
    """The blobs of an append, and as what its stream names each."""
    in_trees = {*one.tree_listings, *one.tree_contents}
    for blob in one.blobs:
        if blob.id in one.history:
            yield blob, "history"
        else:
            yield blob, "" if blob.id in in_trees else "own"


def _refusal(stream: str, row: list[Any]) -> WeftError:
    kind, expected, actual = row[1], row[3], row[4]
    if kind == "fenced":
        return Fenced(stream, expected, actual)
    if kind == "conflict":
        return Conflict(stream, expected, actual)
    return UsageError(f"blob {loaded(row[5])!r} is not stored; hand its content in")
