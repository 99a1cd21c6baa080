"""Versions of the schema: which there are, and how a database gets the newest.

Every version is a file of statements.  All that are missing run in one transaction under a lock, so
that hosts which start together make them once, and a crash leaves the old schema or the new one.
`version` in `meta` is the newest that was applied, `min_writer` the oldest program that may still
write: a version that only adds leaves it as it is, so that old and new hosts run side by side
during a deploy.
"""

from __future__ import annotations

from importlib.resources import files

from weft.errors import StoreUnavailable, TooNew
from weft.store.postgres.connection import SCHEMA, Connection, explained

VERSIONS: tuple[tuple[str, ...], ...] = (("001_tables.sql", "002_append.sql"),)
"""What takes a database from version n to n + 1, at place n."""
VERSION = len(VERSIONS)
"""The schema that this program makes and writes."""
MIN_WRITER = 1
"""The oldest program that may write to the schema of this one."""

_LOCK = 1465206901
_META = "select value from weft.meta where key = $1"


async def migrate(db: Connection) -> None:
    """Bring the schema up to `VERSION`, all or nothing.

    Raises:
        TooNew: a newer program has changed it so that this one must not write.
        StoreUnavailable: this user may not make the schema.
    """
    if await _version(db) >= VERSION:
        await _check_writer(db)
        return
    try:
        # Before the transaction: one that waits inside goes on seeing the catalogue as it was, and
        # would make the tables a second time.
        await db.execute("select pg_advisory_lock($1)", _LOCK)
        try:
            async with db.transaction():
                await _apply(db, await _version(db))
        finally:
            await db.execute("select pg_advisory_unlock($1)", _LOCK)
    except Exception as error:
        raise explained(error) from error


async def check_version(db: Connection) -> None:
    """Refuse a database without our schema, or with one that is older than this program.

    Raises:
        StoreUnavailable: it is to be made, or migrated, first.
        TooNew: as `migrate`.
    """
    found = await _version(db)
    if found < VERSION:
        raise StoreUnavailable(
            f"the database has version {found} of the schema and this Weft needs {VERSION}; "
            "run `weft store migrate`"
        )
    await _check_writer(db)


async def _apply(db: Connection, version: int) -> None:
    if version >= VERSION:
        return
    if version == 0:
        # Where an administrator has made it, this user may have no right to make one.
        if await db.fetchval("select to_regnamespace($1) is null", SCHEMA):
            await db.execute(f"create schema {SCHEMA}")
        await db.execute("create table weft.meta (key text primary key, value integer not null)")
        await db.execute("insert into weft.meta values ('version', 0), ('min_writer', 1)")
    for names in VERSIONS[version:]:
        for name in names:
            await db.execute((files(__package__) / "sql" / name).read_text())
    await db.execute(
        f"""update weft.meta set value = case key when 'version' then {max(version, VERSION)}
                else greatest(value, {MIN_WRITER}) end"""
    )


async def _version(db: Connection) -> int:
    if not await db.fetchval("select to_regclass('weft.meta') is not null"):
        return 0
    return int(await db.fetchval(_META, "version"))


async def _check_writer(db: Connection) -> None:
    if (least := int(await db.fetchval(_META, "min_writer"))) > VERSION:
        raise TooNew(
            f"the database is used by a newer Weft (it needs schema {least}, this one knows "
            f"{VERSION}); update Weft, nothing was changed"
        )


async def tenant_number(db: Connection, name: str) -> int:
    """The number of a tenant, given with its first opening."""
    if not name or "\0" in name:
        raise StoreUnavailable(f"{name!r} is no name of a tenant")
    found = await db.fetchval("select tenant from weft.tenants where name = $1", name)
    if found is None:
        await db.execute("insert into weft.tenants (name) values ($1) on conflict do nothing", name)
        found = await db.fetchval("select tenant from weft.tenants where name = $1", name)
    return int(found)
