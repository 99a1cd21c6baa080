"""The queries of a Postgres store that only read."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import asyncpg
import msgspec

from weft.errors import Corrupt
from weft.ids import BlobId, NodeId, SessionId
from weft.sha256 import sha256
from weft.store import search_text as words
from weft.store.base import (
    NodePlace,
    Record,
    SearchHit,
    SessionRow,
    Snapshot,
    files_stream,
    path_of_files,
)
from weft.store.postgres.connection import Connection
from weft.store.postgres.group import cut_token
from weft.store.postgres.text_codec import loaded, stored
from weft.store.session_rows import RowQuery

_LAST_CHARACTER = "\U0010ffff"
_row_decoder = msgspec.json.Decoder(SessionRow)

STREAM = "select stream_no from streams where tenant = $1 and name = $2"
PROJECT_STREAMS = """
    select stream_no from sessions where tenant = $1 and project_path = $2
    union select stream_no from streams where tenant = $1 and name = $3
"""
"""The streams that name file history of a project."""


async def read(db: Connection, tenant: int, stream: str, after: int, limit: int) -> list[Record]:
    """A page of records; one that is missing between others is damage."""
    found = await db.fetch(
        f"""select seq, at, kind, body from facts
            where tenant = $1 and stream_no = ({STREAM}) and seq > $3 order by seq limit $4""",
        tenant,
        stored(stream),
        after,
        limit,
    )
    if found and (found[0][0] != after + 1 or found[-1][0] - found[0][0] != len(found) - 1):
        missing = next(n for n, row in enumerate(found, after + 1) if row[0] != n)
        raise Corrupt(stream, "this record is missing", seq=missing)
    return [_record(row) for row in found]


async def read_at(db: Connection, tenant: int, stream: str, seqs: Sequence[int]) -> list[Record]:
    """Exactly these records."""
    found = await db.fetch(
        f"""select seq, at, kind, body from facts
            where tenant = $1 and stream_no = ({STREAM}) and seq = any ($3)""",
        tenant,
        stored(stream),
        list(seqs),
    )
    by_seq = {row[0]: _record(row) for row in found}
    for seq in seqs:
        if seq not in by_seq:
            raise Corrupt(stream, "there is no such record", seq=seq)
    return [by_seq[seq] for seq in seqs]


def _record(row: asyncpg.Record) -> Record:
    return Record(row[0], row[1], loaded(row[2]), row[3])


async def last_seqs(
    db: Connection, tenant: int, streams: Sequence[str]
) -> dict[str, tuple[int, int]]:
    """The number and the end of several streams; unknown ones are left out."""
    found = await db.fetch(
        """select name, stream_no, last_seq from streams where tenant = $1 and name = any ($2)""",
        tenant,
        [stored(stream) for stream in streams],
    )
    return {loaded(name): (number, end) for name, number, end in found}


async def row(db: Connection, tenant: int, session_id: SessionId) -> SessionRow | None:
    """The row of one session."""
    found = await db.fetchrow(
        "select id, row from sessions where tenant = $1 and id = $2", tenant, stored(session_id)
    )
    return decode_row(*found) if found is not None else None


def decode_row(session_id: str, data: bytes) -> SessionRow:
    """A stored row; one that cannot be read is shown as damaged, for it must not hide the
    others.
    """
    try:
        return _row_decoder.decode(data)
    except msgspec.MsgspecError as error:
        id_ = SessionId(loaded(session_id))
        return SessionRow(id=id_, damaged=f"its row cannot be read: {error}")


class _Values:
    """The values of a statement, each with its place."""

    def __init__(self, *first: object) -> None:
        self.all: list[Any] = list(first)

    def add(self, value: object) -> str:
        """The place of one more value."""
        self.all.append(value)
        return f"${len(self.all)}"


async def rows(db: Connection, tenant: int, wanted: RowQuery) -> list[SessionRow]:
    """The list of sessions."""
    values = _Values(tenant)
    clauses = ["tenant = $1"]
    if wanted.project_path is not None:
        clauses.append(f"project_path = {values.add(stored(wanted.project_path))}")
    if not wanted.archived:
        clauses.append("not archived")
    if not wanted.children:
        clauses.append("not is_child")
    if wanted.after is not None:
        active, session_id = wanted.after
        clauses.append(
            f"(last_active, id) < ({values.add(active)}, {values.add(stored(session_id))})"
        )
    clauses += [_mentions(values, phrase) for phrase in words.phrases(wanted.query or "")]
    found = await db.fetch(
        f"""select id, row from sessions where {" and ".join(clauses)}
            order by last_active desc, id desc limit {values.add(wanted.limit)}""",
        *values.all,
    )
    return [decode_row(*one) for one in found]


def _mentions(values: _Values, phrase: str) -> str:
    """A session in whose title or texts a phrase stands."""
    place = values.add(f" {phrase}")
    return f"""(
        strpos(title_words, {place}) > 0 or stream_no in (
            select stream_no from said
            where tenant = $1 and tokens @@ {values.add(_tokens(phrase))}::tsquery
              and strpos(words, {place}) > 0)
    )"""


def _tokens(phrase: str) -> str:
    """All tokens of a phrase, in any order, the last one as the beginning of a word; tokens are
    letters and digits alone, so that none can be syntax.
    """
    *whole, last = phrase.split(" ")
    return " & ".join([*dict.fromkeys(map(cut_token, whole)), f"{cut_token(last)}:*"])


async def due(
    db: Connection, tenant: int, before: float, project_path: str | None, limit: int
) -> list[SessionRow]:
    """Sessions whose wait is over by this time."""
    found = await db.fetch(
        """select id, row from sessions
           where tenant = $1 and wake_at <= $2 and not archived and not is_child
             and ($3::text is null or project_path = $3)
           order by wake_at, id limit $4""",
        tenant,
        before,
        None if project_path is None else stored(project_path),
        limit,
    )
    rows = (decode_row(*one) for one in found)
    return [row for row in rows if not row.damaged]


async def ids_with_prefix(db: Connection, tenant: int, prefix: str, limit: int) -> list[SessionId]:
    """Ids that begin with `prefix`, taken literally."""
    found = await db.fetch(
        """select id from sessions
           where tenant = $1 and id >= $2 and id < $3 and starts_with(id, $2)
           order by id limit $4""",
        tenant,
        stored(prefix),
        stored(prefix) + _LAST_CHARACTER,
        limit,
    )
    return [SessionId(loaded(one[0])) for one in found]


async def nodes_with_prefix(
    db: Connection, tenant: int, prefix: str, limit: int
) -> list[NodePlace]:
    """Messages whose ids begin with `prefix`, the newest first; one that is called so before
    all.
    """
    found = await db.fetch(
        """select node, name from said join streams using (tenant, stream_no)
           where tenant = $1 and node >= $2 and node < $3 and starts_with(node, $2)
           group by node, stream_no, name order by node = $2 desc, min(said_no) desc limit $4""",
        tenant,
        stored(prefix),
        stored(prefix) + _LAST_CHARACTER,
        limit,
    )
    return [NodePlace(NodeId(loaded(node)), SessionId(loaded(name))) for node, name in found]


async def nodes_named(db: Connection, tenant: int, nodes: Collection[NodeId]) -> list[NodePlace]:
    """Messages of these ids, hidden logs too."""
    found = await db.fetch(
        """select distinct node, name from said join streams using (tenant, stream_no)
           where tenant = $1 and node = any ($2)""",
        tenant,
        [stored(node) for node in nodes],
    )
    return [NodePlace(NodeId(loaded(node)), SessionId(loaded(name))) for node, name in found]


async def search(db: Connection, tenant: int, query: str, limit: int) -> list[SearchHit]:
    """Places where all the words were said, the newest first."""
    phrases = words.phrases(query)
    if not phrases:
        return []
    values = _Values(tenant, limit)
    match = values.add(" & ".join(map(_tokens, phrases)))
    rechecks = [f"strpos(words, {values.add(f' {phrase}')}) > 0" for phrase in phrases]
    found = await db.fetch(
        f"""select name, node, text from said join streams using (tenant, stream_no)
            where tenant = $1 and tokens @@ {match}::tsquery and {" and ".join(rechecks)}
            order by said_no desc limit $2""",
        *values.all,
    )
    return [
        SearchHit(
            session_id=SessionId(loaded(name)),
            node=NodeId(loaded(node)),
            excerpt=words.excerpt(bytes(text).decode(), phrases),
        )
        for name, node, text in found
    ]


_PIECE_BYTES = 4 << 20
"""Of content in one answer: a large one takes longer over a slow line than an answer may."""
_PIECE = """
    select size, substring(data from $3 for $4) as piece from blobs where tenant = $1 and id = $2
