"""A whole store copied between a SQLite file and a Postgres database, and compared afterwards.

The tables of both have the same meaning, so that they are copied row by row: facts, rows of lists,
texts, contents and who names them, snapshots, fences and what is hidden.  Who holds a lease, and
text in flight, stay behind.  The source is read as it is at one moment; the target must be empty,
and gets everything in one transaction, or nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import apsw
import msgspec

from weft.errors import Corrupt, StoreUnavailable, UsageError
from weft.ids import NodeId
from weft.sha256 import sha256
from weft.store import search_text as words
from weft.store.base import SearchText
from weft.store.postgres import migration
from weft.store.postgres.connection import Connection, check_server, close, connect, explained
from weft.store.postgres.group import said_columns
from weft.store.postgres.settings import PostgresSettings
from weft.store.postgres.text_codec import loaded, stored
from weft.store.sqlite.connect import BusyHandler, open_reader, open_writer

_PATIENCE_SECONDS: Final = 60.0
_PAGE: Final = 500
_CONTENT_PAGE: Final = 4
"""Of rows that may have many megabytes each."""
Row = tuple[Any, ...]


class TransferTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table that both have: its columns, and how a row of one is a row of the other."""

    name: str
    columns: tuple[str, ...]
    key: str
    """What it is sorted by, alike on both sides."""
    texts: tuple[str, ...] = ()
    """Columns whose NUL is escaped in Postgres."""
    number: str = ""
    """A column that Postgres numbers by itself."""
    page: int = _PAGE
    """Rows that are in memory at once."""

    def to_postgres(self, tenant: int, row: Row) -> Row:
        """A row as Postgres has it."""
        fit = self._fit(row, stored)
        return (tenant, *fit) if self.name != "said" else (tenant, *_said_row(fit))

    def from_postgres(self, row: Row) -> Row:
        """A row as SQLite has it."""
        return tuple(self._fit(row, loaded))

    def _fit(self, row: Row, change: Callable[[str], str]) -> list[Any]:
        return [
            change(value) if name in self.texts and value is not None else value
            for name, value in zip(self.columns, row, strict=True)
        ]


TABLES: Final = (
    TransferTable(
        name="streams",
        columns=("stream_no", "name", "last_seq", "fence", "is_hidden", "hidden_parent"),
        key="stream_no",
        texts=("name", "hidden_parent"),
        number="stream_no",
    ),
    TransferTable(
        name="facts",
        columns=("stream_no", "seq", "at", "kind", "body"),
        key="stream_no, seq",
        texts=("kind",),
    ),
    TransferTable(
        name="sessions",
        columns=(
            "stream_no", "id", "parent_id", "project_path", "last_active", "is_child", "archived",
            "min_reader", "title_words", "row", "wake_at",
        ),
        key="stream_no",
        texts=("id", "parent_id", "project_path"),
    ),
    TransferTable(
        name="said",
        columns=("stream_no", "said_no", "node", "text"),
        key="said_no",
        texts=("node",),
        number="said_no",
    ),
    TransferTable(
        name="blobs",
        columns=("blob_no", "id", "size", "data"),
        key="blob_no",
        texts=("id",),
        number="blob_no",
        page=_CONTENT_PAGE,
    ),
    TransferTable(name="blob_refs", columns=("stream_no", "blob_no"), key="stream_no, blob_no"),
    TransferTable(
        name="history_refs",
        columns=("kept_no", "stream_no", "blob_no"),
        key="kept_no",
        number="kept_no",
    ),
    TransferTable(
        name="snapshots",
        columns=("stream_no", "seq", "version", "data"),
        key="stream_no",
        texts=("version",),
        page=_CONTENT_PAGE,
    ),
)  # fmt: skip
_MORE_COLUMNS: Final = {"said": ("words", "tokens")}


def _said_row(row: Sequence[Any]) -> Row:
    stream_no, said_no, node, text = row
    _, data, index, tokens = said_columns(SearchText(NodeId(""), text))
    return stream_no, said_no, node, data, index, tokens


class TransferReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a copy holds: rows by table, and the digest that both sides have."""

    rows: dict[str, int]
    digest: str


# -- SQLite


def _sqlite_rows(db: apsw.Connection, table: TransferTable) -> Iterator[Row]:
    columns = ", ".join(table.columns)
    source = table.name
    if table.name == "sessions":
        waits = "(select stream_no, wake_at from waits)"
        source = f"(select * from sessions left join {waits} using (stream_no))"
    yield from db.execute(f"select {columns} from {source} order by {table.key}")


def _put_sqlite(db: apsw.Connection, table: TransferTable, rows: Sequence[Row]) -> None:
    names = list(table.columns)
    waits = []
    if table.name == "sessions":
        waits = [(row[0], row[1], row[-1]) for row in rows if row[-1] is not None]
        names, rows = names[:-1], [row[:-1] for row in rows]
    places = ", ".join("?" * len(names))
    db.executemany(f"insert into {table.name} ({', '.join(names)}) values ({places})", rows)
    db.executemany("insert into waits (stream_no, id, wake_at) values (?, ?, ?)", waits)
    if table.name == "said":
        db.executemany(
            "insert into said_words (rowid, words) values (?, ?)",
            ((row[1], words.indexed(row[3])) for row in rows),
        )


# -- Postgres


async def _postgres_rows(db: Connection, tenant: int, table: TransferTable) -> AsyncIterator[Row]:
    columns = ", ".join(table.columns)
    query = f"select {columns} from {table.name} where tenant = $1 order by {table.key}"
    async for row in db.cursor(query, tenant, prefetch=table.page):
        plain = list(row)
        if table.name == "said":
            plain[3] = bytes(plain[3]).decode()
        yield table.from_postgres(tuple(plain))


async def _put_postgres(
    db: Connection, tenant: int, table: TransferTable, rows: Sequence[Row]
) -> None:
    names = ["tenant", *table.columns, *_MORE_COLUMNS.get(table.name, ())]
    places = [f"${place}" for place in range(1, len(names) + 1)]
    if table.name == "said":
        places[-1] = f"array_to_tsvector(string_to_array({places[-1]}::text, ' '))"
    for place, name in enumerate(names):
        if name in ("is_hidden", "is_child", "archived"):
            places[place] += "::integer::boolean"
    await db.executemany(
        f"""insert into {table.name} ({", ".join(names)}) overriding system value
            values ({", ".join(places)})""",
        [table.to_postgres(tenant, row) for row in rows],
    )


async def _advance(db: Connection, table: TransferTable) -> None:
    """Let the next number be one that no row has."""
    if table.number:
        # Forward alone: other tenants take numbers of the same sequence, and are not seen here.
        await db.execute(
            f"""select count(nextval(s.name)) from (
                    select pg_get_serial_sequence('weft.{table.name}', '{table.number}')::regclass
                ) s(name), lateral generate_series(
                    coalesce(pg_sequence_last_value(s.name), 0) + 1,
                    (select max({table.number}) from {table.name}))"""
        )


# -- both ways


async def copy_to_postgres(path: Path, dsn: str, tenant: str = "main") -> TransferReport:
    """Copy a SQLite file into the database of an empty tenant.

    Raises:
        UsageError: the tenant has sessions already.
        StoreUnavailable: one of both cannot be read or written; nothing was copied.
        Corrupt: the copy is not what was read; it was taken back.
    """
    db, number = await _opened(dsn, tenant)
    try:
        with closing(open_reader(path, vfs=None, patience=BusyHandler(_PATIENCE_SECONDS))) as file:
            file.execute("begin")
            async with db.transaction():
                await _check_empty(db, number, tenant)
                counts, digest = await _fill_postgres(db, number, file)
                copied = await _postgres_digest(db, number)
                _check_equal(digest, copied)
    except (apsw.Error, OSError) as error:
        raise StoreUnavailable(f"cannot read {path}: {error}") from error
    except Exception as error:
        raise _told(error) from error
    finally:
        await close(db)
    return TransferReport(rows=counts, digest=digest)


async def copy_to_sqlite(dsn: str, path: Path, tenant: str = "main") -> TransferReport:
    """Copy the sessions of a tenant into a new SQLite file.

    Raises:
        UsageError: there is something at the path.
        StoreUnavailable, Corrupt: as `copy_to_postgres`; no file is left.
    """
    _check_absent(path)
    db, number = await _opened(dsn, tenant)
    try:
        file = open_writer(
            path, synchronous="FULL", vfs=None, patience=BusyHandler(_PATIENCE_SECONDS, path)
        )
        try:
            async with db.transaction(isolation="repeatable_read", readonly=True):
                report = await _fill_sqlite(db, number, file)
        finally:
            file.close()
    except BaseException as error:
        for end in ("", "-wal", "-shm"):
            path.with_name(path.name + end).unlink(missing_ok=True)
        raise _told(error) from error
    finally:
        await close(db)
    return report


def _check_absent(path: Path) -> None:
    if path.exists():
        raise UsageError(f"{path} exists; a copy overwrites nothing")


def _told(error: BaseException) -> BaseException:
    is_ours = not isinstance(error, Exception) or isinstance(error, UsageError | Corrupt)
    return error if is_ours else explained(error)  # type: ignore[arg-type]


async def _opened(dsn: str, tenant: str) -> tuple[Connection, int]:
    db = await connect(PostgresSettings(dsn=dsn, tenant=tenant, answer_seconds=3600.0))
    try:
        await check_server(db)
        await migration.migrate(db)
        number = await migration.tenant_number(db, tenant)
        await db.execute("select set_config('weft.tenant', $1, false)", str(number))
    except BaseException:
        await close(db)
        raise
    return db, number


async def _check_empty(db: Connection, number: int, tenant: str) -> None:
    if await db.fetchval("select exists (select 1 from streams where tenant = $1)", number):
        raise UsageError(f"tenant {tenant!r} has sessions already; copy to another one")


async def _fill_postgres(
    db: Connection, tenant: int, file: apsw.Connection
) -> tuple[dict[str, int], str]:
    counts, digest = dict[str, int](), sha256()
    for table in TABLES:
        counts[table.name] = 0
        for page in _pages(_sqlite_rows(file, table), table.page):
            for row in page:
                digest.update(_bytes_of(table, row))
            await _put_postgres(db, tenant, table, page)
            counts[table.name] += len(page)
        await _advance(db, table)
    return counts, digest.hexdigest()


async def _fill_sqlite(db: Connection, tenant: int, file: apsw.Connection) -> TransferReport:
    counts, digest = dict[str, int](), sha256()
    file.execute("begin immediate")
    for table in TABLES:
        counts[table.name] = 0
        page: list[Row] = []
        async for row in _postgres_rows(db, tenant, table):
            digest.update(_bytes_of(table, row))
            counts[table.name] += 1
            page.append(row)
            if len(page) == table.page:
                _put_sqlite(file, table, page)
                page = []
        _put_sqlite(file, table, page)
    _check_equal(digest.hexdigest(), _sqlite_digest(file))
    file.execute("commit")
    return TransferReport(rows=counts, digest=digest.hexdigest())


def _pages(rows: Iterator[Row], size: int) -> Iterator[list[Row]]:
    page: list[Row] = []
    for row in rows:
        page.append(row)
        if len(page) == size:
            yield page
            page = []
    if page:
        yield page


# -- the comparison


def _bytes_of(table: TransferTable, row: Row) -> bytes:
    """A row as both sides give it, for a digest."""
    plain = [table.name, *(int(value) if isinstance(value, bool) else value for value in row)]
    return msgspec.msgpack.encode(plain)


async def _postgres_digest(db: Connection, tenant: int) -> str:
    digest = sha256()
    for table in TABLES:
        async for row in _postgres_rows(db, tenant, table):
            digest.update(_bytes_of(table, row))
    return digest.hexdigest()


def _sqlite_digest(file: apsw.Connection) -> str:
    digest = sha256()
    for table in TABLES:
        for row in _sqlite_rows(file, table):
            digest.update(_bytes_of(table, row))
    return digest.hexdigest()


def _check_equal(read: str, copied: str) -> None:
    if read != copied:
        raise Corrupt("the copy", "it is not what was read; it was taken back")
