"""The store in a Postgres database: for many processes and many hosts.

Needs the extra `postgres`.  Reached by `weft.store.location`, or by `open_postgres`.
"""

from __future__ import annotations

from weft.store.postgres.store import PostgresStore, open_postgres

__all__ = ["PostgresStore", "open_postgres"]