"""


async def blob(db: Connection, tenant: int, blob_id: BlobId) -> bytes | None:
    """The content of a blob, if it still is what its name says."""
    name = stored(blob_id)
    first = await db.fetchrow(_PIECE, tenant, name, 1, _PIECE_BYTES)
    if first is None:
        return None
    pieces, size = [first["piece"]], first["size"]
    for place in range(_PIECE_BYTES, size, _PIECE_BYTES):
        more = await db.fetchrow(_PIECE, tenant, name, place + 1, _PIECE_BYTES)
        if more is None:
            return None
        pieces.append(more["piece"])
    data = b"".join(pieces)
    if sha256(data).hexdigest() != blob_id:
        raise Corrupt(f"blob {blob_id}", "its content is not what was stored")
    return data


_REFERRING = """
    with wanted as (select blob_no from blobs where tenant = $1 and id = $2)
    select name from streams where tenant = $1 and stream_no in (
        select stream_no from blob_refs
        where tenant = $1 and blob_no in (select blob_no from wanted)
        union select stream_no from history_refs
        where tenant = $1 and blob_no in (select blob_no from wanted)
    )
"""


async def sessions_with(db: Connection, tenant: int, blob_id: BlobId) -> list[SessionId]:
    """The sessions that refer to a blob, by streams of their own or by their project's files."""
    found: dict[str, None] = {}
    for (name,) in await db.fetch(_REFERRING, tenant, stored(blob_id)):
        path = path_of_files(name)
        if path is None:
            found[loaded(name)] = None
            continue
        of_project = "select id from sessions where tenant = $1 and project_path = $2"
        found |= {loaded(each): None for (each,) in await db.fetch(of_project, tenant, path)}
    return [SessionId(name) for name in found]


