"""The default store: one SQLite file, many processes, one writer thread in each.

`open_sqlite` is the way in.  Inside: `connect` opens files and translates errors, `schema` makes
and migrates the tables, `writer` is the thread that commits in groups, `appends`, `leases` and
`delete` are what it runs, `reader` is the thread that reads and its queries, `ballast` keeps room
for a full disk, `store` puts them together.
"""

from weft.store.sqlite.store import SqliteStore, open_sqlite

__all__ = ["SqliteStore", "open_sqlite"]