_STORED = "select id from blobs where tenant = $1 and id = any ($2)"
_NAMED = f"""
    {_STORED} and (
        exists (
            select 1 from blob_refs r
            where r.tenant = $1 and r.stream_no = ({STREAM.replace("$2", "$3")})
              and r.blob_no = blobs.blob_no)
        or exists (
            select 1 from history_refs r
            where r.tenant = $1 and r.stream_no = ({STREAM.replace("$2", "$3")})
              and r.blob_no = blobs.blob_no)
    )
"""


async def missing_blobs(
    db: Connection, tenant: int, blob_ids: Collection[BlobId], project_path: str | None
) -> set[BlobId]:
    """Those of these that are not stored, or not named by the files of a project."""
    asked = [stored(each) for each in blob_ids]
    if project_path is None:
        found = await db.fetch(_STORED, tenant, asked)
    else:
        found = await db.fetch(_NAMED, tenant, asked, files_stream(stored(project_path)))
    return set(blob_ids) - {BlobId(loaded(each)) for (each,) in found}


async def load_snapshot(db: Connection, tenant: int, stream: str, version: str) -> Snapshot | None:
    """The snapshot of this version of the fold."""
    found = await db.fetchrow(
        f"""select seq, data from snapshots
            where tenant = $1 and stream_no = ({STREAM}) and version = $3""",
        tenant,
        stored(stream),
        stored(version),
    )
    return Snapshot(found["seq"], version, bytes(found["data"])) if found is not None else None
